"""An examination: all measures of one subject together, as a value, a record for JSON and a row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from breastmorph.clinical.measure_table import (
    Measure,
    MeasureTable,
    asymmetries,
    measure_record,
    symmetry_indices,
)
from breastmorph.clinical.mirror_frame import NOT_SYMMETRIC
from breastmorph.clinical.skin_points import SkinPoints
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import MeshProblem
from breastmorph.foundation.files import plain
from breastmorph.foundation.messages import Finding, note, sentences
from breastmorph.mask import breast_regions
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, face_normals, vertex_areas
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.scan.scan import SIDES, Landmarks


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
        The same of the thorax: how well the mirror image fits, mm.
    signed : (n,) float
        By vertex: mm the skin lies outside (+) or inside (-) the mirror image of the other side; NaN off the breasts.
    mirrored : TriangleMesh
        The mirror image, aligned with the subject.
    """

    deviation: float
    sides: Mapping[str, float]
    thorax: float
    signed: Floats
    mirrored: TriangleMesh


class SymmetryMeter:
    """Symmetry of shapes in correspondence: prepared once per template or model.

    Parameters
    ----------
    mesh : TriangleMesh
        The template or the model's mean, upright, in mm.
    landmarks : Landmarks
        As for :func:`breastmorph.mask.breast_regions`.
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
        alignment = Similarity.fit(
            reflected[self._thorax], shape[self._thorax], self._weights, with_scale=False
        )
        mirrored = TriangleMesh(alignment.apply(reflected), self._faces)
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
            "the mesh is not symmetric: it lies {distances:.0f} mm from its mirror image",
            "Symmetry needs a symmetric template, upright and centred on the sternum",
            distances=found.distances.mean(),
        )
    return SkinPoints(mesh.faces[found.faces], found.weights)


UNKNOWN = "not determinable"
_SLIGHT, _MODERATE = 10.0, 30.0  # mm below the fold, Regnault 1976
_AT_CONTOUR = 5.0  # mm above the lower pole: the nipple is at the lower contour of the breast
_GLAND_BELOW = 20.0  # mm that the lower pole hangs below the fold while the nipple stands above it
PSEUDO = "pseudoptosis"


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
        "none", "pseudoptosis", "I", "II", "III", or "not determinable".
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
    below the fold and at the lower contour of the breast; pseudoptosis: the nipple above the fold, but the gland more
    than 2 cm below it. They need the landmark ``imf``, which is found on every registered shape.
    """
    nipple, pole, fold = (landmarks.get(f"{part}_{side}") for part in ("nipple", "lower_pole", "imf"))
    nan = float("nan")
    if nipple is None:
        reason = note("needs-landmarks", "needs {names:landmark| and }", names=[f"nipple_{side}"])
        return Ptosis(side, nan, nan, UNKNOWN, reason)
    above_pole = float(nipple[1] - pole[1]) if pole is not None else nan
    if fold is None:
        reason = note("needs-fold/grade", "needs {name:landmark} (the fold)", name=f"imf_{side}")
        return Ptosis(side, above_pole, nan, UNKNOWN, reason)
    above_fold = float(nipple[1] - fold[1])
    return Ptosis(side, above_pole, above_fold, _grade(above_fold, above_pole))


def _grade(above_fold: float, above_pole: float) -> str:
    if above_fold > 0.0:
        return PSEUDO if above_pole - above_fold > _GLAND_BELOW else "none"
    if -above_fold > _MODERATE or above_pole < _AT_CONTOUR:
        return "III"
    return "II" if -above_fold > _SLIGHT else "I"


def both_sides(landmarks: Landmarks) -> tuple[Ptosis, ...]:
    """Left, then right."""
    return tuple(ptosis(landmarks, side) for side in SIDES)


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
    others : tuple of Measure
        Heights and areas of both sides, and the girth under the breasts as far as it is seen.
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
    landmarks : Landmarks, optional
        What was measured between, on ``mesh``.
    borders : tuple of (b, 2) int
        Edges of ``mesh`` around what the volumes are measured over.
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
    others: tuple[Measure, ...] = ()
    landmarks: Landmarks | None = None
    borders: tuple[Ints, ...] = ()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Distances, heights, areas and volumes."""
        return self.distances + self.others + self.volumes

    @property
    def mirror_deviation(self) -> Measure:
        """How alike the breasts are in shape, as a measure."""
        whole = self.symmetry.deviation if self.symmetry is not None else float("nan")
        return Measure("mirror deviation", "mean", whole, "mm", self.symmetry_reason)

    @property
    def table(self) -> MeasureTable:
        """All measures and the mirror deviation, to be printed and looked up by name."""
        found = (*self.measures, self.mirror_deviation)
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
    return {
        "id": one.id,
        "source": one.source,
        "absent_side": one.absent,
        "units": "mm, cm2 and cc; sd is one standard deviation",
        "distances": [measure_record(distance) for distance in one.distances],
        "others": [measure_record(other) for other in one.others],
        "volumes": [measure_record(volume) for volume in one.volumes],
        "left_minus_right": [measure_record(difference) for difference in one.asymmetries],
        "symmetry_index_percent": [
            {"name": name, "kind": kind, "value": value}
            for (name, kind), value in symmetry_indices(one.measures).items()
        ],
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
    row["predicted_side"] = "".join(dict.fromkeys(m.side for m in one.measures if m.predicted and m.side))
    for m in one.measures:
        row[_column(m)] = _cell(m.value)
        row[f"{_column(m)} sd"] = _cell(m.sd)
    for m in one.asymmetries:
        row[f"left minus right {_column(m)}"] = _cell(m.value)
        row[f"left minus right {_column(m)} sd"] = _cell(m.sd)
    for (name, kind), value in symmetry_indices(one.measures).items():
        row[f"symmetry index {name} {kind} percent"] = _cell(value)
    for p in one.ptosis:
        row[f"Regnault {p.side}"] = p.grade
    row["mirror deviation mm"] = _cell(one.symmetry.deviation if one.symmetry else None)
    return row


def _column(measure: Measure) -> str:
    kind = "" if measure.kind == "volume" else f" {measure.kind}"
    return f"{measure.name}{kind} {measure.unit}"


def _cell(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.2f}"
