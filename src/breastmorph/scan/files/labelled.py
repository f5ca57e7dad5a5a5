"""Labelled points as a file has them, before anyone asks which of them are landmarks of ours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from breastmorph.errors import LandmarkProblem
from breastmorph.scan.landmarks import Landmarks

Point = tuple[float, float, float]


@dataclass(frozen=True)
class LabelledPoints:
    """The content of a landmark file.

    Attributes
    ----------
    points : tuple of (label, (x, y, z))
        Points that are set, with their labels as written; the label is empty in a bare list.
    space : str
        "LPS" or "RAS" where declared, otherwise empty.
    unit : str
        As declared, otherwise empty.
    """

    points: tuple[tuple[str, Point], ...]
    space: str = ""
    unit: str = ""


def point_of(label: str, coordinates: Any) -> Point:
    """Three finite numbers from whatever a file gave for a landmark."""
    shown = f"landmark {label[:60]!r}"
    if not isinstance(coordinates, list | tuple) or len(coordinates) != 3:
        raise LandmarkProblem(f"{shown} has not three coordinates", "Give x, y and z")
    point = []
    for value in coordinates:
        try:
            if isinstance(value, bool):
                raise TypeError
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise LandmarkProblem(
                f"{shown} has the coordinate {str(value)[:40]!r}, which is not a number",
                "Correct it in the file",
            ) from None
        if not math.isfinite(number):
            raise LandmarkProblem(
                f"{shown} has a coordinate that is not finite ({number})",
                "Remove the landmark or place it again",
            )
        point.append(number)
    return point[0], point[1], point[2]


def listed(landmarks: Landmarks) -> list[tuple[str, list[float]]]:
    """Names and coordinates of landmarks that are to be written."""
    return list(zip(landmarks.names, landmarks.points.tolist(), strict=True))


def space_of(text: str) -> str:
    """ "LPS" or "RAS" from a name or from 3D Slicer's old numbers; empty for anything else."""
    return {"LPS": "LPS", "RAS": "RAS", "1": "LPS", "0": "RAS"}.get(text.strip().upper(), "")
