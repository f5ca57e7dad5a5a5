"""Predicting a missing breast for the page: the likeliest shape, its uncertainty, and sliders through alternatives."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from breastmorph.clinical.patient import Patient
from breastmorph.clinical.predict.predicted_breast import Evidence, Prediction
from breastmorph.clinical.predict.predicted_measures import PredictedMeasure, predicted_measures
from breastmorph.clinical.predict.prediction import is_gone
from breastmorph.clinical.predict.predictor import BreastPredictor
from breastmorph.errors import BreastMorphError
from breastmorph.explorer.arrays import packed
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.page_words import in_page_words
from breastmorph.explorer.problems import bad_request
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Bools, Floats
from breastmorph.model.shape_model import ShapeModel
from breastmorph.plain import plain
from breastmorph.scan.landmarks import SIDES, other_side

_SLIDERS = 5  # alternatives that the page has sliders for
_KEPT = 2  # predictors that are kept: each holds what the model's subjects look like
_LABELS = {"volume": "Breast volume", "NL-NR": "Nipple to nipple"}


@dataclass(frozen=True, eq=False)
class Predicted:
    """A prediction with what was asked for.

    Attributes
    ----------
    prediction : Prediction
    measures : tuple of PredictedMeasure
    asked : mapping
        The request, to be repeated from a session file.
    record : dict
        For the page.
    """

    prediction: Prediction
    measures: tuple[PredictedMeasure, ...]
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


class Predicting:
    """A model prepared to predict; what it learned for one region is kept.

    Parameters
    ----------
    model : ShapeModel
    """

    def __init__(self, model: ShapeModel) -> None:
        self._model = model
        self._predictors: dict[tuple[str, str], BreastPredictor] = {}
        self._lock = threading.Lock()  # two tabs that ask the same learn it once

    def predict(self, patient: Patient, asked: Mapping[str, Any], job: Job) -> Predicted:
        """Predict as the page asks: ``side``, or painted ``vertices``."""
        missing = self._missing(asked)
        painted = not isinstance(missing, str)
        job.at("looking at the scan", 0.05)
        gone = bool(patient.absent_side)
        if isinstance(missing, str):
            if patient.absent_side == other_side(missing):
                raise BreastMorphError(
                    f"the {patient.absent_side} side is the one without a breast, not the {missing}",
                    f"Predict the {patient.absent_side} side",
                )
            gone = is_gone(self._model, patient.shape, missing) or gone
        job.at("learning from the model's subjects", 0.15)
        predictor = self._predictor(missing, "surface" if gone else "points")
        job.at("predicting", 0.8)
        found = predictor.predict(patient.shape)
        job.at("measuring", 0.9)
        measures = predicted_measures(self._model, found)
        record = _record(found, measures, painted, gone)
        return Predicted(found, measures, dict(asked), record)

    def _missing(self, asked: Mapping[str, Any]) -> str | Bools:
        side, vertices = asked.get("side"), asked.get("vertices")
        if (side is None) == (vertices is None):
            raise bad_request("say which side is missing, or paint the region")
        if vertices is None:
            if side not in SIDES:
                raise bad_request("a side is left or right")
            return str(side)
        n = self._model.n_vertices
        if not isinstance(vertices, list) or not 0 < len(vertices) <= n:
            raise bad_request("nothing is painted", "Paint the missing breast")
        if not all(type(one) is int and 0 <= one < n for one in vertices):
            raise bad_request("a painted vertex does not exist")
        painted = np.zeros(n, bool)
        painted[vertices] = True
        return painted

    def _predictor(self, missing: str | Bools, evidence: Evidence) -> BreastPredictor:
        if not isinstance(missing, str):
            return BreastPredictor(self._model, missing, evidence)
        key = (missing, evidence)
        with self._lock:
            if key not in self._predictors:
                while len(self._predictors) >= _KEPT:
                    self._predictors.pop(next(iter(self._predictors)))
                self._predictors[key] = BreastPredictor(self._model, missing, evidence)
            return self._predictors[key]


def _record(
    found: Prediction, measures: tuple[PredictedMeasure, ...], painted: bool, gone: bool
) -> dict[str, Any]:
    inside = found.normal_deviation[found.region.breast]
    leading = found.leading
    strength = np.einsum("kmd,kmd->k", leading, leading)
    total = float(np.einsum("nmd,nmd->", found.modes, found.modes))
    sliders = min(_SLIDERS, len(leading))
    return {
        "side": found.region.side,
        "painted": painted,
        "breast_was_there": not gone,
        "measures": [
            {
                "name": one.name,
                "label": _LABELS.get(one.name, one.name),
                "unit": one.unit,
                "other": plain(one.other),
                "predicted": plain(one.predicted),
                "sd": plain(one.deviation),
                "mirrored": plain(one.mirrored),
            }
            for one in measures
        ],
        "sd_mm": {"mean": float(inside.mean()), "largest": float(inside.max())},
        "modes": sliders,
        "shares": (strength[:sliders] / max(total, 1e-30)).tolist(),
        "warnings": [in_page_words(one) for one in found.warnings],
        "evidence": found.evidence,
        "calibrated_on": found.source,
    }
