"""VTK's XML PolyData (.vtp): text, base64 and appended data, plain or zlib-compressed.

Neither trimesh nor meshio reads PolyData from it.
"""

from __future__ import annotations

import base64
import re
import zlib
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Ints
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import (
    damaged,
    floats,
    integers,
    parse_xml,
    printable,
    space_in,
    truncated,
    write_file,
)
from breastmorph.mesh.files.corners import NO_CELLS, SEAM_ARRAY, PolyData, mesh_of, split_by_offsets
from breastmorph.mesh.triangle_mesh import TriangleMesh, uv_by_vertex

SIGNATURE = re.compile(rb"\s*<.{0,65536}?<VTKFile\b|\s*<VTKFile\b", re.DOTALL)
_TYPES = {
    f"{name}{8 * size}": f"{code}{size}"
    for name, code in (("Int", "i"), ("UInt", "u"))
    for size in (1, 2, 4, 8)
}
_TYPES |= {"Float32": "f4", "Float64": "f8", "String": "u1"}
_LARGEST_ARRAY = 512 * 1024**2  # bytes after decompression
# All arrays of a file together, after decompression: pieces may name the same data again and again.
_SMALL, _MOST_COMPRESSED = 16 * 1024**2, 50  # bytes that may always be read; times the file's size
_LONGEST_SPACE = 64  # bytes of the text that declares the axes
_LENGTHS = {"UInt32": "u4", "UInt64": "u8"}
_BEST_RATIO = 1100  # zlib cannot do better than about 1030 : 1; more is a lie about the size
_UV_NAMES = ("TCoords", "Texture Coordinates", "TextureCoordinates", "UV")


def read(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of a .vtp file."""
    return _Reader(data).mesh()


class _Reader:
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
                f"the VTK file holds {printable(kind) or 'an unknown dataset'}, not a surface (PolyData)",
                "Extract the surface and save it as PolyData (.vtp)",
            )
        order = ">" if self.root.get("byte_order") == "BigEndian" else "<"
        self.order = order
        lengths = self.root.get("header_type", "UInt32")
        if lengths not in _LENGTHS:
            raise damaged(f"its header_type {printable(lengths)!r} is not known")
        self.length = np.dtype(order + _LENGTHS[lengths])
        compressor = self.root.get("compressor", "")
        if compressor not in ("", "vtkZLibDataCompressor"):
            raise FileProblem(
                f"the compression {printable(compressor)} is not read", "Save the file with zlib or none"
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
        return mesh_of(pieces, space)

    def _piece(self, piece: Element) -> PolyData:
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
            if array.get("Name") == SEAM_ARRAY:
                seams[SEAM_ARRAY] = self.table(array, n_polys, 6)
        return PolyData(
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
            raise damaged(f"{name} is {text[:30]!r}")
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
            return NO_CELLS
        if not {"connectivity", "offsets"} <= arrays.keys():
            raise damaged(f"connectivity or offsets of {tag} are missing")
        offsets = self.table(arrays["offsets"], count, 1).ravel().astype(np.int64)
        return split_by_offsets(
            offsets, self.table(arrays["connectivity"], int(offsets[-1]), 1).ravel().astype(np.int64)
        )

    def table(self, array: Element, rows: int, width: int) -> NDArray[Any]:
        """The values of an array that must have this shape, (rows, width)."""
        values = self.array(array, rows * width)
        if len(values) < rows * width:
            raise truncated(f"{_name(array)} has {len(values):,} of {rows * width:,} numbers")
        return values[: rows * width].reshape(rows, width)

    def array(self, array: Element, expected: int) -> NDArray[Any]:
        """The values of an array, (k,); at most ``expected`` are wanted."""
        kind = _TYPES.get(array.get("type", ""))
        name = _name(array)
        if kind is None:
            raise damaged(f"{name} has the unknown type {printable(array.get('type', ''))!r}")
        dtype = np.dtype(self.order + kind)
        if not 0 <= expected * dtype.itemsize <= _LARGEST_ARRAY:
            raise damaged(f"{name} announces {expected:,} numbers")
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
                raise truncated(f"{name} lies behind the end of the file")
            source, is_base64 = self.appended[at:], self.appended_is_base64
        else:
            raise damaged(f"{name} has the unknown format {layout[:30]!r}")
        largest = min(expected * dtype.itemsize, self.left)
        raw = self._decode(_Stream(source, is_base64, name), largest, name)
        self.left -= len(raw)
        if len(raw) % dtype.itemsize:
            raise damaged(f"{name} ends within a number")
        return np.frombuffer(raw, dtype).astype(dtype.newbyteorder("="))

    def _decode(self, stream: _Stream, largest: int, name: str) -> bytes:
        size = self.length.itemsize
        if not self.compressed:
            length = int(np.frombuffer(stream.peek(size), self.length)[0])
            if length > largest:
                raise damaged(f"{name} announces {length:,} bytes where {largest:,} are expected")
            return stream.behind_header(size, length)
        blocks = int(np.frombuffer(stream.peek(size), self.length)[0])
        if blocks == 0:
            return b""
        if blocks > largest + 1:  # every block holds at least a byte
            raise damaged(f"{name} announces {blocks:,} blocks")
        header = np.frombuffer(stream.peek((3 + blocks) * size), self.length).astype(object)
        block_size, last_size, sizes = header[1], header[2], header[3:]
        lengths = [block_size] * blocks
        lengths[-1] = last_size or block_size
        packed = sum(sizes)
        if sum(lengths) > largest or sum(lengths) > _BEST_RATIO * packed:
            raise damaged(f"{name} announces {sum(lengths):,} bytes where {largest:,} are expected")
        body = stream.behind_header((3 + blocks) * size, packed)
        parts, at = [], 0
        for length, packed_size in zip(lengths, sizes, strict=True):
            # Never more than announced; a limit of 0 would mean none.
            part = zlib.decompressobj().decompress(body[at : at + packed_size], length or 1)
            if len(part) != length:
                raise damaged(f"a compressed block of {name} has the wrong size")
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


def write(mesh: TriangleMesh, path: Path) -> None:
    """Write .vtp in 64-bit floats. The format has no pictures: of a texture only the coordinates are kept."""
    point_data, cell_data, tcoords, field_data = "", "", "", ""
    if mesh.colors is not None:
        point_data += _array("RGBA", mesh.colors)
    uv = uv_by_vertex(mesh)
    if uv is not None:
        tcoords, point_data = ' TCoords="TCoords"', point_data + _array("TCoords", uv)
    elif mesh.texture is not None:
        cell_data = _array(SEAM_ARRAY, mesh.texture.uv.reshape(-1, 6))
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
