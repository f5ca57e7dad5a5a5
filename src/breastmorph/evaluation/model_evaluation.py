"""Everything that can be said of a model, in one value: the curves, and the figures that do not reward collapse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.errors import BreastMorphError
from breastmorph.evaluation.curve import Curve, counts_of, curves_by_region
from breastmorph.evaluation.generalization import LeaveOneOut
from breastmorph.evaluation.raw_scans import RawScans, raw_scan_generalization
from breastmorph.evaluation.specificity import specificity
from breastmorph.evaluation.surface_distance import surface_generalization, surface_specificity
from breastmorph.evaluation.training_set import TrainingSet, training_set
from breastmorph.evaluation.truth import TruthFigures, compare_with_truth
from breastmorph.evaluation.variation import Compactness, Decoupling, compactness, decoupling
from breastmorph.mesh.triangle_mesh import Ints
from breastmorph.model.shape_model import ShapeModel
from breastmorph.plain import csv_text
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.folder import ScanFiles
from breastmorph.threads import one_thread

# Shows that work goes on: given what is done and how often, a context whose value is called after each.
Progress = Callable[[str, int], AbstractContextManager[Callable[[], None]]]


@dataclass(frozen=True)
class EvaluationParameters:
    """How much to compute.

    Attributes
    ----------
    samples : int
        Random shapes for specificity.
    seed : int
    table : tuple of int
        Numbers of components (and all) at which the slow distances, to surfaces and raw scans, are computed.
    surface : bool
        Whether the closest-point-on-surface distances are computed at all.
    surface_samples, surface_vertices : int
        Random shapes, and vertices of every training shape, for specificity by surface distance.
    most_counts : int
        Above so many components, only about so many numbers of them are computed, denser where few: time grows with
        the third power of the cohort.
    """

    samples: int = 1000
    seed: int = 0
    table: tuple[int, ...] = (1, 5, 10, 20, 50)
    surface: bool = True
    surface_samples: int = 50
    surface_vertices: int = 500
    most_counts: int = 300


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The figures of a model; what needs a cohort, scans or truth is empty or None without.

    Attributes
    ----------
    compactness : Compactness
    subjects : int
        Of the cohort used; 0 without a cohort.
    generalization, specificity : tuple of Curve
        Each by region and by kind of distance.
    decoupling : Decoupling, optional
    raw_scans : RawScans, optional
    truth : TruthFigures, optional
    parameters : EvaluationParameters
    warnings : tuple of str
    """

    compactness: Compactness
    subjects: int
    generalization: tuple[Curve, ...]
    specificity: tuple[Curve, ...]
    decoupling: Decoupling | None
    raw_scans: RawScans | None
    truth: TruthFigures | None
    parameters: EvaluationParameters
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return {
            "subjects": self.subjects,
            "samples": self.parameters.samples,
            "seed": self.parameters.seed,
            "compactness": self.compactness.as_dict(),
            "generalization": [curve.as_dict() for curve in self.generalization],
            "specificity": [curve.as_dict() for curve in self.specificity],
            "decoupling": self.decoupling.as_dict() if self.decoupling else None,
            "raw_scans": self.raw_scans.as_dict() if self.raw_scans else None,
            "truth": self.truth.as_dict() if self.truth else None,
            "warnings": list(self.warnings),
        }

    def as_csv(self) -> str:
        """One row a metric, distance, region and number of components."""
        rows: list[Sequence[Any]] = []
        for name, values in (("variance", self.compactness.variance), ("share", self.compactness.share)):
            for count, value in zip(self.compactness.components, values, strict=True):
                rows.append([f"compactness_{name}", "", "whole", count, f"{value:.6g}", "", ""])
        named = [("generalization", curve) for curve in self.generalization]
        named += [("specificity", curve) for curve in self.specificity]
        if self.raw_scans is not None:
            named += [("generalization_to_scan", self.raw_scans.to_scan)]
            named += [("generalization_from_scan", self.raw_scans.from_scan)]
        for metric, curve in named:
            for count, mean, sd in zip(curve.components, curve.mean, curve.sd, strict=True):
                row = [metric, curve.distance, curve.region, count, _cell(mean), _cell(sd), len(curve.values)]
                rows.append(row)
        columns = ("metric", "distance", "region", "components", "mean", "sd", "n")
        return csv_text(columns, (dict(zip(columns, row, strict=True)) for row in rows))


def evaluate_model(
    model: ShapeModel,
    cohort: Cohort | None = None,
    parameters: EvaluationParameters | None = None,
    *,
    scans: Sequence[ScanFiles] | None = None,
    check: CheckParameters | None = None,
    truth: Path | None = None,
    progress: Progress = lambda what, total: nullcontext(lambda: None),
) -> Evaluation:
    """Evaluate a model.

    Parameters
    ----------
    model : ShapeModel
    cohort : Cohort, optional
        The subjects it was built from; without them only compactness is known.
    parameters : EvaluationParameters, optional
    scans : sequence of ScanFiles, optional
        Raw scans of the subjects.
    check : CheckParameters, optional
        How scans are read.
    truth : Path, optional
        The ``truth/`` folder of a phantom cohort.
    progress : callable, optional
    """
    p = parameters or EvaluationParameters()
    compact = compactness(model)
    if cohort is None:
        if scans is not None or truth is not None:
            raise BreastMorphError(
                "scans and truth are compared with registered subjects, and there is no cohort",
                "Give the cohort too",
            )
        return Evaluation(compact, 0, (), (), None, None, None, p, ())
    # One thread for linear algebra: last digits must not depend on the machine's cores.
    with one_thread():
        return _with_cohort(model, compact, cohort, p, scans, check, truth, progress)


def _with_cohort(
    model: ShapeModel,
    compact: Compactness,
    cohort: Cohort,
    p: EvaluationParameters,
    scans: Sequence[ScanFiles] | None,
    check: CheckParameters | None,
    truth: Path | None,
    progress: Progress,
) -> Evaluation:
    training = training_set(model, cohort)
    figures = None
    if truth is not None:  # first: a wrong folder shall not be found out after minutes
        figures = compare_with_truth(training.cohort, truth, with_scale=training.with_scale)
    folds = LeaveOneOut(training.shapes, training.groups, np.arange(len(training.cohort)))
    raw = None
    if scans is not None:
        with progress("Raw scans", len(training.cohort)) as advance:
            chosen = counts_of(p.table, folds.most_components)
            raw = raw_scan_generalization(training, folds, model.faces, scans, chosen, check, advance)
    return Evaluation(
        compact,
        len(training.cohort),
        _generalization(model, training, folds, p, progress),
        _specificity(model, training, p, progress),
        decoupling(training.shapes, training.breast),
        raw,
        figures,
        p,
        training.warnings,
    )


def _generalization(
    model: ShapeModel, training: TrainingSet, folds: LeaveOneOut, p: EvaluationParameters, progress: Progress
) -> tuple[Curve, ...]:
    counts = _spread(folds.most_components, p.most_counts)
    regions = training.regions
    with progress("Leaving one out", len(folds.subjects)) as advance:
        values = folds.point_distances(regions, counts, advance)
    curves = list(curves_by_region("point", regions, counts, values).values())
    if p.surface:
        chosen = counts_of(p.table, folds.most_components)
        with progress("Leaving one out, surface distance", len(folds.subjects)) as advance:
            curves += surface_generalization(folds, model.faces, regions, chosen, advance).values()
    return tuple(curves)


def _specificity(
    model: ShapeModel, training: TrainingSet, p: EvaluationParameters, progress: Progress
) -> tuple[Curve, ...]:
    if not model.n_components:
        return ()
    regions = training.regions
    counts = _spread(model.n_components, p.most_counts)[1:]
    with progress("Sampling", p.samples * len(regions)) as advance:
        found = specificity(model, training.shapes, regions, p.samples, p.seed, counts, advance)
    curves = list(found.values())
    if p.surface:
        chosen = counts_of(p.table, model.n_components)
        n = min(p.samples, p.surface_samples)
        with progress("Sampling, surface distance", n) as advance:
            curves += surface_specificity(
                model, training.shapes, regions, chosen, n, p.seed, p.surface_vertices, advance
            ).values()
    return tuple(curves)


def _spread(most: int, limit: int) -> Ints:
    """Numbers of components from 0 to the most: all, or about so many when they are more."""
    if most <= limit:
        return np.arange(most + 1)
    return np.unique(np.round(np.geomspace(1, most + 1, 2 * limit)).astype(np.int64) - 1)


def _cell(value: float) -> str:
    return f"{value:.6g}" if np.isfinite(value) else ""
