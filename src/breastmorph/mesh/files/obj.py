"""Wavefront OBJ, with its material file and texture.

Not read with trimesh: where texture coordinates have a seam it doubles and reorders the vertices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.files import (
    damaged,
    floats,
    in_utf8,
    integers,
    picture_beside,
    read_beside,
    space_in,
    write_file,
)
from breastmorph.mesh.files.corners import rgba, triangulated
from breastmorph.mesh.topology import joined
from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh

SIGNATURE = re.compile(rb"(?i)(?:^|[\r\n])[ \t]*v[ \t]+(?:[-+.\d]|nan|inf)")
_LARGEST_MATERIAL_FILE = 4 * 1024**2
_MOST_LIBRARIES = 16  # each is a file to read, and a line is enough to name one
_NONE = -1  # a corner without texture coordinates


@dataclass
class _Statements:
    """Lines of a file by what they say; of faces also how many vertices and texture coordinates stand before them."""

    vertices: list[bytes] = field(default_factory=list)
    uv: list[bytes] = field(default_factory=list)
    faces: list[tuple[list[bytes], int, int]] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    materials: list[str] = field(default_factory=list)  # those that faces use


def read(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of an OBJ file; ``path`` is where materials and pictures are looked for."""
    found = _statements(data)
    table = _table(found.vertices, "OBJ vertex")
    if table.shape[1] < 3:
        raise damaged("a vertex has fewer than three coordinates")
    # x y z w has 4: the weight says nothing here
    colors = _colors(table[:, 3:6]) if table.shape[1] in (6, 7) else None

    runs = [_triangles(*run, table[:, :3]) for run in found.faces]
    faces = np.concatenate([run[..., 0] for run in runs]) if runs else np.zeros((0, 3), np.int64)
    corner_uv = np.concatenate([run[..., 1] for run in runs]) if runs else faces
    texture = None
    if found.uv and np.any(corner_uv != _NONE):
        if corner_uv.max() >= len(found.uv) or corner_uv.min() < _NONE:
            raise damaged(
                "a face names texture coordinate {corner_uv:,} of {n_uv:,}",
                corner_uv=corner_uv.max() + 1,
                n_uv=len(found.uv),
            )
        uv = np.vstack([_uv(found.uv), [[0.0, 0.0]]])
        texture = Texture(uv[corner_uv], _picture(found, path))
    comments = b"\n".join(re.findall(rb"#[^\r\n]*", data[:4096])).decode("latin-1")
    return TriangleMesh(table[:, :3], faces, colors, texture, space_in(comments))


def _statements(data: bytes) -> _Statements:
    found = _Statements()
    material = ""
    text = data.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ")
    for keyword, lines in groupby(text.splitlines(), lambda line: (line.split(None, 1) or [b""])[0]):
        if keyword == b"v":
            found.vertices += lines
        elif keyword == b"vt":
            found.uv += lines
        elif keyword == b"f":
            found.faces.append((list(lines), len(found.vertices), len(found.uv)))
            if material and (not found.materials or found.materials[-1] != material):
                found.materials.append(material)
        elif keyword == b"usemtl":
            material = _argument(list(lines)[-1])
        elif keyword == b"mtllib":
            found.libraries += map(_argument, lines)
    return found


def _words(lines: list[bytes], width: int) -> list[bytes] | None:
    """The words behind the keyword of all lines, one after the other, if every line has ``width`` of them."""
    words = b" ".join(lines).split()
    keyword = words[0]
    if words[:: width + 1] != [keyword] * len(lines) or words.count(keyword) != len(lines):
        return None
    del words[:: width + 1]
    return words if len(words) == width * len(lines) else None


def _table(lines: list[bytes], what: str) -> Floats:
    """Numbers (n, w) of the lines, as many of each as the shortest has."""
    if not lines:
        return np.zeros((0, 3))
    width = len(lines[0].split()) - 1
    words = _words(lines, width)
    if words is None:
        rows = [line.split()[1:] for line in lines]
        width = min(map(len, rows))
        words = [word for row in rows for word in row[:width]]
    return floats(words, what).reshape(len(lines), width)


def _uv(lines: list[bytes]) -> Floats:
    """Texture coordinates (n, 2); the second may be left out."""
    words = _words(lines, 2)
    if words is None:
        rows = [line.split()[1:] for line in lines]
        if not all(rows):
            raise damaged("a texture coordinate has no number")
        words = [word for row in rows for word in (*row, b"0")[:2]]
    return floats(words, "OBJ texture coordinate").reshape(-1, 2)


def _triangles(lines: list[bytes], n_vertices: int, n_uv: int, vertices: Floats) -> Ints:
    """Triangles (m, 3, 2) of face lines: vertex and texture coordinate of every corner."""
    words = _words(lines, 3)
    if words is not None:
        pairs = _counted_from_one(words)
        if pairs is not None:
            return pairs.reshape(-1, 3, 2)
    corners = [[word for word in line.split()[1:] if not word.startswith(b"#")] for line in lines]
    counts = np.array([len(face) for face in corners])
    if counts.min() < 3:
        raise damaged("a face has {counts} corners", counts=counts.min())
    known: dict[bytes, tuple[int, int]] = {}  # a corner stands in about six faces
    for word in (word for face in corners for word in face):
        if word not in known:
            vertex, uv = (*word.split(b"/", 2), b"")[:2]
            known[word] = (_index(vertex, n_vertices), _index(uv, n_uv) if uv else _NONE)
    pairs = np.array([known[word] for face in corners for word in face], np.int64)
    return pairs[triangulated(counts, pairs[:, 0], vertices)]


def _counted_from_one(words: list[bytes]) -> Ints | None:
    """Corners (k, 2) that are all written alike and from 1, as in most files; None where they are not."""
    text = b" ".join(words)
    slashes = words[0].count(b"/")
    if text.translate(None, b"0123456789") != b" ".join([b"/" * slashes] * len(words)):
        return None
    numbers = text.replace(b"/", b" ").split()
    without_uv = slashes == 0 or text.count(b"//") == len(words)  # v, or v//normal
    columns = slashes + 1 - (slashes > 0 and without_uv)
    if slashes > 2 or len(numbers) != columns * len(words):
        return None
    table = integers(numbers, "OBJ face").reshape(len(words), columns) - 1
    if table.min() < 0:
        return None
    return np.stack([table[:, 0], np.full(len(words), _NONE) if without_uv else table[:, 1]], axis=1)


def _index(token: bytes, count: int) -> int:
    # From 1, or backwards from the last one read so far.
    number = int(token) if re.fullmatch(rb"-?\d{1,15}", token) else 0
    if number == 0 or number < -count:
        raise damaged("a face names {token!r}, which is no vertex", token=token[:20].decode("latin-1"))
    return number - 1 if number > 0 else count + number


def _argument(line: bytes) -> str:
    parts = line.split(None, 1)
    return parts[1].decode("utf-8", "replace").strip() if len(parts) > 1 else ""


def _colors(channels: Floats) -> np.ndarray:
    # Most programs write fractions; some write bytes.
    with np.errstate(invalid="ignore"):
        return rgba(np.nan_to_num(channels).astype(np.int64) if np.any(channels > 1.0) else channels)


def _picture(found: _Statements, path: Path) -> bytes:
    maps: dict[str, str] = {}
    names = dict.fromkeys(name for library in found.libraries for name in (library, *library.split()))
    for name in islice(names, _MOST_LIBRARIES):
        maps.update(_maps(in_utf8(read_beside(path, name, _LARGEST_MATERIAL_FILE))))
    used = found.materials or list(maps)
    pictures = {maps[material] for material in used if material in maps}
    # With several pictures one could not say which face shows which: coordinates alone are kept.
    return picture_beside(path, pictures.pop()) if len(pictures) == 1 else b""


def _maps(library: bytes) -> dict[str, str]:
    maps: dict[str, str] = {}
    material = ""
    for line in library.splitlines():
        keyword = line.split(None, 1)[:1]
        if keyword == [b"newmtl"]:
            material = _argument(line)
        elif keyword and keyword[0].lower() == b"map_kd":
            name = _argument(line)
            maps[material] = name.split()[-1] if name.startswith("-") else name  # options come first
    return maps


def write(mesh: TriangleMesh, path: Path) -> None:
    """Write OBJ; a texture adds a material file and the picture beside it, under the same stem."""
    lines = ["# BreastMorph" + (f" SPACE={mesh.space}" if mesh.space else "")]
    stem = re.sub(r"\s+", "_", path.stem)  # readers disagree about spaces in these names
    if mesh.texture is not None and mesh.texture.image:
        picture, library = f"{stem}{mesh.texture.suffix}", f"{stem}.mtl"
        write_file(path.with_name(picture), mesh.texture.image)
        material = f"newmtl skin\nKa 1 1 1\nKd 1 1 1\nKs 0 0 0\nillum 1\nmap_Kd {picture}\n"
        write_file(path.with_name(library), material.encode())
        lines.append(f"mtllib {library}")
    if mesh.colors is None:
        lines += [f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist()]
    else:
        # Rounded up: MeshLab cuts 253.9999 of 255 to 253.
        levels = (np.ceil(mesh.colors[:, :3] / 255.0 * 1e6) / 1e6).tolist()
        lines += [
            f"v {x!r} {y!r} {z!r} {r:.6f} {g:.6f} {b:.6f}"
            for (x, y, z), (r, g, b) in zip(mesh.vertices.tolist(), levels, strict=True)
        ]
    corners = mesh.faces + 1
    if mesh.texture is None:
        lines += [f"f {a} {b} {c}" for a, b, c in corners.tolist()]
    else:
        uv = mesh.texture.uv.reshape(-1, 2)
        kept, uv_id = joined(uv)
        lines += [f"vt {u!r} {v!r}" for u, v in uv[kept].tolist()]
        if mesh.texture.image:
            lines.append("usemtl skin")
        lines += [
            f"f {a}/{s} {b}/{t} {c}/{u}"
            for (a, b, c), (s, t, u) in zip(
                corners.tolist(), (uv_id.reshape(-1, 3) + 1).tolist(), strict=True
            )
        ]
    write_file(path, ("\n".join(lines) + "\n").encode())
