"""What a mastectomy leaves of one side: a pad of soft tissue, a loss that runs out beyond the breast, a scar."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.phantom.body import smooth_step
from breastmorph.phantom.skin import BreastMap, footprint_polar

_MOST_LEFT = 0.4  # of the lost breast: more would be a smaller breast, not a flat chest
_RISE = 18.0  # mm inside the border over which the pad reaches its height, beside the blending
_DEEP = 0.3  # of the way to the border: what is nearer to the nipple lies deep inside, whatever the direction
_DOG_EAR = 13.0  # mm, how wide the fold of skin at the end of a scar is
_STERNUM = 20.0  # mm beside the midline over which the loss runs out
_UNEVEN = 3  # slow waves of the pad's height


@dataclass(frozen=True)
class Mastectomy:
    """One operation; all zero leaves the bare chest wall.

    Attributes
    ----------
    pad : float
        Soft tissue that stays over the chest wall, cc; never more than a share of the breast.
    blend : float
        mm beyond the breast's border at which the loss has run out.
    hollow : float
        How much deeper than before the skin lies at the border, mm.
    scar : float
        Height of the scar, mm; negative a groove.
    scar_angle : float
        Degrees by which it rises towards the armpit.
    scar_length, scar_width : float
        mm; the width is a standard deviation.
    scar_up : float
        mm that the scar's middle lies above the nipple's place.
    dog_ear : float
        Height of the fold of skin at the scar's lateral end, mm.
    uneven : tuple of float
        Standard scores of slow waves of the pad's height.
    """

    pad: float = 0.0
    blend: float = 0.0
    hollow: float = 0.0
    scar: float = 0.0
    scar_angle: float = 0.0
    scar_length: float = 120.0
    scar_width: float = 3.0
    scar_up: float = 0.0
    dog_ear: float = 0.0
    uneven: tuple[float, ...] = (0.0,) * (2 * _UNEVEN)

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Mastectomy:
        """An operation as varied as they are."""
        return cls(
            pad=float(rng.uniform(20.0, 130.0)),
            blend=float(rng.uniform(10.0, 30.0)),
            hollow=float(rng.uniform(0.0, 6.0)),
            scar=float(rng.uniform(-2.5, 3.0)),
            scar_angle=float(rng.uniform(-10.0, 45.0)),
            scar_length=float(rng.uniform(90.0, 180.0)),
            scar_width=float(rng.uniform(2.5, 5.0)),
            scar_up=float(rng.uniform(-25.0, 25.0)),
            dog_ear=float(max(rng.uniform(-6.0, 9.0), 0.0)),
            uneven=tuple(float(score) for score in np.clip(rng.normal(size=2 * _UNEVEN), -2.5, 2.5)),
        )

    def pad_volume(self, breast: float) -> float:
        """cc of the pad that stays of a breast of so many cc."""
        return min(self.pad, _MOST_LEFT * breast)

    def layer(self, skin: BreastMap) -> Floats:
        """Shape of the pad over the chest wall, (n,), of arbitrary height."""
        inside = smooth_step(-_beyond(skin), -0.3 * self.blend, _RISE + self.blend)
        across, up = _from_nipple(skin)
        waves = np.ones(len(inside))
        for k in range(_UNEVEN):
            turn, length = np.pi * k / _UNEVEN, 90.0 + 25.0 * k
            along = (np.cos(turn) * across + np.sin(turn) * up) * 2.0 * np.pi / length
            waves += 0.15 * (self.uneven[2 * k] * np.sin(along) + self.uneven[2 * k + 1] * np.cos(along))
        return inside * np.maximum(waves, 0.1)

    def relief(self, skin: BreastMap) -> Floats:
        """Height of hollow and scar over the chest wall with its pad, (n,) mm."""
        off = _beyond(skin)
        reach = max(self.blend, 1.0)
        deep = smooth_step(off, reach, 0.0) * smooth_step(off, -2.0 * reach, 0.0)
        across, up = _from_nipple(skin)
        turn = np.radians(self.scar_angle)
        along = np.cos(turn) * across + np.sin(turn) * (up - self.scar_up)
        away = np.cos(turn) * (up - self.scar_up) - np.sin(turn) * across
        half = 0.5 * self.scar_length
        scar = np.exp(-0.5 * (away / self.scar_width) ** 2) * smooth_step(np.abs(along), half, half - 15.0)
        ear = np.exp(-((along - half) ** 2 + away**2) / (2.0 * _DOG_EAR**2))
        near = smooth_step(off, reach, 0.0)  # nothing is changed beyond the loss, nor on the sternum
        found: Floats = near * (self.scar * scar + self.dog_ear * ear) - self.hollow * deep
        return found * smooth_step(skin.placed[0], 0.0, _STERNUM)


def _from_nipple(skin: BreastMap) -> tuple[Floats, Floats]:
    """Places in the breast's own footprint, mm lateral to and above the nipple's."""
    around, level = skin.placed
    nipple = int(np.argmin(skin.material_radius))
    return around - around[nipple], level - level[nipple]


def _beyond(skin: BreastMap) -> Floats:
    """How far every point lies beyond the border of the breast, (n,) mm; negative inside."""
    radius = footprint_polar(*skin.within, skin.nipple_at)[0]
    away = np.hypot(*_from_nipple(skin))
    deep = np.maximum(radius, _DEEP)
    found: Floats = (away / np.maximum(radius, 1e-3)) * (deep - 1.0)
    return np.where(radius < _DEEP, np.minimum(found, -_RISE - 30.0), found)
