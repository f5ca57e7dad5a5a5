"""Predicting a missing breast for the page: the likeliest shape, its uncertainty, and sliders through alternatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.absent_breast import counts_as_gone
from breastmorph.clinical.feature_requests import Request
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.missing_region import BOTH
from breastmorph.clinical.missing_volume import lacking
from breastmorph.clinical.patient import Patient
from breastmorph.clinical.planning import TARGETS, Plan, plan_of
from breastmorph.clinical.predicted_measures import predicted_measures
from breastmorph.clinical.predicting import predicted_by, with_skin
from breastmorph.clinical.prediction import Prediction
from breastmorph.clinical.predictor import BreastPredictor, learnt_predictor
from breastmorph.clinical.torso_view import Evidence
from breastmorph.explorer.answers import bad_request, not_now, packed, sentences
from breastmorph.explorer.editing import requests_of
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.model_view import ModelOrigin
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.files import plain
from breastmorph.mesh.geometry import Similarity
from breastmorph.scan.scan import SIDES, Landmarks

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session

_SLIDERS = 5  # alternatives that the page has sliders for
_KEPT = 2  # predictors that are kept: each holds what the model's subjects look like


@dataclass(frozen=True, eq=False)
class Predicted:
    """A prediction with what was asked for.

    Attributes
    ----------
    prediction : Prediction
    measures : tuple of Measure
    asked : mapping
        The request, to be repeated from a session file.
    record : dict
        For the page.
    """

    prediction: Prediction
    measures: tuple[Measure, ...]
    asked: Mapping[str, Any]
    record: dict[str, Any]

    @property
    def modes(self) -> np.ndarray:
        """The first principal alternatives of the missing vertices, (k, m, 3), mm at one standard deviation."""
        modes: np.ndarray = self.prediction.leading[:_SLIDERS]
        return modes

    def alternatives(self, to_shown: Similarity) -> bytes:
        """For the page's sliders, as the patient is shown."""
        modes = to_shown.scale * self.modes @ to_shown.rotation.T
        return packed({"ids": np.flatnonzero(self.prediction.region.missing), "modes": modes})

    def alternative(self, scores: Floats) -> Floats:
        """The shape at a place of the sliders, (n, 3)."""
        shape = self.prediction.shape.copy()
        shape[self.prediction.region.missing] += np.tensordot(scores, self.modes[: len(scores)], (0, 0))
        return shape


def predict(session: Session, patient: Patient, asked: Mapping[str, Any], job: Job) -> Predicted:
    """Predict as the page asks: ``side``, or painted ``vertices``; by what is known of the lost breast, if anything.

    ``known`` are measures as wishes of an edit are, ``earlier`` is the key of an open scan from before the operation.
    """
    view = session.view
    missing = _missing(asked, view.model.n_vertices)
    stated = tuple(requests_of(asked["known"])) if asked.get("known") else ()
    earlier = _earlier(session, asked["earlier"], job) if asked.get("earlier") else None
    job.at("learning from the model's subjects")
    task = Task(
        view.origin,
        patient.shape,
        missing,
        patient.absent_side,
        patient.landmarks,
        patient.skin,
        earlier,
        stated,
    )
    found: Answer = session.explorer.predicting.call(task, lambda: job.is_cancelled)
    record = _record(found, painted=not isinstance(missing, str))
    return Predicted(found.prediction, found.measures, dict(asked), record)


def _earlier(session: Session, key: Any, job: Job) -> Floats:
    """The shape of an earlier scan, registered as the patient's is."""
    from breastmorph.explorer.patients import computed_patient

    if not isinstance(key, str):
        raise bad_request("an earlier scan is called by its key")
    scan = session.scan(key)
    if not scan.picks.complete:
        raise not_now(
            "the earlier scan has no landmarks", "Give its landmark file, or set them in the tab of the scan"
        )
    job.at("registering the earlier scan")
    return computed_patient(session, scan, "registered", job).patient.shape


def planned(session: Session, target: Any) -> Plan:
    """What is to be added or taken away to get to a target: "predicted", "mirrored" or "edited"."""
    if target not in TARGETS:
        raise bad_request(f"a plan is for one of {', '.join(TARGETS)}")
    model = session.view.model
    if target == "edited":
        edit = session.required_edit.edit
        return plan_of(model, edit.before, edit)
    found, patient = session.required_prediction.prediction, session.required_patient.patient
    return plan_of(model, patient.shape, found, mirrored=target == "mirrored")


def _missing(asked: Mapping[str, Any], n: int) -> str | Bools:
    side, vertices = asked.get("side"), asked.get("vertices")
    if (side is None) == (vertices is None):
        raise bad_request("say which side is missing, or paint the region")
    if vertices is None:
        if side not in (*SIDES, BOTH):
            raise bad_request("a side is left, right or both")
        return str(side)
    if not isinstance(vertices, list) or not 0 < len(vertices) <= n:
        raise bad_request("nothing is painted", "Paint the missing breast")
    if not all(type(one) is int and 0 <= one < n for one in vertices):
        raise bad_request("a painted vertex does not exist")
    painted = np.zeros(n, bool)
    painted[vertices] = True
    return painted


# --- in a process of its own, so that it can be cancelled and no other tab waits --------------------------------------


@dataclass(frozen=True, eq=False)
class Task:
    """What a predicting process is given.

    Attributes
    ----------
    origin : ModelOrigin
    shape : (n, 3) float
        The patient's, mm.
    missing : {"left", "right", "both"} or (n,) bool
    absent_side : str
        The side without a breast as the scan's landmarks say it, or empty.
    landmarks : Landmarks, optional
        The patient's own.
    skin : (n, 4) uint8, optional
    earlier : (n, 3) float, optional
        Her shape before the operation, mm.
    stated : tuple of Request
        Measures that the lost breast is known to have had.
    """

    origin: ModelOrigin
    shape: Floats
    missing: str | Bools
    absent_side: str
    landmarks: Landmarks | None = None
    skin: NDArray[np.uint8] | None = None
    earlier: Floats | None = None
    stated: tuple[Request, ...] = ()


@dataclass(frozen=True, eq=False)
class Answer:
    """What a predicting process sends back.

    Attributes
    ----------
    prediction : Prediction
    measures : tuple of Measure
    gone : bool
        Whether there was no breast where one is predicted.
    """

    prediction: Prediction
    measures: tuple[Measure, ...]
    gone: bool


def predictor() -> Callable[[Task], Answer]:
    """Setup of a predicting process; what it learned for a side is kept for the next patient."""
    loaded = lru_cache(maxsize=1)(ModelOrigin.load)

    @lru_cache(maxsize=_KEPT)
    def learned(origin: ModelOrigin, side: str, evidence: Evidence) -> BreastPredictor:
        return learnt_predictor(loaded(origin), side, evidence)

    def answer(task: Task) -> Answer:
        model, missing = loaded(task.origin), task.missing
        # Who chooses a side that nobody called absent wants it replaced; the page says so beside the result.
        gone = counts_as_gone(model, task.shape, missing, task.absent_side, replace=not task.absent_side)
        evidence: Evidence = "surface" if gone else "points"
        if isinstance(missing, str):
            taught = learned(task.origin, missing, evidence)
        else:
            taught = learnt_predictor(model, missing, evidence)
        found = predicted_by(taught, model, task.shape, task.earlier, task.stated)
        found = with_skin(model, found, task.skin)
        measures = predicted_measures(model, found, task.landmarks)
        return Answer(found, (*measures, lacking(task.shape, found).measure), gone)

    return answer


def _record(answer: Answer, *, painted: bool) -> dict[str, Any]:
    found = answer.prediction
    inside = found.sd_normal[found.region.breast]
    leading = found.leading
    strength = np.einsum("kmd,kmd->k", leading, leading)
    total = float(np.einsum("nmd,nmd->", found.modes, found.modes))
    sliders = min(_SLIDERS, len(leading))
    return {
        "side": found.region.side,
        "painted": painted,
        "breast_was_there": not answer.gone,
        "given": list(found.given),
        "measures": [
            {
                "name": one.name,
                "kind": one.kind,
                "unit": one.unit,
                "other": plain(one.other),
                "predicted": plain(one.value),
                "sd": plain(one.sd),
                "mirrored": plain(one.mirrored),
            }
            for one in answer.measures
        ],
        "sd_mm": {"mean": float(inside.mean()), "largest": float(inside.max())},
        "shares": (strength[:sliders] / max(total, 1e-30)).tolist(),
        "warnings": sentences(found.warnings),
    }
