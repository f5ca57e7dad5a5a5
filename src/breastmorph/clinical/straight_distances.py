"""Formulas of straight distances: of points (k, 3), which may be complex so that derivatives are exact."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def _norm(vector: NDArray[Any]) -> NDArray[Any]:
    length: NDArray[Any] = np.sqrt((vector * vector).sum())
    return length


def between(points: NDArray[Any]) -> NDArray[Any]:
    """Distance of the first two points."""
    return _norm(points[0] - points[1])


def from_plane(points: NDArray[Any]) -> NDArray[Any]:
    """Distance of a point from the sagittal plane through notch and xiphoid (the notch alone: x = that of it)."""
    normal = np.array([1.0, 0.0, 0.0], dtype=points.dtype)
    if len(points) == 3:
        down = points[2] - points[1]
        normal = np.stack([down[1], -down[0], 0.0 * down[0]])  # across the sternum, horizontal in depth
    offset: NDArray[Any] = ((points[0] - points[1]) * normal).sum() / _norm(normal)
    return offset if offset.real >= 0 else -offset


def midline(points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """x and y of the midline at the height of the first point, from notch and xiphoid or the notch alone."""
    height, notch = points[0, 1], points[1]
    if len(points) == 2:
        return notch[0], height
    down = points[2] - notch
    return notch[0] + (height - notch[1]) / down[1] * down[0], height


def midline_point(points: NDArray[Any]) -> NDArray[Any]:
    """The midline on the plane of a triangle (first three points), at the height of the nipple (fourth), (3,)."""
    x, y = midline(points[3:])
    a, b, c = points[:3]
    u, v = b - a, c - a
    normal = np.stack([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])
    depth = a[2] - (normal[0] * (x - a[0]) + normal[1] * (y - a[1])) / normal[2]
    return np.stack([x, y, depth])


def to_midline(points: NDArray[Any]) -> NDArray[Any]:
    """Distance from the first point to the midline."""
    return _norm(points[0] - midline_point(points[1:]))


def over_chord(points: NDArray[Any]) -> NDArray[Any]:
    """Distance of the nipple (fifth point) from the line between the first point and the midline."""
    end = midline_point(points[1:])
    chord, up = end - points[0], points[4] - points[0]
    along = (up * chord).sum() / (chord * chord).sum()
    return _norm(up - along * chord)
