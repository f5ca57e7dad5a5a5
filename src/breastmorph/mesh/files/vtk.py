"""VTK's files of PolyData: legacy ones (.vtk) and XML (.vtp).

Neither trimesh nor meshio reads PolyData from them.
"""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import damaged, floats, integers, printable, space_in, truncated, write_file
from breastmorph.foundation.messages import Message
from breastmorph.foundation.safe_parsing import parse_xml
from breastmorph.mesh.files.corners import rgba, triangulated, unrolled_strip
from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh, uv_by_vertex

_NO_CELLS = (np.empty(0, np.int64), np.empty(0, np.int64))
_SEAM_ARRAY = "TextureCoordinatesByCorner"  # ours, for cells: VTK itself has no texture seams


@dataclass(frozen=True, eq=False)
class _PolyData:
    """One piece of VTK PolyData.

    Attributes
    ----------
    points : (n, 3) float
    polygons, strips : (counts (p,), corners (c,)) int
    point_arrays, cell_arrays : name -> (n, k) array
    uv_name : str
        The point array declared as texture coordinates.
    """

    points: Floats
    polygons: tuple[Ints, Ints]
    strips: tuple[Ints, Ints]
    point_arrays: dict[str, NDArray[Any]]
    cell_arrays: dict[str, NDArray[Any]]
    uv_name: str


def _split_by_offsets(offsets: Ints, corners: Ints) -> tuple[Ints, Ints]:
    """(counts, corners) from the end of every cell in the list of corners."""
    # Every end is checked itself: differences of huge ends can overflow to small counts.
    if len(offsets) and (
        offsets.min() < 0 or offsets.max() > len(corners) or (offsets[1:] < offsets[:-1]).any()
    ):
        raise damaged("the cells do not fit the list of their corners")
    return np.diff(offsets, prepend=0), corners[: int(offsets[-1])] if len(offsets) else corners[:0]


def _mesh_of(pieces: list[_PolyData], space: str) -> TriangleMesh:
    """One mesh of all pieces, at least one, in their order."""
    start, faces, uvs, colors = 0, [], [], []
    for piece in pieces:
        counts, corners = piece.polygons
        triangles = [corners[triangulated(counts, corners, piece.points)]]
        lengths, strip_corners = piece.strips
        ends = np.cumsum(lengths)
        triangles += [
            unrolled_strip(strip_corners[end - length : end])
            for length, end in zip(lengths, ends, strict=True)
        ]
        own = np.concatenate(triangles)
        if own.size and (own.min() < 0 or own.max() >= len(piece.points)):
            raise damaged(
                "a face names vertex {own:,}, but there are only {n_points:,}",
                own=own.max(),
                n_points=len(piece.points),
            )
        faces.append(own + start)
        uvs.append(_uv(piece, own, counts))
        colors.append(_colors(piece))
        start += len(piece.points)
    all_faces = np.concatenate(faces)
    uv = [part for part in uvs if part is not None]
    shades = [part for part in colors if part is not None]
    return TriangleMesh(
        np.concatenate([piece.points for piece in pieces]),
        all_faces,
        np.concatenate(shades) if len(shades) == len(pieces) else None,
        Texture(np.concatenate(uv)) if len(uv) == len(pieces) and len(all_faces) else None,
        space,
    )


def _uv(piece: _PolyData, faces: Ints, counts: Ints) -> Floats | None:
    by_corner = piece.cell_arrays.get(_SEAM_ARRAY)
    if by_corner is not None and by_corner.shape == (len(faces), 6) and np.all(counts == 3):
        return by_corner.astype(np.float64).reshape(-1, 3, 2)
    by_point = piece.point_arrays.get(piece.uv_name)
    if by_point is None or by_point.ndim != 2 or by_point.shape[1] < 2:
        return None
    return by_point[:, :2].astype(np.float64)[faces]


def _colors(piece: _PolyData) -> NDArray[np.uint8] | None:
    for values in piece.point_arrays.values():
        if values.dtype == np.uint8 and values.ndim == 2 and values.shape[1] in (3, 4):
            return rgba(values)
    return None


LEGACY_SIGNATURE = re.compile(rb"# vtk DataFile Version", re.IGNORECASE)
# vtkIdType is written with 32 bits, whatever it has in memory.
_LEGACY_TYPES = {
    "unsigned_char": "u1", "char": "i1", "signed_char": "i1", "unsigned_short": "u2", "short": "i2",
    "unsigned_int": "u4", "int": "i4", "unsigned_long": "u8", "long": "i8", "float": "f4", "double": "f8",
    "vtktypeint64": "i8", "vtktypeuint64": "u8", "vtkidtype": "i4", "vtktypeint32": "i4",
    "vtktypeuint32": "u4", "vtktypeint8": "i1", "vtktypeuint8": "u1", "vtktypeint16": "i2",
    "vtktypeuint16": "u2",
    "vtktypefloat32": "f4", "vtktypefloat64": "f8",
}  # fmt: skip
_CELLS = ("VERTICES", "LINES", "POLYGONS", "TRIANGLE_STRIPS")
_WIDTHS = {"VECTORS": 3, "NORMALS": 3, "TENSORS": 9, "TENSORS6": 6, "GLOBAL_IDS": 1, "PEDIGREE_IDS": 1}


def read_legacy(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of a legacy VTK file."""
    return _LegacyReader(data).mesh()


class _LegacyReader:
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
        if kind.lower() not in _LEGACY_TYPES:
            raise damaged("{what} has the unknown type {kind!r}", what=what, kind=kind[:40])
        dtype = np.dtype(">" + _LEGACY_TYPES[kind.lower()])
        left = len(self.data) - self.at
        least = count * dtype.itemsize if self.binary else 2 * count - 1
        if count < 0 or least > left:  # before anything is allocated
            raise truncated("{what} announces {count:,} numbers, fewer are there", what=what, count=count)
        if self.binary:
            values = np.frombuffer(self.data, dtype, count, self.at)
            self.at += least
            return values.astype(dtype.newbyteorder("="))
        tokens = self._words(count)
        if len(tokens) < count:
            raise truncated(
                "{what} announces {count:,} numbers, {n_tokens:,} are there",
                what=what,
                count=count,
                n_tokens=len(tokens),
            )
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
                "the VTK file holds {kind}, not a surface (POLYDATA)",
                "Extract the surface and save it as PolyData",
                kind=printable(kind[1]),
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
                raise damaged("the VTK file has the line {words!r}", words=" ".join(words)[:60])
        if "POLYGONS" not in self.cells and "TRIANGLE_STRIPS" not in self.cells and not len(self.points):
            raise truncated("POINTS are missing")
        space = self.arrays["FIELD"].get("SPACE")
        if space is not None and space.size:
            self.space = space_in(f"SPACE={space.ravel()[0]}") or self.space
        piece = _PolyData(
            self.points.astype(np.float64),
            self.cells.get("POLYGONS", _NO_CELLS),
            self.cells.get("TRIANGLE_STRIPS", _NO_CELLS),
            {
                name: values
                for name, values in self.arrays["POINT_DATA"].items()
                if len(values) == len(self.points)
            },
            self.arrays["CELL_DATA"],
            self.uv_name,
        )
        return _mesh_of([piece], self.space)

    def _cells(self, keyword: str, first: int, second: int) -> tuple[Ints, Ints]:
        before = self.at
        words = self._words_or_end()
        if words and words[0].upper() == "OFFSETS" and len(words) == 2:  # since version 5.1
            offsets = self.numbers(words[1], first, f"offsets of {keyword}").astype(np.int64)
            words = self.next_line(f"CONNECTIVITY of {keyword}")
            if words[0].upper() != "CONNECTIVITY" or len(words) != 2:
                raise damaged("CONNECTIVITY of {keyword} is missing", keyword=keyword)
            corners = self.numbers(words[1], second, f"corners of {keyword}").astype(np.int64)
            return _split_by_offsets(offsets[1:], corners)
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
                raise damaged(
                    "{keyword} announces {first:,} cells that do not fit its {second:,} numbers",
                    keyword=keyword,
                    first=first,
                    second=second,
                )
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
            raise damaged(
                "{what} announces {rows} rows of {width} numbers", what=what, rows=rows, width=width
            )
        return self.numbers(kind, rows * width, what).reshape(rows, width)

    def _field_array(self, store: dict[str, NDArray[Any]]) -> None:
        words = self.next_line("an array of a FIELD")
        while words[0].upper() == "METADATA":
            self._skip_metadata()
            words = self.next_line("an array of a FIELD")
        if len(words) < 4:
            raise damaged("a FIELD has the array {words!r}", words=" ".join(words)[:60])
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


XML_SIGNATURE = re.compile(rb"\s*<.{0,65536}?<VTKFile\b|\s*<VTKFile\b", re.DOTALL)
_XML_TYPES = {
    f"{name}{8 * size}": f"{code}{size}"
    for name, code in (("Int", "i"), ("UInt", "u"))
    for size in (1, 2, 4, 8)
}
_XML_TYPES |= {"Float32": "f4", "Float64": "f8", "String": "u1"}
_LARGEST_ARRAY = 512 * 1024**2  # bytes after decompression
# All arrays of a file together, after decompression: pieces may name the same data again and again.
_SMALL, _MOST_COMPRESSED = 16 * 1024**2, 50  # bytes that may always be read; times the file's size
_LONGEST_SPACE = 64  # bytes of the text that declares the axes
_LENGTHS = {"UInt32": "u4", "UInt64": "u8"}
_BEST_RATIO = 1100  # zlib cannot do better than about 1030 : 1; more is a lie about the size
_UV_NAMES = ("TCoords", "Texture Coordinates", "TextureCoordinates", "UV")


def read_xml(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of a .vtp file."""
    return _XmlReader(data).mesh()


class _XmlReader:
    """The XML tree of one file and the binary data appended to it."""

    def __init__(self, data: bytes) -> None:
        self.appended, self.appended_is_base64 = memoryview(b""), False
        self.left = max(_SMALL, _MOST_COMPRESSED * len(data))
        start = data.find(b"<AppendedData")
        if start >= 0:
            # Raw bytes are not XML: the tree is parsed without them.
            end = data.find(b">", start) + 1
            underscore = data.find(b"_", end)
            if end == 0 or underscore < 0:
                raise truncated("the appended data")
            self.appended_is_base64 = b"base64" in data[start:end]
            self.appended = memoryview(data)[underscore + 1 :]
            data = data[:end] + b"</AppendedData></VTKFile>"
        self.root = parse_xml(data)
        kind = self.root.get("type", "")
        if self.root.tag != "VTKFile" or kind != "PolyData":
            raise FileProblem(
                "the VTK file holds {kind}, not a surface (PolyData)",
                "Extract the surface and save it as PolyData (.vtp)",
                kind=printable(kind) or Message("an unknown dataset"),
            )
        order = ">" if self.root.get("byte_order") == "BigEndian" else "<"
        self.order = order
        lengths = self.root.get("header_type", "UInt32")
        if lengths not in _LENGTHS:
            raise damaged("its header_type {lengths!r} is not known", lengths=printable(lengths))
        self.length = np.dtype(order + _LENGTHS[lengths])
        compressor = self.root.get("compressor", "")
        if compressor not in ("", "vtkZLibDataCompressor"):
            raise FileProblem(
                "the compression {compressor} is not read",
                "Save the file with zlib compression, or uncompressed",
                compressor=printable(compressor),
            )
        self.compressed = bool(compressor)

    def mesh(self) -> TriangleMesh:
        """Put all pieces together."""
        space = ""
        for array in self.root.iterfind("./PolyData/FieldData/"):
            if array.get("Name") == "SPACE" and array.get("type") == "String":
                space = space_in("SPACE=" + self.array(array, _LONGEST_SPACE).tobytes().decode("latin-1"))
        pieces = [self._piece(piece) for piece in self.root.iterfind("./PolyData/Piece")]
        if not pieces:
            raise damaged("the VTK file has no Piece")
        return _mesh_of(pieces, space)

    def _piece(self, piece: Element) -> _PolyData:
        n_points = self._number(piece, "NumberOfPoints")
        n_polys, n_strips = self._number(piece, "NumberOfPolys"), self._number(piece, "NumberOfStrips")
        points = piece.find("./Points/DataArray")
        if points is None and n_points:
            raise damaged("the Points are missing")
        coordinates = np.empty((0, 3)) if points is None else self.table(points, n_points, 3)
        point_data = piece.find("./PointData")
        uv_name = "" if point_data is None else point_data.get("TCoords", "")
        point_arrays = {} if point_data is None else self._attributes(point_data, n_points)
        cell_data = piece.find("./CellData")
        seams = {}
        for array in [] if cell_data is None else cell_data:
            if array.get("Name") == _SEAM_ARRAY:
                seams[_SEAM_ARRAY] = self.table(array, n_polys, 6)
        return _PolyData(
            coordinates.astype(np.float64),
            self._cells(piece, "Polys", n_polys),
            self._cells(piece, "Strips", n_strips),
            point_arrays,
            seams,
            uv_name or next((name for name in _UV_NAMES if name in point_arrays), ""),
        )

    def _number(self, element: Element, name: str) -> int:
        text = element.get(name, "0").strip()
        if not text.isdecimal() or len(text) > 15:
            raise damaged("{name} is {text!r}", name=name, text=text[:30])
        return int(text)

    def _attributes(self, data: Element, rows: int) -> dict[str, NDArray[Any]]:
        # Only what a mesh can carry: bytes for colours, floats of two or three columns for the texture.
        found = {}
        for array in data.iterfind("DataArray"):
            name, width = array.get("Name", ""), self._number(array, "NumberOfComponents") or 1
            is_color = array.get("type") == "UInt8" and width in (3, 4)
            is_uv = width in (2, 3) and (name == data.get("TCoords") or name in _UV_NAMES)
            if is_color or is_uv:
                found[name] = self.table(array, rows, width)
        return found

    def _cells(self, piece: Element, tag: str, count: int) -> tuple[Ints, Ints]:
        arrays = {array.get("Name"): array for array in piece.iterfind(f"./{tag}/DataArray")}
        if count == 0:
            return _NO_CELLS
        if not {"connectivity", "offsets"} <= arrays.keys():
            raise damaged("connectivity or offsets of {tag} are missing", tag=tag)
        offsets = self.table(arrays["offsets"], count, 1).ravel().astype(np.int64)
        return _split_by_offsets(
            offsets, self.table(arrays["connectivity"], int(offsets[-1]), 1).ravel().astype(np.int64)
        )

    def table(self, array: Element, rows: int, width: int) -> NDArray[Any]:
        """The values of an array that must have this shape, (rows, width)."""
        values = self.array(array, rows * width)
        if len(values) < rows * width:
            raise truncated(
                "{array} has {n_values:,} of {rows:,} numbers",
                array=_name(array),
                n_values=len(values),
                rows=rows * width,
            )
        return values[: rows * width].reshape(rows, width)

    def array(self, array: Element, expected: int) -> NDArray[Any]:
        """The values of an array, (k,); at most ``expected`` are wanted."""
        kind = _XML_TYPES.get(array.get("type", ""))
        name = _name(array)
        if kind is None:
            raise damaged(
                "{name} has the unknown type {array!r}", name=name, array=printable(array.get("type", ""))
            )
        dtype = np.dtype(self.order + kind)
        if not 0 <= expected * dtype.itemsize <= _LARGEST_ARRAY:
            raise damaged("{name} announces {expected:,} numbers", name=name, expected=expected)
        layout = array.get("format", "ascii")
        if layout == "ascii":
            tokens = (array.text or "").encode().split()
            values = floats(tokens, name) if dtype.kind == "f" else integers(tokens, name)
            return values if kind != "u1" else np.clip(values, 0, 255).astype(np.uint8)
        if layout == "binary":
            source, is_base64 = memoryview((array.text or "").encode().strip()), True
        elif layout == "appended":
            at = self._number(array, "offset")
            if at >= len(self.appended):
                raise truncated("{name} lies behind the end of the file", name=name)
            source, is_base64 = self.appended[at:], self.appended_is_base64
        else:
            raise damaged("{name} has the unknown format {layout!r}", name=name, layout=layout[:30])
        largest = min(expected * dtype.itemsize, self.left)
        raw = self._decode(_Stream(source, is_base64, name), largest, name)
        self.left -= len(raw)
        if len(raw) % dtype.itemsize:
            raise damaged("{name} ends within a number", name=name)
        return np.frombuffer(raw, dtype).astype(dtype.newbyteorder("="))

    def _decode(self, stream: _Stream, largest: int, name: str) -> bytes:
        size = self.length.itemsize
        if not self.compressed:
            length = int(np.frombuffer(stream.peek(size), self.length)[0])
            if length > largest:
                raise damaged(
                    "{name} announces {length:,} bytes where {largest:,} are expected",
                    name=name,
                    length=length,
                    largest=largest,
                )
            return stream.behind_header(size, length)
        blocks = int(np.frombuffer(stream.peek(size), self.length)[0])
        if blocks == 0:
            return b""
        if blocks > largest + 1:  # every block holds at least a byte
            raise damaged("{name} announces {blocks:,} blocks", name=name, blocks=blocks)
        header = np.frombuffer(stream.peek((3 + blocks) * size), self.length).astype(object)
        block_size, last_size, sizes = header[1], header[2], header[3:]
        lengths = [block_size] * blocks
        lengths[-1] = last_size or block_size
        packed = sum(sizes)
        if sum(lengths) > largest or sum(lengths) > _BEST_RATIO * packed:
            raise damaged(
                "{name} announces {lengths:,} bytes where {largest:,} are expected",
                name=name,
                lengths=sum(lengths),
                largest=largest,
            )
        body = stream.behind_header((3 + blocks) * size, packed)
        parts, at = [], 0
        for length, packed_size in zip(lengths, sizes, strict=True):
            # Never more than announced; a limit of 0 would mean none.
            part = zlib.decompressobj().decompress(body[at : at + packed_size], length or 1)
            if len(part) != length:
                raise damaged("a compressed block of {name} has the wrong size", name=name)
            parts.append(part)
            at += packed_size
        return b"".join(parts)


class _Stream:
    """Bytes of one array, perhaps in base64, of which the header may be encoded apart from the rest."""

    def __init__(self, source: memoryview, is_base64: bool, name: str) -> None:
        self.source, self.is_base64, self.name = source, is_base64, name

    def peek(self, count: int) -> bytes:
        """The first ``count`` bytes."""
        return self._at(0, count)

    def behind_header(self, header: int, count: int) -> bytes:
        """``count`` bytes after a header of ``header`` bytes."""
        if not self.is_base64:
            return self._at(header, count)
        letters = 4 * -(-header // 3)
        if b"=" in bytes(self.source[:letters]) or header % 3 == 0:  # padded: what follows is encoded anew
            return _Stream(self.source[letters:], True, self.name).peek(count)
        return self._at(0, header + count)[header:]

    def _at(self, start: int, count: int) -> bytes:
        if self.is_base64:
            letters = self.source[: 4 * -(-(start + count) // 3)]
            decoded = base64.b64decode(letters[: len(letters) // 4 * 4])
        else:
            decoded = bytes(self.source[: start + count])
        if len(decoded) < start + count:
            raise truncated(self.name)
        return decoded[start : start + count]


def _name(array: Element) -> str:
    return f"array {printable(array.get('Name', ''))!r}"


def write_xml(mesh: TriangleMesh, path: Path) -> None:
    """Write .vtp in 64-bit floats. The format has no pictures: of a texture only the coordinates are kept."""
    point_data, cell_data, tcoords, field_data = "", "", "", ""
    if mesh.colors is not None:
        point_data += _array("RGBA", mesh.colors)
    uv = uv_by_vertex(mesh)
    if uv is not None:
        tcoords, point_data = ' TCoords="TCoords"', point_data + _array("TCoords", uv)
    elif mesh.texture is not None:
        cell_data = _array(_SEAM_ARRAY, mesh.texture.uv.reshape(-1, 6))
    if mesh.space:
        letters = " ".join(str(code) for code in (*mesh.space.encode(), 0))
        field_data = (
            '<FieldData><Array type="String" Name="SPACE" NumberOfTuples="1" format="ascii">'
            f"{letters}</Array></FieldData>\n"
        )
    offsets = np.arange(3, 3 * mesh.n_faces + 1, 3, dtype=np.int64)
    write_file(
        path,
        f"""<?xml version="1.0"?>
<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" header_type="UInt64">
<PolyData>
{field_data}<Piece NumberOfPoints="{mesh.n_vertices}" NumberOfVerts="0" NumberOfLines="0" NumberOfStrips="0" \
NumberOfPolys="{mesh.n_faces}">
<PointData{tcoords}>
{point_data}</PointData>
<CellData>
{cell_data}</CellData>
<Points>
{_array("Points", mesh.vertices)}</Points>
<Polys>
{_array("connectivity", mesh.faces.reshape(-1))}{_array("offsets", offsets)}</Polys>
</Piece>
</PolyData>
</VTKFile>
""".encode(),
    )


def _array(name: str, values: NDArray[Any]) -> str:
    kind = {"u1": "UInt8", "i8": "Int64", "f8": "Float64"}[values.dtype.str[1:]]
    raw = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()
    text = base64.b64encode(np.uint64(len(raw)).tobytes() + raw).decode()
    width = values.shape[1] if values.ndim > 1 else 1
    start = f'<DataArray type="{kind}" Name="{name}" NumberOfComponents="{width}" format="binary">'
    return f"{start}{text}</DataArray>\n"
