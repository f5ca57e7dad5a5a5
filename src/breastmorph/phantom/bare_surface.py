"""The mean adult torso without breasts as an implicit surface.

Frame: millimetres, origin on the body axis at the level of the sternal notch, x to the patient's left,
y up, z forward. The profiles below are typical adult female anthropometry, written for this module.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from breastmorph.mesh.triangle_mesh import Floats

WAIST_LEVEL = -362.0  # lower end, a little below the navel
NECK_LEVEL = 62.0  # upper end at the front of the neck
SHOULDER_JOINT = np.array([152.0, -34.0, -24.0])  # left side
ARM_DIRECTION = np.array([np.sin(np.pi / 4), -np.cos(np.pi / 4), 0.0])  # abducted 45 degrees
ARM_LENGTH = 175.0  # from the joint to the cut through the stump

# Level (y), half width (x), front (z), back (z), exponent of the section's superellipse.
_PROFILE = np.array(
    [
        [-420.0, 156.0, 104.0, -92.0, 2.20],
        [-368.0, 148.0, 104.0, -82.0, 2.20],
        [-310.0, 129.0, 101.0, -74.0, 2.20],
        [-270.0, 122.0, 99.0, -74.0, 2.25],
        [-220.0, 126.0, 99.0, -84.0, 2.35],
        [-170.0, 135.0, 99.0, -98.0, 2.40],
        [-120.0, 142.0, 89.0, -110.0, 2.40],
        [-80.0, 144.0, 75.0, -116.0, 2.40],
        [-40.0, 142.0, 57.0, -117.0, 2.35],
        [-15.0, 132.0, 45.0, -113.0, 2.30],
        [5.0, 110.0, 37.0, -108.0, 2.15],
        [22.0, 84.0, 31.0, -101.0, 2.05],
        [40.0, 64.0, 28.0, -94.0, 2.00],
        [62.0, 56.0, 28.0, -86.0, 2.00],
        [110.0, 54.0, 32.0, -78.0, 2.00],
    ]
)
_HALF_WIDTH, _FRONT, _BACK, _EXPONENT = (
    CubicSpline(_PROFILE[:, 0], _PROFILE[:, k], bc_type="natural") for k in range(1, 5)
)


def axis_depth(level: Floats) -> Floats:
    """Depth z of the body axis at heights ``level`` (n,)."""
    return 0.5 * (_FRONT(level) + _BACK(level))


def signed_field(points: Floats) -> Floats:
    """About the signed distance in mm (negative inside) of points (n, 3); symmetric in x."""
    x, y, z = np.abs(points[:, 0]), points[:, 1], points[:, 2]
    p = np.column_stack([x, y, z])
    field = _trunk(x, y, z)
    arm = _cone(p, SHOULDER_JOINT, SHOULDER_JOINT + 260.0 * ARM_DIRECTION, 50.0, 40.0)
    field = _join(field, arm, 34.0)
    # Muscle masses that bridge trunk and arm: the front and back folds of the armpit.
    pectoral = _cone(p, np.array([70.0, -70.0, 22.0]), np.array([195.0, -66.0, -14.0]), 30.0, 30.0)
    dorsal = _cone(p, np.array([92.0, -165.0, -50.0]), np.array([192.0, -72.0, -38.0]), 27.0, 27.0)
    field = _join(_join(field, pectoral, 40.0), dorsal, 40.0)
    # Collar bone and the neck's oblique muscle are ridges of the skin, not bodies of their own.
    ahead = np.clip((z - axis_depth(y)) / 30.0 + 0.6, 0.0, 1.0)
    collar_level = 3.0 + 0.11 * x - 7.0 * np.sin(np.pi * np.clip(x / 150.0, 0.0, 1.0))
    collar = np.exp(-(((y - collar_level) / 9.0) ** 2)) * _bump(x, 82.0, 76.0)
    oblique = np.exp(-(((x - 12.0 - 0.36 * y) / 8.0) ** 2)) * _bump(y, 44.0, 50.0)
    field = field - ahead * (4.5 * collar + 4.0 * oblique)
    notch = np.sqrt((x / 11.0) ** 2 + ((y - 7.0) / 13.0) ** 2 + ((z - 41.0) / 9.0) ** 2)
    spine = np.exp(-((x / 16.0) ** 2)) * np.clip(-z / 60.0, 0.0, 1.0) * _bump(y, -200.0, 170.0)
    blade = np.exp(-(((x - 82.0) / 34.0) ** 2) - ((y + 105.0) / 60.0) ** 2) * np.clip(-z / 60.0, 0.0, 1.0)
    sternum = np.exp(-((x / 20.0) ** 2)) * np.clip(z / 40.0, 0.0, 1.0) * _bump(y, -120.0, 110.0)
    midline = np.exp(-((x / 17.0) ** 2)) * np.clip(z / 40.0, 0.0, 1.0) * _bump(y, -290.0, 75.0)
    navel = np.exp(-((x / 7.0) ** 2) - ((y + 338.0) / 8.0) ** 2) * np.clip(z / 40.0, 0.0, 1.0)
    return (
        field
        + 4.0 * np.exp(-(notch**2))
        + 7.0 * spine
        - 6.0 * blade
        + 3.0 * sternum
        + 2.5 * midline
        + 5.0 * navel
    )


def project(points: Floats, steps: int = 3) -> Floats:
    """Points moved onto the surface along the field's gradient, (n, 3)."""
    for _ in range(steps):
        value, gradient = _field_and_gradient(points)
        points = points - np.clip(value, -15.0, 15.0)[:, None] * gradient
    return points


def _field_and_gradient(points: Floats) -> tuple[Floats, Floats]:
    """The field (n,) in units of distance and the inverse-length gradient (n, 3) for Newton steps."""
    value = signed_field(points)
    step = 0.05
    slope = np.stack([signed_field(points + step * axis) - value for axis in np.eye(3)], axis=1) / step
    return value, slope / np.maximum((slope**2).sum(axis=1, keepdims=True), 0.05)


def _trunk(x: Floats, y: Floats, z: Floats) -> Floats:
    width, front, back, power = _HALF_WIDTH(y), _FRONT(y), _BACK(y), _EXPONENT(y)
    centre, depth = 0.5 * (front + back), 0.5 * (front - back)
    radial = ((x / width) ** power + (np.abs(z - centre) / depth) ** power) ** (1.0 / power)
    # Where the shoulders slope the section shrinks fast with height; keep the field near a distance.
    slope = _HALF_WIDTH(y, 1) * np.minimum(x / width, 1.0)
    return (radial - 1.0) * np.minimum(width, depth) / np.sqrt(1.0 + 0.6 * slope**2)


def _cone(p: Floats, start: Floats, end: Floats, r_start: float, r_end: float) -> Floats:
    axis = end - start
    along = np.clip((p - start) @ axis / (axis @ axis), 0.0, 1.0)
    distance = np.linalg.norm(p - start - along[:, None] * axis, axis=1)
    return distance - (r_start + along * (r_end - r_start))


def _join(a: Floats, b: Floats, radius: float) -> Floats:
    """Union with a fillet of about the given radius."""
    blend = np.clip(0.5 + 0.5 * (b - a) / radius, 0.0, 1.0)
    return b + (a - b) * blend - radius * blend * (1.0 - blend)


def _bump(value: Floats, centre: float, half_width: float) -> Floats:
    t = np.clip(1.0 - ((value - centre) / half_width) ** 2, 0.0, 1.0)
    return t * t
