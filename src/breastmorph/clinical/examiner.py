"""The one function that measures: a scan, a registered mesh, a model's shape, an edit or a prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from breastmorph.clinical.borders import (
    BorderFinder,
    SubjectLandmarks,
    distance_spread,
    height_landmarks,
    measure_heights,
    repeatability,
    spreads,
)
from breastmorph.clinical.distance_meter import DistanceMeter, measure_distances, section_length
from breastmorph.clinical.distances import DISTANCES, KINDS, PAIRS, TAPE
from breastmorph.clinical.examination import Examination, Symmetry, SymmetryMeter, both_sides
from breastmorph.clinical.measure_table import (
    Measure,
)
from breastmorph.clinical.patient import Patient
from breastmorph.clinical.skin_points import Reading, SkinLandmarks, reached
from breastmorph.clinical.volume import DEFINITIONS, VOLUME, BreastVolumes, reference_of
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.messages import Finding, note, warning
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, STERNUM, Landmarks, Scan
from breastmorph.template import Template

_Walls = Mapping[str, Floats]  # of each side, the points of its wall
_Readings = Mapping[tuple[str, str], Reading | Finding]  # by distance and kind


@dataclass(frozen=True, eq=False)
class PredictedSide:
    """A side of a shape, or both, that was not there but is predicted.

    Attributes
    ----------
    sides : tuple of str
    deviation : callable
        Standard deviation of a measure from its derivative by the vertices.
    """

    sides: tuple[str, ...]
    deviation: Callable[[Reading], float]

    def concerns(self, name: str) -> bool:
        """Whether a measure depends on it."""
        marks = DISTANCES[name].landmarks if name in DISTANCES else (name,)
        return any(mark.endswith(self.sides) for mark in marks)


class Examiner:
    """A template or a model's mean prepared to examine many shapes in its correspondence.

    Parameters
    ----------
    mesh : TriangleMesh
        Upright, in mm.
    landmark_ids : mapping from name to vertex
    mirror : (n,) int, optional
        The vertex at every vertex's mirror image.
    """

    def __init__(
        self, mesh: TriangleMesh, landmark_ids: Mapping[str, int], mirror: Ints | None = None
    ) -> None:
        self.mesh, self.ids, self._mirror = mesh, dict(landmark_ids), mirror

    def landmarks(
        self, shape: Floats, absent: str = "", annotated: Landmarks | None = None
    ) -> SubjectLandmarks:
        """What is measured between on a shape (n, 3): the subject's own landmarks, the others by their definition.

        A lateral pole that lies beyond the mesh is in neither of them.
        """
        own = reached(Surface(self.mesh.with_vertices(shape)), annotated) if annotated else None
        if isinstance(self._borders, BorderFinder):
            found = self._borders.landmarks(shape, self.ids, absent, own)
        elif own:
            skin = SkinLandmarks.on(Surface(self.mesh.with_vertices(shape)), own)
            found = SubjectLandmarks(skin, spreads(own.only(skin.names)))
        else:
            skin = SkinLandmarks.of_vertices(self.ids)
            found = SubjectLandmarks(skin, {name: repeatability(name) for name in skin.names})
        beyond = set(annotated.names) - set(own.names) if annotated and own else set()
        return found.without(absent).only(name for name in found.skin.names if name not in beyond)

    def measured(
        self,
        shape: Floats,
        landmarks: SubjectLandmarks,
        absent: str = "",
        kinds: Sequence[str] = KINDS,
        predicted: PredictedSide | None = None,
    ) -> tuple[Measure, ...]:
        """All measures of a shape (n, 3), upright, in mm, with landmarks on it.

        Every number that a command, a page, a sheet or a file shows comes from here, whatever the shape is: a
        registered scan, a model's mean, an edit or a prediction.

        Parameters
        ----------
        shape : (n, 3) float
        landmarks : SubjectLandmarks
            See :meth:`landmarks`; an edit has those of the shape before, which stick to its skin.
        absent : str
            The side without a breast, or empty.
        kinds : sequence of str
            Of distances. Tape lines take a second, the rest some milliseconds.
        predicted : PredictedSide, optional
            Measures of that side have the prediction's standard deviation.
        """
        # Preparing the whole surface takes most of the time, and only tape lines need it.
        meter = DistanceMeter(self.mesh.faces if TAPE in kinds else self._midline_faces, landmarks.skin)
        asked = [(one.name, kind) for one in DISTANCES.values() for kind in one.kinds if kind in kinds]
        distances = tuple(_with_sd(one, landmarks.sd) for one in meter.measures(shape, asked))
        walls: _Walls = {}
        if isinstance(self._volumes, BreastVolumes):  # once for all that asks for them
            walls = {side: self._volumes.walls[side].points(shape) for side in SIDES if side != absent}
        volumes = self._measured_volumes(shape, absent, walls)
        found = distances + self._others(shape, landmarks, absent, walls) + volumes
        if predicted is None:
            return found
        concerned = [one for one in distances if one.known and predicted.concerns(one.name)]
        read = meter.reads(shape, [(one.name, one.kind) for one in concerned])
        return tuple(
            self._of_prediction(one, shape, meter, read, predicted) if predicted.concerns(one.name) else one
            for one in found
        )

    def shape(
        self,
        name: str,
        shape: Floats,
        absent: str = "",
        source: str = "registered",
        annotated: Landmarks | None = None,
        landmarks: SubjectLandmarks | None = None,
        predicted: PredictedSide | None = None,
    ) -> Examination:
        """Examine a shape (n, 3), upright, in mm.

        ``annotated`` are the subject's own landmarks, ``landmarks`` such as stick to its skin already. Without them
        sternum and nipples are the template's vertices, and poles and folds are found by their definition.
        """
        landmarks = landmarks or self.landmarks(shape, absent, annotated)
        warnings = tuple(
            warning("not-reached", "the mesh does not reach {name:landmark}", name=mark)
            for mark in annotated or ()
            if mark.startswith("lateral_pole") and mark not in landmarks.skin
        )
        found = self.measured(shape, landmarks, absent, predicted=predicted)
        symmetry, reason = self._measured_symmetry(shape, absent)
        volumes = tuple(one for one in found if one.name in PAIRS[VOLUME])
        places = landmarks.at(shape)
        return Examination(
            id=name,
            source=source,
            absent=absent,
            distances=tuple(one for one in found if one.name in DISTANCES),
            volumes=volumes,
            uncertainties={one.side: one.sd for one in volumes if one.known},
            ptosis=both_sides(places),
            symmetry=symmetry,
            mesh=self.mesh.with_vertices(shape),
            symmetry_reason=reason,
            warnings=warnings,
            others=tuple(one for one in found if one.name not in (*DISTANCES, *PAIRS[VOLUME])),
            landmarks=places,
            borders=self._drawn(absent),
        )

    def scan(
        self, scan: Scan, registered: Floats, absent: str = "", warnings: tuple[Finding, ...] = ()
    ) -> Examination:
        """Examine a scan on its registered shape (n, 3), between its own landmarks."""
        found = self.shape(scan.id, registered, absent, "scan", scan.landmarks)
        return replace(found, warnings=(*warnings, *found.warnings))

    def distances(self, scan: Scan) -> Examination:
        """What a scan's landmarks tell without a registration, on its own surface."""
        reason = note("needs-registration", "needs a registration")
        nan = float("nan")
        sd = spreads(scan.landmarks)
        return Examination(
            id=scan.id,
            source="scan",
            absent="".join(scan.landmarks.absent_sides[:1]),
            distances=tuple(_with_sd(one, sd) for one in measure_distances(scan.mesh, scan.landmarks)),
            volumes=tuple(Measure(f"volume-{side}", "volume", nan, "cc", reason) for side in SIDES),
            uncertainties={},
            ptosis=both_sides(scan.landmarks),
            symmetry=None,
            mesh=None,
            symmetry_reason=reason,
            warnings=scan.warnings,
            others=measure_heights(scan.landmarks, sd),
            landmarks=scan.landmarks,
        )

    @cached_property
    def _borders(self) -> BorderFinder | Finding:
        try:
            return BorderFinder(self.mesh, self._landmarks)
        except BreastMorphError as error:
            return error.finding

    def _drawn(self, absent: str) -> tuple[Ints, ...]:
        if isinstance(self._volumes, Finding):
            return ()
        return tuple(wall.rim for side, wall in self._volumes.walls.items() if side != absent)

    @cached_property
    def _midline_faces(self) -> Ints:
        ids = [self.ids[name] for name in STERNUM if name in self.ids]
        if not ids:
            return self.mesh.faces
        across = self.mesh.vertices[:, 0] - self.mesh.vertices[ids, 0].mean()
        along: Ints = self.mesh.faces[(np.abs(across) < _MIDLINE)[self.mesh.faces].all(axis=1)]
        return along

    def _others(
        self, shape: Floats, landmarks: SubjectLandmarks, absent: str, walls: _Walls
    ) -> tuple[Measure, ...]:
        """Heights, areas, and the girth under the breasts."""
        places = landmarks.at(shape)
        out = list(measure_heights(places, landmarks.sd))
        nan = float("nan")
        for side in SIDES:
            reason = note("side-absent", "{side} side absent", side=side) if side == absent else None
            if reason is None and isinstance(self._volumes, Finding):
                reason = self._volumes
            if reason is None and isinstance(self._volumes, BreastVolumes):
                skin, base, sd = self._volumes.areas(shape, side, walls[side])
                out.append(Measure(f"surface-{side}", "area", skin, "cm2", None, sd, "border"))
                out.append(Measure(f"footprint-{side}", "area", base, "cm2", None, sd, "border"))
            else:
                out += [
                    Measure(f"{what}-{side}", "area", nan, "cm2", reason) for what in ("surface", "footprint")
                ]
        folds = [places[f"imf_{side}"][1] for side in SIDES if f"imf_{side}" in places]
        length = section_length(shape, self.mesh.faces, min(folds) - _UNDER) if folds else nan
        reason, sd = None, _GIRTH
        if length != length:  # NaN
            reason, sd = (
                note("needs-fold", "needs {names:landmark| and }", names=["imf_left", "imf_right"]),
                nan,
            )
        out.append(Measure("under-bust-seen", "tape", length, "mm", reason, sd, "surface"))
        return tuple(out)

    def _of_prediction(
        self, one: Measure, shape: Floats, meter: DistanceMeter, read: _Readings, predicted: PredictedSide
    ) -> Measure:
        """With the prediction's standard deviation; without any where it is not known."""
        if not one.known:
            return replace(one, predicted=True)
        reading: Reading | None = None
        if one.name in DISTANCES:
            known = read[one.name, one.kind]
            reading = known if isinstance(known, Reading) else None
        elif one.kind == "volume" and isinstance(self._volumes, BreastVolumes):
            reading = self._volumes.read(shape, one.side, one.name.removesuffix(f"-{one.side}"))
        elif one.kind == "height":
            ends = meter.landmarks.chosen(height_landmarks(one.name.removesuffix(f"-{one.side}"), one.side))
            reading = ends.reading(one.value, np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]))
        sd = predicted.deviation(reading) if reading is not None else float("nan")
        return replace(one, sd=sd, source="model" if sd == sd else "", predicted=True)

    @cached_property
    def _landmarks(self) -> Landmarks:
        return Landmarks.at_vertices(self.ids, self.mesh.vertices)

    @cached_property
    def volumes(self) -> BreastVolumes:
        """The volumes' borders and walls.

        Raises
        ------
        BreastMorphError
            The landmarks do not say where the breasts are, or the mesh shows too little chest.
        """
        return BreastVolumes(self.mesh, self._landmarks)

    @cached_property
    def _volumes(self) -> BreastVolumes | Finding:
        try:
            return self.volumes
        except BreastMorphError as error:
            return error.finding

    @cached_property
    def _symmetry(self) -> SymmetryMeter | Finding:
        try:
            return SymmetryMeter(self.mesh, self._landmarks, self._mirror)
        except BreastMorphError as error:
            return error.finding

    def _measured_volumes(self, shape: Floats, absent: str, walls: _Walls) -> tuple[Measure, ...]:
        """By every definition; the default one comes last."""
        out = []
        for definition in (*(one for one in DEFINITIONS if one != VOLUME), VOLUME):
            for side in SIDES:
                name, nan = f"{definition}-{side}", float("nan")
                if side == absent:
                    reason = note("side-absent", "{side} side absent", side=side)
                    out.append(Measure(name, "volume", nan, "cc", reason))
                elif isinstance(self._volumes, Finding):
                    out.append(Measure(name, "volume", nan, "cc", self._volumes))
                else:
                    volume = self._volumes.estimate(shape, side, definition, walls[side])
                    sd, source = volume.uncertainty, volume.source
                    out.append(Measure(name, "volume", volume.cc, "cc", None, sd, source))
        return tuple(out)

    def _measured_symmetry(self, shape: Floats, absent: str) -> tuple[Symmetry | None, Finding | None]:
        if absent:
            return None, note("side-absent", "{side} side absent", side=absent)
        if isinstance(self._symmetry, Finding):
            return None, self._symmetry
        return self._symmetry.of(np.asarray(shape)), None


@lru_cache(maxsize=4)
def examiner_of(known: Template | ShapeModel) -> Examiner:
    """A template or a model prepared to measure, kept for the next who asks."""
    mesh = known.mesh if isinstance(known, Template) else reference_of(known)
    return Examiner(mesh, known.landmark_ids, known.mirror)


def landmarks_of(model: ShapeModel, patient: Patient) -> SubjectLandmarks:
    """What a patient's measures run between, on her shape and on edits of it."""
    return examiner_of(model).landmarks(patient.shape, patient.absent_side, patient.landmarks)


_MIDLINE = 70.0  # mm beside the breastbone: where straight measures look for the skin of the midline
_UNDER = 5.0  # mm below the lower fold: where the girth is taken
_GIRTH = 5.0  # mm (sd): a tape lies so much higher or lower


def _with_sd(one: Measure, sd: Mapping[str, float]) -> Measure:
    """A distance with the standard deviation that its landmarks give it."""
    if not one.known:
        return one
    value, source = distance_spread(one.name, sd)
    return replace(one, sd=value, source=source)
