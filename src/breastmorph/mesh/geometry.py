"""Lengths, areas, angles and normals. Plain functions on ``vertices (n, 3)`` and ``faces (m, 3)``."""

from __future__ import annotations

import numpy as np

from breastmorph.mesh.topology import edge_table
from breastmorph.mesh.triangle_mesh import Floats, Ints


def face_normals(vertices: Floats, faces: Ints) -> Floats:
    """Unit normals, (m, 3); zero for a face without area."""
    return _unit(_face_cross(vertices, faces))


def face_areas(vertices: Floats, faces: Ints) -> Floats:
    """Areas, (m,)."""
    return 0.5 * np.linalg.norm(_face_cross(vertices, faces), axis=1)


def vertex_areas(vertices: Floats, faces: Ints) -> Floats:
    """A third of the area of the faces around each vertex, (n,)."""
    third = np.repeat(face_areas(vertices, faces) / 3.0, 3)
    return _summed(faces, third, len(vertices))


def vertex_normals(vertices: Floats, faces: Ints) -> Floats:
    """Area-weighted unit normals, (n, 3); zero for a vertex without faces."""
    cross = _face_cross(vertices, faces)
    return _unit(np.stack([_summed(faces, np.repeat(part, 3), len(vertices)) for part in cross.T], axis=1))


def face_angles(vertices: Floats, faces: Ints) -> Floats:
    """Inner angles at the three corners in radians, (m, 3)."""
    corners = vertices[faces]
    to_next = np.roll(corners, -1, axis=1) - corners
    to_last = np.roll(corners, 1, axis=1) - corners
    sine = np.linalg.norm(np.cross(to_next, to_last), axis=2)
    cosine = (to_next * to_last).sum(axis=2)
    return np.arctan2(sine, cosine)


def edge_lengths(vertices: Floats, faces: Ints) -> Floats:
    """Lengths of the undirected edges, (e,)."""
    ends = vertices[edge_table(faces).edges]
    return np.linalg.norm(ends[:, 0] - ends[:, 1], axis=1)


def _summed(faces: Ints, at_corners: Floats, n_vertices: int) -> Floats:
    """Sum of values at the faces' corners (3m,) over each vertex, (n,)."""
    return np.bincount(faces.ravel(), weights=at_corners, minlength=n_vertices).astype(np.float64, copy=False)


def _face_cross(vertices: Floats, faces: Ints) -> Floats:
    a, b, c = vertices[faces[:, 0]], vertices[faces[:, 1]], vertices[faces[:, 2]]
    return np.cross(b - a, c - a)


def _unit(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
