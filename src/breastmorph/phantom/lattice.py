"""The fixed topology: a mirror-symmetric lattice of triangles laid on the bare mean torso.

Half a trunk is a lattice of columns (front midline round to the back midline) and rows (waist to neck).
A rectangle is left out for the arm, and a tube grows from its rim. The lattice is laid coarse, relaxed on the
implicit surface, halved, relaxed again. Columns and rows are closer where the breasts will be.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix, diags

from breastmorph.mesh.remeshing.symmetry import whole_of_half
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh
from breastmorph.phantom.bare_surface import (
    ARM_DIRECTION,
    ARM_LENGTH,
    NECK_LEVEL,
    SHOULDER_JOINT,
    WAIST_LEVEL,
    axis_depth,
    project,
)

_HALVINGS = 2
_COLUMNS, _ROWS, _RINGS = 23, 29, 6  # coarse cells
_ARM_COLUMNS, _ARM_ROWS = (15, 18), (16, 25)  # the left-out rectangle, coarse
# Wanted cell sizes in mm after the last halving: columns front to back, rows waist to neck, rings.
_COLUMN_SIZE = np.interp(np.arange(_COLUMNS) + 0.5, [0, 12, 15, 23], [2.9, 2.9, 4.5, 7.5])
_ROW_SIZE = np.interp(np.arange(_ROWS) + 0.5, [0, 3, 5, 19, 23, 29], [6.0, 5.5, 2.9, 2.9, 4.0, 4.5])
_RING_SIZE = 6.0


@dataclass(frozen=True, eq=False)
class Lattice:
    """The mean bare torso on the fixed topology.

    Attributes
    ----------
    points : (n, 3) float
    faces : (m, 3) int
    mirror : (n,) int
        The vertex that is this one's mirror image across x = 0.
    """

    points: Floats
    faces: Ints
    mirror: Ints


@lru_cache(maxsize=1)
def lattice() -> Lattice:
    """Lay the lattice (about a second; kept)."""
    points = _first_guess()
    for level in range(_HALVINGS + 1):
        half = _half(level)
        if level:
            points = _halve(_half(level - 1), half, points)
        points = _relax(half, points, iterations=(120, 40, 16)[level])
    return _mirrored(half, points)


@dataclass(frozen=True, eq=False)
class _Half:
    """One half of the lattice at one level: cells as quads of vertex ids and what holds each vertex."""

    ids: Ints  # (columns + 1, rows + 1), -1 inside the arm's rectangle
    rings: Ints  # (rings + 1, k): ring 0 is the rectangle's rim
    quads: Ints
    edges: Ints
    sizes: Floats
    n: int

    @property
    def midline(self) -> Ints:
        return np.concatenate([self.ids[0], self.ids[-1]])


@lru_cache(maxsize=4)
def _half(level: int) -> _Half:
    k = 2**level
    columns, rows, n_rings = _COLUMNS * k, _ROWS * k, _RINGS * k
    (c0, c1), (r0, r1) = (np.array(_ARM_COLUMNS) * k, np.array(_ARM_ROWS) * k)
    ids = np.full((columns + 1, rows + 1), -1)
    keep = np.ones_like(ids, bool)
    keep[c0 + 1 : c1, r0 + 1 : r1] = False
    ids[keep] = np.arange(keep.sum())
    # Rim of the rectangle, counter-clockwise seen from outside (columns run from the front backwards).
    rim = [(c, r0) for c in range(c0, c1)] + [(c1, r) for r in range(r0, r1)]
    rim += [(c, r1) for c in range(c1, c0, -1)] + [(c0, r) for r in range(r1, r0, -1)]
    ring0 = np.array([ids[c, r] for c, r in rim])
    later = keep.sum() + np.arange(n_rings * len(rim)).reshape(n_rings, -1)
    rings = np.vstack([ring0, later])
    n = int(rings.max()) + 1

    coarse_size = 2.0 ** (_HALVINGS - level)
    column_size = np.repeat(_COLUMN_SIZE, k) * coarse_size
    row_size = np.repeat(_ROW_SIZE, k) * coarse_size
    quads, edges, sizes = [], [], []
    for c in range(columns):
        for r in range(rows):
            if not (c0 <= c < c1 and r0 <= r < r1):
                quads.append([ids[c, r], ids[c + 1, r], ids[c + 1, r + 1], ids[c, r + 1]])
    for a, b, size in (
        (ids[:-1], ids[1:], np.broadcast_to(column_size[:, None], ids[1:].shape)),
        (ids[:, :-1], ids[:, 1:], np.broadcast_to(row_size[None, :], ids[:, 1:].shape)),
    ):
        good = (a >= 0) & (b >= 0)
        edges.append(np.stack([a[good], b[good]], axis=1))
        sizes.append(size[good])
    around = np.roll(rings, -1, axis=1)
    for i in range(n_rings):
        quads.extend(np.stack([rings[i], around[i], around[i + 1], rings[i + 1]], axis=1).tolist())
        edges += [np.stack([rings[i], rings[i + 1]], 1), np.stack([rings[i + 1], around[i + 1]], 1)]
        sizes += [np.full(len(rim), _RING_SIZE * coarse_size), np.full(len(rim), 4.0 * coarse_size)]
    return _Half(ids, rings, np.array(quads), np.concatenate(edges), np.concatenate(sizes), n)


def _first_guess() -> Floats:
    half = _half(0)
    angle = np.concatenate([[0.0], np.cumsum(_COLUMN_SIZE)])
    angle *= np.pi / angle[-1]
    level = np.concatenate([[0.0], np.cumsum(_ROW_SIZE)])
    level = WAIST_LEVEL + level * (NECK_LEVEL - WAIST_LEVEL) / level[-1]
    points = np.zeros((half.n, 3))
    for c, r in np.argwhere(half.ids >= 0):
        radius = np.interp(level[r], [-360, -20, 20, 60], [125.0, 125.0, 80.0, 55.0])
        points[half.ids[c, r]] = [
            radius * np.sin(angle[c]),
            level[r],
            axis_depth(level[r : r + 1])[0] + radius * np.cos(angle[c]),
        ]
    rim = points[half.rings[0]]
    for i, ring in enumerate(half.rings[1:], start=1):
        along = i / (len(half.rings) - 1)
        tube = rim - rim.mean(axis=0)
        centre = SHOULDER_JOINT + ARM_LENGTH * along * ARM_DIRECTION
        flat = tube - np.outer(tube @ ARM_DIRECTION, ARM_DIRECTION)
        flat *= 48.0 / np.linalg.norm(flat, axis=1, keepdims=True)
        points[ring] = centre + flat
    return points


def _halve(coarse: _Half, fine: _Half, points: Floats) -> Floats:
    """Positions on the next level: old vertices stay, new ones lie between."""
    out = np.zeros((fine.n, 3))
    sets = [(coarse.ids, fine.ids)]
    closed = np.column_stack([coarse.rings, coarse.rings[:, :1]])
    closed_fine = np.column_stack([fine.rings, fine.rings[:, :1]])
    sets.append((closed, closed_fine))
    for old, new in sets:
        grid = np.where((old >= 0)[..., None], points[old], np.nan)
        big = np.full((*new.shape, 3), np.nan)
        big[::2, ::2] = grid
        big[1::2, ::2] = 0.5 * (grid[:-1] + grid[1:])
        big[:, 1::2] = 0.5 * (big[:, :-1:2] + big[:, 2::2])
        good = (new >= 0) & np.isfinite(big[..., 0])
        out[new[good]] = big[good]
    return out


def _relax(half: _Half, points: Floats, iterations: int) -> Floats:
    average = _average(half)
    waist, neck = half.ids[:, 0], half.ids[:, -1]
    stump = half.rings[-1]
    waist, neck = waist[waist >= 0], neck[neck >= 0]
    for _ in range(iterations):
        points = project(points + 0.7 * (average @ points - points), steps=1)
        for _ in range(2):
            points[half.midline, 0] = 0.0
            points[waist, 1] = WAIST_LEVEL
            # The cut through the neck rises towards the back.
            points[neck, 1] = NECK_LEVEL + 0.15 * (28.0 - points[neck, 2])
            beyond = (points[stump] - SHOULDER_JOINT) @ ARM_DIRECTION - ARM_LENGTH
            points[stump] -= beyond[:, None] * ARM_DIRECTION
            border = np.concatenate([waist, neck, stump])
            points[border] = project(points[border], steps=1)
    points = project(points, steps=3)
    points[half.midline, 0] = 0.0
    return points


def _average(half: _Half) -> csr_matrix:
    i, j = half.edges.T
    weight = 1.0 / half.sizes
    matrix = coo_matrix((np.r_[weight, weight], (np.r_[i, j], np.r_[j, i])), shape=(half.n, half.n)).tocsr()
    return diags(1.0 / np.asarray(matrix.sum(axis=1)).ravel()) @ matrix


def _mirrored(half: _Half, points: Floats) -> Lattice:
    q = half.quads
    # Split along the shorter diagonal; the same choice on both sides keeps the topology symmetric.
    first = np.linalg.norm(points[q[:, 0]] - points[q[:, 2]], axis=1)
    second = np.linalg.norm(points[q[:, 1]] - points[q[:, 3]], axis=1)
    a = np.where((first <= second)[:, None], q[:, [0, 1, 2]], q[:, [0, 1, 3]])
    b = np.where((first <= second)[:, None], q[:, [0, 2, 3]], q[:, [1, 2, 3]])
    faces = np.concatenate([a, b])
    mesh, mirror = whole_of_half(TriangleMesh(points, faces))
    return Lattice(mesh.vertices, mesh.faces, mirror)
