"""Reading a scan for the page, in a worker process: the checked reader, a guessed pose, fewer triangles to show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, MeshProblem
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.files.corners import split_at_seams
from breastmorph.mesh.geometry import (
    Similarity,
    face_areas,
    face_normals,
    without_non_finite,
    without_unreferenced,
)
from breastmorph.mesh.topology import with_three_corners
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.anatomy import UNITS, USUAL_EXTENT, unit_of_extent
from breastmorph.scan.check import require_size

_OPEN = 0.1  # length of the mean normal from which on a surface has a front
_ROUNDS = 4  # of finding a grid that leaves few enough triangles


@dataclass(frozen=True, eq=False)
class ReadScan:
    """A scan as it was read, and as it is shown.

    Attributes
    ----------
    mesh : TriangleMesh
        All of it, upright as far as can be guessed, in mm: x to the patient's left, y up, z forward.
    to_file : Similarity
        From there to the coordinates of the file.
    vertices : (v, 3) float32
        What is shown, in the same coordinates.
    faces : (f, 3) uint32
    uv : (v, 2) float32, optional
    colors : (v, 3) uint8, optional
    image : bytes
        The texture's picture; empty without one.
    """

    mesh: TriangleMesh
    to_file: Similarity
    vertices: NDArray[np.float32]
    faces: NDArray[np.uint32]
    uv: NDArray[np.float32] | None = None
    colors: NDArray[np.uint8] | None = None
    image: bytes = b""


def reader() -> Callable[[tuple[Any, ...]], Any]:
    """Setup of a reading process; an item is a function, the path of a file from elsewhere, and its other arguments."""

    def read(item: tuple[Any, ...]) -> Any:
        function, path, *more = item
        try:
            return function(path, *more)
        except BreastMorphError as error:
            error.where = path.name  # the folder is the server's own business
            raise

    return read


def read_scan(path: Path, most_faces: int) -> ReadScan:
    """Read a mesh file; show it with at most about so many triangles."""
    mesh = load_mesh(path)
    require_size(mesh)
    return shown_scan(mesh, most_faces)


def shown_scan(mesh: TriangleMesh, most_faces: int, to_shown: Similarity | None = None) -> ReadScan:
    """A mesh as it is shown; ``to_shown`` brings it upright where that is known."""
    mesh = without_unreferenced(without_non_finite(mesh)[0])[0]
    if not mesh.n_faces:
        raise MeshProblem("no face of the file has finite corners", "Export the scan again", code="no-faces")
    upright = to_shown or guessed_pose(mesh)
    mesh = mesh.with_vertices(upright.apply(mesh.vertices))
    image = mesh.texture.image if mesh.texture is not None else b""
    full = mesh if image else replace(mesh, texture=None)
    shown = clustered(full, most_faces) if full.n_faces > most_faces else full
    vertices, faces, uv, colors = _drawn(shown)
    return ReadScan(
        TriangleMesh(mesh.vertices, mesh.faces), upright.inverse(), vertices, faces, uv, colors, image
    )


def guessed_pose(mesh: TriangleMesh) -> Similarity:
    """From the file to an upright torso in mm that faces forward, by what files usually are.

    The front of an open scan is where its normals point on average; up is the file's y axis, or z where y points
    forward. The unit is the one in which the scan has an adult's size.
    """
    low, high = np.quantile(mesh.vertices, (0.005, 0.995), axis=0)
    extent = float((high - low).max())
    unit = unit_of_extent(extent)
    scale = UNITS[unit] if unit is not None else USUAL_EXTENT / max(extent, 1e-300)
    areas = face_areas(mesh.vertices, mesh.faces)
    normal = areas @ face_normals(mesh.vertices, mesh.faces) / max(float(areas.sum()), 1e-300)
    forward = np.array([0.0, 0.0, 1.0])
    if np.linalg.norm(normal) > _OPEN:
        axis = int(np.abs(normal).argmax())
        forward = np.eye(3)[axis] * np.sign(normal[axis])
    up = np.array([0.0, 1.0, 0.0]) if abs(forward[1]) < 0.5 else np.array([0.0, 0.0, 1.0])
    rotation = np.stack([np.cross(up, forward), up, forward])
    return Similarity(rotation, -scale * rotation @ (0.5 * (low + high)), scale)


def clustered(mesh: TriangleMesh, most_faces: int) -> TriangleMesh:
    """The mesh with vertices of one cell of a grid joined, so that about so many triangles are left; for showing only.

    Corners keep their place in the texture.
    """
    area = float(face_areas(mesh.vertices, mesh.faces).sum())
    cell = np.sqrt(2.0 * area / most_faces)
    for _ in range(_ROUNDS):
        home = _cells(mesh.vertices, cell)
        faces = home[mesh.faces]
        kept = with_three_corners(faces)
        if kept.sum() <= most_faces:
            break
        cell *= max(1.1, float(np.sqrt(kept.sum() / most_faces)))
    texture = mesh.texture and replace(mesh.texture, uv=mesh.texture.uv[kept])
    return without_unreferenced(replace(mesh, faces=faces[kept], texture=texture))[0]


def _cells(vertices: Floats, cell: float) -> Ints:
    """For every vertex the first one in its cell of a grid, (n,)."""
    index = np.floor((vertices - vertices.min(axis=0)) / cell).astype(np.int64)
    sizes = index.max(axis=0) + 1
    flat = (index[:, 0] * sizes[1] + index[:, 1]) * sizes[2] + index[:, 2]
    _, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
    return first[inverse.ravel()]


def _drawn(
    mesh: TriangleMesh,
) -> tuple[NDArray[np.float32], NDArray[np.uint32], NDArray[np.float32] | None, NDArray[np.uint8] | None]:
    """Vertices, faces, uv and colours for the graphics card, which knows one uv per vertex."""
    colors = None if mesh.colors is None else mesh.colors[:, :3]
    if mesh.texture is None:
        return mesh.vertices.astype(np.float32), mesh.faces.astype(np.uint32), None, colors
    source, faces, uv = split_at_seams(mesh)
    return (
        mesh.vertices[source].astype(np.float32),
        faces.astype(np.uint32),
        uv.astype(np.float32),
        None if colors is None else colors[source],
    )
