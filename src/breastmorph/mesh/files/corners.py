"""Faces of any number of corners, as files have them, made triangles."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.topology import joined
from breastmorph.mesh.triangle_mesh import TriangleMesh

_BACKWARDS = 1e-9  # of a polygon's area: below is rounding
_TURNS = 8  # corners from which fans are tried, of all polygons at once
_ONLY_FANS = 5  # up to so many corners there are no other triangles than those of a fan
_MOST_WORK = 50_000_000  # corners compared with ears, in a file: some seconds ...
_START = 500  # ... of which the start of a comparison takes as long as so many


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


def triangulated(counts: Ints, corners: Ints, vertices: Floats) -> Ints:
    """Triangles of polygons, of concave ones too; parameters and result as those of :func:`fan`.

    Parameters
    ----------
    counts : (p,) int
    corners : (c,) int
        The flat list of corners.
    vertices : (n, 3) float

    Notes
    -----
    A fan is kept wherever all its triangles face the polygon's way: that of every convex polygon does. Others get a
    fan from another corner or, where none fits, their ears are cut off one by one. A polygon that crosses itself
    keeps the fan: there is no right answer.
    """
    order = fan(counts)
    waiting = np.flatnonzero(counts > 3)
    if not len(waiting) or corners.min() < 0 or corners.max() >= len(vertices):
        return order  # the mesh itself will refuse such corners with its own words
    starts = np.cumsum(counts) - counts
    first = np.cumsum(np.maximum(counts - 2, 0)) - np.maximum(counts - 2, 0)  # its triangle in the list
    for turn in range(_TURNS):
        triangles = counts[waiting] - 2
        inside = (
            fan(counts[waiting]) - np.repeat(np.cumsum(counts[waiting]) - counts[waiting], triangles)[:, None]
        )
        turned = (inside + turn) % np.repeat(counts[waiting], triangles)[:, None]
        turned += np.repeat(starts[waiting], triangles)[:, None]
        folds = _folds(vertices[corners[turned]], triangles)
        if turn:
            place = inside[:, 1] - 1 + np.repeat(first[waiting], triangles)
            fits = np.repeat(~folds, triangles)
            order[place[fits]] = turned[fits]
        waiting = waiting[folds]
        if not len(waiting):
            return order
    work = _MOST_WORK
    for polygon in waiting[counts[waiting] > _ONLY_FANS].tolist():
        own = starts[polygon] + np.arange(counts[polygon])
        ears, work = _ears(_flattened(vertices[corners[own]]), work)
        if ears is not None:
            order[first[polygon] : first[polygon] + len(ears)] = own[ears]
    return order


def _folds(triangles: Floats, counts: Ints) -> NDArray[np.bool_]:
    """Which fans, of so many triangles (m, 3, 3) each, have one that faces backwards."""
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    starts = np.cumsum(counts) - counts
    whole = np.add.reduceat(normals, starts)
    share = np.einsum("ij,ij->i", normals, np.repeat(whole, counts, axis=0))
    return np.minimum.reduceat(share, starts) < -_BACKWARDS * np.einsum("ij,ij->i", whole, whole)


def _flattened(points: Floats) -> Floats:
    """A polygon (n, 3) seen from where it runs counterclockwise, (n, 2)."""
    edges = points - points[0]
    normal = np.cross(edges[:-1], edges[1:]).sum(axis=0)
    across = np.cross(normal, np.eye(3)[np.abs(normal).argmin()])
    axes = np.stack([across, np.cross(normal, across)])
    return edges @ (axes / np.linalg.norm(axes, axis=1, keepdims=True)).T


def _ears(points: Floats, work: int) -> tuple[Ints | None, int]:
    """Triangles (n - 2, 3) of a polygon (n, 2), none where it crosses itself; and how much work may still be done."""
    least = 1e-12 * float(np.ptp(points, axis=0).max()) ** 2
    left, found = np.arange(len(points)), []
    at = missed = 0
    while len(left) > 3 and missed < 2 * len(left):
        work -= _START + len(left)
        if work < 0:
            raise FileProblem(
                "its polygons are too intricate to be cut into triangles", "Export it with triangles"
            )
        corner = left[[at - 1, at, (at + 1) % len(left)]]
        if _is_ear(points[corner], points[left], least, may_be_flat=missed >= len(left)):
            found.append(corner)
            left = np.delete(left, at)
            missed = 0
        else:
            missed += 1
        at = (at + 1) % len(left)
    return (np.array([*found, left]), work) if len(left) == 3 else (None, work)


def _is_ear(triangle: Floats, others: Floats, least: float, may_be_flat: bool) -> bool:
    """Whether a triangle (3, 2) faces the right way and no other corner (k, 2) lies in it."""
    area = _turn(*triangle)
    if area <= least:
        return may_be_flat and area >= -least
    a, b, c = triangle
    inside = (
        (_turn(a, b, others) >= -least) & (_turn(b, c, others) >= -least) & (_turn(c, a, others) >= -least)
    )
    # A corner may be met twice, where a hole is cut in.
    return bool((others[inside][:, None] == triangle).all(axis=2).any(axis=1).all())


def _turn(a: Floats, b: Floats, c: Floats) -> Any:
    """Twice the area of a, b, c, which may be many: positive where they run counterclockwise."""
    return (b[0] - a[0]) * (c[..., 1] - a[1]) - (b[1] - a[1]) * (c[..., 0] - a[0])


def unrolled_strip(strip: Ints) -> Ints:
    """Triangles (k - 2, 3) of one triangle strip (k,), every second one turned to face the same way."""
    faces = np.stack([strip[:-2], strip[1:-1], strip[2:]], axis=1)
    faces[1::2] = faces[1::2, ::-1]
    return faces


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
