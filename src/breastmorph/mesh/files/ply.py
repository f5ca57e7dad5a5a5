"""PLY: ascii and binary, polygons, colours, texture coordinates by vertex or by face corner.

Not read with trimesh: it doubles and reorders vertices at texture seams, and writes coordinates as 32-bit
floats, so that a registration would not come back as it was saved.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import (
    damaged,
    floats,
    integers,
    picture_beside,
    printable,
    space_in,
    truncated,
    write_file,
)
from breastmorph.mesh.files.corners import rgba, triangulated
from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh, uv_by_vertex

_TYPES = {
    "char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "i2", "int16": "i2",
    "ushort": "u2", "uint16": "u2", "int": "i4", "int32": "i4", "uint": "u4", "uint32": "u4",
    "int64": "i8", "uint64": "u8", "float": "f4", "float32": "f4", "double": "f8", "float64": "f8",
}  # fmt: skip
_STRUCT = dict(zip(("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"), "bBhHiIqQfd", strict=True))
_LONGEST_HEADER = 1024**2
_MOST_PROPERTIES = 1000  # of an element; scans have some ten
_UNSEEN = 1e-6  # of the mesh's extent: below a micrometre on a torso
_COLORS = (
    ("red", "green", "blue", "alpha"),
    ("r", "g", "b", "a"),
    ("diffuse_red", "diffuse_green", "diffuse_blue"),
)
_VERTEX_UV = (("s", "t"), ("u", "v"), ("texture_u", "texture_v"))
_CORNERS = ("vertex_indices", "vertex_index")


@dataclass(frozen=True)
class _Property:
    name: str
    type: str
    count_type: str = ""  # not empty: a list


@dataclass
class _Element:
    name: str
    count: int
    properties: list[_Property] = field(default_factory=list)

    @property
    def least_size(self) -> int:
        """Bytes (binary) of a row whose lists are all empty; no row is shorter."""
        return sum(np.dtype(item.count_type or item.type).itemsize for item in self.properties)


@dataclass(frozen=True)
class _Column:
    """The values of one property; ``counts`` only for a list, whose rows lie one after the other.

    ``values`` of lists that are all equally long may still be a view (n, k) into the file.
    """

    values: NDArray[Any]
    counts: NDArray[Any] | None = None

    @property
    def flat(self) -> NDArray[Any]:
        return self.values.reshape(-1)


def read(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of a PLY file; ``path`` is where its texture is looked for."""
    layout, elements, comments, start = _header(data)
    tables = (
        _text_tables(elements, data[start:])
        if layout == "ascii"
        else _binary_tables(elements, data, start, layout)
    )
    if "vertex" not in tables or not {"x", "y", "z"} <= tables["vertex"].keys():
        raise damaged("there is no element 'vertex' with x, y and z")
    if "tristrips" in tables and "face" not in tables:
        raise FileProblem("the PLY file stores triangle strips", "Export it with plain triangles")
    vertex = tables["vertex"]
    vertices = np.empty((len(vertex["x"].flat), 3))
    for column, axis in zip(vertices.T, "xyz", strict=True):
        column[:] = vertex[axis].flat

    face = tables.get("face", {})
    corners = next((face[name] for name in _CORNERS if name in face), None)
    if corners is None or corners.counts is None:
        faces, order = np.empty((0, 3), np.int64), None
    elif corners.values.ndim == 2 and corners.values.shape[1] == 3:
        faces, order = corners.values.astype(np.int64), None
    else:
        order = triangulated(corners.counts, corners.flat, vertices)
        faces = corners.flat.astype(np.int64)[order]

    colors = None
    for names in _COLORS:
        channels = [vertex[name].flat for name in names if name in vertex]
        if len(channels) >= 3:
            colors = rgba(np.stack(channels, axis=1))
            break
    uv = _texture_coordinates(vertex, face, corners, order, faces)
    texture = None if uv is None else Texture(uv, _picture(comments, path))
    return TriangleMesh(vertices, faces, colors, texture, space_in("\n".join(comments)))


def _header(data: bytes) -> tuple[str, list[_Element], list[str], int]:
    end = re.search(rb"(?:^|[\r\n])[ \t]*end_header[ \t]*(\r\n|\n|\r)", data[:_LONGEST_HEADER])
    if end is None:
        raise truncated("the PLY header has no 'end_header'")
    layout, elements, comments = "", [], []
    for line in data[: end.start()].decode("latin-1").splitlines()[1:]:
        words = line.split()
        match words:
            case ["format", ("ascii" | "binary_little_endian" | "binary_big_endian") as layout, _]:
                pass
            case ["element", name, count] if count.isdecimal() and len(count) < 20:
                elements.append(_Element(name, int(count)))
            case ["property", "list", count_type, item_type, name] if elements:
                elements[-1].properties.append(_Property(name, _type(item_type), _type(count_type)))
            case ["property", item_type, name] if elements:
                elements[-1].properties.append(_Property(name, _type(item_type)))
            case [("comment" | "obj_info"), *_]:
                comments.append(line.strip().split(None, 1)[-1])
            case []:
                pass
            case _:
                raise damaged("the PLY header has the line {line!r}", line=line[:60])
    if any(len(element.properties) > _MOST_PROPERTIES for element in elements):
        raise damaged(
            "an element of the PLY header has more than {most_properties:,} properties",
            most_properties=_MOST_PROPERTIES,
        )
    if not layout:
        raise damaged("the PLY header names no known 'format'")
    return layout, elements, comments, end.end()


def _type(name: str) -> str:
    if name not in _TYPES:
        raise damaged("the PLY header names the unknown type {name!r}", name=name[:40])
    return _TYPES[name]


def _short(element: _Element) -> FileProblem:
    return truncated(
        "the header announces {count:,} of '{name}', fewer are there",
        count=element.count,
        name=printable(element.name),
    )


def _binary_tables(
    elements: list[_Element], data: bytes, at: int, layout: str
) -> dict[str, dict[str, _Column]]:
    order = "<" if layout == "binary_little_endian" else ">"
    tables: dict[str, dict[str, _Column]] = {}
    for element in elements:
        # Before anything is allocated: a count that the file cannot hold is a lie or a truncation.
        if element.count * element.least_size > len(data) - at:
            raise _short(element)
        if not element.properties:  # a row of no bytes
            tables[element.name] = {}
            continue
        row = _row_type(element, data, at, order)
        if row is not None and element.count * row.itemsize <= len(data) - at:
            rows = np.frombuffer(data, row, element.count, at)
            uniform = all(
                np.all(rows[f"{item.name} count"] == (rows[0][item.name].size if element.count else 0))
                for item in element.properties
                if item.count_type
            )
            if uniform:
                at += element.count * row.itemsize
                tables[element.name] = {
                    item.name: _Column(
                        rows[item.name],
                        rows[f"{item.name} count"].astype(np.int64) if item.count_type else None,
                    )
                    for item in element.properties
                }
                continue
        tables[element.name], at = _uneven_rows(element, data, at, order)
    return tables


def _row_type(element: _Element, data: bytes, at: int, order: str) -> np.dtype | None:
    # The rows' layout if all lists are as long as in the first row: true of nearly every file.
    parts: list[tuple[Any, ...]] = []
    for item in element.properties:
        if item.count_type:
            count_type = np.dtype(order + item.count_type)
            place = at + np.dtype(parts).itemsize if parts else at
            if element.count == 0 or place + count_type.itemsize > len(data):
                length = 0
            else:
                length = int(np.frombuffer(data, count_type, 1, place)[0])
            if not 0 <= length <= len(data) - at:
                return None
            parts += [(f"{item.name} count", count_type), (item.name, order + item.type, (length,))]
        else:
            parts.append((item.name, order + item.type))
    return np.dtype(parts)


def _uneven_rows(element: _Element, data: bytes, at: int, order: str) -> tuple[dict[str, _Column], int]:
    """Rows with lists of different lengths, as triangles and quads together."""
    kinds = [np.dtype(order + item.type) for item in element.properties]
    length_of = [
        Struct(order + _STRUCT[item.count_type]) if item.count_type else None for item in element.properties
    ]
    steps = [(k, kind.itemsize, read) for k, (kind, read) in enumerate(zip(kinds, length_of, strict=True))]
    places, lengths = np.empty((2, len(steps), element.count), np.int64)
    for row in range(element.count):
        for k, size, read in steps:
            length = 1
            if read is not None:
                if at + read.size > len(data):
                    raise _short(element)
                length = int(read.unpack_from(data, at)[0])
                at += read.size
            if length < 0 or at + length * size > len(data):
                raise _short(element)
            places[k, row], lengths[k, row] = at, length
            at += length * size
    columns = {}
    for k, (item, kind) in enumerate(zip(element.properties, kinds, strict=True)):
        n_bytes = lengths[k] * kind.itemsize
        where = np.repeat(places[k] - np.cumsum(n_bytes) + n_bytes, n_bytes) + np.arange(n_bytes.sum())
        values = np.frombuffer(data, np.uint8)[where].view(kind)
        columns[item.name] = _Column(values, lengths[k] if item.count_type else None)
    return columns, at


def _text_tables(elements: list[_Element], body: bytes) -> dict[str, dict[str, _Column]]:
    tokens = body.split()
    tables, at = {}, 0
    for element in elements:
        if element.count * len(element.properties) > len(tokens) - at:
            raise _short(element)
        values: dict[str, list[bytes]] = {item.name: [] for item in element.properties}
        counts: dict[str, list[int]] = {item.name: [] for item in element.properties}
        width, of = len(element.properties), f"of '{printable(element.name)}'"
        if any(item.count_type for item in element.properties):
            for _ in range(element.count):
                for item in element.properties:
                    length = 1
                    if item.count_type:
                        if at >= len(tokens):
                            raise _short(element)
                        length = int(integers(tokens[at : at + 1], f"length of a list {of}")[0])
                        counts[item.name].append(length)
                        at += 1
                    if length < 0 or at + length > len(tokens):
                        raise _short(element)
                    values[item.name] += tokens[at : at + length]
                    at += length
        else:
            end = at + element.count * width
            for column, item in enumerate(element.properties):
                values[item.name] = tokens[at + column : end : width]
            at = end
        tables[element.name] = {
            item.name: _Column(
                _numbers(values[item.name], item.type, f"'{printable(item.name)}' {of}"),
                np.array(counts[item.name], np.int64) if item.count_type else None,
            )
            for item in element.properties
        }
    return tables


def _numbers(tokens: list[bytes], kind: str, what: str) -> NDArray[Any]:
    if kind[0] == "f":
        return floats(tokens, what)  # as 64 bits whatever is declared: text has no rounding to undo
    numbers = integers(tokens, what)
    return numbers.astype(kind) if kind in ("u1", "u2") else numbers


def _texture_coordinates(
    vertex: dict[str, _Column],
    face: dict[str, _Column],
    corners: _Column | None,
    order: NDArray[Any] | None,
    faces: NDArray[Any],
) -> Floats | None:
    by_corner = face.get("texcoord")
    if len(faces) and corners is not None and corners.counts is not None and by_corner is not None:
        if by_corner.counts is None or not np.array_equal(by_corner.counts, 2 * corners.counts):
            raise damaged("a face does not have two texture coordinates per corner")
        uv = by_corner.flat.astype(np.float64).reshape(-1, 2)
        return uv.reshape(-1, 3, 2) if order is None else uv[order]
    for u, v in _VERTEX_UV:
        if u in vertex and v in vertex and len(faces):
            by_vertex = np.stack([vertex[u].flat, vertex[v].flat], axis=1).astype(np.float64)
            if faces.min() < 0 or faces.max() >= len(by_vertex):
                return None  # the mesh itself will refuse these faces with its own words
            return by_vertex[faces]
    return None


def _picture(comments: list[str], path: Path) -> bytes:
    names = {line.split(None, 1)[1] for line in comments if re.match(r"(?i)texturefile\s+\S", line)}
    # With several pictures one could not say which face shows which: coordinates alone are kept.
    if len(names) != 1:
        return b""
    name = names.pop()
    with suppress(UnicodeDecodeError):  # the header was read byte by byte; names are mostly in UTF-8
        name = name.encode("latin-1").decode("utf-8")
    return picture_beside(path, name)


def write(mesh: TriangleMesh, path: Path) -> None:
    """Write binary little-endian PLY, and the texture's picture beside it."""
    picture = None
    if mesh.texture and mesh.texture.image:
        picture = path.with_suffix(mesh.texture.suffix)
        write_file(picture, mesh.texture.image)
    write_file(path, encoded(mesh, picture.name if picture else ""))


def encoded(mesh: TriangleMesh, picture: str = "") -> bytes:
    """The bytes of a binary PLY file that names a texture's picture beside it.

    Texture coordinates are in 32-bit floats: MeshLab ignores others.
    """
    lines = ["ply", "format binary_little_endian 1.0"]
    if mesh.space:
        lines.append(f"comment SPACE={mesh.space}")
    if picture:
        lines.append(f"comment TextureFile {picture}")

    kind = _coordinates(mesh.vertices)
    vertex: list[tuple[str, str, NDArray[Any]]] = [(kind, "xyz", mesh.vertices)]
    uv = uv_by_vertex(mesh)
    if uv is not None:
        vertex.append(("float", "st", uv))
    if mesh.colors is not None:
        vertex.append(("uchar", "rgba", mesh.colors))
    lines.append(f"element vertex {mesh.n_vertices}")
    for kind, names, _ in vertex:
        lines += [f"property {kind} {name}" for name in (_COLORS[0] if names == "rgba" else names)]
    rows = np.empty(
        mesh.n_vertices, [(names, "<" + _TYPES[kind], values.shape[1]) for kind, names, values in vertex]
    )
    for _, names, values in vertex:
        rows[names] = values

    lines += [f"element face {mesh.n_faces}", "property list uchar int vertex_indices"]
    parts: list[tuple[Any, ...]] = [("n", "u1"), ("corners", "<i4", 3)]
    if mesh.texture is not None and uv is None:
        lines.append("property list uchar float texcoord")
        parts += [("n uv", "u1"), ("uv", "<f4", 6)]
    faces = np.empty(mesh.n_faces, parts)
    faces["n"], faces["corners"] = 3, mesh.faces
    if mesh.texture is not None and uv is None:
        faces["n uv"], faces["uv"] = 6, mesh.texture.uv.reshape(-1, 6)
    header = "\n".join([*lines, "end_header", ""]).encode()
    return b"".join([header, rows.view(np.uint8).data, faces.view(np.uint8).data])


def _coordinates(vertices: Floats) -> str:
    """32-bit floats: Scalismo opens no others. 64 where rounding would be seen, far from the origin."""
    if len(vertices) == 0:
        return "float"
    with np.errstate(over="ignore", invalid="ignore"):  # NaN compares as False
        off = vertices.astype(np.float32) - vertices
        rounding = max(off.max(), -off.min())
        seen = _UNSEEN * max(np.ptp(along) for along in vertices.T)
    return "float" if np.isfinite(rounding) and rounding <= seen else "double"
