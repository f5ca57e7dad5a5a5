"""Compiled twins of what is asked of every scan: the same numbers, without tables between the steps.

Callers decide by :func:`~breastmorph.mesh.topology.pays_compiled`, since compiled code takes a second to be made
ready: for millions of faces, and in registrations, which have it at hand. Arrays are made by numpy, whose large ones
cost the system a hundredth of the pages of numba's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.kernels import compiled
from breastmorph.mesh.box_tree import sides

_Indices = NDArray[np.int32]


def _frozen(array: NDArray[Any], dtype: type) -> NDArray[Any]:
    """The same numbers row after row, not to be written to: for any other kind all would be compiled once more."""
    view: NDArray[Any] = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


# Half-edge k of face f of m has the number k m + f; it leaves corner k.
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


def distances_from(points: Floats, vertices: Floats) -> Floats:
    """Distances of vertices (n, 3) from the nearest of a few points (k, 3), (n,)."""
    found = np.full(len(vertices), np.inf)
    _distances(_frozen(points, np.float64), _frozen(vertices, np.float64), found)
    return found


@compiled()
def _cross(vertices: Floats, faces: Ints, f: int) -> Any:
    """Cross product of two sides of a triangle: (x, y, z)."""
    ux, uy, uz, vx, vy, vz = sides(vertices, faces[f, 0], faces[f, 1], faces[f, 2])
    return uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx


@compiled()
def _unit(x: float, y: float, z: float) -> Any:
    """A vector of length one; nothing where it has no length."""
    length = np.sqrt(x * x + y * y + z * z)
    return (x / length, y / length, z / length) if length > 0.0 else (0.0, 0.0, 0.0)


@compiled()
def _crosses(vertices: Floats, faces: Ints, cross: Floats) -> None:
    for f in range(len(faces)):
        cross[f, 0], cross[f, 1], cross[f, 2] = _cross(vertices, faces, f)


@compiled()
def _normals(vertices: Floats, faces: Ints, normals: Floats) -> None:
    for f in range(len(faces)):
        x, y, z = _cross(vertices, faces, f)
        for k in range(3):
            i = faces[f, k]
            normals[i, 0] += x
            normals[i, 1] += y
            normals[i, 2] += z
    for i in range(len(normals)):
        normals[i, 0], normals[i, 1], normals[i, 2] = _unit(normals[i, 0], normals[i, 1], normals[i, 2])


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


def placed(
    vertices: Floats,
    faces: Ints,
    points: Floats,
    on: Ints,
    border: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    edge: float,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Weights of the corners (k, 3) of points (k, 3) on faces ``on`` (k,), and whether they lie on the border (k,).

    Parameters
    ----------
    border : (m, 3) and (n,) bool
        Whether the edge facing a face's corner is one, and whether a vertex lies on one.
    edge : float
        A weight up to this puts a point on the opposite edge.
    """
    weights, bordering = np.empty((len(points), 3)), np.empty(len(points), bool)
    _placed(
        _frozen(vertices, np.float64),
        _frozen(faces, np.int64),
        _frozen(points, np.float64),
        _frozen(on, np.int64),
        _frozen(border[0], np.bool_),
        _frozen(border[1], np.bool_),
        edge,
        weights,
        bordering,
    )
    return weights, bordering


def normals_within(normals: Floats, corners: Ints, weights: Floats) -> Floats:
    """Unit normals at points of faces with these corners and weights, (k, 3)."""
    found = np.empty((len(corners), 3))
    _within(_frozen(normals, np.float64), _frozen(corners, np.int64), _frozen(weights, np.float64), found)
    return found


@compiled()
def _placed(
    vertices: Floats,
    faces: Ints,
    points: Floats,
    on: Ints,
    border_opposite: NDArray[np.bool_],
    border_vertex: NDArray[np.bool_],
    edge: float,
    weights: Floats,
    bordering: NDArray[np.bool_],
) -> None:
    for q in range(len(points)):
        f = on[q]
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        d00, d01, d11, d20, d21 = 0.0, 0.0, 0.0, 0.0, 0.0
        for axis in range(3):
            ab = vertices[b, axis] - vertices[a, axis]
            ac = vertices[c, axis] - vertices[a, axis]
            ap = points[q, axis] - vertices[a, axis]
            d00 += ab * ab
            d01 += ab * ac
            d11 += ac * ac
            d20 += ap * ab
            d21 += ap * ac
        area = d00 * d11 - d01 * d01
        v, w = 0.0, 0.0
        if area > 1e-14 * max(d00 * d11, 2.2250738585072014e-308):
            v, w = (d11 * d20 - d01 * d21) / area, (d00 * d21 - d01 * d20) / area
        u = min(max(1.0 - v - w, 0.0), 1.0)
        v, w = min(max(v, 0.0), 1.0), min(max(w, 0.0), 1.0)
        total = u + v + w
        weights[q, 0], weights[q, 1], weights[q, 2] = u / total, v / total, w / total
        touched, most, outside = False, 0, 0
        for corner in range(3):
            if weights[q, corner] <= edge:
                outside += 1
                touched |= border_opposite[f, corner]
            if weights[q, corner] > weights[q, most]:
                most = corner
        bordering[q] = touched or (outside == 2 and border_vertex[faces[f, most]])


@compiled()
def _within(normals: Floats, corners: Ints, weights: Floats, found: Floats) -> None:
    for q in range(len(corners)):
        x, y, z = 0.0, 0.0, 0.0
        for k in range(3):
            i, weight = corners[q, k], weights[q, k]
            x += weight * normals[i, 0]
            y += weight * normals[i, 1]
            z += weight * normals[i, 2]
        found[q, 0], found[q, 1], found[q, 2] = _unit(x, y, z)


def cotangents(vertices: Floats, faces: Ints, largest: float) -> Floats:
    """Cotangents of the inner angles at the three corners, at most so large, (m, 3)."""
    found = np.empty((len(faces), 3))
    _cotangents(_frozen(vertices, np.float64), _frozen(faces, np.int64), largest, found)
    return found


def angle_change(before: Floats, after: Floats, faces: Ints) -> float:
    """Mean change of the triangles' angles between two shapes (n, 3), in radians."""
    shapes = _frozen(before, np.float64), _frozen(after, np.float64)
    return float(_angle_change(*shapes, _frozen(faces, np.int64)))


def area_ratios(before: Floats, after: Floats, faces: Ints) -> tuple[Floats, NDArray[np.bool_]]:
    """Areas after over those before, (m,), and which triangles then face against their surroundings, (m,)."""
    ratio, over = np.empty(len(faces)), np.empty(len(faces), bool)
    normals = _frozen(vertex_normals(after, faces), np.float64)
    shapes = _frozen(before, np.float64), _frozen(after, np.float64)
    _area_ratios(*shapes, normals, _frozen(faces, np.int64), ratio, over)
    return ratio, over


@compiled()
def _corner(vertices: Floats, i: int, j: int, k: int) -> Any:
    """Twice the area, and the cosine times both sides, of the angle at vertex i towards j and k."""
    ux, uy, uz, vx, vy, vz = sides(vertices, i, j, k)
    x, y, z = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    return np.sqrt(x * x + y * y + z * z), ux * vx + uy * vy + uz * vz


@compiled()
def _cotangents(vertices: Floats, faces: Ints, largest: float, found: Floats) -> None:
    for f in range(len(faces)):
        for corner in range(3):
            i, j, k = faces[f, corner], faces[f, (corner + 1) % 3], faces[f, (corner + 2) % 3]
            sine, cosine = _corner(vertices, i, j, k)
            found[f, corner] = min(cosine / max(sine, 1e-300), largest)


@compiled()
def _angle_change(before: Floats, after: Floats, faces: Ints) -> float:
    total = 0.0
    for f in range(len(faces)):
        for corner in range(3):
            i, j, k = faces[f, corner], faces[f, (corner + 1) % 3], faces[f, (corner + 2) % 3]
            s, c = _corner(before, i, j, k)
            t, d = _corner(after, i, j, k)
            total += abs(math.atan2(t * c - d * s, d * c + t * s))  # the difference of both angles
    return total / max(3 * len(faces), 1)


@compiled()
def _area_ratios(
    before: Floats, after: Floats, normals: Floats, faces: Ints, ratio: Floats, over: NDArray[np.bool_]
) -> None:
    for f in range(len(faces)):
        a, b, c = faces[f, 0], faces[f, 1], faces[f, 2]
        area, _ = _corner(before, a, b, c)
        x, y, z = _cross(after, faces, f)
        ratio[f] = np.sqrt(x * x + y * y + z * z) / max(area, 1e-300)
        over[f] = (
            x * (normals[a, 0] + normals[b, 0] + normals[c, 0])
            + y * (normals[a, 1] + normals[b, 1] + normals[c, 1])
            + z * (normals[a, 2] + normals[b, 2] + normals[c, 2])
        ) < 0.0
