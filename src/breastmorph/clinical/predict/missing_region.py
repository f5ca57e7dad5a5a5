"""Which skin is missing, which takes its place in a mirror, and which lies on the chest that all are laid on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.clinical.measure.skin_points import SkinPoints
from breastmorph.errors import BreastMorphError, MeshProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.remeshing.symmetry import Plane
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import MIRROR, Bools, Floats, TriangleMesh
from breastmorph.model.regions import Footprint, RegionParameters
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.landmarks import SIDES, SIGN, other_side

_FAR = 10.0  # mm between a mean and its own mirror image: no torso that can be mirrored
_ROUNDS = 5  # of finding the plane of a mean whose mirror image is not known by vertex
_FEWEST = 60  # vertices of the thorax to lay a shape on


@dataclass(frozen=True)
class RegionLimits:
    """How far the missing region reaches and what is kept away from it."""

    margin: float = 20.0  # mm around the breast: there the prediction runs out into the scan
    midline: float = 3.0  # mm that the region stays on its own side
    ring: float = 20.0  # mm around the missing region and its mirror image that do not lie on the chest


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
        return self.twin.at(shape) * MIRROR

    def twins(self, chosen: Bools) -> Bools:
        """The vertices whose mirror image is chosen, (n,)."""
        found: Bools = (chosen[self.twin.corners] * self.twin.weights).sum(axis=1) > 0.5
        return found

    def own_mirror_image(self, shape: Floats, by: Bools) -> Floats:
        """A shape (n, 3), in any pose, mirrored across its own plane of symmetry, that of its vertices ``by``."""
        twins = self.twin.at(shape)
        return plane_between(shape[by], twins[by]).reflected(twins)


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
        if off > _FAR:
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


@dataclass(frozen=True, eq=False)
class MissingRegion:
    """The parts of a torso for a prediction, all (n,) bool.

    Attributes
    ----------
    side : str
        On which side the missing region lies.
    missing : (n,) bool
        What is predicted; everything else stays as scanned.
    breast : (n,) bool
        The breast itself; of a painted region what lies deeper than the margin.
    healthy : (n,) bool
        The known mirror image of the missing region.
    thorax : (n,) bool
        Skin away from both; shapes are laid on each other by it.
    """

    side: str
    missing: Bools
    breast: Bools
    healthy: Bools
    thorax: Bools


def missing_region(
    model: ShapeModel, frame: MirrorFrame, missing: str | Bools, limits: RegionLimits | None = None
) -> MissingRegion:
    """The regions for a side of the body, or for painted vertices (n,) bool."""
    p = limits or RegionLimits()
    if isinstance(missing, str):
        if missing not in SIDES:
            raise BreastMorphError(f"there is no side {missing!r}", "Choose left or right")
        marks = model.landmarks.transformed(frame.to_frame)
        inside = Footprint.of(frame.mesh, marks).inside(missing, RegionParameters())
        side, own = missing, SIGN[missing] * frame.mean[:, 0] > p.midline
        region, breast = (inside > -p.margin) & own, (inside > 0.0) & own
    else:
        region = np.asarray(missing, dtype=bool)
        if region.shape != (model.n_vertices,):
            raise BreastMorphError(
                f"{region.size} painted vertices for a model of {model.n_vertices}",
                "Paint the region on the model's own topology",
            )
        if not region.any():
            raise BreastMorphError("the painted region is empty", "Paint the vertices that are missing")
        if region.all():
            raise _no_thorax()
        side = SIDES[int(frame.mean[region, 0].mean() < 0.0)]
        within = np.zeros(len(region))
        within[region] = cKDTree(frame.mean[~region]).query(frame.mean[region])[0]
        breast = within > p.margin if (within > p.margin).any() else region
    healthy = frame.twins(region) & ~region
    away = cKDTree(frame.mean[region | healthy]).query(frame.mean)[0]
    thorax = away > p.ring
    if thorax.sum() < max(_FEWEST, 0.02 * len(thorax)):
        raise _no_thorax()
    if not healthy.any():
        raise BreastMorphError(
            f"nothing is left on the {other_side(side)} side to predict from",
            "Paint the missing breast on one side only",
        )
    return MissingRegion(side, region, breast, healthy, thorax)


def _no_thorax() -> BreastMorphError:
    return BreastMorphError(
        "the missing region leaves no thorax to lay the scan on",
        "Paint a smaller region: one breast with its close surroundings",
    )
