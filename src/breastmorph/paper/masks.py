"""Experiment 1: what breast probability masks change, by the paper's measures and, where it is known, by truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.evaluation.model_evaluation import SubjectScans, mean_distance, onto_scan
from breastmorph.evaluation.specificity import draw_coefficients, specificity
from breastmorph.evaluation.training_set import (
    compactness,
    counts_of,
    decoupling,
    mean_of_known,
    vertex_variances,
    whole,
)
from breastmorph.evaluation.truth import compare_with_truth, load_tie, load_truth
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.machine import one_thread
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_angles, face_normals, vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.paper.modelled_cohort import ModelledCohort, of_both
from breastmorph.paper.records import Recorded, rounded
from breastmorph.paper.significance import drawn_shares, resamples
from breastmorph.scan.check import CheckParameters, ScanFiles
from breastmorph.scan.scan import Scan


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


_FACING = 0.5  # cosine between normals: 60 degrees, as in registration
_DOUBTFUL = 5.0  # mm: beyond it a scan's point must not have its closest point where the scan has another one


@dataclass(frozen=True, eq=False)
class ScanDistances(Recorded):
    """Distances between a cohort and its raw scans, at the subjects' own size; NaN where a scan is not known.

    Points whose closest point lies on the other surface's border (beyond the scan, over its holes) do not count, nor
    do those of the scan that the template does not cover, such as the arms.

    Attributes
    ----------
    squared : (k, 2) float
        Mean squared distance in square mm: from the registered vertices to the scan, and from the scan's vertices to
        the registered surface.
    distance_breast, distance_outside : (k,) float
        Mean distance in mm from the registered vertices to the scan, by the template's mask.
    components : (c,) int
    reconstructed_breast : (k, c) float
        Mean distance in mm from the left-out subject's reconstruction to its scan, in the breast.
    failures : tuple of str
        Subjects without a readable scan, and why.
    """

    squared: Floats
    distance_breast: Floats
    distance_outside: Floats
    components: Ints
    reconstructed_breast: Floats
    failures: tuple[str, ...]

    @property
    def mean_squared(self) -> Floats:
        """Both directions together, (k,): the paper's MSE."""
        both: Floats = self.squared.mean(axis=1)
        return both


def scan_distances(
    variants: Sequence[ModelledCohort],
    found: Sequence[ScanFiles],
    components: Ints,
    check: CheckParameters | None = None,
) -> tuple[ScanDistances, ...]:
    """Measure several registrations of the same subjects against their scans.

    Parameters
    ----------
    variants : sequence of ModelledCohort
        With the same subjects in the same order.
    found : sequence of ScanFiles
        Matched to the subjects by id.
    components : (c,) int
    check : CheckParameters, optional
        How scans are read.
    """
    scans = SubjectScans(variants[0].training.cohort, found, check)
    ids = variants[0].ids
    rows = np.full((len(variants), len(ids), 4 + len(components)), np.nan)
    failures = []
    for subject, name in enumerate(ids):
        scan = scans.read(subject)
        if isinstance(scan, str):
            failures.append(f"{name}: {scan}")
            continue
        surface = Surface(scan.mesh, compiled=True)  # asked a dozen times
        for v, variant in enumerate(variants):
            rows[v, subject] = _one(variant, subject, scan, surface, components)
    return tuple(
        ScanDistances(
            rounded(row[:, :2]),
            rounded(row[:, 2]),
            rounded(row[:, 3]),
            components,
            rounded(row[:, 4:]),
            tuple(failures),
        )
        for row in rows
    )


def _one(variant: ModelledCohort, subject: int, scan: Scan, surface: Surface, components: Ints) -> Floats:
    training = variant.training
    to_scan = onto_scan(training.cohort, subject, scan)
    shape = to_scan.apply(training.cohort.shape(subject))
    found = surface.closest(shape)
    there, kept_there = found.distances, ~found.on_boundary
    template = training.cohort.template.mesh
    back, kept_back = _off_template(template.with_vertices(shape), scan, surface)
    breast = variant.breast
    to_own = to_scan.after(training.transforms[subject].inverse())
    reconstructed = [
        mean_distance(surface, to_own.apply(given_back[breast]))
        for given_back in variant.folds.reconstructions(subject, components)
    ]
    return np.array(
        [
            mean_of_known(there[kept_there] ** 2),
            mean_of_known(back[kept_back] ** 2),
            mean_of_known(there[kept_there & breast]),
            mean_of_known(there[kept_there & ~breast]),
            *reconstructed,
        ]
    )


def _off_template(registered: TriangleMesh, scan: Scan, surface: Surface) -> tuple[Floats, Bools]:
    """Distances of a scan's vertices to the registered surface, and which of them the template covers."""
    found = Surface(registered, compiled=True).closest(scan.mesh.vertices)
    normals = vertex_normals(scan.mesh.vertices, scan.mesh.faces)
    there = face_normals(registered.vertices, registered.faces)[found.faces]
    covered: Bools = ~found.on_boundary & ((normals * there).sum(axis=1) > _FACING)
    # An arm's closest point lies on the flank, where the scan has skin of its own.
    far = np.flatnonzero(covered & (found.distances > _DOUBTFUL))
    if len(far):
        own = surface.closest(found.points[far]).distances
        covered[far] = own > found.distances[far] / 2.0
    return found.distances, covered


@dataclass(frozen=True, eq=False)
class ResampledVariation(Recorded):
    """A cohort's variation in resampled cohorts; the same seed draws the same subjects for every variant.

    Attributes
    ----------
    inside_over_outside : (b,) float
        Variance of a breast vertex over that of another.
    components : (c,) int
    share : (b, c) float
        Of the variance that the first components hold. Subjects drawn twice make it a little too large, in all
        variants alike: only differences between variants are to be read.
    low, high : (q,) float
        95 % confidence interval of the share that 1 to q components hold.
    """

    inside_over_outside: Floats
    components: Ints
    share: Floats
    low: Floats
    high: Floats


def resampled_variation(
    variant: ModelledCohort, components: Ints, times: int, seed: int
) -> ResampledVariation:
    """Draw a cohort's subjects anew many times."""
    breast = variant.breast
    with one_thread():
        whole = variant.folds.gram
        centred = variant.training.shapes[:, breast] - variant.folds.mean[breast]
        flat = centred.reshape(len(centred), -1)
        inside = flat @ flat.T
        drawn = resamples(len(flat), times, seed)
        drawn = drawn[(drawn > 0).sum(axis=1) > 1]  # one subject alone shows no variation
        within, around = (_sums(gram, drawn) for gram in (inside, whole - inside))
        ratio = (within / max(int(breast.sum()), 1)) / (around / max(int((~breast).sum()), 1))
        share, low, high = drawn_shares(whole, drawn)
    share = rounded(share[:, components - 1])
    return ResampledVariation(rounded(ratio), components, share, rounded(low), rounded(high))


def _sums(gram: Floats, drawn: Floats) -> Floats:
    """Sums of squares about the mean of every resampled cohort, (b,)."""
    n = drawn.sum(axis=1)
    sums: Floats = drawn @ np.diag(gram) - ((drawn @ gram) * drawn).sum(axis=1) / n
    return sums


_FEWEST = 4  # subjects, for a leave-one-out with two components
_BATCH = 50  # samples at a time


@dataclass(frozen=True)
class MaskParameters(Recorded):
    """How much to compute.

    Attributes
    ----------
    samples : int
        Random shapes for specificity.
    seed : int
    first : tuple of int
        Numbers of components at which compactness is compared.
    table : tuple of int
        Numbers of components (and all) at which reconstructions are compared with the scans.
    resamples : int
        Of the subjects, for the intervals of variances.
    most_moved : float
        Share of the vertices that counts as a sample's area of highest variation.
    moved_samples : int
        Samples whose area of highest variation is looked for.
    """

    samples: int = 1000
    seed: int = 0
    first: tuple[int, ...] = (1, 2, 3, 5, 8)
    table: tuple[int, ...] = (1, 5, 10, 20, 30, 50)
    resamples: int = 1000
    most_moved: float = 0.05
    moved_samples: int = 300


@dataclass(frozen=True, eq=False)
class MaskVariant(Recorded):
    """One registration of the cohort and its model.

    Attributes
    ----------
    variance : (q,) float
        Cumulative variance of the components, square mm: compactness.
    share : (q,) float
        The same as a share of the total.
    components : (c,) int
        Of a left-out model: 0 to k - 2.
    generalization, generalization_breast : (k, c) float
        Of every left-out subject, mm.
    specificity, specificity_sd, specificity_breast : (q,) float
        Mean (and standard deviation) over the samples, mm, with 1 to q components.
    sampled : (samples,) float
        Specificity of every sample with all components, mm.
    sd_map : (n,) float
        Standard deviation of every vertex over the subjects (all three directions together), mm.
    variance_inside, variance_outside : float
        Of a vertex, mean over the vertices, square mm.
    moved_in_breast : (m,) float
        For random samples, the share of their most moved vertices that lies in the breast.
    angle_distortion : (k,) float
        Degrees.
    resampled : ResampledVariation
    scans : ScanDistances, optional
    truth : VariantTruth, optional
    """

    variance: Floats
    share: Floats
    components: Ints
    generalization: Floats
    generalization_breast: Floats
    specificity: Floats
    specificity_sd: Floats
    specificity_breast: Floats
    sampled: Floats
    sd_map: Floats
    variance_inside: float
    variance_outside: float
    moved_in_breast: Floats
    angle_distortion: Floats
    resampled: ResampledVariation
    scans: ScanDistances | None
    truth: VariantTruth | None

    @property
    def inside_over_outside(self) -> float:
        """Variance of a breast vertex over that of another."""
        return self.variance_inside / self.variance_outside if self.variance_outside else float("nan")


@dataclass(frozen=True, eq=False)
class MaskExperiment(Recorded):
    """With masks against without.

    Attributes
    ----------
    preset : str
        How the cohorts were registered.
    ids : tuple of str
        The subjects in both models.
    left_out : int
        Subjects that only one cohort has, that have an absent side, or that are copies of others.
    breast_share : float
        Of the vertices: what ``moved_in_breast`` would be by chance.
    with_masks, without_masks : MaskVariant
    perfect : MaskVariant, optional
        The true shapes, where they are known: what a perfect registration would give. A variant with smaller errors
        than this one has collapsed, it is not better.
    parameters : MaskParameters
    """

    preset: str
    ids: tuple[str, ...]
    left_out: int
    breast_share: float
    with_masks: MaskVariant
    without_masks: MaskVariant
    perfect: MaskVariant | None
    parameters: MaskParameters


def compare_masks(
    with_masks: Cohort,
    without_masks: Cohort,
    parameters: MaskParameters | None = None,
    *,
    preset: str = "default",
    scans: Sequence[ScanFiles] | None = None,
    check: CheckParameters | None = None,
    truth: Path | None = None,
    true_shapes: bool = True,
) -> MaskExperiment:
    """Run experiment 1.

    Parameters
    ----------
    with_masks, without_masks : Cohort
        The same scans, registered twice; the subjects with both sides that both have are compared.
    parameters : MaskParameters, optional
    preset : str
        What to call the settings of the registration.
    scans : sequence of ScanFiles, optional
        The raw scans: without them no mean squared error.
    check : CheckParameters, optional
        How scans are read.
    truth : Path, optional
        The ``truth/`` folder of a phantom cohort.
    true_shapes : bool
        Also model the true shapes, where the truth is known. They do not depend on how scans were registered.
    """
    p = parameters or MaskParameters()
    cohorts = of_both(with_masks, without_masks)
    ids = cohorts[0].ids
    if len(ids) < _FEWEST:
        raise BreastMorphError(
            "{n_ids} subjects with both sides are in both cohorts",
            "Register the same scans with and without masks, at least {fewest}",
            n_ids=len(ids),
            fewest=_FEWEST,
        )
    if not np.array_equal(cohorts[0].template.mesh.faces, cohorts[1].template.mesh.faces):
        raise BreastMorphError(
            "the two cohorts have different templates", "Register both with the same template"
        )
    with one_thread():  # last digits must not depend on the machine's cores
        truths = [variant_truth(cohort, truth) if truth is not None else None for cohort in cohorts]
        modelled = [ModelledCohort.of(cohort) for cohort in cohorts]
        distances: Sequence[ScanDistances | None] = (None, None)
        if scans is not None:
            chosen = counts_of(p.table, modelled[0].folds.most_components)
            distances = scan_distances(modelled, scans, chosen, check)
        variants = [
            _variant(one, p, against, known)
            for one, against, known in zip(modelled, distances, truths, strict=True)
        ]
        breast_share = float(modelled[0].breast.mean())
        del modelled  # frees memory
        perfect = None
        if truth is not None and true_shapes:
            perfect = _variant(ModelledCohort.of(true_cohort(cohorts[0], truth)), p, None, None)
    in_either = set(with_masks.ids) | set(without_masks.ids)
    return MaskExperiment(
        preset, ids, len(in_either) - len(ids), breast_share, variants[0], variants[1], perfect, p
    )


def _variant(
    modelled: ModelledCohort, p: MaskParameters, scans: ScanDistances | None, truth: VariantTruth | None
) -> MaskVariant:
    model, training = modelled.model, modelled.training
    compact = compactness(model)
    regions = whole(len(modelled.breast)) | {"breast": modelled.breast}
    counts = np.arange(modelled.folds.most_components + 1)
    left_out = rounded(modelled.folds.point_distances(regions, counts))
    near = specificity(model, training.shapes, regions, p.samples, p.seed)
    calm = decoupling(training.shapes, modelled.breast)
    spread = vertex_variances(training.shapes).sum(axis=1)
    template = training.cohort.template.mesh
    before = face_angles(template.vertices, template.faces)
    angles = [
        float(np.degrees(np.abs(face_angles(shape, template.faces) - before).mean()))
        for shape in training.cohort.shapes()
    ]
    first = np.array([count for count in p.first if count <= model.n_components], dtype=np.int64)
    return MaskVariant(
        rounded(compact.variance, 3),
        rounded(compact.share),
        counts,
        left_out[:, :, 0],
        left_out[:, :, 1],
        rounded(near["whole"].mean),
        rounded(near["whole"].sd),
        rounded(near["breast"].mean),
        rounded(near["whole"].values[:, -1]),
        rounded(np.sqrt(spread), 4),
        calm.variance_inside,
        calm.variance_outside,
        rounded(_most_moved(modelled, p)),
        rounded(angles),
        resampled_variation(modelled, first, p.resamples, p.seed),
        scans,
        truth,
    )


def _most_moved(modelled: ModelledCohort, p: MaskParameters) -> Floats:
    """Share of the most moved vertices of random samples that lies in the breast, (m,)."""
    model, breast = modelled.model, modelled.breast
    top = max(1, round(p.most_moved * len(breast)))
    drawn = draw_coefficients(model, min(p.samples, p.moved_samples), p.seed).astype(np.float32)
    shares = []
    for start in range(0, len(drawn), _BATCH):
        moved = (drawn[start : start + _BATCH] @ model.basis.T).reshape(-1, len(breast), 3)
        lengths = np.square(moved).sum(axis=2)
        most = np.argpartition(-lengths, top - 1, axis=1)[:, :top]
        shares.append(breast[most].mean(axis=1))
    return np.concatenate(shares)
