"""HDF5 files as a tree. Links to other files are not followed, and announced sizes are checked before reading."""

from __future__ import annotations

import io
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from breastmorph.errors import FileProblem
from breastmorph.mesh.files.reading import damaged

_SMALL = 64 * 1024**2  # bytes that may always be read
_MOST_COMPRESSED = 100  # times smaller a compressed file may be than its content


class Hdf5Tree:
    """The content of an HDF5 file."""

    def __init__(self, data: bytes) -> None:
        self.file, self.size = h5py.File(io.BytesIO(data), "r"), len(data)

    def _at(self, path: str) -> Any:
        """The object at a path, or None; only through links within the file."""
        here: Any = self.file
        for name in (part for part in path.split("/") if part):
            if not isinstance(here, h5py.Group) or name not in here:
                return None
            link = here.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                raise FileProblem("the model's data lie in another file", "Store the model in one file")
            here = here[name]
        return here

    def array(self, path: str) -> NDArray | None:
        """The array at a path, or None where there is none."""
        found = self._at(path)
        if not isinstance(found, h5py.Dataset):
            return None
        if found.is_virtual or found.external:
            raise FileProblem("the model's data lie in another file", "Store the model in one file")
        if found.dtype.kind not in "iufSOU":
            raise damaged(f"{path} holds {found.dtype}, not numbers")
        if found.shape is None:
            return None
        if found.dtype.kind in "iuf" and found.nbytes > max(_SMALL, _MOST_COMPRESSED * self.size):
            raise damaged(f"{path} announces {found.nbytes / 1024**3:,.0f} GB, more than the file can hold")
        return np.asarray(found[()])

    def text(self, path: str) -> str | None:
        """The text at a path, or None where there is none."""
        found = self.array(path)
        return None if found is None or found.size == 0 else _text(found.reshape(-1)[0])

    def attribute(self, path: str, name: str) -> str | None:
        """A text attribute of a group, or None."""
        found = self._at(path)
        if found is None or name not in found.attrs:
            return None
        value = np.asarray(found.attrs[name]).reshape(-1)
        return _text(value[0]) if value.size else None

    def children(self, path: str) -> list[str]:
        """Names below a group; empty where it does not exist."""
        found = self._at(path)
        return list(found) if isinstance(found, h5py.Group) else []


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").rstrip("\0 ")
    return str(value)
