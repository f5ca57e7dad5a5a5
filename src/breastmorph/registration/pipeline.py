"""Registration of one scan: rigid, smooth start, coarse to fine. Prepared once per template, run per scan."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from breastmorph.errors import LandmarkProblem, MeshProblem
from breastmorph.mask import BreastLengths, measure_breasts
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh
from breastmorph.registration.absent import without_breast
from breastmorph.registration.cells import Cells, spokes_and_rims
from breastmorph.registration.embedded import EmbeddedDeformation
from breastmorph.registration.linear import EdgeSystem
from breastmorph.registration.minimiser import Deformation, Trace, fit
from breastmorph.registration.parameters import FitParameters, RegistrationParameters
from breastmorph.registration.result import IN_BREAST, Registration, StageMetrics, shape_metrics
from breastmorph.registration.rigid import (
    align_about_x,
    align_by_sliding,
    check_handedness,
    landmark_alignment,
)
from breastmorph.registration.target import Target
from breastmorph.registration.threads import one_thread
from breastmorph.registration.warp import slide_onto, warp_basis
from breastmorph.scan.landmarks import STERNUM, Landmarks
from breastmorph.scan.scan import Scan
from breastmorph.template import Template

_OFF_SURFACE = 20.0  # mm between a landmark and the scan: these are not this scan's landmarks
_NEAR_SURFACE = 8.0  # mm: worth a warning
_NO_TORSO = 25.0  # mm between the rigid template and the thorax: no torso, or not its landmarks (torsos: < 7)
_ODD_TORSO = 12.0  # mm: worth a warning
_TAKEN_OFF = 10.0  # mm between the template with and without a breast: there the two can be told apart
_FACING = 75.0  # degrees: normals of points that still face the scan, for the metrics


@dataclass(frozen=True, eq=False)
class _Level:
    """One resolution of the template with what the minimiser needs of it."""

    mesh: TriangleMesh
    landmark_ids: dict[str, int]
    cells: Cells
    system: EdgeSystem
    mask: Floats


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
        lengths = measure_breasts(template.mesh, template.landmarks)
        mask = lengths.mask(template.landmarks)
        self._fine = _level(template.mesh, dict(template.landmark_ids), mask.at)
        self._coarse = _level(template.coarse, dict(template.coarse_landmark_ids), mask.at)
        self._peak = float(self._fine.mask.max())
        self._mask_at = mask.at
        self._one_sided: dict[str, tuple[TriangleMesh, TriangleMesh]] = {}
        self._basis = None
        warp = self.parameters.warp
        if warp is not None:
            fine_mask, coarse_mask = self._fine.mask / self._peak, self._coarse.mask / self._peak
            if not self.parameters.use_masks:
                fine_mask, coarse_mask = np.ones_like(fine_mask), np.ones_like(coarse_mask)
            with one_thread():  # sums must not depend on the number of cores
                self._basis = warp_basis(
                    template.mesh.vertices,
                    template.coarse.vertices,
                    fine_mask,
                    coarse_mask,
                    template.landmarks.array(STERNUM),
                    warp,
                )
        self._embedded = (
            EmbeddedDeformation(template.mesh.vertices, template.coarse.vertices)
            if self.parameters.initial or self.parameters.coarse
            else None
        )

    def start(self, absent_side: str = "") -> tuple[TriangleMesh, TriangleMesh]:
        """The template and its coarse twin as a scan meets them: without the breast that the scan lacks."""
        meshes = self.template.mesh, self.template.coarse
        if not absent_side:
            return meshes
        if absent_side not in self._one_sided:
            fine, coarse = (
                without_breast(mesh, self._mask_at(mesh.vertices, absent_side), absent_side)
                for mesh in meshes
            )
            self._one_sided[absent_side] = fine, coarse
        return self._one_sided[absent_side]

    def register(self, scan: Scan) -> Registration:
        """Bend the template onto a scan.

        Raises
        ------
        MeshProblem, LandmarkProblem
            When the scan cannot be this template's: landmarks off the surface, sides swapped, not a torso.
        """
        with one_thread():
            return _Run(self, scan).result()


def register(
    template: Template, scan: Scan, parameters: RegistrationParameters | None = None
) -> Registration:
    """Bend a template onto one scan; for many scans make one :class:`Registrar`."""
    return Registrar(template, parameters).register(scan)


class _Run:
    """The stages of one scan; all work happens in template coordinates."""

    def __init__(self, registrar: Registrar, scan: Scan) -> None:
        self.prepared, self.scan, self.parameters = registrar, scan, registrar.parameters
        self.warnings: list[str] = []
        self.seconds: dict[str, float] = {}
        self.stages: list[StageMetrics] = []
        self._clock = time.perf_counter()

        self.target = Target(scan.mesh)
        self.landmarks = self._on_surface(scan.landmarks)
        self._tick("closest-point tree")
        self.lengths: BreastLengths = measure_breasts(scan.mesh, self.landmarks)
        self._tick("geodesics")
        self.transform = self._rigid()
        self.target = self.target.seen_through(self.transform)
        self.marks = self.landmarks.transformed(self.transform.inverse())
        mask = self.lengths.scaled(1.0 / self.transform.scale).mask(self.marks)
        self.mask_at, self.absent_side = mask.at, mask.mirrored_side
        if self.absent_side:
            self.warnings.append(
                f"{self.absent_side} side absent: its mask is mirrored from the other side, its landmark pairs "
                "are void"
            )
        self._close_stage("rigid", self.coarse_points(), self._rigid_iterations)
        self._judge_rigid(self.stages[-1])

    # -- stages ------------------------------------------------------------------------------------------------

    def result(self) -> Registration:
        template, parameters = self.prepared.template, self.parameters
        start, coarse = self._start()
        vertices, anchors = start.vertices, coarse.vertices
        if parameters.warp is not None and self.prepared._basis is not None:
            vertices, anchors = slide_onto(
                self.target,
                vertices,
                coarse,
                self.prepared._basis,
                template.landmark_ids,
                self.marks,
                parameters.warp,
            )
            self._close_stage("warp", anchors, parameters.warp.iterations)
        vertices = self._coarse_stages(vertices, anchors)
        if parameters.fine is not None:
            vertices, _, trace = self._fit(self.prepared._fine, vertices, parameters.fine)
            self._tick("fine")
        metrics = self._final_metrics(vertices)
        if parameters.fine is not None:
            self._append_stage("fine", self.seconds["fine"], metrics, trace)
        self._tick("metrics")
        self._judge(metrics)
        inverse = self.transform.inverse()
        return Registration(
            id=self.scan.id,
            mesh=TriangleMesh(self.transform.apply(vertices), template.mesh.faces),
            transform=self.transform,
            template_mask=self.prepared._fine.mask,
            scan_mask=self.mask_at(inverse.apply(self.scan.mesh.vertices)),
            absent_side=self.absent_side,
            stages=tuple(self.stages),
            metrics=MappingProxyType(metrics),
            seconds=MappingProxyType(self.seconds),
            warnings=tuple(self.warnings),
            parameters=parameters,
        )

    def coarse_points(self) -> Floats:
        return self.prepared.template.coarse.vertices

    def _rigid(self) -> Similarity:
        template, parameters = self.prepared.template, self.parameters.rigid
        begin = landmark_alignment(template.landmarks, self.landmarks, parameters)
        align = align_about_x if parameters.about_x else align_by_sliding

        def scan_mask(transform: Similarity, points: Floats) -> Floats:
            marks = self.landmarks.transformed(transform.inverse())
            return self.lengths.scaled(1.0 / transform.scale).mask(marks).at(points)

        sternum = (template.landmarks.array(STERNUM), self.landmarks.array(STERNUM))
        transform, self._rigid_iterations = align(
            self.target, template.coarse, self.prepared._coarse.mask, scan_mask, sternum, begin, parameters
        )
        return transform

    def _start(self) -> tuple[TriangleMesh, TriangleMesh]:
        """The template, or the template without the breast that the scan has no landmarks of, whichever is closer."""
        whole = self.prepared.start()
        if not self.absent_side or self.parameters.warp is None:
            return whole
        bare = self.prepared.start(self.absent_side)
        differs = np.linalg.norm(whole[1].vertices - bare[1].vertices, axis=1) > _TAKEN_OFF
        if not differs.any():
            return whole
        places = [self.transform.apply(mesh.vertices[differs]) for mesh in (whole[1], bare[1])]
        off = [self.target.surface.closest(points).distances.mean() for points in places]
        if off[0] < off[1]:
            self.warnings.append(
                f"the {self.absent_side} side has no landmarks, yet its surface looks like a breast; "
                "annotate it if it is there"
            )
            return whole
        return bare

    def _coarse_stages(self, vertices: Floats, anchors: Floats) -> Floats:
        stages = [("initial", self.parameters.initial), ("coarse", self.parameters.coarse)]
        deformation = None
        for name, parameters in stages:
            if parameters is None:
                continue
            anchors, deformation, trace = self._fit(self.prepared._coarse, anchors, parameters)
            self._close_stage(name, anchors, len(trace), trace)
        if deformation is None or self.prepared._embedded is None:
            return vertices
        fine = self.prepared._embedded.apply(deformation.points, deformation.scales, deformation.rotations)
        self._tick("upsampling")
        return fine

    def _fit(
        self, level: _Level, points: Floats, parameters: FitParameters
    ) -> tuple[Floats, Deformation, list[Trace]]:
        rest = level.mesh.vertices if parameters.rest == "template" else points
        deformation = Deformation(level.cells, rest, points, level.system, parameters)
        masked = parameters.masked and self.parameters.use_masks
        peak = self.prepared._peak * parameters.mask_saturation if parameters.normalised_mask else 1.0
        ones = np.ones(level.mesh.n_vertices)
        ids, targets, shares = self._landmark_pairs(level, parameters)
        trace = fit(
            deformation,
            self.target,
            np.minimum(level.mask / peak, 1.0) if masked else ones,
            (lambda q: np.minimum(self.mask_at(q) / peak, 1.0)) if masked else (lambda q: np.ones(len(q))),
            ids,
            targets,
            shares,
        )
        return deformation.points, deformation, trace

    def _landmark_pairs(self, level: _Level, parameters: FitParameters) -> tuple[Ints, Floats, Floats]:
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

    # -- checks and measures -----------------------------------------------------------------------------------

    def _on_surface(self, landmarks: Landmarks) -> Landmarks:
        found = self.target.surface.closest(landmarks.points)
        worst = int(found.distances.argmax())
        if found.distances[worst] > _OFF_SURFACE:
            raise LandmarkProblem(
                f"landmark {landmarks.names[worst]} lies {found.distances[worst]:.0f} mm off the scan's surface",
                "These look like the landmarks of another scan, or of another unit or frame",
                self.scan.id,
            )
        for name, distance in zip(landmarks.names, found.distances, strict=True):
            if distance > _NEAR_SURFACE:
                self.warnings.append(f"landmark {name} lies {distance:.0f} mm off the surface; moved onto it")
        outward = self.target.normals_at(found).sum(axis=0)
        check_handedness(landmarks, outward)
        return Landmarks(landmarks.names, found.points)

    def _residuals(self, points: Floats, ids: dict[str, int]) -> dict[str, float]:
        scale = self.transform.scale
        return {
            name: scale * float(np.linalg.norm(points[ids[name]] - self.marks[name]))
            for name in ids
            if name in self.marks
        }

    def _distances(self, points: Floats, level: _Level) -> tuple[float, float, float]:
        pairs = self.target.pairs(points, vertex_normals(points, level.mesh.faces), _FACING)
        inside = level.mask > IN_BREAST
        distances = pairs.distances * self.transform.scale
        means = [
            float(distances[pairs.sound & part].mean()) if (pairs.sound & part).any() else float("nan")
            for part in (inside, ~inside)
        ]
        return means[0], means[1], float(pairs.sound.mean())

    def _close_stage(
        self, name: str, anchors: Floats, iterations: int, trace: list[Trace] | None = None
    ) -> None:
        self._tick(name)
        inside, outside, _ = self._distances(anchors, self.prepared._coarse)
        residuals = self._residuals(anchors, self.prepared._coarse.landmark_ids)
        self.stages.append(
            StageMetrics(
                name,
                self.seconds[name],
                iterations,
                inside,
                outside,
                MappingProxyType(residuals),
                tuple(trace or ()),
            )
        )
        self._tick("metrics")

    def _append_stage(self, name: str, seconds: float, metrics: dict[str, float], trace: list[Trace]) -> None:
        residuals = {key[9:]: value for key, value in metrics.items() if key.startswith("residual_")}
        self.stages.append(
            StageMetrics(
                name,
                seconds,
                len(trace),
                metrics["distance_inside"],
                metrics["distance_outside"],
                MappingProxyType(residuals),
                tuple(trace),
            )
        )

    def _final_metrics(self, vertices: Floats) -> dict[str, float]:
        level = self.prepared._fine
        inside, outside, overlap = self._distances(vertices, level)
        metrics = {"distance_inside": inside, "distance_outside": outside, "overlap": overlap}
        metrics |= shape_metrics(level.mesh.vertices, vertices, level.mesh.faces)
        residuals = self._residuals(vertices, level.landmark_ids)
        return metrics | {f"residual_{name}": value for name, value in residuals.items()}

    def _judge_rigid(self, stage: StageMetrics) -> None:
        gap = stage.distance_outside
        if not gap < _NO_TORSO:
            raise MeshProblem(
                "the template does not find the thorax"
                + (
                    f" (it stays {gap:.0f} mm away)"
                    if np.isfinite(gap)
                    else " (no part of it faces the scan)"
                ),
                "This does not look like a torso seen from the front, or the landmarks are not its own",
                self.scan.id,
            )
        if gap > _ODD_TORSO:
            self.warnings.append(f"unusual thorax: {gap:.0f} mm from the template after rigid alignment")

    def _judge(self, metrics: dict[str, float]) -> None:
        if metrics["overlap"] < 0.5:
            raise MeshProblem(
                f"only {100 * metrics['overlap']:.0f} % of the template finds the scan's surface",
                "The scan shows too little of the chest, or the landmarks are not its own",
                self.scan.id,
            )
        if metrics["overlap"] < 0.75:
            self.warnings.append(
                f"poor overlap: {100 * metrics['overlap']:.0f} % of the template finds the scan"
            )
        if metrics["distance_inside"] > 1.0 and self.parameters.fine is not None:
            self.warnings.append(f"breasts end {metrics['distance_inside']:.1f} mm from the scan on average")
        for side in ("left", "right"):
            residual = metrics.get(f"residual_nipple_{side}", 0.0)
            if residual > 2.0 and self.parameters.fine is not None:
                self.warnings.append(f"landmark nipple_{side} ends {residual:.1f} mm off")
        if metrics["flipped_percent"] > 0.05:
            self.warnings.append(f"folded triangles: {metrics['flipped_percent']:.2f} %")
        if metrics["angle_distortion"] > 14.0:
            self.warnings.append(
                f"strong distortion: angles change by {metrics['angle_distortion']:.0f} degrees on average; are these "
                "the landmarks of this scan?"
            )

    def _tick(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + now - self._clock
        self._clock = now


def _level(mesh: TriangleMesh, ids: dict[str, int], mask: Callable[[Floats], Floats]) -> _Level:
    cells = spokes_and_rims(mesh.faces, mesh.n_vertices)
    return _Level(mesh, ids, cells, EdgeSystem(cells.edges, mesh.n_vertices), mask(mesh.vertices))
