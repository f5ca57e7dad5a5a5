"""The skin as a lattice on which every point is known, and the breasts it covers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.ndimage import map_coordinates, spline_filter
from scipy.sparse import coo_matrix, csr_matrix, diags

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_cross
from breastmorph.mesh.halves import whole_of_half
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.phantom.body import (
    ARM_DIRECTION,
    ARM_LENGTH,
    NECK_LEVEL,
    SHOULDER_JOINT,
    WAIST_LEVEL,
    arm_weight,
    axis_depth,
    project,
    smooth_step,
)
from breastmorph.scan.scan import SIGN

_HALVINGS = 2
_COLUMNS, _ROWS, _RINGS = 23, 29, 6  # coarse cells
_ARM_COLUMNS, _ARM_ROWS = (15, 18), (16, 25)  # the left-out rectangle, coarse
# Wanted cell sizes in mm after the last halving: columns front to back, rows waist to neck, rings.
_COLUMN_SIZE = np.interp(np.arange(_COLUMNS) + 0.5, [0, 12, 15, 23], [2.9, 2.9, 4.5, 7.5])
_ROW_SIZE = np.interp(np.arange(_ROWS) + 0.5, [0, 3, 5, 19, 23, 29], [6.0, 5.5, 2.9, 2.9, 4.0, 4.5])
_RING_SIZE = 6.0


@dataclass(frozen=True, eq=False)
class Lattice:
    """The mean bare torso on the fixed topology.

    Attributes
    ----------
    points : (n, 3) float
    faces : (m, 3) int
    mirror : (n,) int
        The vertex that is this one's mirror image across x = 0.
    """

    points: Floats
    faces: Ints
    mirror: Ints


@lru_cache(maxsize=1)
def lattice() -> Lattice:
    """Lay the lattice (about a second; kept)."""
    points = _first_guess()
    for level in range(_HALVINGS + 1):
        half = _half(level)
        if level:
            points = _halve(_half(level - 1), half, points)
        points = _relax(half, points, iterations=(120, 40, 16)[level])
    return _mirrored(half, points)


@dataclass(frozen=True, eq=False)
class _Half:
    """One half of the lattice at one level: cells as quads of vertex ids and what holds each vertex."""

    ids: Ints  # (columns + 1, rows + 1), -1 inside the arm's rectangle
    rings: Ints  # (rings + 1, k): ring 0 is the rectangle's rim
    quads: Ints
    edges: Ints
    sizes: Floats
    n: int

    @property
    def midline(self) -> Ints:
        return np.concatenate([self.ids[0], self.ids[-1]])


@lru_cache(maxsize=4)
def _half(level: int) -> _Half:
    k = 2**level
    columns, rows, n_rings = _COLUMNS * k, _ROWS * k, _RINGS * k
    (c0, c1), (r0, r1) = (np.array(_ARM_COLUMNS) * k, np.array(_ARM_ROWS) * k)
    ids = np.full((columns + 1, rows + 1), -1)
    keep = np.ones_like(ids, bool)
    keep[c0 + 1 : c1, r0 + 1 : r1] = False
    ids[keep] = np.arange(keep.sum())
    # Rim of the rectangle, counter-clockwise seen from outside (columns run from the front backwards).
    rim = [(c, r0) for c in range(c0, c1)] + [(c1, r) for r in range(r0, r1)]
    rim += [(c, r1) for c in range(c1, c0, -1)] + [(c0, r) for r in range(r1, r0, -1)]
    ring0 = np.array([ids[c, r] for c, r in rim])
    later = keep.sum() + np.arange(n_rings * len(rim)).reshape(n_rings, -1)
    rings = np.vstack([ring0, later])
    n = int(rings.max()) + 1

    coarse_size = 2.0 ** (_HALVINGS - level)
    column_size = np.repeat(_COLUMN_SIZE, k) * coarse_size
    row_size = np.repeat(_ROW_SIZE, k) * coarse_size
    quads, edges, sizes = [], [], []
    for c in range(columns):
        for r in range(rows):
            if not (c0 <= c < c1 and r0 <= r < r1):
                quads.append([ids[c, r], ids[c + 1, r], ids[c + 1, r + 1], ids[c, r + 1]])
    for a, b, size in (
        (ids[:-1], ids[1:], np.broadcast_to(column_size[:, None], ids[1:].shape)),
        (ids[:, :-1], ids[:, 1:], np.broadcast_to(row_size[None, :], ids[:, 1:].shape)),
    ):
        good = (a >= 0) & (b >= 0)
        edges.append(np.stack([a[good], b[good]], axis=1))
        sizes.append(size[good])
    around = np.roll(rings, -1, axis=1)
    for i in range(n_rings):
        quads.extend(np.stack([rings[i], around[i], around[i + 1], rings[i + 1]], axis=1).tolist())
        edges += [np.stack([rings[i], rings[i + 1]], 1), np.stack([rings[i + 1], around[i + 1]], 1)]
        sizes += [np.full(len(rim), _RING_SIZE * coarse_size), np.full(len(rim), 4.0 * coarse_size)]
    return _Half(ids, rings, np.array(quads), np.concatenate(edges), np.concatenate(sizes), n)


def _first_guess() -> Floats:
    half = _half(0)
    angle = np.concatenate([[0.0], np.cumsum(_COLUMN_SIZE)])
    angle *= np.pi / angle[-1]
    level = np.concatenate([[0.0], np.cumsum(_ROW_SIZE)])
    level = WAIST_LEVEL + level * (NECK_LEVEL - WAIST_LEVEL) / level[-1]
    points = np.zeros((half.n, 3))
    for c, r in np.argwhere(half.ids >= 0):
        radius = np.interp(level[r], [-360, -20, 20, 60], [125.0, 125.0, 80.0, 55.0])
        points[half.ids[c, r]] = [
            radius * np.sin(angle[c]),
            level[r],
            axis_depth(level[r : r + 1])[0] + radius * np.cos(angle[c]),
        ]
    rim = points[half.rings[0]]
    for i, ring in enumerate(half.rings[1:], start=1):
        along = i / (len(half.rings) - 1)
        tube = rim - rim.mean(axis=0)
        centre = SHOULDER_JOINT + ARM_LENGTH * along * ARM_DIRECTION
        flat = tube - np.outer(tube @ ARM_DIRECTION, ARM_DIRECTION)
        flat *= 48.0 / np.linalg.norm(flat, axis=1, keepdims=True)
        points[ring] = centre + flat
    return points


def _halve(coarse: _Half, fine: _Half, points: Floats) -> Floats:
    """Positions on the next level: old vertices stay, new ones lie between."""
    out = np.zeros((fine.n, 3))
    sets = [(coarse.ids, fine.ids)]
    closed = np.column_stack([coarse.rings, coarse.rings[:, :1]])
    closed_fine = np.column_stack([fine.rings, fine.rings[:, :1]])
    sets.append((closed, closed_fine))
    for old, new in sets:
        grid = np.where((old >= 0)[..., None], points[old], np.nan)
        big = np.full((*new.shape, 3), np.nan)
        big[::2, ::2] = grid
        big[1::2, ::2] = 0.5 * (grid[:-1] + grid[1:])
        big[:, 1::2] = 0.5 * (big[:, :-1:2] + big[:, 2::2])
        good = (new >= 0) & np.isfinite(big[..., 0])
        out[new[good]] = big[good]
    return out


def _relax(half: _Half, points: Floats, iterations: int) -> Floats:
    average = _average(half)
    waist, neck = half.ids[:, 0], half.ids[:, -1]
    stump = half.rings[-1]
    waist, neck = waist[waist >= 0], neck[neck >= 0]
    for _ in range(iterations):
        points = project(points + 0.7 * (average @ points - points), steps=1)
        for _ in range(2):
            points[half.midline, 0] = 0.0
            points[waist, 1] = WAIST_LEVEL
            # The cut through the neck rises towards the back.
            points[neck, 1] = NECK_LEVEL + 0.15 * (28.0 - points[neck, 2])
            beyond = (points[stump] - SHOULDER_JOINT) @ ARM_DIRECTION - ARM_LENGTH
            points[stump] -= beyond[:, None] * ARM_DIRECTION
            border = np.concatenate([waist, neck, stump])
            points[border] = project(points[border], steps=1)
    points = project(points, steps=3)
    points[half.midline, 0] = 0.0
    return points


def _average(half: _Half) -> csr_matrix:
    i, j = half.edges.T
    weight = 1.0 / half.sizes
    matrix = coo_matrix((np.r_[weight, weight], (np.r_[i, j], np.r_[j, i])), shape=(half.n, half.n)).tocsr()
    return diags(1.0 / np.asarray(matrix.sum(axis=1)).ravel()) @ matrix


def _mirrored(half: _Half, points: Floats) -> Lattice:
    q = half.quads
    # Split along the shorter diagonal; the same choice on both sides keeps the topology symmetric.
    first = np.linalg.norm(points[q[:, 0]] - points[q[:, 2]], axis=1)
    second = np.linalg.norm(points[q[:, 1]] - points[q[:, 3]], axis=1)
    a = np.where((first <= second)[:, None], q[:, [0, 1, 2]], q[:, [0, 1, 3]])
    b = np.where((first <= second)[:, None], q[:, [0, 2, 3]], q[:, [1, 2, 3]])
    faces = np.concatenate([a, b])
    mesh, mirror = whole_of_half(TriangleMesh(points, faces))
    return Lattice(mesh.vertices, mesh.faces, mirror)


AROUND = 125.0  # mm of skin per radian around the body axis
# The mean footprint of the left breast.
MEDIAL, LATERAL, UPPER, FOLD = 8.0, 166.0, -46.0, -217.0
NIPPLE = (91.0, -160.0)  # wanted; the nearest vertex of the lattice is the nipple
AXILLARY_LINE = 168.0

_STEP = 4.0  # of the chart's grid, mm
_GRID_AROUND = np.arange(-228.0, 228.1, _STEP)
_GRID_LEVEL = np.arange(-368.0, 8.1, _STEP)


@dataclass(frozen=True, eq=False)
class SkinChart:
    """Skin coordinates of the lattice.

    Attributes
    ----------
    around, level : (n,) float
        Skin coordinates in mm.
    nipple : dict of int
        Vertex of the nipple by side.
    fold : dict of int
        Vertex of the inframammary fold below the nipple by side.
    nipple_at : tuple of float
        Skin coordinates of the left nipple.
    slides : (n,) bool
        Vertices whose skin may slide over the chest when a footprint is put into place.
    slide_weight : (n,) float
        How far they take part, 0 to 1.
    axillary_line : dict of (k, n) sparse
        By side; its product with vertices gives points down the anterior axillary line.
    """

    around: Floats
    level: Floats
    nipple: dict[str, int]
    fold: dict[str, int]
    nipple_at: tuple[float, float]
    slides: Bools
    slide_weight: Floats
    axillary_line: dict[str, csr_matrix]
    _midline: Ints
    _nodes: tuple[Ints, Floats]

    @classmethod
    def of(cls, lattice: Lattice) -> SkinChart:
        """Chart the lattice."""
        x, y, z = lattice.points.T
        around = AROUND * np.arctan2(x, z - axis_depth(y))
        left = int(np.argmin(np.hypot(around - NIPPLE[0], y - NIPPLE[1])))
        fold = int(np.argmin(np.hypot(around - around[left], y - FOLD)))
        flat = np.column_stack([around, y, np.zeros_like(y)])
        upright = face_cross(flat, lattice.faces)[:, 2] > 0
        near = ((np.abs(around) < _GRID_AROUND[-1] + 15.0) & (np.abs(x) < 175.0))[lattice.faces].all(axis=1)
        chart = TriangleMesh(flat, lattice.faces[upright & near])
        grid = np.stack(np.meshgrid(_GRID_AROUND, _GRID_LEVEL, indexing="ij"), axis=-1).reshape(-1, 2)
        surface = Surface(chart)
        found = surface.closest(np.column_stack([grid, np.zeros(len(grid))]))
        lines = {}
        for side, sign in SIGN.items():
            levels = np.arange(-358.0, -100.0, 2.0)
            line = np.column_stack(
                [np.full_like(levels, sign * AXILLARY_LINE), levels, np.zeros_like(levels)]
            )
            on_line = surface.closest(line)
            rows = np.repeat(np.arange(len(levels)), 3)
            columns = chart.faces[on_line.faces].ravel()
            lines[side] = csr_matrix((on_line.weights.ravel(), (rows, columns)), shape=(len(levels), len(y)))
        # No sliding where the chart has no skin of the trunk: arms, top of the shoulders, back.
        arm = arm_weight(lattice.points)
        shoulder = smooth_step(np.abs(around), 115.0, 160.0) * smooth_step(y, -150.0, -95.0)
        slide = (1.0 - arm) * (1.0 - shoulder)
        slide = slide * smooth_step(-np.abs(around), -228.0, -172.0) * smooth_step(-y, 15.0, 60.0)
        return cls(
            around=around,
            level=y,
            nipple={"left": left, "right": int(lattice.mirror[left])},
            fold={"left": fold, "right": int(lattice.mirror[fold])},
            nipple_at=(float(around[left]), float(y[left])),
            slides=(np.abs(around) < 245.0) & (arm < 1.0) & (y < 5.0),
            slide_weight=slide,
            axillary_line=lines,
            _midline=np.flatnonzero((x == 0.0) & (np.abs(around) < 100.0)),
            _nodes=(chart.faces[found.faces], found.weights),
        )

    def chest(self, bare: Floats) -> BareChest:
        """The bare chest of a subject as a smooth function of skin coordinates.

        Parameters
        ----------
        bare : (n, 3) float
            The lattice in the subject's shape without breasts.
        """
        ids, weights = self._nodes
        grid = (bare[ids] * weights[..., None]).sum(axis=1).reshape(len(_GRID_AROUND), len(_GRID_LEVEL), 3)
        return BareChest(np.stack([spline_filter(grid[..., k], order=3) for k in range(3)]))

    def midline_vertex(self, level: float) -> int:
        """The vertex of the front midline nearest to a height."""
        return int(self._midline[np.argmin(np.abs(self.level[self._midline] - level))])


@dataclass(frozen=True, eq=False)
class BareChest:
    """A subject's chest without breasts; call it with skin coordinates."""

    _coefficients: Floats

    def __call__(self, around: Floats, level: Floats) -> Floats:
        """Points of the bare chest, (n, 3)."""
        where = np.stack([(around - _GRID_AROUND[0]) / _STEP, (level - _GRID_LEVEL[0]) / _STEP])
        return np.column_stack(
            [map_coordinates(c, where, order=3, prefilter=False, mode="nearest") for c in self._coefficients]
        )


def footprint_polar(around: Floats, level: Floats, nipple: tuple[float, float]) -> tuple[Floats, Floats]:
    """Polar coordinates in the mean left footprint: radius (1 on the border) and angle."""
    across = across_footprint(around, nipple)
    up = level - nipple[1]
    up = up / np.where(up > 0, UPPER - nipple[1], nipple[1] - FOLD)
    return np.hypot(across, up), np.arctan2(up, across)


def across_footprint(around: Floats, nipple: tuple[float, float]) -> Floats:
    """Place across the mean left footprint, (n,): -1 on its medial border, 0 at the nipple, 1 on the lateral one."""
    across = around - nipple[0]
    return across / np.where(across > 0, LATERAL - nipple[0], nipple[0] - MEDIAL)


def to_space(chest: BareChest, around: Floats, level: Floats, height: Floats, sign: float) -> Floats:
    """Points in space, (n, 3), of skin coordinates on the side of ``sign`` (+1 left, -1 right)."""
    base = chest(sign * around, level)
    # Straight out but turned towards the front: breasts point outwards less than the rib cage does.
    out = 0.55 * sign * around / AROUND
    return base + height[:, None] * np.column_stack([np.sin(out), np.zeros_like(out), np.cos(out)])


N_BREAST_MODES = 18  # of which the first are the dome's and the rest the skin's
_N_DOME = 12
_DOME_SIZES = np.array([0.12, 0.10, 0.08, 0.08, 0.05, 0.05, 0.07, 0.06, 0.06, 0.035, 0.035, 0.04])
_BLUNTNESS = 0.5  # how blunt the top of a hanging bag is, see _eased
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
    nipple_size, areola_height : float
        Height of the nipple, and of the areola that it stands on, mm.
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
    areola_height: float = 2.5
    modes: tuple[float, ...] = field(default=(0.0,) * N_BREAST_MODES)


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
        around, level = self.within
        return (
            around + self.weight * (self._place_around(around) - around),
            level + self.weight * (self._place_level(around, level) - level),
        )

    @cached_property
    def within(self) -> tuple[Floats, Floats]:
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
        radius, angle = footprint_polar(*self.within, self.nipple_at)
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
        height = projection * ((1.0 - self._bag) * self.dome + self._bag * _eased(self.dome, _BLUNTNESS))
        drop = self.breast.sag * up[self._nipple]
        # Next to the fold the skin falls at most so much faster than it leaves the chest wall.
        quickest = max(_STEEPEST * projection / max(drop, 1e-9), 1.2)
        fall = _eased(self.dome, float(np.clip(1.0 / (quickest - 1.0), _BLUNTNESS, 5.0)))
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
        within = self.within[0]
        across = across_footprint(within, self.nipple_at)
        inner = np.clip(1.0 - across**2, 0.0, 1.0)
        fold = self._place_level(within, self.nipple_at[1] - (self.nipple_at[1] - FOLD) * np.sqrt(inner))
        return self.placed[1] - fold, np.clip(1.0 - np.abs(across) ** 3, 0.0, 1.0)


def _eased(dome: Floats, bluntness: float) -> Floats:
    """The dome's height with its top flattened, the more the smaller ``bluntness``, (n,); 0 and 1 stay."""
    return dome * (1.0 + bluntness) / (dome + bluntness)


def _skin_waves() -> list[tuple[Floats, float, Floats]]:
    rng = np.random.default_rng(911)
    waves = []
    for length in np.geomspace(220.0, 110.0, N_BREAST_MODES - _N_DOME):
        turn, along = rng.uniform(0.0, 2.0 * np.pi, 2)
        wave = 2.0 * np.pi / length * np.array([np.cos(turn), np.sin(turn)])
        waves.append((wave, float(rng.uniform(0.0, 2.0 * np.pi)), np.array([np.cos(along), np.sin(along)])))
    return waves


_SKIN_WAVES = _skin_waves()


@dataclass(frozen=True)
class Complexion:
    """How one subject's skin is coloured.

    Attributes
    ----------
    tone : tuple of float
        Her skin in L*a*b*.
    areola : tuple of float
        What the areola adds to it; usually darker, from pink to brown.
    areola_radius : dict of float
        By side, mm.
    nipple : float
        How much more of the same the nipple has, 0 to 1.
    seed : int
        Of what has no number of its own: mottling, moles, scars, strap marks, light, grain.
    """

    tone: tuple[float, float, float]
    areola: tuple[float, float, float]
    areola_radius: dict[str, float]
    nipple: float
    seed: int

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Complexion:
        """Draw one: every tone from dark to light is equally frequent, the contrast goes from clear to none."""
        light = float(rng.uniform(25.0, 80.0))
        red, yellow = rng.normal(scale=1.5, size=2)
        tone = (light, 11.0 + red, 10.0 + 8.0 * float(np.exp(-(((light - 58.0) / 22.0) ** 2))) + yellow)
        # One areola in ten can hardly be distinguished from the skin around it.
        contrast = float(rng.uniform(0.0, 0.08) if rng.uniform() < 0.1 else rng.uniform(0.1, 1.0))
        brown = float(rng.uniform())  # 0 pink, 1 brown
        darker = (7.0 + 13.0 * brown) * min(light / 50.0, 1.0)
        if rng.uniform() < 0.05:
            darker *= -0.4
        change = contrast * np.array([-darker, 9.0 - 6.0 * brown, -3.0 + 6.0 * brown])
        radius = float(rng.uniform(13.0, 26.0))
        sides = {side: float(np.clip(radius * (1 + 0.05 * rng.normal()), 12.0, 28.0)) for side in SIGN}
        areola = (float(change[0]), float(change[1]), float(change[2]))
        return cls(tone, areola, sides, float(rng.uniform(0.0, 0.7)), int(rng.integers(2**31)))


@dataclass(frozen=True, eq=False)
class BareSkin:
    """Points of skin to be coloured, in the canonical frame.

    Attributes
    ----------
    points, normals : (n, 3) float
    around, level : (n,) float
        Skin coordinates.
    nipples : dict of (3,) float
        By side; an absent breast has none.
    nipple_at : tuple of float
        Skin coordinates of the left nipple.
    """

    points: Floats
    normals: Floats
    around: Floats
    level: Floats
    nipples: dict[str, Floats]
    nipple_at: tuple[float, float]

    def coloured(self, complexion: Complexion) -> Floats:
        """Colours in L*a*b*, (n, 3)."""
        rng = np.random.default_rng(complexion.seed)
        lab = np.tile(complexion.tone, (len(self.points), 1))
        for channel, most in enumerate((2.5, 1.6, 1.4)):
            lab[:, channel] += rng.uniform(0.2, most) * self._waves(rng, 8.0, 120.0)
        edge = 1.0 + 0.06 * self._waves(rng, 10.0, 40.0)
        soft, tip = rng.uniform(0.8, 3.0), rng.uniform(4.5, 7.0)
        for side, place in self.nipples.items():
            away = np.linalg.norm(self.points - place, axis=1)
            polar = footprint_polar(SIGN[side] * self.around, self.level, self.nipple_at)
            own = (1.0 - smooth_step(polar[0], 0.4, 0.6)) * (SIGN[side] * self.around > 0)
            inside = _within((complexion.areola_radius[side] * edge - away) / soft)
            core = complexion.nipple * _within((tip - away) / 0.8)
            lab += np.outer(own * (inside + core), complexion.areola)
        self._mark(lab, rng)
        light = rng.normal(size=3) * np.array([0.5, 0.4, 0.2]) + np.array([0.0, 0.3, 1.0])
        falls = self.normals @ (light / np.linalg.norm(light))
        lab[:, 0] += rng.uniform(2.0, 9.0) * (falls - 0.8) + self.points @ rng.normal(scale=0.012, size=3)
        return lab + rng.normal(size=lab.shape) * rng.uniform(0.1, 0.9)

    def _mark(self, lab: Floats, rng: np.random.Generator) -> None:
        """Moles, scars and the marks of straps, added to the colours."""
        for _ in range(rng.poisson(9)):
            place = self.points[rng.integers(len(self.points))]
            away = np.linalg.norm(self.points - place, axis=1)
            spot = _within((np.exp(rng.uniform(0.2, 1.7)) - away) / 0.7)
            lab += np.outer(spot, [rng.uniform(-22.0, -3.0), rng.uniform(-1.0, 6.0), rng.uniform(-2.0, 4.0)])
        scars = [rng.uniform([-140.0, -230.0], [140.0, -70.0]) for _ in range(rng.poisson(0.7))]
        ways = [rng.uniform(-60.0, 60.0, size=2) for _ in scars]
        for side, sign in SIGN.items():
            if side not in self.nipples:  # where the breast was taken off
                scars.append(np.array([sign * 40.0, self.nipple_at[1] - 15.0]))
                ways.append(np.array([sign * 95.0, 25.0]))
        for start, way in zip(scars, ways, strict=True):
            line = _within((rng.uniform(1.0, 3.0) - self._off_line(start, way)) / 0.8)
            lab += np.outer(line, [rng.uniform(-7.0, 7.0), rng.uniform(0.0, 7.0), rng.uniform(-2.0, 1.0)])
        if rng.uniform() < 0.5:
            strap = np.abs(np.abs(self.points[:, 0]) - rng.uniform(65.0, 95.0))
            band = np.abs(self.level - FOLD + rng.uniform(5.0, 25.0))
            worn = _within((rng.uniform(4.0, 9.0) - strap) / 1.5) * (self.level > -90.0)
            worn = np.maximum(worn, _within((rng.uniform(5.0, 14.0) - band) / 1.5))
            lab += np.outer(worn, [rng.uniform(-6.0, 4.0), rng.uniform(0.0, 5.0), rng.uniform(-2.0, 1.0)])

    def _off_line(self, start: Floats, way: Floats) -> Floats:
        """Distance along the skin from a line of skin coordinates, (n,)."""
        here = np.column_stack([self.around, self.level]) - start
        along = np.clip(here @ way / max(float(way @ way), 1e-9), 0.0, 1.0)
        return np.linalg.norm(here - along[:, None] * way, axis=1)

    def _waves(self, rng: np.random.Generator, shortest: float, longest: float) -> Floats:
        """A blotchy random field of about unit variance, (n,)."""
        count = 32  # fewer show as stripes
        wave = rng.normal(size=(count, 3))
        length = np.geomspace(shortest, longest, count)
        wave *= (2.0 * np.pi / length / np.linalg.norm(wave, axis=1))[:, None]
        angle = (self.points @ wave.T + rng.uniform(0.0, 2.0 * np.pi, count)).astype(np.float32)
        return np.cos(angle) @ rng.normal(size=count) * np.sqrt(2.0 / count)


def _within(value: Floats) -> Floats:
    """Smooth step from 0 (far below zero) to 1 (far above), (n,)."""
    return 0.5 * (1.0 + np.tanh(0.5 * value))
