"""The smooth start: a field of few modes that takes the template onto the scan and may slide along it.

Closest points say nothing about where along the surface a point belongs; landmarks and what is known of bodies do. So
anchors are held across the surface and left nearly free along it, and a Gaussian prior of displacements fills in the
rest. It has two sources. Smoothness: affine, a triharmonic spline for the thorax, a local field for the breasts. And
people: how the trunks of adults differ together, learnt once from phantoms of known truth, and after a first pass how
the cohort at hand does (``learning``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

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
_READ_OFF = 1.0  # mm to which functions follow displacements that are given at the anchors


@dataclass(frozen=True, eq=False)
class Functions:
    """Smooth functions on a template, of which every component of a displacement is a sum.

    Attributes
    ----------
    anchors : (a, f) float
        At the coarse twin's vertices.
    vertices : (n, f) float
        At the template's vertices.
    precision : (f,) float
        Of their coefficients, as smoothness alone has it, in 1/mm^2.
    n_local : int
        The last so many are the breasts' local field, the others the trunk's.
    kept : (n,) float
        Share of the displacement that every vertex keeps: less outside the breasts, for a calm thorax.
    parameters : WarpParameters
    """

    anchors: Floats
    vertices: Floats
    precision: Floats
    n_local: int
    kept: Floats
    parameters: WarpParameters

    def read_off(self, displacements: Floats, *, local: bool = True) -> Floats:
        """Coefficients (f, 3, k) of displacements (a, 3, k) at the anchors, with or without the local field."""
        used = len(self.precision) - (0 if local else self.n_local)
        functions = self.anchors[:, :used]
        normal = functions.T @ functions / _READ_OFF**2 + np.diag(self.precision[:used])
        right = functions.T @ displacements.reshape(len(functions), -1) / _READ_OFF**2
        found = np.zeros((len(self.precision), *displacements.shape[1:]))
        found[:used] = np.linalg.solve(normal, right).reshape(used, *displacements.shape[1:])
        return found


@dataclass(frozen=True, eq=False)
class Population:
    """How people differ from the template, seen at its anchors after the rigid stage.

    Attributes
    ----------
    moved : (k, a, 3) float
        Everybody's displacements.
    count : int
        People that these are; fewer than k where mirror images stand beside them.
    """

    moved: Floats
    count: int


@dataclass(frozen=True, eq=False)
class WarpBasis:
    """The prior of displacements: a mean and modes of which every subject has so much, N(0, 1) of each.

    Attributes
    ----------
    functions : Functions
    mean : (f, 3) float
        Coefficients.
    modes : (f, 3, q) float
    at_anchors : (a, 3, q) float
        The modes there.
    """

    functions: Functions
    mean: Floats
    modes: Floats
    at_anchors: Floats

    @classmethod
    def of(cls, functions: Functions, mean: Floats, modes: Floats) -> WarpBasis:
        """From mean (f, 3) and modes (f, 3, q)."""
        return cls(functions, mean, modes, np.einsum("af,fiq->aiq", functions.anchors, modes))

    def knowing(self, population: Population, shown: Floats) -> WarpBasis:
        """With what is known of a population; this prior counts beside it as so many people more.

        Mean and covariance of the scores under which the population is likeliest (expectation maximisation). A
        registration shows a person across the skin and at the landmarks only; what it says along the skin was this
        prior's guess. Each lesson guesses that anew from what goes together with what is shown, and counts as variance
        how unsure the guess is: nobody is pulled to the mean for want of evidence.

        Parameters
        ----------
        population : Population
        shown : (q, q) float
            Precision with which a scan shows the scores: :func:`shown_by_a_scan`.
        """
        p, n = self.parameters, len(shown)
        one, share = np.eye(n), population.count / (population.count + p.prior_people)
        moved = population.moved - self.functions.anchors @ self.mean
        along = moved.reshape(len(moved), -1) @ self.at_anchors.reshape(-1, n)
        seen = np.linalg.solve(self.gram + _READ_OFF**2 * one, along.T).T
        mean, covariance = np.zeros(n), one
        for _ in range(p.lessons):
            unsure = np.linalg.solve(one + covariance @ shown, covariance)
            unsure = 0.5 * (unsure + unsure.T)
            scores = mean + (seen - mean) @ shown @ unsure
            average = scores.mean(axis=0)
            mean, about = share * average, scores - average
            spread = about.T @ about / len(about) + (1.0 - share) * np.outer(average, average)
            covariance = (1.0 - share) * one + share * (spread + unsure)
        modes = self.modes @ np.linalg.cholesky(covariance)
        return WarpBasis.of(self.functions, self.mean + self.modes @ mean, modes)

    @cached_property
    def gram(self) -> Floats:
        """Inner products of the modes at the anchors, (q, q)."""
        flat = self.at_anchors.reshape(-1, self.at_anchors.shape[2])
        found: Floats = flat.T @ flat
        return found

    @property
    def parameters(self) -> WarpParameters:
        """Of the functions."""
        return self.functions.parameters


def smooth_functions(
    vertices: Floats,
    anchors: Floats,
    vertex_mask: Floats,
    anchor_mask: Floats,
    sternum: Floats,
    parameters: WarpParameters,
) -> Functions:
    """Prepare the functions.

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

    def functions_at(points: Floats, freedom: Floats) -> Floats:
        return np.column_stack(
            [
                np.ones(len(points)),
                points / _HAND,
                _triharmonic(points, centres) @ spline,
                freedom[:, None] * (_gaussian(points, local, parameters.breast_length) @ breast),
            ]
        )

    precision = np.concatenate(
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
    at_anchors, at_vertices = functions_at(anchors, anchor_freedom), functions_at(vertices, vertex_freedom)
    return Functions(at_anchors, at_vertices, precision, breast.shape[1], kept, parameters)


def warp_basis(functions: Functions, trunk: Floats | None = None) -> WarpBasis:
    """The prior of smoothness, and of trunks where it is known how they vary.

    Parameters
    ----------
    functions : Functions
    trunk : (a, 3, r) float, optional
        How the trunks of adults vary, one standard deviation each: takes most of the place of smoothness outside the
        breasts, where skin has no features to go by.
    """
    p, n = functions.parameters, len(functions.precision)
    smooth = np.repeat(1.0 / functions.precision, 3)
    if trunk is not None:
        smooth[: 3 * (n - functions.n_local)] *= p.smooth_share
    covariance = np.diag(smooth)
    if trunk is not None:
        known = functions.read_off(trunk, local=False).reshape(3 * n, -1)
        covariance += p.trunk_share * known @ known.T
    return WarpBasis.of(functions, np.zeros((n, 3)), _most_moving(covariance, functions.anchors, p.modes))


def _most_moving(covariance: Floats, functions: Floats, count: int) -> Floats:
    """Modes of coefficients with this covariance (3f, 3f) that move the anchors most, (f, 3, count)."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).reshape(functions.shape[1], 3, -1)
    moved = np.einsum("af,fiq->aiq", functions, root).reshape(-1, root.shape[2])
    turned = np.linalg.eigh(moved.T @ moved)[1][:, ::-1][:, :count]
    return root @ turned


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
    p, moves = basis.parameters, basis.at_anchors
    flat = moves.reshape(-1, moves.shape[2])
    across, along = p.normal_sd**-2, p.sliding_sd**-2
    matrix, right = _landmark_equations(vertices, basis, landmark_ids, landmarks)
    matrix += np.eye(len(matrix)) + along * basis.gram
    start = coarse.vertices + basis.functions.anchors @ basis.mean
    anchors, scores = start, np.zeros(len(matrix))
    for _ in range(p.iterations):
        pairs = target.pairs(anchors, vertex_normals(anchors, coarse.faces), p.max_angle)
        weight = pairs.sound / (1.0 + (pairs.distances / p.outlier_distance) ** 2)
        outwards = np.einsum("ai,aiq->aq", pairs.normals, moves)
        gap = ((pairs.points - start) * pairs.normals).sum(axis=1)
        held = np.where(pairs.sound[:, None], pairs.points, anchors)  # along the skin, what has no pair stays
        left = matrix + (across - along) * outwards.T @ (weight[:, None] * outwards)
        wanted = (
            right + (across - along) * outwards.T @ (weight * gap) + along * flat.T @ (held - start).ravel()
        )
        scores = cho_solve(cho_factor(left, overwrite_a=True, check_finite=False), wanted)
        anchors = start + moves @ scores
    coefficients = basis.mean + basis.modes @ scores
    displacement = basis.functions.kept[:, None] * (basis.functions.vertices @ coefficients)
    return vertices + displacement, anchors


def shown_by_a_scan(
    basis: WarpBasis, vertices: Floats, coarse: TriangleMesh, landmark_ids: Mapping[str, int]
) -> Floats:
    """How precisely a scan shows the scores of a basis: across the skin and at the landmarks, (q, q).

    As a scan of the template itself would; those of people hardly differ in it.
    """
    outwards = np.einsum("ai,aiq->aq", vertex_normals(coarse.vertices, coarse.faces), basis.at_anchors)
    marks = Landmarks.of({name: vertices[vertex] for name, vertex in landmark_ids.items()})
    matrix, _ = _landmark_equations(vertices, basis, landmark_ids, marks)
    found: Floats = matrix + outwards.T @ outwards / basis.parameters.normal_sd**2
    return found


def _landmark_equations(
    vertices: Floats, basis: WarpBasis, ids: Mapping[str, int], landmarks: Landmarks
) -> tuple[Floats, Floats]:
    """Normal equations of the landmarks, (q, q) and (q,), each with the precision of its own meaning."""
    n_modes = basis.modes.shape[2]
    matrix, right = np.zeros((n_modes, n_modes)), np.zeros(n_modes)
    for name in landmarks:
        if name not in ids:
            continue
        precision = _landmark_precision(name, basis.parameters)
        if name in landmarks.found:  # a vague landmark pulls less
            precision = precision / (1.0 + precision * np.diag(landmarks.found[name].covariance))
        here = basis.functions.vertices[ids[name]]
        rows = np.einsum("f,fiq->iq", here, basis.modes)
        matrix += rows.T @ (precision[:, None] * rows)
        right += rows.T @ (precision * (landmarks[name] - vertices[ids[name]] - here @ basis.mean))
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
