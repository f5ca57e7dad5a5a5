"""Registration of one scan: rigid, smooth start, coarse to fine. Prepared once per template, run per scan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import Finding, warning
from breastmorph.foundation.machine import one_thread
from breastmorph.mask import IN_BREAST, BreastLengths, BreastMask, measure_breasts
from breastmorph.mesh.geometry import Similarity, vertex_normals, without_pinches
from breastmorph.mesh.remeshing import thinned
from breastmorph.mesh.skin import carried
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.minimiser import Deformation, Trace, evened, fit
from breastmorph.registration.parameters import RegistrationParameters, RigidParameters, StageParameters
from breastmorph.registration.prepared import Level, PreparedTemplate
from breastmorph.registration.result import (
    Registration,
    StageMetrics,
    judge_breasts,
    judge_landmarks,
    judge_result,
    judge_thorax,
    landmarks_on_surface,
    shape_metrics,
)
from breastmorph.registration.rigid import (
    RigidPart,
    Target,
    align_about_x,
    align_by_sliding,
    landmark_alignment,
)
from breastmorph.registration.warp import Lesson
from breastmorph.scan.anatomy import require_enough
from breastmorph.scan.scan import STERNUM, Landmarks, Scan
from breastmorph.template import Template

_FACING = 75.0  # degrees: normals of points that still face the scan, for the metrics


class Registrar:
    """A template prepared for many scans.

    Parameters
    ----------
    template : Template
    parameters : RegistrationParameters, optional

    Notes
    -----
    Keeps a factorisation between scans, so one object must not be used from two threads at once.
    """

    def __init__(self, template: Template, parameters: RegistrationParameters | None = None) -> None:
        self.template = template
        self.parameters = parameters or RegistrationParameters()
        self._prepared = PreparedTemplate(template, self.parameters)

    def register(self, scan: Scan, lessons: Sequence[Lesson] = ()) -> Registration:
        """Bend the template onto a scan.

        Parameters
        ----------
        scan : Scan
        lessons : sequence of Lesson
            What was taught about the warp's priors by people of whom the scan is none; see ``batch.learning``.

        Raises
        ------
        MeshProblem, LandmarkProblem
            When the scan cannot be this template's: landmarks off the surface, sides swapped, not a torso.
        """
        with one_thread():
            return bent_onto(self._prepared, scan, lessons)


def register(
    template: Template, scan: Scan, parameters: RegistrationParameters | None = None
) -> Registration:
    """Bend a template onto one scan; for many scans make one :class:`Registrar`."""
    return Registrar(template, parameters).register(scan)


def bent_onto(prepared: PreparedTemplate, scan: Scan, lessons: Sequence[Lesson] = ()) -> Registration:
    """The method: five stages, each from values to a value. Behind the rigid one all is in template coordinates."""
    seen = look_at(prepared, scan)
    laid = lay_on(prepared, seen, lessons)
    slid = slide(prepared, laid, lessons)
    bent = refine(prepared, laid, slid)
    return judge(prepared, laid, bent)


# --------------------------------------------------------------------------------------------------------------------
# What the stages hand on
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Report:
    """What the stages say of themselves: when the last step ended, seconds by step, metrics, warnings."""

    clock: float
    seconds: Mapping[str, float] = field(default_factory=dict)
    stages: tuple[StageMetrics, ...] = ()
    warnings: tuple[Finding, ...] = ()

    def ticked(self, step: str) -> Report:
        """With the time since the last step counted for this one."""
        now = time.perf_counter()
        spent = self.seconds.get(step, 0.0) + now - self.clock
        return replace(self, clock=now, seconds={**self.seconds, step: spent})

    def warned(self, warnings: Iterable[Finding]) -> Report:
        """With more warnings."""
        return replace(self, warnings=(*self.warnings, *warnings))

    def closed(self, name: str, standing: Standing, iterations: int, trace: Sequence[Trace] = ()) -> Report:
        """With a stage that ended at the last tick and stands so."""
        stage = StageMetrics(
            name,
            self.seconds[name],
            iterations,
            standing.inside,
            standing.outside,
            MappingProxyType(dict(standing.residuals)),
            tuple(trace),
        )
        return replace(self, stages=(*self.stages, stage)).ticked("metrics")


@dataclass(frozen=True, eq=False)
class Standing:
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
class Seen:
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
    report : Report
    """

    scan: Scan
    target: Target
    given: Landmarks
    landmarks: Landmarks
    lengths: BreastLengths
    report: Report

    def mask_through(self, transform: Similarity) -> BreastMask:
        """The scan's mask in template coordinates."""
        marks = self.landmarks.transformed(transform.inverse())
        return self.lengths.scaled(1.0 / transform.scale).mask(marks)


@dataclass(frozen=True, eq=False)
class Laid:
    """A scan as the template sees it after the rigid stage.

    Attributes
    ----------
    seen : Seen
    transform : Similarity
        From template to scan coordinates.
    target : Target
    marks : Landmarks
        Those that are set.
    mask : BreastMask
    report : Report
    """

    seen: Seen
    transform: Similarity
    target: Target
    marks: Landmarks
    mask: BreastMask
    report: Report

    def standing(self, level: Level, points: Floats) -> Standing:
        """How points (n, 3) of a resolution of the template lie to the scan."""
        scale = self.transform.scale
        pairs = self.target.pairs(points, vertex_normals(points, level.mesh.faces), _FACING)
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
        return Standing(inside, outside, pairs.sound, residuals)


@dataclass(frozen=True, eq=False)
class Slid:
    """The template's vertices and those of its coarse twin after the smooth start, (n, 3) and (k, 3)."""

    vertices: Floats
    anchors: Floats
    report: Report


@dataclass(frozen=True, eq=False)
class Bent:
    """The template's vertices at the end, (n, 3), and how they stand."""

    vertices: Floats
    standing: Standing
    report: Report


# --------------------------------------------------------------------------------------------------------------------
# The stages
# --------------------------------------------------------------------------------------------------------------------


def look_at(prepared: PreparedTemplate, scan: Scan) -> Seen:
    """The scan with its search tree, its landmarks on the surface and its mask's lengths (section 3.1)."""
    report = Report(time.perf_counter(), warnings=tuple(scan.warnings))
    target = Target.of(scan.mesh)
    given, moved = landmarks_on_surface(scan.trusted, target, scan.id)
    report = report.warned(moved).ticked("closest-point tree")
    landmarks = with_estimates(prepared, target, given)
    if len(landmarks) > len(given):
        estimated = list(landmarks.only(scan.landmarks.unset))
        report = report.warned([warning("landmarks-estimated", names=estimated)])
        report = report.ticked("estimated landmarks")
    lengths = measure_breasts(scan.mesh, landmarks, _thinning(scan.mesh, prepared.parameters))
    return Seen(scan, target, given, landmarks, lengths, report.ticked("geodesics"))


def lay_on(prepared: PreparedTemplate, seen: Seen, lessons: Sequence[Lesson] = ()) -> Laid:
    """The similarity that brings the template to the scan (section 3.2.1), twice where a sternum was found, not set."""
    laid = laid_by_thorax(prepared, seen)
    found = any(end in seen.scan.landmarks.found for end in STERNUM)
    if found and prepared.basis is not None and not prepared.knows_bodies:
        return laid_by_warp(prepared, laid, lessons)
    return laid


def laid_by_thorax(prepared: PreparedTemplate, seen: Seen) -> Laid:
    """The similarity by sternum and thorax."""
    template, coarse, parameters = prepared.template, prepared.coarse, prepared.parameters.rigid
    part = RigidPart(
        seen.target,
        coarse.mesh,
        coarse.mask,
        lambda transform, points: seen.mask_through(transform).at(points),
        template.landmarks.array(STERNUM),
        seen.landmarks.only(STERNUM),
    )
    begin = landmark_alignment(template.landmarks, seen.landmarks, parameters)
    align = align_about_x if parameters.about_x else align_by_sliding
    transform, iterations = align(part, begin, parameters)
    marks = seen.given.transformed(transform.inverse())
    mask = seen.mask_through(transform)
    report = seen.report.warned(judge_landmarks(marks))
    if mask.mirrored_side:
        report = report.warned([warning("side-mirrored", side=mask.mirrored_side)])
    laid = Laid(seen, transform, seen.target.seen_through(transform), marks, mask, report.ticked("rigid"))
    standing = laid.standing(coarse, coarse.mesh.vertices)
    report = laid.report.closed("rigid", standing, iterations)
    return replace(laid, report=report.warned(judge_thorax(standing.outside, seen.scan.id)))


# Times the variance that a found xiphoid has in the warp: no skin shows it, and the nets read it off the rest of the
# body as the warp itself does, so half of what it says is told already.
_TOLD_TWICE = 4.0


def laid_by_warp(prepared: PreparedTemplate, laid: Laid, lessons: Sequence[Lesson] = ()) -> Laid:
    """The similarity once more, read off the warped thorax, where the ends of the sternum were found and hold badly.

    Smoothness asks for the shortest way from wherever the template lies, so its best place is where the warped thorax
    is nearest. What was learnt of trunks is seen from the sternum: with that prior the first place is kept.
    """
    coarse, seen, vague = prepared.coarse, laid.seen, dict(laid.marks.found)
    if (told := vague.get("xiphoid")) is not None:
        vague["xiphoid"] = replace(told, covariance=_TOLD_TWICE * told.covariance)
    laid = replace(laid, marks=replace(laid.marks, found=vague))
    slid = slide(prepared, laid, lessons)
    breast = prepared.peak * prepared.functions.parameters.breast_saturation
    thorax = 1.0 - np.minimum(coarse.mask / breast, 1.0)
    transform = Similarity.fit(coarse.mesh.vertices, laid.transform.apply(slid.anchors), thorax)
    *before, rigid = laid.report.stages
    report = replace(slid.report, stages=tuple(before), warnings=laid.report.warnings).ticked("rigid")
    again = replace(
        laid,
        transform=transform,
        target=seen.target.seen_through(transform),
        marks=laid.marks.transformed(transform.inverse().after(laid.transform)),
        mask=seen.mask_through(transform),
    )
    standing = again.standing(coarse, coarse.mesh.vertices)
    return replace(again, report=report.closed("rigid", standing, rigid.iterations))


def slide(prepared: PreparedTemplate, laid: Laid, lessons: Sequence[Lesson] = ()) -> Slid:
    """The smooth start: a warp that slides along the scan; the template itself where the parameters have none."""
    (fine, coarse), report = _start(prepared, laid)
    basis = prepared.basis
    if basis is None:
        return Slid(fine.vertices, coarse.vertices, report)
    scale = laid.transform.scale
    vertices, anchors = prepared.slid_onto(laid.target, (fine, coarse), laid.marks, scale, lessons, laid.mask)
    report = report.ticked("warp")
    standing = laid.standing(prepared.coarse, anchors)
    warp = basis.parameters
    rounds = warp.iterations if prepared.whole_basis is None else 2 * warp.rounds_twice
    return Slid(vertices, anchors, report.closed("warp", standing, rounds))


def refine(prepared: PreparedTemplate, laid: Laid, slid: Slid) -> Bent:
    """Minimisation of F, coarse to fine (section 3.2.2, appendix A); stages without parameters are left out."""
    parameters = prepared.parameters
    vertices, anchors, report, deformation = slid.vertices, slid.anchors, slid.report, None
    for name, stage in (("initial", parameters.initial), ("coarse", parameters.coarse)):
        if stage is not None:
            deformation, trace = _minimised(prepared, laid, prepared.coarse, anchors, stage)
            anchors, report = deformation.points, report.ticked(name)
            report = report.closed(name, laid.standing(prepared.coarse, anchors), len(trace), trace)
    if deformation is not None:
        vertices = prepared.embedded.apply(anchors, deformation.scales, deformation.rotations)
        report = report.ticked("upsampling")
    if parameters.fine is None:
        return Bent(vertices, laid.standing(prepared.fine, vertices), report)
    deformation, trace = _minimised(prepared, laid, prepared.fine, vertices, parameters.fine)
    vertices = deformation.points
    if parameters.tightest > 0.0:
        vertices = evened(prepared.fine.mesh, vertices, parameters.tightest, prepared.held)
    report = report.ticked("fine")
    standing = laid.standing(prepared.fine, vertices)
    return Bent(vertices, standing, report.closed("fine", standing, len(trace), trace))


def judge(prepared: PreparedTemplate, laid: Laid, bent: Bent) -> Registration:
    """The result in the scan's coordinates, with its metrics and what speaks against it."""
    scan, fine, standing = laid.seen.scan, prepared.fine, bent.standing
    metrics = {
        "distance_inside": standing.inside,
        "distance_outside": standing.outside,
        "overlap": float(standing.sound.mean()),
        **shape_metrics(fine.mesh.vertices, bent.vertices, fine.mesh.faces),
        **{f"residual_{name}": value for name, value in standing.residuals.items()},
    }
    is_fitted = prepared.parameters.fine is not None
    report = bent.report.ticked("metrics").warned(judge_result(metrics, is_fitted, scan.id))
    if is_fitted:
        found = {side: standing.sound[prepared.breasts[side]] for side in laid.marks.nipple_sides}
        report = report.warned(judge_breasts({side: float(part.mean()) for side, part in found.items()}))
    mesh = TriangleMesh(laid.transform.apply(bent.vertices), fine.mesh.faces)
    if scan.mesh.is_coloured:
        mesh = replace(mesh, colors=carried(mesh, laid.seen.target.surface))
    return Registration(
        id=scan.id,
        mesh=mesh,
        transform=laid.transform,
        template_mask=fine.mask,
        scan_mask=laid.mask.at(laid.transform.inverse().apply(scan.mesh.vertices)),
        absent_side=laid.mask.mirrored_side,
        stages=report.stages,
        metrics=MappingProxyType(metrics),
        seconds=MappingProxyType(dict(report.seconds)),
        warnings=report.warnings,
        parameters=prepared.parameters,
        template=prepared.template,
        landmarks=scan.landmarks,
        to_file=scan.to_file,
        estimated=laid.seen.landmarks.only(scan.landmarks.unset),
    )


# --------------------------------------------------------------------------------------------------------------------
# Steps of the stages
# --------------------------------------------------------------------------------------------------------------------


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


def _start(prepared: PreparedTemplate, laid: Laid) -> tuple[tuple[TriangleMesh, TriangleMesh], Report]:
    """The template, or the template without the breast that the scan has no landmarks of, whichever is closer."""
    absent, whole = laid.mask.mirrored_side, (prepared.fine.mesh, prepared.coarse.mesh)
    if not absent or prepared.parameters.warp is None:
        return whole, laid.report
    bare = prepared.without_breast(absent)
    if bare.height.share_in(laid.target.surface, laid.transform) < 0.5:
        return (bare.fine, bare.coarse), laid.report
    return whole, laid.report.warned([warning("breast-without-landmarks", side=absent)])


def _minimised(
    prepared: PreparedTemplate, laid: Laid, level: Level, points: Floats, parameters: StageParameters
) -> tuple[Deformation, list[Trace]]:
    """One stage of the minimisation on one resolution of the template, from points (n, 3)."""
    rest = level.mesh.vertices if parameters.rest == "template" else points
    deformation = Deformation(level.cells, rest, points, level.system, parameters)
    masked = parameters.masked and prepared.parameters.use_masks
    peak = prepared.peak * parameters.mask_saturation if parameters.normalised_mask else 1.0
    trace = fit(
        deformation,
        laid.target,
        np.minimum(level.mask / peak, 1.0) if masked else np.ones(level.mesh.n_vertices),
        (lambda q: np.minimum(laid.mask.at(q) / peak, 1.0)) if masked else (lambda q: np.ones(len(q))),
        *_landmark_pairs(level, laid.marks, parameters),
    )
    return deformation, trace


def _landmark_pairs(
    level: Level, marks: Landmarks, parameters: StageParameters
) -> tuple[Ints, Floats, Floats]:
    """Vertices of the landmarks that pull, where they belong, and their shares of the pull."""
    chosen = [
        (level.landmark_ids[name], marks[name], share * _belief(marks, name))
        for stem, share in parameters.landmarks
        for name in (stem, f"{stem}_left", f"{stem}_right")
        if name in level.landmark_ids and name in marks and share > 0
    ]
    return (
        np.array([vertex for vertex, _, _ in chosen], dtype=np.int64),
        np.array([point for _, point, _ in chosen]).reshape(-1, 3),
        np.array([share for _, _, share in chosen]),
    )


_SET = 2.0  # mm to which a person sets a landmark


def _belief(marks: Landmarks, name: str) -> float:
    """How much a landmark pulls beside one that a person set: the vaguer it was found, the less."""
    found = marks.found.get(name)
    return 1.0 if found is None else 1.0 / (1.0 + (found.sd / _SET) ** 2)


# --------------------------------------------------------------------------------------------------------------------
# Landmarks that nobody set: where the template puts them once it lies on those that are set
# --------------------------------------------------------------------------------------------------------------------

_SOFT = 0.3  # weight of the nipples beside bone, for the first guess of the size


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
    template, coarse = prepared.template.landmarks, prepared.coarse
    held = [name for name in STERNUM if name in landmarks]
    part = RigidPart(
        target,
        coarse.mesh,
        coarse.mask,
        lambda _, points: prepared.mask.at(points),
        template.array(held),
        landmarks.only(held),
    )
    transform, _ = align_by_sliding(part, _upright_start(template, landmarks), RigidParameters())
    warped, _ = prepared.slid_onto(
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


def _upright_start(template: Landmarks, landmarks: Landmarks) -> Similarity:
    """Size and place by the landmarks. The turn is none, both being upright: few landmarks would tell it worse."""
    shared = template.only(landmarks.names)
    weights = np.array([_SOFT if name.startswith("nipple") else 1.0 for name in shared])
    source, goal = (_centred(points, weights) for points in (shared.points, landmarks.array(shared)))
    scale = float((weights[:, None] * source * goal).sum() / (weights[:, None] * source**2).sum())
    return Similarity(np.eye(3), landmarks["sternal_notch"] - scale * template["sternal_notch"], scale)


def _centred(points: Floats, weights: Floats) -> Floats:
    return points - np.average(points, axis=0, weights=weights)
