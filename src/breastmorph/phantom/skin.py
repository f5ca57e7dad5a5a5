"""Skin coordinates of the front of the trunk, and a subject's bare chest as a smooth function of them.

Skin coordinates are ``around`` (mm around the body from the midline, patient's left positive) and ``level``
(height in mm), both on the mean torso: they name a piece of skin, whatever shape the subject has.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.ndimage import map_coordinates, spline_filter
from scipy.sparse import csr_matrix

from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_cross
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints, TriangleMesh
from breastmorph.phantom.bare_surface import axis_depth
from breastmorph.phantom.lattice import Lattice
from breastmorph.phantom.thorax import arm_weight, smooth_step
from breastmorph.scan.landmarks import SIGN

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
