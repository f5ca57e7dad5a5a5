"""The true shapes of a phantom cohort at the template's vertices: what a perfect registration would give."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.evaluation.experiments.recorded import Recorded, rounded
from breastmorph.evaluation.truth import compare_with_truth, load_tie, load_truth
from breastmorph.mesh.triangle_mesh import Floats


@dataclass(frozen=True, eq=False)
class VariantTruth(Recorded):
    """What the truth says of a registered cohort; see :mod:`breastmorph.evaluation.truth`.

    Attributes
    ----------
    correspondence : (k, 2) float
        Mean distance in mm of a subject's points from where they belong: in the breast, outside.
    explained_breast, explained_outside : float
        Share of the true variation that is recovered.
    sd_ratio_breast, sd_ratio_outside : float
        Standard deviation over the true one.
    """

    correspondence: Floats
    explained_breast: float
    explained_outside: float
    sd_ratio_breast: float
    sd_ratio_outside: float


def variant_truth(cohort: Cohort, folder: Path) -> VariantTruth:
    """Compare a registered cohort with its truth."""
    figures = compare_with_truth(cohort, folder)
    of = figures.cohort
    return VariantTruth(
        rounded(figures.correspondence),
        of.explained_breast,
        of.explained_outside,
        of.sd_ratio_breast,
        of.sd_ratio_outside,
    )


def true_cohort(cohort: Cohort, folder: Path) -> Cohort:
    """The same subjects with every vertex where it belongs, each in its scan's upright frame."""
    tie = load_tie(folder, cohort.template)
    shapes = [
        to_file.inverse().apply(load_truth(folder / f"{name}.npz", tie).points)
        for name, to_file in zip(cohort.ids, cohort.to_file, strict=True)
    ]
    return replace(cohort, packed=np.stack(shapes).astype(np.float32), rows=np.arange(len(shapes)))
