"""Editing by measures: editors prepared once per shape, wishes in cm and cc."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from breastmorph.clinical.edit.editing import Editor
from breastmorph.clinical.edit.result import Edit
from breastmorph.clinical.features import REGIONS, Request, named
from breastmorph.clinical.patient import Patient
from breastmorph.errors import BreastMorphError
from breastmorph.explorer.model_view import ModelView
from breastmorph.explorer.problems import bad_request, preparing
from breastmorph.plain import plain

LABELS = {
    "SN-NL": "Sternal notch to left nipple",
    "SN-NR": "Sternal notch to right nipple",
    "NL-NR": "Nipple to nipple",
    "volume-left": "Left breast volume",
    "volume-right": "Right breast volume",
}
_RANGE = 2.5  # standard deviations that a slider reaches from the present value and from the mean
_LEAST = {"mm": 40.0, "cc": 20.0}
_MOST_WISHES = 12


@dataclass(frozen=True, eq=False)
class Edited:
    """An edit with what was asked for.

    Attributes
    ----------
    base : str
        "mean", "patient" or "model".
    patient : Patient
        What was edited.
    edit : Edit
    asked : mapping
        The request, to be repeated from a session file.
    record : dict
        For the page.
    """

    base: str
    patient: Patient
    edit: Edit
    asked: Mapping[str, Any]
    record: dict[str, Any]


class Editing:
    """An editor of one shape, prepared when first asked for.

    Parameters
    ----------
    view : ModelView
    patient : Patient
    """

    def __init__(self, view: ModelView, patient: Patient) -> None:
        self.view, self.patient = view, patient
        self._editor: Editor | None = None
        self._features: list[dict[str, Any]] | None = None
        self._lock = threading.Lock()  # an editor keeps what it computed, and is not made for two threads

    def prepare(self) -> None:
        """Make ready what takes long."""
        with self._lock:
            self._features_of(self._ready())

    def features(self, *, wait: bool) -> list[dict[str, Any]]:
        """What can be wished for, with its present value and sensible ends."""
        if not wait and self._lock.locked() and self._features is None:
            raise preparing("the editor")
        with self._lock:
            return self._features_of(self._ready())

    def edit(self, base: str, asked: Mapping[str, Any]) -> Edited:
        """Fulfil wishes as the page sends them."""
        requests, hold = _requests(asked.get("wishes")), _held(asked.get("hold", []))
        begin = time.perf_counter()
        with self._lock:
            edit = self._ready().exact(requests, hold)
        return Edited(base, self.patient, edit, dict(asked), self._record(base, edit, begin))

    def _ready(self) -> Editor:
        if self._editor is None:
            self._editor = Editor(self.view.model, self.patient)
        return self._editor

    def _features_of(self, editor: Editor) -> list[dict[str, Any]]:
        if self._features is not None:
            return self._features
        found = []
        for name, label in LABELS.items():
            try:
                feature, mean, sd = editor.usual(name)
                value = feature.value(self.patient.shape)
            except BreastMorphError:  # the model or the patient does not have it
                continue
            if not np.isfinite(value) or sd <= 0.0:
                continue
            low = max(min(value, mean) - _RANGE * sd, _LEAST[feature.unit], 0.4 * value)
            found.append(
                {
                    "name": name,
                    "label": label,
                    "unit": feature.unit,
                    "value": value,
                    "mean": mean,
                    "sd": sd,
                    "low": min(low, value),
                    "high": max(value, mean) + _RANGE * sd,
                }
            )
        self._features = found
        return found

    def _record(self, base: str, edit: Edit, begin: float) -> dict[str, Any]:
        scores = self.view.scores_of(edit.shape)
        return {
            "base": base,
            "changes": [
                {
                    "name": one.name,
                    "unit": one.unit,
                    "before": plain(one.before),
                    "after": plain(one.after),
                    "requested": plain(one.requested) if not one.held else None,
                    "held": one.held,
                }
                for one in edit.changes
            ],
            "movement": plain(dict(edit.movements)),
            "length": edit.length,
            "scores": scores.tolist(),
            "plausibility": self.view.plausibility(scores),
            "warnings": list(edit.warnings),
            "ms": round(1000.0 * (time.perf_counter() - begin)),
        }


def _requests(wishes: Any) -> list[Request]:
    if not isinstance(wishes, list) or not 0 < len(wishes) <= _MOST_WISHES:
        raise bad_request("nothing is wished for", f"Change one to {_MOST_WISHES} measures")
    requests = []
    for wish in wishes:
        if not isinstance(wish, dict):
            raise bad_request("a wish is not an object")
        name: Any = wish.get("name")
        value: Any = wish.get("value")
        unit: Any = wish.get("unit", "")
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not isinstance(name, str) or not isinstance(unit, str) or not number or not 0.0 <= value <= 1e5:
            raise bad_request("a wish needs a name, a number and a unit")
        requests.append(Request(name[:60], float(value), unit[:8]))
    return requests


def _held(hold: Any) -> list[str]:
    if (
        not isinstance(hold, list)
        or not all(isinstance(one, str) for one in hold)
        or len(hold) > _MOST_WISHES
    ):
        raise bad_request("what shall be held must be a list of names")
    return [named(one, REGIONS) or one[:60] for one in hold]
