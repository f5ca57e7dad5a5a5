"""Compiled twins of what is asked of every scan, for those of millions of faces: the same numbers, without tables
between the steps. Whoever asks decides by :data:`~breastmorph.mesh.topology.MANY`, because compiled code takes a second
to be made ready. Arrays are made by numpy, whose large ones cost the system a hundredth of the pages of numba's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.machine import compiled

_Indices = NDArray[np.int32]


def _frozen(array: NDArray[Any], dtype: type) -> NDArray[Any]:
    """The same numbers row after row, not to be written to: for any other kind all would be compiled once more."""
    view: NDArray[Any] = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


# --------------------------------------------------------------------------------------------------------------------
# Topology. Half-edge k of face f of m has the number k m + f; it leaves corner k
# --------------------------------------------------------------------------------------------------------------------

_CROWDED = 256  # edges of a vertex; to put more in order by going through them would take too long


def edges_of(faces: Ints, n: int) -> tuple[Ints, Ints, Ints, _Indices] | None:
    """Edges, faces on each, edge and partner of every half-edge, as in an edge table; None if a vertex has very many.

    Parameters
    ----------
    faces : (m, 3) int
    n : int
        More than any of their numbers.
    """
    faces = _frozen(faces, np.int64)
    order, high = np.empty((2, faces.size), np.int32)
    end = np.zeros(n + 1, np.int32)
    if _by_lower_end(faces, order, high, end) > _CROWDED:
        return None
    n_edges = _put_in_order(order, high, end[:n])
    edges, face_count = np.empty((n_edges, 2), np.int64), np.zeros(n_edges, np.int64)
    of_half_edge, partner = np.empty(faces.size, np.int64), np.full(faces.size, -1, np.int32)
    _number(order, high, end[:n], edges, face_count, of_half_edge, partner)
    return edges, face_count, of_half_edge, partner


@compiled()
def _by_lower_end(faces: Ints, order: _Indices, high: _Indices, end: _Indices) -> int:
    """Half-edges with the same lower end together, and their other ends; where each group ends; the largest group."""
    m, most = len(faces), 0
    for f in range(m):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        end[min(a, b) + 1] += 1
        end[min(b, c) + 1] += 1
        end[min(c, a) + 1] += 1
    for i in range(1, len(end)):
        most = max(most, end[i])
        end[i] += end[i - 1]
    for k in range(3):
        following = (k + 1) % 3
        for f in range(m):
            a, b = faces[f, k], faces[f, following]
            low = min(a, b)
            place = end[low]
            order[place], high[place] = k * m + f, max(a, b)
            end[low] = place + 1
    return most


@compiled()
def _put_in_order(order: _Indices, high: _Indices, end: _Indices) -> int:
    """Sort each group by its other ends, stably; the number of edges."""
    n_edges, begin = 0, 0
    for low in range(len(end)):
        for i in range(begin, end[low]):
            value, number, k = high[i], order[i], i
            while k > begin and high[k - 1] > value:
                high[k], order[k] = high[k - 1], order[k - 1]
                k -= 1
            high[k], order[k] = value, number
        for i in range(begin, end[low]):
            if i == begin or high[i] != high[i - 1]:
                n_edges += 1
        begin = end[low]
    return n_edges


@compiled()
def _number(
    order: _Indices,
    high: _Indices,
    end: _Indices,
    edges: Ints,
    face_count: Ints,
    of_half_edge: Ints,
    partner: _Indices,
) -> None:
    edge, begin = -1, 0
    for low in range(len(end)):
        for i in range(begin, end[low]):
            if i == begin or high[i] != high[i - 1]:
                edge += 1
                edges[edge, 0], edges[edge, 1] = low, high[i]
            else:  # where more than two meet, each but the first has the one before it
                partner[order[i]] = order[i - 1]
                if face_count[edge] == 1:
                    partner[order[i - 1]] = order[i]
            face_count[edge] += 1
            of_half_edge[order[i]] = edge
        begin = end[low]


def has_one_fan_each(faces: Ints, partner: _Indices, n: int) -> bool:
    """Whether all corners of each of n vertices are reached from one; of edges with two faces that agree."""
    begin, left = np.full(n, -1, np.int32), np.zeros(n, np.int32)
    return bool(_walk(_frozen(faces, np.int64), partner, begin, left))


@compiled()
def _walk(faces: Ints, partner: _Indices, begin: _Indices, left: _Indices) -> bool:
    m = len(faces)
    for k in range(3):
        for f in range(m):
            i = faces[f, k]
            left[i] += 1
            if begin[i] < 0 or partner[k * m + f] < 0:  # an open fan is walked from its end
                begin[i] = k * m + f
    for i in range(len(begin)):
        at = begin[i]
        while at >= 0:
            left[i] -= 1
            at = partner[at - m if at >= m else at + 2 * m]  # across the half-edge that arrives
            if at == begin[i]:
                break
        if left[i]:
            return False
    return True


def pieces(partner: _Indices, m: int) -> Ints:
    """Piece of every face (m,), numbered as their first faces stand."""
    found = np.empty(m, np.int64)
    _join(partner, np.arange(m, dtype=np.int32), found)
    return found


@compiled()
def _join(partner: _Indices, root: _Indices, found: Ints) -> None:
    m, n_pieces = len(root), 0
    for h in range(3 * m):
        if 0 <= partner[h] < h:
            one, other = h % m, partner[h] % m
            while root[one] != one:
                root[one] = root[root[one]]
                one = root[one]
            while root[other] != other:
                root[other] = root[root[other]]
                other = root[other]
            root[max(one, other)] = min(one, other)
    for f in range(m):
        if root[f] == f:
            found[f] = n_pieces
            n_pieces += 1
        else:  # which stands before f
            found[f] = found[root[f]]


# --------------------------------------------------------------------------------------------------------------------
# Geometry, to the bit what numpy finds
# --------------------------------------------------------------------------------------------------------------------


def face_cross(vertices: Floats, faces: Ints) -> Floats:
    """Cross products of two sides, (m, 3)."""
    cross = np.empty((len(faces), 3))
    _crosses(_frozen(vertices, np.float64), _frozen(faces, np.int64), cross)
    return cross


def vertex_normals(vertices: Floats, faces: Ints) -> Floats:
    """Area-weighted unit normals, (n, 3); zero for a vertex without faces."""
    normals = np.zeros(vertices.shape)
    _normals(_frozen(vertices, np.float64), _frozen(faces, np.int64), normals)
    return normals


def lengths(vertices: Floats, edges: Ints) -> Floats:
    """Lengths of pairs of vertices (e, 2), (e,)."""
    found = np.empty(len(edges))
    _lengths(_frozen(vertices, np.float64), _frozen(edges, np.int64), found)
    return found


def distances_from(points: Floats, vertices: Floats) -> Floats:
    """Distances of vertices (n, 3) from the nearest of a few points (k, 3), (n,)."""
    found = np.full(len(vertices), np.inf)
    _distances(_frozen(points, np.float64), _frozen(vertices, np.float64), found)
    return found


@compiled()
def _crosses(vertices: Floats, faces: Ints, cross: Floats) -> None:
    for f in range(len(faces)):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        ux, uy, uz = (
            vertices[b, 0] - vertices[a, 0],
            vertices[b, 1] - vertices[a, 1],
            vertices[b, 2] - vertices[a, 2],
        )
        vx, vy, vz = (
            vertices[c, 0] - vertices[a, 0],
            vertices[c, 1] - vertices[a, 1],
            vertices[c, 2] - vertices[a, 2],
        )
        cross[f, 0], cross[f, 1], cross[f, 2] = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx


@compiled()
def _normals(vertices: Floats, faces: Ints, normals: Floats) -> None:
    for f in range(len(faces)):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        ux, uy, uz = (
            vertices[b, 0] - vertices[a, 0],
            vertices[b, 1] - vertices[a, 1],
            vertices[b, 2] - vertices[a, 2],
        )
        vx, vy, vz = (
            vertices[c, 0] - vertices[a, 0],
            vertices[c, 1] - vertices[a, 1],
            vertices[c, 2] - vertices[a, 2],
        )
        x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
        for k in range(3):
            i = faces[f, k]
            normals[i, 0] += x
            normals[i, 1] += y
            normals[i, 2] += z
    for i in range(len(normals)):
        x, y, z = normals[i, 0], normals[i, 1], normals[i, 2]
        length = np.sqrt(x * x + y * y + z * z)
        if not length > 0.0:
            x, y, z, length = 0.0, 0.0, 0.0, 1.0
        normals[i, 0], normals[i, 1], normals[i, 2] = x / length, y / length, z / length


@compiled()
def _lengths(vertices: Floats, edges: Ints, found: Floats) -> None:
    for e in range(len(edges)):
        a, b = edges[e, 0], edges[e, 1]
        x, y, z = (
            vertices[a, 0] - vertices[b, 0],
            vertices[a, 1] - vertices[b, 1],
            vertices[a, 2] - vertices[b, 2],
        )
        found[e] = np.sqrt(x * x + y * y + z * z)


@compiled()
def _distances(points: Floats, vertices: Floats, found: Floats) -> None:
    for i in range(len(vertices)):
        for k in range(len(points)):
            x, y, z = (
                vertices[i, 0] - points[k, 0],
                vertices[i, 1] - points[k, 1],
                vertices[i, 2] - points[k, 2],
            )
            found[i] = min(found[i], np.sqrt(x * x + y * y + z * z))
