"""Editing by measures: editors prepared once per shape, requested changes in cm and cc."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.clinical.distances import PAPER
from breastmorph.clinical.edit import Edit
from breastmorph.clinical.editing import UNATTAINABLE, Editor
from breastmorph.clinical.feature_requests import REGIONS, Request, named
from breastmorph.clinical.patient import Patient
from breastmorph.explorer.answers import bad_request, preparing, sentences
from breastmorph.explorer.shapes import shape_of
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.foundation.messages import note
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, other_side
from breastmorph.usecases.edit import EditRequest, EditResult, edit, prepare_editor

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session
    from breastmorph.explorer.workspace import Case

_EDITABLE = (*PAPER, "volume-left", "volume-right")
_OF_SIDE = {"left": ("SN-NL", "volume-left"), "right": ("SN-NR", "volume-right")}
_RANGE = 2.5  # standard deviations that a slider reaches from the present value and from the mean
_LEAST = {"mm": 40.0, "cc": 20.0}
_MOST_CHANGES = 12


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
    model : ShapeModel
    patient : Patient
    """

    def __init__(self, model: ShapeModel, patient: Patient) -> None:
        self.model, self.patient = model, patient
        self._editor: Editor | None = None
        self._features: list[dict[str, Any]] | None = None
        self._lock = threading.Lock()  # an editor keeps what it computed, and is not made for two threads

    def prepare(self) -> None:
        """Make ready what takes long."""
        with self._lock:
            self._features_of(self._ready())

    def features(self, *, wait: bool) -> list[dict[str, Any]]:
        """What can be changed, with its present value and sensible ends."""
        if not wait and self._lock.locked() and self._features is None:
            raise preparing("the editor")
        with self._lock:
            return self._features_of(self._ready())

    def edit(self, base: str, asked: Mapping[str, Any]) -> Edited:
        """Make the requested changes as the page sends them."""
        requests, hold = requests_of(asked.get("wishes")), _regions(asked.get("hold", []))
        with self._lock:
            editor = self._ready()
            other = self._other_breast(requests, hold) if asked.get("hold_other") is True else ""
            result, held = self._fulfilled(editor, requests, hold, other)
        record = _record(base, result) | {
            "held": held,
            "held_by_itself": other if other in held else "",
            "not_held": other if other not in held else "",
            "asked": dict(asked),
        }
        return Edited(base, self.patient, result.edit, dict(asked), record)

    def _other_breast(self, requests: Sequence[Request], hold: Sequence[str]) -> str:
        """The breast that no requested change is about, where all are about the other one; else empty."""
        asked = {named(request.name, _EDITABLE) for request in requests}
        for side, names in _OF_SIDE.items():
            other = other_side(side)
            if asked <= set(names) and other not in (*hold, self.patient.absent_side):
                return other
        return ""

    def _fulfilled(
        self, editor: Editor, requests: Sequence[Request], hold: Sequence[str], other: str
    ) -> tuple[EditResult, list[str]]:
        """The edit and what was held: also the other breast, where that succeeds."""
        plans = [[*hold, other], list(hold)] if other else [list(hold)]
        refusal = BreastMorphError("nothing can be held", "Hold less", code="unattainable/nothing")
        for regions in plans:
            request = EditRequest(self.model, tuple(requests), self.patient, tuple(regions))
            try:
                return edit(request, editor), regions
            except BreastMorphError as error:
                refusal = error
                if error.code != UNATTAINABLE and regions is plans[-1]:
                    raise
        held = [side for side in SIDES if side in hold]
        if held:
            breasts = [note("unattainable/breast", "the {side} breast", side=side) for side in held]
            raise BreastMorphError(
                "{why}",
                "Release {breasts:| and }, or ask for less",
                code=f"{refusal.code}/held",
                why=refusal.finding,
                breasts=breasts,
            ) from refusal
        raise refusal

    def _ready(self) -> Editor:
        if self._editor is None:
            self._editor = prepare_editor(self.model, self.patient)
        return self._editor

    def _features_of(self, editor: Editor) -> list[dict[str, Any]]:
        if self._features is not None:
            return self._features
        found = []
        for name in _EDITABLE:
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
                    "unit": feature.unit,
                    "value": value,
                    "low": min(low, value),
                    "high": max(value, mean) + _RANGE * sd,
                }
            )
        self._features = found
        return found


def edit_shape(session: Session, case: Case, asked: Mapping[str, Any]) -> Edited:
    """Make requested changes of the mean, the patient or a shape of the sliders, as the page sends them."""
    spec = asked.get("base", {})
    base = shape_of(session, case, spec)  # refuses what does not exist
    kind = str(spec["kind"])
    if kind not in ("mean", "patient", "model"):
        raise bad_request("editing starts from the mean, the patient or a shape of the model")
    of_sliders = kind == "model"
    editing = (
        Editing(session.view.model, Patient(kind, base.vertices))
        if of_sliders
        else session.editing(case, kind)
    )
    return editing.edit(kind, asked)


def _record(base: str, result: EditResult) -> dict[str, Any]:
    return {
        "base": base,
        "changes": [
            {
                "name": change.name,
                "unit": change.unit,
                "before": plain(change.before),
                "after": plain(change.after),
                "sd": plain(change.sd),
                "requested": plain(change.requested) if not change.held else None,
                "held": change.held,
            }
            for change in result.edit.changes
        ],
        "warnings": sentences(result.own_warnings),
    }


def requests_of(changes: Any) -> list[Request]:
    """Measures with their values as the page sends them."""
    if not isinstance(changes, list) or not 0 < len(changes) <= _MOST_CHANGES:
        raise bad_request("no change is requested", "Change one to {most} measures", most=_MOST_CHANGES)
    requests = []
    for change in changes:
        if not isinstance(change, dict):
            raise bad_request("a requested change is not an object")
        name: Any = change.get("name")
        value: Any = change.get("value")
        unit: Any = change.get("unit", "")
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not isinstance(name, str) or not isinstance(unit, str) or not number or not 0.0 <= value <= 1e5:
            raise bad_request("a requested change needs a name, a number and a unit")
        requests.append(Request(name[:60], float(value), unit[:8]))
    return requests


def _regions(hold: Any) -> list[str]:
    if (
        not isinstance(hold, list)
        or not all(isinstance(name, str) for name in hold)
        or len(hold) > _MOST_CHANGES
    ):
        raise bad_request("what shall be held must be a list of names")
    return [named(name, REGIONS) or name[:60] for name in hold]
