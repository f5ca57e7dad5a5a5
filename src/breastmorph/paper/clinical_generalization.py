"""Experiment 4: are clinical distances preserved when a model reconstructs a subject it has not seen?

The landmarks of the raw scan are compared with the template's landmark vertices of the leave-one-out reconstruction,
which is taken back to the subject's own size. Straight distances for every number of components, tape distances (over
the skin, geodesic) for a few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from breastmorph.clinical.distance_meter import shortest_paths
from breastmorph.clinical.distances import DISTANCES, PAPER
from breastmorph.cohort import Cohort
from breastmorph.evaluation.model_evaluation import SubjectScans
from breastmorph.evaluation.training_set import counts_of, mean_of_known
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.machine import one_thread
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.paper.modelled_cohort import CohortExperiment, ModelledCohort, comparable
from breastmorph.paper.records import Recorded, rounded
from breastmorph.scan.check import CheckParameters, ScanFiles
from breastmorph.scan.scan import Landmarks, Scan

_FEWEST = 4  # subjects, for a leave-one-out with two components


@dataclass(frozen=True)
class ClinicalParameters(Recorded):
    """What to compute.

    Attributes
    ----------
    distances : tuple of str
        Names of distances between two landmarks.
    tape_at : tuple of int
        Numbers of components (and all) for the distances over the skin.
    """

    distances: tuple[str, ...] = PAPER
    tape_at: tuple[int, ...] = (30,)


@dataclass(frozen=True, eq=False)
class ClinicalGeneralization(CohortExperiment):
    """Absolute differences between distances of raw scans and of reconstructions, mm; NaN where unknown.

    Attributes
    ----------
    names : tuple of str
        Of the d distances.
    on_scan : (k, d) float
        Straight distances on the raw scans.
    components : (c,) int
        0 to k - 2.
    straight : (k, c, d) float
    registered : (k, d) float
        The same of the registered shapes: what the registration alone costs.
    tape_components : (t,) int
    tape : (k, t, d) float
    lacking : mapping from distance to int
        Subjects without the landmarks for it.
    left_out : int
        Subjects with an absent side, and copies of others.
    notes : tuple of str
        What could not be measured, and why.
    parameters : ClinicalParameters
    """

    names: tuple[str, ...]
    on_scan: Floats
    components: Ints
    straight: Floats
    registered: Floats
    tape_components: Ints
    tape: Floats
    lacking: Mapping[str, int]
    left_out: int
    notes: tuple[str, ...]
    parameters: ClinicalParameters

    @property
    def mean(self) -> Floats:
        """Straight, mean over the subjects, (c, d)."""
        return mean_of_known(self.straight)

    @property
    def tape_mean(self) -> Floats:
        """Over the skin, mean over the subjects, (t, d)."""
        return mean_of_known(self.tape)

    @property
    def average(self) -> Floats:
        """Mean over the distances too, (c,): the paper's average generalization error."""
        return mean_of_known(self.mean.T)


def clinical_generalization(
    cohort: Cohort,
    parameters: ClinicalParameters | None = None,
    *,
    scans: Sequence[ScanFiles] | None = None,
    check: CheckParameters | None = None,
) -> ClinicalGeneralization:
    """Run experiment 4.

    Parameters
    ----------
    cohort : Cohort
        With the landmarks of the raw scans; where it has none, those of ``scans``. One-sided subjects and copies are
        left out.
    parameters : ClinicalParameters, optional
    scans : sequence of ScanFiles, optional
        The raw scans: without them no distances over the skin.
    check : CheckParameters, optional
        How scans are read.
    """
    p = parameters or ClinicalParameters()
    used = comparable(cohort)
    ends = [DISTANCES[name].landmarks[:2] for name in p.distances]
    marks = tuple(dict.fromkeys(mark for pair in ends for mark in pair))
    pairs = np.array([[marks.index(mark) for mark in pair] for pair in ends])
    ids = used.template.landmark_ids
    absent = [mark for mark in marks if mark not in ids]
    annotated = used.landmarks or (Landmarks((), np.zeros((0, 3))),) * len(used)
    if absent:
        return _impossible(used, p, f"the template has no {' and no '.join(absent)}")
    if len(used) < _FEWEST:
        return _impossible(used, p, f"{len(used)} subjects with both sides are too few")
    if scans is None and not any(set(pair) <= set(one) for one in annotated for pair in ends):
        return _impossible(used, p, "the landmarks of the raw scans are not known")
    with one_thread():
        one = ModelledCohort.of(used)
        counts = np.arange(one.folds.most_components + 1)
        taped = counts_of(p.tape_at, one.folds.most_components)
        at = [ids[mark] for mark in marks]
        read = SubjectScans(used, scans, check) if scans is not None else None
        notes = [] if scans is not None else ["without the raw scans there are no distances over the skin"]
        rows = []
        for subject in range(len(used)):
            rows.append(_one(one, subject, annotated[subject], marks, at, pairs, counts, taped, read))
            notes += [f"{used.ids[subject]}: {rows[-1].no_scan}"] if rows[-1].no_scan else []
    on_scan = np.array([row.on_scan for row in rows])
    if not np.isfinite(on_scan).any():
        why = "".join(f" ({note})" for note in notes[:1])
        return _impossible(used, p, f"no raw scan with these landmarks could be read{why}")
    lacking = np.isnan(on_scan).sum(axis=0)
    return ClinicalGeneralization(
        "",
        used.ids,
        p.distances,
        rounded(on_scan),
        counts,
        rounded([row.straight for row in rows]),
        rounded([row.registered for row in rows]),
        taped,
        rounded([row.tape for row in rows]),
        {name: int(n) for name, n in zip(p.distances, lacking, strict=True)},
        len(cohort) - len(used),
        tuple(notes),
        p,
    )


@dataclass(frozen=True, eq=False)
class _Subject:
    on_scan: Floats
    straight: Floats
    registered: Floats
    tape: Floats
    no_scan: str  # why there is none; empty where there is one, or none was asked for


def _one(
    one: ModelledCohort,
    subject: int,
    landmarks: Landmarks,
    marks: Sequence[str],
    at: Sequence[int],
    pairs: Ints,
    counts: Ints,
    taped: Ints,
    scans: SubjectScans | None,
) -> _Subject:
    training = one.training
    size = 1.0 / training.transforms[subject].scale
    scan = scans.read(subject) if scans is not None else None
    if isinstance(scan, Scan):
        landmarks = scan.landmarks
    true = np.array([landmarks[mark] if mark in landmarks else np.full(3, np.nan) for mark in marks])
    own = training.shapes[subject, at]
    # Only the landmarks' vertices of the reconstructions are needed; the weights add up to 0.
    residuals = np.einsum("ck,kmd->cmd", one.folds.weights(subject, counts), training.shapes[:, at])
    on_scan = _lengths(true, pairs)
    tape = np.full((len(taped), len(pairs)), np.nan)
    if isinstance(scan, Scan):
        over_skin, template = _tapes(scan.mesh, true, pairs), training.cohort.template.mesh
        for t, shape in enumerate(one.folds.reconstructions(subject, taped)):
            tape[t] = size * _tapes(template.with_vertices(shape), shape[list(at)], pairs) - over_skin
    return _Subject(
        on_scan,
        np.abs(size * _lengths(own - residuals, pairs) - on_scan),
        np.abs(size * _lengths(own, pairs) - on_scan),
        np.abs(tape),
        scan if isinstance(scan, str) else "",
    )


def _lengths(points: Floats, pairs: Ints) -> Floats:
    """Straight distances of pairs of points (..., m, 3), (..., d)."""
    lengths: Floats = np.linalg.norm(points[..., pairs[:, 0], :] - points[..., pairs[:, 1], :], axis=-1)
    return lengths


def _tapes(mesh: TriangleMesh, points: Floats, pairs: Ints) -> Floats:
    """Distances over the skin of pairs of points (m, 3), (d,); NaN where a point or a way is missing."""
    out = np.full(len(pairs), np.nan)
    there: Bools = np.asarray(np.isfinite(points).all(axis=1))
    known: Bools = np.asarray(there[pairs].all(axis=1))
    paths = shortest_paths(mesh, points[pairs[known, 0]], points[pairs[known, 1]])
    out[known] = [
        np.nan if path is None else np.linalg.norm(np.diff(path, axis=0), axis=1).sum() for path in paths
    ]
    return out


def _impossible(cohort: Cohort, p: ClinicalParameters, reason: str) -> ClinicalGeneralization:
    k, d, none = len(cohort), len(p.distances), np.zeros(0, np.int64)
    nothing = np.full((k, d), np.nan)
    lacking = dict.fromkeys(p.distances, k)
    empty = np.zeros((k, 0, d))
    return ClinicalGeneralization(
        reason, cohort.ids, p.distances, nothing, none, empty, nothing, none, empty, lacking, 0, (), p
    )
