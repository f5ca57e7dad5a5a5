"""Ptosis: how low the nipple stands, and Regnault's grade where the fold is known."""

from __future__ import annotations

from dataclasses import dataclass

from breastmorph.foundation.messages import Finding, note
from breastmorph.scan.scan import SIDES, Landmarks

UNKNOWN = "not determinable"
_SLIGHT, _MODERATE = 10.0, 30.0  # mm below the fold, Regnault 1976
_AT_CONTOUR = 5.0  # mm above the lower pole: the nipple is at the lower contour of the breast
_GLAND_BELOW = 20.0  # mm that the lower pole hangs below the fold while the nipple stands above it
PSEUDO = "pseudoptosis"


@dataclass(frozen=True)
class Ptosis:
    """One breast's ptosis, on an upright patient.

    Attributes
    ----------
    side : str
    above_lower_pole : float
        Height of the nipple above the lowest point of the breast, mm; NaN where one is not known.
    above_fold : float
        Height of the nipple above the inframammary fold, mm, negative below; NaN where the fold is not known.
    grade : str
        "none", "pseudoptosis", "I", "II", "III", or "not determinable".
    reason : Finding, optional
        Why there is no grade.
    """

    side: str
    above_lower_pole: float
    above_fold: float
    grade: str
    reason: Finding | None = None


def ptosis(landmarks: Landmarks, side: str) -> Ptosis:
    """Ptosis of one side from upright landmarks in mm.

    Regnault's grades: I the nipple at the level of the fold or up to 1 cm below; II up to 3 cm below; III deeper, or
    below the fold and at the lower contour of the breast; pseudoptosis: the nipple above the fold, but the gland more
    than 2 cm below it. They need the landmark ``imf``, which is found on every registered shape.
    """
    nipple, pole, fold = (landmarks.get(f"{part}_{side}") for part in ("nipple", "lower_pole", "imf"))
    nan = float("nan")
    if nipple is None:
        return Ptosis(
            side,
            nan,
            nan,
            UNKNOWN,
            note("needs-landmarks", "needs {names:landmark| and }", names=[f"nipple_{side}"]),
        )
    above_pole = float(nipple[1] - pole[1]) if pole is not None else nan
    if fold is None:
        return Ptosis(
            side,
            above_pole,
            nan,
            UNKNOWN,
            note("needs-fold/grade", "needs {name:landmark} (the fold)", name=f"imf_{side}"),
        )
    above_fold = float(nipple[1] - fold[1])
    return Ptosis(side, above_pole, above_fold, _grade(above_fold, above_pole))


def _grade(above_fold: float, above_pole: float) -> str:
    if above_fold > 0.0:
        return PSEUDO if above_pole - above_fold > _GLAND_BELOW else "none"
    if -above_fold > _MODERATE or above_pole < _AT_CONTOUR:
        return "III"
    return "II" if -above_fold > _SLIGHT else "I"


def both_sides(landmarks: Landmarks) -> tuple[Ptosis, ...]:
    """Left, then right."""
    return tuple(ptosis(landmarks, side) for side in SIDES)
