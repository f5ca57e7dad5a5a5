"""What a mastectomy does to the skin around the breast, as a registration shows it, simulated on intact torsos.

What chooses noise and shares and what measures the uncertainty must look like the patient. Her scan is flat where the
breast was, and beside it the skin is not quite her own either: the loss runs out 10 to 30 mm beyond the breast, and
with no landmarks of that side a registration puts points some millimetres along the skin from their place. So every
subject whose breast is taken away to see how it would be predicted gets such skin first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.clinical.mirror_frame import MirrorFrame
from breastmorph.clinical.missing_region import BOTH, MissingRegion
from breastmorph.foundation.arrays import Floats
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.scan.scan import SIGN


@dataclass(frozen=True)
class OperationLimits:
    """How far skin beside a lost breast is from what it was.

    Measured on phantoms after a mastectomy (``benchmarks/prediction.py``), in the skin beside the missing region.
    """

    sunken: float = 2.5  # mm that it lies deeper at the region's border, at most
    reach: tuple[float, float] = (20.0, 50.0)  # mm beyond the border at which that has run out
    slip: float = 5.0  # mm along the skin, standard deviation in each direction
    slip_reach: float = 60.0  # mm beyond the border over which points come back to their place
    midline: float = 40.0  # mm from the midline over which they do so


class OperatedSkin:
    """Simulated operations around one missing region.

    Parameters
    ----------
    frame : MirrorFrame
    region : MissingRegion
    limits : OperationLimits, optional
    """

    def __init__(
        self, frame: MirrorFrame, region: MissingRegion, limits: OperationLimits | None = None
    ) -> None:
        self._limits = limits or OperationLimits()
        self._faces = frame.faces
        both = region.side == BOTH
        self._changed = np.flatnonzero(region.around if both else region.around & ~region.untouched)
        at = frame.mean[self._changed]
        self._beyond = cKDTree(frame.mean[region.missing]).query(at)[0]
        beside = np.abs(at[:, 0]) if both else SIGN[region.side] * at[:, 0]
        from_midline = beside / self._limits.midline
        self._loose = np.clip(from_midline, 0.0, 1.0) * np.exp(-self._beyond / self._limits.slip_reach)
        # Where along the region's border a point lies: slips go together, but not all around.
        middle = frame.mean[region.missing].mean(axis=0)
        angle = np.arctan2(at[:, 1] - middle[1], at[:, 0] - middle[0])
        self._waves = np.stack([np.ones_like(angle), np.cos(angle), np.sin(angle)]) / np.sqrt([[2], [1], [1]])

    def of(self, shape: Floats, seed: int) -> Floats:
        """A shape (n, 3) with both breasts, with the skin that one operation leaves beside the missing region."""
        p, rng = self._limits, np.random.default_rng(seed)
        normals = vertex_normals(shape, self._faces)[self._changed]
        depth, reach = rng.uniform(0.0, p.sunken), rng.uniform(*p.reach)
        fading = np.clip(1.0 - self._beyond / reach, 0.0, 1.0)
        slip = self._loose[:, None] * (p.slip * self._waves.T @ rng.standard_normal((3, 3)))
        slip -= (slip * normals).sum(axis=1, keepdims=True) * normals
        out = np.array(shape, dtype=np.float64)
        out[self._changed] += slip - (depth * fading)[:, None] * normals
        return out
