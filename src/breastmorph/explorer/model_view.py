"""The model as the page sees it: where it comes from, its geometry and maps, measures of shapes, how usual they are."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.clinical.distances import KINDS, STRAIGHT
from breastmorph.clinical.edit import FOLDED, Edit
from breastmorph.clinical.examiner import Examiner, examiner_of
from breastmorph.clinical.measure_table import Measure, asymmetries, measure_record
from breastmorph.clinical.patient import mean_patient
from breastmorph.explorer.answers import (
    RequestProblem,
    bad_request,
    error_record,
    packed,
    preparing,
    sentences,
)
from breastmorph.explorer.shapes import NamedShape
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.messages import Message
from breastmorph.mask import completed_landmarks, measure_breasts
from breastmorph.model.demo_model import demo_model
from breastmorph.model.plausibility import LEVELS, model_population
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.cards import DEMO_MODEL
from breastmorph.scan.scan import REQUIRED
from breastmorph.template import Template
from breastmorph.usecases.subject import template_of

if TYPE_CHECKING:
    from breastmorph.explorer.editing import Editing

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
        Whether it was built here; it is deleted with its tab, unless it is saved.
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
        """For the page; ``own`` is a session's version of the model."""
        view = own or self._view
        if view is not None:
            return {"status": "ready", **view.as_record()}
        if self._error is not None:
            return {"status": "failed", "error": error_record(self._error)}
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


def measured(measure: Measure) -> dict[str, Any]:
    """One measure for the page, with the reason where there is no value."""
    why = measure.reason
    record = measure_record(measure)
    return record if why is None else record | {"reason": why.cause}


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

    def as_record(self) -> dict[str, Any]:
        """What the page says about the model."""
        model = self.model
        total = float(model.variances.sum()) + model.noise_variance * model.mean.size
        subjects = model.info.get("subjects")
        return {
            "name": self.origin.name,
            "synthetic": model.is_synthetic,
            "card": Message(DEMO_MODEL.short if model.is_synthetic else ""),
            "subjects": subjects if isinstance(subjects, int) else None,
            "built": self.origin.is_built,
            "deviations": model.deviations[: self.modes].tolist(),
            "shares": (model.variances[: self.modes] / max(total, 1e-300)).tolist(),
            "missing_landmarks": [name for name in REQUIRED if name not in model.landmark_ids],
        }

    @cached_property
    def template(self) -> Template:
        """What the page registers scans with."""
        return template_of(self.model)

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

    def scores(self, values: Any) -> Floats:
        """Scores from the page, checked; in standard deviations."""
        if not isinstance(values, list) or len(values) > self.model.n_components:
            raise bad_request(
                "scores must be a list of at most {n_components} numbers",
                n_components=self.model.n_components,
            )
        if not all(isinstance(value, (int, float)) and abs(value) <= 1e3 for value in values):
            raise bad_request("a score is not a number")
        scores: Floats = np.clip(np.array(values, dtype=float), -_MOST_DEVIATIONS, _MOST_DEVIATIONS)
        return scores

    def shape(self, scores: Floats) -> Floats:
        """The shape of scores, (n, 3)."""
        return self.model.instance(scores * self.model.deviations[: len(scores)])

    def plausibility(self, shape: Floats, scores: Floats | None, edit: Edit | None) -> dict[str, Any]:
        """How usual a shape is among the model's subjects, for the page's scale, strip and notes.

        Parameters
        ----------
        shape : (n, 3) float
        scores : (k,) float, optional
            Where the shape was made of them, in standard deviations.
        edit : Edit, optional
            Where it is an edited one.
        """
        subjects = model_population(self.model)
        if edit is not None and edit.plausibility is not None:
            found = edit.plausibility
        elif scores is not None:
            found = subjects.judge(scores * self.model.deviations[: len(scores)])
        else:
            found = subjects.judge_shape(shape)
        level, text = found.level, found.finding.cause
        folded = [finding for finding in edit.warnings if finding.code == FOLDED] if edit is not None else []
        if folded:  # no body looks like that
            level, text = LEVELS[-1], sentences(folded)[0]
        return {"plausibility": found.plausibility, "level": level, "text": text}

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
            "measures": [measured(measure) for measure in found],
            "left_minus_right": [measured(measure) for measure in asymmetries(found)],
        }

    @cached_property
    def mean_editing(self) -> Editing:
        """The editor of the mean, shared by all who use this model."""
        from breastmorph.explorer.editing import Editing

        return Editing(self.model, mean_patient(self.model))
