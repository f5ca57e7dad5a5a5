"""Compiled kernels on the disk, shared by processes that start together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from breastmorph.registration.lock import locked_file


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
        with locked_file(folder / ".breastmorph.lock"):
            if not self._load_index():
                for old in folder.glob(self._index_name.removesuffix(".nbi") + ".*.nbc"):
                    old.unlink(missing_ok=True)
            save(self, key, data)

    save_alone.one_at_a_time = True  # type: ignore[attr-defined]
    IndexDataCacheFile.save = save_alone
