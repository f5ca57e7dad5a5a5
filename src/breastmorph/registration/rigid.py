"""Rigid alignment: the similarity that brings the template to the rigid part of the scan (section 3.2.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.transform import Rotation

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.parameters import RigidParameters
from breastmorph.registration.target import Pairs, Target, normals_at_vertices
from breastmorph.scan.scan import OF_A_BREAST, SIDES, STERNUM, Landmarks


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
    fixed : (k, 3) float
        Notch and xiphoid of the template.
    marks : Landmarks
        The same of the scan, in its coordinates; what was found counts less, the vaguer it is.
    """

    target: Target
    coarse: TriangleMesh
    coarse_mask: Floats
    scan_mask: Callable[[Similarity, Floats], Floats]
    fixed: Floats
    marks: Landmarks

    @cached_property
    def _normals(self) -> Floats:
        return normals_at_vertices(self.coarse.vertices, self.coarse.faces)

    def pairs(self, transform: Similarity, parameters: RigidParameters) -> tuple[Pairs, Bools]:
        """Closest points seen through a transform, and which of them are sound and not in the breasts."""
        seen, threshold = self.target.seen_through(transform), parameters.mask_threshold
        pairs = seen.pairs(self.coarse.vertices, self._normals, parameters.max_angle)
        in_breast = (self.coarse_mask > threshold) & (self.scan_mask(transform, pairs.points) > threshold)
        return pairs, pairs.sound & ~in_breast


def align_by_sliding(
    part: RigidPart, begin: Similarity, parameters: RigidParameters
) -> tuple[Similarity, int]:
    """Similarity by sliding over the thorax (point to plane), fixed by the sternum.

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
    fixed, wanted = part.fixed, part.marks.points
    vague = [part.marks.found[name].covariance if name in part.marks.found else 0.0 for name in part.marks]
    precisions = [np.linalg.inv(parameters.sternum_sd**2 * np.eye(3) + spread) for spread in vague]
    centre = fixed.mean(axis=0)
    points = part.coarse.vertices
    turn_precision = np.radians(parameters.turn_sd) ** -2.0
    transform = begin
    iteration = 0
    for iteration in range(1, parameters.iterations + 1):
        # The unknown is a small similarity of the template about the sternum, in template coordinates.
        pairs, kept = part.pairs(transform, parameters)
        gap = ((pairs.points - points) * pairs.normals).sum(axis=1)
        weight = kept / (1.0 + (gap / parameters.outlier_distance) ** 2)
        weight /= parameters.surface_sd**2
        arm = points - centre
        rows = np.column_stack(
            [np.cross(arm, pairs.normals), pairs.normals, (arm * pairs.normals).sum(axis=1)]
        )
        matrix = rows.T @ (weight[:, None] * rows)
        right = rows.T @ (weight * gap)
        goals = transform.inverse().apply(wanted)
        for point, goal, precision in zip(fixed, goals, precisions, strict=True):
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
        reach = parameters.reach
        moved = max(np.abs(step[3:6]).max(), reach * np.abs(step[:3]).max(), reach * abs(step[6]))
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
        pairs, kept = part.pairs(transform, parameters)
        if kept.sum() < parameters.fewest_pairs:
            break
        mean_square = float((pairs.distances[kept] ** 2).mean()) * transform.scale**2
        if abs(last - mean_square) < parameters.tolerance * last:
            break
        last = mean_square
        transform = transform.after(_similarity_about_x(part.coarse.vertices[kept], pairs.points[kept]))
    fixed, wanted = part.fixed, part.marks.points
    shift = wanted.mean(axis=0) - transform.apply(fixed.mean(axis=0))
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
