"""Exact geodesic (tape-measure) distances between points of a surface."""

from __future__ import annotations

import numpy as np

from breastmorph.errors import MeshProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh

_SNAP = 2e-3  # weights this close to an edge or corner are moved: < 0.01 mm on a 3.5 mm triangle


class Geodesics:
    """Geodesics between chosen points of one mesh: prepared once, asked for many pairs.

    The points become vertices of a refined copy of the mesh, so that distances do not start at the nearest
    vertex (1.5 mm off on a typical scan).

    Parameters
    ----------
    mesh : TriangleMesh
        Manifold and consistently oriented.
    points : (k, 3) float
        Projected to the surface.
    """

    def __init__(self, mesh: TriangleMesh, points: Floats) -> None:
        import potpourri3d

        vertices, faces, self._ids = with_points(mesh, points)
        try:
            self._solver = potpourri3d.EdgeFlipGeodesicSolver(vertices, faces)
        except RuntimeError as error:
            raise MeshProblem(
                f"geodesics need a manifold surface ({error})",
                "Run `breastmorph check` to see and repair the mesh",
            ) from error

    def path(self, start: int, end: int) -> Floats:
        """Shortest line along the surface from point ``start`` to point ``end``, (p, 3)."""
        a, b = int(self._ids[start]), int(self._ids[end])
        try:
            return np.asarray(self._solver.find_geodesic_path(a, b), dtype=np.float64)
        except RuntimeError as error:
            raise MeshProblem(
                "two points lie on pieces of the surface that are not joined",
                "Run `breastmorph check` to see the pieces, and keep the one with the landmarks",
            ) from error

    def distance(self, start: int, end: int) -> float:
        """Length of that line."""
        if self._ids[start] == self._ids[end]:
            return 0.0
        return float(np.linalg.norm(np.diff(self.path(start, end), axis=0), axis=1).sum())


def with_points(mesh: TriangleMesh, points: Floats) -> tuple[Floats, Ints, Ints]:
    """Refine a mesh so that given surface points are vertices.

    Returns
    -------
    vertices : (n + new, 3) float
    faces : (m', 3) int
    ids : (k,) int
        Vertex of every point.
    """
    found = Surface(mesh).closest(points)
    vertices = list(mesh.vertices)
    faces = mesh.faces.tolist()
    children: dict[int, list[int]] = {}  # faces that were split, into which
    ids = []
    for point, home in zip(found.points, found.faces.tolist(), strict=True):
        weights, home = _leaf(point, home, vertices, faces, children)
        if weights.max() > 1.0 - 2.0 * _SNAP:
            ids.append(faces[home][int(weights.argmax())])
            continue
        weights = np.maximum(weights, _SNAP)
        a, b, c = faces[home]
        new = len(vertices)
        vertices.append(weights / weights.sum() @ np.array([vertices[a], vertices[b], vertices[c]]))
        children[home] = [len(faces), len(faces) + 1, len(faces) + 2]
        faces += [[a, b, new], [b, c, new], [c, a, new]]
        ids.append(new)
    keep = np.ones(len(faces), bool)
    keep[list(children)] = False
    return np.array(vertices), np.array(faces, dtype=np.int64)[keep], np.array(ids, dtype=np.int64)


def _leaf(
    point: Floats, face: int, vertices: list[Floats], faces: list[list[int]], children: dict[int, list[int]]
) -> tuple[Floats, int]:
    """Barycentric weights of a point in the unsplit face that holds it, and that face."""
    while face in children:
        face = max(children[face], key=lambda child: _weights(point, faces[child], vertices).min())
    return np.clip(_weights(point, faces[face], vertices), 0.0, 1.0), face


def _weights(point: Floats, face: list[int], vertices: list[Floats]) -> Floats:
    a, b, c = (vertices[corner] for corner in face)
    solution, *_ = np.linalg.lstsq(np.column_stack([b - a, c - a]), point - a, rcond=None)
    return np.array([1.0 - solution.sum(), *solution])
