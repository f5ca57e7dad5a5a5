"""Repairs that cannot change the shape: what a scan loses here it could not have been used with.

Each function returns the mended mesh and how many elements it touched, so that the caller can report it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breastmorph.mesh.files.corners import joined
from breastmorph.mesh.geometry import face_areas
from breastmorph.mesh.topology import edge_table, orientation_conflicts, split_pinched, with_three_corners
from breastmorph.mesh.triangle_mesh import Ints, TriangleMesh


def without_non_finite(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Drop vertices with NaN or infinite coordinates and the faces that use them."""
    bad = np.isfinite(mesh.vertices).sum(axis=1) < 3
    if not bad.any():
        return mesh, 0
    return mesh.kept(bad[mesh.faces].sum(axis=1) == 0), int(bad.sum())


def welded(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Join vertices at exactly the same place, as texture seams leave them."""
    first, place = joined(mesh.vertices)
    if len(first) == mesh.n_vertices:
        return mesh, 0
    return replace(mesh, faces=first[place][mesh.faces]), mesh.n_vertices - len(first)


def without_degenerate_faces(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Drop faces that name a vertex twice or have no area."""
    whole = with_three_corners(mesh.faces)
    area = face_areas(mesh.vertices, mesh.faces)
    typical = np.median(area[whole]) if whole.any() else 0.0
    bad = ~whole | (area <= 1e-10 * typical)
    return (mesh.kept(~bad), int(bad.sum())) if bad.any() else (mesh, 0)


def without_duplicate_faces(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Keep the first of faces with the same three vertices."""
    first, _ = joined(np.sort(mesh.faces, axis=1))
    if len(first) == mesh.n_faces:
        return mesh, 0
    keep = np.zeros(mesh.n_faces, bool)
    keep[first] = True
    return mesh.kept(keep), int((~keep).sum())


def without_unreferenced(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Drop vertices that no face uses."""
    used = np.zeros(mesh.n_vertices, bool)
    used[mesh.faces] = True
    if used.all():
        return mesh, 0
    return mesh.kept(np.ones(mesh.n_faces, bool)), int((~used).sum())


def without_non_manifold_edges(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Drop the faces on edges that more than two faces share; leaves pin holes."""
    table = edge_table(mesh.faces)
    crowded = table.face_count > 2
    if not crowded.any():
        return mesh, 0
    crowded_sides = crowded[table.of_half_edge].reshape(3, -1).sum(axis=0)
    return mesh.kept(crowded_sides == 0), int(crowded.sum())


def without_pinches(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Give separate fans of faces that touch in one vertex a vertex each."""
    faces, source = split_pinched(mesh.faces, mesh.n_vertices)
    if not len(source):
        return mesh, 0
    vertices = np.concatenate([mesh.vertices, mesh.vertices[source]])
    colors = None if mesh.colors is None else np.concatenate([mesh.colors, mesh.colors[source]])
    return replace(mesh, vertices=vertices, faces=faces, colors=colors), len(source)


def consistently_oriented(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Turn faces so that neighbours agree; the majority of each piece keeps its side. Needs manifold edges."""
    import igl

    if orientation_conflicts(mesh.faces) == 0:
        return mesh, 0
    oriented, piece = igl.bfs_orient(np.array(mesh.faces))
    turned = (_first_to_front(oriented) != _first_to_front(mesh.faces)).any(axis=1)
    share = np.bincount(piece, weights=turned) / np.bincount(piece)
    turned ^= share[piece] > 0.5
    faces = np.where(turned[:, None], mesh.faces[:, ::-1], mesh.faces)
    texture = mesh.texture and replace(
        mesh.texture, uv=np.where(turned[:, None, None], mesh.texture.uv[:, ::-1], mesh.texture.uv)
    )
    return replace(mesh, faces=faces, texture=texture), int(turned.sum())


def _first_to_front(faces: Ints) -> Ints:
    """The same cyclic order with the smallest vertex first."""
    start = faces.argmin(axis=1)
    return np.take_along_axis(faces, (start[:, None] + np.arange(3)) % 3, axis=1)
