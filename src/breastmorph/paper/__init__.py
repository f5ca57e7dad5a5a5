"""A study: the paper's experiments on one cohort, as parts that are computed once and kept in one folder."""
