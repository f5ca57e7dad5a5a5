"""Generalization: how well the model of the others gives back a subject, by vertices and by the closest point.

The distance to the closest point (Scalismo's choice) is never above that of corresponding vertices, and blind to
vertices that slid along the surface. There is no shortcut: every vertex asks for its closest point. So generalization
and specificity are computed by it at chosen numbers of components only, and specificity on a part of the vertices and
samples.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from breastmorph.evaluation.specificity import draw_coefficients, spatial_order
from breastmorph.evaluation.training_set import Curve, Regions, curves_by_region, region_columns
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.language import Plural
from breastmorph.foundation.machine import one_thread
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel

_NOTHING = 1e-10  # of the largest variance: rounding, not shape
_BLOCK = 256  # vertices at a time: the product stays in the cache
_FOLDS = 32  # left-out subjects at a time: what one pass over the shapes serves
_ROUNDING = 1e-4  # mm that 32-bit products may cost


class LeaveOneOut:
    """Every subject against the model of the others; prepared once, asked for residuals of any subject.

    Parameters
    ----------
    shapes : (k, n, 3) float32 or float64
        Aligned; possibly mapped from a file.
    groups : (k,) int, optional
        Shapes that are left out together, such as a subject and its mirror image.
    subjects : (s,) int, optional
        Shapes that are measured; the first of each group when not given. With all test subjects in one group,
        each is measured against the model of the others.
    """

    def __init__(
        self, shapes: NDArray[np.floating], groups: Ints | None = None, subjects: Ints | None = None
    ) -> None:
        self.shapes = shapes
        self.groups = np.arange(len(shapes)) if groups is None else np.asarray(groups)
        _, first, sizes = np.unique(self.groups, return_index=True, return_counts=True)
        self.subjects = np.sort(first) if subjects is None else np.asarray(subjects)
        self.most_components = len(shapes) - int(sizes.max()) - 1 if len(first) > 1 else -1
        if self.most_components < 0:
            raise BreastMorphError(
                Plural(
                    "{n} subject is too few to leave one out", "{n} subjects are too few to leave one out"
                ),
                "Give at least 2, better 10 or more",
                n=len(first),
            )
        self.mean = shapes.mean(axis=0, dtype=np.float64)

    @cached_property
    def gram(self) -> Floats:
        """Gram matrix of the centred shapes, (k, k)."""
        k = len(self.shapes)
        gram = np.zeros((k, k))
        with one_thread():
            for start in range(0, len(self.mean), 16 * _BLOCK):
                flat = self._centred(slice(start, start + 16 * _BLOCK)).reshape(k, -1)
                gram += flat @ flat.T
        return gram

    def weights(self, subject: int, components: Ints) -> Floats:
        """Weights of the centred shapes in the residuals of a left-out subject, (c, k)."""
        others = np.flatnonzero(self.groups != self.groups[subject])
        p = len(others)
        inner = self.gram[np.ix_(others, others)]
        row_mean = inner.mean(axis=0)
        column = self.gram[others, subject] - row_mean
        with one_thread():
            values, vectors = np.linalg.eigh(inner - row_mean - row_mean[:, None] + row_mean.mean())
        values, vectors = values[::-1], vectors[:, ::-1]
        rank = int((values[: p - 1] > _NOTHING * max(float(values[0]), 0.0)).sum())
        along = vectors[:, :rank].T @ (column - column.mean()) / values[:rank]
        explained = np.zeros((rank + 1, p))
        np.cumsum((vectors[:, :rank] * along).T, axis=0, out=explained[1:])
        explained = explained[np.minimum(components, rank)]
        weights = np.zeros((len(components), len(self.shapes)))
        weights[:, others] = -1.0 / p - (explained - explained.mean(axis=1, keepdims=True))
        weights[:, subject] += 1.0
        return weights

    def reconstructions(self, subject: int, components: Ints) -> Floats:
        """The subject as the model of the others gives it back, (c, n, 3)."""
        # The weights add up to 0, so the shapes need not be centred.
        with one_thread():
            residuals = self.weights(subject, components) @ self.shapes.reshape(len(self.shapes), -1)
        back: Floats = self.shapes[subject] - residuals.reshape(len(components), -1, 3)
        return back

    def point_distances(
        self, regions: Regions, components: Ints, on_fold: Callable[[], None] = lambda: None
    ) -> Floats:
        """Mean distances between corresponding vertices, (s, c, r), of every left-out subject."""
        inside = region_columns(regions)
        out = np.zeros((len(self.subjects), len(components), inside.shape[1]))
        for start in range(0, len(self.subjects), _FOLDS):
            folds = self.subjects[start : start + _FOLDS]
            weights = np.stack([self.weights(subject, components) for subject in folds])
            largest = float(np.sqrt((weights**2).sum(axis=2).max()))
            rounding = np.finfo(np.float32).eps * largest * self._widest / np.sqrt(inside.sum(axis=0).min())
            kind = np.float32 if rounding < _ROUNDING else np.float64
            with one_thread():
                self._add_distances(weights.astype(kind), inside.astype(kind), out[start : start + _FOLDS])
            for _ in folds:
                on_fold()
        counts: Floats = inside.sum(axis=0)
        return out / counts

    def _add_distances(
        self, weights: NDArray[np.floating], inside: NDArray[np.floating], out: Floats
    ) -> None:
        for start in range(0, len(self.mean), _BLOCK):
            part = slice(start, start + _BLOCK)
            block = np.ascontiguousarray(self._centred(part).transpose(2, 0, 1), dtype=weights.dtype)
            left = np.empty((3, weights.shape[1], block.shape[2]), dtype=weights.dtype)
            for fold, of_fold in enumerate(weights):
                for axis in range(3):
                    np.matmul(of_fold, block[axis], out=left[axis])
                np.multiply(left, left, out=left)
                length = left[0]
                length += left[1]
                length += left[2]
                np.sqrt(length, out=length)
                out[fold] += length @ inside[part]

    @cached_property
    def _widest(self) -> float:
        """Largest root sum of squares of a vertex over the cohort, mm."""
        blocks = range(0, len(self.mean), 16 * _BLOCK)
        squares = [(self._centred(slice(s, s + 16 * _BLOCK)) ** 2).sum(axis=(0, 2)).max() for s in blocks]
        return float(np.sqrt(max(squares)))

    def _centred(self, part: slice) -> Floats:
        centred: Floats = self.shapes[:, part] - self.mean[part]
        return centred


def leave_one_out(
    shapes: NDArray[np.floating],
    regions: Regions,
    components: Ints | None = None,
    groups: Ints | None = None,
) -> dict[str, Curve]:
    """Leave-one-out generalization by the mean distance between corresponding vertices.

    Parameters
    ----------
    shapes : (k, n, 3) float
        Aligned, mm. The alignment is not repeated without the left-out subject.
    regions : mapping from name to (n,) bool
    components : (c,) int, optional
        Numbers of components; 0 (the mean of the others) to k - 2 when not given.
    groups : (k,) int, optional
        Shapes that are left out together.

    Returns
    -------
    dict from region to Curve
    """
    folds = LeaveOneOut(shapes, groups)
    counts = np.arange(folds.most_components + 1) if components is None else np.asarray(components)
    return curves_by_region("point", regions, counts, folds.point_distances(regions, counts))


_NEAR = 8  # vertices of a leaf of the spatial order


def surface_generalization(
    folds: LeaveOneOut,
    faces: Ints,
    regions: Regions,
    components: Ints,
    on_fold: Callable[[], None] = lambda: None,
) -> dict[str, Curve]:
    """Mean distance from the reconstruction's vertices to the left-out subject's surface.

    Parameters
    ----------
    folds : LeaveOneOut
    faces : (m, 3) int
    regions : mapping from name to (n,) bool
        Vertices of the reconstruction; the surface is always whole.
    components : (c,) int
    """
    order = spatial_order(folds.mean, _NEAR)
    inside = region_columns(regions)[order]
    values = np.empty((len(folds.subjects), len(components), inside.shape[1]))
    for row, subject in enumerate(folds.subjects):
        surface = Surface(TriangleMesh(folds.shapes[subject], faces))
        given_back = folds.reconstructions(subject, components)[:, order]
        values[row] = _distances(surface, given_back) @ inside / inside.sum(axis=0)
        on_fold()
    return curves_by_region("surface", regions, components, values)


def surface_specificity(
    model: ShapeModel,
    shapes: NDArray[np.floating],
    regions: Regions,
    components: Ints,
    samples: int = 50,
    seed: int = 0,
    vertices: int = 500,
    on_sample: Callable[[], None] = lambda: None,
) -> dict[str, Curve]:
    """Mean distance from a training shape's vertices to a sample's surface, of the nearest training shape.

    Parameters
    ----------
    model, shapes, regions, samples, seed
        As in :func:`breastmorph.evaluation.specificity.specificity`, whose first samples these are; the regions are
        vertices of the training shapes.
    components : (c,) int
    vertices : int
        About so many vertices, spread evenly, stand for all; ``n`` or more takes all.
    """
    every = max(model.n_vertices // max(vertices, 1), 1)
    chosen = spatial_order(model.mean, _NEAR)[every // 2 :: every]
    inside = region_columns(regions)[chosen]
    points = np.array(shapes[:, chosen], dtype=np.float64)
    drawn = draw_coefficients(model, samples, seed)
    values = np.empty((samples, len(components), inside.shape[1]))
    for s in range(samples):
        for c, count in enumerate(components):
            surface = Surface(model.mesh(model.instance(drawn[s, :count])))
            means = _distances(surface, points) @ inside / inside.sum(axis=0)
            values[s, c] = means.min(axis=0)
        on_sample()
    return curves_by_region("surface", regions, components, values)


def _distances(surface: Surface, points: Floats) -> Floats:
    """Distances of several sets of points (k, n, 3), (k, n)."""
    # Neighbours one after the other: the search tree's branches stay in the cache, which halves the time.
    by_vertex = points.transpose(1, 0, 2).reshape(-1, 3)
    distances: Floats = surface.closest(by_vertex).distances.reshape(points.shape[1::-1]).T
    return distances
