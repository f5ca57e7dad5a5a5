"""Compiled kernels, kept on the disk and shared by processes that start together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from breastmorph.registration.lock import locked_file

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
