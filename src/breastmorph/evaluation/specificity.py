"""Specificity: how near the model's random shapes come to a real one, exact for every number of components.

The definition asks for the distance of every sample to every training shape. Three lower bounds of that distance
(a mean of vector lengths) leave little more than one full evaluation per sample:

- Blocks. The length of a mean vector is at most the mean length. With vertices in blocks b of n_b neighbours,
  mean |x - y| >= sum (n_b / n) |mean_b(x - y)|; blocks of 256 vertices first, leaves of 32 where that is not enough.
- Steps. Samples are nested: with m + 1 components a sample is that with m components plus one mode, which moves it by
  |c| mean |u| on average. By the triangle inequality no distance falls by more: a bound found with m components is
  one with m + 1, less that step.
- The nearest shape with m components is tried first with m + 1: it usually still is the nearest.

A shape is left unevaluated only where a bound proves it to be farther, so the result is that of the definition. It is
computed in 32-bit floats on deviations from the mean (about 1e-6 mm).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from breastmorph.evaluation.training_set import Curve, Regions
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.kernels import compiled
from breastmorph.model.shape_model import ShapeModel

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


_LEAF = 32  # vertices; 8 leaves make a block of the compiled search
_BATCH = 25  # samples between two signs of life


def draw_coefficients(model: ShapeModel, samples: int, seed: int) -> Floats:
    """Coefficients of random shapes, (samples, q).

    One stream of random numbers a component: fewer samples, or a truncated model, give the first of the same.
    """
    draws = [np.random.default_rng([seed, c]).standard_normal(samples) for c in range(model.n_components)]
    return np.reshape(draws, (model.n_components, samples)).T * model.deviations


def specificity(
    model: ShapeModel,
    shapes: NDArray[np.floating],
    regions: Regions,
    samples: int = 1000,
    seed: int = 0,
    components: Ints | None = None,
    on_sample: Callable[[], None] = lambda: None,
) -> dict[str, Curve]:
    """Distance of a model's samples to the nearest training shape, by corresponding vertices.

    Parameters
    ----------
    model : ShapeModel
    shapes : (k, n, 3) float
        Training shapes in the model's frame, mm.
    regions : mapping from name to (n,) bool
        The nearest shape is looked for in each region by itself.
    samples : int
    seed : int
    components : (c,) int, optional
        Rising numbers of components from 1; all when not given.
    on_sample : callable, optional
        Called after every sample of every region.

    Returns
    -------
    dict from region to Curve
    """
    if samples < 1:
        raise BreastMorphError("{samples} samples", "Draw at least 1", samples=samples)
    counts = np.arange(1, model.n_components + 1) if components is None else np.asarray(components)
    drawn = draw_coefficients(model, samples, seed)
    scores = drawn / np.where(model.deviations > 0.0, model.deviations, 1.0)
    curves = {}
    for name, inside in regions.items():
        values = _in_region(model, shapes, np.flatnonzero(inside), scores, counts, on_sample)
        curves[name] = Curve("point", name, counts, values)
    return curves


def _in_region(
    model: ShapeModel,
    shapes: NDArray[np.floating],
    vertices: Ints,
    scores: Floats,
    counts: Ints,
    on_sample: Callable[[], None],
) -> Floats:

    n = len(vertices)
    order = vertices[spatial_order(model.mean[vertices], _LEAF)]

    def planes(rows: int, row: Callable[[int], Floats]) -> NDArray[np.float32]:
        out = np.zeros((rows, 3, -(-n // BLOCK) * BLOCK), np.float32)
        for i in range(rows):
            out[i, :, :n] = row(i)[order].T
        return out

    def sums(values: NDArray[np.float32], size: int) -> NDArray[np.float32]:
        parts: Floats = values.reshape(len(values), 3, -1, size).sum(axis=3, dtype=np.float64)
        return (parts / n).astype(np.float32)

    last = int(counts.max(initial=0))
    real = planes(len(shapes), lambda i: shapes[i] - model.mean)
    modes = planes(last, lambda c: (model.basis[:, c] * model.deviations[c]).reshape(-1, 3))
    steps = np.array([np.sqrt((mode.astype(np.float64) ** 2).sum(axis=0)).sum() / n for mode in modes])
    prepared = (real, sums(real, _LEAF), sums(real, BLOCK), modes, sums(modes, _LEAF), sums(modes, BLOCK))
    wanted = np.isin(np.arange(1, last + 1), counts)
    out = np.zeros((len(scores), len(counts)))
    singles = np.ascontiguousarray(scores[:, :last], dtype=np.float32)
    for start in range(0, len(scores), _BATCH):
        part = slice(start, start + _BATCH)
        nearest_distances(*prepared, steps.reshape(-1), singles[part], wanted, n, out[part])
        for _ in singles[part]:
            on_sample()
    return out


def spatial_order(points: Floats, leaf: int) -> Ints:
    """An order of points (n, 3) in which every ``leaf`` consecutive ones are neighbours, (n,).

    Halves along the longest side, again and again; all leaves but the last are full.
    """
    found: list[Ints] = []
    waiting = [np.arange(len(points))]
    while waiting:
        ids = waiting.pop()
        leaves = -(-len(ids) // leaf)
        if leaves <= 1:
            found.append(ids)
            continue
        axis = int(np.ptp(points[ids], axis=0).argmax())
        ids = ids[np.argsort(points[ids, axis], kind="stable")]
        half = leaves // 2 * leaf
        waiting += [ids[half:], ids[:half]]
    return np.concatenate(found) if found else np.zeros(0, np.int64)
