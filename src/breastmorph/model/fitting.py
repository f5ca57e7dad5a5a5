"""Fitting a shape model to a raw scan or point cloud, without registration.

    start (landmarks)  ->  coarse steps on few sites  ->  fine steps on all vertices

The result is the model's most probable shape given the points, in the target's frame, with what speaks for and
against it: noise, misfit, unexplained points, plausibility, a residual map and an uncertainty per vertex.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.spatial import cKDTree

from breastmorph.foundation.arrays import Bools, Floats, Ints, Shown, doubted
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem, MeshProblem
from breastmorph.foundation.language import Plural
from breastmorph.foundation.machine import in_one_thread
from breastmorph.foundation.messages import Finding, note, warning
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, face_areas, face_normals, rotation_about, vertex_normals
from breastmorph.mesh.skin import carried
from breastmorph.mesh.topology import boundary_vertices
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.anatomy import ADULT_SIZES, MODEL_EXTENT, SIZES_IN_MM, UNITS, USUAL_EXTENT
from breastmorph.scan.finder import find_landmarks
from breastmorph.scan.scan import REQUIRED, SIDES, STERNUM, Landmarks, is_same_skin

_SAME_SURFACE = 15.0  # mm: what lies farther from the shape is not the same surface


def surface_residuals(
    surface: Surface, points: Floats, normals: Floats, *, may_be_turned: bool = False
) -> Floats:
    """Signed distance of points from a surface, mm; positive outside, NaN where the surface shows nothing, (n,).

    Parameters
    ----------
    surface : Surface
    points, normals : (n, 3) float
    may_be_turned : bool
        The faces of an unchecked scan may all look inwards; then the majority of the points decides.
    """
    found = surface.closest(points)
    facing = face_normals(surface.mesh.vertices, surface.mesh.faces)[found.faces]
    if may_be_turned:
        facing = facing * (np.sign(np.median((facing * normals).sum(axis=1))) or 1.0)
    side = np.sign(((points - found.points) * facing).sum(axis=1))
    seen = ~found.on_boundary & ((facing * normals).sum(axis=1) > 0.0) & (found.distances < _SAME_SURFACE)
    return np.where(seen, side * found.distances, np.nan)


@dataclass(frozen=True)
class FitLimits:
    """What is still called a fit.

    Attributes
    ----------
    explained : float
        Least share of the points over the model.
    covered : float
        Least share of the model that the target shows.
    misfit : float
        Most that the surface may stay off, mm.
    unusual : float
        Largest root mean square of the scores; 1 is the model's own population. It shows whether the target is
        such a body at all, where every mode goes wrong a little; for a person, see :attr:`Fit.plausibility`.
    """

    explained: float = 0.6
    covered: float = 0.2
    misfit: float = 5.0
    unusual: float = 2.5


# Where all landmarks were found it is in question whether it is a torso at all. Right fits explained 0.90 and more; a
# plane in a torso's outline and the like 0.85 and less, or needed unusual shapes.
FOUND_LIMITS = FitLimits(explained=0.88, covered=0.35, unusual=1.75, misfit=3.0)


@dataclass(frozen=True, eq=False)
class Fit(Shown):
    """A model fitted to a target.

    Attributes
    ----------
    mesh : TriangleMesh
        The model's topology in the target's frame, mm.
    coefficients : (q,) float
        Of all the model's components; 0 beyond those used.
    transform : Similarity
        From the model's frame to the target's.
    unit : float
        Millimetres in the model's unit: 1 but for foreign models.
    unusual : float
        Root mean square of the scores: 1 for a typical member of the model's population.
    mahalanobis : float
        Distance of the shape from the mean in standard deviations.
    plausibility : float
        Share of the model's subjects who are more unusual; see :mod:`breastmorph.model.plausibility`.
    residuals : (n,) float
        Signed distance of each vertex from the target, mm; negative where the fit lies inside the scan, NaN where
        the target shows nothing.
    deviations : (n,) float
        Standard deviation of each vertex along its normal given the data, mm.
    noise : float
        Standard deviation of single points about the surface, mm.
    misfit : float
        Standard deviation of what the model could not follow, mm.
    explained : float
        Share of the points over the model that it explains.
    over_model : float
        Share of all points that lie over the model and not beyond its border.
    covered : float
        Share of the vertices near which the target has points.
    landmarks : Landmarks
        That it began from, in the target's frame; ``landmarks.found`` has the uncertainty of those found.
        Doubtful ones did not count where four others were there.
    steps : int
        On all vertices.
    warnings : tuple of Finding
        In plain words; empty when all is well.
    """

    mesh: TriangleMesh
    coefficients: Floats
    transform: Similarity
    unit: float
    unusual: float
    mahalanobis: float
    plausibility: float
    residuals: Floats
    deviations: Floats
    noise: float
    misfit: float
    explained: float
    over_model: float
    covered: float
    landmarks: Landmarks
    steps: int
    warnings: tuple[Finding, ...] = ()

    @property
    def start(self) -> str:
        """What it began from: "set landmarks", "found landmarks" or "set and found landmarks"."""
        found = len(self.landmarks.found)
        names = ["set"] * (found < len(self.landmarks)) + ["found"] * (found > 0)
        return f"{' and '.join(names)} landmarks"

    def __repr__(self) -> str:
        seen = self.residuals[np.isfinite(self.residuals)]
        off = f"{np.abs(seen).mean():.2f} mm from the target, " if len(seen) else ""
        shape = f"{self.covered:.0%} of the model seen, {self.mahalanobis:.1f} standard deviations"
        return f"Fit({off}{shape}{doubted(self.warnings)})"


def require_likeness(fit: Fit, limits: FitLimits) -> None:
    """Refuse a fit that explains too little, or that needs a shape or size no adult has.

    Raises
    ------
    MeshProblem
    """
    reasons = list(_unlikeness(fit, limits))
    if reasons:
        hint = note("unlike-model/hint", "; landmarks set by hand give a surer start")
        raise MeshProblem(
            "the scan does not look like the model: {reasons:|; }",
            "Check that it is a torso seen from the front, its unit and its sides{hint}",
            code="unlike-model",
            reasons=reasons,
            hint=hint if fit.landmarks.found else "",
        )


def _unlikeness(fit: Fit, limits: FitLimits) -> Iterator[Finding]:
    if fit.explained < limits.explained:
        yield note(
            "unlike-model/explained",
            "only {share:.0%} of the points over the model are explained",
            share=fit.explained,
        )
    if fit.covered < limits.covered:
        yield note("unlike-model/covered", "it shows only {share:.0%} of the model", share=fit.covered)
    if fit.misfit > limits.misfit:
        yield note("unlike-model/misfit", "the surface stays {misfit:.1f} mm off", misfit=fit.misfit)
    if fit.unusual > limits.unusual:
        yield note(
            "unlike-model/unusual",
            "its shape would be {unusual:.1f} times as unusual as the model's population",
            unusual=fit.unusual,
        )
    ratio = fit.transform.scale / fit.unit
    if not ADULT_SIZES[0] <= ratio <= ADULT_SIZES[1]:
        yield note("unlike-model/size", "its size would be {ratio:.2g} times the model's", ratio=ratio)


def warnings_of(fit: Fit, scores: Floats) -> Iterator[Finding]:
    """What a user should know about a fit."""
    if not _sides_set(fit.landmarks):
        yield warning(
            "pose-without-landmarks",
            "begun from landmarks that the program found: a mirrored file would not be noticed",
        )
    if fit.landmarks.doubtful:
        yield warning(
            "landmarks-doubtful",
            "found, but doubtful: {names:landmark}",
            "Look at them on the scan, and set them by hand where they are wrong",
            names=fit.landmarks.doubtful,
        )
    if fit.covered < 0.7:
        yield warning(
            "predicted-by-model",
            "{share:.0%} of the shape is not seen in the scan but predicted by the model",
            share=1 - fit.covered,
        )
    far = np.flatnonzero(np.abs(scores) > 3.0)
    if len(far):
        yield warning(
            "coefficients-far",
            "{n} of {all} coefficients lie beyond 3 standard deviations ({listed}{more})",
            n=len(far),
            all=len(scores),
            listed=[int(k) + 1 for k in far[:6]],
            more=" ..." if len(far) > 6 else "",
        )
    if fit.misfit > 1.5:
        yield warning("misfit", "the model follows this surface only to {misfit:.1f} mm", misfit=fit.misfit)
    if fit.explained < 0.85:
        yield warning(
            "not-explained",
            "{share:.0%} of the points over the model are not explained",
            share=1 - fit.explained,
        )


def _sides_set(landmarks: Landmarks) -> bool:
    """Whether a side is given by landmarks set by hand."""
    return any(name.endswith(SIDES) and name not in landmarks.found for name in landmarks)


_ENOUGH = 4  # landmarks, not all on one line on any torso


@dataclass(frozen=True)
class FitParameters:
    """How a model is fitted, and what a good fit is."""

    components: int | None = None  # modes used; all when None
    points: int = 5000  # of the target that count
    coarse_points: int = 2000
    sites: int = 2500  # of the model in the coarse steps
    first_width: float = 25.0  # mm: points farther off hardly count at the start
    narrowing: float = 0.8  # of the width per coarse step
    least_width: float = 3.0  # mm; narrower and what the model cannot follow yet is taken for outliers
    coarse_steps: int = 14
    fine_steps: int = 8
    tolerance: float = 0.02  # mm the sites still move when a fit is done
    reach: float = 12.0  # mm over which what the model cannot follow is alike
    landmark_deviation: float = 5.0  # mm, of bone and nipples
    soft_landmark_deviation: float = 10.0  # mm, of the poles: not the same skin on every breast
    scale_deviation: float = 0.1  # of the logarithm of size; adults differ by about a tenth
    seed: int = 0
    limits: FitLimits = field(default_factory=FitLimits)
    found_limits: FitLimits = FOUND_LIMITS  # where all landmarks were found


@in_one_thread
def fit_model(
    model: ShapeModel,
    target: TriangleMesh | Floats,
    landmarks: Landmarks,
    parameters: FitParameters | None = None,
) -> Fit:
    """Fit a model to a surface or a point cloud, both as :mod:`breastmorph.scan.raw_target` gives them.

    Parameters
    ----------
    model : ShapeModel
    target : TriangleMesh or (m, 3) float
        In mm, in any pose; may be partial, noisy and hold points that are not the body's.
    landmarks : Landmarks
        In the target's frame, three or more that the model knows; one that was found counts as far as it is sure.
    parameters : FitParameters, optional

    Raises
    ------
    MeshProblem
        The target does not look like the model.
    LandmarkProblem
        The landmarks are too few, on one line or swapped.
    """
    p = parameters or FitParameters()
    used = model if p.components is None else model.truncate(min(p.components, model.n_components))
    if not used.n_components:
        raise BreastMorphError("the model has no components: it knows one shape only", "Use another model")
    used, unit = _in_millimetres(used)
    if len(used.landmark_ids) < 3:  # of a model from elsewhere: as the program finds them on its mean
        found = find_landmarks(used.mean_mesh, "mm").landmarks.only(REQUIRED)
        vertices = cKDTree(used.mean).query(found.points)[1].tolist()
        used = replace(
            used, landmark_ids={**dict(zip(found.names, vertices, strict=True)), **used.landmark_ids}
        )
    try:
        return _fitted(model, used, unit, target, landmarks, p)
    except MeshProblem as error:
        if error.code != "unlike-model" or not isinstance(target, TriangleMesh):
            raise
        try:
            turned = _fitted(model, used, unit, target.flipped(), landmarks, p)
        except MeshProblem:
            raise error from None
    if _sides_set(landmarks):
        inside_out = warning("inverted-orientation/fitted", "the surface was inside out and has been turned")
    else:
        inside_out = warning(
            "inverted-orientation/found",
            "the surface looked inwards and has been turned: the file is inside out, or mirrored",
            "Set the landmarks by hand: they tell which it is",
        )
    return replace(turned, warnings=(*turned.warnings, inside_out))


def _fitted(
    model: ShapeModel,
    used: ShapeModel,
    unit: float,
    target: TriangleMesh | Floats,
    landmarks: Landmarks,
    p: FitParameters,
) -> Fit:
    points = points_of(target, p.points, np.random.default_rng(p.seed))
    with_scale = not used.keeps_size
    prior = Prior(used.deviations, p.scale_deviation if with_scale else 0.0, used.mean.mean(axis=0))
    sites = all_sites(used)
    coarse = some_sites(sites, p.sites)
    sure = [name for name in landmarks if name in used.landmark_ids and name not in landmarks.doubtful]
    names = shared_landmarks(used, landmarks.only(sure) if len(sure) >= _ENOUGH else landmarks)
    anchors = _anchors(used, landmarks, names, p)
    pose = pose_by_landmarks(used, landmarks, names)
    if not SIZES_IN_MM[0] <= pose.scale <= SIZES_IN_MM[1]:
        raise MeshProblem(
            "judged by {by}, the target is {ratio:.3g} times as large as the model",
            "Check its unit: mm are expected",
            code="wrong-unit/size",
            by="the landmarks",
            ratio=pose.scale,
        )
    if not with_scale:
        pose = pose_by_landmarks(used, landmarks, names, with_scale=False)
    state = settle_on_landmarks(State(pose, np.zeros(used.n_components)), prior, anchors)
    few, width = points.first(p.coarse_points), p.first_width
    alike = max(_alike(few, p.reach), 1.0)
    for _ in range(p.coarse_steps):
        state, _, _ = improve(state, prior, coarse, few, anchors, width, (width / 2.5) ** 2 * alike)
        width = max(p.narrowing * width, p.least_width)
    state, evidence, precision, steps = _fine(state, prior, sites, points, anchors, p)
    shape = sites.shape(state.scores * prior.deviations)
    normals = sites.normals(shape)
    placed = state.transform.apply(shape)
    mesh = TriangleMesh(placed, model.faces)
    if isinstance(target, TriangleMesh):
        surface = Surface(target)
        residuals = surface_residuals(surface, placed, normals @ state.transform.rotation.T)
        if target.is_coloured:
            mesh = replace(mesh, colors=carried(mesh, surface))
    else:
        residuals = _from_points(points, evidence, placed)
    over = ~evidence.matches.beyond
    coefficients = np.zeros(model.n_components)
    coefficients[: used.n_components] = state.scores * used.deviations / unit
    fit = Fit(
        mesh=mesh,
        coefficients=coefficients,
        transform=state.transform.after(Similarity(scale=unit)),
        unit=unit,
        unusual=float(np.sqrt((state.scores**2).mean())) if len(state.scores) else 0.0,
        mahalanobis=float(np.linalg.norm(state.scores)),
        plausibility=model.plausibility(coefficients),
        residuals=residuals,
        deviations=_deviations(state, prior, sites, shape, normals, evidence.misfit, precision),
        noise=float(np.sqrt(evidence.noise)),
        misfit=float(np.sqrt(evidence.misfit)),
        explained=float(evidence.inliers[over].mean()) if over.sum() else 0.0,
        over_model=float(over.mean()),
        covered=float(np.isfinite(residuals).mean()),
        landmarks=landmarks.only(name for name in landmarks if name in used.landmark_ids),
        steps=steps,
    )
    require_likeness(fit, p.limits if len(fit.landmarks.found) < len(fit.landmarks) else p.found_limits)
    return replace(fit, warnings=tuple(warnings_of(fit, state.scores)))


def _in_millimetres(model: ShapeModel) -> tuple[ShapeModel, float]:
    """The model in mm, and how many of them its unit has; foreign models may be in cm, in m or normalised."""
    extent = float(np.ptp(model.mean, axis=0).max())
    fitting = [unit for unit in UNITS.values() if MODEL_EXTENT[0] <= unit * extent <= MODEL_EXTENT[1]]
    unit = fitting[0] if fitting else USUAL_EXTENT / extent
    return (model if unit == 1.0 else model.transform(Similarity(scale=unit))), unit


def _anchors(model: ShapeModel, landmarks: Landmarks, names: tuple[str, ...], p: FitParameters) -> Anchors:
    ids = np.array([model.landmark_ids[name] for name in names])
    firm = [is_same_skin(name) for name in names]
    deviations = np.where(firm, p.landmark_deviation, p.soft_landmark_deviation)
    vague = np.array([landmarks.found[name].sd if name in landmarks.found else 0.0 for name in names])
    rows = model.rows(ids).reshape(len(ids), 3, -1)
    return Anchors(model.mean[ids], rows, landmarks.array(names), deviations**2 + vague**2)


def _fine(
    state: State, prior: Prior, sites: Sites, points: TargetPoints, anchors: Anchors, p: FitParameters
) -> tuple[State, FitEvidence, Floats, int]:
    """Steps on all vertices until nothing moves."""
    alike = _alike(points, p.reach)
    width, variance = 2.0 * p.least_width, p.least_width**2
    body = np.sqrt(len(sites.ids))
    for step in range(1, p.fine_steps + 1):
        before = state
        state, evidence, precision = improve(state, prior, sites, points, anchors, width, variance)
        width = max(3.0 * np.sqrt(evidence.noise + evidence.misfit), p.least_width)
        # Points alike in their misfit add nothing new; points alike only in place average their noise out.
        variance = max(evidence.noise + alike * evidence.misfit, 1e-4)
        moved = np.linalg.norm((state.scores - before.scores) * prior.deviations) / body
        if moved < p.tolerance and step > 2:
            break
    return state, evidence, precision, step


def _alike(points: TargetPoints, reach: float) -> float:
    """Mean number of points within ``reach`` of a point, itself included."""
    some = points.points[:400]
    return float(np.mean(cKDTree(points.points).query_ball_point(some, reach, return_length=True)))


def _deviations(
    state: State, prior: Prior, sites: Sites, shape: Floats, normals: Floats, misfit: float, precision: Floats
) -> Floats:
    """Standard deviation of every vertex along its normal: of pose and scores, and what the model cannot follow."""
    factor = cho_factor(precision, lower=True)[0]
    motion = motions(shape - prior.centre, normals, sites.rows, prior.deviations)
    spread = (solve_triangular(factor, motion.T, lower=True, check_finite=False) ** 2).sum(axis=0)
    return np.asarray(state.transform.scale * np.sqrt(spread + misfit))


def _from_points(target: TargetPoints, evidence: FitEvidence, points: Floats) -> Floats:
    """Residuals of the explained points carried to the vertices near them."""
    used = np.flatnonzero(evidence.weights > 0.0)
    if not len(used):
        return np.full(len(points), np.nan)
    reach = max(2.0 * target.spacing, 4.0)
    distances, found = cKDTree(target.points[used]).query(
        points, min(4, len(used)), distance_upper_bound=reach
    )
    near = np.isfinite(distances)
    weights = np.where(near, 1.0 / (np.where(near, distances, 1.0) + 0.5), 0.0)
    values = np.r_[-evidence.matches.residuals[used], 0.0][found]  # the last stands for "none"
    total = weights.sum(axis=1)
    return np.where(total > 0, (weights * values).sum(axis=1) / np.maximum(total, 1e-12), np.nan)


_NEIGHBOURS = 12  # for normals of points without faces and for separating noise from misfit
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
    is a property of the scanner, not of the body.
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
            Plural(
                "model and target share only {n} landmark; a pose needs three",
                "model and target share only {n} landmarks; a pose needs three",
            ),
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
