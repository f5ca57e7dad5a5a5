"""What the machine, or the container around the process, offers: cores, memory; one thread for linear algebra."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_SMALLEST_SHARE = 2**30  # bytes; less does not even load the libraries with a template
_USABLE = 0.9  # of the memory: the system and the caller need the rest
_CGROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """Cores this process may use: not more than its container or its CPU set allows."""
    count = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    for text in _settings("cpu.max"):
        quota, _, period = text.partition(" ")
        if quota.isdigit() and period.isdigit():
            count = min(count, max(1, math.ceil(int(quota) / int(period))))
    return count


def memory() -> int | None:
    """Bytes of memory this process and its children may use together; None where it cannot be known."""
    try:
        sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # not a POSIX system
        return None
    sizes += [int(text) for text in _settings("memory.max") if text.isdigit()]
    return min(sizes)


def memory_share(parts: int, whole: int | None = None) -> int | None:
    """Bytes for each of several equal processes, of the machine's memory or of ``whole``; None if unknown."""
    whole = whole or memory()
    return None if whole is None else max(_SMALLEST_SHARE, int(_USABLE * whole / parts))


def _settings(name: str) -> Iterator[str]:
    """A setting of this process's control group and of those around it (Linux, version 2)."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    own = next((line[3:].lstrip("/") for line in lines if line.startswith("0::")), "")
    for group in (_CGROUPS / own, *(_CGROUPS / own).parents):
        if group == _CGROUPS.parent:
            return
        try:
            yield (group / name).read_text().strip()
        except OSError:
            continue


Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def one_thread() -> AbstractContextManager[object]:
    """Pin the BLAS pools to one thread while the context lasts.

    The matrices here are small, and threads that wait for each other cost tenfold.
    """
    limits: AbstractContextManager[object] = _pools().limit(limits=1, user_api="blas")
    return limits


@cache
def _pools() -> ThreadpoolController:
    """The pools of numpy and scipy: to look for them takes longer than many a function that is pinned."""
    import scipy.linalg  # noqa: F401 - brings scipy's own
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_one_thread(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function that computes with the BLAS pools pinned to one thread."""

    @wraps(function)
    def pinned(*args: Parameters.args, **others: Parameters.kwargs) -> Result:
        with one_thread():
            return function(*args, **others)

    return pinned
