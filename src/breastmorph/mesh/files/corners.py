"""Corners of faces: polygons to triangles, vertices doubled at texture seams, vertices joined again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh


def fan(counts: Ints) -> Ints:
    """Triangles of polygons that lie one after the other in a flat list of corners.

    Parameters
    ----------
    counts : (p,) int
        Corners of each polygon. Those with fewer than three enclose no area and give no triangle.

    Returns
    -------
    (m, 3) int
        Positions in the flat list, in the polygons' order.
    """
    triangles = np.maximum(counts - 2, 0)
    first = np.repeat(np.cumsum(counts) - counts, triangles)
    step = np.arange(len(first)) - np.repeat(np.cumsum(triangles) - triangles, triangles)
    return np.stack([first, first + step + 1, first + step + 2], axis=1)


def unrolled_strip(strip: Ints) -> Ints:
    """Triangles (k - 2, 3) of one triangle strip (k,), every second one turned to face the same way."""
    faces = np.stack([strip[:-2], strip[1:-1], strip[2:]], axis=1)
    faces[1::2] = faces[1::2, ::-1]
    return faces


def joined(rows: NDArray[Any]) -> tuple[Ints, Ints]:
    """Join equal rows (n, w) of numbers, as vertices at exactly the same position.

    Returns
    -------
    kept : (k,) int
        The first of each, in the order of the list.
    new_id : (n,) int
        Where each row went.
    """
    values = np.ascontiguousarray(rows + 0.0)  # -0 is 0
    key = values.view(f"V{values.itemsize * values.shape[1]}").ravel()
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    order = np.argsort(first)
    rank[order] = np.arange(len(first))
    return first[order], rank[inverse.ravel()]


def uv_by_vertex(mesh: TriangleMesh) -> Floats | None:
    """Texture coordinates (n, 2) of the vertices; None where a seam gives a vertex more than one."""
    if mesh.texture is None:
        return None
    uv = np.zeros((mesh.n_vertices, 2))
    uv[mesh.faces] = mesh.texture.uv
    return uv if np.array_equal(uv[mesh.faces], mesh.texture.uv, equal_nan=True) else None


def split_at_seams(mesh: TriangleMesh) -> tuple[Ints, Ints, Floats]:
    """Double the vertices that a texture seam runs through.

    Returns
    -------
    source : (n + d,) int
        The vertex each new vertex comes from: all old ones in their order, then the doubles.
    faces : (m, 3) int
    uv : (n + d, 2) float
    """
    if mesh.texture is None:
        raise ValueError("the mesh has no texture")
    corner_vertex = mesh.faces.ravel()
    corner_uv = mesh.texture.uv.reshape(-1, 2)
    kept, which = joined(np.column_stack([corner_vertex, corner_uv]))  # the distinct (vertex, uv) pairs
    owner = corner_vertex[kept]
    _, first_of_owner = np.unique(owner, return_index=True)
    is_first = np.zeros(len(kept), bool)
    is_first[first_of_owner] = True
    new_id = np.where(is_first, owner, mesh.n_vertices + np.cumsum(~is_first) - 1)
    source = np.concatenate([np.arange(mesh.n_vertices), owner[~is_first]])
    uv = np.zeros((len(source), 2))
    uv[new_id] = corner_uv[kept]
    return source, new_id[which].reshape(-1, 3), uv


def rgba(channels: NDArray[Any]) -> NDArray[np.uint8]:
    """RGBA bytes (n, 4) from three or four channels: bytes as they are, other whole numbers by their range,
    fractions from 0 to 1."""
    if channels.dtype.kind == "f":
        levels = np.nan_to_num(channels.astype(np.float64), nan=0.0, posinf=1.0, neginf=0.0)
        colors = np.rint(np.clip(levels, 0.0, 1.0) * 255.0)
    elif channels.dtype.itemsize == 2:
        colors = channels.astype(np.int64) // 257
    else:
        colors = np.clip(channels, 0, 255)
    result = np.full((len(colors), 4), 255, np.uint8)
    result[:, : colors.shape[1]] = colors
    return result
