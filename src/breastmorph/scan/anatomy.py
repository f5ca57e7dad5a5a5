"""Adult ranges: what a torso's landmarks may be, wide enough for every adult and narrow enough to catch slips."""

from __future__ import annotations

import numpy as np

from breastmorph.errors import LandmarkProblem
from breastmorph.scan.landmarks import OF_A_BREAST, SIDES, SIGN, STERNUM, Landmarks

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
ANY_EXTENT = (200.0, 1950.0)  # mm: from a chest to a standing adult; ten times more or less is another unit


def unit_of(landmarks: Landmarks, given: str = "auto") -> str:
    """The unit in which the sternum has an adult's length.

    Parameters
    ----------
    landmarks : Landmarks
    given : str
        The unit as the user says it, "auto" to find it.

    Raises
    ------
    LandmarkProblem
        None of mm, cm and m fits, or not the one that was given.
    """
    length = _apart(landmarks, *STERNUM)
    fitting = _units(length, STERNUM_LENGTH)
    if given == "auto" and fitting:
        return fitting[0]
    if given in fitting:
        return given
    adult = f"{STERNUM_LENGTH[0]:.0f}-{STERNUM_LENGTH[1]:.0f}"
    if given == "auto":
        raise LandmarkProblem(
            f"sternal notch to xiphoid measures {length:.4g} in the file's unit; "
            f"an adult's {adult} mm fits neither mm, cm nor m",
            "Check these two landmarks; files in other units (inches) have to be converted first",
            code="unknown-unit",
        )
    raise LandmarkProblem(
        f"with --unit {given} sternal notch to xiphoid measures {length * UNITS[given]:.4g} mm "
        f"(an adult's {adult})",
        "Leave the unit to --unit auto, or check these two landmarks",
        code="wrong-unit",
    )


def unit_of_extent(extent: float) -> str | None:
    """The unit in which a scan may extend so far; None where neither mm, cm nor m fits."""
    return next(iter(_units(extent, ANY_EXTENT)), None)


def _units(length: float, allowed: tuple[float, float]) -> list[str]:
    return [unit for unit, mm in UNITS.items() if allowed[0] <= length * mm <= allowed[1]]


def missing_landmarks(landmarks: Landmarks) -> list[str]:
    """What a scan needs and has not: the sternum and both breasts.

    One complete side is enough when the other has no landmark at all (mastectomy).
    """
    missing = [name for name in STERNUM if name not in landmarks]
    for side in SIDES:
        if side in landmarks.absent_sides and landmarks.complete_sides:
            continue
        missing += [f"{part}_{side}" for part in OF_A_BREAST if f"{part}_{side}" not in landmarks]
    return missing


def require_complete(landmarks: Landmarks, but_found: str = "") -> None:
    """Refuse landmarks that lack the sternum or a whole breast; the message ends with ``but_found``."""
    missing = missing_landmarks(landmarks)
    if not missing:
        return
    raise LandmarkProblem(
        f"missing landmarks: {', '.join(missing)}{but_found}",
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
            "Check the unit (--unit), that each name sits on the right point, and for stray points far off",
            code="implausible-anatomy",
        )


def _misplaced(landmarks: Landmarks, side: str) -> list[str]:
    """What is wrong with where the landmarks of a breast lie to each other, in the canonical frame."""
    nipple, lower, lateral = landmarks.array(f"{part}_{side}" for part in OF_A_BREAST)
    outwards = {
        name: (point[0] - landmarks["xiphoid"][0]) * SIGN[side]
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
