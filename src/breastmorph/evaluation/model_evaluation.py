"""The evaluation of a model in one value: the curves, and the figures that do not reward collapse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.evaluation.generalization import LeaveOneOut, surface_generalization, surface_specificity
from breastmorph.evaluation.specificity import specificity
from breastmorph.evaluation.training_set import (
    Compactness,
    Curve,
    Decoupling,
    TrainingSet,
    compactness,
    counts_of,
    curves_by_region,
    decoupling,
    mean_of_known,
    training_set,
)
from breastmorph.evaluation.truth import TruthFigures, compare_with_truth
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import csv_text, plain
from breastmorph.foundation.machine import one_thread
from breastmorph.mask import IN_BREAST, breast_mask
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.check import CheckParameters, ScanFiles, check_scan
from breastmorph.scan.scan import Landmarks, Scan


class SubjectScans:
    """Scans of a cohort's subjects.

    Parameters
    ----------
    cohort : Cohort
    found : sequence of ScanFiles
    check : CheckParameters, optional
        How scans are read; they were checked when they were registered, so nothing is rechecked.
    """

    def __init__(
        self, cohort: Cohort, found: Sequence[ScanFiles], check: CheckParameters | None = None
    ) -> None:
        self._cohort, self._check = cohort, replace(check or CheckParameters(), doubts=False)
        self._files = {files.id: files for files in found}

    def read(self, subject: int) -> Scan | str:
        """A subject's scan, or why there is none."""
        files = self._files.get(self._cohort.ids[subject])
        if files is None:
            return "no scan of this name"
        judged = check_scan(files, self._check, self._cohort.template.as_reference)
        return judged.scan if judged.scan is not None else str(judged.error)


def onto_scan(cohort: Cohort, subject: int, scan: Scan) -> Similarity:
    """From a subject's registered shape to her scan."""
    # Through the file's frame: the scan may have been set upright in another way than at registration.
    return scan.to_file.inverse().after(cohort.to_file[subject])


@dataclass(frozen=True, eq=False)
class RawScans:
    """Distances to raw scans inside the breast, in mm at the subject's own size.

    Attributes
    ----------
    to_scan, from_scan : Curve
        From the reconstruction's vertices to the scan's surface, and from the scan's vertices to the reconstruction's.
    registered : (2,) float
        The same two distances of the registered shapes themselves: what no model can beat.
    failures : tuple of (id, message)
        Subjects whose scan is missing or refused.
    """

    to_scan: Curve
    from_scan: Curve
    registered: Floats
    failures: tuple[tuple[str, str], ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for a JSON file."""
        return {
            "to_scan": self.to_scan.as_dict(),
            "from_scan": self.from_scan.as_dict(),
            "registered": dict(zip(("to_scan", "from_scan"), plain(self.registered), strict=True)),
            "failures": [{"id": scan_id, "message": message} for scan_id, message in self.failures],
        }


def raw_scan_generalization(
    training: TrainingSet,
    folds: LeaveOneOut,
    faces: Ints,
    found: Sequence[ScanFiles],
    components: Ints,
    check: CheckParameters | None = None,
    on_fold: Callable[[], None] = lambda: None,
) -> RawScans:
    """Distance between raw left-out scans and what the model of the others makes of them.

    Parameters
    ----------
    training : TrainingSet
    folds : LeaveOneOut
        Of the training set's shapes.
    faces : (m, 3) int
        The model's.
    found : sequence of ScanFiles
        The scans, matched to the subjects by id.
    components : (c,) int
    check : CheckParameters, optional
        How scans are read.

    Raises
    ------
    BreastMorphError
        When no subject's scan can be read, or the model is one of asymmetry only.
    """
    if training.asymmetry:
        raise BreastMorphError(
            "a model of asymmetry does not hold whole subjects to compare with their scans",
            "Leave out the scans",
        )
    scans = SubjectScans(training.cohort, found, check)
    rows, failures, registered = [], [], []
    for subject, scan_id in enumerate(training.cohort.ids):
        scan = scans.read(subject)
        if isinstance(scan, str):
            failures.append((scan_id, scan))
        else:
            onto = onto_scan(training.cohort, subject, scan)
            back = onto.after(training.transforms[subject].inverse())
            # Landmarks that are not set lie where the registered shape has them.
            shape, template = onto.apply(training.cohort.shape(subject)), training.cohort.template
            own = Landmarks.at_vertices(template.landmark_ids, shape).only(scan.landmarks.unset)
            landmarks = Landmarks.of({**scan.landmarks, **own})
            shapes = np.concatenate(
                [training.shapes[subject][None], folds.reconstructions(subject, components)]
            )
            both = _two_sided(scan, landmarks, back.apply(shapes), faces, training.breast)
            registered.append(both[0])
            rows.append(both[1:])
        on_fold()
    if not rows:
        raise BreastMorphError(
            "none of the {n_failures} subjects has a readable scan ({failures}: {failures2})",
            "Give the folder of the scans that were registered, and their landmarks",
            n_failures=len(failures),
            failures=failures[0][0],
            failures2=failures[0][1],
        )
    values = np.array(rows)  # (k, c, 2)
    return RawScans(
        Curve("scan", "breast", components, values[:, :, 0]),
        Curve("scan", "breast", components, values[:, :, 1]),
        mean_of_known(np.array(registered)),
        tuple(failures),
    )


def _two_sided(scan: Scan, landmarks: Landmarks, shapes: Floats, faces: Ints, breast: Bools) -> Floats:
    """Mean distances to and from a scan of several shapes in its frame, (c, 2)."""
    surface = Surface(scan.mesh)
    seen = scan.mesh.vertices[breast_mask(scan.mesh, landmarks) > IN_BREAST]
    back = [mean_distance(Surface(TriangleMesh(shape, faces)), seen) for shape in shapes]
    return np.column_stack([[mean_distance(surface, shape[breast]) for shape in shapes], back])


def mean_distance(surface: Surface, points: Floats) -> float:
    """Mean distance to a surface of the points (k, 3) that do not lie beyond its border or over its holes; or NaN."""
    found = surface.closest(points)
    return float(mean_of_known(found.distances[~found.on_boundary]))


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

    def __repr__(self) -> str:
        parts = [f"{self.subjects} subjects"] if self.subjects else ["compactness only"]
        for name, curves in (("generalization", self.generalization), ("specificity", self.specificity)):
            parts += [
                f"{name} {c.mean[-1]:.1f} mm" for c in curves if (c.region, c.distance) == ("breast", "point")
            ]
        return f"Evaluation({', '.join(parts)})"

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
            for count, *figures in zip(curve.components, curve.mean, curve.sd, strict=True):
                mean, sd = (f"{figure:.6g}" if np.isfinite(figure) else "" for figure in figures)
                rows.append([metric, curve.distance, curve.region, count, mean, sd, len(curve.values)])
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
