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

from breastmorph.errors import BreastMorphError
from breastmorph.evaluation.curve import Curve, Regions
from breastmorph.mesh.triangle_mesh import Floats, Ints
from breastmorph.model.shape_model import ShapeModel

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
        raise BreastMorphError(f"{samples} samples", "Draw at least 1")
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
    from breastmorph.evaluation.specificity_kernels import BLOCK, nearest_distances

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
