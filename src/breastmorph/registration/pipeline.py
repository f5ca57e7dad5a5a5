"""Registration of one scan: rigid, smooth start, coarse to fine. Prepared once per template, run per scan."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.machine import one_thread
from breastmorph.mask import IN_BREAST, BreastMask, measure_breasts
from breastmorph.mesh.geometry import Similarity, vertex_normals
from breastmorph.mesh.remeshing import thinned
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.minimiser import Deformation, Trace, fit
from breastmorph.registration.parameters import FitParameters, RegistrationParameters, RigidParameters
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
from breastmorph.registration.warp import slide_onto
from breastmorph.scan.anatomy import require_enough
from breastmorph.scan.landmarks import STERNUM, Landmarks
from breastmorph.scan.scan import Scan
from breastmorph.template import Template

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
        (template.array(held), landmarks.array(held)),
    )
    transform, _ = align_by_sliding(part, _upright_start(template, landmarks), RigidParameters())
    warped, _ = slide_onto(
        target.seen_through(transform),
        prepared.fine.mesh.vertices,
        coarse.mesh,
        prepared.sliding_basis,
        prepared.fine.landmark_ids,
        landmarks.transformed(transform.inverse()),
    )
    guesses = transform.apply(warped[[prepared.fine.landmark_ids[name] for name in wanted]])
    for point, name in zip(guesses, wanted, strict=True):
        if name.startswith("lateral_pole"):  # by definition at the height of the nipple
            point[1] = landmarks[name.replace("lateral_pole", "nipple")][1]
    found = target.surface.closest(guesses).points
    return Landmarks((*landmarks.names, *wanted), np.vstack([landmarks.points, found]))


def _upright_start(template: Landmarks, landmarks: Landmarks) -> Similarity:
    """Size and place by the landmarks. The turn is none, both being upright: few landmarks would tell it worse."""
    shared = template.only(landmarks.names)
    weights = np.array([_SOFT if name.startswith("nipple") else 1.0 for name in shared])
    source, goal = (_centred(points, weights) for points in (shared.points, landmarks.array(shared)))
    scale = float((weights[:, None] * source * goal).sum() / (weights[:, None] * source**2).sum())
    return Similarity(np.eye(3), landmarks["sternal_notch"] - scale * template["sternal_notch"], scale)


def _centred(points: Floats, weights: Floats) -> Floats:
    return points - np.average(points, axis=0, weights=weights)


# --------------------------------------------------------------------------------------------------------------------
# Registration of one scan: rigid, smooth start, coarse to fine. Prepared once per template, run per scan
# --------------------------------------------------------------------------------------------------------------------

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

    def register(self, scan: Scan) -> Registration:
        """Bend the template onto a scan.

        Raises
        ------
        MeshProblem, LandmarkProblem
            When the scan cannot be this template's: landmarks off the surface, sides swapped, not a torso.
        """
        with one_thread():
            return _Run(self._prepared, scan).result()


def register(
    template: Template, scan: Scan, parameters: RegistrationParameters | None = None
) -> Registration:
    """Bend a template onto one scan; for many scans make one :class:`Registrar`."""
    return Registrar(template, parameters).register(scan)


class _Run:
    """The stages of one scan. After the rigid one, all work happens in template coordinates."""

    def __init__(self, prepared: PreparedTemplate, scan: Scan) -> None:
        self.prepared, self.scan, self.parameters = prepared, scan, prepared.parameters
        self.seconds: dict[str, float] = {}
        self.stages: list[StageMetrics] = []
        self._clock = time.perf_counter()

        for_lengths = self._not_too_dense(scan.mesh)  # before the search tree takes its memory
        self._tick("geodesics")
        target = Target.of(scan.mesh)
        given, moved = landmarks_on_surface(scan.landmarks, target, scan.id)
        self.warnings = [*scan.warnings, *moved]
        self._tick("closest-point tree")
        self.landmarks = with_estimates(prepared, target, given)
        self.estimated = self.landmarks.only(scan.landmarks.unset)
        if len(self.estimated):
            self.warnings.append(
                f"landmarks not set: {', '.join(self.estimated)}; estimated with the template, for the mask and the "
                "start only"
            )
            self._tick("estimated landmarks")
        self.lengths = measure_breasts(for_lengths, self.landmarks)
        self._tick("geodesics")
        self.transform, iterations = self._rigid(target)
        self.target = target.seen_through(self.transform)
        self.marks = given.transformed(self.transform.inverse())
        self.warnings += judge_landmarks(self.marks)
        self.mask = self._mask_seen_through(self.transform)
        if self.mask.mirrored_side:
            self.warnings.append(
                f"{self.mask.mirrored_side} side absent: its mask is mirrored from the other side, its landmark "
                "pairs are void"
            )
        self._close_stage("rigid", prepared.coarse, prepared.coarse.mesh.vertices, iterations)
        self.warnings += judge_thorax(self.stages[-1].distance_outside, scan.id)

    def result(self) -> Registration:
        """The stages after the rigid one."""
        parameters, fine, basis = self.parameters, self.prepared.fine, self.prepared.basis
        start, coarse = self._start()
        vertices, anchors = start.vertices, coarse.vertices
        if basis is not None:
            vertices, anchors = slide_onto(
                self.target, vertices, coarse, basis, fine.landmark_ids, self.marks
            )
            self._close_stage("warp", self.prepared.coarse, anchors, basis.parameters.iterations)
        vertices = self._coarse_stages(vertices, anchors)
        if parameters.fine is not None:
            deformation, trace = self._fit(fine, vertices, parameters.fine)
            vertices = deformation.points
            inside, outside, sound, residuals = self._close_stage("fine", fine, vertices, len(trace), trace)
        else:
            inside, outside, sound, residuals = self._standing(fine, vertices)
        metrics = {
            "distance_inside": inside,
            "distance_outside": outside,
            "overlap": float(sound.mean()),
            **shape_metrics(fine.mesh.vertices, vertices, fine.mesh.faces),
            **{f"residual_{name}": value for name, value in residuals.items()},
        }
        self._tick("metrics")
        self.warnings += judge_result(metrics, parameters.fine is not None, self.scan.id)
        if parameters.fine is not None:
            self.warnings += judge_breasts(
                {side: float(sound[self.prepared.breasts[side]].mean()) for side in self.marks.nipple_sides}
            )
        return Registration(
            id=self.scan.id,
            mesh=TriangleMesh(self.transform.apply(vertices), fine.mesh.faces),
            transform=self.transform,
            template_mask=fine.mask,
            scan_mask=self.mask.at(self.transform.inverse().apply(self.scan.mesh.vertices)),
            absent_side=self.mask.mirrored_side,
            stages=tuple(self.stages),
            metrics=MappingProxyType(metrics),
            seconds=MappingProxyType(self.seconds),
            warnings=tuple(self.warnings),
            parameters=parameters,
            template=self.prepared.template,
            landmarks=self.scan.landmarks,
            to_file=self.scan.to_file,
            estimated=self.estimated,
        )

    # -- stages ------------------------------------------------------------------------------------------------

    def _rigid(self, target: Target) -> tuple[Similarity, int]:
        template, coarse = self.prepared.template, self.prepared.coarse
        parameters = self.parameters.rigid
        part = RigidPart(
            target,
            coarse.mesh,
            coarse.mask,
            lambda transform, points: self._mask_seen_through(transform).at(points),
            (template.landmarks.array(STERNUM), self.landmarks.array(STERNUM)),
        )
        begin = landmark_alignment(template.landmarks, self.landmarks, parameters)
        return (align_about_x if parameters.about_x else align_by_sliding)(part, begin, parameters)

    def _start(self) -> tuple[TriangleMesh, TriangleMesh]:
        """The template, or the template without the breast that the scan has no landmarks of, whichever is closer."""
        absent = self.mask.mirrored_side
        whole = self.prepared.fine.mesh, self.prepared.coarse.mesh
        if not absent or self.parameters.warp is None:
            return whole
        bare = self.prepared.without_breast(absent)
        if bare.height.share_in(self.target.surface, self.transform) < 0.5:
            return bare.fine, bare.coarse
        self.warnings.append(
            f"the {absent} side has no landmarks, yet its surface looks like a breast; annotate it if it is there"
        )
        return whole

    def _coarse_stages(self, vertices: Floats, anchors: Floats) -> Floats:
        deformation = None
        for name, parameters in (("initial", self.parameters.initial), ("coarse", self.parameters.coarse)):
            if parameters is not None:
                deformation, trace = self._fit(self.prepared.coarse, anchors, parameters)
                anchors = deformation.points
                self._close_stage(name, self.prepared.coarse, anchors, len(trace), trace)
        if deformation is None:
            return vertices
        fine = self.prepared.embedded.apply(anchors, deformation.scales, deformation.rotations)
        self._tick("upsampling")
        return fine

    def _fit(
        self, level: Level, points: Floats, parameters: FitParameters
    ) -> tuple[Deformation, list[Trace]]:
        rest = level.mesh.vertices if parameters.rest == "template" else points
        deformation = Deformation(level.cells, rest, points, level.system, parameters)
        masked = parameters.masked and self.parameters.use_masks
        peak = self.prepared.peak * parameters.mask_saturation if parameters.normalised_mask else 1.0
        trace = fit(
            deformation,
            self.target,
            np.minimum(level.mask / peak, 1.0) if masked else np.ones(level.mesh.n_vertices),
            (lambda q: np.minimum(self.mask.at(q) / peak, 1.0)) if masked else (lambda q: np.ones(len(q))),
            *self._landmark_pairs(level, parameters),
        )
        return deformation, trace

    def _landmark_pairs(self, level: Level, parameters: FitParameters) -> tuple[Ints, Floats, Floats]:
        """Vertices of the landmarks that pull, where they belong, and their shares of the pull."""
        chosen = [
            (level.landmark_ids[name], self.marks[name], share)
            for stem, share in parameters.landmarks
            for name in (stem, f"{stem}_left", f"{stem}_right")
            if name in level.landmark_ids and name in self.marks and share > 0
        ]
        return (
            np.array([vertex for vertex, _, _ in chosen], dtype=np.int64),
            np.array([point for _, point, _ in chosen]).reshape(-1, 3),
            np.array([share for _, _, share in chosen]),
        )

    def _not_too_dense(self, mesh: TriangleMesh) -> TriangleMesh:
        """The scan for geodesics, whose cost grows with its faces and whose lengths hardly do.

        Closest points are always those of the whole scan: points of the template slide ten times as far as their
        target moves.
        """
        return mesh if mesh.n_faces <= self.parameters.dense else thinned(mesh, self.parameters.dense_edge)

    def _mask_seen_through(self, transform: Similarity) -> BreastMask:
        """The scan's mask in template coordinates."""
        marks = self.landmarks.transformed(transform.inverse())
        return self.lengths.scaled(1.0 / transform.scale).mask(marks)

    # -- measures ----------------------------------------------------------------------------------------------

    def _close_stage(
        self, name: str, level: Level, points: Floats, iterations: int, trace: Sequence[Trace] = ()
    ) -> tuple[float, float, Bools, dict[str, float]]:
        """Keep how things stand after a stage; gives what :meth:`_standing` gives."""
        self._tick(name)
        standing = inside, outside, _, residuals = self._standing(level, points)
        self.stages.append(
            StageMetrics(
                name,
                self.seconds[name],
                iterations,
                inside,
                outside,
                MappingProxyType(residuals),
                tuple(trace),
            )
        )
        self._tick("metrics")
        return standing

    def _standing(self, level: Level, points: Floats) -> tuple[float, float, Bools, dict[str, float]]:
        """Mean distances to the scan in the breasts and outside, which points face it, landmarks' residuals (mm)."""
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
        return inside, outside, pairs.sound, residuals

    def _tick(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._clock
        self._clock = now
