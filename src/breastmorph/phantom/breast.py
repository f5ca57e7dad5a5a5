"""The breast as a true three-dimensional map of chest skin: dome, fold, sag.

Skin coordinates of the front of the trunk are ``a`` (around the body, mm, 0 at the midline, patient's left
positive) and ``y`` (height, mm), both on the mean torso. A breast is made in four steps.

1. Its footprint is placed: monotone maps of ``a`` and ``y`` slide the skin over the bare chest.
2. A dome ``w`` is raised over the footprint.
3. Sag shears the dome downwards, the more the further it is from the chest wall. A shear maps the half space
   in front of the chest one to one onto itself and keeps volume: the breast overhangs its fold and never cuts
   itself or the chest.
4. (a, y, w) goes to space: the point (a, y) of the subject's bare chest, and ``w`` mm straight out of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.interpolate import PchipInterpolator

from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.phantom.skin import FOLD, LATERAL, MEDIAL, UPPER, across_footprint, footprint_polar
from breastmorph.phantom.thorax import smooth_step

N_MODES = 18  # of which the first are the dome's and the rest the skin's
_N_DOME = 12
_DOME_SIZES = np.array([0.12, 0.10, 0.08, 0.08, 0.05, 0.05, 0.07, 0.06, 0.06, 0.035, 0.035, 0.04])
_HOLD = 0.5  # how blunt the top of a hanging bag is, see _eased
_STEEPEST = 3.5  # mm the skin falls next to the fold while it leaves the chest wall by one


@dataclass(frozen=True)
class Breast:
    """One breast.

    Attributes
    ----------
    volume : float
        Over the chest wall, cc.
    medial, lateral, upper, fold : float
        Shifts of the footprint's borders in mm (away from the midline; upwards).
    lower_height : float
        Change of the distance from the nipple down to the fold, mm.
    nipple_around, nipple_up : float
        Shift of the nipple within the footprint, mm.
    sag : float
        0 a firm breast; at 1 the nipple is level with the fold, beyond it hangs below (ptosis).
        In units of the firm nipple's height above the fold.
    upper_fullness : float
        0 a straight or hollow upper pole, 1 a round one.
    roundness : float
        How steeply the dome rises at its sides, 0 to 1.
    spread : float
        How far the breast falls sideways: mm per mm of projection.
    nipple_size : float
        Height of the nipple, mm.
    modes : tuple of float
        Standard scores of small smooth variations of dome and skin.
    """

    volume: float
    medial: float = 0.0
    lateral: float = 0.0
    upper: float = 0.0
    fold: float = 0.0
    lower_height: float = 0.0
    nipple_around: float = 0.0
    nipple_up: float = 0.0
    sag: float = 0.4
    upper_fullness: float = 0.35
    roundness: float = 0.4
    spread: float = 0.08
    nipple_size: float = 5.0
    modes: tuple[float, ...] = field(default=(0.0,) * N_MODES)


@dataclass(frozen=True, eq=False)
class BreastMap:
    """The map of one breast for skin points given once.

    Attributes
    ----------
    breast : Breast
    around, level : (n,) float
        Skin coordinates, mirrored to the left for a right breast.
    weight : (n,) float
        How far a point takes part in sliding the footprint into place, 0 to 1.
    nipple_at : tuple of float
        Skin coordinates of the left nipple.
    """

    breast: Breast
    around: Floats
    level: Floats
    weight: Floats
    nipple_at: tuple[float, float]

    @cached_property
    def material_radius(self) -> Floats:
        """Distance from the nipple as a share of the mean footprint, (n,)."""
        return footprint_polar(self.around, self.level, self.nipple_at)[0]

    @cached_property
    def placed(self) -> tuple[Floats, Floats]:
        """Skin coordinates after sliding the footprint into place."""
        around, level = self._within
        return (
            around + self.weight * (self._place_around(around) - around),
            level + self.weight * (self._place_level(around, level) - level),
        )

    @cached_property
    def _within(self) -> tuple[Floats, Floats]:
        """Skin coordinates after moving the nipple inside the footprint and the small skin modes."""
        radius = self.material_radius
        window = np.clip(1.0 - radius**2, 0.0, None) ** 2
        b = self.breast
        wide = np.clip(1.0 - (radius / 1.5) ** 2, 0.0, None) ** 2 * smooth_step(self.around, 0.0, 35.0)
        skin = np.zeros((2, len(radius)))
        for k, score in enumerate(b.modes[_N_DOME:]):
            wave, phase, along = _SKIN_WAVES[k]
            skin += (
                1.6 * score * np.outer(along, np.cos(self.around * wave[0] + self.level * wave[1] + phase))
            )
        around = self.around + b.nipple_around * window + skin[0] * wide
        level = self.level + b.nipple_up * window + skin[1] * wide
        # The underside of a breast is skin that lay close to the fold: draw more of it there.
        radius, angle = footprint_polar(around, level, self.nipple_at)
        low = smooth_step(-np.sin(angle), -0.6, 0.6) * (0.5 + 0.38 * min(b.sag, 1.0))
        stretch = 1.0 + low * radius * np.clip(1.0 - radius, 0.0, None)
        return (
            self.nipple_at[0] + (around - self.nipple_at[0]) * stretch,
            self.nipple_at[1] + (level - self.nipple_at[1]) * stretch,
        )

    def _place_around(self, around: Floats) -> Floats:
        b, centre = self.breast, self.nipple_at[0]
        knots = np.array([-400.0, 0.0, MEDIAL, centre, LATERAL, 235.0, 600.0])
        moved = knots + np.array([0.0, 0.0, b.medial, 0.5 * (b.medial + b.lateral), b.lateral, 0.0, 0.0])
        return PchipInterpolator(knots, moved)(around)

    def _place_level(self, around: Floats, level: Floats) -> Floats:
        b, centre = self.breast, self.nipple_at[1]
        knots = np.array([-700.0, -350.0, FOLD, centre, UPPER, 0.0, 400.0])
        middle = 0.65 * b.fold + 0.35 * b.upper
        shift = np.array([0.0, 0.0, b.fold - b.lower_height, middle, b.upper, 0.0, 0.0])
        moved = PchipInterpolator(knots, knots + shift)(level)
        return level + smooth_step(around, 0.0, 45.0) * smooth_step(-around, -240.0, -178.0) * (moved - level)

    @cached_property
    def dome(self) -> Floats:
        """Height of the dome for unit projection, (n,)."""
        b = self.breast
        radius, angle = footprint_polar(*self._within, self.nipple_at)
        up, across = np.sin(angle), np.cos(angle)
        above, below = np.clip(up, 0, 1) ** 2, np.clip(-up, 0, 1) ** 2
        lateral, medial = np.clip(across, 0, 1) ** 2, np.clip(-across, 0, 1) ** 2
        steepness = (
            above * (2.9 - 1.5 * b.upper_fullness + self._bag)
            + below * (0.95 - 0.15 * b.roundness)
            + lateral * (1.7 - 0.6 * b.roundness)
            + medial * (2.0 - 0.7 * b.roundness + 0.5 * self._bag)
        )
        inside = np.clip(1.0 - radius**2.4, 0.0, 1.0)
        shape = np.where(inside > 0, np.maximum(inside, 1e-12) ** steepness, 0.0)
        bulge = np.zeros_like(radius)
        s = radius**2
        x, y = across * radius, up * radius
        waves = (
            y, x, radius**2 * np.cos(2 * angle), radius**2 * np.sin(2 * angle),
            radius**3 * np.cos(3 * angle), radius**3 * np.sin(3 * angle), 2 * s - 1, (3 * s - 2) * y,
            (3 * s - 2) * x, radius**4 * np.cos(4 * angle), radius**4 * np.sin(4 * angle), 6 * s * s - 6 * s + 1,
        )  # fmt: skip
        for score, size, wave in zip(b.modes[:_N_DOME], _DOME_SIZES, waves, strict=True):
            bulge += score * size * wave
        return shape * np.exp(bulge)

    def raised(self, projection: float) -> tuple[Floats, Floats, Floats]:
        """Skin coordinates and height (a, y, w) with the dome ``projection`` mm high, sagged."""
        around, level = self.placed
        up, core = self._above_fold
        # A breast that hangs is a bag of even thickness rather than a cone.
        height = projection * ((1.0 - self._bag) * self.dome + self._bag * _eased(self.dome, _HOLD))
        drop = self.breast.sag * up[self._nipple]
        # Next to the fold the skin falls at most so much faster than it leaves the chest wall.
        quickest = max(_STEEPEST * projection / max(drop, 1e-9), 1.2)
        fall = _eased(self.dome, float(np.clip(1.0 / (quickest - 1.0), _HOLD, 5.0)))
        level = level - drop * core * fall / fall[self._nipple]
        return around + self.breast.spread * height, level, height

    @cached_property
    def _bag(self) -> float:
        """How far the breast is a hanging bag rather than a dome, 0 to 1."""
        return 0.8 * float(smooth_step(np.array(self.breast.sag), 0.4, 1.5))

    @property
    def below_fold(self) -> float:
        """How far the nipple ends below the level of its fold, mm; negative above."""
        return float((self.breast.sag - 1.0) * self._above_fold[0][self._nipple])

    @cached_property
    def _nipple(self) -> int:
        return int(np.argmin(np.hypot(self.around - self.nipple_at[0], self.level - self.nipple_at[1])))

    @cached_property
    def _above_fold(self) -> tuple[Floats, Floats]:
        """Height above the fold in the column of every point, and how central that column is (1 to 0)."""
        within = self._within[0]
        across = across_footprint(within, self.nipple_at)
        inner = np.clip(1.0 - across**2, 0.0, 1.0)
        fold = self._place_level(within, self.nipple_at[1] - (self.nipple_at[1] - FOLD) * np.sqrt(inner))
        return self.placed[1] - fold, np.clip(1.0 - np.abs(across) ** 3, 0.0, 1.0)


def _eased(dome: Floats, hold: float) -> Floats:
    """The dome's height with its top flattened, the more the smaller ``hold``, (n,); 0 and 1 stay."""
    return dome * (1.0 + hold) / (dome + hold)


def _skin_waves() -> list[tuple[Floats, float, Floats]]:
    rng = np.random.default_rng(911)
    waves = []
    for length in np.geomspace(220.0, 110.0, N_MODES - _N_DOME):
        turn, along = rng.uniform(0.0, 2.0 * np.pi, 2)
        wave = 2.0 * np.pi / length * np.array([np.cos(turn), np.sin(turn)])
        waves.append((wave, float(rng.uniform(0.0, 2.0 * np.pi)), np.array([np.cos(along), np.sin(along)])))
    return waves


_SKIN_WAVES = _skin_waves()
