"""Kernels compiled by numba, kept on the disk and shared by processes that start together. Importing it loads numba."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

from breastmorph.foundation.locks import locked_file

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Let numba compile a function, and keep the code on the disk where there is a place for it.

    Where there is none (a container that is read-only, a home over its quota) every process compiles it anew.

    Parameters
    ----------
    **options
        Of numba's ``njit``.
    """

    def decorate(function: Function) -> Function:
        kernel: Any = njit(**options)(function)
        with suppress(RuntimeError):  # no place for the code
            kernel._cache = _KernelCache(function)  # what numba's enable_caching() does, with a cache of ours
        typed: Function = kernel
        return typed

    return decorate


class KernelIndex(IndexDataCacheFile):  # type: ignore[misc]  # numba has no types
    """The files of a kernel's cache, to which only one process at a time adds.

    Numba reads the index of a cache, adds a line, writes the index and then the code. Two processes that do so at
    once can give one file name to two functions, and one that is killed in between leaves an index that points to
    the code of an older version. Both would later run wrong code.
    """

    def save(self, key: Any, data: Any) -> None:
        """Add a kernel; a disk that is full by now costs time in the next process, not a result in this one."""
        folder = Path(self._cache_path)
        with suppress(OSError), locked_file(folder / ".breastmorph.lock"):
            if not self._load_index():
                for old in folder.glob(self._index_name.removesuffix(".nbi") + ".*.nbc"):
                    old.unlink(missing_ok=True)
            super().save(key, data)


class _KernelCache(FunctionCache):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = KernelIndex(self._cache_path, self._impl.filename_base, stamp)
