"""Compiled search for the training shape nearest to each sample; see :mod:`breastmorph.evaluation.specificity`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from breastmorph.mesh.triangle_mesh import Bools, Floats
from breastmorph.registration.compiled import compiled

Singles = NDArray[np.float32]

BLOCK = 256  # vertices; the sum of so many single-precision lengths is good to seven digits
_SLACK = 1e-5  # relative rounding of a bound


# Sums may be reordered: that is what lets the compiler use vector registers.
@compiled(fastmath={"reassoc", "contract", "nsz"})
def _summed_distance(one: Singles, other: Singles) -> float:
    """Sum of the distances between corresponding points of (3, n), n a multiple of the block."""
    total = np.float64(0.0)
    for start in range(0, one.shape[1], BLOCK):
        part: np.float32 = np.float32(0.0)
        for v in range(start, min(start + BLOCK, one.shape[1])):
            x, y, z = one[0, v] - other[0, v], one[1, v] - other[1, v], one[2, v] - other[2, v]
            part += np.sqrt(x * x + y * y + z * z)
        total += part
    return total


@compiled()
def _add(points: Singles, mode: Singles, coefficient: np.float32) -> None:
    for axis in range(3):
        for v in range(points.shape[1]):
            points[axis, v] += coefficient * mode[axis, v]


@compiled()
def nearest_distances(
    shapes: Singles,
    leaf_shapes: Singles,
    block_shapes: Singles,
    modes: Singles,
    leaf_modes: Singles,
    block_modes: Singles,
    steps: Floats,
    coefficients: Singles,
    wanted: Bools,
    n_vertices: int,
    out: Floats,
) -> None:
    """Distance of each sample to its nearest shape for growing numbers of modes, into ``out`` (s, c).

    Parameters
    ----------
    shapes, modes : (k, 3, n), (q, 3, n) float32
        Deviations from the mean, and modes times their standard deviations; padded with zeros to full blocks.
    leaf_shapes, leaf_modes, block_shapes, block_modes : float32
        Sums over leaves and blocks of vertices, over the number of vertices.
    steps : (q,) float
        Mean length of a mode's vectors, mm.
    coefficients : (s, q) float32
    wanted : (q,) bool
        Whether 1, 2, ... q modes are asked for.
    """
    sample, leaf, block = np.empty_like(modes[0]), np.empty_like(leaf_modes[0]), np.empty_like(block_modes[0])
    lower = np.empty(len(shapes))
    for s in range(len(coefficients)):
        sample[:], leaf[:], block[:] = 0.0, 0.0, 0.0
        lower[:] = 0.0
        near = -1
        column = 0
        for m in range(len(modes)):
            c = coefficients[s, m]
            _add(sample, modes[m], c)
            _add(leaf, leaf_modes[m], c)
            _add(block, block_modes[m], c)
            # The sample moved by this much on average, so no distance fell by more.
            lower -= (1.0 + _SLACK) * abs(c) * steps[m]
            if not wanted[m]:
                continue
            if near < 0:
                for j in range(len(shapes)):
                    lower[j] = (1.0 - _SLACK) * _summed_distance(block, block_shapes[j])
                near = int(np.argmin(lower))
            best = _summed_distance(sample, shapes[near]) / n_vertices
            lower[near] = best
            last = near
            for j in range(len(shapes)):
                if j == last or lower[j] >= best:
                    continue
                lower[j] = max(lower[j], (1.0 - _SLACK) * _summed_distance(block, block_shapes[j]))
                if lower[j] >= best:
                    continue
                lower[j] = max(lower[j], (1.0 - _SLACK) * _summed_distance(leaf, leaf_shapes[j]))
                if lower[j] >= best:
                    continue
                lower[j] = _summed_distance(sample, shapes[j]) / n_vertices
                if lower[j] < best:
                    best, near = lower[j], j
            out[s, column] = best
            column += 1
