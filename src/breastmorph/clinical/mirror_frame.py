"""A model's mean made symmetric, and how shapes are mirrored there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.clinical.skin_points import SkinPoints
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import MeshProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Plane, Similarity, vertex_normals
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.model.shape_model import ShapeModel

NOT_SYMMETRIC = 10.0  # mm between a mesh and its own mirror image: too far to pair its vertices
_ROUNDS = 5  # of finding the plane of a mean whose mirror image is not known by vertex
# The plane of symmetry by the surface.
_STEPS = 5  # of Gauss and Newton
_EVERY = 3  # of the vertices: neighbours say the same
_STANDS_OUT = 2.0  # times the usual distance: half the weight
_FINEST = 0.5  # mm of usual distance at least


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
                "the model's mean cannot be mirrored: it lies {off:.0f} mm from its mirror image",
                "Predicting a breast needs a model of whole torsos, upright and in mm",
                off=off,
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

    Around an absent breast a registration places points some millimetres beside their place, along the skin and
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
