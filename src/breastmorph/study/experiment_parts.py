"""The paper's four experiments as parts."""

from __future__ import annotations

from breastmorph.errors import BreastMorphError
from breastmorph.evaluation.experiments.clinical_generalization import clinical_generalization
from breastmorph.evaluation.experiments.data_amount import DataAmountParameters, compare_amounts
from breastmorph.evaluation.experiments.masks import MaskParameters, compare_masks
from breastmorph.evaluation.experiments.operated import OperatedParameters, compare_operated
from breastmorph.evaluation.truth import load_tie
from breastmorph.study.parameters import MASKS
from breastmorph.study.part import Job, Made, NotPossible
from breastmorph.study.source import open_cohort, source_of


def effect_of_masks(job: Job) -> Made:
    """Experiment 1: registered with masks against without, for one preset."""
    settings, source = job.part.settings, source_of(job.study)
    with_masks = open_cohort(job.study, settings["with_masks"])
    without_masks = open_cohort(job.study, settings["without_masks"])
    truth = source.truth if job.result("truth") else None
    why_no_truth = "" if truth else "the truth behind the scans is not known"
    if truth is not None:
        try:
            load_tie(truth, with_masks.template)
        except BreastMorphError as error:  # a template of one's own: nobody knows where its vertices belong
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


def amount_of_data(job: Job) -> Made:
    """Experiment 2: models of few and of many scans."""
    settings = job.part.settings
    found = compare_amounts(
        open_cohort(job.study, settings["variant"]),
        DataAmountParameters(
            sizes=tuple(settings["sizes"]),
            draws=settings["draws"],
            samples=settings["samples"],
            seed=settings["seed"],
        ),
    )
    if found.impossible:
        raise NotPossible(found.impossible, {"experiment": found.record()})
    return Made({"experiment": found.record()})


def operated_breasts(job: Job) -> Made:
    """Experiment 3: do operated breasts explain others?"""
    settings, table = job.part.settings, source_of(job.study).table
    if table is None:
        raise NotPossible("there is no cohort.csv beside the scans, so who was operated on is not known")
    found = compare_operated(
        open_cohort(job.study, settings["variant"]),
        OperatedParameters(draws=settings["draws"], seed=settings["seed"]),
    )
    if found.impossible:
        raise NotPossible(found.impossible, {"experiment": found.record()})
    return Made({"experiment": found.record()})


def clinical_distances(job: Job) -> Made:
    """Experiment 4: are clinical distances kept by reconstructions?"""
    found = clinical_generalization(
        open_cohort(job.study, job.part.settings["variant"]),
        scans=source_of(job.study).found(),
        check=job.check,
    )
    if found.impossible:
        raise NotPossible(found.impossible, {"experiment": found.record()})
    return Made({"experiment": found.record()})
