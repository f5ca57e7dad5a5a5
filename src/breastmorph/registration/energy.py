"""Equation 8 and its updates: in plain numpy to be read beside the paper, and compiled; the system for the points."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.machine import compiled

# --------------------------------------------------------------------------------------------------------------------
# Equation 8 and its updates in plain numpy: to be read beside the paper, and what the compiled kernels are held to
# --------------------------------------------------------------------------------------------------------------------


def edge_vectors(points: Floats, edges: Ints) -> Floats:
    """From the second end of every edge to the first, (e, 3)."""
    return points[edges[:, 0]] - points[edges[:, 1]]


def equation_8(f: Regulariser, points: Floats, scales: Floats, rotations: Floats) -> float:
    """F_R of equation 8."""
    cell, edge, spoke = _members(f)
    rest, now = edge_vectors(f.rest, f.edges)[edge], edge_vectors(points, f.edges)[edge]
    turned = np.einsum("kab,kb->ka", rotations[cell], rest)
    gaps = ((now - scales[cell, None] * turned) ** 2).sum(axis=1)
    stretch = f.scale_stiffness * (scales[cell] - 1.0) ** 2 * (rest**2).sum(axis=1)
    other = f.edges[edge].sum(axis=1) - cell
    turns = ((rotations[cell] - rotations[np.where(spoke, other, cell)]) ** 2).sum(axis=(1, 2))
    inside = f.share * (gaps + stretch) + f.consistency * turns
    return float((f.cell_weights[cell] * f.edge_weights[edge] * inside).sum() / 6.0)


def best_scale(f: Regulariser, i: int, points: Floats, rotations: Floats, smallest: float) -> float:
    """s_i that minimises F_R while all else stays."""
    weight, rest, now = _cell(f, i, points)
    square = (weight * (rest**2).sum(axis=1)).sum()
    along = np.einsum("k,ka,ab,kb->", weight, now, rotations[i], rest)
    return max(smallest, (along + f.scale_stiffness * square) / ((1.0 + f.scale_stiffness) * square))


def best_rotation(f: Regulariser, i: int, points: Floats, scales: Floats, rotations: Floats) -> Floats:
    """R_i that minimises F_R while all else stays: tr(R S) is largest, by a singular value decomposition."""
    weight, rest, now = _cell(f, i, points)
    moment = f.cell_weights[i] * scales[i] * np.einsum("k,ka,kb->ab", weight, rest, now)
    members = slice(f.start[i], f.start[i + 1])
    spokes = f.members[members][f.share[members] == 1.0]
    others = f.edges[spokes].sum(axis=1) - i
    pull = f.consistency * (f.cell_weights[i] + f.cell_weights[others]) * f.edge_weights[spokes]
    moment += np.einsum("j,jab->ba", pull, rotations[others])
    u, _, vt = np.linalg.svd(moment)
    flip = np.diag([1.0, 1.0, np.sign(np.linalg.det(vt.T @ u.T))])
    return vt.T @ flip @ u.T


def edges_wanted(f: Regulariser, scales: Floats, rotations: Floats) -> Floats:
    """Right-hand side of the points' update, (n, 3): the edges that the cells would like, summed at their ends."""
    cell, edge, _ = _members(f)
    turned = np.einsum("kab,kb->ka", rotations[cell], edge_vectors(f.rest, f.edges)[edge])
    pull = (f.share * f.cell_weights[cell] * scales[cell] * f.edge_weights[edge] / 3.0)[:, None] * turned
    right = np.zeros_like(f.rest)
    np.add.at(right, f.edges[edge, 0], pull)
    np.subtract.at(right, f.edges[edge, 1], pull)
    return right


def _members(f: Regulariser) -> tuple[Ints, Ints, np.ndarray]:
    """Cell and edge of every membership, and whether the edge is a spoke of that cell, (k,) each."""
    return np.repeat(np.arange(len(f.start) - 1), np.diff(f.start)), f.members, f.share == 1.0


def _cell(f: Regulariser, i: int, points: Floats) -> tuple[Floats, Floats, Floats]:
    """Weights m w, edges at rest and now of one cell."""
    members = slice(f.start[i], f.start[i + 1])
    edges = f.members[members]
    weight = f.share[members] * f.edge_weights[edges]
    return weight, edge_vectors(f.rest, f.edges[edges]), edge_vectors(points, f.edges[edges])


# --------------------------------------------------------------------------------------------------------------------
# Compiled loops over cells: local scales and rotations, the right-hand side, the energy
# --------------------------------------------------------------------------------------------------------------------

_SMALLEST_SCALE = 1e-3  # eps


class Regulariser(NamedTuple):
    """F_R of equation 8: all of it that stays while points, scales and rotations are updated.

    It stands here and not in another file because a change of its fields must make numba compile again.

    Attributes
    ----------
    start, members, share, edges, opposite
        See :class:`breastmorph.registration.minimiser.Cells`.
    edge_weights : (e,) float
    rest : (n, 3) float
        The shape whose edges are kept.
    cell_weights : (n,) float
    consistency : float
        lambda.
    scale_stiffness : float
        mu.
    """

    start: Ints
    members: Ints
    share: Floats
    edges: Ints
    opposite: Ints
    edge_weights: Floats
    rest: Floats
    cell_weights: Floats
    consistency: float
    scale_stiffness: float


@compiled()
def fit_cells(
    f: Regulariser,
    points: Floats,
    scales: Floats,
    rotations: Floats,
    printed_scale: bool,
    printed_rotation: bool,
) -> None:
    """Update the scale and then the rotation of every cell in place, one cell after the other.

    Taking the neighbours' newest rotations (Gauss-Seidel) is what makes every single update lower F.
    """
    moment = np.empty((3, 3))  # E_i = sum m w e e'^T; one array for all cells, allocation is what costs here
    product = np.empty((3, 3))
    for i in range(len(f.start) - 1):
        moment[:] = 0.0
        rest_square = 0.0
        new_square = 0.0
        for slot in range(f.start[i], f.start[i + 1]):
            edge = f.members[slot]
            weight = f.share[slot] * f.edge_weights[edge]
            j, k = f.edges[edge, 0], f.edges[edge, 1]
            x, y, z = f.rest[j, 0] - f.rest[k, 0], f.rest[j, 1] - f.rest[k, 1], f.rest[j, 2] - f.rest[k, 2]
            u, v, w = points[j, 0] - points[k, 0], points[j, 1] - points[k, 1], points[j, 2] - points[k, 2]
            rest_square += weight * (x * x + y * y + z * z)
            new_square += weight * (u * u + v * v + w * w)
            u, v, w = weight * u, weight * v, weight * w
            moment[0, 0] += x * u
            moment[0, 1] += x * v
            moment[0, 2] += x * w
            moment[1, 0] += y * u
            moment[1, 1] += y * v
            moment[1, 2] += y * w
            moment[2, 0] += z * u
            moment[2, 1] += z * v
            moment[2, 2] += z * w
        if printed_scale:
            scales[i] = math.sqrt(max(new_square / max(rest_square, 1e-300), _SMALLEST_SCALE**2))
        else:
            trace = 0.0
            for a in range(3):
                for b in range(3):
                    trace += rotations[i, a, b] * moment[b, a]
            best = (trace + f.scale_stiffness * rest_square) / max(
                (1.0 + f.scale_stiffness) * rest_square, 1e-300
            )
            scales[i] = max(_SMALLEST_SCALE, best)
        pull = 1.0 if printed_rotation else f.cell_weights[i] * scales[i]
        for a in range(3):
            for b in range(3):
                moment[a, b] *= pull
        if f.consistency > 0.0:
            for slot in range(f.start[i], f.start[i + 1]):
                if f.share[slot] < 1.0:
                    continue
                edge = f.members[slot]
                other = f.edges[edge, 0] + f.edges[edge, 1] - i
                if printed_rotation:
                    weight = 0.5 * f.consistency * f.edge_weights[edge]
                else:
                    weight = (
                        f.consistency * (f.cell_weights[i] + f.cell_weights[other]) * f.edge_weights[edge]
                    )
                for a in range(3):
                    for b in range(3):
                        moment[a, b] += weight * rotations[other, b, a]
        _closest_rotation(moment, rotations[i], product)


@compiled()
def _closest_rotation(moment: Floats, rotation: Floats, m: Floats) -> None:
    """Rotation R with the largest tr(R S), in place, from where it stands: Newton steps among rotations."""
    for _ in range(12):
        for i in range(3):
            for j in range(3):
                m[i, j] = (
                    rotation[i, 0] * moment[0, j]
                    + rotation[i, 1] * moment[1, j]
                    + rotation[i, 2] * moment[2, j]
                )
        v0, v1, v2 = m[1, 2] - m[2, 1], m[2, 0] - m[0, 2], m[0, 1] - m[1, 0]
        trace = m[0, 0] + m[1, 1] + m[2, 2]
        size = abs(m[0, 0]) + abs(m[1, 1]) + abs(m[2, 2]) + 1e-300
        # The Hessian, and its leading minors a, minor and det.
        a, b, c = trace - m[0, 0], trace - m[1, 1], trace - m[2, 2]
        d, e, f = -0.5 * (m[0, 1] + m[1, 0]), -0.5 * (m[0, 2] + m[2, 0]), -0.5 * (m[1, 2] + m[2, 1])
        minor = a * b - d * d
        det = a * (b * c - f * f) - d * (d * c - f * e) + e * (d * f - b * e)
        if abs(v0) + abs(v1) + abs(v2) <= 1e-13 * size and trace > 0.0:
            # A stationary point is the maximum only where the Hessian is definite.
            if a >= 0.0 and minor >= 0.0 and det >= 0.0:
                return
            break
        if not (a > 1e-9 * size and minor > 1e-9 * size * size and det > 1e-9 * size**3):
            break
        w0 = (v0 * (b * c - f * f) - d * (v1 * c - f * v2) + e * (v1 * f - b * v2)) / det
        w1 = (a * (v1 * c - f * v2) - v0 * (d * c - f * e) + e * (d * v2 - v1 * e)) / det
        w2 = (a * (b * v2 - v1 * f) - d * (d * v2 - v1 * e) + v0 * (d * f - b * e)) / det
        if w0 * w0 + w1 * w1 + w2 * w2 > 1.0:
            break
        _turn(rotation, w0, w1, w2)
        if w0 * w0 + w1 * w1 + w2 * w2 < 1e-22:
            return
    _rotation_by_jacobi(moment, rotation)


@compiled()
def _turn(rotation: Floats, w0: float, w1: float, w2: float) -> None:
    """rotation <- exp([w]) rotation, in place, by the quaternion so that it stays orthonormal."""
    angle = math.sqrt(w0 * w0 + w1 * w1 + w2 * w2)
    half = 0.5 * angle
    ratio = 0.5 - angle * angle / 48.0 if angle < 1e-4 else math.sin(half) / angle
    q0, q1, q2, q3 = math.cos(half), ratio * w0, ratio * w1, ratio * w2
    for k in range(3):
        x, y, z = rotation[0, k], rotation[1, k], rotation[2, k]
        t0, t1, t2 = 2.0 * (q2 * z - q3 * y), 2.0 * (q3 * x - q1 * z), 2.0 * (q1 * y - q2 * x)
        rotation[0, k] = x + q0 * t0 + q2 * t2 - q3 * t1
        rotation[1, k] = y + q0 * t1 + q3 * t0 - q1 * t2
        rotation[2, k] = z + q0 * t2 + q1 * t1 - q2 * t0


@compiled()
def _rotation_by_jacobi(moment: Floats, rotation: Floats) -> None:
    """The same rotation from scratch: Horn's 4 x 4 matrix, its largest eigenvector by Jacobi sweeps."""
    s = moment.T  # rows: new, columns: rest
    n = np.empty((4, 4))
    n[0, 0] = s[0, 0] + s[1, 1] + s[2, 2]
    n[1, 1] = s[0, 0] - s[1, 1] - s[2, 2]
    n[2, 2] = -s[0, 0] + s[1, 1] - s[2, 2]
    n[3, 3] = -s[0, 0] - s[1, 1] + s[2, 2]
    n[0, 1] = n[1, 0] = s[2, 1] - s[1, 2]
    n[0, 2] = n[2, 0] = s[0, 2] - s[2, 0]
    n[0, 3] = n[3, 0] = s[1, 0] - s[0, 1]
    n[1, 2] = n[2, 1] = s[0, 1] + s[1, 0]
    n[1, 3] = n[3, 1] = s[0, 2] + s[2, 0]
    n[2, 3] = n[3, 2] = s[1, 2] + s[2, 1]
    v = np.eye(4)
    for _ in range(30):
        off = 0.0
        for p in range(3):
            for q in range(p + 1, 4):
                off += n[p, q] * n[p, q]
        diagonal = n[0, 0] ** 2 + n[1, 1] ** 2 + n[2, 2] ** 2 + n[3, 3] ** 2
        if off <= 1e-30 * (diagonal + 1e-300):
            break
        for p in range(3):
            for q in range(p + 1, 4):
                if n[p, q] == 0.0:
                    continue
                theta = (n[q, q] - n[p, p]) / (2.0 * n[p, q])
                sign = 1.0 if theta >= 0.0 else -1.0
                t = sign / (abs(theta) + math.sqrt(theta * theta + 1.0))
                c = 1.0 / math.sqrt(t * t + 1.0)
                sine = t * c
                for k in range(4):
                    x, y = n[k, p], n[k, q]
                    n[k, p], n[k, q] = c * x - sine * y, sine * x + c * y
                for k in range(4):
                    x, y = n[p, k], n[q, k]
                    n[p, k], n[q, k] = c * x - sine * y, sine * x + c * y
                for k in range(4):
                    x, y = v[k, p], v[k, q]
                    v[k, p], v[k, q] = c * x - sine * y, sine * x + c * y
    best = 0
    for k in range(1, 4):
        if n[k, k] > n[best, best]:
            best = k
    q0, q1, q2, q3 = v[0, best], v[1, best], v[2, best], v[3, best]
    length = math.sqrt(q0 * q0 + q1 * q1 + q2 * q2 + q3 * q3)
    q0, q1, q2, q3 = q0 / length, q1 / length, q2 / length, q3 / length
    rotation[0, 0] = q0 * q0 + q1 * q1 - q2 * q2 - q3 * q3
    rotation[1, 1] = q0 * q0 - q1 * q1 + q2 * q2 - q3 * q3
    rotation[2, 2] = q0 * q0 - q1 * q1 - q2 * q2 + q3 * q3
    rotation[0, 1], rotation[1, 0] = 2.0 * (q1 * q2 - q0 * q3), 2.0 * (q1 * q2 + q0 * q3)
    rotation[0, 2], rotation[2, 0] = 2.0 * (q1 * q3 + q0 * q2), 2.0 * (q1 * q3 - q0 * q2)
    rotation[1, 2], rotation[2, 1] = 2.0 * (q2 * q3 - q0 * q1), 2.0 * (q2 * q3 + q0 * q1)


@compiled()
def wanted_edges(f: Regulariser, scales: Floats, rotations: Floats) -> Floats:
    """Right-hand side of the regulariser, (n, 3): what the cells would like their edges to be, over 3."""
    right = np.zeros_like(f.rest)
    turn = np.empty((3, 3))
    for edge in range(len(f.edges)):
        j, k = f.edges[edge, 0], f.edges[edge, 1]
        turn[:] = 0.0
        for which in range(4):
            if which == 0:
                cell, share = j, 1.0
            elif which == 1:
                cell, share = k, 1.0
            else:
                cell, share = f.opposite[edge, which - 2], 0.5
                if cell < 0:
                    continue
            factor = share * f.cell_weights[cell] * scales[cell]
            for a in range(3):
                for b in range(3):
                    turn[a, b] += factor * rotations[cell, a, b]
        weight = f.edge_weights[edge] / 3.0
        x, y, z = f.rest[j, 0] - f.rest[k, 0], f.rest[j, 1] - f.rest[k, 1], f.rest[j, 2] - f.rest[k, 2]
        for a in range(3):
            value = weight * (turn[a, 0] * x + turn[a, 1] * y + turn[a, 2] * z)
            right[j, a] += value
            right[k, a] -= value
    return right


@compiled()
def regulariser_energy(f: Regulariser, points: Floats, scales: Floats, rotations: Floats) -> float:
    """F_R of equation 8, over 3 so that K is the Laplacian where all cell weights are 1."""
    total = 0.0
    for i in range(len(f.start) - 1):
        inside = 0.0
        for slot in range(f.start[i], f.start[i + 1]):
            edge = f.members[slot]
            j, k = f.edges[edge, 0], f.edges[edge, 1]
            square = 0.0
            length = 0.0
            for a in range(3):
                turned = 0.0
                for b in range(3):
                    turned += rotations[i, a, b] * (f.rest[j, b] - f.rest[k, b])
                gap = points[j, a] - points[k, a] - scales[i] * turned
                square += gap * gap
                length += (f.rest[j, a] - f.rest[k, a]) ** 2
            inside += (
                f.share[slot]
                * f.edge_weights[edge]
                * (square + f.scale_stiffness * (scales[i] - 1.0) ** 2 * length)
            )
            if f.share[slot] == 1.0 and f.consistency > 0.0:
                other = j + k - i
                turn = 0.0
                for a in range(3):
                    for b in range(3):
                        turn += (rotations[i, a, b] - rotations[other, a, b]) ** 2
                inside += f.consistency * f.edge_weights[edge] * turn
        total += f.cell_weights[i] * inside
    return total / 6.0


# --------------------------------------------------------------------------------------------------------------------
# Compiled: the factorisation of the points' system by dense fronts
# --------------------------------------------------------------------------------------------------------------------

_NARROW, _MIDDLE = 4, 16  # columns of a front ...
_ZEROS = (
    0.8,
    0.1,
    0.05,
)  # ... and the share of zeros with which a narrow, a middling and a wide one may be stored


class Fronts(NamedTuple):
    """Columns of a sparse Cholesky factor that go together.

    Attributes
    ----------
    first : (f + 1,) int
        Column at which each front begins; children come before their parents.
    row_start : (f + 1,) int
        Where its rows begin in ``rows``.
    rows : (r,) int
        Its own columns, then the rows below them, ascending.
    panel_start : (f + 1,) int
        Where its numbers begin: a row for every column, as long as the front has rows.
    above : (u,) int
        Where the rows below a front stand among its parent's rows, front after front ...
    above_start : (f + 1,) int
        ... and where each one's begin.
    last_child, sibling : (f,) int
        The last of its children, and the child before it of the same parent; -1 for none.
    place : (e + n,) int
        Where the entries of the edges, then those of the diagonal, stand among the numbers.
    vertex : (n,) int
        Which vertex each column is.
    """

    first: Ints
    row_start: Ints
    rows: Ints
    panel_start: Ints
    above: Ints
    above_start: Ints
    last_child: Ints
    sibling: Ints
    place: Ints
    vertex: Ints


@compiled()
def children_first(parent: Ints) -> Ints:
    """Columns in an order in which everyone's descendants come directly before it, (n,)."""
    n = len(parent)
    child, following = np.full(n, -1), np.full(n, -1)
    for j in range(n - 1, -1, -1):
        if parent[j] >= 0:
            following[j], child[parent[j]] = child[parent[j]], j
    order, stack, done = np.empty(n, np.int64), np.empty(n, np.int64), 0
    for root in range(n):
        if parent[root] >= 0:
            continue
        stack[0], depth = root, 1
        while depth:
            j = stack[depth - 1]
            if child[j] < 0:
                order[done] = j
                done += 1
                depth -= 1
            else:
                stack[depth] = child[j]
                child[j] = following[child[j]]
                depth += 1
    return order


@compiled()
def begin_fronts(parent: Ints, count: Ints) -> Ints:
    """Where fronts begin, (f + 1,), for columns with these parents and so many entries below the diagonal."""
    n = len(parent)
    first, fronts, entries = np.zeros(n + 1, np.int64), 0, 0
    for j in range(n):
        entries += count[j] + 1
        if j + 1 < n and parent[j] == j + 1:
            width = j + 2 - first[fronts]
            stored = width * (width + 1) // 2 + width * count[j + 1]
            share = _ZEROS[0] if width <= _NARROW else (_ZEROS[1] if width <= _MIDDLE else _ZEROS[2])
            if stored - entries - count[j + 1] - 1 <= share * stored:
                continue
        fronts += 1
        first[fronts], entries = j + 1, 0
    return first[: fronts + 1].copy()


@compiled()
def room_for_updates(f: Fronts) -> int:
    """How many numbers the updates that wait for their parents take at most, with that of the front in hand."""
    base, top, most = np.zeros(len(f.first) - 1, np.int64), 0, 0
    for s in range(len(base)):
        size = (f.above_start[s + 1] - f.above_start[s]) ** 2
        most = max(most, top + size)
        base[s], child = top, f.last_child[s]
        while child >= 0:
            base[s], child = base[child], f.sibling[child]
        top = base[s] + size
    return most


@compiled()
def factor_fronts(f: Fronts, panels: Floats, pool: Floats) -> None:
    """Cholesky factor of the matrix in ``panels``, in place; ``pool`` is room for the updates."""
    base, top = np.zeros(len(f.first) - 1, np.int64), 0
    for s in range(len(base)):
        k, m = f.first[s + 1] - f.first[s], f.row_start[s + 1] - f.row_start[s]
        n = m - k
        panel = panels[f.panel_start[s] : f.panel_start[s + 1]].reshape(k, m)
        update = pool[top : top + n * n].reshape(n, n)
        update[:] = 0.0
        low, child = top, f.last_child[s]
        while child >= 0:  # they lie on the stack directly below
            low = base[child]
            to = f.above[f.above_start[child] : f.above_start[child + 1]]
            _add_child(pool[low : low + len(to) ** 2].reshape(len(to), len(to)), to, panel, update)
            child = f.sibling[child]
        _eliminate(panel, update)
        base[s] = low
        if low < top:
            for i in range(n * n):
                pool[low + i] = pool[top + i]
        top = low + n * n


@compiled()
def _add_child(found: Floats, to: Ints, panel: Floats, update: Floats) -> None:
    """Add a child's update (lower half) to its parent's columns and update, given where its rows stand there."""
    k = len(panel)
    for i in range(len(to)):
        row, j = to[i], 0
        while j <= i and to[j] < k:
            panel[to[j], row] += found[i, j]
            j += 1
        while j <= i:
            update[row - k, to[j] - k] += found[i, j]
            j += 1


@compiled()
def _eliminate(panel: Floats, update: Floats) -> None:
    """Columns of the factor (k, m) in place of the matrix's, and what they take from the rows below (lower half)."""
    k, n = len(panel), len(update)
    for p in range(k):
        own = panel[p, p:]
        scale = 1.0 / math.sqrt(own[0])
        for i in range(len(own)):
            own[i] *= scale
        for q in range(p + 1, k):
            a, taken, other = panel[p, q], panel[p, q:], panel[q, q:]
            for i in range(len(other)):
                other[i] -= a * taken[i]
    for i in range(0, n - 1, 2):  # two rows and four columns at once: what is loaded is used eight times
        one, two = update[i, : i + 1], update[i + 1, : i + 1]
        for p in range(0, k - 3, 4):
            a, b, c, d = panel[p, k + i], panel[p + 1, k + i], panel[p + 2, k + i], panel[p + 3, k + i]
            row = k + i + 1
            e, g, h, o = panel[p, row], panel[p + 1, row], panel[p + 2, row], panel[p + 3, row]
            w, x, y, z = panel[p, k:row], panel[p + 1, k:row], panel[p + 2, k:row], panel[p + 3, k:row]
            for j in range(len(one)):
                one[j] -= (a * w[j] + b * x[j]) + (c * y[j] + d * z[j])
                two[j] -= (e * w[j] + g * x[j]) + (h * y[j] + o * z[j])
        for p in range(k - k % 4, k):
            a, e, w = panel[p, k + i], panel[p, k + i + 1], panel[p, k : k + i + 1]
            for j in range(len(one)):
                one[j] -= a * w[j]
                two[j] -= e * w[j]
        for p in range(k):
            update[i + 1, i + 1] -= panel[p, k + i + 1] ** 2
    if n % 2:
        one = update[n - 1]
        for p in range(k):
            a, w = panel[p, k + n - 1], panel[p, k:]
            for j in range(len(one)):
                one[j] -= a * w[j]


@compiled()
def solve_fronts(f: Fronts, panels: Floats, x: Floats) -> None:
    """Solve with the factor, in place, for right-hand sides (n, 3) in the order of its columns."""
    for s in range(len(f.first) - 1):
        k, m = f.first[s + 1] - f.first[s], f.row_start[s + 1] - f.row_start[s]
        rows = f.rows[f.row_start[s] : f.row_start[s + 1]]
        panel = panels[f.panel_start[s] : f.panel_start[s + 1]].reshape(k, m)
        for p in range(k):
            j, scale = rows[p], 1.0 / panel[p, p]
            a, b, c = x[j, 0] * scale, x[j, 1] * scale, x[j, 2] * scale
            x[j, 0], x[j, 1], x[j, 2] = a, b, c
            for i in range(p + 1, m):
                row, entry = rows[i], panel[p, i]
                x[row, 0] -= entry * a
                x[row, 1] -= entry * b
                x[row, 2] -= entry * c
    for s in range(len(f.first) - 2, -1, -1):
        k, m = f.first[s + 1] - f.first[s], f.row_start[s + 1] - f.row_start[s]
        rows = f.rows[f.row_start[s] : f.row_start[s + 1]]
        panel = panels[f.panel_start[s] : f.panel_start[s + 1]].reshape(k, m)
        for p in range(k - 1, -1, -1):
            j, scale = rows[p], 1.0 / panel[p, p]
            a, b, c = x[j, 0], x[j, 1], x[j, 2]
            for i in range(p + 1, m):
                row, entry = rows[i], panel[p, i]
                a -= entry * x[row, 0]
                b -= entry * x[row, 1]
                c -= entry * x[row, 2]
            x[j, 0], x[j, 1], x[j, 2] = a * scale, b * scale, c * scale
