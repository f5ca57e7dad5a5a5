"""A model file as a tree of named arrays, in HDF5 and in HDF5-JSON."""

from __future__ import annotations

import io
import json
import math
import zlib
from typing import Any, Protocol

import h5py
import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import damaged, printable

# --------------------------------------------------------------------------------------------------------------------
# What a statismo model is read from: a tree of arrays and texts, whatever it is stored in
# --------------------------------------------------------------------------------------------------------------------


class Tree(Protocol):
    """A tree of named arrays; paths are written ``/model/mean``."""

    def array(self, path: str) -> NDArray[Any] | None:
        """The array at a path, or None where there is none."""

    def text(self, path: str) -> str | None:
        """The text at a path, or None where there is none."""

    def attribute(self, path: str, name: str) -> str | None:
        """A text attribute of a group, or None."""

    def children(self, path: str) -> list[str]:
        """Names below a group; empty where it does not exist."""


# --------------------------------------------------------------------------------------------------------------------
# HDF5 files as a tree. Links to other files are not followed, and announced sizes are checked before reading
# --------------------------------------------------------------------------------------------------------------------

_SMALL = 32 * 1024**2  # bytes that may always be read
_MOST_COMPRESSED = 50  # times smaller a compressed file may be than its content
_LARGEST_TEXT = 1024**2  # bytes of a text or of an attribute
_MOST_TEXTS = 1000  # in one array
_MOST_LINKS = 16  # that lead to one object
_MOST_CHUNKS = 1000  # that an array may always have, beyond one per 16 bytes of the file
_DEFLATE, _SHUFFLE, _CHECKSUM = 1, 2, 3
_FILTERS = (_DEFLATE, _SHUFFLE, _CHECKSUM)  # each chunk is checked before the library unpacks it


class Hdf5Tree:
    """The content of an HDF5 file."""

    def __init__(self, data: bytes) -> None:
        self.file, self.size, self.data = h5py.File(io.BytesIO(data), "r"), len(data), data
        self.left = max(_SMALL, _MOST_COMPRESSED * len(data))  # bytes of all arrays together

    def _at(self, path: str) -> Any:
        """The object at a path, or None; only through links within the file."""
        here: Any = self.file
        names, links = [part for part in reversed(path.split("/")) if part], 0
        while names:
            name = names.pop()
            # The library would follow a soft link through an external one: both are followed here, or not at all.
            link = here.get(name, getlink=True) if isinstance(here, h5py.Group) else None
            if link is None:
                return None
            if isinstance(link, h5py.ExternalLink):
                raise FileProblem("the model's data lie in another file", "Store the model in one file")
            if isinstance(link, h5py.SoftLink):
                links += 1
                if links > _MOST_LINKS:
                    raise damaged("its links lead in a circle")
                names += [part for part in reversed(link.path.split("/")) if part]
                here = self.file if link.path.startswith("/") else here
            else:
                here = here[name]
        return here

    def array(self, path: str) -> NDArray[Any] | None:
        """The array at a path, or None where there is none."""
        found = self._at(path)
        if not isinstance(found, h5py.Dataset) or found.shape is None:
            return None
        if found.is_virtual or found.external:
            raise FileProblem("the model's data lie in another file", "Store the model in one file")
        if found.chunks is not None:
            self._check_chunks(found, path)
        if h5py.check_string_dtype(found.dtype) is not None:
            return self._texts(found, path)
        if found.dtype.kind not in "iuf":
            raise damaged(f"{printable(path, 100)} holds {str(found.dtype)[:40]}, not numbers")
        self._take(found.nbytes, path)
        return np.asarray(found[()])

    def _take(self, size: int, path: str) -> None:
        """Before memory is taken: a file cannot hold more than so much."""
        if size > self.left:
            raise damaged(
                f"{printable(path, 100)} announces {size / 1024**2:,.0f} MB, more than the file can hold"
            )
        self.left -= size

    def _texts(self, found: Any, path: str) -> NDArray[Any]:
        # One after the other: of texts of any length, each may name the same long one.
        if found.size > _MOST_TEXTS or found.dtype.itemsize > _LARGEST_TEXT:
            raise damaged(f"{printable(path, 100)} holds text, more than any model has, not numbers")
        if found.dtype.kind == "O":
            _check_heaps(self.data)
        texts = np.empty(found.shape, dtype=object)
        for index in np.ndindex(found.shape):
            texts[index] = found[index]
            self._take(len(texts[index]), path)
        return texts

    def _check_chunks(self, found: Any, path: str) -> None:
        """Refuse chunks that are more than the array, too many, or that unpack to more than they should."""
        count = math.prod(-(-n // k) for n, k in zip(found.shape, found.chunks, strict=True))
        size = math.prod(found.chunks) * found.dtype.itemsize
        if count > _MOST_CHUNKS + self.size // 16:
            raise damaged(f"{printable(path, 100)} announces {count:,} chunks, more than the file can hold")
        if size > max(_LARGEST_TEXT, 2 * found.nbytes):
            raise damaged(f"{printable(path, 100)} has chunks larger than itself")
        pipeline = found.id.get_create_plist()
        filters = [pipeline.get_filter(k)[0] for k in range(pipeline.get_nfilters())]
        if not set(filters) <= set(_FILTERS) or filters != [
            one for one in (_SHUFFLE, _DEFLATE, _CHECKSUM) if one in filters
        ]:
            raise FileProblem(
                "the model is compressed in a way that is not read", "Store it with gzip or without"
            )
        if _DEFLATE not in filters:
            return
        for number in range(found.id.get_num_chunks()):
            offset = found.id.get_chunk_info(number).chunk_offset
            skipped, packed = found.id.read_direct_chunk(offset)
            # The library itself unpacks without a limit.
            if not skipped and len(zlib.decompressobj().decompress(packed, size + 1)) > size:
                raise damaged(f"{printable(path, 100)} unpacks to more than it announces")

    def text(self, path: str) -> str | None:
        """The text at a path, or None where there is none."""
        found = self.array(path)
        return None if found is None or found.size == 0 else _text(found.reshape(-1)[0])

    def attribute(self, path: str, name: str) -> str | None:
        """A text attribute of a group, or None."""
        found = self._at(path)
        if found is None or name not in found.attrs:
            return None
        attribute = found.attrs.get_id(name)
        if math.prod(attribute.shape or ()) * attribute.dtype.itemsize > _LARGEST_TEXT:
            raise damaged(f"the attribute {name} of {printable(path, 100)} holds more text than a model has")
        if attribute.dtype.kind == "O":
            _check_heaps(self.data)
        value = np.asarray(found.attrs[name]).reshape(-1)
        return _text(value[0]) if value.size else None

    def children(self, path: str) -> list[str]:
        """Names below a group; empty where it does not exist."""
        found = self._at(path)
        return list(found) if isinstance(found, h5py.Group) else []


def _check_heaps(data: bytes) -> None:
    """Refuse damaged stores of texts: the library walks through them without end when a part has no length."""
    start = data.find(b"GCOL\1")
    while start >= 0:
        size = int.from_bytes(data[start + 8 : start + 16], "little")
        at = start + 16
        while at + 16 <= min(start + size, len(data)):
            used = int.from_bytes(data[at : at + 2], "little") > 0
            length = int.from_bytes(data[at + 8 : at + 16], "little")
            step = 16 + -(-length // 8) * 8 if used else length
            if step < 16 or at + step > start + size:
                raise damaged("its texts are stored in parts that do not fit")
            at += step
        start = data.find(b"GCOL\1", start + 1)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").rstrip("\0 ")
    return str(value)


# --------------------------------------------------------------------------------------------------------------------
# HDF5-JSON (hdf5-json.readthedocs.io), as Scalismo from 0.92 on writes it, as a tree
# --------------------------------------------------------------------------------------------------------------------


class JsonTree:
    """A parsed HDF5-JSON text: groups link to groups and datasets by their ids."""

    def __init__(self, data: bytes) -> None:
        content = json.loads(data.decode("utf-8-sig"))
        if not (isinstance(content, dict) and isinstance(content.get("groups"), dict)):
            raise FileProblem(
                "this JSON is no HDF5-JSON (it has no groups)", "Give a model that Scalismo wrote"
            )
        self.groups: dict[str, Any] = content["groups"]
        self.datasets: dict[str, Any] = content.get("datasets") or {}
        self.root = str(content.get("root"))
        self._links: dict[int, dict[str, Any]] = {}  # of groups that were looked into
        if self.root not in self.groups:
            raise damaged("its root group is missing")

    def _at(self, path: str) -> tuple[str, Any]:
        """Kind ("group", "dataset" or empty) and content of what is at a path."""
        kind, here = "group", self.groups[self.root]
        for name in (part for part in path.split("/") if part):
            target = self._targets(here).get(name) if kind == "group" else None
            if target in self.datasets:
                kind, here = "dataset", self.datasets[target]
            elif target in self.groups:
                kind, here = "group", self.groups[target]
            else:
                return "", {}
        return kind, here

    def _targets(self, group: Any) -> dict[str, Any]:
        """What a group links to, by title; made once, as a catalog may have thousands."""
        if id(group) not in self._links:
            links = reversed(group.get("links") or [])  # of a title given twice the first counts
            self._links[id(group)] = {link.get("title", ""): link.get("id") for link in links}
        return self._links[id(group)]

    def _value(self, path: str) -> Any:
        kind, found = self._at(path)
        return found.get("value") if kind == "dataset" else None

    def array(self, path: str) -> NDArray[Any] | None:
        """The array at a path, or None where there is none."""
        value = self._value(path)
        if value is None:
            return None
        kinds = _kinds(value)
        if kinds == {str}:
            return np.array(value, dtype=object)  # else every text would take as much as the longest
        if not kinds <= {int, float}:
            raise damaged(f"{printable(path, 100)} does not hold numbers")
        array = np.array(value)  # rows of different lengths raise ValueError
        if array.dtype.kind not in "iuf":
            raise damaged(f"{printable(path, 100)} holds numbers beyond the range")
        return array

    def text(self, path: str) -> str | None:
        """The text at a path, or None where there is none."""
        value = self._value(path)
        return value if isinstance(value, str) else None

    def attribute(self, path: str, name: str) -> str | None:
        """A text attribute of a group, or None."""
        _, found = self._at(path)
        for attribute in found.get("attributes") or []:
            if attribute.get("name") == name:
                return str(attribute.get("value"))
        return None

    def children(self, path: str) -> list[str]:
        """Names below a group; empty where it does not exist."""
        kind, found = self._at(path)
        return list(self._targets(found))[::-1] if kind == "group" else []


def _kinds(value: Any) -> set[type]:
    """The types of all values in nested lists."""
    kinds, lists = set(), [value]
    while lists:
        here = lists.pop()
        if isinstance(here, list):
            found = set(map(type, here))
            if list in found:
                lists += here
            else:
                kinds |= found
        else:
            kinds.add(type(here))
    return kinds
