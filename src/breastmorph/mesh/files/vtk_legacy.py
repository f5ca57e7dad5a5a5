"""Legacy VTK files (.vtk) of PolyData, ascii and binary, of the versions before and since 5.1.

Neither trimesh nor meshio reads PolyData from them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Ints
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import damaged, floats, integers, printable, space_in, truncated
from breastmorph.mesh.files.corners import NO_CELLS, PolyData, mesh_of, rgba, split_by_offsets
from breastmorph.mesh.triangle_mesh import TriangleMesh

SIGNATURE = re.compile(rb"# vtk DataFile Version", re.IGNORECASE)
# vtkIdType is written with 32 bits, whatever it has in memory.
_TYPES = {
    "unsigned_char": "u1", "char": "i1", "signed_char": "i1", "unsigned_short": "u2", "short": "i2",
    "unsigned_int": "u4", "int": "i4", "unsigned_long": "u8", "long": "i8", "float": "f4", "double": "f8",
    "vtktypeint64": "i8", "vtktypeuint64": "u8", "vtkidtype": "i4", "vtktypeint32": "i4",
    "vtktypeuint32": "u4", "vtktypeint8": "i1", "vtktypeuint8": "u1", "vtktypeint16": "i2",
    "vtktypeuint16": "u2",
    "vtktypefloat32": "f4", "vtktypefloat64": "f8",
}  # fmt: skip
_CELLS = ("VERTICES", "LINES", "POLYGONS", "TRIANGLE_STRIPS")
_WIDTHS = {"VECTORS": 3, "NORMALS": 3, "TENSORS": 9, "TENSORS6": 6, "GLOBAL_IDS": 1, "PEDIGREE_IDS": 1}


def read(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of a legacy VTK file."""
    return _Reader(data).mesh()


class _Reader:
    """Walks through the file; it has no index, so that each part must be read to find the next."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.line()
        self.space = space_in(self.line())
        layout = self.line().strip().upper()
        if layout not in ("ASCII", "BINARY"):
            raise (
                truncated("the header")
                if self.at >= len(data)
                else damaged("neither ASCII nor BINARY is declared")
            )
        self.binary = layout == "BINARY"
        self.points: NDArray[Any] = np.empty((0, 3))
        self.cells: dict[str, tuple[Ints, Ints]] = {}
        self.arrays: dict[str, dict[str, NDArray[Any]]] = {"POINT_DATA": {}, "CELL_DATA": {}, "FIELD": {}}
        self.uv_name = ""

    def line(self) -> str:
        """The next line, without its end; empty at the end of the file."""
        end = self.data.find(b"\n", self.at)
        end = len(self.data) if end < 0 else end
        line, self.at = self.data[self.at : end], end + 1
        return line.decode("latin-1").strip()

    def next_line(self, what: str) -> list[str]:
        """The words of the next line that is not empty."""
        words = self._words_or_end()
        if not words:
            raise truncated(what)
        return words

    def _words_or_end(self) -> list[str]:
        while self.at < len(self.data):
            words = self.line().split()
            if words:
                return words
        return []

    def _skip_metadata(self) -> None:
        while self.at < len(self.data) and self.line():
            pass  # it ends with an empty line

    def numbers(self, kind: str, count: int, what: str) -> NDArray[Any]:
        """The next ``count`` numbers of a VTK type, (count,)."""
        if kind.lower() not in _TYPES:
            raise damaged(f"{what} has the unknown type {kind[:40]!r}")
        dtype = np.dtype(">" + _TYPES[kind.lower()])
        rest = len(self.data) - self.at
        least = count * dtype.itemsize if self.binary else 2 * count - 1
        if count < 0 or least > rest:  # before anything is allocated
            raise truncated(f"{what} announces {count:,} numbers, fewer are there")
        if self.binary:
            values = np.frombuffer(self.data, dtype, count, self.at)
            self.at += least
            return values.astype(dtype.newbyteorder("="))
        tokens = self._words(count)
        if len(tokens) < count:
            raise truncated(f"{what} announces {count:,} numbers, {len(tokens):,} are there")
        if dtype.kind == "f":
            return floats(tokens, what)
        return integers(tokens, what).astype(np.uint8 if dtype == np.uint8 else np.int64)

    def _words(self, count: int) -> list[bytes]:
        """The next ``count`` words, or as many as there are."""
        size = 32 * count + 256  # bytes; not the whole rest, of which a file with many arrays has many
        while True:
            window = self.data[self.at : self.at + size]
            words = window.split(None, count)
            if len(words) > count:
                self.at += len(window) - len(words.pop())
                return words
            if self.at + size >= len(self.data):
                self.at = len(self.data)
                return words
            size *= 4

    def mesh(self) -> TriangleMesh:
        """Read all parts and put the mesh together."""
        kind = self.next_line("the kind of dataset")
        if kind[0].upper() == "FIELD":
            raise FileProblem("the VTK file holds fields only, no surface", "Save the surface as PolyData")
        if kind[0].upper() != "DATASET" or len(kind) < 2:
            raise damaged("the line 'DATASET ...' is missing")
        if kind[1].upper() != "POLYDATA":
            raise FileProblem(
                f"the VTK file holds {printable(kind[1])}, not a surface (POLYDATA)",
                "Extract the surface and save it as PolyData",
            )
        section, rows = "FIELD", 1
        while words := self._words_or_end():
            keyword = words[0].upper()
            if keyword == "POINTS" and len(words) >= 3:
                self.points = self.numbers(words[2], 3 * int(words[1]), "POINTS").reshape(-1, 3)
            elif keyword in _CELLS and len(words) >= 3:
                self.cells[keyword] = self._cells(keyword, int(words[1]), int(words[2]))
            elif keyword in ("POINT_DATA", "CELL_DATA") and len(words) >= 2:
                section, rows = keyword, int(words[1])
            elif keyword == "METADATA":
                self._skip_metadata()
            elif not self._attribute(section, rows, keyword, words):
                raise damaged(f"the VTK file has the line {' '.join(words)[:60]!r}")
        if "POLYGONS" not in self.cells and "TRIANGLE_STRIPS" not in self.cells and not len(self.points):
            raise truncated("POINTS are missing")
        space = self.arrays["FIELD"].get("SPACE")
        if space is not None and space.size:
            self.space = space_in(f"SPACE={space.ravel()[0]}") or self.space
        piece = PolyData(
            self.points.astype(np.float64),
            self.cells.get("POLYGONS", NO_CELLS),
            self.cells.get("TRIANGLE_STRIPS", NO_CELLS),
            {
                name: values
                for name, values in self.arrays["POINT_DATA"].items()
                if len(values) == len(self.points)
            },
            self.arrays["CELL_DATA"],
            self.uv_name,
        )
        return mesh_of([piece], self.space)

    def _cells(self, keyword: str, first: int, second: int) -> tuple[Ints, Ints]:
        before = self.at
        words = self._words_or_end()
        if words and words[0].upper() == "OFFSETS" and len(words) == 2:  # since version 5.1
            offsets = self.numbers(words[1], first, f"offsets of {keyword}").astype(np.int64)
            words = self.next_line(f"CONNECTIVITY of {keyword}")
            if words[0].upper() != "CONNECTIVITY" or len(words) != 2:
                raise damaged(f"CONNECTIVITY of {keyword} is missing")
            corners = self.numbers(words[1], second, f"corners of {keyword}").astype(np.int64)
            return split_by_offsets(offsets[1:], corners)
        self.at = before
        flat = self.numbers("int", second, keyword).astype(np.int64)
        if (
            first
            and first * int(flat[0] if len(flat) else 0) + first == second
            and np.all(flat[:: flat[0] + 1] == flat[0])
        ):
            rows = flat.reshape(first, -1)
            return rows[:, 0].copy(), rows[:, 1:].ravel()
        counts: list[int] = []
        parts, at = [], 0
        for _ in range(first):
            if at >= len(flat) or flat[at] < 0 or at + 1 + flat[at] > len(flat):
                raise damaged(f"{keyword} announces {first:,} cells that do not fit its {second:,} numbers")
            counts.append(int(flat[at]))
            parts.append(flat[at + 1 : at + 1 + counts[-1]])
            at += 1 + counts[-1]
        return np.array(counts, np.int64), np.concatenate(parts) if parts else flat[:0]

    def _attribute(self, section: str, rows: int, keyword: str, words: list[str]) -> bool:
        """Read one attribute of the points or cells; false where the line is none."""
        store = self.arrays[section]
        if keyword == "FIELD" and len(words) >= 3:
            for _ in range(int(words[2])):
                self._field_array(store)
        elif keyword == "SCALARS" and len(words) >= 3:
            width = int(words[3]) if len(words) > 3 else 1
            before = self.at
            table = self._words_or_end()
            if not table or table[0].upper() != "LOOKUP_TABLE":
                self.at = before
            store[unquote(words[1])] = self._table(words[2], rows, width, f"SCALARS {printable(words[1])}")
        elif keyword == "COLOR_SCALARS" and len(words) >= 3:
            # Bytes in binary files, fractions in text.
            kind = "unsigned_char" if self.binary else "float"
            values = self._table(kind, rows, int(words[2]), keyword)
            store[unquote(words[1])] = rgba(values) if values.shape[1] in (3, 4) else values
        elif keyword == "TEXTURE_COORDINATES" and len(words) >= 4:
            name = unquote(words[1])
            store[name] = self._table(words[3], rows, int(words[2]), keyword)
            if section == "POINT_DATA":
                self.uv_name = name
        elif keyword == "LOOKUP_TABLE" and len(words) >= 3:
            self._table("unsigned_char" if self.binary else "float", int(words[2]), 4, keyword)
        elif keyword in _WIDTHS and len(words) >= 3:
            store[unquote(words[1])] = self._table(words[2], rows, _WIDTHS[keyword], keyword)
        else:
            return False
        return True

    def _table(self, kind: str, rows: int, width: int, what: str) -> NDArray[Any]:
        if width < 1 or rows < 0:
            raise damaged(f"{what} announces {rows} rows of {width} numbers")
        return self.numbers(kind, rows * width, what).reshape(rows, width)

    def _field_array(self, store: dict[str, NDArray[Any]]) -> None:
        words = self.next_line("an array of a FIELD")
        while words[0].upper() == "METADATA":
            self._skip_metadata()
            words = self.next_line("an array of a FIELD")
        if len(words) < 4:
            raise damaged(f"a FIELD has the array {' '.join(words)[:60]!r}")
        name, width, rows, kind = unquote(words[0]), int(words[1]), int(words[2]), words[3]
        if kind.lower() == "string":
            texts = [self._string() for _ in range(min(width * rows, len(self.data) - self.at))]
            store[name] = np.array(texts, dtype=object)  # else every text would take as much as the longest
        else:
            store[name] = self._table(kind, rows, width, f"array {printable(name)}")

    def _string(self) -> str:
        if not self.binary:
            return unquote(self.line())
        if self.at >= len(self.data):
            raise truncated("a text array")
        # Two bits say how many bytes the length has: 3 -> one, 2 -> two, 1 -> four, 0 -> eight.
        size = {3: 1, 2: 2, 1: 4, 0: 8}[self.data[self.at] >> 6]
        length = int.from_bytes(self.data[self.at : self.at + size], "big") & ((1 << (8 * size - 2)) - 1)
        text = self.data[self.at + size : self.at + size + length]
        if len(text) < length:
            raise truncated("a text array")
        self.at += size + length
        return text.decode("utf-8", "replace")
