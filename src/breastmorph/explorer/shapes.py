"""The shapes that the page can ask for, by what they are: the model's, the patient's, an edit, a prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.explorer.problems import bad_request
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Floats

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session

KINDS = ("model", "mean", "patient", "edit", "prediction", "alternative", "mirrored", "kept")


@dataclass(frozen=True, eq=False)
class NamedShape:
    """A shape with the model's triangles.

    Attributes
    ----------
    name : str
        For files and tables.
    vertices : (n, 3) float
        Upright, mm, at its own size.
    to_shown : Similarity
        To where the page shows it.
    to_file : Similarity
        To the frame and unit of the patient's file.
    absent_side : str
    maps : mapping from name to (n,) array
        Values per vertex that belong to it.
    """

    name: str
    vertices: Floats
    to_shown: Similarity = field(default_factory=Similarity)
    to_file: Similarity = field(default_factory=Similarity)
    absent_side: str = ""
    maps: Mapping[str, np.ndarray] = field(default_factory=dict)


def shape_of(session: Session, spec: Any) -> NamedShape:
    """The shape that a request means."""
    kind = spec.get("kind") if isinstance(spec, Mapping) else None
    if kind not in KINDS:
        raise bad_request(f"a shape is one of {', '.join(KINDS)}")
    if kind == "mean":
        return NamedShape("mean", session.view.model.mean)
    if kind == "model":
        return NamedShape("model", session.view.shape(session.view.scores(spec.get("scores", []))))
    if kind == "patient":
        patient = session.required_patient
        return NamedShape(
            patient.patient.id,
            patient.patient.shape,
            patient.to_shown,
            patient.patient.to_file,
            patient.patient.absent_side,
            {"residual": patient.residual},
        )
    if kind == "edit":
        return _edit(session)
    if kind == "kept":
        return session.required_kept
    return _prediction(session, str(kind), spec)


def _edit(session: Session) -> NamedShape:
    edited = session.required_edit
    patient = session.patient if edited.base == "patient" else None
    return NamedShape(
        f"{edited.patient.id}-edited",
        edited.edit.shape,
        patient.to_shown if patient is not None else Similarity(),
        edited.patient.to_file,
        edited.patient.absent_side,
        {"moved": np.linalg.norm(edited.edit.shape - edited.edit.before, axis=1)},
    )


def _prediction(session: Session, kind: str, spec: Mapping[str, Any]) -> NamedShape:
    predicted, patient = session.required_prediction, session.required_patient
    found = predicted.prediction
    vertices = found.mirrored if kind == "mirrored" else found.shape
    if kind == "alternative":
        vertices = predicted.alternative(session.view.scores(spec.get("scores", []))[: len(predicted.modes)])
    maps: dict[str, np.ndarray] = {"missing": found.region.missing.astype(np.uint8)}
    if kind != "mirrored":
        maps["sd"] = found.normal_deviation
    return NamedShape(
        f"{patient.patient.id}-{kind}", vertices, patient.to_shown, patient.patient.to_file, "", maps
    )
