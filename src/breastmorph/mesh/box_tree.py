"""A search tree of boxes for surfaces of millions of faces: built in a fraction of the time and memory of igl's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.kernels import compiled
from breastmorph.mesh.topology import MANY

_LEAF = 4  # faces in a leaf at most
_BITS = 10  # of a place on the curve along each axis
_DEPTH = 64  # of the stack of a search: one entry a level

_Indices = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class BoxTree:
    """Boxes around faces that lie together, two in one up to the root.

    The faces stand in the order of a curve through space, or halved across the longest side again and again, and up to
    ``_LEAF`` that follow each other are in one box. Box i holds the boxes 2 i + 1 and 2 i + 2, so that nothing but the
    boxes is kept. Answers are exact.

    Attributes
    ----------
    vertices : (n, 3) float
    corners : (m, 3) int32
        Of the faces, in the tree's order.
    order : (m,) int32
        Which face of the mesh each of them is.
    boxes : (b, 2, 3) float
        Least and greatest corner.
    """

    vertices: Floats
    corners: _Indices
    order: _Indices
    boxes: Floats

    @classmethod
    def of(cls, vertices: Floats, faces: Ints) -> BoxTree:
        """The tree of a surface with at least one face."""
        middles = vertices[faces[:, 0]] + vertices[faces[:, 1]] + vertices[faces[:, 2]]
        order = _along_a_curve(middles).astype(np.int32)
        n_leaves = 1 << (-(-len(faces) // _LEAF) - 1).bit_length()
        if len(faces) <= MANY:  # boxes that overlap less are asked in half the time, but take longer to make
            order = order[_halved(np.ascontiguousarray(middles[order].T), n_leaves)]
        corners = faces[order].astype(np.int32)
        boxes = np.empty((2 * n_leaves - 1, 2, 3))
        _fill(vertices, corners, boxes, n_leaves)
        return cls(vertices, corners, order, boxes)

    def closest(self, queries: Floats) -> tuple[Floats, Ints, Floats]:
        """Squared distance (k,), face (k,) and closest point (k, 3) of each query (k, 3)."""
        order = _along_a_curve(queries)  # what the last one touched is still in the processor's cache
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        squared, place, points = _closest(self.vertices, self.corners, self.boxes, queries[order])
        return squared[back], self.order[place[back]].astype(np.int64), points[back]

    def first_hit(self, origins: Floats, directions: Floats) -> tuple[Ints, Floats, Floats]:
        """First face that each ray meets (k,), -1 where none; how far along (k,); weights of corners 1, 2 (k, 2)."""
        place, distance, uv = _first_hit(self.vertices, self.corners, self.boxes, origins, directions)
        return np.where(place >= 0, self.order[place], -1), distance, uv


def _along_a_curve(points: Floats) -> Ints:
    """The order in which Morton's curve passes points (k, 3), (k,)."""
    key = np.zeros(len(points), np.uint32)
    size = max((float(np.ptp(along)) for along in points.T if len(along)), default=0.0)
    for axis, along in enumerate(points.T if size > 0.0 else ()):
        place = (along - along.min()) * ((2**_BITS - 1) / size)
        key |= _with_gaps(place.astype(np.uint32)) << np.uint32(axis)
    low, high = key.astype(np.uint16), (key >> np.uint32(16)).astype(np.uint16)
    order = np.argsort(low, kind="stable")  # numbers of 16 bits are sorted by counting: twice that is quicker
    return order[np.argsort(high[order], kind="stable")]


def _with_gaps(numbers: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Two zeros behind every one of the lowest ten bits."""
    for shift, mask in ((16, 0x030000FF), (8, 0x0300F00F), (4, 0x030C30C3), (2, 0x09249249)):
        numbers = (numbers | (numbers << np.uint32(shift))) & np.uint32(mask)
    return numbers


@compiled()
def _halved(middles: Floats, n_leaves: int) -> Ints:
    """An order of faces with these middles (3, m): both halves of a box's leaves are parted across its longest side."""
    m = middles.shape[1]
    places = np.arange(m)
    size = n_leaves
    while size > 1:
        for leaf in range(0, n_leaves, size):
            begin, end = _begin(leaf, m, n_leaves), _begin(leaf + size, m, n_leaves)
            longest, length = 0, -1.0
            for axis in range(3):
                low, high = np.inf, -np.inf
                for i in range(begin, end):
                    x = middles[axis, places[i]]
                    low, high = min(low, x), max(high, x)
                if high - low > length:
                    longest, length = axis, high - low
            _part_at(middles[longest], places, begin, end - 1, _begin(leaf + size // 2, m, n_leaves))
        size //= 2
    return places


@compiled()
def _part_at(keys: Floats, places: Ints, low: int, high: int, middle: int) -> None:
    """Rearrange places ``low`` to ``high`` so that no key before ``middle`` is larger than one behind it (Hoare)."""
    while low < high:
        a, b, c = keys[places[low]], keys[places[(low + high) // 2]], keys[places[high]]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = low, high
        while i <= j:
            while keys[places[i]] < pivot:
                i += 1
            while keys[places[j]] > pivot:
                j -= 1
            if i <= j:
                places[i], places[j] = places[j], places[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@compiled()
def _begin(leaf: int, n_faces: int, n_leaves: int) -> int:
    """First face of a leaf: all hold nearly as many."""
    return leaf * n_faces // n_leaves


@compiled()
def _fill(vertices: Floats, corners: _Indices, boxes: Floats, n_leaves: int) -> None:
    for leaf in range(n_leaves):
        i = n_leaves - 1 + leaf
        begin, end = _begin(leaf, len(corners), n_leaves), _begin(leaf + 1, len(corners), n_leaves)
        for axis in range(3):
            low, high = np.inf, -np.inf
            for face in range(begin, end):
                for k in range(3):
                    x = vertices[corners[face, k], axis]
                    low, high = min(low, x), max(high, x)
            boxes[i, 0, axis], boxes[i, 1, axis] = low, high
    for i in range(n_leaves - 2, -1, -1):
        for axis in range(3):
            boxes[i, 0, axis] = min(boxes[2 * i + 1, 0, axis], boxes[2 * i + 2, 0, axis])
            boxes[i, 1, axis] = max(boxes[2 * i + 1, 1, axis], boxes[2 * i + 2, 1, axis])


@compiled()
def _to_box(boxes: Floats, i: int, x: float, y: float, z: float) -> float:
    """Squared distance of a point from a box."""
    dx = max(boxes[i, 0, 0] - x, x - boxes[i, 1, 0], 0.0)
    dy = max(boxes[i, 0, 1] - y, y - boxes[i, 1, 1], 0.0)
    dz = max(boxes[i, 0, 2] - z, z - boxes[i, 1, 2], 0.0)
    return dx * dx + dy * dy + dz * dz


@compiled()
def _to_sides(vertices: Floats, corners: _Indices, face: int, x: float, y: float, z: float) -> float:
    """Squared distance of a point from the box around one triangle."""
    a, b, c = vertices[corners[face, 0]], vertices[corners[face, 1]], vertices[corners[face, 2]]
    dx = max(min(a[0], b[0], c[0]) - x, x - max(a[0], b[0], c[0]), 0.0)
    dy = max(min(a[1], b[1], c[1]) - y, y - max(a[1], b[1], c[1]), 0.0)
    dz = max(min(a[2], b[2], c[2]) - z, z - max(a[2], b[2], c[2]), 0.0)
    return dx * dx + dy * dy + dz * dz


@compiled()
def sides(vertices: Floats, i: int, j: int, k: int) -> Any:
    """The two sides of a triangle that leave its first corner i: (x, y, z) of one, then of the other."""
    return (
        vertices[j, 0] - vertices[i, 0],
        vertices[j, 1] - vertices[i, 1],
        vertices[j, 2] - vertices[i, 2],
        vertices[k, 0] - vertices[i, 0],
        vertices[k, 1] - vertices[i, 1],
        vertices[k, 2] - vertices[i, 2],
    )


@compiled()
def _part(numerator: float, denominator: float) -> float:
    """How far along a side, within it; 0 on a side without length."""
    return min(max(numerator / denominator, 0.0), 1.0) if denominator > 0.0 else 0.0


@compiled()
def _in_triangle(vertices: Floats, corners: _Indices, face: int, x: float, y: float, z: float) -> Any:
    """Closest point of a triangle to a point, as offset from that point: (x, y, z)."""
    i = corners[face, 0]
    ax, ay, az = vertices[i, 0] - x, vertices[i, 1] - y, vertices[i, 2] - z
    ux, uy, uz, vx, vy, vz = sides(vertices, i, corners[face, 1], corners[face, 2])
    uu, uv, vv = ux * ux + uy * uy + uz * uz, ux * vx + uy * vy + uz * vz, vx * vx + vy * vy + vz * vz
    ua, va = -(ux * ax + uy * ay + uz * az), -(vx * ax + vy * ay + vz * az)
    area = uu * vv - uv * uv
    s, t = vv * ua - uv * va, uu * va - uv * ua
    if area > 0.0 and s >= 0.0 and t >= 0.0 and s + t <= area:
        s, t = s / area, t / area
        return ax + s * ux + t * vx, ay + s * uy + t * vy, az + s * uz + t * vz
    # Outside, the closest point is on one of the sides.
    s = _part(ua, uu)
    bx, by, bz = ax + s * ux, ay + s * uy, az + s * uz
    least = bx * bx + by * by + bz * bz
    t = _part(va, vv)
    cx, cy, cz = ax + t * vx, ay + t * vy, az + t * vz
    square = cx * cx + cy * cy + cz * cz
    if square < least:
        least, bx, by, bz = square, cx, cy, cz
    t = _part(uu - uv - ua + va, uu - 2.0 * uv + vv)
    s = 1.0 - t
    cx, cy, cz = ax + s * ux + t * vx, ay + s * uy + t * vy, az + s * uz + t * vz
    if cx * cx + cy * cy + cz * cz < least:
        bx, by, bz = cx, cy, cz
    return bx, by, bz


@compiled()
def _closest(vertices: Floats, corners: _Indices, boxes: Floats, queries: Floats) -> Any:
    m, first_leaf = len(corners), len(boxes) // 2
    n = len(queries)
    squared, place, points = np.empty(n), np.empty(n, np.int64), np.empty((n, 3))
    stack, away = np.empty(_DEPTH, np.int64), np.empty(_DEPTH)
    best = 0
    for q in range(len(queries)):
        x, y, z = queries[q, 0], queries[q, 1], queries[q, 2]
        # Queries that follow each other mostly lie together: the last one's face is a good bound to begin with.
        px, py, pz = _in_triangle(vertices, corners, best, x, y, z)
        least = px * px + py * py + pz * pz
        stack[0], away[0], depth = 0, _to_box(boxes, 0, x, y, z), 1
        while depth:
            depth -= 1
            i = stack[depth]
            if away[depth] >= least:
                continue
            if i >= first_leaf:
                leaf = i - first_leaf
                for face in range(_begin(leaf, m, first_leaf + 1), _begin(leaf + 1, m, first_leaf + 1)):
                    if _to_sides(vertices, corners, face, x, y, z) >= least:
                        continue
                    cx, cy, cz = _in_triangle(vertices, corners, face, x, y, z)
                    square = cx * cx + cy * cy + cz * cz
                    if square < least:
                        least, best, px, py, pz = square, face, cx, cy, cz
                continue
            near, far = 2 * i + 1, 2 * i + 2
            to_near, to_far = _to_box(boxes, near, x, y, z), _to_box(boxes, far, x, y, z)
            if to_far < to_near:
                near, far, to_near, to_far = far, near, to_far, to_near
            if to_far < least:
                stack[depth], away[depth] = far, to_far
                depth += 1
            if to_near < least:
                stack[depth], away[depth] = near, to_near
                depth += 1
        squared[q], place[q] = least, best
        points[q, 0], points[q, 1], points[q, 2] = x + px, y + py, z + pz
    return squared, place, points


@compiled()
def _into_box(boxes: Floats, i: int, origin: Floats, direction: Floats, most: float) -> float:
    """How far along a ray a box begins, inf where it is missed or begins behind ``most``."""
    enter, leave = 0.0, most
    for axis in range(3):
        low, high = boxes[i, 0, axis] - origin[axis], boxes[i, 1, axis] - origin[axis]
        if direction[axis] == 0.0:
            if low > 0.0 or high < 0.0:
                return np.inf
            continue
        one, other = low / direction[axis], high / direction[axis]
        enter, leave = max(enter, min(one, other)), min(leave, max(one, other))
    return enter if enter <= leave * (1.0 + 1e-12) else np.inf  # a flat box is met in spite of rounding


@compiled()
def _through(vertices: Floats, corners: _Indices, face: int, origin: Floats, direction: Floats) -> Any:
    """How far along a ray it meets a triangle, inf where it does not, and the weights of corners 1 and 2."""
    i = corners[face, 0]
    ax, ay, az = origin[0] - vertices[i, 0], origin[1] - vertices[i, 1], origin[2] - vertices[i, 2]
    ux, uy, uz, vx, vy, vz = sides(vertices, i, corners[face, 1], corners[face, 2])
    dx, dy, dz = direction[0], direction[1], direction[2]
    nx, ny, nz = uy * vz - uz * vy, uz * vx - ux * vz, ux * vy - uy * vx
    slope = -(nx * dx + ny * dy + nz * dz)
    if slope == 0.0:
        return np.inf, 0.0, 0.0
    tx, ty, tz = ay * dz - az * dy, az * dx - ax * dz, ax * dy - ay * dx
    s, t = (vx * tx + vy * ty + vz * tz) / slope, -(ux * tx + uy * ty + uz * tz) / slope
    way = (nx * ax + ny * ay + nz * az) / slope
    if way < 0.0 or s < -1e-12 or t < -1e-12 or s + t > 1.0 + 1e-12:
        return np.inf, 0.0, 0.0
    return way, s, t


@compiled()
def _first_hit(
    vertices: Floats, corners: _Indices, boxes: Floats, origins: Floats, directions: Floats
) -> Any:
    m, first_leaf, n = len(corners), len(boxes) // 2, len(origins)
    place, distance, uv = np.full(n, -1), np.full(n, np.inf), np.zeros((n, 2))
    stack = np.empty(_DEPTH, np.int64)
    for q in range(n):
        stack[0], depth = 0, 1
        while depth:
            depth -= 1
            i = stack[depth]
            if _into_box(boxes, i, origins[q], directions[q], distance[q]) == np.inf:
                continue
            if i < first_leaf:
                stack[depth], stack[depth + 1] = 2 * i + 1, 2 * i + 2
                depth += 2
                continue
            leaf = i - first_leaf
            for face in range(_begin(leaf, m, first_leaf + 1), _begin(leaf + 1, m, first_leaf + 1)):
                way, s, t = _through(vertices, corners, face, origins[q], directions[q])
                if way < distance[q]:
                    distance[q], place[q], uv[q, 0], uv[q, 1] = way, face, s, t
    return place, distance, uv
