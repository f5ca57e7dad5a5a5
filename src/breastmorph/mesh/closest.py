"""Closest points on a surface and on segments, exact; cutting a surface, and the shortest ways over it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import MeshProblem
from breastmorph.mesh.geometry import distances_from, edge_lengths, without_pinches
from breastmorph.mesh.topology import MANY, edge_table, face_components, faces_with_all, faces_with_any
from breastmorph.mesh.triangle_mesh import TriangleMesh

if TYPE_CHECKING:
    from breastmorph.mesh.box_tree import BoxTree

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
        away = distances_from(query[None], mesh.vertices)
        near |= away <= 1.001 * (away.min() + longest)
    faces = np.flatnonzero(faces_with_all(near, mesh.faces))
    squared, found, points = _tree(TriangleMesh(mesh.vertices, mesh.faces[faces])).closest(queries)
    return points, np.sqrt(np.maximum(squared, 0.0)), faces[found]


class Surface:
    """A mesh prepared for closest-point and ray queries.

    Parameters
    ----------
    mesh : TriangleMesh
    compiled : bool
        With the compiled tree at any size: built in a twentieth of the time, once its code has been made ready.
    """

    def __init__(self, mesh: TriangleMesh, *, compiled: bool = False) -> None:
        self.mesh = mesh
        self._tree = _tree(mesh, compiled)

    @cached_property
    def _border(self) -> tuple[Bools, Bools]:
        return _border(self.mesh)

    def closest(self, queries: Floats) -> SurfacePoints:
        """Closest points of the surface to ``queries`` (k, 3)."""
        squared, faces, points = self._tree.closest(np.ascontiguousarray(queries, dtype=np.float64))
        distances = np.sqrt(np.maximum(squared, 0.0))
        if not isinstance(self._tree, _IglTree):
            from breastmorph.mesh import dense

            placed = dense.placed(self.mesh.vertices, self.mesh.faces, points, faces, self._border, _ON_EDGE)
            return SurfacePoints(points, distances, faces, *placed)
        border_opposite, border_vertex = self._border
        weights = _barycentric(self.mesh, points, faces)
        outside = weights <= _ON_EDGE
        on_edge = (outside & border_opposite[faces]).any(axis=1)
        corner = weights.argmax(axis=1)
        at_corner = outside.sum(axis=1) == 2
        on_vertex = at_corner & border_vertex[self.mesh.faces[faces, corner]]
        return SurfacePoints(points, distances, faces, weights, on_edge | on_vertex)

    def distances(self, queries: Floats) -> Floats:
        """How far points (k, 3) are from the surface, (k,)."""
        squared, _, _ = self._tree.closest(np.ascontiguousarray(queries, dtype=np.float64))
        return np.sqrt(np.maximum(squared, 0.0))

    def first_hit(self, origins: Floats, directions: Floats) -> tuple[Ints, Floats, Floats]:
        """First hit of rays: face (k,), -1 where none; distance along the ray (k,); barycentric (k, 3)."""
        faces, distance, uv = self._tree.first_hit(
            np.ascontiguousarray(origins, dtype=np.float64),
            np.ascontiguousarray(directions, dtype=np.float64),
        )
        uv = np.where(faces[:, None] >= 0, uv, 0.0)  # not set where a ray misses
        weights = np.column_stack([1.0 - uv.sum(axis=1), uv])
        return faces, distance, weights


def _barycentric(mesh: TriangleMesh, points: Floats, faces: Ints) -> Floats:
    """Weights of the corners of faces (k,) at points (k, 3) of them, (k, 3)."""
    a, b, c = (mesh.vertices[mesh.faces[faces, k]] for k in range(3))
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


class _IglTree:
    """The search tree of libigl; asked like a :class:`~breastmorph.mesh.box_tree.BoxTree`."""

    def __init__(self, mesh: TriangleMesh) -> None:
        import igl

        # igl takes writeable arrays only; these copies are never written to.
        self._vertices = np.array(mesh.vertices)
        self._faces = np.array(mesh.faces)
        self._tree = igl.AABB()
        self._tree.init(self._vertices, self._faces)

    def closest(self, queries: Floats) -> tuple[Floats, Ints, Floats]:
        squared, faces, points = self._tree.squared_distance(self._vertices, self._faces, queries)
        return squared, faces, points

    def first_hit(self, origins: Floats, directions: Floats) -> tuple[Ints, Floats, Floats]:
        faces, distance, uv = self._tree.intersect_ray_first(self._vertices, self._faces, origins, directions)
        return faces, distance, uv


def _tree(mesh: TriangleMesh, compiled: bool = False) -> _IglTree | BoxTree:
    """igl's tree takes 240 bytes a face, thrice that of the other, which has to be compiled once."""
    if mesh.n_faces <= MANY and not compiled:
        return _IglTree(mesh)
    from breastmorph.mesh.box_tree import BoxTree

    return BoxTree.of(mesh.vertices, mesh.faces)


def _border(mesh: TriangleMesh) -> tuple[Bools, Bools]:
    """Whether the edge facing a face's corner is a border (m, 3), and whether a vertex lies on one (n,)."""
    table = edge_table(mesh.faces)
    on_border = (table.partner < 0).reshape(3, -1).T
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


_AT_CORNER, _NEAR_EDGE = 1e-6, 1e-3  # barycentric weights


def clip(mesh: TriangleMesh, values: Floats) -> TriangleMesh:
    """The part of a surface where a function is not negative; triangles on the line are cut along it.

    Parameters
    ----------
    mesh : TriangleMesh
        Colours and texture are dropped.
    values : (n,) float
        The function at the vertices, linear in between.
    """
    # A vertex that rounding put beside the line is on it; cutting next to it would leave slivers.
    values = np.where(np.abs(values) < 1e-9 * np.abs(values).max(), 0.0, values)
    side = np.sign(values).astype(np.int64)
    table = edge_table(mesh.faces)
    low, high = table.edges.T
    crossing = side[low] * side[high] < 0
    t = values[low][crossing] / (values[low][crossing] - values[high][crossing])
    start, end = mesh.vertices[low[crossing]], mesh.vertices[high[crossing]]
    new_id = np.full(len(table.edges), -1)
    new_id[crossing] = mesh.n_vertices + np.arange(len(t))
    vertices = np.concatenate([mesh.vertices, start + t[:, None] * (end - start)])
    side = np.concatenate([side, np.zeros(len(t), dtype=np.int64)])

    cut = new_id[table.of_half_edge.reshape(3, -1)].T  # (m, 3): new vertex on the edge from corner k to k + 1
    n_cut = (cut >= 0).sum(axis=1)
    faces = [mesh.faces[n_cut == 0]]
    one = n_cut == 1
    face, on = _turned(mesh.faces[one], cut[one], (cut[one].argmax(axis=1) + 2) % 3)
    faces += [_triangles(face[:, 0], face[:, 1], on[:, 1]), _triangles(face[:, 0], on[:, 1], face[:, 2])]
    two = n_cut == 2
    # The corner between the two cut edges stands alone; the uncut edge faces it.
    face, on = _turned(mesh.faces[two], cut[two], (cut[two].argmin(axis=1) + 2) % 3)
    faces += [
        _triangles(face[:, 0], on[:, 0], on[:, 2]),
        _triangles(on[:, 0], face[:, 1], face[:, 2]),
        _triangles(on[:, 0], face[:, 2], on[:, 2]),
    ]
    together = np.concatenate(faces)
    keep = (side[together] >= 0).all(axis=1) & (side[together] > 0).any(axis=1)
    return TriangleMesh(vertices, together).kept(keep)


def largest_piece(mesh: TriangleMesh) -> TriangleMesh:
    """The connected piece with the most faces."""
    piece = face_components(mesh.faces)
    return mesh.kept(piece == np.bincount(piece).argmax())


def insert_points(mesh: TriangleMesh, points: Floats, *, project: bool = False) -> tuple[TriangleMesh, Ints]:
    """Make points vertices of the surface, cutting the triangles they lie in.

    Parameters
    ----------
    mesh : TriangleMesh
    points : (k, 3) float
        On the surface or next to it; the new vertices sit exactly here ...
    project : bool
        ... or, if true, at the closest points of the surface.

    Returns
    -------
    mesh : TriangleMesh
    ids : (k,) int
    """
    ids = np.empty(len(points), dtype=np.int64)
    found, _, hit_faces = closest_to_few(mesh, points)
    hit_weights = _barycentric(mesh, found, hit_faces)
    n_faces = mesh.n_faces
    touched: set[int] = set()
    for k, point in enumerate(found if project else points):
        face, weights = int(hit_faces[k]), hit_weights[k]
        if face in touched:  # two points in one triangle: look again
            hit = Surface(mesh).closest(point[None])
            face, weights = int(hit.faces[0]), hit.weights[0]
        mesh, ids[k], cut = _with_point(mesh, point, face, weights)
        touched.update(cut[cut < n_faces].tolist())
    return mesh, ids


def _with_point(
    mesh: TriangleMesh, point: Floats, face: int, weights: Floats
) -> tuple[TriangleMesh, int, Ints]:
    """The mesh with one more vertex, that vertex, and the faces that were cut; other faces keep their ids."""
    corners = mesh.faces[face]
    order = weights.argsort()
    if weights[order[2]] > 1.0 - _AT_CORNER:
        vertex = int(corners[order[2]])
        vertices = mesh.vertices.copy()
        vertices[vertex] = point
        return mesh.with_vertices(vertices), vertex, np.empty(0, dtype=np.int64)
    new = mesh.n_vertices
    on_edge = weights[order[0]] < _NEAR_EDGE
    if on_edge:
        table = edge_table(mesh.faces)
        edge = table.ids_of(corners[order[1:]][None])[0]
        corner, cut = np.nonzero(table.of_half_edge.reshape(3, -1) == edge)
    else:
        corner, cut = np.arange(3), np.full(3, face)
    a, b, c = (mesh.faces[cut, (corner + k) % 3] for k in range(3))
    tip = np.full_like(a, new)
    fans = [_triangles(a, tip, c), _triangles(tip, b, c)] if on_edge else [_triangles(a, b, tip)]
    parts = np.concatenate(fans)
    cut = np.unique(cut)
    faces = np.concatenate([mesh.faces, parts[len(cut) :]])
    faces[cut] = parts[: len(cut)]
    vertices = np.concatenate([mesh.vertices, point[None]])
    return replace(mesh, vertices=vertices, faces=faces, colors=None, texture=None), new, cut


def _turned(faces: Ints, cut: Ints, first: Ints) -> tuple[Ints, Ints]:
    """Corners and edge cuts of faces, beginning with the given corner."""
    turn = (first[:, None] + np.arange(3)) % 3
    return np.take_along_axis(faces, turn, axis=1), np.take_along_axis(cut, turn, axis=1)


def _triangles(a: Ints, b: Ints, c: Ints) -> Ints:
    return np.stack([a, b, c], axis=1)


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
                "geodesics need a manifold surface ({why})",
                "Check the scan, and repair the mesh",
                code="unusable-surface/not-manifold",
                why=str(error),
            ) from error

    def path(self, start: int, end: int) -> Floats:
        """Shortest line along the surface from point ``start`` to point ``end``, (p, 3)."""
        a, b = int(self._ids[start]), int(self._ids[end])
        try:
            return np.asarray(self._solver.find_geodesic_path(a, b), dtype=np.float64)
        except RuntimeError as error:
            raise MeshProblem(
                "two points lie on pieces of the surface that are not joined",
                "Check the scan, and keep the piece with the landmarks",
                code="unusable-surface/pieces",
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
    for start in np.unique(starts, axis=0):  # lines share their starts
        away, own = distances_from(start[None], mesh.vertices), (starts == start).all(axis=1)
        for end, limit in zip(ends[own], limits[own], strict=True):
            inside |= away + distances_from(end[None], mesh.vertices) <= limit
    faces = faces_with_any(inside, mesh.faces)
    return mesh.kept(faces) if faces.any() else mesh
