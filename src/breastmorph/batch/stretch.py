"""Wrong correspondence on the right surface: who differs from what the rest of the cohort predicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import KDTree

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.mask import BreastMask, measure_breasts
from breastmorph.mesh.topology import edge_table
from breastmorph.template import Template


@dataclass(frozen=True)
class StretchParameters:
    """Parameters of :func:`unexplained_stretch`.

    Attributes
    ----------
    noise : float
        Relative accuracy of a distance between neighbouring points; differences below it mean nothing.
    smallest_cohort : int
        Fewer subjects predict nothing.
    """

    noise: float = 0.02
    smallest_cohort: int = 8


def unexplained_stretch(
    shapes: Iterable[Floats],
    template: Template,
    absent: Sequence[str],
    parameters: StretchParameters | None = None,
) -> list[dict[str, float]]:
    """How far each subject's point distances are from what all others predict, in per cent.

    For every region the subject's log distances between neighbours of the coarse twin are written as a combination of
    all other subjects' (ridge regression, in closed form for all subjects at once); what is left over is the figure.
    Memory grows by some kilobytes a subject, whatever the template.

    Parameters
    ----------
    shapes : iterable of (n, 3) float
        Subjects with the template's topology, in any frame and unit; gone through once.
    template : Template
    absent : sequence of str
        Each subject's side without a breast, or empty; that region is left out for it.

    Returns
    -------
    list of dict
        Per subject the root mean square per region: "left", "right" and "outside" (of both breasts). A region is
        missing where fewer than ``smallest_cohort`` subjects have it.
    """
    parameters = parameters or StretchParameters()
    ends, regions = _neighbours(template)
    lengths = np.array([_log_lengths(shape, ends) for shape in shapes], dtype=np.float32).reshape(
        -1, len(ends)
    )
    found: list[dict[str, float]] = [{} for _ in lengths]
    for region, edges in regions.items():
        there = np.array([side != region for side in absent], dtype=bool)
        if there.sum() < parameters.smallest_cohort or not edges.any():
            continue
        part = lengths[np.ix_(there, edges)].astype(np.float64)
        left_over = _left_over(part - np.median(part, axis=0), parameters.noise)
        for index, value in zip(np.flatnonzero(there), left_over, strict=True):
            found[index][region] = 100.0 * float(value)
    return found


def _left_over(data: Floats, noise: float) -> Floats:
    """Root mean square of each row's residual when it is regressed on all other rows, (k,).

    With K = X X' + s I, the residual of row i is (K^-1 X)_i / (K^-1)_ii; by the matrix inversion lemma that needs
    only the p x p matrix X' X + s I, so the cost does not grow with the square of the cohort.
    """
    ridge = data.shape[1] * noise**2
    gram = data.T @ data
    gram[np.diag_indices_from(gram)] += ridge
    solved = cho_solve(cho_factor(gram, overwrite_a=True), data.T).T
    leverage = (data * solved).sum(axis=1)
    residual = ridge * solved / np.maximum(1.0 - leverage, 1e-12)[:, None]
    return np.asarray(np.sqrt((residual**2).mean(axis=1)))


def _log_lengths(shape: Floats, ends: Ints) -> Floats:
    """Log distances between neighbours against their median, which takes the subject's size out, (e,)."""
    straight = np.linalg.norm(shape[ends[:, 0]] - shape[ends[:, 1]], axis=1)
    logs = np.log(np.maximum(straight, 1e-3 * np.median(straight)))
    return np.asarray(logs - np.median(logs))


def _neighbours(template: Template) -> tuple[Ints, Mapping[str, Bools]]:
    """Pairs of template vertices that are neighbours on the coarse twin, (e, 2), and which region each is in."""
    vertices = template.mesh.vertices
    nearest = KDTree(vertices).query(template.coarse.vertices)[1].astype(np.int64)
    ends = nearest[edge_table(template.coarse.faces).edges]
    ends = ends[ends[:, 0] != ends[:, 1]]
    middle = vertices[ends].mean(axis=1)
    try:
        mask: BreastMask = measure_breasts(template.mesh, template.landmarks).mask(template.landmarks)
    except LandmarkProblem:  # a template without breasts' landmarks: one region
        return ends, {"outside": np.ones(len(ends), bool)}
    breasts = mask.breasts_at(middle)
    return ends, {**breasts, "outside": ~np.any(list(breasts.values()), axis=0)}
