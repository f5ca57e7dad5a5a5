"""The outline: where a template ends on a torso."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.scan.scan import Landmarks


@dataclass(frozen=True)
class Outline:
    """Where a template ends, found from landmarks (mm, upright frame); no arms, no back, a rounded border.

    Attributes
    ----------
    above_notch : float
    below_lower_pole : float
    behind_lateral_pole, behind_notch : float
        The coronal cut runs this far behind these two landmarks, leaning as they do.
    armhole_out, armhole_up, armhole_radius : float
        Arm and shoulder are cut away, seen from the front, by an arc from the flank to the vertical; its
        centre (out and up from the lateral pole) and radius in parts of the height from pole to notch.
    rounding : float
        Radius with which the cuts pass into each other.
    ragged : float
        Where the scan itself ends sooner, this many of its mean edges go with its ragged border.
    """

    above_notch: float = 12.0
    below_lower_pole: float = 40.0
    behind_lateral_pole: float = 6.0
    behind_notch: float = 10.0
    armhole_out: float = 0.43
    armhole_up: float = 0.67
    armhole_radius: float = 0.47
    rounding: float = 15.0
    ragged: float = 2.5


def extent(points: Floats, landmarks: Landmarks, outline: Outline) -> Floats:
    """How far inside the template's outline points lie (mm, about; negative outside), (k,)."""
    notch, lower, lateral = (
        landmarks[name] for name in ("sternal_notch", "lower_pole_left", "lateral_pole_left")
    )
    x, y, z = np.abs(points[:, 0]), points[:, 1], points[:, 2]
    height = notch[1] - lateral[1]
    back_low, back_high = lateral[2] - outline.behind_lateral_pole, notch[2] - outline.behind_notch
    lean = (back_high - back_low) / height
    # Outside this span the cut goes on vertically: an extrapolated lean would reach into the belly.
    level = np.clip(y, lateral[1], notch[1]) - lateral[1]
    back = (z - back_low - lean * level) / np.hypot(1.0, lean)
    radius = outline.armhole_radius * height
    # The hole goes on outwards and upwards for ever, whatever the arm's length and the shoulder's width.
    out = np.minimum(x - lateral[0] - outline.armhole_out * height, 0.0)
    up = np.minimum(y - lateral[1] - outline.armhole_up * height, 0.0)
    sides = np.stack(
        [
            notch[1] + outline.above_notch - y,
            y - lower[1] + outline.below_lower_pole,
            back,
            np.hypot(out, up) - radius,
        ]
    )
    return soft_minimum(sides, outline.rounding)


def soft_minimum(values: Floats, radius: float) -> Floats:
    """Minimum over the first axis; corners of the zero level are rounded with about this radius."""
    # Where several values fall below the radius the level lines are circles that touch both sides.
    short = np.maximum(radius - values, 0.0)
    least: Floats = np.maximum(values.min(axis=0), radius) - np.linalg.norm(short, axis=0)
    return least
