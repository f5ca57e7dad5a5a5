"""How the torso without its breasts varies: build, adiposity, posture, arms and many small smooth modes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import lru_cache

import numpy as np

from breastmorph.mesh.triangle_mesh import MIRROR, Floats
from breastmorph.phantom.bare_surface import ARM_DIRECTION, SHOULDER_JOINT, axis_depth

N_MODES = 48  # smooth fields beside the named traits


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
    modes: tuple[float, ...] = field(default=(0.0,) * N_MODES)

    @classmethod
    def from_scores(cls, scores: Floats) -> Thorax:
        """The thorax with these scores, (N_SCORES,): the named traits in their order, then the modes."""
        names = [f.name for f in fields(cls) if f.name != "modes"]
        named = {name: float(score) for name, score in zip(names, scores, strict=False)}
        return cls(**named, modes=tuple(float(score) for score in scores[len(names) :]))


N_SCORES = len(fields(Thorax)) - 1 + N_MODES


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
    wavelength = np.repeat(np.geomspace(420.0, 125.0, N_MODES // 2), 2)
    wave = rng.normal(size=(N_MODES, 3))
    wave *= (2.0 * np.pi / wavelength / np.linalg.norm(wave, axis=1))[:, None]
    direction = rng.normal(size=(N_MODES, 3))
    direction *= (wavelength / 250.0 / np.linalg.norm(direction, axis=1))[:, None]
    # Even modes move both sides alike, odd ones against each other: bodies are more alike than not.
    direction[0::2] *= 2.3
    direction[1::2] *= 0.9
    return wave, direction, rng.uniform(0.0, 2.0 * np.pi, N_MODES)


def _smooth_fields(points: Floats, scores: Floats) -> Floats:
    wave, direction, phase = _field_basis()
    parity = np.where(np.arange(N_MODES) % 2, -1.0, 1.0)
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
