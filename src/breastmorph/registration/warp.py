"""The smooth start: a field of few modes that takes the template onto the scan and may slide along it.

Closest points say nothing about where along the surface a point belongs; landmarks and what is known of bodies do. So
anchors are fixed across the surface and left nearly free along it, and a Gaussian prior of displacements fills in the
rest. It has two sources. Smoothness: affine, a triharmonic spline for the thorax, a local field for the breasts. And
people: how the bodies of adults differ together, fitted once to phantoms of known truth, and after a first pass how
the cohort at hand does (``batch.cohort_prior``).

Where bodies are known the warp goes twice. How far a belly has come down with a breast follows from how both go
together; but how the skin *within* a breast moves is a convention of those who made the bodies. So the first time all
of their skin counts, and of the result the trunk is kept; the second time the breasts are left to smoothness.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.registration.parameters import WarpParameters
from breastmorph.registration.target import Target, normals_at_vertices
from breastmorph.scan.scan import Landmarks, is_same_skin


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
    mask : (a,) float
        Breast mask of the anchors, with peak 1.
    parameters : WarpParameters
    """

    anchors: Floats
    vertices: Floats
    precision: Floats
    n_local: int
    kept: Floats
    mask: Floats
    parameters: WarpParameters

    @property
    def trunk(self) -> Floats:
        """How far every anchor is trunk: 1 outside the breasts, 0 in them, (a,)."""
        found: Floats = (1.0 - np.minimum(self.mask / self.parameters.breast_saturation, 1.0)) ** 2
        return found

    def read_off(self, displacements: Floats) -> Floats:
        """Coefficients (f, 3, k) of displacements (a, 3, k) at the anchors."""
        normal = self.anchors.T @ self.anchors / self.parameters.read_off_sd**2 + np.diag(self.precision)
        right = self.anchors.T @ displacements.reshape(len(self.anchors), -1) / self.parameters.read_off_sd**2
        found = np.linalg.solve(normal, right).reshape(-1, *displacements.shape[1:])
        return np.asarray(found, np.float64)


@dataclass(frozen=True, eq=False)
class Bodies:
    """How the bodies of adults lie to a template's anchors after the rigid stage.

    Attributes
    ----------
    modes : (a, 3, r) float
        One standard deviation of what does not follow from their size.
    by_size : (a, 3) float
        What does: the displacement by the natural logarithm of the rigid stage's scale. Wide people are not as much
        longer, so their bellies lie higher than in proportion.
    """

    modes: Floats
    by_size: Floats


@dataclass(frozen=True, eq=False)
class ScorePrior:
    """A cohort's prior of the scores of a basis: N(mean, root root^T) in place of N(0, 1).

    Attributes
    ----------
    mean : (q,) float
    root : (q, q) float
    """

    mean: Floats
    root: Floats


@dataclass(frozen=True, eq=False)
class WarpBasis:
    """The prior of displacements: a mean and modes of which every subject has so much, N(0, 1) of each.

    Attributes
    ----------
    functions : Functions
    mean : (f, 3) float
        Coefficients.
    modes : (f, 3, q) float
    by_size : (f, 3) float
        What is added to the mean by the logarithm of the rigid stage's scale.
    at_anchors : (a, 3, q) float
        The modes there.
    """

    functions: Functions
    mean: Floats
    modes: Floats
    by_size: Floats
    at_anchors: Floats

    @classmethod
    def of(cls, functions: Functions, mean: Floats, modes: Floats, by_size: Floats) -> WarpBasis:
        """From mean (f, 3), modes (f, 3, q) and (f, 3) by size."""
        return cls(functions, mean, modes, by_size, np.einsum("af,fiq->aiq", functions.anchors, modes))

    def mean_of(self, size: float) -> Floats:
        """The mean for people of a size, the logarithm of the rigid stage's scale, (f, 3)."""
        found: Floats = self.mean + size * self.by_size
        return found

    def with_prior(self, prior: ScorePrior) -> WarpBasis:
        """With another prior of its scores, fitted to a cohort."""
        mean, modes = self.mean + self.modes @ prior.mean, self.modes @ prior.root
        return WarpBasis.of(self.functions, mean, modes, self.by_size)

    def scores_of(self, moved: Floats, sizes: Floats) -> Floats:
        """Scores (k, q) nearest to people's displacements (k, a, 3), given the logarithms of their sizes."""
        off = moved - self.functions.anchors @ self.mean
        off -= sizes[:, None, None] * (self.functions.anchors @ self.by_size)
        return self._nearest(off.reshape(len(off), -1).T).T

    def mirrored(self, mirror: Ints) -> Floats:
        """What makes the scores of people's mirror images from theirs, (q, q)."""
        turned = self.at_anchors[mirror] * MIRROR[:, None]
        return self._nearest(turned.reshape(-1, turned.shape[2]))

    def _nearest(self, displacements: Floats) -> Floats:
        flat = self.at_anchors.reshape(-1, self.at_anchors.shape[2])
        normal = self.gram + self.parameters.read_off_sd**2 * np.eye(len(self.gram))
        return np.asarray(np.linalg.solve(normal, flat.T @ displacements), np.float64)

    @cached_property
    def gram(self) -> Floats:
        """Inner products of the modes at the anchors, (q, q)."""
        flat = self.at_anchors.reshape(-1, self.at_anchors.shape[2])
        found: Floats = flat.T @ flat
        return found

    @cached_property
    def trunk_gram(self) -> Floats:
        """Precision of the scores where the trunk's skin is known, (q, q)."""
        flat = self.at_anchors.reshape(-1, self.at_anchors.shape[2])
        found: Floats = flat.T @ (np.repeat(self.trunk_precision, 3)[:, None] * flat)
        return found

    @property
    def trunk_precision(self) -> Floats:
        """The same of the anchors, (a,)."""
        return self.functions.trunk * self.parameters.trunk_sd**-2

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
    hand = parameters.bending_length
    centres = anchors[_farthest_points(anchors, parameters.centres)]
    linear = np.column_stack([np.ones(len(centres)), centres / hand])
    bending = np.linalg.qr(linear, mode="complete")[0][:, 4:]  # coefficients that leave affine maps alone
    kernel = bending.T @ _triharmonic(centres, centres, hand) @ bending
    values, modes = _largest_modes(0.5 * (kernel + kernel.T), parameters.spline_modes)
    spline = bending @ modes / np.sqrt(values)

    vertex_freedom, anchor_freedom = (
        np.minimum(mask / parameters.breast_saturation, 1.0) for mask in (vertex_mask, anchor_mask)
    )
    candidates = np.flatnonzero(anchor_freedom >= parameters.breast_from)
    local_ids = candidates[_farthest_points(anchors[candidates], parameters.breast_centres)]
    local, strength = anchors[local_ids], anchor_freedom[local_ids]
    kernel = strength[:, None] * _gaussian(local, local, parameters.breast_length) * strength
    values, modes = _largest_modes(kernel, parameters.breast_modes)
    breast = strength[:, None] * modes / np.sqrt(values)

    def functions_at(points: Floats, freedom: Floats) -> Floats:
        return np.column_stack(
            [
                np.ones(len(points)),
                points / hand,
                _triharmonic(points, centres, hand) @ spline,
                freedom[:, None] * (_gaussian(points, local, parameters.breast_length) @ breast),
            ]
        )

    precision = np.concatenate(
        [
            [1.0 / parameters.shift_sd**2],
            np.full(3, 1.0 / (parameters.linear_sd * hand) ** 2),
            np.full(spline.shape[1], 1.0 / parameters.bending_sd**2),
            np.full(breast.shape[1], 1.0 / parameters.breast_sd**2),
        ]
    )
    near = np.exp(-((cdist(vertices, sternum).min(axis=1) / parameters.sternum_radius) ** 2))
    free = np.maximum(vertex_freedom * vertex_freedom * (3.0 - 2.0 * vertex_freedom), near)
    kept = 1.0 - parameters.outside_pull * (1.0 - free)
    at_anchors, at_vertices = functions_at(anchors, anchor_freedom), functions_at(vertices, vertex_freedom)
    return Functions(at_anchors, at_vertices, precision, breast.shape[1], kept, anchor_mask, parameters)


def warp_basis(functions: Functions, bodies: Bodies | None = None, *, whole: bool = False) -> WarpBasis:
    """The prior of smoothness, and of bodies where it is known how they vary.

    Parameters
    ----------
    functions : Functions
    bodies : Bodies, optional
        Takes most of the place of smoothness outside the breasts, where skin has no features to go by.
    whole : bool
        Whether it counts what is known of the skin of their breasts too.
    """
    p, n = functions.parameters, len(functions.precision)
    smooth, by_size = np.repeat(1.0 / functions.precision, 3), np.zeros((n, 3))
    if bodies is not None:
        smooth[: 3 * (n - functions.n_local)] *= p.smooth_share
    covariance = np.diag(smooth)
    if bodies is not None:
        known = functions.read_off(np.concatenate([bodies.modes, bodies.by_size[:, :, None]], axis=2))
        if not whole:
            known[n - functions.n_local :] = 0.0
        by_size, modes = known[:, :, -1], known[:, :, :-1].reshape(3 * n, -1)
        covariance += p.trunk_share * modes @ modes.T
    moving = _most_moving(covariance, functions.anchors, p.modes)
    return WarpBasis.of(functions, np.zeros((n, 3)), moving, by_size)


def _most_moving(covariance: Floats, functions: Floats, count: int) -> Floats:
    """Modes of coefficients with this covariance (3f, 3f) that move the anchors most, (f, 3, count)."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    root = (vectors * np.sqrt(np.maximum(values, 0.0))).reshape(functions.shape[1], 3, -1)
    moved = np.einsum("af,fiq->aiq", functions, root).reshape(-1, root.shape[2])
    turned = np.linalg.eigh(moved.T @ moved)[1][:, ::-1][:, :count]
    return root @ turned


def warp_onto(
    target: Target,
    vertices: Floats,
    coarse: TriangleMesh,
    basis: WarpBasis,
    landmark_ids: Mapping[str, int],
    landmarks: Landmarks,
    *,
    size: float = 0.0,
    bodies: WarpBasis | None = None,
    mask_at: Callable[[Floats], Floats] | None = None,
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
    size : float
        Logarithm of the rigid stage's scale.
    bodies : WarpBasis, optional
        A prior of whole bodies: gives before where the trunk's skin lies.
    mask_at : callable from points (k, 3) to (k,), optional
        The scan's breast mask with the template's peak as 1: skin pairs with skin as deep in a breast as itself.

    Returns
    -------
    vertices : (n, 3) float
    anchors : (a, 3) float
        Without the outside pull.
    """
    p, functions = basis.parameters, basis.functions

    def fitted(prior: WarpBasis, rounds: int, known: Floats | None = None) -> tuple[Floats, Floats]:
        wanted = landmark_equations(vertices, prior, landmark_ids, landmarks, size)
        return _coefficients(target, coarse, prior, size, wanted, rounds, known, mask_at)

    known = None if bodies is None else fitted(bodies, p.rounds_twice)[1]
    coefficients, anchors = fitted(basis, p.iterations if known is None else p.rounds_twice, known)
    return vertices + functions.kept[:, None] * (functions.vertices @ coefficients), anchors


def _coefficients(
    target: Target,
    coarse: TriangleMesh,
    basis: WarpBasis,
    size: float,
    landmarks: tuple[Floats, Floats],
    rounds: int,
    known: Floats | None,
    mask_at: Callable[[Floats], Floats] | None,
) -> tuple[Floats, Floats]:
    """Coefficients and anchors after some rounds of closest points, given the landmarks' normal equations.

    ``known`` (a, 3), where the trunk's skin is known to lie, fixes its anchors along the skin.
    """
    p, moves, functions = basis.parameters, basis.at_anchors, basis.functions
    flat, mean = moves.reshape(-1, moves.shape[2]), basis.mean_of(size)
    across, sliding = p.normal_sd**-2, p.sliding_sd**-2
    start = coarse.vertices + functions.anchors @ mean
    anchors, scores = start if known is None else known, np.zeros(flat.shape[1])
    matrix = landmarks[0] + np.eye(flat.shape[1]) + sliding * basis.gram
    along: Floats | float = sliding
    kept: Floats = np.zeros_like(start)
    if known is not None:
        matrix += basis.trunk_gram
        along = sliding + basis.trunk_precision
        kept = basis.trunk_precision[:, None] * (known - start)
    for _ in range(rounds):
        pairs = target.pairs(anchors, normals_at_vertices(anchors, coarse.faces), p.max_angle)
        weight = pairs.sound / (1.0 + (pairs.distances / p.outlier_distance) ** 2)
        if mask_at is not None:
            weight = weight / (1.0 + ((mask_at(pairs.points) - functions.mask) / p.mask_sd) ** 2)
        outwards = np.einsum("ai,aiq->aq", pairs.normals, moves)
        goals = np.where(
            pairs.sound[:, None], pairs.points, anchors
        )  # along the skin, what has no pair stays
        pull = sliding * (goals - start) + kept
        # Across the skin the pair alone counts, in place of what fixes it along the skin.
        gap = ((across * (pairs.points - start) - pull) * pairs.normals).sum(axis=1)
        left = matrix + outwards.T @ ((weight * (across - along))[:, None] * outwards)
        wanted = landmarks[1] + outwards.T @ (weight * gap) + flat.T @ pull.ravel()
        scores = solved(left, wanted)
        anchors = start + moves @ scores
    return mean + basis.modes @ scores, anchors


def solved(matrix: Floats, right: Floats) -> Floats:
    """Solution of a positive definite system that is not used again."""
    factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, right, check_finite=False), np.float64)


def landmark_equations(
    vertices: Floats, basis: WarpBasis, ids: Mapping[str, int], landmarks: Landmarks, size: float
) -> tuple[Floats, Floats]:
    """Normal equations of the landmarks, (q, q) and (q,), each with the precision of its own meaning."""
    n_modes, mean = basis.modes.shape[2], basis.mean_of(size)
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
        right += rows.T @ (precision * (landmarks[name] - vertices[ids[name]] - here @ mean))
    return matrix, right


def _landmark_precision(name: str, parameters: WarpParameters) -> Floats:
    """How well a landmark fixes x, y and z of the template's vertex, in 1/mm^2, (3,).

    Nipple, notch and xiphoid are the same skin on all people. The lower pole is the *lowest* point, fold skin on a
    firm breast and front skin on a hanging one: its height is comparable, its place is not. The lateral pole is
    the anterior axillary line *at the nipple's height*: the line is nearly upright, so its depth is comparable.
    """
    if is_same_skin(name):
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


def _triharmonic(points: Floats, centres: Floats, length: float) -> Floats:
    return (cdist(points, centres) / length) ** 3


def _gaussian(points: Floats, centres: Floats, length: float) -> Floats:
    return np.exp(-((cdist(points, centres) / length) ** 2))
