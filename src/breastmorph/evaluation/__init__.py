"""Evaluation: how right registrations are, by truth."""
