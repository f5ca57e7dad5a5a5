"""Mesh files: one ``load_mesh`` that looks at the content, one ``save_mesh`` that looks at the name.

Vertex and face order are kept; colours and texture are carried where the format has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from breastmorph.foundation.errors import AnyPath, FileProblem, MeshProblem, as_path, require
from breastmorph.foundation.files import in_utf8, problems_of, read_bytes
from breastmorph.mesh.files import gltf, plain, ply, vtk
from breastmorph.mesh.triangle_mesh import TriangleMesh

__all__ = ["READABLE", "WRITABLE", "load_mesh", "load_mesh_or_points", "needed_beside", "save_mesh"]

_READERS: dict[str, Callable[[bytes, Path], TriangleMesh]] = {
    "PLY": ply.read,
    "OBJ": plain.read_obj,
    "STL": plain.read_stl,
    "OFF": plain.read_off,
    "VTK": vtk.read_legacy,
    "VTP": vtk.read_xml,
    "GLB": gltf.read,
    "GLTF": gltf.read_text,
}
_WRITERS: dict[str, Callable[[TriangleMesh, Path], None]] = {
    ".ply": ply.write,
    ".obj": plain.write_obj,
    ".stl": plain.write_stl,
    ".vtp": vtk.write_xml,
    ".glb": gltf.write,
}
READABLE = tuple(f".{kind.lower()}" for kind in _READERS)
WRITABLE = tuple(_WRITERS)

_SUPPORTED = "Meshes are read from PLY, OBJ, STL, OFF, VTK/VTP (PolyData) and glTF (.glb, .gltf) files"
_FOREIGN = {
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive (or 3MF)",
    b"\x89HDF": "an HDF5 file",
    b"Kaydara FBX": "an FBX file",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"%PDF": "a PDF",
    b"NRRD": "an NRRD volume",
    b"{": "a JSON text, but not glTF's",
    b"<": "an XML text, but not VTK's",
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

    Raises
    ------
    FileProblem
        The file is missing, a folder, empty, cut off, damaged or of another kind.
    MeshProblem
        The file has no faces, or a face names a vertex that does not exist.
    """
    mesh = load_mesh_or_points(path)
    if mesh.n_faces == 0:
        raise MeshProblem(
            f"the file has {mesh.n_vertices:,} points but no faces (a point cloud)",
            "Export a surface with triangles",
            Path(path),
            code="no-faces",
        )
    return mesh


def load_mesh_or_points(path: AnyPath) -> TriangleMesh:
    """Read a mesh file that may hold a mere point cloud: a mesh without faces."""
    path = as_path(path)
    data = read_bytes(path)
    with problems_of(path, "text"):
        data = data if plain.is_whole_stl(data) else in_utf8(data)
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
    """
    path = as_path(path)
    mesh = require(mesh, TriangleMesh, "what shall be saved", "Give a mesh, as the .mesh of a scan or result")
    suffix = path.suffix.lower()
    if suffix not in _WRITERS:
        raise FileProblem(
            f"meshes are not written to {suffix or 'names without extension'}",
            f"Choose one of {', '.join(WRITABLE)}",
            path,
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
    if plain.is_whole_stl(data):
        return "STL"
    if plain.OFF_SIGNATURE.match(data):
        return "OFF"
    if re.match(rb"\s*solid\b", data):
        return "STL"
    if gltf.looks_like_text(data, path):
        return "GLTF"
    foreign = next((name for start, name in _FOREIGN.items() if data[:64].lstrip().startswith(start)), None)
    if foreign:
        raise FileProblem(f"this is {foreign}, not a mesh file that can be read", _SUPPORTED, path)
    is_text = b"\0" not in data[:4096]
    if is_text and plain.LOOKS_LIKE_OBJ.search(data):  # OBJ has no signature
        return "OBJ"
    suffix = path.suffix.lower()
    if suffix == ".stl" and not is_text:
        return "STL"  # a binary one that is cut off
    if suffix in READABLE:
        raise FileProblem(
            f"the content does not begin as that of a {suffix[1:].upper()} file does",
            f"The file is damaged, cut off or misnamed. {_SUPPORTED}",
            path,
        )
    raise FileProblem("the format of this file is not known", _SUPPORTED, path)
