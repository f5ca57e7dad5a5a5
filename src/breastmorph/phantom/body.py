"""A synthetic adult thorax, and the surface it makes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache

import numpy as np
from scipy.interpolate import CubicSpline

from breastmorph.foundation.arrays import Floats
from breastmorph.mesh.triangle_mesh import MIRROR

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


N_THORAX_MODES = 48  # smooth fields beside the named traits


@dataclass(frozen=True)
class Thorax:
    """Traits of one torso as standard scores; all zero is the symmetric mean.

    Attributes
    ----------
    adiposity : float
        Follows the body mass index.
    modes : tuple of float
        Scores of the smooth deformation fields.
    """

    adiposity: float = 0.0
    stature: float = 0.0
    trunk_height: float = 0.0
    lower_trunk: float = 0.0
    chest_width: float = 0.0
    chest_depth: float = 0.0
    waist_width: float = 0.0
    waist_depth: float = 0.0
    hip_width: float = 0.0
    belly: float = 0.0
    pectus: float = 0.0
    upper_chest: float = 0.0
    rib_flare: float = 0.0
    sternum_lean: float = 0.0
    kyphosis: float = 0.0
    side_bend: float = 0.0
    twist: float = 0.0
    neck_width: float = 0.0
    neck_tilt: float = 0.0
    shoulder_width: float = 0.0
    shoulder_height: float = 0.0
    shoulder_forward: float = 0.0
    shoulder_tilt: float = 0.0
    shoulder_turn: float = 0.0
    arm_girth: float = 0.0
    arm_raise_left: float = 0.0
    arm_raise_right: float = 0.0
    arm_forward_left: float = 0.0
    arm_forward_right: float = 0.0
    modes: tuple[float, ...] = field(default=(0.0,) * N_THORAX_MODES)

    @classmethod
    def from_scores(cls, scores: Floats) -> Thorax:
        """The thorax with these scores, (N_SCORES,): the named traits in their order, then the modes."""
        names = [f.name for f in fields(cls) if f.name != "modes"]
        named = {name: float(score) for name, score in zip(names, scores, strict=False)}
        return cls(**named, modes=tuple(float(score) for score in scores[len(names) :]))


N_SCORES = len(fields(Thorax)) - 1 + N_THORAX_MODES


def vary(points: Floats, thorax: Thorax) -> Floats:
    """Shape the mean torso's points (n, 3) into this thorax, (n, 3)."""
    t = thorax
    x, y, z = points.T.copy()
    arm = arm_weight(points)
    # A point on the arm follows the trunk at the height of its shoulder.
    level = y + arm * (SHOULDER_JOINT[1] - y)
    depth = z - axis_depth(level)
    ahead = smooth_step(depth, -20.0, 60.0) * (1.0 - arm)
    fat = t.adiposity

    chest, waist, hip = (
        _hill(level, -110.0, 120.0),
        _hill(level, -275.0, 75.0),
        smooth_step(level, -290.0, -380.0),
    )
    neck = smooth_step(level, 0.0, 45.0)
    wide = 1.0 + 0.05 * t.chest_width * (1.0 - waist) * (1.0 - neck) + 0.05 * t.waist_width * waist
    wide += 0.05 * t.hip_width * hip + (0.035 * chest + 0.075 * waist + 0.045 * hip) * fat
    wide += neck * (0.05 * t.neck_width + 0.04 * fat)
    deep = 1.0 + 0.055 * t.chest_depth * (1.0 - waist) * (1.0 - neck) + 0.06 * t.waist_depth * waist
    deep += (0.035 * chest + 0.075 * waist + 0.05 * hip) * fat + neck * (0.05 * t.neck_width + 0.04 * fat)
    x = x * wide
    depth = depth * (deep + arm * (1.0 - deep))
    depth = depth + ahead * (
        (8.0 * t.belly + 9.0 * fat) * np.exp(-(((level + 315.0) / 62.0) ** 2) - (x / 95.0) ** 2)
        + 3.5 * t.pectus * np.exp(-((x / 32.0) ** 2) - ((level + 150.0) / 55.0) ** 2)
        + 3.5 * t.upper_chest * np.exp(-(((np.abs(x) - 65.0) / 40.0) ** 2) - ((level + 62.0) / 40.0) ** 2)
        + 3.5 * t.rib_flare * np.exp(-(((np.abs(x) - 72.0) / 36.0) ** 2) - ((level + 225.0) / 32.0) ** 2)
    )
    z = axis_depth(level) + depth

    p = np.column_stack([x, y, z])
    p = _arms(p, points, arm, t)
    p = _shoulders(p, points, t)
    p = _posture(p, t)
    p = p + _smooth_fields(points, np.array(t.modes))
    p[:, 1] *= 1.0 + 0.03 * t.trunk_height + 0.03 * t.lower_trunk * smooth_step(p[:, 1], -150.0, -330.0)
    return p * (1.0 + 0.04 * t.stature)


def _arms(p: Floats, mean: Floats, weight: Floats, t: Thorax) -> Floats:
    """Thicken the arms and turn them about the shoulder joints."""
    out = p.copy()
    for sign, raise_score, forward_score in (
        (1.0, t.arm_raise_left, t.arm_forward_left),
        (-1.0, t.arm_raise_right, t.arm_forward_right),
    ):
        side = sign * mean[:, 0] > 0
        mirror = np.array([sign, 1.0, 1.0])
        joint, axis = SHOULDER_JOINT * mirror, ARM_DIRECTION * mirror
        joint = joint * np.array([1.0 + 0.05 * t.chest_width, 1.0, 1.0])
        w = weight[side, None]
        q = out[side] - joint
        along = (q @ axis)[:, None] * axis
        q = along + (q - along) * (1.0 + w * (0.05 * t.arm_girth + 0.05 * t.adiposity))
        # Partial turns by partial angles, so that the armpit bends instead of shearing.
        lift = np.radians(5.0) * raise_score * sign * w[:, 0]
        forward = np.radians(6.0) * forward_score * -sign * w[:, 0]
        q = _turned(q, 2, lift)
        q = _turned(q, 1, forward)
        out[side] = q + joint
    return out


def _shoulders(p: Floats, mean: Floats, t: Thorax) -> Floats:
    x, y = mean[:, 0], mean[:, 1]
    weight = smooth_step(np.abs(x), 35.0, 165.0) * smooth_step(y, -230.0, -50.0)
    side = np.clip(x / 60.0, -1.0, 1.0)
    shift = np.column_stack(
        [
            side * 9.0 * t.shoulder_width,
            9.0 * t.shoulder_height + side * 5.0 * t.shoulder_tilt,
            9.0 * t.shoulder_forward + side * 5.0 * t.shoulder_turn,
        ]
    )
    return p + weight[:, None] * shift


def _posture(p: Floats, t: Thorax) -> Floats:
    x, y, z = p.T
    rise = (y + 180.0) / 180.0  # 0 near the xiphoid, 1 at the notch
    above = np.maximum(rise, 0.0)
    z = z + 16.0 * t.sternum_lean * above**1.5 + 7.0 * t.kyphosis * (np.minimum(rise, 1.4) ** 2 - 0.35)
    z = z + 8.0 * t.neck_tilt * smooth_step(y, 0.0, 70.0)
    x = x + 4.0 * t.side_bend * rise**2 * np.sign(rise)
    angle = np.radians(1.8) * t.twist * rise
    return _turned(np.column_stack([x, y, z]), 1, angle)


@lru_cache(maxsize=1)
def _field_basis() -> tuple[Floats, Floats, Floats]:
    rng = np.random.default_rng(20240611)
    wavelength = np.repeat(np.geomspace(420.0, 125.0, N_THORAX_MODES // 2), 2)
    wave = rng.normal(size=(N_THORAX_MODES, 3))
    wave *= (2.0 * np.pi / wavelength / np.linalg.norm(wave, axis=1))[:, None]
    direction = rng.normal(size=(N_THORAX_MODES, 3))
    direction *= (wavelength / 250.0 / np.linalg.norm(direction, axis=1))[:, None]
    # Even modes move both sides alike, odd ones against each other: bodies are more alike than not.
    direction[0::2] *= 2.3
    direction[1::2] *= 0.9
    return wave, direction, rng.uniform(0.0, 2.0 * np.pi, N_THORAX_MODES)


def _smooth_fields(points: Floats, scores: Floats) -> Floats:
    wave, direction, phase = _field_basis()
    parity = np.where(np.arange(N_THORAX_MODES) % 2, -1.0, 1.0)
    here = np.cos(points @ wave.T + phase) * scores
    there = np.cos((points * MIRROR) @ wave.T + phase) * scores * parity
    return np.sqrt(0.5) * (here @ direction + (there @ direction) * MIRROR)


def arm_weight(points: Floats) -> Floats:
    """How much a point belongs to an arm, (n,) in [0, 1]."""
    q = np.column_stack([np.abs(points[:, 0]), points[:, 1], points[:, 2]]) - SHOULDER_JOINT
    along = q @ ARM_DIRECTION
    away = np.abs(q @ np.array([ARM_DIRECTION[1], -ARM_DIRECTION[0], 0.0]))
    return smooth_step(along, -15.0, 85.0) * smooth_step(away, 100.0, 58.0)


def _turned(p: Floats, axis: int, angle: Floats) -> Floats:
    """Points turned about a coordinate axis by their own angles (radians)."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    out = p.copy()
    out[:, i] = np.cos(angle) * p[:, i] - np.sin(angle) * p[:, j]
    out[:, j] = np.sin(angle) * p[:, i] + np.cos(angle) * p[:, j]
    return out


def smooth_step(value: Floats, low: float, high: float) -> Floats:
    """Smooth step from 0 at ``low`` to 1 at ``high``."""
    t = np.clip((value - low) / (high - low), 0.0, 1.0)
    return t * t * t * (t * (6.0 * t - 15.0) + 10.0)


def _hill(value: Floats, centre: float, half_width: float) -> Floats:
    return np.exp(-(((value - centre) / half_width) ** 2))
