"""Predicting a missing breast, with its uncertainty."""
