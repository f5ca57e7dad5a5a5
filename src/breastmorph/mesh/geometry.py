"""Lengths, areas, angles and normals. Plain functions on ``vertices (n, 3)`` and ``faces (m, 3)``."""

from __future__ import annotations

import numpy as np

from breastmorph.mesh.topology import edge_table
from breastmorph.mesh.triangle_mesh import Floats, Ints

_BLOCK = 2**14  # faces at once: their corners stay in the processor's cache


def face_normals(vertices: Floats, faces: Ints) -> Floats:
    """Unit normals, (m, 3); zero for a face without area."""
    return _unit(face_cross(vertices, faces))


def face_areas(vertices: Floats, faces: Ints) -> Floats:
    """Areas, (m,)."""
    return 0.5 * np.linalg.norm(face_cross(vertices, faces), axis=1)


def vertex_areas(vertices: Floats, faces: Ints) -> Floats:
    """A third of the area of the faces around each vertex, (n,)."""
    third = np.repeat(face_areas(vertices, faces) / 3.0, 3)
    return _summed(faces, third, len(vertices))


def vertex_normals(vertices: Floats, faces: Ints) -> Floats:
    """Area-weighted unit normals, (n, 3); zero for a vertex without faces."""
    cross = face_cross(vertices, faces)
    return _unit(np.stack([_summed(faces, np.repeat(part, 3), len(vertices)) for part in cross.T], axis=1))


def normals_within(normals: Floats, corners: Ints, weights: Floats) -> Floats:
    """Unit normals at points of faces, (k, 3): interpolated, because a face's own normal jumps at its edges.

    Parameters
    ----------
    normals : (n, 3) float
        Of the vertices.
    corners : (k, 3) int
        Vertices of the face around each point.
    weights : (k, 3) float
        Barycentric.
    """
    return _unit(np.einsum("kc,kci->ki", weights, normals[corners]))


def face_angles(vertices: Floats, faces: Ints) -> Floats:
    """Inner angles at the three corners in radians, (m, 3)."""
    corners = vertices[faces]
    to_next = np.roll(corners, -1, axis=1) - corners
    to_last = np.roll(corners, 1, axis=1) - corners
    sine = np.linalg.norm(np.cross(to_next, to_last), axis=2)
    cosine = (to_next * to_last).sum(axis=2)
    return np.arctan2(sine, cosine)


def normal_consistency(vertices: Floats, faces: Ints) -> Floats:
    """Cosine between every face's normal and the mean normal at its corners, (m,); negative means flipped."""
    at_corners = vertex_normals(vertices, faces)[faces].sum(axis=1)
    return (face_normals(vertices, faces) * _unit(at_corners)).sum(axis=1)


def edge_lengths(vertices: Floats, faces: Ints) -> Floats:
    """Lengths of the undirected edges, (e,)."""
    return lengths(vertices, edge_table(faces).edges)


def lengths(vertices: Floats, edges: Ints) -> Floats:
    """Lengths of pairs of vertices (e, 2), (e,)."""
    return np.linalg.norm(vertices[edges[:, 0]] - vertices[edges[:, 1]], axis=1)


def face_cross(vertices: Floats, faces: Ints) -> Floats:
    """Cross products of two sides, (m, 3): along the normals, twice as long as the areas."""
    cross = np.empty((len(faces), 3))
    for start in range(0, len(faces), _BLOCK):
        a, b, c = (vertices[corner] for corner in faces[start : start + _BLOCK].T)
        cross[start : start + _BLOCK] = np.cross(b - a, c - a)
    return cross


def _summed(faces: Ints, at_corners: Floats, n_vertices: int) -> Floats:
    """Sum of values at the faces' corners (3m,) over each vertex, (n,)."""
    return np.bincount(faces.ravel(), weights=at_corners, minlength=n_vertices).astype(np.float64, copy=False)


def _unit(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
