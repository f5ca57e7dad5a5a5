"""Closest points: on a surface, prepared once and asked many times; on segments. Exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mesh.geometry import edge_lengths
from breastmorph.mesh.topology import edge_table
from breastmorph.mesh.triangle_mesh import TriangleMesh

_ON_EDGE = 1e-7  # a barycentric weight below this puts the point on the opposite edge


@dataclass(frozen=True, eq=False)
class SurfacePoints:
    """Points on a surface.

    Attributes
    ----------
    points : (k, 3) float
    distances : (k,) float
        From the query points.
    faces : (k,) int
    weights : (k, 3) float
        Barycentric weights of the face's corners.
    on_boundary : (k,) bool
        Whether the point lies on the surface's border.
    """

    points: Floats
    distances: Floats
    faces: Ints
    weights: Floats
    on_boundary: Bools


def closest_to_few(mesh: TriangleMesh, queries: Floats) -> tuple[Floats, Floats, Ints]:
    """Closest points of a mesh to a few points (k, 3), without preparing all of a dense mesh.

    Returns
    -------
    points : (k, 3) float
    distances : (k,) float
    faces : (k,) int
    """
    longest = edge_lengths(mesh.vertices, mesh.faces).max()
    near = np.zeros(mesh.n_vertices, bool)
    for query in queries:  # no corner of the closest face is further away than this
        away = np.linalg.norm(mesh.vertices - query, axis=1)
        near |= away <= 1.001 * (away.min() + longest)
    faces = np.flatnonzero(near[mesh.faces].all(axis=1))
    found = Surface(TriangleMesh(mesh.vertices, mesh.faces[faces])).closest(queries)
    return found.points, found.distances, faces[found.faces]


class Surface:
    """A mesh prepared for closest-point and ray queries."""

    def __init__(self, mesh: TriangleMesh) -> None:
        import igl

        self.mesh = mesh
        self._border_opposite, self._border_vertex = _border(mesh)  # before the tree takes its memory
        # igl takes writeable arrays only; these copies are never written to.
        self._vertices = np.array(mesh.vertices)
        self._faces = np.array(mesh.faces)
        self._tree = igl.AABB()
        self._tree.init(self._vertices, self._faces)

    def closest(self, queries: Floats) -> SurfacePoints:
        """Closest points of the surface to ``queries`` (k, 3)."""
        squared, faces, points = self._tree.squared_distance(
            self._vertices, self._faces, np.ascontiguousarray(queries, dtype=np.float64)
        )
        weights = self._barycentric(points, faces)
        outside = weights <= _ON_EDGE
        on_edge = (outside & self._border_opposite[faces]).any(axis=1)
        corner = weights.argmax(axis=1)
        at_corner = outside.sum(axis=1) == 2
        on_vertex = at_corner & self._border_vertex[self._faces[faces, corner]]
        return SurfacePoints(points, np.sqrt(np.maximum(squared, 0.0)), faces, weights, on_edge | on_vertex)

    def first_hit(self, origins: Floats, directions: Floats) -> tuple[Ints, Floats, Floats]:
        """First hit of rays: face (k,), -1 where none; distance along the ray (k,); barycentric (k, 3)."""
        faces, distance, uv = self._tree.intersect_ray_first(
            self._vertices,
            self._faces,
            np.ascontiguousarray(origins, dtype=np.float64),
            np.ascontiguousarray(directions, dtype=np.float64),
        )
        uv = np.where(faces[:, None] >= 0, uv, 0.0)  # not set where a ray misses
        weights = np.column_stack([1.0 - uv.sum(axis=1), uv])
        return faces, distance, weights

    def _barycentric(self, points: Floats, faces: Ints) -> Floats:
        a, b, c = (self._vertices[self._faces[faces, k]] for k in range(3))
        ab, ac, ap = b - a, c - a, points - a
        d00, d01, d11 = (ab * ab).sum(1), (ab * ac).sum(1), (ac * ac).sum(1)
        d20, d21 = (ap * ab).sum(1), (ap * ac).sum(1)
        area = d00 * d11 - d01 * d01
        sound = area > 1e-14 * np.maximum(d00 * d11, np.finfo(float).tiny)
        area = np.where(sound, area, 1.0)
        v = np.where(sound, (d11 * d20 - d01 * d21) / area, 0.0)
        w = np.where(sound, (d00 * d21 - d01 * d20) / area, 0.0)
        weights = np.clip(np.column_stack([1.0 - v - w, v, w]), 0.0, 1.0)
        return weights / weights.sum(axis=1, keepdims=True)


def _border(mesh: TriangleMesh) -> tuple[Bools, Bools]:
    """Whether the edge facing a face's corner is a border (m, 3), and whether a vertex lies on one (n,)."""
    table = edge_table(mesh.faces)
    on_border = (table.face_count == 1)[table.of_half_edge].reshape(3, -1).T
    vertices: Bools = np.zeros(mesh.n_vertices, bool)
    vertices[table.boundary] = True
    return on_border[:, [1, 2, 0]], vertices


def closest_on_segments(points: Floats, segments: Floats) -> Floats:
    """Closest points on a set of segments.

    Parameters
    ----------
    points : (k, 3) float
    segments : (s, 2, 3) float

    Returns
    -------
    (k, 3) float
    """
    start, along = segments[:, 0], segments[:, 1] - segments[:, 0]
    squared = np.maximum((along**2).sum(axis=1), 1e-300)
    found = np.empty_like(points)
    block = max(1, 2_000_000 // max(len(segments), 1))  # bounds the memory of the table of all pairs
    for first in range(0, len(points), block):
        p = points[first : first + block]
        t = np.clip((p @ along.T - (start * along).sum(axis=1)) / squared, 0.0, 1.0)
        distance = np.zeros_like(t)
        for k in range(3):
            distance += (start[:, k] + t * along[:, k] - p[:, k : k + 1]) ** 2
        best = distance.argmin(axis=1)
        found[first : first + block] = start[best] + t[np.arange(len(p)), best][:, None] * along[best]
    return found
