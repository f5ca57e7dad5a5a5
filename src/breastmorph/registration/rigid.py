"""The scan as a target, and bringing the template to it by a similarity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial.transform import Rotation

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.mesh.closest import Surface, SurfacePoints
from breastmorph.mesh.geometry import Similarity, vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.parameters import RigidParameters
from breastmorph.scan.scan import OF_A_BREAST, SIDES, STERNUM, Landmarks

# --------------------------------------------------------------------------------------------------------------------
# The scan as the template sees it: closest points and normals in the template's frame
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pairs:
    """Closest points of the scan.

    Attributes
    ----------
    points : (k, 3) float
    normals : (k, 3) float
        The scan's, at those points.
    distances : (k,) float
    sound : (k,) bool
        Neither on the scan's border nor with disagreeing normals.
    """

    points: Floats
    normals: Floats
    distances: Floats
    sound: Bools


@dataclass(frozen=True, eq=False)
class Target:
    """A scan's surface seen through a similarity.

    Attributes
    ----------
    surface : Surface
        In the scan's own coordinates; its search tree is built once and shared by all views.
    normals : (n, 3) float
        Of its vertices.
    transform : Similarity
        From template to scan coordinates.
    """

    surface: Surface
    normals: Floats
    transform: Similarity

    @classmethod
    def of(cls, mesh: TriangleMesh) -> Target:
        """A scan in its own coordinates."""
        return cls(Surface(mesh, compiled=True), vertex_normals(mesh.vertices, mesh.faces), Similarity())

    def seen_through(self, transform: Similarity) -> Target:
        """The same scan in other template coordinates."""
        return replace(self, transform=transform)

    def pairs(self, points: Floats, normals: Floats, max_angle: float) -> Pairs:
        """Pair points (k, 3) that have unit normals (k, 3) with the scan.

        Parameters
        ----------
        max_angle : float
            Degrees between the normals of a sound pair.
        """
        found = self.surface.closest(self.transform.apply(points))
        inverse = self.transform.inverse()
        facing = self.normals_at(found) @ self.transform.rotation  # rotation^T n, row by row
        agree = (facing * normals).sum(axis=1) > np.cos(np.radians(max_angle))
        return Pairs(
            inverse.apply(found.points),
            facing,
            found.distances / self.transform.scale,
            agree & ~found.on_boundary,
        )

    def normals_at(self, found: SurfacePoints) -> Floats:
        """Unit normals at points of the surface in scan coordinates, (k, 3)."""
        from breastmorph.mesh import dense

        return dense.normals_within(self.normals, self.surface.mesh.faces[found.faces], found.weights)


# --------------------------------------------------------------------------------------------------------------------
# Rigid alignment: the similarity that brings the template to the rigid part of the scan (section 3.2.1)
# --------------------------------------------------------------------------------------------------------------------

_REACH = 200.0  # mm from the sternum to the template's border: what a turn or a stretch moves
_MAX_ANGLE = 53.0  # degrees between the normals of a pair


def landmark_alignment(template: Landmarks, scan: Landmarks, parameters: RigidParameters) -> Similarity:
    """Similarity of the template's landmarks onto the scan's, led by the sternum."""
    names = [
        name
        for name in (*STERNUM, *(f"{part}_{side}" for part in OF_A_BREAST for side in SIDES))
        if name in template and name in scan
    ]
    weight_of = {
        "nipple": parameters.nipple_weight,
        "lower": parameters.pole_weight,
        "lateral": parameters.pole_weight,
    }
    weights = np.array([weight_of.get(name.split("_")[0], parameters.sternum_weight) for name in names])
    # A weight of one is that of bone a person pointed at; one that was found is worth less, the vaguer it is.
    vague = np.array([scan.found[name].sd if name in scan.found else 0.0 for name in names])
    weights = weights / (1.0 + weights * (vague / parameters.sternum_sd) ** 2)
    source, goal = template.array(names), scan.array(names)
    return Similarity.fit(source, goal, weights)


@dataclass(frozen=True, eq=False)
class RigidPart:
    """What is to be aligned: the thorax of template and scan, without their breasts.

    Attributes
    ----------
    target : Target
    coarse : TriangleMesh
        The template's coarse twin: its vertices are the points that are paired with the scan.
    coarse_mask : (a,) float
    scan_mask : function of transform and points
        The scan's mask at template coordinates (k, 3), given the transform from template to scan.
    held : (k, 3) float
        Notch and xiphoid of the template.
    marks : Landmarks
        The same of the scan, in its coordinates; what was found holds less, the vaguer it is.
    """

    target: Target
    coarse: TriangleMesh
    coarse_mask: Floats
    scan_mask: Callable[[Similarity, Floats], Floats]
    held: Floats
    marks: Landmarks

    @cached_property
    def _normals(self) -> Floats:
        return vertex_normals(self.coarse.vertices, self.coarse.faces)

    def pairs(self, transform: Similarity, mask_threshold: float) -> tuple[Pairs, Bools]:
        """Closest points seen through a transform, and which of them are sound and not in the breasts."""
        pairs = self.target.seen_through(transform).pairs(self.coarse.vertices, self._normals, _MAX_ANGLE)
        in_breast = (self.coarse_mask > mask_threshold) & (
            self.scan_mask(transform, pairs.points) > mask_threshold
        )
        return pairs, pairs.sound & ~in_breast


def align_by_sliding(
    part: RigidPart, begin: Similarity, parameters: RigidParameters
) -> tuple[Similarity, int]:
    """Similarity by sliding over the thorax (point to plane), held by the sternum.

    Parameters
    ----------
    part : RigidPart
    begin : Similarity
        From template to scan coordinates.
    parameters : RigidParameters

    Returns
    -------
    transform : Similarity
    iterations : int
    """
    held, wanted = part.held, part.marks.points
    vague = [part.marks.found[name].covariance if name in part.marks.found else 0.0 for name in part.marks]
    precisions = [np.linalg.inv(parameters.sternum_sd**2 * np.eye(3) + spread) for spread in vague]
    centre = held.mean(axis=0)
    points = part.coarse.vertices
    turn_precision = np.radians(parameters.turn_sd) ** -2.0
    transform = begin
    iteration = 0
    for iteration in range(1, parameters.iterations + 1):
        # The unknown is a small similarity of the template about the sternum, in template coordinates.
        pairs, kept = part.pairs(transform, parameters.mask_threshold)
        gap = ((pairs.points - points) * pairs.normals).sum(axis=1)
        weight = kept / (1.0 + (gap / parameters.outlier_distance) ** 2)
        weight /= parameters.surface_sd**2
        arm = points - centre
        rows = np.column_stack(
            [np.cross(arm, pairs.normals), pairs.normals, (arm * pairs.normals).sum(axis=1)]
        )
        matrix = rows.T @ (weight[:, None] * rows)
        right = rows.T @ (weight * gap)
        seen = transform.inverse().apply(wanted)
        for point, goal, precision in zip(held, seen, precisions, strict=True):
            row = np.column_stack([-_cross_matrix(point - centre), np.eye(3), point - centre])
            pull = row.T @ (transform.rotation.T @ precision @ transform.rotation)
            matrix += pull @ row
            right += pull @ (goal - point)
        turned = Rotation.from_matrix(begin.rotation.T @ transform.rotation).as_rotvec()
        matrix[:3, :3] += np.diag(turn_precision)
        right[:3] -= turn_precision * turned
        matrix[6, 6] += parameters.scale_sd**-2
        right[6] -= np.log(transform.scale / begin.scale) / parameters.scale_sd**2
        step = np.linalg.solve(matrix, right)
        turn = Rotation.from_rotvec(step[:3]).as_matrix()
        stretch = float(np.exp(step[6]))
        small = Similarity(turn, centre + step[3:6] - stretch * turn @ centre, stretch)
        transform = transform.after(small)
        moved = max(np.abs(step[3:6]).max(), _REACH * np.abs(step[:3]).max(), _REACH * abs(step[6]))
        if moved < parameters.step_tolerance:
            break
    return transform, iteration


def align_about_x(part: RigidPart, begin: Similarity, parameters: RigidParameters) -> tuple[Similarity, int]:
    """The paper's ICP: closest points outside the breasts, scale, rotation about x; then moved to the sternum.

    Arguments and results as in :func:`align_by_sliding`.
    """
    transform, last = begin, np.inf
    iteration = 0
    for iteration in range(1, parameters.iterations + 1):
        pairs, kept = part.pairs(transform, parameters.mask_threshold)
        if kept.sum() < 10:
            break
        mean_square = float((pairs.distances[kept] ** 2).mean()) * transform.scale**2
        if abs(last - mean_square) < parameters.tolerance * last:
            break
        last = mean_square
        transform = transform.after(_similarity_about_x(part.coarse.vertices[kept], pairs.points[kept]))
    held, wanted = part.held, part.marks.points
    shift = wanted.mean(axis=0) - transform.apply(held.mean(axis=0))
    return Similarity(transform.rotation, transform.translation + shift, transform.scale), iteration


def _similarity_about_x(source: Floats, goal: Floats) -> Similarity:
    source_centre, goal_centre = source.mean(axis=0), goal.mean(axis=0)
    a, b = source - source_centre, goal - goal_centre
    cosine = (a[:, 1] * b[:, 1] + a[:, 2] * b[:, 2]).sum()
    sine = (a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]).sum()
    length = np.hypot(cosine, sine)
    scale = float(((a[:, 0] * b[:, 0]).sum() + length) / (a**2).sum())
    c, s = cosine / length, sine / length
    rotation = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
    return Similarity(rotation, goal_centre - scale * rotation @ source_centre, scale)


def _cross_matrix(v: Floats) -> Floats:
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
