"""What one tab works on, as values: a case for every open scan, and every step so that it can be undone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from breastmorph.explorer.answers import bad_request, there, unknown
from breastmorph.explorer.picks import Picks

if TYPE_CHECKING:
    from breastmorph.explorer.editing import Edited
    from breastmorph.explorer.model_view import ModelView
    from breastmorph.explorer.open_scans import OpenScan
    from breastmorph.explorer.patients import ShownPatient
    from breastmorph.explorer.predicting import Predicted
    from breastmorph.explorer.proposing import Proposal
    from breastmorph.explorer.shapes import NamedShape

_LONGEST = 80  # letters of a name
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_IN_NAME = re.compile(r"(?<!\d)((?:19|20)\d{2})[-_.]?(0[1-9]|1[0-2])[-_.]?(0[1-9]|[12]\d|3[01])(?!\d)")
_STEPS = 200  # that can be undone


@dataclass(frozen=True)
class Case:
    """One open scan with all that was made of it; without a scan (its key is empty then) what was made of the model.

    Attributes
    ----------
    key : str
    name : str
        What people call it; all that is made of it is called by it.
    person : str
        Visits of one person share it; empty where it is not known.
    day : str
        Of the visit, as 2026-01-31; empty where it is not known.
    scan : OpenScan, optional
        As it was read.
    picks : Picks
        Its landmarks so far.
    proposal : Proposal, optional
        What the program found on it.
    patient : ShownPatient, optional
        Its registration or fit.
    edited : Edited, optional
    predicted : Predicted, optional
    kept : NamedShape, optional
        A shape of it to compare with, as it was then.
    """

    key: str = ""
    name: str = ""
    person: str = ""
    day: str = ""
    scan: OpenScan | None = None
    picks: Picks = field(default_factory=Picks)
    proposal: Proposal | None = None
    patient: ShownPatient | None = None
    edited: Edited | None = None
    predicted: Predicted | None = None
    kept: NamedShape | None = None

    @property
    def is_listed(self) -> bool:
        """Whether it is one of the tab's own scans: it was sent, or something was made of it."""
        return (
            bool(self.key) and self.scan is not None and (bool(self.scan.upload) or self.patient is not None)
        )

    @property
    def required_scan(self) -> OpenScan:
        """The scan; raises where there is none."""
        if self.scan is None:
            raise unknown("scan", "Open it again", code="no-scan")
        return self.scan

    @property
    def required_patient(self) -> ShownPatient:
        """The registration or fit; raises where there is none."""
        return there(
            self.patient, "there is no patient yet", "Open a scan, and register or fit it", code="no-patient"
        )

    @property
    def required_edit(self) -> Edited:
        """The edit; raises where there is none."""
        return there(self.edited, "nothing has been edited", "Change a measure first", code="no-edit")

    @property
    def required_kept(self) -> NamedShape:
        """The shape that was kept to compare; raises where there is none."""
        return there(self.kept, "no shape is kept to compare", "Keep one first", code="no-kept")

    @property
    def required_prediction(self) -> Predicted:
        """The prediction; raises where there is none."""
        return there(
            self.predicted,
            "nothing has been predicted",
            "Choose the missing side first",
            code="no-prediction",
        )

    def as_record(self, thumbnail: str) -> dict[str, Any]:
        """A row of the page's list."""
        picks = self.picks
        return {
            "scan": self.key,
            "name": self.name,
            "person": self.person,
            "day": self.day,
            "points": len(picks.points),
            "complete": picks.complete,
            "confirmed": picks.confirmed or not picks.found,
            "doubts": len(picks.landmarks.doubtful),
            "absent_side": picks.absent_side,
            "computed": self.patient is not None,
            "edited": self.edited is not None,
            "predicted": self.predicted is not None,
            "thumbnail": thumbnail,
        }

    def renamed(self, asked: Mapping[str, Any]) -> Case:
        """With what a request says of ``name``, ``person`` and ``day``."""
        name, person, day = (asked.get(part, getattr(self, part)) for part in ("name", "person", "day"))
        if not all(isinstance(text, str) for text in (name, person, day)):
            raise bad_request("a name is a text")
        name, person = (
            "".join(c for c in text if c.isprintable()).strip()[:_LONGEST] for text in (name, person)
        )
        if not name:
            raise bad_request("a scan needs a name", "Type one")
        if day and (_DAY.fullmatch(day) is None or not _is_day(day)):
            raise bad_request("{day} is no date", "Type year, month and day", day=day[:20])
        return replace(self, name=name, person=person, day=day)


def day_in(name: str) -> str:
    """The date that a file's name holds, as scanners write it there; empty without one."""
    found = _IN_NAME.search(name)
    day = "-".join(found.groups()) if found is not None else ""
    return day if day and _is_day(day) else ""


def _is_day(day: str) -> bool:
    try:
        return time.strptime(day, "%Y-%m-%d") is not None
    except ValueError:
        return False


@dataclass(frozen=True)
class Workspace:
    """All that a tab works on, at one moment.

    Attributes
    ----------
    cases : mapping from key to Case
        In the order in which they were opened; the one without a scan is always there.
    current : str
        Key of the one that is worked on.
    notes : str
        The page's own, as JSON: sliders, requested changes, what is painted, how scans are turned.
    view : ModelView, optional
        The model in use where it is not the server's: built here, or with landmarks that were picked here.
    """

    cases: Mapping[str, Case] = field(default_factory=lambda: {"": Case()})
    current: str = ""
    notes: str = "{}"
    view: ModelView | None = None

    @property
    def listed(self) -> list[Case]:
        """The tab's own scans, in the order in which they were opened."""
        return [case for case in self.cases.values() if case.is_listed]

    def case(self, key: str, *, of_a_scan: bool = False) -> Case:
        """One that is open; raises where there is none, or only the one without a scan where a scan's is asked for."""
        case = self.cases.get(key)
        if case is None or (of_a_scan and not key):
            raise unknown("scan", "Open it again", code="no-scan")
        return case

    def with_case(self, case: Case) -> Workspace:
        """With a new case, or one that changed."""
        return replace(self, cases={**self.cases, case.key: case})

    def changed(self, key: str, **changes: Any) -> Workspace:
        """With parts of a case changed; raises where it is not open any more."""
        return self.with_case(replace(self.case(key), **changes))

    def without(self, key: str) -> Workspace:
        """Without a case; another one is worked on where it was this."""
        left = replace(self, cases={other: case for other, case in self.cases.items() if other != key})
        return (
            replace(left, current=["", *(case.key for case in left.listed)][-1])
            if self.current == key
            else left
        )

    def with_model(self, view: ModelView, *, alike: bool) -> Workspace:
        """With another model; results of the old one go, patients stay where the triangles are ``alike``."""
        cases = {key: replace(case, edited=None, predicted=None) for key, case in self.cases.items()}
        if not alike:
            cases = {key: replace(case, patient=None, kept=None) for key, case in cases.items()}
        return replace(self, cases=cases, view=view)


class History:
    """Workspaces before and after, each with the name of the step that leads from one to the next."""

    def __init__(self) -> None:
        self._past: list[tuple[str, Workspace]] = []
        self._future: list[tuple[str, Workspace]] = []
        self._revision = 0

    def note(self, what: str, before: Workspace) -> None:
        """A step was made."""
        self._past = [*self._past, (what, before)][-_STEPS:]
        self._future = []
        self._revision += 1

    def undo(self, now: Workspace) -> tuple[str, Workspace] | None:
        """The last step and the workspace before it; None without one."""
        return self._moved(self._past, self._future, now)

    def redo(self, now: Workspace) -> tuple[str, Workspace] | None:
        """The step that was undone last and the workspace after it; None without one."""
        return self._moved(self._future, self._past, now)

    def _moved(
        self, source: list[tuple[str, Workspace]], target: list[tuple[str, Workspace]], now: Workspace
    ) -> tuple[str, Workspace] | None:
        if not source:
            return None
        what, found = source.pop()
        target.append((what, now))
        self._revision += 1
        return what, found

    def forget(self, key: str, now: Workspace) -> None:
        """A case is deleted: no step may bring it back, and one that was about it alone leads nowhere any more."""
        for steps in (self._past, self._future):
            after = [*(space.without(key) for _, space in steps), now]
            names = [what for what, _ in steps]
            steps[:] = [
                (what, space)
                for what, space, following in zip(names, after, after[1:], strict=False)
                if space != following
            ]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to undo or to do again."""
        return not self._past and not self._future

    def cases(self) -> set[str]:
        """Keys of all cases that a step could bring back."""
        return {key for _, space in (*self._past, *self._future) for key in space.cases}

    def as_record(self) -> dict[str, Any]:
        """What would be undone and done again, for the page."""
        return {
            "undo": self._past[-1][0] if self._past else None,
            "redo": self._future[-1][0] if self._future else None,
            "revision": self._revision,
        }


Change = Callable[[Workspace], Workspace]
