"""The experiments of the paper's section 4: cohorts in, plain values out, beside what the paper says."""
