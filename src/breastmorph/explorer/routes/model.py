"""The model: geometry, maps, samples, measures, editing, its landmarks."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from breastmorph.clinical.features import REGIONS
from breastmorph.clinical.patient import Patient
from breastmorph.explorer.answering import Asked, Download
from breastmorph.explorer.arrays import packed
from breastmorph.explorer.editing import Editing
from breastmorph.explorer.opening import picked_vertices
from breastmorph.explorer.problems import bad_request
from breastmorph.explorer.shapes import shape_of
from breastmorph.model.files import save_model


def state(asked: Asked) -> dict[str, Any]:
    """What the model is."""
    return asked.session.model_record()


def geometry(asked: Asked) -> bytes:
    """Mean, faces and modes."""
    return asked.session.view.geometry


def maps(asked: Asked) -> bytes:
    """Values per vertex."""
    return asked.session.view.maps


def sample(asked: Asked) -> dict[str, Any]:
    """Scores of a random shape."""
    seed = asked.values.get("seed")
    if seed is not None and (type(seed) is not int or not 0 <= seed < 2**63):
        raise bad_request("a seed is a whole number from 0 on")
    return {"scores": asked.session.view.sample(seed).tolist()}


def shape(asked: Asked) -> bytes:
    """Any shape, where the page shows it."""
    found = shape_of(asked.session, asked.values.get("shape"))
    return packed({"vertices": found.to_shown.apply(found.vertices), **found.maps}, {"name": found.name})


def measures(asked: Asked) -> dict[str, Any]:
    """Measures of any shape, and how usual it is."""
    begin = time.perf_counter()
    view, spec = asked.session.view, asked.values.get("shape", {})
    found = shape_of(asked.session, spec)
    record = view.measures(found.vertices, found.absent_side, tape=asked.values.get("tape") is True)
    given = spec["kind"] == "model"
    scores = view.scores(spec.get("scores", [])) if given else view.scores_of(found.vertices)
    edited = asked.session.edited if spec["kind"] == "edit" else None
    record["plausibility"] = view.plausibility(scores, edited.edit if edited is not None else None)
    return record | {"ms": round(1000.0 * (time.perf_counter() - begin), 1)}


def features(asked: Asked) -> dict[str, Any]:
    """What can be edited."""
    base = asked.query.get("base", "mean")
    if base not in ("mean", "patient"):
        raise bad_request("editing starts from the mean or from the patient")
    found = asked.session.editing(base).features(wait=base == "patient")
    return {"features": found, "hold": list(REGIONS)}


def edit(asked: Asked) -> dict[str, Any]:
    """Fulfil wishes."""
    session, spec = asked.session, asked.values.get("base", {"kind": "mean"})
    base = shape_of(session, spec)  # refuses what does not exist
    kind = str(spec["kind"])
    if kind not in ("mean", "patient", "model"):
        raise bad_request("editing starts from the mean, the patient or a shape of the model")
    at_scores = kind == "model"
    editing = Editing(session.view, Patient(kind, base.vertices)) if at_scores else session.editing(kind)
    edited = editing.edit(kind, asked.values)
    session.edited = edited
    return edited.record


def forget_edit(asked: Asked) -> None:
    """Drop the edit."""
    asked.session.edited = None


def use_landmarks(asked: Asked) -> dict[str, Any]:
    """Use what was picked on the mean as the model's landmarks."""
    session = asked.session
    session.take_landmarks(picked_vertices(session.view, session.scan("mean")))
    return session.model_record()


def landmark_ids(asked: Asked) -> Download:
    """The file for --landmark-ids."""
    session = asked.session
    found = picked_vertices(session.view, session.scan("mean"))
    text = json.dumps(found, indent=1) + "\n"
    return Download("landmark-ids.json", "application/json", text.encode())


def model_file(asked: Asked) -> Download:
    """The model with the landmarks picked here."""
    session = asked.session
    model = session.view.model
    if "mean" in session.scans:
        model = model.with_landmark_ids(picked_vertices(session.view, session.scan("mean")))
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / "model.h5"
        save_model(model, path)
        name = f"{Path(session.origin.name).stem.replace(' ', '-').lower()}.h5"
        return Download(name, "application/x-hdf5", path.read_bytes())
