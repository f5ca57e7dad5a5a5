"""The two applications as parts of a study: subjects that are edited, and breasts that are predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from breastmorph.clinical.distances import PAPER
from breastmorph.clinical.editing import Editor
from breastmorph.clinical.feature_requests import Request
from breastmorph.clinical.patient import Patient
from breastmorph.clinical.prediction import Prediction
from breastmorph.clinical.predictor import BreastPredictor, fit_predictor
from breastmorph.clinical.training_shapes import training_shapes
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.cohort import Cohort
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.files import load_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.paper.cohort_source import open_cohort
from breastmorph.paper.modelled_cohort import comparable
from breastmorph.paper.part import Made, NotPossible, PartJob
from breastmorph.paper.significance import paired
from breastmorph.report.printing import save_rows

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
    request, others = [Request(name, step * sd, relative=True)], [other for other in PAPER if other != name]
    row: dict[str, Any] = {"measure": name, "step_sd": step, "asked_change": step * sd}
    shape: Floats | None = None
    for method in ("exact", "linear"):
        try:
            edit = editor.exact(request, others) if method == "exact" else editor.linear(request, others)
        except BreastMorphError as error:
            row[method] = {"refused": error.text()}
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
    from breastmorph.report.prediction_sheet import Example

    settings = job.part.settings
    model, cohort = _opened(job)
    if len(cohort) <= _FEWEST_TO_LEARN:
        raise NotPossible(
            f"{len(cohort)} subjects with both breasts are too few to predict each by the others; "
            f"{_FEWEST_TO_LEARN + 1} are needed"
        )
    predictor = fit_predictor(model, "right", "surface", None, training_shapes(model, cohort))
    volumes = BreastVolumes.of_model(model)
    errors: list[_Errors] = []
    chosen = _drawn(cohort, settings["subjects"], settings["seed"], "predict")
    examples = []
    for place, index in enumerate(chosen):
        others = predictor.without(int(index))
        own = predictor.frame.to_frame.apply(cohort.shape(index))
        # The right breast of her mirror image is her left one.
        for mirrored in (False, True):
            shape = predictor.frame.mirrored(own) if mirrored else own
            found = others.predict(shape)
            errors.append(_judged(found, shape, others, volumes))
            if place < settings["shown"] and not mirrored:
                examples.append(Example(f"Subject {cohort.ids[index]}", shape, found, shape))
    save_prediction_pairs(job.place("figures/prediction"), examples, upright=model.mean)
    ids = [cohort.ids[index] for index in chosen]
    _save_errors(job, ids, errors)
    return Made(_summary(errors, ids, predictor.source))


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
