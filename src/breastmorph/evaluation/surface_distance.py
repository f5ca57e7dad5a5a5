"""Generalization and specificity by the distance to the closest point of the surface (Scalismo's choice).

It is never above the distance of corresponding vertices, and blind to vertices that slid along the surface. There is
no shortcut: every vertex asks for its closest point. So both are computed at chosen numbers of components only, and
specificity on a part of the vertices and samples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from breastmorph.evaluation.curve import Curve, Regions, curves_by_region, region_columns
from breastmorph.evaluation.generalization import LeaveOneOut
from breastmorph.evaluation.specificity import draw_coefficients, spatial_order
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh
from breastmorph.model.shape_model import ShapeModel

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
