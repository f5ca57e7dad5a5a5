"""The results of a study as sections of its report."""
