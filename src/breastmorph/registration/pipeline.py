"""Registration of one scan: rigid, smooth start, coarse to fine. Prepared once per template, run per scan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.machine import one_thread
from breastmorph.foundation.messages import Finding, warning
from breastmorph.mask import IN_BREAST, BreastLengths, BreastMask, measure_breasts
from breastmorph.mesh.geometry import Similarity, without_pinches
from breastmorph.mesh.remeshing import thinned
from breastmorph.mesh.skin import carried
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.acceptance import (
    judge_breasts,
    judge_landmarks,
    judge_result,
    judge_thorax,
    landmarks_on_surface,
)
from breastmorph.registration.parameters import RegistrationParameters, StageParameters
from breastmorph.registration.prepared import Level, PreparedTemplate
from breastmorph.registration.relaxation import relaxed
from breastmorph.registration.result import Registration, StageMetrics, Trace, shape_metrics
from breastmorph.registration.rigid import RigidPart, align_about_x, align_by_sliding, landmark_alignment
from breastmorph.registration.target import Target, normals_at_vertices
from breastmorph.registration.warp import ScorePrior
from breastmorph.scan.scan import STERNUM, Landmarks, Scan
from breastmorph.template import Template

if TYPE_CHECKING:
    from breastmorph.registration.minimiser import Deformation, LandmarkPulls
from breastmorph.scan.anatomy import require_enough


class Registrar:
    """A template prepared for many scans.

    Parameters
    ----------
    template : Template
    parameters : RegistrationParameters, optional

    Notes
    -----
    The memory of its linear systems is kept between scans, so one object must not be used from two threads at once.
    """

    def __init__(self, template: Template, parameters: RegistrationParameters | None = None) -> None:
        self.template = template
        self.parameters = parameters or RegistrationParameters()
        self.prepared = PreparedTemplate(template, self.parameters)

    def register(self, scan: Scan, priors: Sequence[ScorePrior] = ()) -> Registration:
        """Bend the template onto a scan.

        Parameters
        ----------
        scan : Scan
        priors : sequence of ScorePrior
            Of the warp's bases, fitted to people of whom the scan is none; see ``batch.cohort_prior``.

        Raises
        ------
        MeshProblem, LandmarkProblem
            When the scan cannot be this template's: landmarks off the surface, sides swapped, not a torso.
        """
        log = RegistrationLog()
        with one_thread():
            # Behind the rigid stage all is in template coordinates.
            prepared_scan = prepare_scan(self.prepared, scan, log)
            rigid = align_rigidly(self.prepared, prepared_scan, log, priors)
            warped = warp(self.prepared, rigid, log, priors)
            fine = refine(self.prepared, rigid, warped, log)
            return assess(self.prepared, rigid, fine, log)


def register(
    template: Template, scan: Scan, parameters: RegistrationParameters | None = None
) -> Registration:
    """Bend a template onto one scan; for many scans make one :class:`Registrar`."""
    return Registrar(template, parameters).register(scan)


class RegistrationLog:
    """What the stages report of themselves, written beside their values: seconds by step, metrics, warnings."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.stages: list[StageMetrics] = []
        self.warnings: list[Finding] = []
        self._last = time.perf_counter()

    def count(self, step: str) -> None:
        """Count the time since the last call for this step."""
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._last
        self._last = now

    def warn(self, warnings: Iterable[Finding]) -> None:
        """Keep warnings."""
        self.warnings.extend(warnings)

    def close(self, name: str, distance: ScanDistance, iterations: int, trace: Sequence[Trace] = ()) -> None:
        """Keep the metrics of a stage whose time was counted before its distance to the scan was measured."""
        residuals = MappingProxyType(dict(distance.residuals))
        inside, outside, seconds = distance.inside, distance.outside, self.seconds[name]
        self.stages.append(StageMetrics(name, seconds, iterations, inside, outside, residuals, tuple(trace)))
        self.count("metrics")


@dataclass(frozen=True, eq=False)
class ScanDistance:
    """How points lie to the scan.

    Attributes
    ----------
    inside, outside : float
        Mean distance in the breasts and outside, mm; NaN where nothing faces the scan.
    sound : (n,) bool
        Which points face the scan.
    residuals : mapping from landmark to mm
    """

    inside: float
    outside: float
    sound: Bools
    residuals: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class PreparedScan:
    """A scan in its own coordinates.

    Attributes
    ----------
    scan : Scan
    target : Target
    given : Landmarks
        Those that are set, on the surface.
    landmarks : Landmarks
        The same with estimates of those that are not.
    lengths : BreastLengths
        From which its mask is made.
    """

    scan: Scan
    target: Target
    given: Landmarks
    landmarks: Landmarks
    lengths: BreastLengths

    def mask_through(self, transform: Similarity) -> BreastMask:
        """The scan's mask in template coordinates."""
        marks = self.landmarks.transformed(transform.inverse())
        return self.lengths.scaled(1.0 / transform.scale).mask(marks)


@dataclass(frozen=True, eq=False)
class RigidResult:
    """A scan as the template sees it after the rigid stage.

    Attributes
    ----------
    prepared_scan : PreparedScan
    transform : Similarity
        From template to scan coordinates.
    target : Target
    marks : Landmarks
        Those that are set.
    mask : BreastMask
    """

    prepared_scan: PreparedScan
    transform: Similarity
    target: Target
    marks: Landmarks
    mask: BreastMask

    @classmethod
    def of(cls, prepared_scan: PreparedScan, transform: Similarity, marks: Landmarks) -> RigidResult:
        """A scan through a similarity, with its landmarks there."""
        return cls(
            prepared_scan,
            transform,
            prepared_scan.target.seen_through(transform),
            marks,
            prepared_scan.mask_through(transform),
        )

    def distance_of(self, level: Level, points: Floats, max_angle: float) -> ScanDistance:
        """How points (n, 3) of a resolution of the template lie to the scan, facing it by this angle in degrees."""
        scale = self.transform.scale
        pairs = self.target.pairs(points, normals_at_vertices(points, level.mesh.faces), max_angle)
        distances = pairs.distances * scale
        in_breast = level.mask > IN_BREAST
        inside, outside = (
            float(distances[pairs.sound & part].mean()) if (pairs.sound & part).any() else float("nan")
            for part in (in_breast, ~in_breast)
        )
        residuals = {
            name: scale * float(np.linalg.norm(points[vertex] - self.marks[name]))
            for name, vertex in level.landmark_ids.items()
            if name in self.marks
        }
        return ScanDistance(inside, outside, pairs.sound, residuals)


@dataclass(frozen=True, eq=False)
class WarpResult:
    """The template's vertices and those of its coarse twin after the smooth start, (n, 3) and (k, 3)."""

    vertices: Floats
    anchors: Floats


@dataclass(frozen=True, eq=False)
class FineResult:
    """The template's vertices at the end, (n, 3), and how they lie to the scan."""

    vertices: Floats
    distance: ScanDistance


def prepare_scan(prepared: PreparedTemplate, scan: Scan, log: RegistrationLog) -> PreparedScan:
    """The scan with its search tree, its landmarks on the surface and its mask's lengths (section 3.1)."""
    parameters = prepared.parameters
    log.warn(scan.warnings)
    target = Target.of(scan.mesh)
    given, moved = landmarks_on_surface(scan.trusted, target, scan.id, parameters.acceptance)
    log.warn(moved)
    log.count("closest-point tree")
    landmarks = with_estimates(prepared, target, given)
    if len(landmarks) > len(given):
        log.warn(
            [
                warning(
                    "landmarks-estimated",
                    "landmarks not set: {names:landmark}; estimated with the template, for the mask and the "
                    "start only",
                    names=list(landmarks.only(scan.landmarks.unset)),
                )
            ]
        )
        log.count("estimated landmarks")
    lengths = measure_breasts(scan.mesh, landmarks, _thinning(scan.mesh, parameters), parameters.mask)
    log.count("geodesics")
    return PreparedScan(scan, target, given, landmarks, lengths)


def align_rigidly(
    prepared: PreparedTemplate,
    prepared_scan: PreparedScan,
    log: RegistrationLog,
    priors: Sequence[ScorePrior] = (),
) -> RigidResult:
    """The similarity that brings the template to the scan (section 3.2.1), twice where a sternum was found, not set."""
    template, coarse, parameters = prepared.template, prepared.coarse, prepared.parameters.rigid
    part = RigidPart(
        prepared_scan.target,
        coarse.mesh,
        coarse.mask,
        lambda transform, points: prepared_scan.mask_through(transform).at(points),
        template.landmarks.array(STERNUM),
        prepared_scan.landmarks.only(STERNUM),
    )
    begin = landmark_alignment(template.landmarks, prepared_scan.landmarks, parameters)
    align = align_about_x if parameters.about_x else align_by_sliding
    transform, iterations = align(part, begin, parameters)
    rigid = RigidResult.of(prepared_scan, transform, prepared_scan.given.transformed(transform.inverse()))
    log.warn(judge_landmarks(rigid.marks))
    if rigid.mask.mirrored_side:
        log.warn(
            [
                warning(
                    "side-mirrored",
                    "the {side} breast is absent: that side follows the skin of the scan only",
                    side=rigid.mask.mirrored_side,
                )
            ]
        )
    log.count("rigid")
    acceptance = prepared.parameters.acceptance
    distance = rigid.distance_of(coarse, coarse.mesh.vertices, acceptance.facing)
    log.warn(judge_thorax(distance.outside, prepared_scan.scan.id, acceptance))
    found = any(end in prepared_scan.scan.landmarks.found for end in STERNUM)
    if found and prepared.basis is not None and not prepared.knows_bodies:
        rigid = realign_by_warp(prepared, rigid, priors)
        log.count("rigid")
        distance = rigid.distance_of(coarse, coarse.mesh.vertices, acceptance.facing)
    log.close("rigid", distance, iterations)
    return rigid


def realign_by_warp(
    prepared: PreparedTemplate, rigid: RigidResult, priors: Sequence[ScorePrior] = ()
) -> RigidResult:
    """The similarity read off the warped thorax, where the ends of the sternum were found and fix it badly.

    Smoothness asks for the shortest path from wherever the template lies, so its best place is where the warped thorax
    is nearest. What is known of trunks is seen from the sternum: with that prior the first place is kept.
    """
    vague = dict(rigid.marks.found)
    if (xiphoid := vague.get("xiphoid")) is not None:
        variance = prepared.parameters.rigid.xiphoid_variance
        vague["xiphoid"] = replace(xiphoid, covariance=variance * xiphoid.covariance)
    rigid = replace(rigid, marks=replace(rigid.marks, found=vague))
    warped = warp(prepared, rigid, RegistrationLog(), priors)
    coarse = prepared.coarse
    breast = prepared.peak * prepared.functions.parameters.breast_saturation
    thorax = 1.0 - np.minimum(coarse.mask / breast, 1.0)
    transform = Similarity.fit(coarse.mesh.vertices, rigid.transform.apply(warped.anchors), thorax)
    marks = rigid.marks.transformed(transform.inverse().after(rigid.transform))
    return RigidResult.of(rigid.prepared_scan, transform, marks)


def warp(
    prepared: PreparedTemplate, rigid: RigidResult, log: RegistrationLog, priors: Sequence[ScorePrior] = ()
) -> WarpResult:
    """The smooth start: a warp that slides along the scan; the template itself where the parameters have none."""
    start, breast_without_landmarks = _start(prepared, rigid)
    if breast_without_landmarks:
        log.warn(
            [
                warning(
                    "breast-without-landmarks",
                    "the {side} side has no landmarks, yet its surface looks like a breast; annotate it if "
                    "it is there",
                    side=rigid.mask.mirrored_side,
                )
            ]
        )
    basis, scale = prepared.basis, rigid.transform.scale
    if basis is None:
        return WarpResult(start[0].vertices, start[1].vertices)
    vertices, anchors = prepared.warp_onto(rigid.target, start, rigid.marks, scale, priors, rigid.mask)
    log.count("warp")
    distance = rigid.distance_of(prepared.coarse, anchors, prepared.parameters.acceptance.facing)
    p = basis.parameters
    log.close("warp", distance, p.iterations if prepared.whole_basis is None else 2 * p.rounds_twice)
    return WarpResult(vertices, anchors)


def refine(
    prepared: PreparedTemplate, rigid: RigidResult, warped: WarpResult, log: RegistrationLog
) -> FineResult:
    """Minimisation of F, coarse to fine (section 3.2.2, appendix A); stages without parameters are left out."""
    parameters, facing = prepared.parameters, prepared.parameters.acceptance.facing
    vertices, anchors, deformation = warped.vertices, warped.anchors, None
    for name, stage in (("initial", parameters.initial), ("coarse", parameters.coarse)):
        if stage is not None:
            deformation, trace = _minimised(prepared, rigid, prepared.coarse, anchors, stage)
            anchors = deformation.points
            log.count(name)
            log.close(name, rigid.distance_of(prepared.coarse, anchors, facing), len(trace), trace)
    if deformation is not None:
        vertices = prepared.embedded.apply(anchors, deformation.scales, deformation.rotations)
        log.count("upsampling")
    if parameters.fine is None:
        return FineResult(vertices, rigid.distance_of(prepared.fine, vertices, facing))
    deformation, trace = _minimised(prepared, rigid, prepared.fine, vertices, parameters.fine)
    vertices = deformation.points
    if parameters.tightest > 0.0:
        mesh, relaxation = prepared.fine.mesh, parameters.relaxation
        vertices = relaxed(mesh, vertices, parameters.tightest, prepared.fixed, relaxation)
    log.count("fine")
    distance = rigid.distance_of(prepared.fine, vertices, facing)
    log.close("fine", distance, len(trace), trace)
    return FineResult(vertices, distance)


def assess(
    prepared: PreparedTemplate, rigid: RigidResult, fine: FineResult, log: RegistrationLog
) -> Registration:
    """The result in the scan's coordinates, with its metrics and what speaks against it."""
    scan, level, distance = rigid.prepared_scan.scan, prepared.fine, fine.distance
    metrics = {
        "distance_inside": distance.inside,
        "distance_outside": distance.outside,
        "overlap": float(distance.sound.mean()),
        **shape_metrics(level.mesh.vertices, fine.vertices, level.mesh.faces),
        **{f"residual_{name}": value for name, value in distance.residuals.items()},
    }
    log.count("metrics")
    is_fitted, acceptance = prepared.parameters.fine is not None, prepared.parameters.acceptance
    log.warn(judge_result(metrics, is_fitted, scan.id, acceptance))
    if is_fitted:
        found = {side: distance.sound[prepared.breasts[side]] for side in rigid.marks.nipple_sides}
        log.warn(judge_breasts({side: float(part.mean()) for side, part in found.items()}, acceptance))
    mesh = TriangleMesh(rigid.transform.apply(fine.vertices), level.mesh.faces)
    if scan.mesh.is_coloured:
        mesh = replace(mesh, colors=carried(mesh, rigid.prepared_scan.target.surface))
    return Registration(
        id=scan.id,
        mesh=mesh,
        transform=rigid.transform,
        template_mask=level.mask,
        scan_mask=rigid.mask.at(rigid.transform.inverse().apply(scan.mesh.vertices)),
        absent_side=rigid.mask.mirrored_side,
        stages=tuple(log.stages),
        metrics=MappingProxyType(metrics),
        seconds=MappingProxyType(dict(log.seconds)),
        warnings=tuple(log.warnings),
        parameters=prepared.parameters,
        template=prepared.template,
        landmarks=scan.landmarks,
        to_file=scan.to_file,
        estimated=rigid.prepared_scan.landmarks.only(scan.landmarks.unset),
    )


def _thinning(
    mesh: TriangleMesh, parameters: RegistrationParameters
) -> Callable[[TriangleMesh], TriangleMesh] | None:
    """How parts of the scan are made ready for geodesics, whose cost grows with its faces and whose lengths hardly do.

    Closest points are always those of the whole scan: points of the template slide ten times as far as their
    target moves.
    """
    if mesh.n_faces <= parameters.dense:
        return None
    return lambda part: thinned(without_pinches(part)[0], parameters.dense_edge)  # cutting out leaves pinches


def _start(prepared: PreparedTemplate, rigid: RigidResult) -> tuple[tuple[TriangleMesh, TriangleMesh], bool]:
    """The template, or the template without the breast that the scan has no landmarks of, whichever is closer.

    And whether the scan has a breast there.
    """
    side, whole = rigid.mask.mirrored_side, (prepared.fine.mesh, prepared.coarse.mesh)
    if not side or prepared.parameters.warp is None:
        return whole, False
    flat = prepared.without_breast(side)
    share = flat.height.share_in(rigid.target.surface, rigid.transform)
    if share < prepared.parameters.absent.present:
        return (flat.fine, flat.coarse), False
    return whole, True


def _minimised(
    prepared: PreparedTemplate, rigid: RigidResult, level: Level, points: Floats, stage: StageParameters
) -> tuple[Deformation, list[Trace]]:
    """One stage of the minimisation on one resolution of the template, from points (n, 3)."""
    from breastmorph.registration.minimiser import minimise  # loads numba

    masked = stage.masked and prepared.parameters.use_masks
    peak = prepared.peak * stage.mask_saturation if stage.normalised_mask else 1.0

    def scan_mask(points: Floats) -> Floats:
        return np.minimum(rigid.mask.at(points) / peak, 1.0) if masked else np.ones(len(points))

    template_mask = np.minimum(level.mask / peak, 1.0) if masked else np.ones(level.mesh.n_vertices)
    landmarks = _landmark_pulls(level, rigid.marks, stage)
    return minimise(level, points, rigid.target, template_mask, scan_mask, landmarks, stage)


def _landmark_pulls(level: Level, marks: Landmarks, parameters: StageParameters) -> LandmarkPulls:
    """Vertices of the landmarks that pull, where they belong, and how strongly they pull."""
    from breastmorph.registration.minimiser import LandmarkPulls

    chosen = [
        (level.landmark_ids[name], marks[name], share * _share_of_a_set_one(marks, name, parameters.set_sd))
        for stem, share in parameters.landmarks
        for name in (stem, f"{stem}_left", f"{stem}_right")
        if name in level.landmark_ids and name in marks and share > 0
    ]
    return LandmarkPulls(
        np.array([vertex for vertex, _, _ in chosen], dtype=np.int64),
        np.array([point for _, point, _ in chosen]).reshape(-1, 3),
        parameters.landmark_weight * np.array([share for _, _, share in chosen]),
    )


def _share_of_a_set_one(marks: Landmarks, name: str, set_sd: float) -> float:
    """How much a landmark pulls beside one that a person set: the vaguer it was found, the less."""
    found = marks.found.get(name)
    return 1.0 if found is None else 1.0 / (1.0 + (found.sd / set_sd) ** 2)


def with_estimates(prepared: PreparedTemplate, target: Target, landmarks: Landmarks) -> Landmarks:
    """A scan's landmarks and, after them, estimates of those that are not set; the same where all are.

    Parameters
    ----------
    prepared : PreparedTemplate
    target : Target
        The upright scan in its own coordinates.
    landmarks : Landmarks
        Sternal notch and at least one nipple.
    """
    wanted = [name for name in landmarks.unset if name in prepared.template.landmark_ids]
    if not wanted:
        return landmarks
    require_enough(landmarks)
    template, coarse, parameters = prepared.template.landmarks, prepared.coarse, prepared.parameters.estimates
    sternum = [name for name in STERNUM if name in landmarks]
    part = RigidPart(
        target,
        coarse.mesh,
        coarse.mask,
        lambda _, points: prepared.mask.at(points),
        template.array(sternum),
        landmarks.only(sternum),
    )
    start = _upright_start(template, landmarks, parameters.nipple_weight)
    transform, _ = align_by_sliding(part, start, parameters.rigid)
    warped, _ = prepared.warp_onto(
        target.seen_through(transform),
        (prepared.fine.mesh, coarse.mesh),
        landmarks.transformed(transform.inverse()),
        transform.scale,
    )
    guesses = transform.apply(warped[[prepared.fine.landmark_ids[name] for name in wanted]])
    for point, name in zip(guesses, wanted, strict=True):
        if name.startswith("lateral_pole"):  # by definition at the height of the nipple
            point[1] = landmarks[name.replace("lateral_pole", "nipple")][1]
    found = target.surface.closest(guesses).points
    return replace(landmarks, names=(*landmarks.names, *wanted), points=np.vstack([landmarks.points, found]))


def _upright_start(template: Landmarks, landmarks: Landmarks, nipple_weight: float) -> Similarity:
    """Size and place by the landmarks. The turn is none, both being upright: few landmarks give it worse."""
    shared = template.only(landmarks.names)
    weights = np.array([nipple_weight if name.startswith("nipple") else 1.0 for name in shared])

    def centred(points: Floats) -> Floats:
        return points - np.average(points, axis=0, weights=weights)

    source, goal = centred(shared.points), centred(landmarks.array(shared))
    scale = float((weights[:, None] * source * goal).sum() / (weights[:, None] * source**2).sum())
    return Similarity(np.eye(3), landmarks["sternal_notch"] - scale * template["sternal_notch"], scale)
