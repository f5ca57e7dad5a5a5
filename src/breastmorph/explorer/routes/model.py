"""The model: geometry, maps, shapes, measures, editing, its landmarks."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from breastmorph.explorer.answering import Asked, Download
from breastmorph.explorer.answers import bad_request, packed
from breastmorph.explorer.model_view import shape_of
from breastmorph.explorer.open_scans import picked_vertices
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


def shape(asked: Asked) -> bytes:
    """Any shape, where the page shows it."""
    found = shape_of(asked.session, asked.values.get("shape"))
    return packed({"vertices": found.to_shown.apply(found.vertices), **found.maps})


def measures(asked: Asked) -> dict[str, Any]:
    """Measures of any shape, and how usual it is; a torso without one breast is not compared with whole ones."""
    from breastmorph.explorer.model_view import judged

    session, view, spec = asked.session, asked.session.view, asked.values.get("shape", {})
    found = shape_of(session, spec)
    record = view.measures(found.vertices, found.absent_side, tape=asked.values.get("tape") is True)
    if found.absent_side:
        return record | {"plausibility": None}
    kind = spec["kind"]
    scores = view.scores(spec.get("scores", [])) if kind == "model" else view.scores_of(found.vertices)
    edit = session.required_edit.edit if kind == "edit" else None
    return record | {"plausibility": judged(view.model, scores, edit)}


def features(asked: Asked) -> dict[str, Any]:
    """What can be edited."""
    base = asked.query.get("base", "mean")
    if base not in ("mean", "patient"):
        raise bad_request("editing starts from the mean or from the patient")
    return {"features": asked.session.editing(base).features(wait=base == "patient")}


def edit(asked: Asked) -> dict[str, Any]:
    """Fulfil wishes."""
    from breastmorph.explorer.editing import edit_shape

    return edit_shape(asked.session, asked.values).record


def forget_edit(asked: Asked) -> None:
    """Drop the edit."""
    asked.session.edited = None


def keep(asked: Asked) -> dict[str, Any]:
    """Keep a shape to compare with: what it was made of may change."""
    found = shape_of(asked.session, asked.values.get("shape"))
    asked.session.kept = replace(found, name=f"{found.name.removesuffix('-kept')}-kept")
    return {"name": asked.session.kept.name}


def use_landmarks(asked: Asked) -> dict[str, Any]:
    """Use what was picked on the mean as the model's landmarks."""
    session = asked.session
    session.take_landmarks(picked_vertices(session.view, session.scan("mean")))
    return session.model_record()


def model_file(asked: Asked) -> Download:
    """The model with the landmarks picked here."""
    session = asked.session
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / "model.h5"
        save_model(session.view.model, path)
        name = f"{Path(session.view.origin.name).stem.replace(' ', '-').lower()}.h5"
        return Download(name, "application/x-hdf5", path.read_bytes())
