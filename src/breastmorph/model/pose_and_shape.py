"""Pose and coefficients of a model that explain measured points: a maximum a posteriori estimate.

Minimised over the transform T and the coefficients b (in standard deviations) is

    sum_j rho_k(r_j) / s2  +  |b|^2  +  landmarks  +  log(scale)^2 / scale_deviation^2 ,

r_j the distance of point j from the tangent plane of its site, rho Geman and McClure's robust function of width k.
Width and variance s2 fall from iteration to iteration: first only the pose and the largest modes can move, because
the prior outweighs the data for the small ones; in the end every mode has the freedom that the data justify.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from breastmorph.mesh.similarity import Similarity, rotation_about
from breastmorph.mesh.triangle_mesh import Bools, Floats
from breastmorph.model.matching import Matches, Sites, TargetPoints, match

_POSE = 7  # turn, shift, scale
_BEYOND = 0.4  # of the cost of a point that contradicts the model
_SETTLING = 4  # steps after which landmarks alone move nothing


@dataclass(frozen=True, eq=False)
class State:
    """Where the model stands.

    Attributes
    ----------
    transform : Similarity
        From the model's frame to the target's.
    scores : (q,) float
        Coefficients in standard deviations.
    """

    transform: Similarity
    scores: Floats


@dataclass(frozen=True, eq=False)
class Anchors:
    """Landmarks: vertices of the model with known places.

    Attributes
    ----------
    mean : (k, 3) float
    rows : (k, 3, q) float
        Rows of the model's basis.
    places : (k, 3) float
        In the target's frame.
    variances : (k,) float
        Of a coordinate, mm squared.
    """

    mean: Floats
    rows: NDArray[np.floating]
    places: Floats
    variances: Floats


@dataclass(frozen=True, eq=False)
class Prior:
    """What is believed before the data.

    Attributes
    ----------
    deviations : (q,) float
        Of the model's coefficients.
    log_scale_deviation : float
        Of the logarithm of the transform's scale, which is 0 on average; 0 keeps the scale where it is.
    centre : (3,) float
        Of the model; turns and scales go about it.
    """

    deviations: Floats
    log_scale_deviation: float
    centre: Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """How the data lie to the model in one state.

    Attributes
    ----------
    matches : Matches
    weights : (m,) float
        Robust weights, 0 for void pairs.
    noise : float
        Variance of single points about the surface, mm squared.
    misfit : float
        Variance of what neighbouring points share: the surface that the model cannot follow, mm squared.
    """

    matches: Matches
    weights: Floats
    noise: float
    misfit: float

    @property
    def inliers(self) -> Bools:
        """Points that the model explains."""
        return self.weights > 0.25


def look(
    state: State, prior: Prior, sites: Sites, target: TargetPoints, width: float
) -> tuple[Evidence, Floats, Floats]:
    """Match the data in a state; returns also the sites' positions and normals in the model's frame."""
    inverse = state.transform.inverse()
    points = inverse.apply(target.points)
    facing = target.normals @ state.transform.rotation
    shape = sites.shape(state.scores * prior.deviations)
    normals = sites.normals(shape)
    matches = match(points, facing, target.oriented, shape, normals, sites.border)
    near = matches.sound & (matches.apart**2 < (3.0 * width) ** 2 + (1.5 * sites.spacing) ** 2)
    weights = np.where(near, (width**2 / (width**2 + matches.residuals**2)) ** 2, 0.0)
    noise, misfit = _variances(matches.residuals, weights, target)
    return Evidence(matches, weights, noise, misfit), shape, normals


def cost(evidence: Evidence, width: float) -> float:
    """Mean of the robust function over all points, from 0 (all explained) to 1.

    A point over the model without a sound pair contradicts it and costs 1; a point beyond the model's border
    speaks neither for nor against it and costs ``_BEYOND``.
    """
    squared = evidence.matches.residuals**2
    robust = np.where(evidence.weights > 0.0, squared / (width**2 + squared), 1.0)
    return float(np.where(evidence.matches.beyond, _BEYOND, robust).mean())


def _variances(residuals: Floats, weights: Floats, target: TargetPoints) -> tuple[float, float]:
    """Split the residuals' variance into what is each point's own and what neighbours share."""
    used = weights > 0.25
    if used.sum() < 20:
        return 1.0, 1.0
    around = used[target.neighbours]
    count = around.sum(axis=1)
    enough = used & (count >= 4)
    if enough.sum() < 20:
        return float((residuals[used] ** 2).mean()), 0.0
    shared = (residuals[target.neighbours] * around).sum(axis=1)[enough] / count[enough]
    # A point's own residual times its neighbours' mean: independent noise cancels.
    misfit = max(float((residuals[enough] * shared).mean()), 0.0)
    return max(float((residuals[enough] ** 2).mean()) - misfit, 0.0), misfit


def improve(
    state: State,
    prior: Prior,
    sites: Sites,
    target: TargetPoints,
    anchors: Anchors | None,
    width: float,
    variance: float,
) -> tuple[State, Evidence, Floats]:
    """One Gauss-Newton step; returns the new state, what was seen, and the precision of all unknowns.

    Parameters
    ----------
    width : float
        Of the robust function, mm.
    variance : float
        Of a point's distance, mm squared, with the correlation of neighbours taken into account.
    """
    evidence, shape, normals = look(state, prior, sites, target, width)
    used = evidence.weights > 0.0
    at = evidence.matches.sites[used]
    jacobian = motions(shape[at] - prior.centre, normals[at], sites.rows[at], prior.deviations)
    weighted = jacobian * (evidence.weights[used] / variance)[:, None]
    precision = weighted.T @ jacobian
    gradient = weighted.T @ evidence.matches.residuals[used]
    if anchors is not None:
        add, pull = _anchored(anchors, state, prior)
        precision, gradient = precision + add, gradient + pull
    state, precision = _moved(state, prior, precision, gradient)
    return state, evidence, precision


def settle_on_landmarks(state: State, prior: Prior, anchors: Anchors) -> State:
    """Pose and shape by the landmarks alone."""
    for _ in range(_SETTLING):
        state, _ = _moved(state, prior, *_anchored(anchors, state, prior))
    return state


def _moved(state: State, prior: Prior, precision: Floats, gradient: Floats) -> tuple[State, Floats]:
    """The state after a step by the data's normal equations, the prior added; and the whole precision."""
    precision, gradient = precision.copy(), gradient.copy()
    turn, shift, scale = slice(0, 3), slice(3, 6), 6
    precision[range(_POSE, len(precision)), range(_POSE, len(precision))] += 1.0
    gradient[_POSE:] -= state.scores
    # A pose that the data leave open (a sphere, a plane) stays where it is.
    precision[range(_POSE), range(_POSE)] += 1e-6 * np.trace(precision[:_POSE, :_POSE]) + 1e-9
    if prior.log_scale_deviation > 0:
        weight = prior.log_scale_deviation**-2
        precision[scale, scale] += weight
        gradient[scale] -= weight * np.log(state.transform.scale)
    else:
        precision[scale], precision[:, scale], gradient[scale] = 0.0, 0.0, 0.0
        precision[scale, scale] = 1.0
    change = cho_solve(cho_factor(precision), gradient)
    angle = float(np.linalg.norm(change[turn]))
    rotation = rotation_about(change[turn], np.degrees(angle)) if angle > 0 else np.eye(3)
    about = prior.centre
    factor = float(np.exp(np.clip(change[scale], -0.2, 0.2)))
    small = Similarity(rotation, about - factor * rotation @ about + change[shift], factor)
    return State(state.transform.after(small), state.scores + change[_POSE:]), precision


def motions(arms: Floats, normals: Floats, rows: NDArray[np.floating], deviations: Floats) -> Floats:
    """Motion of sites along their normals by turn, shift, scale and every score, (k, 7 + q)."""
    out = np.empty((len(arms), _POSE + len(deviations)))
    out[:, :3] = np.cross(arms, normals)
    out[:, 3:6] = normals
    out[:, 6] = (arms * normals).sum(axis=1)
    q = len(deviations)
    out[:, _POSE:] = np.einsum("ki,kiq->kq", normals.astype(rows.dtype), rows[:, :, :q]) * deviations
    return out


def _anchored(anchors: Anchors, state: State, prior: Prior) -> tuple[Floats, Floats]:
    q = len(prior.deviations)
    shape = anchors.mean + (anchors.rows[:, :, :q] * prior.deviations) @ state.scores
    difference = state.transform.inverse().apply(anchors.places) - shape
    k = len(shape)
    blocks = [
        motions(shape - prior.centre, np.broadcast_to(axis, (k, 3)), anchors.rows, prior.deviations)
        for axis in np.eye(3)
    ]
    precision, gradient = np.zeros((_POSE + q, _POSE + q)), np.zeros(_POSE + q)
    for axis, block in enumerate(blocks):
        weighted = block / anchors.variances[:, None]
        precision += weighted.T @ block
        gradient += weighted.T @ difference[:, axis]
    return precision, gradient
