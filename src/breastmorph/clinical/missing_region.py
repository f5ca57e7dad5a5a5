"""Which skin is missing, by a side or by paint; its mirror image; the chest for aligning; what an operation leaves.

A mastectomy is simulated on intact torsos, because what chooses noise and shares and what measures the uncertainty
must look like the patient. Her scan is flat where the breast was, and beside it the skin is not quite her own either:
the loss runs out 10 to 30 mm beyond the breast, and with no landmarks of that side a registration puts points some
millimetres along the skin from their place. So every subject whose breast is taken away to see how it would be
predicted gets such skin first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.clinical.mirror_frame import MirrorFrame, mirror_frame
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.files import read_bytes
from breastmorph.mask import Footprint, RegionParameters
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, SIGN, other_side

BOTH = "both"  # sides
_FEWEST = 60  # vertices of the thorax to align a shape by


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
        Skin away from both; shapes are aligned by it.
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
        "the missing region leaves no thorax with which the scan can be aligned",
        "Paint a smaller region: one breast with its close surroundings",
    )


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


_LISTS = (".txt", ".csv", ".json")
_REDDER = 60  # of 255: how much more red than green and blue a painted vertex has
_LARGEST = 16 * 1024**2  # bytes of a list


def load_painted(path: Path, n_vertices: int) -> Bools:
    """Read a painted region, (n,) bool.

    Parameters
    ----------
    path : Path
        ``.txt``, ``.csv`` or ``.json`` with the numbers of the missing vertices, counted from 0; or a mesh file with
        the model's vertices, the missing ones painted red.
    n_vertices : int
        Of the model.
    """
    painted = np.zeros(n_vertices, bool)
    if path.suffix.lower() in _LISTS:
        text = read_bytes(path, _LARGEST).decode("utf-8-sig", errors="replace")
        words = re.findall(r"[^\s,;\[\]]+", text)
        bad = next((word for word in words if not re.fullmatch(r"[-+]?\d{1,18}", word)), None)
        if bad is not None:
            raise FileProblem(
                "{bad!r} is no vertex number", "List whole numbers, counted from 0", path, bad=bad[:40]
            )
        ids = np.array([int(word) for word in words], dtype=np.int64)
        beyond = ids[(ids < 0) | (ids >= n_vertices)]
        if len(beyond):
            raise FileProblem(
                "vertex {beyond} does not exist: the model has {n_vertices}",
                "Count from 0, on the model's own vertices",
                path,
                beyond=beyond[0],
                n_vertices=n_vertices,
            )
        painted[ids] = True
    else:
        mesh = load_mesh(path)
        if mesh.n_vertices != n_vertices:
            raise FileProblem(
                "the painted mesh has {n_vertices} vertices, the model {n_vertices2}",
                "Paint on a registered mesh (OUT/registered/<id>.ply)",
                path,
                n_vertices=mesh.n_vertices,
                n_vertices2=n_vertices,
            )
        if mesh.colors is None:
            raise FileProblem(
                "the mesh has no vertex colours", "Paint the missing vertices red and save as PLY", path
            )
        red, green, blue = mesh.colors[:, :3].astype(int).T
        painted = (red > green + _REDDER) & (red > blue + _REDDER)
    if not painted.any():
        raise FileProblem("no vertex is painted", "List or paint the missing vertices", path)
    return painted
