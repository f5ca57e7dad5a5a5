"""The steps of a fit: where it begins, which points belong together, pose and shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import cKDTree

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.mesh.geometry import Similarity, face_areas, rotation_about, vertex_normals
from breastmorph.mesh.topology import boundary_vertices
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import STERNUM, Landmarks

# --------------------------------------------------------------------------------------------------------------------
# Pairs between a model and raw data: points of the target with normals, sites of the model, who belongs to whom
# --------------------------------------------------------------------------------------------------------------------

_NEIGHBOURS = 12  # for normals of bare points and for telling noise from misfit
_STRAY = 2.5  # times the usual distance to other points: not on a surface
_RING = 6  # sites around a site
_FACING = 0.5  # cosine between the normals of a sound pair
_SAME_SHEET = 0.3  # cosine between normals of neighbouring sites: not across a fold


@dataclass(frozen=True, eq=False)
class TargetPoints:
    """Measured points that stand for the whole target.

    Attributes
    ----------
    points : (m, 3) float
    normals : (m, 3) float
        Unit; of unknown sign where ``oriented`` is False.
    oriented : bool
    neighbours : (m, k) int
        Nearest other points.
    spacing : float
        Typical distance to the nearest other point, mm.
    """

    points: Floats
    normals: Floats
    oriented: bool
    neighbours: Ints
    spacing: float

    def __len__(self) -> int:
        return len(self.points)

    def first(self, count: int) -> TargetPoints:
        """A random part of the points, with neighbours among themselves."""
        if count >= len(self):
            return self
        return _with_neighbours(self.points[:count], self.normals[:count], self.oriented)


def points_of(target: TriangleMesh | Floats, count: int, rng: np.random.Generator) -> TargetPoints:
    """At most ``count`` points of a surface or a point cloud in random order, evenly spread.

    A surface is sampled by area; a larger cloud is thinned to one point a cube, because the density of a cloud
    tells of the scanner and not of the body.
    """
    if isinstance(target, TriangleMesh):
        area = face_areas(target.vertices, target.faces)
        faces = target.faces[rng.choice(len(area), size=count, p=area / area.sum())]
        weights = rng.dirichlet(np.ones(3), size=count)[:, :, None]
        normals = vertex_normals(target.vertices, target.faces)
        normal = (normals[faces] * weights).sum(axis=1)
        return _with_neighbours((target.vertices[faces] * weights).sum(axis=1), normal, True)
    points = target[rng.permutation(len(target))]
    if len(points) > count:
        points = _thinned(points, count)
    return _with_neighbours(_without_strays(points), None, False)


def _without_strays(points: Floats) -> Floats:
    """Points that lie as close to others as points of a surface do; twice, because strays thin out strays."""
    for _ in range(2):
        around = (
            cKDTree(points).query(points, min(_NEIGHBOURS, len(points) - 1) // 2 + 1)[0][:, 1:].mean(axis=1)
        )
        points = points[around < _STRAY * np.median(around)]
    return points


def _thinned(points: Floats, count: int) -> Floats:
    """The first point of every cube of a grid as fine as ``count`` points allow."""
    low, high = np.quantile(points, (0.01, 0.99), axis=0)
    size = float(np.linalg.norm(high - low)) / np.sqrt(count)
    for _ in range(12):
        kept = _one_a_cube(points, size)
        if len(kept) <= count:
            break
        size *= 1.15
    return points[np.sort(kept)]  # in the random order they came in


def _one_a_cube(points: Floats, size: float) -> Ints:
    cubes = np.floor((points - points.min(axis=0)) / size).astype(np.int64)
    keys = (cubes[:, 0] * (1 << 42)) + (cubes[:, 1] * (1 << 21)) + cubes[:, 2]
    return np.unique(keys, return_index=True)[1]


def _with_neighbours(points: Floats, normals: Floats | None, oriented: bool) -> TargetPoints:
    k = min(_NEIGHBOURS, len(points) - 1)
    distances, found = cKDTree(points).query(points, k + 1)
    neighbours = found[:, 1:]
    if normals is None:
        around = points[found] - points[found].mean(axis=1, keepdims=True)
        # The direction in which neighbouring points spread least.
        normals = np.linalg.eigh(np.swapaxes(around, 1, 2) @ around)[1][:, :, 0]
    length = np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    return TargetPoints(points, normals / length, oriented, neighbours, float(np.median(distances[:, 1])))


@dataclass(frozen=True, eq=False)
class Sites:
    """Vertices of a model that data may be paired with: all of them, or an even selection.

    Attributes
    ----------
    ids : (s,) int
    mean : (s, 3) float
    rows : (s, 3, q) float
        Rows of the model's basis.
    border : (s,) bool
        Sites that stand for the model's border: what lies beyond belongs to no site.
    spacing : float
        Typical distance between sites, mm.
    faces : (m, 3) int
        Of the whole model; used where all vertices are sites.
    ring : (s, 6) int
        Sites around each, in their order around the normal; empty where all vertices are sites.
    """

    ids: Ints
    mean: Floats
    rows: NDArray[np.floating]
    border: Bools
    spacing: float
    faces: Ints
    ring: Ints

    def shape(self, coefficients: Floats) -> Floats:
        """Positions of the sites for coefficients (q,) or fewer, (s, 3)."""
        q = len(coefficients)
        moved = self.rows.reshape(-1, self.rows.shape[2])[:, :q] @ coefficients.astype(self.rows.dtype)
        return self.mean + moved.reshape(-1, 3)

    def normals(self, points: Floats) -> Floats:
        """Outward unit normals of the sites at positions (s, 3)."""
        if not len(self.ring):
            return vertex_normals(points, self.faces)
        # The vector area of the polygon of neighbours, wherever the site itself lies.
        arms = points[self.ring] - points[:, None]
        area = np.cross(arms, np.roll(arms, -1, axis=1)).sum(axis=1)
        return np.asarray(area / np.maximum(np.linalg.norm(area, axis=1, keepdims=True), 1e-12))


def all_sites(model: ShapeModel) -> Sites:
    """Every vertex of the model."""
    n, q = model.n_vertices, model.n_components
    border = boundary_vertices(model.faces, n)
    area = float(face_areas(model.mean, model.faces).sum())
    spacing = float(np.sqrt(area / n))
    rows = model.basis.reshape(n, 3, q)
    return Sites(np.arange(n), model.mean, rows, border, spacing, model.faces, np.empty((0, _RING), np.int64))


def some_sites(sites: Sites, count: int) -> Sites:
    """About ``count`` sites, evenly spread over the mean shape."""
    if len(sites.ids) <= count:
        return sites
    spacing = sites.spacing * float(np.sqrt(len(sites.ids) / count))
    ids = _one_a_cube(sites.mean, 1.2 * spacing)
    mean = sites.mean[ids]
    tree = cKDTree(mean)
    border = np.zeros(len(ids), bool)
    border[tree.query(sites.mean[sites.border])[1]] = True
    ring = _rings(mean, sites.normals(sites.mean)[ids], tree)
    return Sites(sites.ids[ids], mean, sites.rows[ids], border, spacing, sites.faces, ring)


def _rings(points: Floats, normals: Floats, tree: cKDTree) -> Ints:
    found = tree.query(points, 2 * _RING + 1)[1][:, 1:]
    across = np.einsum("ski,si->sk", normals[found], normals) < _SAME_SHEET
    order = np.argsort(across, axis=1, kind="stable")[:, :_RING]  # near ones of the same sheet first
    ring = np.take_along_axis(found, order, axis=1)
    arms = points[ring] - points[:, None]
    first = arms[:, 0] - np.einsum("si,si->s", arms[:, 0], normals)[:, None] * normals
    second = np.cross(normals, first)
    angle = np.arctan2(np.einsum("ski,si->sk", arms, second), np.einsum("ski,si->sk", arms, first))
    return np.take_along_axis(ring, np.argsort(angle, axis=1), axis=1)


@dataclass(frozen=True, eq=False)
class Matches:
    """Each target point's site.

    Attributes
    ----------
    sites : (m,) int
    residuals : (m,) float
        Signed distance of the point from the site's tangent plane, positive outside the model; mm.
    apart : (m,) float
        Distance from point to site.
    beyond : (m,) bool
        Beyond the model's border.
    sound : (m,) bool
        Not beyond it, and facing the same way.
    """

    sites: Ints
    residuals: Floats
    apart: Floats
    beyond: Bools
    sound: Bools


def match(
    points: Floats, facing: Floats, oriented: bool, sites: Floats, normals: Floats, border: Bools
) -> Matches:
    """Pair points (m, 3) that face along ``facing`` (m, 3) with sites (s, 3); all in the model's frame."""
    apart, found = cKDTree(sites, balanced_tree=False, compact_nodes=False).query(points)
    normal = normals[found]
    residuals = ((points - sites[found]) * normal).sum(axis=1)
    cosine = (facing * normal).sum(axis=1)
    agree = (cosine if oriented else np.abs(cosine)) > _FACING
    return Matches(found, residuals, apart, border[found], agree & ~border[found])


# --------------------------------------------------------------------------------------------------------------------
# Pose and coefficients of a model that explain measured points: a maximum a posteriori estimate
# --------------------------------------------------------------------------------------------------------------------

_POSE = 7  # turn, shift, scale
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
class FitEvidence:
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
) -> tuple[FitEvidence, Floats, Floats]:
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
    return FitEvidence(matches, weights, noise, misfit), shape, normals


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
    anchors: Anchors,
    width: float,
    variance: float,
) -> tuple[State, FitEvidence, Floats]:
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
    add, pull = _anchored(anchors, state, prior)
    state, precision = _moved(state, prior, precision + add, gradient + pull)
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


# --------------------------------------------------------------------------------------------------------------------
# Where a fit starts: by landmarks
# --------------------------------------------------------------------------------------------------------------------

_AS_SURE = 10.0  # mm of deviation with which a landmark that was found counts half
_SPREAD = 10.0  # mm that landmarks must extend across their longest line
_MIRRORED = (
    0.8  # residual of the mirrored landmarks over that of the given ones below which sides are swapped
)


def shared_landmarks(model: ShapeModel, landmarks: Landmarks) -> tuple[str, ...]:
    """Names that model and target share.

    Raises
    ------
    LandmarkProblem
        They are too few or on one line, or left and right are swapped.
    """
    names = tuple(name for name in landmarks if name in model.landmark_ids)
    if len(names) < 3:
        known = list(model.landmark_ids) or ["none"]
        raise LandmarkProblem(
            "model and target share only {n} landmarks; a pose needs three",
            "The model knows {known:landmark}; landmark_ids adds more. Or leave the landmarks out",
            code="missing-landmarks/shared",
            n=len(names),
            known=known,
        )
    source = model.mean[[model.landmark_ids[name] for name in names]]
    places = landmarks.array(names)
    if not np.isfinite(places).all():
        raise LandmarkProblem("a landmark is not finite", "Remove it or place it again")
    across = np.linalg.svd(places - places.mean(axis=0), compute_uv=False)[1]
    if across < _SPREAD:
        raise LandmarkProblem("the landmarks lie on one line", "Give one that lies beside it")
    mirrored = source * MIRROR
    # Fewer than five lie so nearly in one plane that their mirror image fits as well.
    if len(names) >= 5 and _residual(mirrored, places) < _MIRRORED * _residual(source, places):
        raise LandmarkProblem(
            "the landmarks fit the model's mirror image better: sides swapped or file mirrored",
            "Check the names of the left and right landmarks (sides are the patient's); if all are right, export "
            "the file again without mirroring",
            code="sides-swapped",
        )
    return names


def _residual(source: Floats, places: Floats) -> float:
    transform = Similarity.fit(source, places)
    return float(np.linalg.norm(transform.apply(source) - places)) / transform.scale


def pose_by_landmarks(
    model: ShapeModel, landmarks: Landmarks, names: tuple[str, ...], *, with_scale: bool = True
) -> Similarity:
    """Best transform of the mean shape onto landmarks; bone counts more than soft tissue, vague ones less."""
    ids = [model.landmark_ids[name] for name in names]
    weights = np.array([3.0 if name in STERNUM else 1.0 for name in names])
    vague = np.array([landmarks.found[name].sd if name in landmarks.found else 0.0 for name in names])
    weights = weights / (1.0 + (vague / _AS_SURE) ** 2)
    return Similarity.fit(model.mean[ids], landmarks.array(names), weights, with_scale=with_scale)
