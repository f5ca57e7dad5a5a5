"""The parts behind the cohort: experiments, applications, figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from breastmorph.clinical.distances import PAPER, Request
from breastmorph.clinical.editing import Editor
from breastmorph.clinical.left_out import training_shapes
from breastmorph.clinical.patient import Patient
from breastmorph.clinical.predictor import BreastPredictor, Prediction, learnt_predictor
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.cohort import Cohort
from breastmorph.evaluation.experiments.clinical_generalization import (
    ClinicalGeneralization,
    clinical_generalization,
)
from breastmorph.evaluation.experiments.data_amount import (
    Amount,
    DataAmountExperiment,
    DataAmountParameters,
    OperatedExperiment,
    OperatedParameters,
    compare_amounts,
    compare_operated,
)
from breastmorph.evaluation.experiments.evidence import comparable, paired
from breastmorph.evaluation.experiments.masks import (
    MaskExperiment,
    MaskParameters,
    MaskVariant,
    compare_masks,
)
from breastmorph.evaluation.truth import load_tie
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.files import load_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.figures.curves import (
    ModelCurves,
    Series,
    save_clinical,
    save_data_amount,
    save_model_curves,
    save_operated,
    save_registration_boxes,
)
from breastmorph.study.folder import open_cohort, source_of
from breastmorph.study.part import MASKS, Made, NotPossible, PartJob
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
    from breastmorph.report.figures.torsos import EditedShape, EditedSubject, save_editing_grid

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
    from breastmorph.report.clinical_sheet import Example
    from breastmorph.report.figures.torsos import save_prediction_pairs

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
    return Made(_summary(errors, [cohort.ids[index] for index in chosen], everybody.source))


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

WITH, WITHOUT = "with masks", "without masks"


def draw_masks(job: PartJob) -> Made:
    """Contours of the three kinds of masks on the template."""
    from breastmorph.report.figures.torsos import save_mask_contours

    template = from_npz((job.study.path / "template.npz").read_bytes())
    save_mask_contours(job.place("figures/mask-contours"), template.mesh, template.landmarks)
    return Made({})


def draw_variation(job: PartJob) -> Made:
    """Where the models with and without masks vary."""
    from breastmorph.report.figures.torsos import save_variation_maps

    save_variation_maps(job.place(f"figures/{job.part.name.removeprefix('figure-')}"), _models(job))
    return Made({})


def draw_samples(job: PartJob) -> Made:
    """Random samples of both models, coloured by the distance from the mean."""
    from breastmorph.report.figures.torsos import save_random_samples

    place = job.place(f"figures/{job.part.name.removeprefix('figure-')}")
    save_random_samples(place, _models(job), seed=job.part.settings["seed"])
    return Made({})


def draw_modes(job: PartJob) -> Made:
    """The first eight modes."""
    from breastmorph.report.figures.torsos import save_modes

    model = load_model(job.study.model(job.part.settings["variant"]))
    save_modes(job.place("figures/modes"), model, modes=min(8, model.n_components))
    return Made({})


def draw_effect_of_masks(job: PartJob) -> Made:
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


def draw_amount_of_data(job: PartJob) -> Made:
    """Experiment 2: the three curves by number of scans."""
    found = DataAmountExperiment.from_record(job.result("experiment-2")["experiment"])
    save_data_amount(job.place("figures/experiment-2"), [_amount_curves(one) for one in found.amounts])
    return Made({})


def draw_operated(job: PartJob) -> Made:
    """Experiment 3: generalization to breasts without operation."""
    found = OperatedExperiment.from_record(job.result("experiment-3")["experiment"])
    labels = {
        "operated": "model of operated breasts",
        "not_operated": "model of non-operated breasts",
    }
    series = [Series(label, found.components, *found.curve(model)) for model, label in labels.items()]
    save_operated(job.place("figures/experiment-3"), series)
    return Made({})


def draw_clinical(job: PartJob) -> Made:
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


def _models(job: PartJob) -> dict[str, ShapeModel]:
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
