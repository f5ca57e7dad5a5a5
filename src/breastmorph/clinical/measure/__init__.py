"""Measures of one subject: distances, volumes, ptosis, symmetry."""
