"""Equation 8 and its updates in plain numpy: to be read beside the paper, and what the compiled kernels must equal."""

from __future__ import annotations

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.registration.energy import Regulariser


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
