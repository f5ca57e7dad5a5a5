"""Heights of landmarks on the upright patient, and how sure distances and heights are by their landmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from breastmorph.clinical.borders import FOLD_HIDDEN
from breastmorph.clinical.distances import DISTANCES
from breastmorph.clinical.measure_table import (
    Measure,
)
from breastmorph.foundation.messages import note
from breastmorph.scan.scan import SIDES, Landmarks

_SURFACE = 0.5  # mm (sd) that a registered surface lies beside the skin


def distance_spread(name: str, sd: Mapping[str, float]) -> tuple[float, str]:
    """Standard deviation of a distance from those of its landmarks, and what it comes from."""
    marks = [mark for mark in DISTANCES[name].landmarks if mark in sd]
    value = float(np.sqrt(sum(sd[mark] ** 2 for mark in marks) + _SURFACE**2))
    return value, _source(marks, sd)


def _source(marks: Sequence[str], sd: Mapping[str, float]) -> str:
    hidden = any(mark.startswith("imf") and sd[mark] > FOLD_HIDDEN for mark in marks)
    return "landmarks, hidden skin" if hidden else "landmarks"


HEIGHTS = {  # upper and lower landmark, and what it means
    "nipple-above-lower-pole": (
        "nipple",
        "lower_pole",
        "Height of the nipple above the lowest point of the breast, negative below",
    ),
    "nipple-above-fold": (
        "nipple",
        "imf",
        "Height of the nipple above the lowest point of the fold, negative below",
    ),
    "fold-height": ("sternal_notch", "imf", "How far the fold lies below the sternal notch"),
}


def height_landmarks(name: str, side: str) -> list[str]:
    """The two landmarks of a height."""
    return [mark if mark == "sternal_notch" else f"{mark}_{side}" for mark in HEIGHTS[name][:2]]


def marks_of(name: str) -> tuple[str, ...]:
    """The landmarks that a distance or height lies between; none of other measures."""
    if name in DISTANCES:
        return tuple(DISTANCES[name].landmarks)
    heights = [(one, side) for one in HEIGHTS for side in SIDES if name == f"{one}-{side}"]
    return tuple(mark for height in heights for mark in height_landmarks(*height))


def measure_heights(places: Landmarks, sd: Mapping[str, float]) -> tuple[Measure, ...]:
    """Vertical distances on the upright patient."""
    out = []
    for side in SIDES:
        for name in HEIGHTS:
            marks = height_landmarks(name, side)
            missing = [mark for mark in marks if mark not in places]
            if missing:
                code = "needs-fold" if missing[0].startswith("imf") else "needs-landmarks"
                reason = note(code, "needs {names:landmark| and }", names=missing)
                out.append(Measure(f"{name}-{side}", "height", float("nan"), "mm", reason))
                continue
            value = float(places[marks[0]][1] - places[marks[1]][1])
            spread = float(np.hypot(sd[marks[0]], sd[marks[1]]))
            out.append(Measure(f"{name}-{side}", "height", value, "mm", None, spread, _source(marks, sd)))
    return tuple(out)
