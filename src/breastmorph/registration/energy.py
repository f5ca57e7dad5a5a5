"""Equation 8 and its updates, compiled: loops over the cells. ``tests/registration`` has them in plain numpy."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.kernels import compiled

SMALLEST_SCALE = 1e-3  # eps


class Regulariser(NamedTuple):
    """F_R of equation 8: all of it that stays while points, scales and rotations are updated.

    It stands here and not in another file because a change of its fields must make numba compile again.

    Attributes
    ----------
    start, members, share, edges, opposite
        See :class:`breastmorph.registration.prepared.Cells`.
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
            scales[i] = math.sqrt(max(new_square / max(rest_square, 1e-300), SMALLEST_SCALE**2))
        else:
            trace = 0.0
            for a in range(3):
                for b in range(3):
                    trace += rotations[i, a, b] * moment[b, a]
            best = (trace + f.scale_stiffness * rest_square) / max(
                (1.0 + f.scale_stiffness) * rest_square, 1e-300
            )
            scales[i] = max(SMALLEST_SCALE, best)
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
