"""The smooth start: a spline of few modes that takes the template onto the scan and may slide along it.

Closest points say nothing about where along the surface a point belongs; landmarks and smoothness do. So anchors
are held across the surface and left nearly free along it, and a Gaussian prior of displacements (affine, a
triharmonic spline for the thorax, a local field for the breasts) fills in the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.parameters import WarpParameters
from breastmorph.registration.rigid import Target
from breastmorph.scan.scan import STERNUM, Landmarks

_HAND = 100.0  # mm, the length at which the spline's standard deviation is stated
_LOCAL_CENTRES = 150
_LOCAL_FROM = 0.15  # local centres where the saturated mask is at least this
_FREE_SHIFT = 100.0  # mm, translation is as good as free


@dataclass(frozen=True, eq=False)
class WarpBasis:
    """Displacement modes of one template, prepared once.

    Attributes
    ----------
    anchors : (a, q) float
        Modes at the coarse twin's vertices.
    vertices : (n, q) float
        Modes at the template's vertices.
    prior : (q,) float
        Precision of every mode's coefficient, in 1/mm^2.
    kept : (n,) float
        Share of the displacement that every vertex keeps: less outside the breasts, for a calm thorax.
    parameters : WarpParameters
    """

    anchors: Floats
    vertices: Floats
    prior: Floats
    kept: Floats
    parameters: WarpParameters


def warp_basis(
    vertices: Floats,
    anchors: Floats,
    vertex_mask: Floats,
    anchor_mask: Floats,
    sternum: Floats,
    parameters: WarpParameters,
) -> WarpBasis:
    """Prepare the modes.

    Parameters
    ----------
    vertices : (n, 3) float
    anchors : (a, 3) float
    vertex_mask, anchor_mask : (n,) and (a,) float
        Breast mask with peak 1; ones for no mask.
    sternum : (2, 3) float
        Notch and xiphoid.
    """
    centres = anchors[_farthest_points(anchors, parameters.centres)]
    linear = np.column_stack([np.ones(len(centres)), centres / _HAND])
    bending = np.linalg.qr(linear, mode="complete")[0][:, 4:]  # coefficients that leave affine maps alone
    kernel = bending.T @ _triharmonic(centres, centres) @ bending
    values, modes = _largest_modes(0.5 * (kernel + kernel.T), parameters.spline_modes)
    spline = bending @ modes / np.sqrt(values)

    vertex_freedom, anchor_freedom = (
        np.minimum(mask / parameters.breast_saturation, 1.0) for mask in (vertex_mask, anchor_mask)
    )
    candidates = np.flatnonzero(anchor_freedom >= _LOCAL_FROM)
    local_ids = candidates[_farthest_points(anchors[candidates], _LOCAL_CENTRES)]
    local, strength = anchors[local_ids], anchor_freedom[local_ids]
    kernel = strength[:, None] * _gaussian(local, local, parameters.breast_length) * strength
    values, modes = _largest_modes(kernel, parameters.breast_modes)
    breast = strength[:, None] * modes / np.sqrt(values)

    def modes_at(points: Floats, freedom: Floats) -> Floats:
        return np.column_stack(
            [
                np.ones(len(points)),
                points / _HAND,
                _triharmonic(points, centres) @ spline,
                freedom[:, None] * (_gaussian(points, local, parameters.breast_length) @ breast),
            ]
        )

    prior = np.concatenate(
        [
            [1.0 / _FREE_SHIFT**2],
            np.full(3, 1.0 / (parameters.linear_sd * _HAND) ** 2),
            np.full(spline.shape[1], 1.0 / parameters.bending_sd**2),
            np.full(breast.shape[1], 1.0 / parameters.breast_sd**2),
        ]
    )
    near = np.exp(-((cdist(vertices, sternum).min(axis=1) / parameters.sternum_radius) ** 2))
    free = np.maximum(vertex_freedom * vertex_freedom * (3.0 - 2.0 * vertex_freedom), near)
    kept = 1.0 - parameters.outside_pull * (1.0 - free)
    at_anchors, at_vertices = modes_at(anchors, anchor_freedom), modes_at(vertices, vertex_freedom)
    return WarpBasis(at_anchors, at_vertices, prior, kept, parameters)


def slide_onto(
    target: Target,
    vertices: Floats,
    coarse: TriangleMesh,
    basis: WarpBasis,
    landmark_ids: Mapping[str, int],
    landmarks: Landmarks,
) -> tuple[Floats, Floats]:
    """Warp the template onto the scan.

    Parameters
    ----------
    target : Target
        The scan in template coordinates.
    vertices : (n, 3) float
        The template's.
    coarse : TriangleMesh
        Its coarse twin: the anchors.
    basis : WarpBasis
    landmark_ids : mapping
        Template vertices.
    landmarks : mapping
        Points of the scan in template coordinates.

    Returns
    -------
    vertices : (n, 3) float
    anchors : (a, 3) float
        Without the outside pull.
    """
    parameters, n_modes = basis.parameters, len(basis.prior)
    known_matrix, known_right = _landmark_equations(vertices, basis, landmark_ids, landmarks)
    coefficients = np.zeros((n_modes, 3))
    across, along = parameters.normal_sd**-2, parameters.sliding_sd**-2
    for _ in range(parameters.iterations):
        anchors = coarse.vertices + basis.anchors @ coefficients
        pairs = target.pairs(anchors, vertex_normals(anchors, coarse.faces), parameters.max_angle)
        weight = pairs.sound / (1.0 + (pairs.distances / parameters.outlier_distance) ** 2)
        wanted = pairs.points - coarse.vertices
        matrix, right = known_matrix.copy(), known_right.copy()
        for i in range(3):
            for j in range(i, 3):
                precision = (across - along) * pairs.normals[:, i] * pairs.normals[:, j] + along * (i == j)
                block = basis.anchors.T @ ((weight * precision)[:, None] * basis.anchors)
                matrix[i, :, j, :] += block
                right[i] += basis.anchors.T @ (weight * precision * wanted[:, j])
                if i != j:
                    matrix[j, :, i, :] += block
                    right[j] += basis.anchors.T @ (weight * precision * wanted[:, i])
        for i in range(3):
            matrix[i, np.arange(n_modes), i, np.arange(n_modes)] += basis.prior
        factor = cho_factor(matrix.reshape(3 * n_modes, 3 * n_modes), overwrite_a=True, check_finite=False)
        coefficients = cho_solve(factor, right.ravel()).reshape(3, n_modes).T
    displacement = basis.kept[:, None] * (basis.vertices @ coefficients)
    return vertices + displacement, coarse.vertices + basis.anchors @ coefficients


def _landmark_equations(
    vertices: Floats, basis: WarpBasis, ids: Mapping[str, int], landmarks: Landmarks
) -> tuple[Floats, Floats]:
    """Normal equations of the landmarks, (3, q, 3, q) and (3, q), each with the precision of its own meaning."""
    n_modes = len(basis.prior)
    matrix, right = np.zeros((3, n_modes, 3, n_modes)), np.zeros((3, n_modes))
    for name in landmarks:
        if name not in ids:
            continue
        precision = _landmark_precision(name, basis.parameters)
        if name in landmarks.found:  # a vague landmark pulls less
            precision = precision / (1.0 + precision * np.diag(landmarks.found[name].covariance))
        row = basis.vertices[ids[name]]
        offset = landmarks[name] - vertices[ids[name]]
        for i in range(3):
            matrix[i, :, i, :] += precision[i] * np.outer(row, row)
            right[i] += precision[i] * offset[i] * row
    return matrix, right


def _landmark_precision(name: str, parameters: WarpParameters) -> Floats:
    """How well a landmark fixes x, y and z of the template's vertex, in 1/mm^2, (3,).

    Nipple, notch and xiphoid are the same skin on everybody. The lower pole is the *lowest* point, fold skin on a
    firm breast and front skin on a hanging one: its height is comparable, its place is not. The lateral pole is
    the anterior axillary line *at the nipple's height*: the line is nearly upright, so its depth is comparable.
    """
    if name in STERNUM or name.startswith("nipple"):
        return np.full(3, parameters.exact_sd**-2)
    if name.startswith("lower_pole"):
        return np.array([0.0, parameters.height_sd**-2, 0.0])
    if name.startswith("lateral_pole"):
        return np.array([0.0, 0.0, parameters.depth_sd**-2])
    return np.full(3, parameters.optional_sd**-2)


def _largest_modes(kernel: Floats, count: int) -> tuple[Floats, Floats]:
    """The largest eigenvalues of a symmetric matrix, at most ``count``, and their vectors as columns."""
    values, modes = np.linalg.eigh(kernel)
    chosen = np.argsort(values)[::-1][:count]
    chosen = chosen[values[chosen] > 1e-9 * values.max()]
    return values[chosen], modes[:, chosen]


def _farthest_points(points: Floats, count: int) -> Ints:
    """Indices of evenly spread points: each next one is the farthest from those before it."""
    chosen = [0]
    distances = np.linalg.norm(points - points[0], axis=1)
    for _ in range(min(count, len(points)) - 1):
        chosen.append(int(distances.argmax()))
        distances = np.minimum(distances, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return np.array(chosen)


def _triharmonic(points: Floats, centres: Floats) -> Floats:
    return (cdist(points, centres) / _HAND) ** 3


def _gaussian(points: Floats, centres: Floats, length: float) -> Floats:
    return np.exp(-((cdist(points, centres) / length) ** 2))
