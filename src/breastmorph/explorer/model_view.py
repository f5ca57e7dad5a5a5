"""The model as the page sees it: where it comes from, its shapes, where they stand among its subjects."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.borders import SubjectLandmarks
from breastmorph.clinical.distances import KINDS, STRAIGHT
from breastmorph.clinical.edit import FOLDED, Edit
from breastmorph.clinical.examiner import Examiner, PredictedSide, examiner_of, landmarks_of
from breastmorph.clinical.measure_table import Measure, asymmetries, measure_record
from breastmorph.clinical.patient import mean_patient
from breastmorph.clinical.predicted_measures import known_landmarks, predicted_side
from breastmorph.explorer.answers import (
    RequestProblem,
    Spoken,
    as_record,
    bad_request,
    packed,
    preparing,
    sentences,
)
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.mask import completed_landmarks, measure_breasts
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.skin import SEEN
from breastmorph.model.shape_model import ShapeModel, Training
from breastmorph.model.standing import LEVELS, population_of
from breastmorph.report.cards import DEMO_MODEL
from breastmorph.scan.scan import REQUIRED
from breastmorph.template import default_template

if TYPE_CHECKING:
    from breastmorph.explorer.editing import Editing
    from breastmorph.explorer.patients import ShownPatient
    from breastmorph.explorer.session import Session
    from breastmorph.model.shape_model import ShapeModel


# --------------------------------------------------------------------------------------------------------------------
# The demo model: a small synthetic model that comes with the package, for people who have none yet
# --------------------------------------------------------------------------------------------------------------------

_FILE = "demo_model.npz"
_STEP = 0.02  # mm: resolution of every mode at one standard deviation; rougher ones would show in the shading
_NOTE = "Made from scans of a mathematical phantom; no person was scanned."


def demo_model() -> ShapeModel:
    """The model that comes with the package."""
    return from_bytes(files("breastmorph").joinpath("data", _FILE).read_bytes())


def to_bytes(model: ShapeModel) -> bytes:
    """A model on the default template as a small NPZ file."""
    if model.training is None:
        raise FileProblem("the demo model keeps the scores of its subjects", "Build it with them")
    scaled = (model.basis * model.deviations).T  # (q, 3n): mm at one standard deviation
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        allow_pickle=False,
        mean=model.mean.astype(np.float32),
        modes=_differences(scaled.reshape(len(scaled), -1, 3).transpose(0, 2, 1).reshape(len(scaled), -1)),
        variances=model.variances,
        noise_variance=np.array(model.noise_variance),
        scores=model.training.scores.astype(np.float32),
        scales=model.training.scales.astype(np.float32),
        info=np.array(json.dumps(dict(model.info), sort_keys=True)),
    )
    return buffer.getvalue()


def from_bytes(data: bytes) -> ShapeModel:
    """The model from what :func:`to_bytes` wrote."""
    template = default_template()
    n = template.mesh.n_vertices
    with np.load(io.BytesIO(data), allow_pickle=False) as parts:
        mean = parts["mean"].astype(np.float64)
        modes = _summed(parts["modes"]).reshape(-1, 3, n).transpose(0, 2, 1).reshape(-1, 3 * n)
        deviations = np.sqrt(parts["variances"])
        rough = (modes / deviations[:, None]).T
        # The steps leave the columns orthonormal to a few parts in a million; this makes it exact.
        basis = rough @ np.linalg.inv(np.linalg.cholesky(rough.T @ rough)).T
        return ShapeModel(
            mean,
            np.ascontiguousarray(basis, dtype=np.float32),
            parts["variances"],
            template.mesh.faces,
            landmark_ids=template.landmark_ids,
            noise_variance=float(parts["noise_variance"]),
            mirror=template.mirror,
            training=Training(parts["scores"].astype(float), parts["scales"].astype(float)),
            info={**json.loads(str(parts["info"])), "synthetic": _NOTE},
        )


def _differences(rows: Floats) -> np.ndarray:
    """Rows in whole steps, each number as its difference from the one before: small numbers compress well."""
    steps = np.rint(rows / _STEP).astype(np.int32)
    return np.diff(steps, axis=1, prepend=0).astype(np.int16)


def _summed(differences: np.ndarray) -> Floats:
    return _STEP * np.cumsum(differences, axis=1, dtype=np.float64)


# --------------------------------------------------------------------------------------------------------------------
# The model that a server shows: read in the background after the page is there, and prepared once for all
# --------------------------------------------------------------------------------------------------------------------

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelOrigin:
    """Where a model comes from; small enough to be sent to a worker process.

    Attributes
    ----------
    path : Path, optional
        The demo model when not given.
    landmark_ids : tuple of (name, vertex)
        Landmarks that were picked on it.
    is_built : bool
        Whether it was built here; it is gone with its tab, unless somebody saves it.
    """

    path: Path | None = None
    landmark_ids: tuple[tuple[str, int], ...] = ()
    is_built: bool = False

    @property
    def name(self) -> str:
        """For people."""
        return self.path.name if self.path is not None else "Demo model"

    def load(self) -> ShapeModel:
        """Read the model."""
        from breastmorph.model.files import load_model

        model = load_model(self.path) if self.path is not None else demo_model()
        return model.with_landmark_ids(dict(self.landmark_ids)) if self.landmark_ids else model


class ModelSource:
    """Reads a model once, in a thread.

    Parameters
    ----------
    origin : ModelOrigin
    modes : int
        Most modes that the page gets.
    """

    def __init__(self, origin: ModelOrigin, modes: int) -> None:
        self.origin, self._modes = origin, modes
        self._view: ModelView | None = None
        self._error: Exception | None = None
        self._done = threading.Event()

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="model", daemon=True).start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the model is there or failed."""
        return self._done.wait(seconds)

    @property
    def view(self) -> ModelView:
        """The model; raises while it is not there."""
        if self._error is not None:
            if isinstance(self._error, BreastMorphError):
                raise self._error
            raise RequestProblem(500, "the model could not be read", "Look at the terminal of the command")
        if self._view is None:
            raise preparing("the model")
        return self._view

    def as_record(self, own: ModelView | None = None) -> dict[str, Any]:
        """What the page is told; ``own`` is a session's version of the model."""
        view = own or self._view
        if view is not None:
            return {"status": "ready", **view.as_record()}
        if self._error is not None:
            return {"status": "failed", "error": as_record(self._error)}
        return {"status": "loading"}

    def _read(self) -> None:
        try:
            model = self.origin.load()
            view = ModelView(self.origin, model, min(self._modes, model.n_components))
            _ = view.geometry
            self._view = view
        except Exception as error:
            if not isinstance(error, BreastMorphError):
                _log.exception("the model could not be read")
            self._error = error
        self._done.set()
        if self._view is not None:
            try:  # what the first visitor asks next
                view = self._view
                _ = view.measures(NamedShape("mean", view.model.mean)), view.maps
            except Exception:
                _log.exception("the model could not be prepared")


# --------------------------------------------------------------------------------------------------------------------
# The shapes that the page can ask for, by what they are: the model's, the patient's, an edit, a prediction
# --------------------------------------------------------------------------------------------------------------------

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

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """What belongs to its vertices: its maps; ``colors`` (n, 3), and ``made_up`` where no scanner saw the skin."""
        return {**self.maps, **skin_arrays(self.skin)}


def skin_arrays(skin: NDArray[np.uint8] | None) -> dict[str, np.ndarray]:
    """Skin for the page; empty where there is none."""
    if skin is None:
        return {}
    return {"colors": skin[:, :3], "made_up": (skin[:, 3] != SEEN).astype(np.uint8)}


def measured(measure: Measure) -> dict[str, Any]:
    """One measure for the page, with the reason where there is no value."""
    why = measure.reason
    record = measure_record(measure)
    return record if why is None else record | {"reason": Spoken(why.name, why.values)}


def shape_of(session: Session, spec: Any) -> NamedShape:
    """The shape that a request means."""
    kind = spec.get("kind") if isinstance(spec, Mapping) else None
    if kind not in SHAPE_KINDS:
        raise bad_request(f"a shape is one of {', '.join(KINDS)}")
    if kind == "mean":
        return NamedShape("mean", session.view.model.mean)
    if kind == "model":
        return NamedShape("model", session.view.shape(session.view.scores(spec.get("scores", []))))
    if kind == "patient":
        return patient_shape(session.view.model, session.required_patient)
    if kind in ("case", "reflected"):
        from breastmorph.explorer.looking import other_kinds

        return other_kinds(session, spec)
    if kind == "edit":
        return _edit(session)
    if kind == "kept":
        return session.required_kept
    return _prediction(session, str(kind), spec)


def patient_shape(model: ShapeModel, patient: ShownPatient) -> NamedShape:
    """A patient as she was registered or fitted."""
    return NamedShape(
        patient.patient.id,
        patient.patient.shape,
        patient.to_shown,
        patient.patient.to_file,
        patient.patient.absent_side,
        {"residual": patient.residual},
        landmarks_of(model, patient.patient),
        skin=patient.patient.skin,
        source=patient.scan,
    )


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
        landmarks_of(session.view.model, edited.patient),
        skin=edited.edit.skin,
        source=patient.scan if patient is not None else "",
    )


def _prediction(session: Session, kind: str, spec: Mapping[str, Any]) -> NamedShape:
    predicted, patient = session.required_prediction, session.required_patient
    found = predicted.prediction
    vertices = found.mirrored if kind == "mirrored" else found.shape
    if kind == "alternative":
        vertices = predicted.alternative(session.view.scores(spec.get("scores", []))[: len(predicted.modes)])
    maps: dict[str, np.ndarray] = {"missing": found.region.missing.astype(np.uint8)}
    if kind != "mirrored":
        maps["sd"] = found.sd_normal
    own = known_landmarks(found, patient.patient.landmarks)
    return NamedShape(
        f"{patient.patient.id}-{kind}",
        vertices,
        patient.to_shown,
        patient.patient.to_file,
        "",
        maps,
        session.view.examiner.landmarks(vertices, annotated=own),
        None if kind == "mirrored" else predicted_side(found),
        found.skin,
        patient.scan,
    )


# --------------------------------------------------------------------------------------------------------------------
# A model as the page shows it: geometry and maps sent once, measures of any shape, its editor
# --------------------------------------------------------------------------------------------------------------------

_MOST_DEVIATIONS = 6.0  # standard deviations a slider may ask for


@dataclass(frozen=True, eq=False)
class ModelView:
    """A model prepared for the page.

    Attributes
    ----------
    origin : ModelOrigin
    model : ShapeModel
    modes : int
        How many the page has.
    """

    origin: ModelOrigin
    model: ShapeModel
    modes: int

    def with_landmarks(self, landmark_ids: Mapping[str, int]) -> ModelView:
        """With landmarks picked on the mean."""
        model = self.model.with_landmark_ids(landmark_ids)
        known = tuple((name, int(vertex)) for name, vertex in model.landmark_ids.items())
        return replace(self, origin=replace(self.origin, landmark_ids=known), model=model)

    # --- what is sent once --------------------------------------------------------------------------------------------

    def as_record(self) -> dict[str, Any]:
        """What the page says about the model."""
        model = self.model
        total = float(model.variances.sum()) + model.noise_variance * model.mean.size
        subjects = model.info.get("subjects")
        return {
            "name": self.origin.name,
            "synthetic": model.is_synthetic,
            "card": DEMO_MODEL.short if model.is_synthetic else "",
            "subjects": subjects if isinstance(subjects, int) else None,
            "built": self.origin.is_built,
            "deviations": model.deviations[: self.modes].tolist(),
            "shares": (model.variances[: self.modes] / max(total, 1e-300)).tolist(),
            "missing_landmarks": [name for name in REQUIRED if name not in model.landmark_ids],
        }

    @cached_property
    def geometry(self) -> bytes:
        """Mean, faces and modes in mm at one standard deviation."""
        scaled = self.model.basis[:, : self.modes] * self.model.deviations[: self.modes]
        modes = scaled.T.reshape(self.modes, -1, 3)
        return packed({"mean": self.model.mean, "faces": self.model.faces, "modes": modes})

    @cached_property
    def maps(self) -> bytes:
        """Standard deviation of every vertex, and its breast probability where the landmarks tell it."""
        model = self.model
        found: dict[str, np.ndarray] = {"sd": model.vertex_deviations()}
        with suppress(BreastMorphError):
            landmarks = completed_landmarks(model.mean_mesh, model.landmarks)
            found["mask"] = measure_breasts(model.mean_mesh, landmarks).mask(landmarks).at(model.mean)
        return packed(found)

    # --- shapes -------------------------------------------------------------------------------------------------------

    def scores(self, values: Any) -> Floats:
        """Scores from the page, checked; in standard deviations."""
        if not isinstance(values, list) or len(values) > self.model.n_components:
            raise bad_request(f"scores must be a list of at most {self.model.n_components} numbers")
        if not all(isinstance(one, (int, float)) and abs(one) <= 1e3 for one in values):
            raise bad_request("a score is not a number")
        scores: Floats = np.clip(np.array(values, dtype=float), -_MOST_DEVIATIONS, _MOST_DEVIATIONS)
        return scores

    def shape(self, scores: Floats) -> Floats:
        """The shape of scores, (n, 3)."""
        return self.model.instance(scores * self.model.deviations[: len(scores)])

    def standing(self, shape: Floats, scores: Floats | None, edit: Edit | None) -> dict[str, Any]:
        """Where a shape stands among the model's subjects, for the gauge, the strip and the notes.

        Parameters
        ----------
        shape : (n, 3) float
        scores : (k,) float, optional
            Where the shape was made of them, in standard deviations.
        edit : Edit, optional
            Where it is an edited one.
        """
        subjects = population_of(self.model)
        if edit is not None and edit.standing is not None:
            found = edit.standing
        elif scores is not None:
            found = subjects.standing(scores * self.model.deviations[: len(scores)])
        else:
            found = subjects.standing_of_shape(shape)
        level, text = found.level, Spoken(found.finding.name, found.finding.values)
        folded = [one for one in edit.warnings if one.code == FOLDED] if edit is not None else []
        if folded:  # no body looks like that
            level, text = LEVELS[-1], sentences(folded)[0]
        return {"plausibility": found.plausibility, "level": level, "text": text}

    # --- measures -----------------------------------------------------------------------------------------------------

    @property
    def examiner(self) -> Examiner:
        """What measures all shapes of the model."""
        return examiner_of(self.model)

    def measures(self, shape: NamedShape, *, tape: bool = False) -> dict[str, Any]:
        """All measures of a shape."""
        landmarks = shape.landmarks or self.examiner.landmarks(shape.vertices, shape.absent_side)
        found = self.examiner.measured(
            shape.vertices,
            landmarks.without(shape.absent_side),
            shape.absent_side,
            KINDS if tape else (STRAIGHT,),
            shape.predicted,
        )
        return {
            "measures": [measured(one) for one in found],
            "left_minus_right": [measured(one) for one in asymmetries(found)],
        }

    # --- editing ------------------------------------------------------------------------------------------------------

    @cached_property
    def mean_editing(self) -> Editing:
        """The editor of the mean, shared by all who use this model."""
        from breastmorph.explorer.editing import Editing

        return Editing(self.model, mean_patient(self.model))
