"""Exact geodesic (tape-measure) distances between points of a surface."""

from __future__ import annotations

import numpy as np

from breastmorph.errors import MeshProblem
from breastmorph.mesh.remeshing.cut import insert_points
from breastmorph.mesh.repair import without_pinches
from breastmorph.mesh.triangle_mesh import Bools, Floats, TriangleMesh


class Geodesics:
    """Geodesics between chosen points of one mesh: prepared once, asked for many pairs.

    The points become vertices of a refined copy of the mesh, so that distances do not start at the nearest
    vertex (1.5 mm off on a typical scan).

    Parameters
    ----------
    mesh : TriangleMesh
        Of manifold edges, consistently oriented.
    points : (k, 3) float
        Projected to the surface.
    """

    def __init__(self, mesh: TriangleMesh, points: Floats) -> None:
        import potpourri3d

        refined, self._ids = insert_points(without_pinches(mesh)[0], points, project=True)
        try:
            self._solver = potpourri3d.EdgeFlipGeodesicSolver(
                np.array(refined.vertices), np.array(refined.faces)
            )
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


def near_lines(mesh: TriangleMesh, starts: Floats, ends: Floats, limits: Floats) -> TriangleMesh:
    """The part of a mesh to look for the shortest lines between pairs of points in; all of it where none is near.

    No line of length l between a and b leaves the ellipsoid |x - a| + |x - b| <= l.

    Parameters
    ----------
    mesh : TriangleMesh
    starts, ends : (k, 3) float
    limits : (k,) float
        How long the lines may be.
    """
    inside = np.zeros(mesh.n_vertices, bool)
    for *both, limit in zip(starts, ends, limits, strict=True):
        way = sum(np.sqrt(((mesh.vertices - point) ** 2) @ np.ones(3)) for point in both)
        inside |= way <= limit
    faces: Bools = np.any(inside[mesh.faces], axis=1)
    return mesh.kept(faces) if faces.any() else mesh
