"""Wavefront OBJ with its material file and texture.

Not read with trimesh: where texture coordinates have a seam it doubles and reorders the vertices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from breastmorph.mesh.files.corners import fan, joined, rgba
from breastmorph.mesh.files.reading import damaged, floats, picture_beside, read_beside, space_in
from breastmorph.mesh.files.writing import write_file
from breastmorph.mesh.triangle_mesh import Floats, Texture, TriangleMesh

LOOKS_LIKE = re.compile(rb"(?i)(?:^|[\r\n])[ \t]*v[ \t]+(?:[-+.\d]|nan|inf)")
_LARGEST_MATERIAL_FILE = 4 * 1024**2
_MOST_LIBRARIES = 16  # each is a file to read, and a line is enough to name one
_NONE = -1  # a corner without texture coordinates


@dataclass
class _Statements:
    vertices: list[list[bytes]] = field(default_factory=list)
    uv: list[list[bytes]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    corners: list[int] = field(default_factory=list)
    corners_uv: list[int] = field(default_factory=list)
    libraries: list[str] = field(default_factory=list)
    materials: list[str] = field(default_factory=list)  # those that faces use


def read(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of an OBJ file; ``path`` is where materials and pictures are looked for."""
    found = _statements(data)
    width = min((len(row) for row in found.vertices), default=3)
    if width < 3:
        raise damaged("a vertex has fewer than three coordinates")
    table = floats([number for row in found.vertices for number in row[:width]], "OBJ vertex").reshape(
        -1, width
    )
    colors = (
        _colors(table[:, 3:6]) if width in (6, 7) else None
    )  # x y z w has 4: the weight says nothing here

    order = fan(np.array(found.counts, np.int64))
    faces = np.array(found.corners, np.int64)[order]
    corner_uv = np.array(found.corners_uv, np.int64)[order]
    texture = None
    if found.uv and np.any(corner_uv != _NONE):
        if corner_uv.max() >= len(found.uv) or corner_uv.min() < _NONE:
            raise damaged(f"a face names texture coordinate {corner_uv.max() + 1:,} of {len(found.uv):,}")
        if any(not row for row in found.uv):
            raise damaged("a texture coordinate has no number")
        numbers = [number for row in found.uv for number in (*row, b"0")[:2]]
        uv = np.vstack([floats(numbers, "OBJ texture coordinate").reshape(-1, 2), [[0.0, 0.0]]])
        texture = Texture(uv[corner_uv], _picture(found, path))
    comments = b"\n".join(re.findall(rb"#[^\r\n]*", data[:4096])).decode("latin-1")
    return TriangleMesh(table[:, :3], faces, colors, texture, space_in(comments))


def _statements(data: bytes) -> _Statements:
    found = _Statements()
    material = ""
    known: dict[bytes, tuple[int, int]] = {}  # a corner stands in about six faces
    for line in data.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").splitlines():
        words = line.split()
        if not words:
            continue
        keyword = words[0]
        if keyword == b"v":
            found.vertices.append(words[1:])
        elif keyword == b"vt":
            found.uv.append(words[1:])
        elif keyword == b"f":
            corners = [word for word in words[1:] if not word.startswith(b"#")]
            if len(corners) < 3:
                raise damaged(f"a face has {len(corners)} corners")
            found.counts.append(len(corners))
            for corner in corners:
                pair = known.get(corner)
                if pair is None:
                    vertex, uv = (*corner.split(b"/", 2), b"")[:2]
                    pair = (
                        _index(vertex, len(found.vertices)),
                        _index(uv, len(found.uv)) if uv else _NONE,
                    )
                    if b"-" not in corner:  # counted backwards, it means another vertex next time
                        known[corner] = pair
                found.corners.append(pair[0])
                found.corners_uv.append(pair[1])
            if material and (not found.materials or found.materials[-1] != material):
                found.materials.append(material)
        elif keyword == b"usemtl":
            material = _argument(line)
        elif keyword == b"mtllib":
            found.libraries.append(_argument(line))
    return found


def _index(token: bytes, count: int) -> int:
    # From 1, or backwards from the last one read so far.
    number = int(token) if re.fullmatch(rb"-?\d{1,15}", token) else 0
    if number == 0 or number < -count:
        raise damaged(f"a face names {token[:20].decode('latin-1')!r}, which is no vertex")
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
        maps.update(_maps(read_beside(path, name, _LARGEST_MATERIAL_FILE)))
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
