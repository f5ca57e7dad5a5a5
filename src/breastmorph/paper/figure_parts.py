"""The figures of the paper as parts of a study, from its own models and results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from breastmorph.foundation.files import plain
from breastmorph.model.files import load_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.paper.clinical_generalization import ClinicalGeneralization
from breastmorph.paper.data_amount import Amount, DataAmountExperiment
from breastmorph.paper.figures.curves import (
    ModelCurves,
    Series,
    save_clinical,
    save_data_amount,
    save_model_curves,
    save_operated,
    save_registration_boxes,
    save_series,
)
from breastmorph.paper.masks import MaskExperiment, MaskVariant
from breastmorph.paper.operated import OperatedExperiment
from breastmorph.paper.part import Made, NotPossible, PartJob
from breastmorph.paper.significance import mean_band
from breastmorph.report.printing import save_rows
from breastmorph.template import from_npz

WITH, WITHOUT, TRUE = "with masks", "without masks", "true shapes"


def draw_masks(job: PartJob) -> Made:
    """Contours of the three kinds of masks on the template."""
    from breastmorph.paper.figures.torsos import save_mask_contours

    template = from_npz((job.study.path / "template.npz").read_bytes())
    save_mask_contours(job.place("figures/mask-contours"), template.mesh, template.landmarks)
    return Made({})


def draw_variation(job: PartJob) -> Made:
    """Where the models with and without masks vary."""
    from breastmorph.paper.figures.torsos import save_variation_maps

    save_variation_maps(job.place(f"figures/{job.part.name.removeprefix('figure-')}"), _models(job))
    return Made({})


def draw_samples(job: PartJob) -> Made:
    """Random samples of both models, coloured by the distance from the mean."""
    from breastmorph.paper.figures.torsos import save_random_samples

    place = job.place(f"figures/{job.part.name.removeprefix('figure-')}")
    save_random_samples(place, _models(job), seed=job.part.settings["seed"])
    return Made({})


def draw_modes(job: PartJob) -> Made:
    """The first eight modes, and what each means."""
    from breastmorph.paper.figures.torsos import mode_meanings, save_modes

    model = load_model(job.study.model(job.part.settings["variant"]))
    meanings = mode_meanings(model)
    save_modes(job.place("figures/modes"), model, meanings)
    return Made({"modes": [plain(asdict(one)) for one in meanings]})


def draw_effect_of_masks(job: PartJob) -> Made:
    """Experiment 1: the three curves, and the registrations as box plots."""
    name = job.part.needs[0]
    found = MaskExperiment.from_record(job.result(name)["experiment"])
    perfect = found.perfect
    record = job.result(job.part.uses[0]).get("experiment") if perfect is None and job.part.uses else None
    if record is not None:  # the true shapes of the same subjects are the same, whatever the method
        default = MaskExperiment.from_record(record)
        perfect = default.perfect if default.ids == found.ids else None
    variants = {WITH: found.with_masks, WITHOUT: found.without_masks}
    curves = {label: mask_curves(label, one) for label, one in variants.items()}
    if perfect is not None:
        curves[TRUE] = mask_curves(TRUE, perfect)
    _save_curves(job, f"figures/{name}-curves", curves, save_model_curves)
    boxes = {label: one.scans.mean_squared for label, one in variants.items() if one.scans is not None}
    if len(boxes) == len(variants):
        distortion = {label: one.angle_distortion for label, one in variants.items()}
        place = job.place(f"figures/{name}-registration")
        save_registration_boxes(place, boxes, distortion)
        columns = ("subject", "registration", "mean_squared_mm2", "angle_distortion_degrees")
        rows = [
            (subject, label, float(boxes[label][k]), float(distortion[label][k]))
            for label in boxes
            for k, subject in enumerate(found.ids)
        ]
        save_rows(place, columns, [dict(zip(columns, row, strict=True)) for row in rows])
    return Made({})


def _save_curves(
    job: PartJob, name: str, curves: dict[str, ModelCurves], draw: Callable[[Path, list[ModelCurves]], None]
) -> None:
    """The three metrics of several models as a figure, with its numbers."""
    draw(job.place(name), list(curves.values()))
    kinds = ("compactness", "generalization", "specificity")
    panels = {kind: {label: getattr(one, kind) for label, one in curves.items()} for kind in kinds}
    save_series(job.place(name), panels)


def draw_amount_of_data(job: PartJob) -> Made:
    """Experiment 2: the three curves by number of scans."""
    found = DataAmountExperiment.from_record(job.result("experiment-2")["experiment"])
    curves = {one.name: _amount_curves(one) for one in found.amounts}
    _save_curves(job, "figures/experiment-2", curves, save_data_amount)
    return Made({})


def draw_operated(job: PartJob) -> Made:
    """Experiment 3: generalization to breasts without operation."""
    found = OperatedExperiment.from_record(job.result("experiment-3")["experiment"])
    labels = {"operated": "model of operated breasts", "not_operated": "model of non-operated breasts"}
    series = {
        label: Series(label, found.components, found.curve(model)[0], *found.band(model))
        for model, label in labels.items()
    }
    place = job.place("figures/experiment-3")
    save_operated(place, list(series.values()))
    save_series(place, {"generalization": series})
    return Made({})


def draw_clinical(job: PartJob) -> Made:
    """Experiment 4: clinical distances of reconstructions."""
    found = ClinicalGeneralization.from_record(job.result("experiment-4")["experiment"])
    if not np.isfinite(found.mean).any():
        raise NotPossible("no scan has the landmarks of these distances")
    straight = {
        name: Series(name, found.components, found.mean[:, k], *mean_band(found.straight[:, :, k]))
        for k, name in enumerate(found.names)
    }
    known = np.isfinite(found.straight).all(axis=2, keepdims=True)
    whole = np.where(known, found.straight, np.nan).mean(axis=2)
    straight["average"] = Series("average", found.components, found.average, *mean_band(whole))
    tape = {
        name: Series(name, found.tape_components, found.tape_mean[:, k])
        for k, name in enumerate(found.names)
        if np.isfinite(found.tape_mean[:, k]).any()
    }
    save_clinical(job.place("figures/experiment-4"), straight, tape or None)
    save_series(job.place("figures/experiment-4"), {"straight": straight, "along the skin": tape})
    return Made({})


def _models(job: PartJob) -> dict[str, ShapeModel]:
    settings = job.part.settings
    return {
        label: load_model(job.study.model(settings[key]))
        for label, key in ((WITH, "with_masks"), (WITHOUT, "without_masks"))
    }


def mask_curves(label: str, one: MaskVariant) -> ModelCurves:
    """The three metrics of one registration's model, with their bands."""
    counts = np.arange(1, len(one.share) + 1)
    half = 1.96 * one.specificity_sd / np.sqrt(len(one.sampled))
    return ModelCurves(
        Series(label, counts, one.share, one.resampled.low[: len(counts)], one.resampled.high[: len(counts)]),
        Series(label, one.components, one.generalization.mean(axis=0), *mean_band(one.generalization)),
        Series(label, counts, one.specificity, one.specificity - half, one.specificity + half),
    )


def _amount_curves(one: Amount) -> ModelCurves:
    parts = {}
    for figure in ("share", "generalization", "specificity"):
        components, mean, _ = one.curve(figure)
        parts[figure] = Series(one.name, components, mean, *one.band(figure))
    return ModelCurves(parts["share"], parts["generalization"], parts["specificity"])
