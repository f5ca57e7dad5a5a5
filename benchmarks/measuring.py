"""What the benchmarks share: one core, CPU seconds, peak memory, and a note of every comparison with a peer.

Importing this module pins the linear algebra to one thread, here and in child processes: one core is what is measured.
"""

from __future__ import annotations

import json
import os
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_pool, "1")  # for children, and for libraries that are loaded later

import numpy as np
from threadpoolctl import threadpool_limits

threadpool_limits(1)  # for libraries that are loaded already

NOTES = "BREASTMORPH_COMPARISONS"  # names the file that collects the comparisons of a run
Result = TypeVar("Result")


def cpu_seconds(job: Callable[[], Result], repeats: int = 1) -> tuple[float, Result]:
    """Median CPU seconds of a job, which a loaded machine does not stretch, and what it gave last."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        result = job()
        seconds.append(time.process_time() - start)
    return float(np.median(seconds)), result


def peak_memory() -> float:
    """MB that this process held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def resident(process: int) -> float:
    """MB of memory that a process has (Linux)."""
    return int(re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[0]) / 1024


def compare(what: str, unit: str, ours: float, peer: str, theirs: float) -> None:
    """Note a comparison for the table of `make bench`; less is better in all of them."""
    place = os.environ.get(NOTES)
    if place and np.isfinite([ours, theirs]).all():
        row = {"what": what, "unit": unit, "ours": float(ours), "peer": peer, "theirs": float(theirs)}
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
