"""Which skin is missing, what an operation leaves beside it, and how a prediction is joined to the rest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

import numpy as np
from scipy.sparse import diags
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from breastmorph.clinical.distances import SkinPoints
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, FileProblem, MeshProblem
from breastmorph.foundation.files import read_bytes
from breastmorph.mask import Footprint, RegionParameters
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.geometry import Plane, Similarity, vertex_areas, vertex_normals
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, SIGN, other_side

# --------------------------------------------------------------------------------------------------------------------
# Which skin is missing, which takes its place in a mirror, and which lies on the chest that all are laid on
# --------------------------------------------------------------------------------------------------------------------

NOT_SYMMETRIC = 10.0  # mm between a mesh and its own mirror image: too far to pair its vertices
BOTH = "both"  # sides
_ROUNDS = 5  # of finding the plane of a mean whose mirror image is not known by vertex
_FEWEST = 60  # vertices of the thorax to lay a shape on
# The plane of symmetry by the surface.
_STEPS = 5  # of Gauss and Newton
_EVERY = 3  # of the vertices: neighbours say the same
_STANDS_OUT = 2.0  # times the usual distance: half the weight
_FINEST = 0.5  # mm of usual distance at least


@dataclass(frozen=True)
class RegionLimits:
    """How far the missing region reaches and what is kept away from it."""

    margin: float = 20.0  # mm around the breast: there the prediction runs out into the scan
    midline: float = 3.0  # mm that the region stays on its own side
    ring: float = 20.0  # mm around the missing region and its mirror image that do not lie on the chest
    sternum: float = 15.0  # mm beside the midline that no operation of a breast reaches


@dataclass(frozen=True, eq=False)
class MirrorFrame:
    """A model's mean made symmetric, and how shapes are mirrored there.

    Attributes
    ----------
    mean : (n, 3) float
        Symmetric about x = 0, mm.
    faces : (m, 3) int
    twin : SkinPoints
        The place of every vertex's mirror image.
    to_frame : Similarity
        From the model's frame.
    """

    mean: Floats
    faces: np.ndarray
    twin: SkinPoints
    to_frame: Similarity

    @property
    def mesh(self) -> TriangleMesh:
        """The symmetric mean."""
        return TriangleMesh(self.mean, self.faces)

    def mirrored(self, shape: Floats) -> Floats:
        """The mirror image of a shape (n, 3) across x = 0, in the same correspondence."""
        found: Floats = self.twin.at(shape) * MIRROR
        return found

    def twins(self, chosen: Bools) -> Bools:
        """The vertices whose mirror image is chosen, (n,)."""
        found: Bools = (chosen[self.twin.corners] * self.twin.weights).sum(axis=1) > 0.5
        return found

    def own_mirror_image(self, shape: Floats, by: Bools) -> Floats:
        """A shape (n, 3), in any pose, mirrored across its own plane of symmetry, that of its vertices ``by``."""
        twins = self.twin.at(shape)
        return plane_between(shape[by], twins[by]).reflected(twins)

    def mirrored_by_surface(
        self, shape: Floats, by: Bools, along: float, weights: Floats | None = None
    ) -> Floats:
        """The same by the surface at these vertices: where along the skin they lie counts by a share only.

        Vertices count by their weights (n,), where given.
        """
        twins = self.twin.at(shape)
        normals = vertex_normals(shape, self.faces)
        chosen = np.flatnonzero(by)[::_EVERY]
        counting = None if weights is None else weights[chosen]
        plane = plane_by_surface(shape[chosen], twins[chosen], normals[chosen], along, counting)
        return plane.reflected(twins)


def mirror_frame(model: ShapeModel) -> MirrorFrame:
    """Prepare a model's mean; the mirror image of every vertex is found on it where the model does not say."""
    mean = model.mean
    if model.mirror is not None:
        twin = SkinPoints.of_vertices(model.mirror)
        plane = plane_between(mean, mean[model.mirror])
    else:
        plane = Plane(np.array([1.0, 0.0, 0.0]), float(0.5 * (mean[:, 0].min() + mean[:, 0].max())))
        surface = Surface(model.mean_mesh)
        for _ in range(_ROUNDS):
            across = plane.reflected(mean)
            twin = SkinPoints.on(surface, across)
            plane = plane_between(mean, twin.at(mean))
        off = float(np.linalg.norm(twin.at(mean) - across, axis=1).mean())
        if off > NOT_SYMMETRIC:
            raise MeshProblem(
                f"the model's mean cannot be mirrored: it lies {off:.0f} mm from its mirror image",
                "Predicting a breast needs a model of whole torsos, upright and in mm",
            )
    to_frame = plane.to_sagittal()
    upright = to_frame.apply(mean)
    symmetric = 0.5 * (upright + twin.at(upright) * MIRROR)
    return MirrorFrame(symmetric, model.faces, twin, to_frame)


def plane_between(points: Floats, twins: Floats) -> Plane:
    """The plane in which points (k, 3) are best mirrored onto their twins; its normal n points to positive x.

    |p - Rq|^2 with R = I - 2nn' differs from |p - q|^2 by 4 (n'p)(n'q) about the middle, so n is the eigenvector of the
    smallest eigenvalue of sum pq' + qp'.
    """
    p, q = points - points.mean(axis=0), twins - twins.mean(axis=0)
    product = p.T @ q
    normal = np.linalg.eigh(product + product.T)[1][:, 0]
    normal = normal * (np.sign(normal[0]) or 1.0)
    return Plane(normal, float(normal @ (points.mean(axis=0) + twins.mean(axis=0)) / 2.0))


def plane_by_surface(
    points: Floats, twins: Floats, normals: Floats, along: float, counting: Floats | None = None
) -> Plane:
    """The plane in which the surface at points (k, 3) is best mirrored onto itself.

    Around a breast that is gone a registration lays points some millimetres beside their place, along the skin and
    together, while across the skin it is right: the plane of the points turns with them, that of the surface does not.
    So the distance from a twin's mirror image counts fully along the normal (k, 3), less where it stands out (skin that
    an operation, or an old scar, changed), and only by the share ``along`` the skin. Points count by weights (k,), all
    alike when not given.
    """
    plane = plane_between(points, twins)
    each = np.ones(len(points)) if counting is None else counting
    apart = points - twins
    for _ in range(_STEPS):
        n, beyond = plane.normal, plane.distance(twins)
        off = apart + 2.0 * beyond[:, None] * n  # from the mirror image of the twin to the point
        across = (off * normals).sum(axis=1)
        turns = np.linalg.svd(n[None])[2][1:]  # directions in which the normal can turn, (2, 3)
        product, right = np.zeros((3, 3)), np.zeros(3)
        usual = _STANDS_OUT * max(1.4826 * float(np.median(np.abs(across))), _FINEST)
        for axes, weights in (
            (normals, each / (1.0 + (across / usual) ** 2)),
            *((np.broadcast_to(axis, normals.shape), each * along**2) for axis in np.eye(3)),
        ):
            facing = axes @ n
            by_turn = (twins @ turns.T) * facing[:, None] + beyond[:, None] * (axes @ turns.T)
            slopes = 2.0 * np.column_stack([by_turn, -facing])
            product += (slopes * weights[:, None]).T @ slopes
            right -= (slopes * weights[:, None]).T @ (off * axes).sum(axis=1)
        step = np.linalg.lstsq(product, right, rcond=None)[0]
        normal = n + step[:2] @ turns
        length = np.linalg.norm(normal)
        plane = Plane(normal / length, float((plane.offset + step[2]) / length))
    return plane


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
            raise BreastMorphError(f"there is no side {missing!r}", "Choose left, right or both")
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
            f"nothing is left on the {other_side(side)} side to predict from",
            "Paint the missing breast on one side only",
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
            f"{region.size} painted vertices for a model of {n}",
            "Paint the region on the model's own topology",
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


# --------------------------------------------------------------------------------------------------------------------
# A seamless join: how a difference at the border of a region fades out inside it
# --------------------------------------------------------------------------------------------------------------------

_COLUMNS = 96  # right-hand sides at a time


class Seam:
    """The continuation of a difference into a region.

    Parameters
    ----------
    mesh : TriangleMesh
        A template or a model's mean.
    region : (n,) bool
        Vertices where the difference is not known.
    length : float
        mm over which it fades out.
    """

    def __init__(self, mesh: TriangleMesh, region: Bools, length: float) -> None:
        import igl

        laplacian = igl.cotmatrix(np.array(mesh.vertices), np.array(mesh.faces)).tocsr()
        areas = vertex_areas(mesh.vertices, mesh.faces)
        areas = np.maximum(areas, 1e-6 * areas.mean())
        energy = (laplacian.T @ diags(1.0 / areas) @ laplacian + diags(areas / length**4)).tocsr()
        self.region = np.flatnonzero(region)
        rows = energy[self.region]
        around = np.zeros(mesh.n_vertices, bool)
        around[rows.indices] = True
        self.border = np.flatnonzero(around & ~region)
        self._given = rows[:, self.border]
        # Symmetric, so that the ordering by A + A' keeps the factors small.
        self._factor = splu(
            rows[:, self.region].tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}
        )

    def continued(self, at_border: Floats) -> Floats:
        """The field inside the region, (m, ...), of a difference at the vertices ``border``, (b, ...)."""
        given = self._given @ at_border.reshape(len(self.border), -1)
        out = np.empty_like(given)
        for start in range(0, given.shape[1], _COLUMNS):
            part = slice(start, start + _COLUMNS)
            out[:, part] = self._factor.solve(-given[:, part])
        found: Floats = out.reshape(len(self.region), *at_border.shape[1:])
        return found

    def pulled_back(self, inside: Floats) -> Floats:
        """From a derivative by :meth:`continued` (m, 3) to that by the difference at the border, (b, 3)."""
        back: Floats = -(self._given.T @ self._factor.solve(inside))  # the system is symmetric
        return back


# --------------------------------------------------------------------------------------------------------------------
# A missing region that somebody painted: vertex numbers in a file, or red paint on a mesh
# --------------------------------------------------------------------------------------------------------------------

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
            raise FileProblem(f"{bad[:40]!r} is no vertex number", "List whole numbers, counted from 0", path)
        ids = np.array([int(word) for word in words], dtype=np.int64)
        beyond = ids[(ids < 0) | (ids >= n_vertices)]
        if len(beyond):
            raise FileProblem(
                f"vertex {beyond[0]} does not exist: the model has {n_vertices}",
                "Count from 0, on the model's own vertices",
                path,
            )
        painted[ids] = True
    else:
        mesh = load_mesh(path)
        if mesh.n_vertices != n_vertices:
            raise FileProblem(
                f"the painted mesh has {mesh.n_vertices} vertices, the model {n_vertices}",
                "Paint on a registered mesh (OUT/registered/<id>.ply)",
                path,
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


# --------------------------------------------------------------------------------------------------------------------
# What a mastectomy does to the skin around the breast, as a registration shows it: simulated on women who have both.
# What chooses noise and shares and what measures the uncertainty must look like the patient. Her scan is flat where the
# breast was, and beside it the skin is not quite her own either: the loss runs out 10 to 30 mm beyond the breast, and
# with no landmarks of that side a registration lays points some millimetres along the skin from their place. So every
# subject whose breast is taken away to see how it would be predicted gets such skin first.
# --------------------------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------------------------
# How torsos are looked at to predict one region
# --------------------------------------------------------------------------------------------------------------------

Evidence = Literal["surface", "points"]


@dataclass(frozen=True, eq=False)
class TorsoView:
    """How torsos are looked at to predict one region: laid on each other, told into known and missing.

    Attributes
    ----------
    frame : MirrorFrame
    region : MissingRegion
    seam : Seam
    normals : (n, 3) float
        Of the mean.
    evidence : {"surface", "points"}
        What counts as known; see :mod:`breastmorph.clinical.predictor`.
    with_scale : bool
        Whether torsos are brought to one size.
    along : float
        How much distances along the skin count in the plane of symmetry, where only the surface is evidence.
    midline : float
        How many times as much as other skin that over the sternum counts there, which no operation of a breast moves.
    """

    frame: MirrorFrame
    region: MissingRegion
    seam: Seam
    normals: Floats
    evidence: Evidence
    with_scale: bool
    along: float = 1.0
    midline: float = 1.0

    @classmethod
    def of(
        cls, model: ShapeModel, missing: str | Bools, evidence: Evidence, limits: RegionLimits, blend: float
    ) -> Self:
        """Prepare a model's mean; ``missing`` is a side, or painted vertices (n,); see ``PredictionParameters``."""
        frame = mirror_frame(model)
        region = missing_region(model, frame, missing, limits)
        seam = Seam(frame.mesh, region.missing, blend)
        normals = vertex_normals(frame.mean, frame.faces)
        return cls(frame, region, seam, normals, evidence, not model.keeps_size)

    def laid(self, shape: Floats) -> tuple[Similarity, Floats]:
        """How a shape (n, 3) lies on the mean by its thorax, and the shape there."""
        chest = self.chest
        lay = Similarity.fit(shape[chest], self.frame.mean[chest], with_scale=self.with_scale)
        return lay, lay.apply(shape)

    def known(self, laid: Floats) -> Floats:
        """Evidence of a laid shape, (f,)."""
        off = laid - self.frame.mean
        if self.evidence == "points":
            return off[~self.region.missing].ravel()
        along: Floats = (off[self.seen] * self.normals[self.seen]).sum(axis=1)
        return along

    @property
    def seen(self) -> Bools:
        """Skin that is evidence by its surface, (n,): the other breast, and of both halves what lies away from both."""
        found: Bools = self.region.healthy | self.region.thorax
        return found

    @property
    def mirrors(self) -> bool:
        """Whether there is a breast whose mirror image tells of the missing one."""
        return self.region.side != BOTH

    @property
    def chest(self) -> Bools:
        """Skin that shapes are laid on each other by, (n,)."""
        return self.region.thorax if self.evidence == "points" else self.region.untouched

    @cached_property
    def patch(self) -> Ints:
        """Triangles of the missing skin and around it, of the vertices ``seam.region`` and then ``seam.border``."""
        numbers = np.full(len(self.frame.mean), -1)
        numbers[self.seam.region] = np.arange(len(self.seam.region))
        numbers[self.seam.border] = len(self.seam.region) + np.arange(len(self.seam.border))
        found: Ints = numbers[self.frame.faces[self.region.missing[self.frame.faces].any(axis=1)]]
        return found

    def off_chest(self, laid: Floats) -> float:
        """Root mean square distance of a laid thorax from the mean's, mm."""
        chest = self.chest
        off = ((laid - self.frame.mean)[chest] * self.normals[chest]).sum(axis=1)
        return float(np.sqrt((off**2).mean()))

    def plain_mirror_image(self, laid: Floats) -> Floats:
        """A laid shape mirrored across its own plane, that of its points."""
        return self.frame.own_mirror_image(self._without_missing(laid), self.region.around)

    def mirror_image(self, laid: Floats) -> Floats:
        """The mirror image that a prediction starts from: across the plane of what can be relied on."""
        if self.evidence == "points":
            return self.plain_mirror_image(laid)
        by = self.region.around.copy()
        by[self.seam.border] = False  # their normals would be those of missing skin
        weights = np.where(self.region.midline, self.midline, 1.0)
        return self.frame.mirrored_by_surface(self._without_missing(laid), by, self.along, weights)

    def _without_missing(self, laid: Floats) -> Floats:
        # Where mirror images lie between vertices, some of these may be missing ones: they must not be looked at.
        return np.where(self.region.missing[:, None], self.frame.mean, laid)

    def parts(self, laid: Floats) -> tuple[Floats, Floats]:
        """A laid shape about the mean: inside the region less what the seam continues, and at its border."""
        off = laid - self.frame.mean
        border = off[self.seam.border]
        return off[self.seam.region] - self.seam.continued(border), border

    def joined(self, part: Floats, own: Floats, laid: Floats) -> Floats:
        """Missing skin (m, 3) that fits the border of a shape ``own`` (n, 3), made to fit that of a laid torso."""
        edge = self.seam.border
        return part + self.seam.continued(laid[edge] - own[edge])
