"""Adult ranges: what a torso may be, wide enough for every adult and narrow enough to catch slips.

Every range of an adult's size stands here, under the question that it answers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.foundation.messages import Finding, note
from breastmorph.scan.scan import OF_A_BREAST, SIDES, SIGN, STERNUM, Landmarks, canonical_name

UNITS = {"mm": 1.0, "cm": 10.0, "m": 1000.0}  # mm per unit
_LENGTH_UNITS = {**UNITS, "in": 25.4}  # of a measured distance
_MEASURED = re.compile(r"(.+?)=\s*(\d+(?:[.,]\d*)?|[.,]\d+)\s*(mm|cm|m|in)", re.IGNORECASE)
MEASURE_IT = note(
    "scale-by",
    'measure one distance between two landmarks on the patient and give it (scale_by="NL-NR=21cm")',
)  # ends what can be done about an unknown scale

# Straight distances in mm: name, first landmark, second landmark, least, most.
_RANGES = (
    ("sternal notch to nipple", "sternal_notch", "nipple_{side}", 110.0, 480.0),
    ("nipple to lower pole", "nipple_{side}", "lower_pole_{side}", 0.5, 250.0),
    ("nipple to lateral pole", "nipple_{side}", "lateral_pole_{side}", 30.0, 330.0),
    ("xiphoid to nipple", "xiphoid", "nipple_{side}", 40.0, 380.0),
)
STERNUM_LENGTH = (120.0, 260.0)  # sternal notch to xiphoid
_NIPPLES_APART = (80.0, 480.0)
_NOTCH_TO_NAVEL = (230.0, 650.0)
_NAVEL_ABOVE = 80.0  # mm that a navel may lie above the nipples of hanging breasts

# Largest side of a bounding box, mm.
TORSO_EXTENT = (200.0, 1600.0)  # a scan with landmarks: torso and arms; more holds stray points
BODY_EXTENT = (
    200.0,
    1950.0,
)  # a scan without: up to a standing adult; ten times more or less is another unit
MODEL_EXTENT = (150.0, 1600.0)  # a model's mean, which may be one breast with its surroundings
BODY_PART_EXTENT = (50.0, 3000.0)  # whatever may be a body or part of one: beyond, a model is warned of
USUAL_EXTENT = 450.0  # most torsos: taken where no unit fits

# Size relative to a mean of adults.
ADULT_SIZES = (0.6, 1.6)  # adults lie well within: a fit that needs another size explains something else
SIZES_IN_A_COHORT = (1.0 / 3.0, 3.0)  # beyond, against the others' median: another unit, or damaged
SIZES_IN_MM = (0.5, 2.0)  # a first look, at few points: beyond, it is in another unit; those differ by ten


@dataclass(frozen=True)
class KnownDistance:
    """A straight distance between two landmarks as measured on the patient: it tells the scale of a file.

    Attributes
    ----------
    first, second : str
        Names of the landmarks.
    length : float
        In mm.
    """

    first: str
    second: str
    length: float

    def __post_init__(self) -> None:
        if self.first == self.second or not 0.0 < self.length < np.inf:
            raise BreastMorphError(
                "{first} to {second} = {length:g} mm is no distance between two landmarks",
                "Write it as NL-NR=21cm",
                first=self.first,
                second=self.second,
                length=self.length,
            )

    @classmethod
    def of(cls, text: str) -> Self:
        """A distance as people write it: ``NL-NR=21cm``, ``sternal_notch-navel = 38.5 cm``; the unit is needed."""
        found = _MEASURED.fullmatch(text.strip())
        dashes = [at for at, letter in enumerate(text) if letter == "-"]
        for at in dashes if found else []:  # names may have dashes of their own: N-L-N-R
            ends = canonical_name(text[:at]), canonical_name(text[at + 1 : text.index("=")])
            if found and ends[0] and ends[1]:
                length = float(found[2].replace(",", ".")) * _LENGTH_UNITS[found[3].lower()]
                return cls(ends[0], ends[1], length)
        raise BreastMorphError(
            "{text!r} is no measured distance between two landmarks",
            "Write two landmarks, the straight distance and its unit (mm, cm, m or in), as in NL-NR=21cm",
            text=text,
        )

    def mm_per_unit(self, landmarks: Landmarks) -> float:
        """Millimetres per unit of a file with these landmarks."""
        missing = [name for name in (self.first, self.second) if name not in landmarks]
        apart = 0.0 if missing else _apart(landmarks, self.first, self.second)
        if not apart:
            if missing:
                raise LandmarkProblem(
                    "the distance from {first:landmark} to {second:landmark} is given, but the landmark "
                    "{unset:landmark} is not set",
                    "Set both landmarks, or give a distance between two others",
                    code="unknown-unit/distance-unset",
                    first=self.first,
                    second=self.second,
                    unset=missing[0],
                )
            raise LandmarkProblem(
                "the distance from {first:landmark} to {second:landmark} is given, but both lie at the "
                "same place",
                "Set both landmarks, or give a distance between two others",
                code="unknown-unit/distance-none",
                first=self.first,
                second=self.second,
            )
        return self.length / apart


def unit_of(landmarks: Landmarks, given: str = "auto") -> str:
    """The unit in which the sternum has an adult's length; without a xiphoid, in which the nipples lie as on an adult.

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
    ways = _telling(landmarks)
    fitting = [unit for unit in UNITS if all(unit in _units(way[1], way[2]) for way in ways)]
    if given == "auto" and fitting:
        return fitting[0]
    if given in fitting:
        return given
    asked = set(UNITS) if given == "auto" else {given}
    what, length, allowed = next((way for way in ways if not asked & set(_units(*way[1:]))), ways[-1])
    adult: dict[str, Any] = {"what": what, "least": allowed[0], "most": allowed[1]}
    if given == "auto":
        raise LandmarkProblem(
            "{what} measures {length:.4g} in the file's unit; an adult's {least:.0f}-{most:.0f} mm "
            "fits neither mm, cm nor m",
            "Check these two landmarks; where the scale of the file is not known or another "
            "(inches), {scale_by}",
            code="unknown-unit",
            **adult,
            length=length,
            scale_by=MEASURE_IT,
        )
    raise LandmarkProblem(
        "read in {unit}, {what} measures {length:.4g} mm (an adult's {least:.0f}-{most:.0f})",
        'Leave the unit to "auto", or check these two landmarks',
        code="wrong-unit",
        **adult,
        length=length * UNITS[given],
        unit=given,
    )


def _telling(landmarks: Landmarks) -> list[tuple[str, float, tuple[float, float]]]:
    """Distances that tell the unit: what, how long, and how long on an adult in mm."""
    if "xiphoid" in landmarks:
        return [("sternal notch to xiphoid", _apart(landmarks, *STERNUM), STERNUM_LENGTH)]
    what, _, _, least, most = _RANGES[0]
    ways = [
        (f"{what} ({side})", _apart(landmarks, "sternal_notch", f"nipple_{side}"), (least, most))
        for side in landmarks.nipple_sides
    ]
    if "navel" in landmarks:
        ways.append(("sternal notch to navel", _apart(landmarks, "sternal_notch", "navel"), _NOTCH_TO_NAVEL))
    return ways


def unit_of_extent(extent: float) -> str | None:
    """The unit in which a scan may extend so far; None where neither mm, cm nor m fits."""
    return next(iter(_units(extent, BODY_EXTENT)), None)


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


def enough_landmarks(landmarks: Landmarks) -> bool:
    """Whether :func:`require_enough` accepts them."""
    return not _lacking(landmarks)


def _lacking(landmarks: Landmarks) -> list[str]:
    missing = [] if "sternal_notch" in landmarks else ["sternal_notch"]
    sides = landmarks.nipple_sides
    missing += [
        f"nipple_{s}" for s in SIDES if s not in sides and (s not in landmarks.absent_sides or not sides)
    ]
    if not missing and len(sides) == 1 and not {"xiphoid", "navel"} & set(landmarks):
        missing.append("xiphoid or navel")
    return missing


def require_enough(landmarks: Landmarks, but_found: Finding | str = "") -> None:
    """Refuse landmarks from which no scan can be laid upright and no breast found; ends with ``but_found``.

    The sternal notch and the nipples are enough. After a mastectomy, with one nipple, the midline needs a second point.
    """
    missing = _lacking(landmarks)
    if missing:
        raise LandmarkProblem(
            "missing landmarks: {names:landmark}{but_found}",
            "Add them, or rename the labels as in docs/landmarks.md; after a mastectomy leave out "
            "all of that side and set xiphoid or navel",
            code="missing-landmarks",
            names=missing,
            but_found=but_found,
        )


def require_complete(landmarks: Landmarks, but_found: Finding | str = "") -> None:
    """Refuse landmarks that lack the sternum or a whole breast; the message ends with ``but_found``."""
    missing = missing_landmarks(landmarks)
    if missing:
        raise LandmarkProblem(
            "missing landmarks: {names:landmark}{but_found}",
            "Add them, or rename the labels as in docs/landmarks.md; after a mastectomy leave out "
            "all three of that side",
            code="missing-landmarks/complete",
            names=missing,
            but_found=but_found,
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

    judge("scan extent", extent, *TORSO_EXTENT)
    middle = _lower_midline(landmarks)
    if middle != "sternal_notch":
        adult = STERNUM_LENGTH if middle == "xiphoid" else _NOTCH_TO_NAVEL
        judge(f"sternal notch to {middle}", _apart(landmarks, "sternal_notch", middle), *adult)
    for side in landmarks.nipple_sides:
        for what, first, second, least, most in _RANGES:
            pair = first.format(side=side), second.format(side=side)
            if pair[0] in landmarks and pair[1] in landmarks:
                judge(f"{what} ({side})", _apart(landmarks, *pair), least, most)
        problems += _misplaced(landmarks, side)
    if len(landmarks.nipple_sides) == 2:
        nipples = _apart(landmarks, "nipple_left", "nipple_right")
        judge("nipple to nipple", nipples, *_NIPPLES_APART)
        if middle == "navel" and _apart(landmarks, "sternal_notch", middle) < nipples:
            problems.append("the navel is nearer to the sternal notch than the nipples to each other")
    if problems:
        raise LandmarkProblem(
            "not an adult torso: {problems:|; }",
            "Check the unit, that each name sits on the right point, and for stray points far off",
            code="implausible-anatomy",
            problems=problems,
        )


def _lower_midline(landmarks: Landmarks) -> str:
    """The landmark that shows the midline at the breasts: xiphoid, navel, or else the notch."""
    return next(name for name in ("xiphoid", "navel", "sternal_notch") if name in landmarks)


def _misplaced(landmarks: Landmarks, side: str) -> list[str]:
    """What is wrong with where the landmarks of a breast lie to each other, in the canonical frame."""
    parts = landmarks.only(f"{part}_{side}" for part in OF_A_BREAST)
    nipple, lower, lateral = (parts.get(f"{part}_{side}") for part in OF_A_BREAST)
    middle = _lower_midline(landmarks)
    found = []
    for name, point in parts.items():
        stem = name.removesuffix(f"_{side}")
        if (point[0] - landmarks[middle][0]) * SIGN[side] < (-15.0 if stem == "lower_pole" else 10.0):
            found.append(
                f"the {side} {stem.replace('_', ' ')} does not lie to the {side} of the {middle.replace('_', ' ')}"
            )
    if nipple is None:
        return found
    if nipple[1] > landmarks["sternal_notch"][1] - 30.0:
        found.append(f"the {side} nipple lies as high as the sternal notch")
    if middle == "navel" and landmarks["navel"][1] > nipple[1] + _NAVEL_ABOVE:
        found.append(f"the navel lies {landmarks['navel'][1] - nipple[1]:.0f} mm above the {side} nipple")
    coracoid = landmarks.get(f"coracoid_{side}")
    if coracoid is not None and coracoid[1] < nipple[1]:
        found.append(f"the {side} coracoid lies below the nipple")
    if coracoid is not None and (coracoid[0] - landmarks["sternal_notch"][0]) * SIGN[side] < 10.0:
        found.append(f"the {side} coracoid does not lie to the {side} of the sternal notch")
    if lower is not None and lower[1] > nipple[1] + 25.0:
        found.append(f"the {side} lower pole lies {lower[1] - nipple[1]:.0f} mm above the nipple")
    if lateral is not None and lateral[2] > nipple[2]:
        found.append(f"the {side} lateral pole lies before the nipple")
    if lateral is not None and lower is not None and lateral[2] > lower[2] + 20.0:
        found.append(f"the {side} lateral pole lies before the lower pole")
    return found


def _apart(landmarks: Landmarks, first: str, second: str) -> float:
    return float(np.linalg.norm(landmarks[first] - landmarks[second]))
