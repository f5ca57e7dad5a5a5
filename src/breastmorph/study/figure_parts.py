"""The figures of the paper as parts, from the study's own models and results."""

from __future__ import annotations

import numpy as np

from breastmorph.evaluation.experiments.clinical_generalization import ClinicalGeneralization
from breastmorph.evaluation.experiments.data_amount import Amount, DataAmountExperiment
from breastmorph.evaluation.experiments.masks import MaskExperiment, MaskVariant
from breastmorph.evaluation.experiments.operated import OperatedExperiment
from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.model.files import load_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.figures.metric_curves import (
    ModelCurves,
    Series,
    save_clinical,
    save_data_amount,
    save_model_curves,
    save_operated,
)
from breastmorph.report.figures.registration_boxes import save_registration_boxes
from breastmorph.study.part import Job, Made, NotPossible
from breastmorph.template.files import from_npz

WITH, WITHOUT = "with masks", "without masks"


def draw_masks(job: Job) -> Made:
    """Contours of the three kinds of masks on the template."""
    from breastmorph.report.figures.mask_contours import save_mask_contours

    template = from_npz((job.study.path / "template.npz").read_bytes())
    save_mask_contours(job.place("figures/mask-contours"), template.mesh, template.landmarks)
    return Made({})


def draw_variation(job: Job) -> Made:
    """Where the models with and without masks vary."""
    from breastmorph.report.figures.variation_maps import save_variation_maps

    save_variation_maps(job.place(f"figures/{job.part.name.removeprefix('figure-')}"), _models(job))
    return Made({})


def draw_samples(job: Job) -> Made:
    """Random samples of both models, coloured by the distance from the mean."""
    from breastmorph.report.figures.random_samples import save_random_samples

    place = job.place(f"figures/{job.part.name.removeprefix('figure-')}")
    save_random_samples(place, _models(job), seed=job.part.settings["seed"])
    return Made({})


def draw_modes(job: Job) -> Made:
    """The first eight modes."""
    from breastmorph.report.figures.modes import save_modes

    model = load_model(job.study.model(job.part.settings["variant"]))
    save_modes(job.place("figures/modes"), model, modes=min(8, model.n_components))
    return Made({})


def draw_effect_of_masks(job: Job) -> Made:
    """Experiment 1: the three curves, and the registrations as box plots."""
    name = job.part.needs[0]
    found = MaskExperiment.from_record(job.result(name)["experiment"])
    variants = {WITH: found.with_masks, WITHOUT: found.without_masks}
    save_model_curves(
        job.place(f"figures/{name}-curves"), [_mask_curves(label, one) for label, one in variants.items()]
    )
    boxes = {label: one.scans.mean_squared for label, one in variants.items() if one.scans is not None}
    if len(boxes) == len(variants):
        distortion = {label: one.angle_distortion for label, one in variants.items()}
        save_registration_boxes(job.place(f"figures/{name}-registration"), boxes, distortion)
    return Made({})


def draw_amount_of_data(job: Job) -> Made:
    """Experiment 2: the three curves by number of scans."""
    found = DataAmountExperiment.from_record(job.result("experiment-2")["experiment"])
    save_data_amount(job.place("figures/experiment-2"), [_amount_curves(one) for one in found.amounts])
    return Made({})


def draw_operated(job: Job) -> Made:
    """Experiment 3: generalization to breasts without operation."""
    found = OperatedExperiment.from_record(job.result("experiment-3")["experiment"])
    labels = {
        "operated": "model of operated breasts",
        "not_operated": "model of non-operated breasts",
    }
    series = [Series(label, found.components, *found.curve(model)) for model, label in labels.items()]
    save_operated(job.place("figures/experiment-3"), series)
    return Made({})


def draw_clinical(job: Job) -> Made:
    """Experiment 4: clinical distances of reconstructions."""
    found = ClinicalGeneralization.from_record(job.result("experiment-4")["experiment"])
    if not np.isfinite(found.mean).any():
        raise NotPossible("no scan has the landmarks of these distances")
    straight = {name: Series(name, found.components, found.mean[:, k]) for k, name in enumerate(found.names)}
    tape = {
        name: Series(name, found.tape_components, found.tape_mean[:, k])
        for k, name in enumerate(found.names)
        if np.isfinite(found.tape_mean[:, k]).any()
    }
    save_clinical(job.place("figures/experiment-4"), straight, tape or None)
    return Made({})


def _models(job: Job) -> dict[str, ShapeModel]:
    settings = job.part.settings
    return {
        label: load_model(job.study.model(settings[key]))
        for label, key in ((WITH, "with_masks"), (WITHOUT, "without_masks"))
    }


def _mask_curves(label: str, one: MaskVariant) -> ModelCurves:
    counts = np.arange(1, len(one.share) + 1)
    return ModelCurves(
        Series(label, counts, one.share),
        Series(label, one.components, one.generalization.mean(axis=0), _sd(one.generalization)),
        Series(label, np.arange(1, len(one.specificity) + 1), one.specificity, one.specificity_sd),
    )


def _amount_curves(one: Amount) -> ModelCurves:
    parts = {}
    for figure in ("share", "generalization", "specificity"):
        components, mean, spread = one.curve(figure)
        parts[figure] = Series(one.name, components, mean, spread if len(one.draws) > 1 else None)
    return ModelCurves(parts["share"], parts["generalization"], parts["specificity"])


def _sd(values: Floats) -> Floats:
    deviations: Floats = values.std(axis=0, ddof=1)
    return deviations
