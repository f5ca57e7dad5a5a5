"""The shapes that the page can ask for, by what they are: the model's, the patient's, an edit, a prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.borders import SubjectLandmarks
from breastmorph.clinical.distances import KINDS
from breastmorph.clinical.examiner import PredictedSide, landmarks_of
from breastmorph.clinical.predicted_measures import known_landmarks, predicted_side
from breastmorph.explorer.answers import bad_request
from breastmorph.foundation.arrays import Floats
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.skin import SEEN
from breastmorph.model.shape_model import ShapeModel

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session
    from breastmorph.explorer.workspace import Case

SHAPE_KINDS = (
    *("model", "mean", "patient", "edit", "prediction", "alternative", "mirrored", "kept"),
    *("case", "reflected"),
)


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
    landmarks : SubjectLandmarks, optional
        What its measures run between; found on the shape when not given.
    predicted : PredictedSide, optional
        Where a side of it is predicted.
    skin : (n, 4) uint8, optional
        The patient's skin on it.
    source : str
        Key of the scan it was made of; empty for a shape of the model.
    token : str
        What tells a kept shape from others.
    """

    name: str
    vertices: Floats
    to_shown: Similarity = field(default_factory=Similarity)
    to_file: Similarity = field(default_factory=Similarity)
    absent_side: str = ""
    maps: Mapping[str, np.ndarray] = field(default_factory=dict)
    landmarks: SubjectLandmarks | None = None
    predicted: PredictedSide | None = None
    skin: NDArray[np.uint8] | None = None
    source: str = ""
    token: str = ""

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What belongs to its vertices: its maps; ``colors`` (n, 3), and ``made_up`` where no scanner saw the skin."""
        return {**self.maps, **skin_arrays(self.skin)}


def skin_arrays(skin: NDArray[np.uint8] | None) -> dict[str, np.ndarray]:
    """Skin for the page; empty where there is none."""
    if skin is None:
        return {}
    return {"colors": skin[:, :3], "made_up": (skin[:, 3] != SEEN).astype(np.uint8)}


def shape_of(session: Session, case: Case, spec: Any) -> NamedShape:
    """The shape of a case that a request means; all of them but another ``case`` are made from this one value."""
    kind = spec.get("kind") if isinstance(spec, Mapping) else None
    if kind not in SHAPE_KINDS:
        raise bad_request("a shape is one of {kinds}", kinds=", ".join(KINDS))
    if kind == "mean":
        return NamedShape("mean", session.view.model.mean)
    if kind == "model":
        return NamedShape("model", session.view.shape(session.view.scores(spec.get("scores", []))))
    if kind == "patient":
        return patient_shape(session.view.model, case)
    if kind in ("case", "reflected"):
        from breastmorph.explorer.looking import other_kinds

        return other_kinds(session, case, spec)
    if kind == "edit":
        return _edit(session, case)
    if kind == "kept":
        return case.required_kept
    return _prediction(session, case, str(kind), spec)


def patient_shape(model: ShapeModel, case: Case) -> NamedShape:
    """A patient as she was registered or fitted."""
    patient = case.required_patient
    return NamedShape(
        case.name,
        patient.patient.shape,
        patient.to_shown,
        patient.patient.to_file,
        patient.patient.absent_side,
        {"residual": patient.residual},
        landmarks_of(model, patient.patient),
        skin=patient.patient.skin,
        source=case.key,
    )


def edited_name(case: Case) -> str:
    """What an edit was made of: the patient, by her name, or the model's mean or a shape of its sliders."""
    base = case.required_edit.base
    return case.name if base == "patient" else base


def _edit(session: Session, case: Case) -> NamedShape:
    edited = case.required_edit
    patient = case.patient if edited.base == "patient" else None
    return NamedShape(
        f"{edited_name(case)}-edited",
        edited.edit.shape,
        patient.to_shown if patient is not None else Similarity(),
        edited.patient.to_file,
        edited.patient.absent_side,
        {"moved": np.linalg.norm(edited.edit.shape - edited.edit.before, axis=1)},
        landmarks_of(session.view.model, edited.patient),
        skin=edited.edit.skin,
        source=case.key if patient is not None else "",
    )


def _prediction(session: Session, case: Case, kind: str, spec: Mapping[str, Any]) -> NamedShape:
    predicted, patient = case.required_prediction, case.required_patient
    found = predicted.prediction
    vertices = found.mirrored if kind == "mirrored" else found.shape
    if kind == "alternative":
        vertices = predicted.alternative(session.view.scores(spec.get("scores", []))[: len(predicted.modes)])
    maps: dict[str, np.ndarray] = {"missing": found.region.missing.astype(np.uint8)}
    if kind != "mirrored":
        maps["sd"] = found.sd_normal
    own = known_landmarks(found, patient.patient.landmarks)
    return NamedShape(
        f"{case.name}-{kind}",
        vertices,
        patient.to_shown,
        patient.patient.to_file,
        "",
        maps,
        session.view.examiner.landmarks(vertices, annotated=own),
        None if kind == "mirrored" else predicted_side(found),
        found.skin,
        case.key,
    )
