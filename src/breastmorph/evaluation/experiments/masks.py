"""Experiment 1: what breast probability masks change, by the paper's measures and, where it is known, by truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.errors import BreastMorphError
from breastmorph.evaluation.curve import counts_of, whole
from breastmorph.evaluation.experiments.against_scans import ScanDistances, scan_distances
from breastmorph.evaluation.experiments.modelled import ModelledCohort, of_both
from breastmorph.evaluation.experiments.recorded import Recorded, rounded
from breastmorph.evaluation.experiments.true_shapes import VariantTruth, true_cohort, variant_truth
from breastmorph.evaluation.experiments.variation_by_chance import ResampledVariation, resampled_variation
from breastmorph.evaluation.specificity import draw_coefficients, specificity
from breastmorph.evaluation.variation import compactness, decoupling, vertex_variances
from breastmorph.mesh.triangle_mesh import Floats, Ints
from breastmorph.registration.result import shape_metrics
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.folder import ScanFiles
from breastmorph.threads import one_thread

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
            f"{len(ids)} subjects with both sides are in both cohorts",
            f"Register the same scans with and without masks, at least {_FEWEST}",
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
        del modelled  # makes room
        perfect = None
        if truth is not None and true_shapes:
            perfect = _variant(ModelledCohort.of(true_cohort(cohorts[0], truth)), p, None, None)
    everybody = set(with_masks.ids) | set(without_masks.ids)
    return MaskExperiment(
        preset, ids, len(everybody) - len(ids), breast_share, variants[0], variants[1], perfect, p
    )


def _variant(
    modelled: ModelledCohort,
    p: MaskParameters,
    scans: ScanDistances | None,
    truth: VariantTruth | None,
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
    angles = [
        shape_metrics(template.vertices, shape, template.faces)["angle_distortion"]
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
