"""The parts behind the cohort: experiments, applications, figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.clinical.distances import PAPER
from breastmorph.clinical.editing import Editor
from breastmorph.clinical.feature_requests import Request
from breastmorph.clinical.patient import Patient
from breastmorph.clinical.prediction import Prediction
from breastmorph.clinical.predictor import BreastPredictor, learnt_predictor
from breastmorph.clinical.training_shapes import training_shapes
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.cohort import Cohort
from breastmorph.evaluation.truth import load_tie
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.files import load_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.paper.clinical_generalization import (
    ClinicalGeneralization,
    clinical_generalization,
)
from breastmorph.paper.data_amount import (
    Amount,
    DataAmountExperiment,
    DataAmountParameters,
    OperatedExperiment,
    OperatedParameters,
    compare_amounts,
    compare_operated,
)
from breastmorph.paper.evidence import comparable, mean_band, paired
from breastmorph.paper.figures.boxes import save_registration_boxes
from breastmorph.paper.figures.curves import (
    ModelCurves,
    Series,
    save_clinical,
    save_data_amount,
    save_model_curves,
    save_operated,
    save_series,
)
from breastmorph.paper.folder import open_cohort, source_of
from breastmorph.paper.masks import (
    MaskExperiment,
    MaskParameters,
    MaskVariant,
    compare_masks,
)
from breastmorph.paper.part import MASKS, Made, NotPossible, PartJob
from breastmorph.report.render import save_rows
from breastmorph.template import from_npz

# --------------------------------------------------------------------------------------------------------------------
# The paper's four experiments as parts
# --------------------------------------------------------------------------------------------------------------------


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


def amount_of_data(job: PartJob) -> Made:
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


def operated_breasts(job: PartJob) -> Made:
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


def clinical_distances(job: PartJob) -> Made:
    """Experiment 4: are clinical distances kept by reconstructions?"""
    found = clinical_generalization(
        open_cohort(job.study, job.part.settings["variant"]),
        scans=source_of(job.study).found(),
        check=job.check,
    )
    if found.impossible:
        raise NotPossible(found.impossible, {"experiment": found.record()})
    return Made({"experiment": found.record()})


# --------------------------------------------------------------------------------------------------------------------
# The paper's two applications as parts: editing by measures, and the prediction of a missing breast
# --------------------------------------------------------------------------------------------------------------------

METHODS = ("model", "mirror", "mean shape")
_STREAMS = {"edit": 5, "predict": 6}  # of random numbers; the experiments have 1 to 4
_FEWEST_TO_LEARN = 6  # subjects that predict another


def edit_subjects(job: PartJob) -> Made:
    """Edit some subjects by the paper's three distances, each with the other two held."""
    from breastmorph.paper.figures.applications import EditedShape, EditedSubject, save_editing_grid

    settings = job.part.settings
    model, cohort = _opened(job)
    rows: list[dict[str, Any]] = []
    shown = []
    for index in _drawn(cohort, settings["subjects"], settings["seed"], "edit"):
        editor = Editor(model, Patient(cohort.ids[index], cohort.shape(index), cohort.to_file[index]))
        pictures = []
        for name in PAPER:
            _, _, sd = editor.usual(name)
            for step in settings["steps"]:
                row, shape = _edited(editor, name, step, sd)
                rows.append({"subject": cohort.ids[index], **row})
                pictures.append(EditedShape(f"{name} {step_text(step)}", shape, (name,)))
        shown.append(EditedSubject(f"Subject {cohort.ids[index]}", cohort.shape(index), pictures))
    save_editing_grid(
        job.place("figures/editing"), shown, model.faces, model.landmark_ids, upright=model.mean
    )
    columns = ("subject", "measure", "step_sd", "before", "requested", "exact", "linear", "unit")
    attained = [
        {method: row[method].get("after", "refused") for method in ("exact", "linear")} for row in rows
    ]
    save_rows(
        job.place("figures/editing"), columns, [row | ends for row, ends in zip(rows, attained, strict=True)]
    )
    return Made({"edits": rows})


def step_text(step: float) -> str:
    """A number of standard deviations with its sign."""
    return f"{step:+g} sd".replace("-", "\N{MINUS SIGN}")


def _edited(editor: Editor, name: str, step: float, sd: float) -> tuple[dict[str, Any], Floats | None]:
    """One measure changed by some standard deviations, in both versions."""
    wish, others = [Request(name, step * sd, relative=True)], [other for other in PAPER if other != name]
    row: dict[str, Any] = {"measure": name, "step_sd": step, "asked_change": step * sd}
    shape: Floats | None = None
    for method in ("exact", "linear"):
        try:
            edit = editor.exact(wish, others) if method == "exact" else editor.linear(wish, others)
        except BreastMorphError as error:
            row[method] = {"refused": error.text("command")}
            continue
        asked = edit.changes[0]
        row |= {"before": asked.before, "requested": asked.requested, "unit": asked.unit}
        row[method] = {
            "after": asked.after,
            "largest_error": edit.largest_error,
            "length_sd": edit.length,
            "moved": plain(dict(edit.movements)),
        }
        if method == "exact":
            shape = edit.shape
    return row, shape


@dataclass(frozen=True)
class _Errors:
    """What one prediction missed, by method; lengths in mm, volumes in cc."""

    points: list[float]
    surface: list[float]
    volume: list[float]
    covered: float  # share of the points within 1.96 standard deviations along the normal
    deviation: float  # predicted, mean over the breast


def predict_breasts(job: PartJob) -> Made:
    """Predict both breasts of some subjects, each by a model of all the others, against mirroring."""
    from breastmorph.paper.figures.applications import save_prediction_pairs
    from breastmorph.report.clinical_sheet import Example

    settings = job.part.settings
    model, cohort = _opened(job)
    if len(cohort) <= _FEWEST_TO_LEARN:
        raise NotPossible(
            f"{len(cohort)} subjects with both breasts are too few to predict each by the others; "
            f"{_FEWEST_TO_LEARN + 1} are needed"
        )
    everybody = learnt_predictor(model, "right", "surface", None, training_shapes(model, cohort))
    volumes = BreastVolumes.of_model(model)
    errors: list[_Errors] = []
    chosen = _drawn(cohort, settings["subjects"], settings["seed"], "predict")
    examples = []
    for place, index in enumerate(chosen):
        others = everybody.without(int(index))
        own = everybody.frame.to_frame.apply(cohort.shape(index))
        # The right breast of her mirror image is her left one.
        for mirrored in (False, True):
            shape = everybody.frame.mirrored(own) if mirrored else own
            found = others.predict(shape)
            errors.append(_judged(found, shape, others, volumes))
            if place < settings["shown"] and not mirrored:
                examples.append(Example(f"Subject {cohort.ids[index]}", shape, found, shape))
    save_prediction_pairs(job.place("figures/prediction"), examples, upright=model.mean)
    ids = [cohort.ids[index] for index in chosen]
    _save_errors(job, ids, errors)
    return Made(_summary(errors, ids, everybody.source))


def _save_errors(job: PartJob, subjects: list[str], errors: list[_Errors]) -> None:
    columns = ("subject", "breast", "method", "points_mm", "surface_mm", "volume_cc")
    rows = [
        dict(zip(columns, (subject, side, method, one.points[m], one.surface[m], one.volume[m]), strict=True))
        for k, one in enumerate(errors)
        for subject, side in [(subjects[k // 2], ("right", "left")[k % 2])]
        for m, method in enumerate(METHODS)
    ]
    save_rows(job.place("figures/prediction"), columns, rows)


def _judged(found: Prediction, true: Floats, predictor: BreastPredictor, volumes: BreastVolumes) -> _Errors:
    breast = found.region.breast
    surface = Surface(TriangleMesh(true, found.faces))
    side = found.region.side
    candidates = (found.shape, found.mirrored, predictor.mean_shape(true))
    normals = vertex_normals(found.shape, found.faces)[breast]
    along = ((true[breast] - found.shape[breast]) * normals).sum(axis=1)
    deviation = found.sd_normal[breast]
    return _Errors(
        [float(np.linalg.norm(shape[breast] - true[breast], axis=1).mean()) for shape in candidates],
        [float(surface.closest(shape[breast]).distances.mean()) for shape in candidates],
        [volumes.cc(shape, side) - volumes.cc(true, side) for shape in candidates],
        float((np.abs(along) <= 1.96 * deviation).mean()),
        float(deviation.mean()),
    )


def _summary(errors: list[_Errors], subjects: list[str], source: str) -> dict[str, Any]:
    """Figures over all predictions; tests count subjects, whose two sides go together."""
    figures: dict[str, Any] = {}
    for name in ("points", "surface", "volume"):
        values = np.abs([getattr(one, name) for one in errors])
        by_subject = values.reshape(len(subjects), 2, len(METHODS)).mean(axis=1)
        figures[name] = {
            "mean": dict(zip(METHODS, values.mean(axis=0).tolist(), strict=True)),
            "median": dict(zip(METHODS, np.median(values, axis=0).tolist(), strict=True)),
            "against_mirror": paired(by_subject[:, 0], by_subject[:, 1]).record(),
        }
    return {
        "subjects": subjects,
        "predictions": len(errors),
        "source": source,
        "errors": figures,
        "covered": float(np.mean([one.covered for one in errors])),
        "deviation": float(np.mean([one.deviation for one in errors])),
    }


def _opened(job: PartJob) -> tuple[ShapeModel, Cohort]:
    variant = job.part.settings["variant"]
    cohort = comparable(open_cohort(job.study, variant))
    return load_model(job.study.model(variant)), cohort


def _drawn(cohort: Cohort, wanted: int, seed: int, what: str) -> Ints:
    """Some subjects, by chance, in their order."""
    rng = np.random.default_rng([seed, _STREAMS[what]])
    return np.sort(rng.choice(len(cohort), min(wanted, len(cohort)), replace=False))


# --------------------------------------------------------------------------------------------------------------------
# The figures of the paper as parts, from the study's own models and results
# --------------------------------------------------------------------------------------------------------------------

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
            dict(
                zip(
                    columns,
                    (subject, label, float(boxes[label][k]), float(distortion[label][k])),
                    strict=True,
                )
            )
            for label in boxes
            for k, subject in enumerate(found.ids)
        ]
        save_rows(place, columns, rows)
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
    labels = {
        "operated": "model of operated breasts",
        "not_operated": "model of non-operated breasts",
    }
    series = {
        label: Series(label, found.components, found.curve(model)[0], *found.band(model))
        for model, label in labels.items()
    }
    save_operated(job.place("figures/experiment-3"), list(series.values()))
    save_series(job.place("figures/experiment-3"), {"generalization": series})
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
