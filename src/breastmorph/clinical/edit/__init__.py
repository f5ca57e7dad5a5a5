"""Changing a shape by its measures."""
