"""Adult ranges: what a torso's landmarks may be, wide enough for every adult and narrow enough to catch slips."""

from __future__ import annotations

import numpy as np

from breastmorph.errors import LandmarkProblem
from breastmorph.scan.landmarks import SIDES, STERNUM, Landmarks

STERNUM_LENGTH = (120.0, 260.0)  # mm, sternal notch to xiphoid
UNITS = {"mm": 1.0, "cm": 10.0, "m": 1000.0}  # mm per unit

# Straight distances in mm: name, first landmark, second landmark, least, most.
_RANGES = (
    ("sternal notch to nipple", "sternal_notch", "nipple_{side}", 110.0, 480.0),
    ("nipple to lower pole", "nipple_{side}", "lower_pole_{side}", 0.5, 250.0),
    ("nipple to lateral pole", "nipple_{side}", "lateral_pole_{side}", 30.0, 330.0),
    ("xiphoid to nipple", "xiphoid", "nipple_{side}", 40.0, 380.0),
)
_NIPPLES_APART = (80.0, 480.0)
_EXTENT = (200.0, 1600.0)  # mm, largest side of the scan's bounding box


def unit_of(landmarks: Landmarks) -> str:
    """The unit in which the sternum has an adult's length.

    Raises
    ------
    LandmarkProblem
        None of mm, cm and m fits.
    """
    notch, xiphoid = landmarks.array(STERNUM)
    length = float(np.linalg.norm(notch - xiphoid))
    for unit, factor in UNITS.items():
        if STERNUM_LENGTH[0] <= length * factor <= STERNUM_LENGTH[1]:
            return unit
    raise LandmarkProblem(
        f"sternal notch to xiphoid measures {length:.4g} in the file's unit; "
        f"an adult's {STERNUM_LENGTH[0]:.0f}-{STERNUM_LENGTH[1]:.0f} mm fits neither mm, cm nor m",
        "Check these two landmarks, or give the unit with --unit",
        code="unknown-unit",
    )


def require_unit(landmarks: Landmarks, unit: str) -> None:
    """Refuse a unit given by the user in which the sternum has no adult's length."""
    length = _apart(landmarks, *STERNUM) * UNITS[unit]
    if not STERNUM_LENGTH[0] <= length <= STERNUM_LENGTH[1]:
        raise LandmarkProblem(
            f"with --unit {unit} sternal notch to xiphoid measures {length:.4g} mm "
            f"(an adult's {STERNUM_LENGTH[0]:.0f}-{STERNUM_LENGTH[1]:.0f})",
            "Leave the unit to --unit auto, or check these two landmarks",
            code="wrong-unit",
        )


def require_complete(landmarks: Landmarks, unknown: tuple[str, ...] = ()) -> None:
    """Refuse landmarks that lack the sternum or a whole breast.

    One complete side is enough when the other has no landmark at all (mastectomy).
    """
    missing = [name for name in STERNUM if name not in landmarks]
    for side in SIDES:
        if side in landmarks.absent_sides and landmarks.complete_sides:
            continue
        missing += [
            f"{part}_{side}"
            for part in ("nipple", "lower_pole", "lateral_pole")
            if f"{part}_{side}" not in landmarks
        ]
    if not missing:
        return
    labels = (
        f"; labels not understood: {', '.join(repr(label[:40]) for label in unknown[:8])}" if unknown else ""
    )
    raise LandmarkProblem(
        f"missing landmarks: {', '.join(missing)}{labels}",
        "Add them, or rename the labels as in docs/landmarks.md; "
        "after a mastectomy leave out all three of that side",
        code="missing-landmarks",
    )


def require_adult_anatomy(landmarks: Landmarks, extent: float) -> None:
    """Refuse landmarks in the canonical frame (mm) that no adult torso has.

    Parameters
    ----------
    landmarks : Landmarks
    extent : float
        Largest side of the scan's bounding box in mm.
    """
    problems = []

    def judge(what: str, value: float, least: float, most: float) -> None:
        if not least <= value <= most:
            problems.append(f"{what} {value:.4g} mm (expected {least:g}-{most:g})")

    judge("scan extent", extent, *_EXTENT)
    judge("sternal notch to xiphoid", _apart(landmarks, *STERNUM), *STERNUM_LENGTH)
    for side in landmarks.complete_sides:
        for what, first, second, least, most in _RANGES:
            pair = first.format(side=side), second.format(side=side)
            judge(f"{what} ({side})", _apart(landmarks, *pair), least, most)
        problems += _misplaced(landmarks, side)
    if len(landmarks.complete_sides) == 2:
        judge("nipple to nipple", _apart(landmarks, "nipple_left", "nipple_right"), *_NIPPLES_APART)
    if problems:
        raise LandmarkProblem(
            f"not an adult torso: {'; '.join(problems)}",
            "Check the unit (--unit) and that each name sits on the right point",
            code="implausible-anatomy",
        )


def _misplaced(landmarks: Landmarks, side: str) -> list[str]:
    """What is wrong with where the landmarks of a breast lie to each other, in the canonical frame."""
    nipple, lower, lateral = landmarks.array([f"nipple_{side}", f"lower_pole_{side}", f"lateral_pole_{side}"])
    sign = 1.0 if side == "left" else -1.0
    outwards = {
        name: (point[0] - landmarks["xiphoid"][0]) * sign
        for name, point in (("nipple", nipple), ("lower pole", lower), ("lateral pole", lateral))
    }
    found = [
        f"the {side} {name} does not lie to the {side} of the xiphoid"
        for name, distance in outwards.items()
        if distance < (-15.0 if name == "lower pole" else 10.0)
    ]
    if nipple[1] > landmarks["sternal_notch"][1] - 30.0:
        found.append(f"the {side} nipple lies as high as the sternal notch")
    if lower[1] > nipple[1] + 25.0:
        found.append(f"the {side} lower pole lies {lower[1] - nipple[1]:.0f} mm above the nipple")
    if lateral[2] > nipple[2]:
        found.append(f"the {side} lateral pole lies before the nipple")
    if lateral[2] > lower[2] + 20.0:
        found.append(f"the {side} lateral pole lies before the lower pole")
    return found


def _apart(landmarks: Landmarks, first: str, second: str) -> float:
    return float(np.linalg.norm(landmarks[first] - landmarks[second]))
