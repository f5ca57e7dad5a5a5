"""Which skin is missing, which is its mirror image, and which lies on the chest by which shapes are aligned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.clinical.mirror_frame import MirrorFrame, mirror_frame
from breastmorph.foundation.arrays import Bools
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mask import Footprint, RegionParameters
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, SIGN, other_side

BOTH = "both"  # sides
_FEWEST = 60  # vertices of the thorax to lay a shape on


@dataclass(frozen=True)
class RegionLimits:
    """How far the missing region reaches and what is kept away from it."""

    margin: float = 20.0  # mm around the breast: there the prediction runs out into the scan
    midline: float = 3.0  # mm that the region stays on its own side
    ring: float = 20.0  # mm around the missing region and its mirror image that do not lie on the chest
    sternum: float = 15.0  # mm beside the midline that no operation of a breast reaches


@dataclass(frozen=True, eq=False)
class MissingRegion:
    """The parts of a torso for a prediction, all (n,) bool.

    Attributes
    ----------
    side : str
        On which side the missing region lies: "left", "right" or "both".
    missing : (n,) bool
        What is predicted; everything else stays as scanned.
    breast : (n,) bool
        The breast itself; of a painted region what lies deeper than the margin.
    healthy : (n,) bool
        The known mirror image of the missing region.
    thorax : (n,) bool
        Skin away from both; shapes are laid on each other by it.
    untouched : (n,) bool
        Of the skin beside both that of the sternum and of the healthy half, which no operation of the missing region
        changed; where both breasts are missing, the thorax.
    midline : (n,) bool
        Skin over the sternum, on both sides of the midline.
    """

    side: str
    missing: Bools
    breast: Bools
    healthy: Bools
    thorax: Bools
    untouched: Bools
    midline: Bools

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides of which a breast is missing."""
        return SIDES if self.side == BOTH else (self.side,)

    @property
    def called(self) -> str:
        """What is missing, in words."""
        return "both breasts" if self.side == BOTH else f"{self.side} breast"

    @property
    def around(self) -> Bools:
        """Skin beside the missing region and its mirror image, (n,)."""
        found: Bools = ~(self.missing | self.healthy)
        return found


def missing_region(
    model: ShapeModel, frame: MirrorFrame, missing: str | Bools, limits: RegionLimits | None = None
) -> MissingRegion:
    """The regions for a side of the body, or for painted vertices (n,) bool."""
    p = limits or RegionLimits()
    if isinstance(missing, str):
        if missing not in (*SIDES, BOTH):
            raise BreastMorphError(
                "there is no side {missing!r}", "Choose left, right or both", missing=missing
            )
        footprint = Footprint.of(frame.mesh, model.landmarks.transformed(frame.to_frame))
        side, region, breast = missing, np.zeros(model.n_vertices, bool), np.zeros(model.n_vertices, bool)
        for one in SIDES if missing == BOTH else (missing,):
            inside = footprint.inside(one, RegionParameters())
            own = SIGN[one] * frame.mean[:, 0] > p.midline
            region |= (inside > -p.margin) & own
            breast |= (inside > 0.0) & own
    else:
        region = _checked(missing, model.n_vertices)
        if region.all():
            raise _no_thorax()
        side = _side_of(region, frame)
        within = np.zeros(len(region))
        within[region] = cKDTree(frame.mean[~region]).query(frame.mean[region])[0]
        breast = within > p.margin if (within > p.margin).any() else region
    healthy = frame.twins(region) & ~region
    away = cKDTree(frame.mean[region | healthy]).query(frame.mean)[0]
    thorax = away > p.ring
    if thorax.sum() < max(_FEWEST, 0.02 * len(thorax)):
        raise _no_thorax()
    midline: Bools = np.abs(frame.mean[:, 0]) < p.sternum
    if side == BOTH:
        return MissingRegion(side, region, breast, np.zeros_like(region), thorax, thorax, midline)
    if not healthy.any():
        raise BreastMorphError(
            "nothing is left on the {side} side to predict from",
            "Paint the missing breast on one side only",
            side=other_side(side),
        )
    untouched = ~(region | healthy) & (SIGN[side] * frame.mean[:, 0] < p.sternum)
    if untouched.sum() < _FEWEST:
        untouched = thorax
    return MissingRegion(side, region, breast, healthy, thorax, untouched, midline)


def painted_side(model: ShapeModel, painted: Bools) -> str:
    """The side on which painted vertices (n,) lie."""
    return _side_of(_checked(painted, model.n_vertices), mirror_frame(model))


def _checked(painted: Bools, n: int) -> Bools:
    region = np.asarray(painted, dtype=bool)
    if region.shape != (n,):
        raise BreastMorphError(
            "{size} painted vertices for a model of {n}",
            "Paint the region on the model's own topology",
            size=region.size,
            n=n,
        )
    if not region.any():
        raise BreastMorphError("the painted region is empty", "Paint the vertices that are missing")
    return region


def _side_of(region: Bools, frame: MirrorFrame) -> str:
    return SIDES[int(frame.mean[region, 0].mean() < 0.0)]


def _no_thorax() -> BreastMorphError:
    return BreastMorphError(
        "the missing region leaves no thorax to lay the scan on",
        "Paint a smaller region: one breast with its close surroundings",
    )
