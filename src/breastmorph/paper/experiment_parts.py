"""The paper's four experiments as parts of a study."""

from __future__ import annotations

from breastmorph.evaluation.truth import load_tie
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.paper.clinical_generalization import clinical_generalization
from breastmorph.paper.cohort_source import open_cohort, source_of
from breastmorph.paper.data_amount import DataAmountParameters, compare_amounts
from breastmorph.paper.masks import MaskParameters, compare_masks
from breastmorph.paper.modelled_cohort import CohortExperiment
from breastmorph.paper.operated import OperatedParameters, compare_operated
from breastmorph.paper.parameters import MASKS
from breastmorph.paper.part import Made, NotPossible, PartJob


def effect_of_masks(job: PartJob) -> Made:
    """Experiment 1: registered with masks against without, for one preset."""
    settings, source = job.part.settings, source_of(job.study)
    with_masks = open_cohort(job.study, settings["with_masks"])
    without_masks = open_cohort(job.study, settings["without_masks"])
    truth = source.truth if job.result("truth") else None
    why_no_truth = "" if truth else "the truth behind the scans is not known"
    if truth is not None:
        try:
            load_tie(truth, with_masks.template)
        except BreastMorphError as error:  # of another template it is not known where its vertices belong
            truth, why_no_truth = None, error.cause
    found = compare_masks(
        with_masks,
        without_masks,
        MaskParameters(samples=settings["samples"], seed=settings["seed"]),
        preset=settings["preset"],
        scans=source.found(),
        check=job.check,
        truth=truth,
        # The same for every method, so computed once; results share them where the subjects are the same.
        true_shapes=settings["preset"] == MASKS.preset,
    )
    return Made({"experiment": found.record(), "why_no_truth": why_no_truth})


def amount_of_data(job: PartJob) -> Made:
    """Experiment 2: models of few and of many scans."""
    settings = job.part.settings
    parameters = DataAmountParameters(
        tuple(settings["sizes"]), settings["draws"], settings["samples"], settings["seed"]
    )
    return _made(compare_amounts(open_cohort(job.study, settings["variant"]), parameters))


def operated_breasts(job: PartJob) -> Made:
    """Experiment 3: do operated breasts explain others?"""
    settings = job.part.settings
    if source_of(job.study).table is None:
        raise NotPossible("there is no cohort.csv beside the scans, so who was operated on is not known")
    parameters = OperatedParameters(draws=settings["draws"], seed=settings["seed"])
    return _made(compare_operated(open_cohort(job.study, settings["variant"]), parameters))


def clinical_distances(job: PartJob) -> Made:
    """Experiment 4: are clinical distances kept by reconstructions?"""
    cohort = open_cohort(job.study, job.part.settings["variant"])
    return _made(clinical_generalization(cohort, scans=source_of(job.study).found(), check=job.check))


def _made(found: CohortExperiment) -> Made:
    record = {"experiment": found.record()}
    if found.impossible:
        raise NotPossible(found.impossible, record)
    return Made(record)
