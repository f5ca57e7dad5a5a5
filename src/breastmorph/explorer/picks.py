"""The landmarks of a scan while they are picked: what comes next, in words, and every step so that it can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from breastmorph.explorer.problems import RequestProblem, bad_request
from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.scan.landmarks import (
    NAMES,
    OF_A_BREAST,
    OPTIONAL,
    REQUIRED,
    SIDES,
    STERNUM,
    Landmarks,
    other_side,
)

_TEXTS = {
    "sternal_notch": "The dip at the top of the breastbone, between the collarbones.",
    "xiphoid": "The lower end of the breastbone, in the midline between the breasts.",
    "nipple": "The centre of the {side} nipple.",
    "lower_pole": "The lowest point of the {side} breast. Where it hangs, the click moves to the lowest point near.",
    "lateral_pole": "At the height of the {side} nipple, at the outer border of the breast, on the front armpit line.",
    "navel": "The navel. Optional.",
    "coracoid": "The bony point below the outer end of the {side} collarbone. Optional.",
    "imf": "The lowest point of the fold under the {side} breast. Optional.",
}
_LABELS = {
    "sternal_notch": "Sternal notch",
    "xiphoid": "Xiphoid",
    "nipple": "{Side} nipple",
    "lower_pole": "{Side} lower pole",
    "lateral_pole": "{Side} lateral pole",
    "navel": "Navel",
    "coracoid": "{Side} coracoid",
    "imf": "{Side} fold",
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
    previous : Picks, optional
        Before the last step.
    """

    points: Mapping[str, Floats] = field(default_factory=dict)
    fronts: Mapping[str, Floats] = field(default_factory=dict)
    absent_side: str = ""
    skipped: frozenset[str] = frozenset()
    previous: Picks | None = None

    @classmethod
    def given(cls, landmarks: Landmarks, absent_side: str = "") -> Self:
        """Landmarks that were set elsewhere; nobody is asked for optional ones."""
        return cls(dict(landmarks.items()), absent_side=absent_side, skipped=frozenset(OPTIONAL))

    @property
    def needed(self) -> list[str]:
        """The landmarks that this scan must have."""
        return [name for name in ORDER if name in REQUIRED and not self._is_absent(name)]

    @property
    def next(self) -> str | None:
        """What to pick now: what is needed, then what is optional; None at the end."""
        wanted = [name for name in ORDER if not self._is_absent(name) and name not in self.skipped]
        return next((name for name in wanted if name not in self.points), None)

    @property
    def complete(self) -> bool:
        """Whether all that is needed is there."""
        return all(name in self.points for name in self.needed)

    @property
    def landmarks(self) -> Landmarks:
        """The points, in the usual order."""
        return Landmarks.of({name: self.points[name] for name in NAMES if name in self.points})

    def placed(self, name: str, point: Floats, front: Floats | None = None) -> Picks:
        """With a point at a new place."""
        fronts = dict(self.fronts)
        fronts.pop(name, None)
        if front is not None:
            fronts[name] = front
        return self._after(points={**self.points, name: point}, fronts=fronts)

    def without_side(self, side: str) -> Picks:
        """With a side declared absent (or none); its points go."""
        points = {name: at for name, at in self.points.items() if not (side and name in _of_breast(side))}
        return self._after(points=points, absent_side=side)

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
        side = next((one for one in SIDES if name.endswith(f"_{one}")), "")
        stem = name.removesuffix(f"_{side}") if side else name
        found.append(
            {
                "name": name,
                "label": _LABELS[stem].format(Side=side.capitalize()),
                "text": _TEXTS[stem].format(side=f"patient's {side}"),
                "optional": name in OPTIONAL,
                "side": side,
                "of_breast": bool(side) and name in _of_breast(side),
            }
        )
    return found


def landmark_name(value: Any) -> str:
    """The landmark that a request names."""
    if value not in NAMES:
        raise bad_request("this is no landmark", f"Known are {', '.join(NAMES)}")
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
    for one in reversed(chain):
        before = replace(one, previous=before)
    return before or picks
