"""What the machine offers and how it is used: cores, memory, one thread for linear algebra, compiled kernels."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from breastmorph.foundation.files import locked_file

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

# --------------------------------------------------------------------------------------------------------------------
# What this machine, or the container around the process, offers: cores and memory
# --------------------------------------------------------------------------------------------------------------------

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


# --------------------------------------------------------------------------------------------------------------------
# One thread for linear algebra: the matrices here are small, and threads that wait for each other cost tenfold
# --------------------------------------------------------------------------------------------------------------------

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def one_thread() -> AbstractContextManager[object]:
    """Pin the BLAS pools to one thread while the context lasts."""
    limits: AbstractContextManager[object] = _pools(len(sys.modules)).limit(limits=1, user_api="blas")
    return limits


@lru_cache(maxsize=1)
def _pools(modules: int) -> ThreadpoolController:
    """The pools of the libraries loaded so far: to look for them takes longer than many a function that is pinned.

    A library with pools of its own comes with a module, so they are looked for anew once ``modules`` are more.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_one_thread(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function that computes with the BLAS pools pinned to one thread."""

    @wraps(function)
    def pinned(*args: Parameters.args, **others: Parameters.kwargs) -> Result:
        with one_thread():
            return function(*args, **others)

    return pinned


# --------------------------------------------------------------------------------------------------------------------
# Compiled kernels, kept on the disk and shared by processes that start together
# --------------------------------------------------------------------------------------------------------------------

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Let numba compile a function, and keep the code on the disk where there is a place for it.

    Where there is none (a container that is read-only, a home over its quota) numba's own cache refuses to compile.

    Parameters
    ----------
    **options
        Of numba's ``njit``.
    """
    from numba import njit

    def decorate(function: Function) -> Function:
        kernel: Function
        try:
            kernel = njit(cache=True, **options)(function)
        except RuntimeError:  # then every process compiles it anew
            kernel = njit(**options)(function)
        return kernel

    return decorate


def share_compiled_code() -> None:
    """Let only one process at a time add to numba's cache.

    Numba reads the index of a cache, adds a line, writes the index and then the code. Two processes that do so at
    once can give one file name to two functions, and one that is killed in between leaves an index that points to
    the code of an older version. Both would later run wrong code.
    """
    from numba.core.caching import IndexDataCacheFile

    save = IndexDataCacheFile.save
    if getattr(save, "one_at_a_time", False):
        return

    def save_alone(self: Any, key: Any, data: Any) -> None:
        folder = Path(self._cache_path)
        # A disk that is full by now costs time in the next process, not a result in this one.
        with suppress(OSError), locked_file(folder / ".breastmorph.lock"):
            if not self._load_index():
                for old in folder.glob(self._index_name.removesuffix(".nbi") + ".*.nbc"):
                    old.unlink(missing_ok=True)
            save(self, key, data)

    save_alone.one_at_a_time = True  # type: ignore[attr-defined]
    IndexDataCacheFile.save = save_alone
