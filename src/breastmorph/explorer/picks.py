"""The landmarks of a scan while they are picked: what comes next, in words, and every step so that it can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from breastmorph.explorer.answers import RequestProblem, bad_request
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.language import N_
from breastmorph.foundation.messages import Message
from breastmorph.foundation.terms import MEASURES, PAIRS_IN_WORDS
from breastmorph.mesh import files as mesh_files
from breastmorph.scan import landmark_files
from breastmorph.scan.scan import (
    NAMES,
    OF_A_BREAST,
    OPTIONAL,
    REQUIRED,
    SIDES,
    STERNUM,
    Found,
    Landmarks,
    other_side,
)

# What each landmark is called while it is picked, and where it is found.
_GUIDE = {
    "sternal_notch": (
        N_("Sternal notch"),
        N_("The dip at the top of the breastbone, between the collarbones."),
    ),
    "xiphoid": (N_("Xiphoid"), N_("The lower end of the breastbone, in the midline between the breasts.")),
    "nipple_left": (N_("Left nipple"), N_("The centre of the patient's left nipple.")),
    "nipple_right": (N_("Right nipple"), N_("The centre of the patient's right nipple.")),
    "lower_pole_left": (
        N_("Left lower pole"),
        N_(
            "The lowest point of the patient's left breast. Where it hangs, the click moves to the lowest point near."
        ),
    ),
    "lower_pole_right": (
        N_("Right lower pole"),
        N_(
            "The lowest point of the patient's right breast. Where it hangs, the click moves to the lowest point near."
        ),
    ),
    "lateral_pole_left": (
        N_("Left lateral pole"),
        N_(
            "At the height of the patient's left nipple, at the outer border of the breast, on the front armpit line."
        ),
    ),
    "lateral_pole_right": (
        N_("Right lateral pole"),
        N_(
            "At the height of the patient's right nipple, at the outer border of the breast, on the front armpit line."
        ),
    ),
    "navel": (N_("Navel"), N_("The navel. Optional.")),
    "coracoid_left": (
        N_("Left coracoid"),
        N_("The bony point below the outer end of the patient's left collarbone. Optional."),
    ),
    "coracoid_right": (
        N_("Right coracoid"),
        N_("The bony point below the outer end of the patient's right collarbone. Optional."),
    ),
    "imf_left": (
        N_("Left fold"),
        N_("The lowest point of the fold under the patient's left breast. Optional."),
    ),
    "imf_right": (
        N_("Right fold"),
        N_("The lowest point of the fold under the patient's right breast. Optional."),
    ),
}
# Sternum and nipples first: they tell up, left and right to what follows.
ORDER = (*STERNUM, *(f"{part}_{side}" for part in OF_A_BREAST for side in SIDES), *OPTIONAL)
_HISTORY = 60  # steps that can be undone


@dataclass(frozen=True, eq=False)
class Picks:
    """The landmarks of one scan so far, in the coordinates it is shown in.

    Attributes
    ----------
    points : mapping from name to (3,) float
    fronts : mapping from name to (3,) float
        The side of the skin that was seen at each pick.
    absent_side : str
    skipped : frozenset of str
        Optional ones that are not wanted.
    found : mapping from name to Found
        Those that the program proposed and no person moved, with how sure it is.
    confirmed : bool
        Whether a person has confirmed what the program proposed.
    previous : Picks, optional
        Before the last step.
    """

    points: Mapping[str, Floats] = field(default_factory=dict)
    fronts: Mapping[str, Floats] = field(default_factory=dict)
    absent_side: str = ""
    skipped: frozenset[str] = frozenset()
    found: Mapping[str, Found] = field(default_factory=dict)
    confirmed: bool = True
    previous: Picks | None = None

    @classmethod
    def given(cls, landmarks: Landmarks, absent_side: str = "") -> Self:
        """Landmarks that were set or found elsewhere; optional ones are not asked for."""
        absent_sides = (
            landmarks.absent_sides if landmarks.found else ()
        )  # the program leaves out a side without a breast
        return cls(
            dict(landmarks.items()),
            absent_side=absent_side or (absent_sides[0] if len(absent_sides) == 1 else ""),
            skipped=frozenset(OPTIONAL),
            found=landmarks.found,
            confirmed=not landmarks.doubtful,
        )

    @property
    def needed(self) -> list[str]:
        """The landmarks that this scan must have."""
        return [name for name in ORDER if name in REQUIRED and not self._is_absent(name)]

    @property
    def next(self) -> str | None:
        """What to look at now: what is doubtful, what is needed, then what is optional; None at the end."""
        if self.landmarks.doubtful:
            return self.landmarks.doubtful[0]
        wanted = [name for name in ORDER if not self._is_absent(name) and name not in self.skipped]
        return next((name for name in wanted if name not in self.points), None)

    @property
    def lacking(self) -> list[str]:
        """What is needed and not there."""
        return [name for name in self.needed if name not in self.points]

    @property
    def complete(self) -> bool:
        """Whether all that is needed is there."""
        return not self.lacking

    @property
    def landmarks(self) -> Landmarks:
        """The points, in the usual order."""
        marks = Landmarks.of({name: self.points[name] for name in NAMES if name in self.points})
        return replace(marks, found=self.found)

    @property
    def placed_by_hand(self) -> Landmarks:
        """Those that a person set or moved."""
        return self.landmarks.only(name for name in NAMES if name not in self.found)

    def proposed(self, landmarks: Landmarks, absent_side: str) -> Picks:
        """With what the program found of what no person has set yet."""
        own = {name for name in self.points if absent_side and name in _of_breast(absent_side)}
        side = self.absent_side or ("" if own else absent_side)
        left_out = _of_breast(side) if side else []
        new = {name: at for name, at in landmarks.items() if name not in self.points and name not in left_out}
        found = {name: guess for name, guess in landmarks.found.items() if name in new}
        return self._after(
            points={**self.points, **new},
            absent_side=side,
            skipped=frozenset(OPTIONAL),
            found={**self.found, **found},
            confirmed=self.confirmed and not new,
        )

    def confirming(self, name: str = "") -> Picks:
        """With a person's yes to one proposed point, or to all of them; how sure the program was stays."""
        found = {
            known: replace(guess, doubtful=guess.doubtful and bool(name) and known != name)
            for known, guess in self.found.items()
        }
        return self._after(found=found, confirmed=self.confirmed or not name)

    def placed(self, name: str, point: Floats, front: Floats | None = None) -> Picks:
        """With a point at a new place."""
        fronts = dict(self.fronts)
        fronts.pop(name, None)
        if front is not None:
            fronts[name] = front
        found = {
            known: guess for known, guess in self.found.items() if known != name
        }  # a person knows better
        return self._after(points={**self.points, name: point}, fronts=fronts, found=found)

    def without_side(self, side: str) -> Picks:
        """With a side declared absent (or none); its points go."""
        left_out = _of_breast(side) if side else []
        points = {name: at for name, at in self.points.items() if name not in left_out}
        found = {name: guess for name, guess in self.found.items() if name not in left_out}
        return self._after(points=points, absent_side=side, found=found)

    def skipping(self, name: str) -> Picks:
        """Without an optional landmark."""
        return self._after(skipped=self.skipped | {name})

    def swapped(self) -> Picks:
        """With left and right exchanged."""

        def other(name: str) -> str:
            stem, _, side = name.rpartition("_")
            return f"{stem}_{other_side(side)}" if side in SIDES else name

        return self._after(
            points={other(name): at for name, at in self.points.items()},
            fronts={other(name): at for name, at in self.fronts.items()},
            found={other(name): guess for name, guess in self.found.items()},
            absent_side=other_side(self.absent_side) if self.absent_side else "",
        )

    def undone(self) -> Picks:
        """As before the last step."""
        return self.previous if self.previous is not None else self

    def _after(self, **changes: Any) -> Picks:
        return replace(self, **changes, previous=_shortened(self, _HISTORY))

    def _is_absent(self, name: str) -> bool:
        return bool(self.absent_side) and name in _of_breast(self.absent_side)


def _of_breast(side: str) -> list[str]:
    """What goes with a missing breast; a coracoid is bone and stays."""
    return [f"{part}_{side}" for part in (*OF_A_BREAST, "imf")]


def guide() -> list[dict[str, Any]]:
    """All landmarks in the order of picking, with instructions."""
    found = []
    for name in ORDER:
        side = next((side for side in SIDES if name.endswith(f"_{side}")), "")
        label, text = _GUIDE[name]
        found.append(
            {
                "name": name,
                "label": Message(label),
                "text": Message(text),
                "optional": name in OPTIONAL,
                "side": side,
                "of_breast": bool(side) and name in _of_breast(side),
            }
        )
    return found


def page_facts() -> dict[str, Any]:
    """What the page has to know of every session: which files there are, the guide, what measures are called."""
    return {
        "mesh_suffixes": list(mesh_files.READABLE),
        "landmark_suffixes": list(landmark_files.READABLE),
        "picking": guide(),
        "measure_names": {code: Message(words) for code, words in MEASURES.items()},
        "pair_names": {code: Message(words) for code, words in PAIRS_IN_WORDS.items()},
    }


def landmark_name(value: Any) -> str:
    """The landmark that a request names."""
    if value not in NAMES:
        raise bad_request("this is not a landmark", "Known names: {names}", names=", ".join(NAMES))
    return str(value)


def optional_landmark(value: Any) -> str:
    """The optional landmark that a request names."""
    if value not in OPTIONAL:
        raise RequestProblem(
            409, "this landmark is needed", "Pick it, or say that the breast is absent", code="needed"
        )
    return str(value)


def side_or_none(value: Any) -> str:
    """The side that a request names; empty for none."""
    if value not in (*SIDES, ""):
        raise bad_request("a side is left or right")
    return str(value)


def _shortened(picks: Picks, steps: int) -> Picks:
    """The same with so many earlier steps only."""
    chain = [picks]
    while len(chain) < steps and chain[-1].previous is not None:
        chain.append(chain[-1].previous)
    if chain[-1].previous is None:
        return picks
    before: Picks | None = None
    for step in reversed(chain):
        before = replace(step, previous=before)
    return before or picks
