"""An examination: how low the nipples stand, how alike the sides are, and all measures of one subject together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from breastmorph.clinical.distances import SkinPoints, reached
from breastmorph.clinical.measures import Gauge, Measure, MeasureTable, asymmetries, measure_distances
from breastmorph.clinical.missing_region import NOT_SYMMETRIC
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, Finding, MeshProblem, sentences, warning
from breastmorph.foundation.files import plain
from breastmorph.foundation.words import Door
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, face_normals, vertex_areas
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.model.regions import breast_regions
from breastmorph.scan.scan import SIDES, Landmarks, Scan

# --------------------------------------------------------------------------------------------------------------------
# Ptosis: how low the nipple stands, and Regnault's grade where the fold is known
# --------------------------------------------------------------------------------------------------------------------

UNKNOWN = "not determinable"
_SLIGHT, _MODERATE = 10.0, 30.0  # mm below the fold, Regnault 1976
_AT_CONTOUR = 5.0  # mm above the lower pole: the nipple is at the lower contour of the breast


@dataclass(frozen=True)
class Ptosis:
    """One breast's ptosis, on an upright patient.

    Attributes
    ----------
    side : str
    above_lower_pole : float
        Height of the nipple above the lowest point of the breast, mm; NaN where one is not known.
    above_fold : float
        Height of the nipple above the inframammary fold, mm, negative below; NaN where the fold is not known.
    grade : str
        "none", "I", "II", "III", or "not determinable".
    reason : Finding, optional
        Why there is no grade.
    """

    side: str
    above_lower_pole: float
    above_fold: float
    grade: str
    reason: Finding | None = None


def ptosis(landmarks: Landmarks, side: str) -> Ptosis:
    """Ptosis of one side from upright landmarks in mm.

    Regnault's grades: I the nipple at the level of the fold or up to 1 cm below; II up to 3 cm below; III deeper, or
    below the fold and at the lower contour of the breast. They need the landmark ``imf``: a fold is hidden behind a
    breast that hangs, so it is not guessed.
    """
    nipple, pole, fold = (landmarks.get(f"{part}_{side}") for part in ("nipple", "lower_pole", "imf"))
    nan = float("nan")
    if nipple is None:
        return Ptosis(side, nan, nan, UNKNOWN, Finding("needs-landmarks", {"names": [f"nipple_{side}"]}))
    above_pole = float(nipple[1] - pole[1]) if pole is not None else nan
    if fold is None:
        return Ptosis(side, above_pole, nan, UNKNOWN, Finding("needs-fold/grade", {"name": f"imf_{side}"}))
    above_fold = float(nipple[1] - fold[1])
    return Ptosis(side, above_pole, above_fold, _grade(above_fold, above_pole))


def _grade(above_fold: float, above_pole: float) -> str:
    if above_fold > 0.0:
        return "none"
    if -above_fold > _MODERATE or above_pole < _AT_CONTOUR:
        return "III"
    return "II" if -above_fold > _SLIGHT else "I"


def both_sides(landmarks: Landmarks) -> tuple[Ptosis, ...]:
    """Left, then right."""
    return tuple(ptosis(landmarks, side) for side in SIDES)


# --------------------------------------------------------------------------------------------------------------------
# Symmetry of the breasts: each against the mirror image of the other, after the thorax has been laid on its own
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Symmetry:
    """How far a subject's breasts differ in shape.

    Attributes
    ----------
    deviation : float
        Mean distance in mm between the breasts and the mirror image of the other side, over the skin of both.
    sides : mapping from side to float
        The same, of one side.
    thorax : float
        The same of the thorax: how well the mirror image could be laid on, mm.
    signed : (n,) float
        By vertex: mm the skin lies outside (+) or inside (-) the mirror image of the other side; NaN off the breasts.
    mirrored : TriangleMesh
        The mirror image, laid on the subject.
    """

    deviation: float
    sides: Mapping[str, float]
    thorax: float
    signed: Floats
    mirrored: TriangleMesh


class SymmetryGauge:
    """Symmetry of shapes in correspondence: prepared once per template or model.

    Parameters
    ----------
    mesh : TriangleMesh
        The template or the model's mean, upright, in mm.
    landmarks : Landmarks
        As for :func:`breastmorph.model.regions.breast_regions`.
    mirror : (n,) int, optional
        The vertex at every vertex's mirror image; found on the mesh, which must be nearly symmetric, when not given.
    """

    def __init__(self, mesh: TriangleMesh, landmarks: Landmarks, mirror: Ints | None = None) -> None:
        self.regions = breast_regions(mesh, landmarks)
        self._faces = mesh.faces
        self._thorax = ~(self.regions["left"] | self.regions["right"])
        self._weights = vertex_areas(mesh.vertices, mesh.faces)[self._thorax]
        self._twin = SkinPoints.of_vertices(mirror) if mirror is not None else _twins(mesh, landmarks)

    def of(self, shape: Floats) -> Symmetry:
        """Symmetry of a shape (n, 3) in mm and in any pose."""
        reflected = self._twin.at(shape) * MIRROR
        # The breasts take no part: a larger breast must not turn the mirror image towards itself.
        lay = Similarity.fit(reflected[self._thorax], shape[self._thorax], self._weights, with_scale=False)
        mirrored = TriangleMesh(lay.apply(reflected), self._faces)
        found = Surface(mirrored).closest(shape)
        normals = face_normals(mirrored.vertices, mirrored.faces)[found.faces]
        outside = ((shape - found.points) * normals).sum(axis=1) >= 0.0
        areas = vertex_areas(shape, self._faces)

        def mean(part: np.ndarray) -> float:
            return float(np.average(found.distances[part], weights=areas[part]))

        return Symmetry(
            mean(~self._thorax),
            MappingProxyType({side: mean(self.regions[side]) for side in SIDES}),
            mean(self._thorax),
            np.where(self._thorax, np.nan, np.where(outside, found.distances, -found.distances)),
            mirrored,
        )


def _twins(mesh: TriangleMesh, landmarks: Landmarks) -> SkinPoints:
    """The place of every vertex's mirror image on a nearly symmetric mesh."""
    middle = landmarks["sternal_notch"][0]
    across = mesh.vertices * MIRROR + [2.0 * middle, 0.0, 0.0]
    surface = Surface(mesh)
    found = surface.closest(across)
    if found.distances.mean() > NOT_SYMMETRIC:
        raise MeshProblem(
            f"the mesh is not symmetric: it lies {found.distances.mean():.0f} mm from its mirror image",
            "Symmetry needs a symmetric template, upright and centred on the sternum",
        )
    return SkinPoints(mesh.faces[found.faces], found.weights)


# --------------------------------------------------------------------------------------------------------------------
# An examination: all measures of one subject together, from a scan, a registered mesh or a model's shape
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Examination:
    """One subject's measures.

    Attributes
    ----------
    id : str
    source : str
        "scan", "registered" or "model".
    absent : str
        The side without a breast, or empty.
    distances : tuple of Measure
    volumes : tuple of Measure
        Of both sides, cc.
    uncertainties : mapping from side to float
        Of the volumes, cc; empty where there are none.
    ptosis : tuple of Ptosis
    symmetry : Symmetry, optional
    mesh : TriangleMesh, optional
        What the symmetry's map belongs to.
    symmetry_reason : Finding, optional
        Why there is no symmetry.
    warnings : tuple of Finding
    """

    id: str
    source: str
    absent: str
    distances: tuple[Measure, ...]
    volumes: tuple[Measure, ...]
    uncertainties: Mapping[str, float]
    ptosis: tuple[Ptosis, ...]
    symmetry: Symmetry | None
    mesh: TriangleMesh | None
    symmetry_reason: Finding | None = None
    warnings: tuple[Finding, ...] = ()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Distances and volumes."""
        return self.distances + self.volumes

    @property
    def table(self) -> MeasureTable:
        """All measures, heights of the nipples and the mirror deviation, to be printed and looked up by name."""
        heights = [
            Measure(
                f"nipple above {what} {p.side}",
                "height",
                value,
                "mm",
                None
                if value == value
                else p.reason or Finding("needs-landmarks", {"names": [f"lower_pole_{p.side}"]}),
            )
            for p in self.ptosis
            for what, value in (("lower pole", p.above_lower_pole), ("fold", p.above_fold))
        ]
        whole = self.symmetry.deviation if self.symmetry is not None else float("nan")
        mirror = Measure("mirror deviation", "mean", whole, "mm", self.symmetry_reason)
        found = (*self.measures, *heights, mirror)
        reasons: dict[str, list[str]] = {}
        for one in found:
            if not one.known:
                reasons.setdefault(str(one.reason), []).append(one.name)
        remarks = [
            f"Not determinable: {', '.join(dict.fromkeys(names))} ({why})" for why, names in reasons.items()
        ]
        absent = f", {self.absent} side absent" if self.absent else ""
        known = tuple(one for one in found if one.known)
        notes = (f"Note: {warning}" for warning in self.warnings)
        return MeasureTable(f"{self.id} ({self.source}{absent})", known, (*remarks, *notes))

    def __getitem__(self, name: str) -> Measure:
        """A measure by its name; see :class:`MeasureTable`."""
        return self.table[name]

    def __repr__(self) -> str:
        return f"Examination({self.id!r}, {self.source}, {len(self.table)} measures)"

    def __str__(self) -> str:
        return str(self.table)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()

    @property
    def asymmetries(self) -> tuple[Measure, ...]:
        """Left minus right."""
        return asymmetries(self.measures)


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

    def shape(
        self,
        name: str,
        shape: Floats,
        absent: str = "",
        source: str = "registered",
        annotated: Landmarks | None = None,
    ) -> Examination:
        """Examine a shape (n, 3), upright, in mm.

        ``annotated`` are the subject's own landmarks. Without them the template's landmark vertices serve; they are
        right for sternum and nipples, but the poles are not the same skin in every subject.
        """
        mesh = self.mesh.with_vertices(shape)
        warnings: tuple[Finding, ...] = ()
        if annotated:
            landmarks = reached(Surface(mesh), annotated)
            warnings = tuple(
                warning("not-reached", name=mark) for mark in annotated if mark not in landmarks.names
            )
            distances = measure_distances(mesh, landmarks)
        else:
            ids = {mark: at for mark, at in self.ids.items() if not (absent and mark.endswith(absent))}
            landmarks = Landmarks.at_vertices(ids, shape)
            distances = Gauge.of_vertices(mesh.faces, ids).measures(shape)
        volumes, uncertainties = self._measured_volumes(shape, absent)
        symmetry, reason = self._measured_symmetry(shape, absent)
        return Examination(
            name,
            source,
            absent,
            distances,
            volumes,
            uncertainties,
            both_sides(landmarks),
            symmetry,
            mesh if symmetry else None,
            reason,
            warnings,
        )

    def scan(
        self, scan: Scan, registered: Floats, absent: str = "", warnings: tuple[Finding, ...] = ()
    ) -> Examination:
        """Examine a scan: distances on its own surface, the rest on its registered shape (n, 3)."""
        own = self.distances(scan)
        return replace(
            self.shape(scan.id, registered, absent, "scan"),
            distances=own.distances,
            ptosis=own.ptosis,
            warnings=warnings,
        )

    def distances(self, scan: Scan) -> Examination:
        """What a scan's landmarks tell without a registration."""
        reason = Finding("needs-registration")
        nan = float("nan")
        return Examination(
            scan.id,
            "scan",
            "".join(scan.landmarks.absent_sides[:1]),
            measure_distances(scan.mesh, scan.landmarks),
            tuple(Measure(f"volume-{side}", "volume", nan, "cc", reason) for side in SIDES),
            {},
            both_sides(scan.landmarks),
            None,
            None,
            reason,
            scan.warnings,
        )

    @cached_property
    def _landmarks(self) -> Landmarks:
        return Landmarks.at_vertices(self.ids, self.mesh.vertices)

    @cached_property
    def _volumes(self) -> BreastVolumes | Finding:
        try:
            return BreastVolumes(self.mesh, self._landmarks)
        except BreastMorphError as error:
            return Finding.of(error)

    @cached_property
    def _symmetry(self) -> SymmetryGauge | Finding:
        try:
            return SymmetryGauge(self.mesh, self._landmarks, self._mirror)
        except BreastMorphError as error:
            return Finding.of(error)

    def _measured_volumes(self, shape: Floats, absent: str) -> tuple[tuple[Measure, ...], dict[str, float]]:
        out, uncertainties = [], {}
        for side in SIDES:
            name, nan = f"volume-{side}", float("nan")
            if side == absent:
                out.append(Measure(name, "volume", nan, "cc", Finding("side-absent", {"side": side})))
            elif isinstance(self._volumes, Finding):
                out.append(Measure(name, "volume", nan, "cc", self._volumes))
            else:
                volume = self._volumes.estimate(shape, side)
                out.append(Measure(name, "volume", volume.cc, "cc", sd=volume.uncertainty))
                uncertainties[side] = volume.uncertainty
        return tuple(out), uncertainties

    def _measured_symmetry(self, shape: Floats, absent: str) -> tuple[Symmetry | None, Finding | None]:
        if absent:
            return None, Finding("side-absent", {"side": absent})
        if isinstance(self._symmetry, Finding):
            return None, self._symmetry
        return self._symmetry.of(np.asarray(shape)), None


# --------------------------------------------------------------------------------------------------------------------
# Examinations as plain values: a nested record for JSON, a flat row for a table over a cohort
# --------------------------------------------------------------------------------------------------------------------


def as_record(one: Examination) -> dict[str, Any]:
    """The examination for JSON; what is not determinable is null and has a reason."""
    symmetry: dict[str, Any] = {"mean_deviation_mm": None, "reason": str(one.symmetry_reason or "")}
    if one.symmetry is not None:
        symmetry = {
            "mean_deviation_mm": one.symmetry.deviation,
            "left_mm": one.symmetry.sides["left"],
            "right_mm": one.symmetry.sides["right"],
            "thorax_mm": one.symmetry.thorax,
        }
    volumes = [
        measure_record(volume)
        | ({"uncertainty": one.uncertainties[side]} if side in one.uncertainties else {})
        for side, volume in zip(SIDES, one.volumes, strict=True)
    ]
    return {
        "id": one.id,
        "source": one.source,
        "absent_side": one.absent,
        "distances": [measure_record(distance) for distance in one.distances],
        "volumes": volumes,
        "left_minus_right": [measure_record(difference) for difference in one.asymmetries],
        "ptosis": [
            {
                "side": p.side,
                "nipple_above_lower_pole_mm": plain(p.above_lower_pole),
                "nipple_above_fold_mm": plain(p.above_fold),
                "regnault": p.grade,
                "reason": str(p.reason or ""),
            }
            for p in one.ptosis
        ],
        "symmetry": symmetry,
        "warnings": sentences(one.warnings),
    }


def as_row(one: Examination) -> dict[str, str]:
    """The examination as one row of a table; empty where something is not determinable."""
    row = {"id": one.id, "source": one.source, "absent_side": one.absent}
    row |= {_column(m): _cell(m.value) for m in one.measures}
    row |= {f"volume-{side} uncertainty cc": _cell(one.uncertainties.get(side)) for side in SIDES}
    row |= {f"left minus right {_column(m)}": _cell(m.value) for m in one.asymmetries}
    for p in one.ptosis:
        row[f"nipple above lower pole {p.side} mm"] = _cell(p.above_lower_pole)
        row[f"nipple above fold {p.side} mm"] = _cell(p.above_fold)
        row[f"Regnault {p.side}"] = p.grade
    row["mirror deviation mm"] = _cell(one.symmetry.deviation if one.symmetry else None)
    return row


def _column(measure: Measure) -> str:
    kind = "" if measure.kind == "volume" else f" {measure.kind}"
    return f"{measure.name}{kind} {measure.unit}"


def measure_record(measure: Measure, door: Door = "command") -> dict[str, Any]:
    """One measure for JSON, with the reason in the words of a door where there is no value."""
    record = {
        "name": measure.name,
        "kind": measure.kind,
        "value": plain(measure.value),
        "unit": measure.unit,
    }
    return record | ({"reason": measure.reason.said(door).cause} if measure.reason is not None else {})


def _cell(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.2f}"
