"""Mesh files: one ``load_mesh`` that looks at the content, one ``save_mesh`` that looks at the name.

Vertex and face order are kept; colours and texture are carried where the format has them. The plain formats are read
and written here: Wavefront OBJ with its material file and texture, STL, and the text form of OFF. Not with trimesh:
where texture coordinates of an OBJ have a seam it doubles and reorders the vertices; of an ascii STL that is cut off it
silently makes an empty scene, and it splits one of several solids into parts; it drops the colours of an OFF and takes
one whose last faces are missing for a whole one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.checks import AnyPath, check_path, check_type
from breastmorph.foundation.errors import FileProblem, MeshProblem
from breastmorph.foundation.files import (
    damaged,
    floats,
    in_utf8,
    integers,
    picture_beside,
    problems_of,
    read_beside,
    read_bytes,
    space_in,
    truncated,
    write_file,
)
from breastmorph.foundation.language import N_
from breastmorph.foundation.messages import Message
from breastmorph.mesh.files import gltf, ply, vtk
from breastmorph.mesh.files.corners import rgba, triangulated
from breastmorph.mesh.geometry import face_normals
from breastmorph.mesh.topology import joined
from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh

__all__ = ["READABLE", "WRITABLE", "load_mesh", "load_mesh_or_points", "needed_beside", "save_mesh"]

LOOKS_LIKE_OBJ = re.compile(rb"(?i)(?:^|[\r\n])[ \t]*v[ \t]+(?:[-+.\d]|nan|inf)")
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


def read_obj(data: bytes, path: Path) -> TriangleMesh:
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


def write_obj(mesh: TriangleMesh, path: Path) -> None:
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


_HEADER = 84
_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def is_whole_stl(data: bytes) -> bool:
    """Whether the length is exactly what the binary header announces (text never fits by chance)."""
    return len(data) > _HEADER and len(data) == _HEADER + _announced(data) * _RECORD.itemsize


def _announced(data: bytes) -> int:
    return int.from_bytes(data[80:84], "little")


def read_stl(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of an STL file."""
    # Many programs begin binary files with "solid" too, so the length decides first, then the text.
    corners: NDArray[np.floating]
    if not is_whole_stl(data) and re.match(rb"\s*solid\b", data) and b"\0" not in data[:1024]:
        header, corners = data[:256].splitlines()[0], _text_corners(data)
    else:
        header, corners = data[:80], _binary_corners(data)
    kept, new_id = joined(corners)
    return TriangleMesh(
        corners[kept].astype(np.float64), new_id.reshape(-1, 3), space=space_in(header.decode("latin-1"))
    )


def _binary_corners(data: bytes) -> NDArray[np.float32]:
    if len(data) < _HEADER:
        raise truncated(
            "a binary STL header has {header} bytes, the file has {n_data}", header=_HEADER, n_data=len(data)
        )
    count = _announced(data)
    there = (len(data) - _HEADER) // _RECORD.itemsize
    if there < count:
        raise truncated(
            "the STL header announces {count:,} triangles, {there:,} are there", count=count, there=there
        )
    return np.frombuffer(data, _RECORD, count, _HEADER)["corners"].reshape(-1, 3)


def _text_corners(data: bytes) -> Floats:
    text = data.replace(b"\r", b"\n").lower()
    if not re.search(rb"\n[ \t]*endsolid\b", text[text.rfind(b"endfacet") + 1 :]):
        raise truncated("the STL text has no closing 'endsolid'")
    corners = re.findall(rb"\n[ \t]*vertex[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)[ \t]*(?=\n)", text)
    facets = len(re.findall(rb"\n[ \t]*endfacet\b", text))
    if len(corners) != 3 * facets or facets != len(re.findall(rb"\n[ \t]*facet\b", text)):
        raise damaged("an STL facet has not exactly three corners of three numbers")
    return floats([number for corner in corners for number in corner], "STL corner").reshape(-1, 3)


def write_stl(mesh: TriangleMesh, path: Path) -> None:
    """Write binary STL. The format has 32-bit floats, no colours, no texture and no unused vertices."""
    records = np.zeros(mesh.n_faces, _RECORD)
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is written as it is
        records["corners"] = mesh.vertices.astype(np.float32)[mesh.faces]
        records["normal"] = face_normals(mesh.vertices, mesh.faces)
    header = f"BreastMorph. SPACE={mesh.space}" if mesh.space else "BreastMorph."
    count = np.uint32(mesh.n_faces).tobytes()
    write_file(path, b"".join([header.encode().ljust(80), count, records.view(np.uint8).data]))


OFF_SIGNATURE = re.compile(rb"\s*(?:#[^\n]*\n\s*)*((?:ST|C|N)*)(4?n?)OFF\b[ \t]*(BINARY)?")


def read_off(data: bytes, path: Path) -> TriangleMesh:
    """A mesh from the bytes of an OFF file."""
    signature = OFF_SIGNATURE.match(data)
    if signature is None:
        raise damaged("the OFF file does not begin with 'OFF'")
    prefix, *others = signature.groups()
    has_uv, has_colors, has_normals = (letter in prefix for letter in (b"ST", b"C", b"N"))
    if any(others):
        raise FileProblem(
            "this variant of OFF (binary or four-dimensional) is not read", "Save it as plain OFF"
        )
    comments = b"\n".join(re.findall(rb"#[^\n]*", data[:4096])).decode("latin-1")
    body = data[signature.end() :].replace(b"\r", b"\n").split(b"\n")
    rows = [row for row in (line.split(b"#", 1)[0].split() for line in body) if row]
    if not rows or len(rows[0]) < 2:
        raise truncated("the line with the numbers of vertices and faces is missing")
    n_vertices, n_faces = integers(rows[0][:2], "numbers of vertices and faces").tolist()
    if n_vertices < 0 or n_faces < 0:
        raise damaged("the number of vertices or faces is negative")
    if len(rows) - 1 < n_vertices + n_faces:
        raise truncated(
            "{n_vertices:,} vertices and faces are announced, {n_rows:,} are there",
            n_vertices=n_vertices + n_faces,
            n_rows=len(rows) - 1,
        )

    vertex_rows, face_rows = rows[1 : 1 + n_vertices], rows[1 + n_vertices : 1 + n_vertices + n_faces]
    width = len(vertex_rows[0]) if vertex_rows else 3
    expected = 3 + 3 * has_normals + 2 * has_uv
    channels = width - expected if has_colors else 0
    if (
        any(len(row) != width for row in vertex_rows)
        or width < expected
        or (has_colors and channels not in (3, 4))
    ):
        raise damaged("the vertex lines do not all have the numbers that the first line announces")
    table = floats([number for row in vertex_rows for number in row], "OFF vertex").reshape(-1, width)
    # The format says CN and means normals first; MeshLab says NC and means colours first.
    colors_at = 3 if prefix.startswith(b"NC") else 3 + 3 * has_normals
    colors = None
    if has_colors:
        levels = table[:, colors_at : colors_at + channels]
        # The format lets a writer choose: whole numbers to 255, or fractions with a decimal point.
        fractions = any(b"." in number for number in vertex_rows[0][colors_at : colors_at + channels])
        colors = rgba(levels if fractions else np.clip(np.nan_to_num(levels), 0, 255).astype(np.int64))

    counts = integers([row[0] for row in face_rows], "corners of a face")
    if any(count < 0 or len(row) <= count for row, count in zip(face_rows, counts.tolist(), strict=True)):
        raise damaged("a face has fewer corners than it announces")
    flat = [corner for row in face_rows for corner in row[1 : 1 + int(row[0])]]
    corners = integers(flat, "corner of a face")
    faces = corners[triangulated(counts, corners, table[:, :3])]
    mesh = TriangleMesh(table[:, :3], faces, colors, space=space_in(comments))
    if not has_uv or not len(faces):
        return mesh
    return replace(mesh, texture=Texture(table[:, -2:][faces]))


_READERS: dict[str, Callable[[bytes, Path], TriangleMesh]] = {
    "PLY": ply.read,
    "OBJ": read_obj,
    "STL": read_stl,
    "OFF": read_off,
    "VTK": vtk.read_legacy,
    "VTP": vtk.read_xml,
    "GLB": gltf.read,
    "GLTF": gltf.read_text,
}
_WRITERS: dict[str, Callable[[TriangleMesh, Path], None]] = {
    ".ply": ply.write,
    ".obj": write_obj,
    ".stl": write_stl,
    ".vtp": vtk.write_xml,
    ".glb": gltf.write,
}
READABLE = tuple(f".{kind.lower()}" for kind in _READERS)
WRITABLE = tuple(_WRITERS)

_SUPPORTED = N_("Meshes are read from PLY, OBJ, STL, OFF, VTK/VTP (PolyData) and glTF (.glb, .gltf) files")
_FOREIGN = {
    b"\x1f\x8b": N_("a gzip archive"),
    b"PK\x03\x04": N_("a zip archive (or 3MF)"),
    b"\x89HDF": N_("an HDF5 file"),
    b"Kaydara FBX": N_("an FBX file"),
    b"\x89PNG": N_("a picture"),
    b"\xff\xd8\xff": N_("a picture"),
    b"%PDF": N_("a PDF"),
    b"NRRD": N_("an NRRD volume"),
    b"{": N_("a JSON text, but not glTF's"),
    b"<": N_("an XML text, but not VTK's"),
}


def load_mesh(path: AnyPath) -> TriangleMesh:
    """Read a triangle mesh.

    The content decides the format; the extension only where the content has no signature. Coordinates are
    as in the file. Polygons become triangles. STL and glTF repeat vertices, so equal positions are
    joined, in the order of their first occurrence. Coordinates that are not finite are kept: the check finds
    them.

    Parameters
    ----------
    path : path
        PLY, OBJ, STL, OFF, VTK or VTP (PolyData), GLB or glTF.

    Returns
    -------
    TriangleMesh

    Raises
    ------
    FileProblem
        The file is missing, a folder, empty, cut off, damaged or of another kind.
    MeshProblem
        The file has no faces, or a face names a vertex that does not exist.

    Examples
    --------
    >>> mesh = bm.load_mesh("scans/s0.ply")
    >>> mesh.vertices.shape == (mesh.n_vertices, 3)
    True
    """
    mesh = load_mesh_or_points(path)
    if mesh.n_faces == 0:
        raise MeshProblem(
            "the file has {n_vertices:,} points but no faces (a point cloud)",
            "Export a surface with triangles",
            Path(path),
            code="no-faces",
            n_vertices=mesh.n_vertices,
        )
    return mesh


def load_mesh_or_points(path: AnyPath) -> TriangleMesh:
    """Read a mesh file that may hold a mere point cloud: a mesh without faces."""
    path = check_path(path)
    data = read_bytes(path)
    with problems_of(path, "text"):
        data = data if is_whole_stl(data) else in_utf8(data)
    kind = _kind(data, path)
    with problems_of(path, kind):
        return _READERS[kind](data, path)


def needed_beside(path: Path) -> tuple[Path, ...]:
    """Files without which a mesh file has no shape: those with the arrays of a .gltf file."""
    return gltf.needed_beside(path) if path.suffix.lower() == ".gltf" else ()


def save_mesh(mesh: TriangleMesh, path: AnyPath) -> None:
    """Write a mesh as PLY, OBJ, STL, VTP or GLB, by the extension of the name.

    Coordinates are written as they are: 64-bit in OBJ and VTP, and in PLY where 32 bits would round visibly;
    32-bit in STL and GLB, which have no others. Other programs take those of a GLB for metres. A texture's
    picture goes beside a PLY or OBJ and into a GLB. An existing file is replaced in one step.

    Parameters
    ----------
    mesh : TriangleMesh
    path : path
        ``.ply``, ``.obj``, ``.stl``, ``.vtp`` or ``.glb``.

    Examples
    --------
    >>> bm.save_mesh(scan.mesh, "upright.obj")
    >>> bm.load_mesh("upright.obj").n_faces == scan.mesh.n_faces
    True
    """
    path = check_path(path)
    mesh = check_type(
        mesh, TriangleMesh, "what shall be saved", "Give a mesh, as the .mesh of a scan or result"
    )
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise FileProblem(
            "meshes are not written to {suffix}",
            "Choose one of {writable}",
            path,
            suffix=suffix or Message("names without extension"),
            writable=", ".join(WRITABLE),
        )
    _WRITERS[suffix](mesh, path)


def _kind(data: bytes, path: Path) -> str:
    if re.match(rb"ply[ \t]*[\r\n]", data):
        return "PLY"
    if data.startswith(gltf.SIGNATURE):
        return "GLB"
    if vtk.LEGACY_SIGNATURE.match(data):
        return "VTK"
    if vtk.XML_SIGNATURE.match(data):
        return "VTP"
    if is_whole_stl(data):
        return "STL"
    if OFF_SIGNATURE.match(data):
        return "OFF"
    if re.match(rb"\s*solid\b", data):
        return "STL"
    if gltf.looks_like_text(data, path):
        return "GLTF"
    foreign = next((name for start, name in _FOREIGN.items() if data[:64].lstrip().startswith(start)), None)
    if foreign:
        raise FileProblem(
            "this is {foreign}, not a mesh file that can be read", _SUPPORTED, path, foreign=Message(foreign)
        )
    is_text = b"\0" not in data[:4096]
    if is_text and LOOKS_LIKE_OBJ.search(data):  # OBJ has no signature
        return "OBJ"
    suffix = path.suffix.lower()
    if suffix == ".stl" and not is_text:
        return "STL"  # a binary one that is cut off
    if suffix in READABLE:
        raise FileProblem(
            "the content does not begin as that of a {suffix} file does",
            "The file is damaged, cut off or misnamed. {supported}",
            path,
            suffix=suffix[1:].upper(),
            supported=_SUPPORTED,
        )
    raise FileProblem("the format of this file is not known", _SUPPORTED, path)
