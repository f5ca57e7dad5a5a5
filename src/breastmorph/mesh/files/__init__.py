"""Mesh files: one ``load_mesh`` that looks at the content, one ``save_mesh`` that looks at the name.

Vertex and face order are kept; colours and texture are carried where the format has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from breastmorph.foundation.checks import AnyPath, check_path, check_type
from breastmorph.foundation.errors import FileProblem, MeshProblem
from breastmorph.foundation.files import in_utf8, problems_of, read_bytes
from breastmorph.foundation.language import N_
from breastmorph.foundation.messages import Message
from breastmorph.mesh.files import gltf, obj, off, ply, stl, vtk
from breastmorph.mesh.triangle_mesh import TriangleMesh

__all__ = ["READABLE", "WRITABLE", "load_mesh", "load_mesh_or_points", "needed_beside", "save_mesh"]

_READERS: dict[str, Callable[[bytes, Path], TriangleMesh]] = {
    "PLY": ply.read,
    "OBJ": obj.read,
    "STL": stl.read,
    "OFF": off.read,
    "VTK": vtk.read_legacy,
    "VTP": vtk.read_xml,
    "GLB": gltf.read,
    "GLTF": gltf.read_text,
}
_WRITERS: dict[str, Callable[[TriangleMesh, Path], None]] = {
    ".ply": ply.write,
    ".obj": obj.write,
    ".stl": stl.write,
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
        data = data if stl.is_whole(data) else in_utf8(data)
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
    if stl.is_whole(data):
        return "STL"
    if off.SIGNATURE.match(data):
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
    if is_text and obj.SIGNATURE.search(data):  # OBJ has no signature
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
