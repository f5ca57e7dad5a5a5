"""Fuzzing of every reader: seeds made by our own writers, mutations, limits, and a table of what came out.

``python -m fuzz --inputs 20000`` is the long run; ``python -m fuzz.coverage PLY`` the coverage-guided one.
"""

import os

for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_pool, "1")  # before numpy is loaded: children are forked from one thread
