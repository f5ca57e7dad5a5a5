"""A study: the experiments of the paper on one cohort, from scans to figures."""
