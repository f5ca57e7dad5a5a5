"""What is asked of the model in use and of shapes: geometry, measures, editing, predictions, plans, cuts."""

from __future__ import annotations

import secrets
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from breastmorph.explorer.answers import bad_request, packed
from breastmorph.explorer.app import Asked, Download
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.open_scans import picked_vertices
from breastmorph.explorer.predicting import planned, predict_patient
from breastmorph.explorer.shapes import shape_of
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.files import save_model
from breastmorph.scan.scan import SIDES

_MOST_CUT = 4  # shapes in one cut


def model_state(asked: Asked) -> dict[str, Any]:
    """What the model is."""
    return asked.session.model_record()


def model_geometry(asked: Asked) -> bytes:
    """Mean, faces and modes."""
    return asked.session.view.geometry


def model_maps(asked: Asked) -> bytes:
    """Values per vertex."""
    return asked.session.view.maps


def shape(asked: Asked) -> bytes:
    """Any shape, where the page shows it."""
    found = shape_of(asked.session, asked.case, asked.values.get("shape"))
    return packed({"vertices": found.to_shown.apply(found.vertices), **found.arrays})


def measures(asked: Asked) -> dict[str, Any]:
    """Measures of any shape, and how usual it is; a torso without one breast is not compared with whole ones."""
    session, view, spec = asked.session, asked.session.view, asked.values.get("shape", {})
    found = shape_of(session, asked.case, spec)
    record = view.measures(found, tape=asked.values.get("tape") is True)
    if found.absent_side:
        return record | {"plausibility": None}
    kind = spec["kind"]
    scores = view.scores(spec.get("scores", [])) if kind == "model" else None
    edit = asked.case.required_edit.edit if kind == "edit" else None
    return record | {"plausibility": view.plausibility(found.vertices, scores, edit)}


def features(asked: Asked) -> dict[str, Any]:
    """What can be edited."""
    base = asked.query.get("base", "mean")
    if base not in ("mean", "patient"):
        raise bad_request("editing starts from the mean or from the patient")
    return {"features": asked.session.editing(asked.case, base).features(wait=base == "patient")}


def edit(asked: Asked) -> dict[str, Any]:
    """Make the requested changes."""
    from breastmorph.explorer.editing import edit_shape

    edited = edit_shape(asked.session, asked.case, asked.values)
    asked.change("edit", edited=edited)
    return edited.record


def forget_edit(asked: Asked) -> None:
    """Drop the edit."""
    asked.change("edit", edited=None)


def keep(asked: Asked) -> dict[str, Any]:
    """Keep a shape to compare with: what it was made of may change."""
    found = shape_of(asked.session, asked.case, asked.values.get("shape"))
    kept = replace(found, name=f"{found.name.removesuffix('-kept')}-kept", token=secrets.token_hex(8))
    asked.change("keep", kept=kept)
    return {"name": kept.name, "token": kept.token}


def forget_kept(asked: Asked) -> None:
    """Compare with nothing any more."""
    asked.change("keep", kept=None)


def use_landmarks(asked: Asked) -> dict[str, Any]:
    """Use what was picked on the mean as the model's landmarks."""
    session = asked.session
    view = session.view
    session.take_model(
        view.with_landmarks(picked_vertices(view, session.open("mean").picks)), "model-landmarks"
    )
    return session.model_record()


def model_file(asked: Asked) -> Download:
    """The model with the landmarks picked here."""
    session = asked.session
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / "model.h5"
        save_model(session.view.model, path)
        name = f"{Path(session.view.origin.name).stem.replace(' ', '-').lower()}.h5"
        return Download(name, "application/x-hdf5", path.read_bytes())


def predict(asked: Asked) -> Job:
    """Predict a side, or what is painted."""
    session, case = asked.session, asked.case
    _ = case.required_patient

    def work(job: Job) -> dict[str, Any]:
        found = predict_patient(session, case, asked.values, job)
        session.take_prediction(found, case, job)
        return found.record

    return session.jobs.start("predict", work, case.key)


def alternatives(asked: Asked) -> bytes:
    """For the sliders."""
    return asked.case.required_prediction.alternatives(asked.case.required_patient.to_shown)


def forget_prediction(asked: Asked) -> None:
    """Drop the prediction."""
    asked.change("predict", predicted=None)


def plan(asked: Asked) -> dict[str, Any]:
    """What is to be added or taken away to get to ``target``, by side."""
    found = planned(asked.session.view.model, asked.case, asked.values.get("target")).plan
    return found.as_dict() | {"note": found.note.cause}


def thickness(asked: Asked) -> bytes:
    """The same at every vertex of the target, mm."""
    found = planned(asked.session.view.model, asked.case, asked.values.get("target")).plan
    return packed({"thickness": found.thickness})


def cuts(asked: Asked) -> dict[str, Any]:
    """The level and the upright cut through the nipple of ``side``, of some shapes; the last one says where it is.

    ``line_mm`` is in the upright frame of the patient, ``shown`` the same line where the page shows her.
    """
    from breastmorph.clinical.planning import sections

    session, case = asked.session, asked.case
    specs, side = asked.values.get("shapes"), asked.values.get("side")
    if not isinstance(specs, list) or not 0 < len(specs) <= _MOST_CUT or side not in SIDES:
        raise bad_request(
            "a cut goes through one to {most_cut} shapes, on the left or on the right", most_cut=_MOST_CUT
        )
    to_shown = case.patient.to_shown if case.patient is not None else Similarity()
    shapes = [shape_of(session, case, spec) for spec in specs]
    placed = {
        f"{k}": to_shown.inverse().apply(shape.to_shown.apply(shape.vertices))
        for k, shape in enumerate(shapes)
    }
    found = []
    for section in sections(session.view.model, placed, str(side)):
        record = section.as_dict()
        lines = [
            {
                **record["outlines"][key],
                "name": shape.name,
                "shown": to_shown.apply(section.outlines[key].line),
            }
            for key, shape in zip(placed, shapes, strict=True)
        ]
        found.append(record | {"outlines": lines})
    return {"sections": found}
