"""Predicting a missing breast for the page: the likeliest shape, its uncertainty, and sliders through alternatives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.clinical.missing_region import BOTH
from breastmorph.clinical.patient import Patient
from breastmorph.clinical.planning import TARGETS
from breastmorph.clinical.prediction import Prediction
from breastmorph.explorer.answers import bad_request, not_now, packed, sentences
from breastmorph.explorer.editing import requests_of
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.model_view import ModelOrigin
from breastmorph.explorer.shapes import edited_name
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.files import plain
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES
from breastmorph.usecases.plan import PlanRequest, PlanResult, plan
from breastmorph.usecases.predict import PredictorCache, PredictRequest, PredictResult, predict

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session
    from breastmorph.explorer.workspace import Case

_SLIDERS = 5  # alternatives that the page has sliders for


@dataclass(frozen=True, eq=False)
class Predicted:
    """A prediction with what was asked for.

    Attributes
    ----------
    prediction : Prediction
    asked : mapping
        The request, to be repeated from a session file.
    record : dict
        For the page.
    """

    prediction: Prediction
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


def predict_patient(session: Session, case: Case, asked: Mapping[str, Any], job: Job) -> Predicted:
    """Predict as the page asks: ``side``, or painted ``vertices``; by what is known of the lost breast, if anything.

    ``known`` are measures as an edit requests them, ``earlier`` is the key of an open scan from before the operation,
    ``operated`` says that what is predicted was operated on.
    """
    view, patient = session.view, case.required_patient.patient
    missing = _missing(asked, view.model.n_vertices)
    known = tuple(requests_of(asked["known"])) if asked.get("known") else ()
    earlier = _earlier(session, asked["earlier"], job) if asked.get("earlier") else None
    job.at("learning from the model's subjects")
    request = partial(
        PredictRequest,
        subject=patient,
        missing=missing,
        replace=None,  # a side is chosen although it has landmarks: it shall be replaced
        operated=asked.get("operated") is True,
        earlier=earlier,
        known=known,
    )
    found: PredictResult = session.explorer.predicting.call((view.origin, request), lambda: job.is_cancelled)
    prediction = replace(found.prediction, faces=view.model.faces)  # one array for all that is open
    return Predicted(prediction, dict(asked), _record(found, painted=not isinstance(missing, str)))


def _earlier(session: Session, key: Any, job: Job) -> Patient:
    """An earlier scan, registered as the patient's is."""
    from breastmorph.explorer.patients import computed_patient

    if not isinstance(key, str):
        raise bad_request("an earlier scan is called by its key")
    case = session.open(key)
    if not case.picks.complete:
        raise not_now(
            "the earlier scan has no landmarks", "Give its landmark file, or set them in the tab of the scan"
        )
    job.at("registering the earlier scan")
    return computed_patient(session, case, "registered", job).patient


def planned(model: ShapeModel, case: Case, target: Any) -> PlanResult:
    """What is to be added or taken away to get to a target: "predicted", "mirrored" or "edited"."""
    if target not in TARGETS:
        raise bad_request("a plan is for one of {targets}", targets=", ".join(TARGETS))
    if target == "edited":
        edited = case.required_edit
        patient = replace(edited.patient, id=edited_name(case))
        return plan(PlanRequest(model, patient, edited.edit))
    found, patient = case.required_prediction.prediction, case.required_patient.patient
    request = PlanRequest(model, replace(patient, id=case.name), found, mirrored=target == "mirrored")
    return plan(request)


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
    if not all(type(vertex) is int and 0 <= vertex < n for vertex in vertices):
        raise bad_request("a painted vertex does not exist")
    painted = np.zeros(n, bool)
    painted[vertices] = True
    return painted


def predictor() -> Callable[[tuple[ModelOrigin, Callable[[ShapeModel], PredictRequest]]], PredictResult]:
    """Setup of a predicting process, which can be cancelled: model and fitted predictors serve the next patient."""
    load, cache = lru_cache(maxsize=1)(ModelOrigin.load), PredictorCache()

    def answer(task: tuple[ModelOrigin, Callable[[ShapeModel], PredictRequest]]) -> PredictResult:
        origin, request = task
        return predict(request(load(origin)), cache)

    return answer


def _record(result: PredictResult, *, painted: bool) -> dict[str, Any]:
    found = result.prediction
    inside = found.sd_normal[found.region.breast]
    leading = found.leading
    strength = np.einsum("kmd,kmd->k", leading, leading)
    total = float(np.einsum("nmd,nmd->", found.modes, found.modes))
    sliders = min(_SLIDERS, len(leading))
    return {
        "side": found.region.side,
        "painted": painted,
        "breast_was_there": not result.was_absent,
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
            for one in found.measures
        ],
        "sd_mm": {"mean": float(inside.mean()), "largest": float(inside.max())},
        "shares": (strength[:sliders] / max(total, 1e-30)).tolist(),
        "warnings": sentences(result.own_warnings),
    }
