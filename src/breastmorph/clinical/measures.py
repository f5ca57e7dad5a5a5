"""Clinical measures of shapes, the same as features of a model with their gradients; ptosis and symmetry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import overload

import numpy as np

from breastmorph.clinical.distances import (
    DISTANCES,
    PAIRS,
    STRAIGHT,
    TAPE,
    Distance,
    Feature,
    Function,
    Reading,
    SkinLandmarks,
    SkinPoints,
    TapeLine,
    between,
    derivative,
    from_plane,
    midline,
    midline_point,
    over_chord,
    same_name,
    tape_lines,
    to_midline,
)
from breastmorph.clinical.missing_region import NOT_SYMMETRIC
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.foundation.arrays import Floats, Ints, templates
from breastmorph.foundation.errors import BreastMorphError, Finding, MeshProblem
from breastmorph.mask import breast_regions
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, face_normals, vertex_areas
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, Landmarks

# --------------------------------------------------------------------------------------------------------------------
# Clinical measures of upright shapes in mm: distances with their values and derivatives, and left against right
# --------------------------------------------------------------------------------------------------------------------

_HEADS = ("measure", "", "value", "±", "unit", "side")
_TABLE = """<table><caption>{{ shown.title }}</caption>
<tr>{% for name in heads %}<th>{{ name }}</th>{% endfor %}</tr>
{% for row in rows %}
<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</table>{% for line in shown.remarks %}<p>{{ line }}</p>{% endfor %}"""


@dataclass(frozen=True)
class Measure:
    """One measured value.

    Attributes
    ----------
    name : str
    kind : str
        "tape" or "straight"; "volume", "height" or "area" of what is no distance.
    value : float
        NaN where it cannot be determined.
    unit : str
        "mm", "cc" or "cm2".
    reason : Finding, optional
        Why it cannot be determined; None otherwise.
    sd : float
        Its standard deviation; NaN where nobody knows it.
    source : str
        Where that comes from: "landmarks", "hidden skin", "border", "wall", "surface", "model".
    predicted : bool
        Whether it is of a breast that is not there but predicted.
    """

    name: str
    kind: str
    value: float
    unit: str = "mm"
    reason: Finding | None = None
    sd: float = float("nan")
    source: str = ""
    predicted: bool = False

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.reason is None

    @property
    def side(self) -> str:
        """The patient's side that it belongs to; empty where it belongs to both."""
        sides = [side for side in SIDES if self.name.endswith(side)]
        sides += [
            side
            for pair in PAIRS.values()
            for side, name in zip(SIDES, pair, strict=True)
            if name == self.name
        ]
        return "".join(sides[:1])


@dataclass(frozen=True, eq=False)
class MeasureTable(Sequence[Measure]):
    """Measures that are read together: printed, a table; a measure is found by its number or its name.

    Attributes
    ----------
    title : str
    measures : tuple of Measure
    remarks : tuple of str
        What to read with them: what could not be determined, and why.
    """

    title: str
    measures: tuple[Measure, ...]
    remarks: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.measures)

    @overload
    def __getitem__(self, which: int | str) -> Measure: ...
    @overload
    def __getitem__(self, which: slice) -> tuple[Measure, ...]: ...
    def __getitem__(self, which: int | str | slice) -> Measure | tuple[Measure, ...]:
        """By number; or by name, ``SN-NL tape``. Distances are straight where nobody says."""
        if not isinstance(which, str):
            return self.measures[which]
        for words in (f"{which} {STRAIGHT}", which):
            for one in self.measures:
                if same_name(words, f"{one.name} {one.kind}") or same_name(words, one.name):
                    return one
        names = ", ".join(dict.fromkeys(one.name for one in self.measures))
        raise BreastMorphError(f"there is no measure {which!r} here", f"Measures are {names}")

    def __repr__(self) -> str:
        return f"MeasureTable({self.title!r}, {sum(one.known for one in self.measures)} measures)"

    def __str__(self) -> str:
        rows = [_HEADS, *map(_row, self.measures)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(w) if k in (2, 3) else cell.ljust(w)
                for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        return "\n".join([self.title, *(line.rstrip() for line in lines), *self.remarks])

    def _repr_html_(self) -> str:
        rows = map(_row, self.measures)
        return templates().from_string(_TABLE).render(shown=self, heads=_HEADS, rows=rows)


def _row(measure: Measure) -> tuple[str, ...]:
    digits = 1 if measure.unit == "mm" else 0
    value = f"{measure.value:.{digits}f}" if measure.known else "-"
    sd = f"{measure.sd:.{digits}f}" if measure.sd == measure.sd else ""
    kind = "" if measure.kind == "volume" else measure.kind
    kind = f"{kind} predicted".strip() if measure.predicted else kind
    return measure.name, kind, value, sd, measure.unit, measure.side


class Gauge:
    """Distances of shapes with the same triangles: lengths, and their derivatives by the vertices.

    Parameters
    ----------
    faces : (m, 3) int
    landmarks : SkinLandmarks
        Of one scan, or by their vertices of all shapes of a model.
    """

    def __init__(self, faces: Ints, landmarks: SkinLandmarks) -> None:
        self.faces, self.landmarks = faces, landmarks

    @classmethod
    def of_vertices(cls, faces: Ints, ids: Mapping[str, int]) -> Gauge:
        """For a template's or a model's landmark vertices."""
        return cls(faces, SkinLandmarks.of_vertices(ids))

    def lacks(self, name: str) -> Finding | None:
        """Why a distance cannot be determined, or None."""
        missing = [one for one in DISTANCES[name].landmarks if one not in self.landmarks]
        if not missing:
            return None
        return Finding(
            "needs-fold" if missing[0].startswith("imf") else "needs-landmarks", {"names": missing}
        )

    def measures(
        self, vertices: Floats, wanted: Iterable[tuple[str, str]] | None = None
    ) -> tuple[Measure, ...]:
        """Values in a shape (n, 3) of (name, kind) pairs, of all when not given."""
        asked = (
            list(wanted) if wanted is not None else [(d.name, k) for d in DISTANCES.values() for k in d.kinds]
        )
        read = self._readings(vertices, asked, with_gradient=False)
        return tuple(
            Measure(name, kind, float("nan"), reason=one)
            if isinstance(one, Finding)
            else Measure(name, kind, one.value)
            for (name, kind), one in zip(asked, read, strict=True)
        )

    def read(self, vertices: Floats, name: str, kind: str) -> Reading:
        """A value with its derivative: exact for straight distances, exact to first order for tape lines.

        Raises
        ------
        BreastMorphError
            It cannot be determined.
        """
        one = self._readings(vertices, [(name, kind)], with_gradient=True)[0]
        if isinstance(one, Finding):
            raise BreastMorphError.of("not-determinable/why", name=name, why=one)
        return one

    def reads(
        self, vertices: Floats, asked: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], Reading | Finding]:
        """Values of several (name, kind) pairs as :meth:`read` has them, or why not: on a surface prepared once."""
        found = self._readings(vertices, asked, with_gradient=True)
        return dict(zip(asked, found, strict=True))

    def _readings(
        self, vertices: Floats, asked: Sequence[tuple[str, str]], *, with_gradient: bool
    ) -> list[Reading | Finding]:
        surface: Surface | None = None
        out: list[Reading | Finding] = []
        taped: list[tuple[int, _Ends]] = []
        for k, (name, kind) in enumerate(asked):
            distance = DISTANCES[name]
            reason = self.lacks(name)
            needs_surface = kind == TAPE or (distance.ends_at_midline and distance.form != "from plane")
            if reason is None and needs_surface:
                surface = surface or Surface(TriangleMesh(vertices, self.faces))
                ends = self._ends(vertices, surface, distance)
                if ends is None:
                    reason = Finding("no-midline")
                elif kind == TAPE:
                    taped.append((k, ends))
                else:
                    out.append(ends.straight(vertices, distance.form, with_gradient))
                    continue
            elif reason is None:
                out.append(self._plain(vertices, distance, with_gradient))
                continue
            out.append(reason or Finding("no-line"))  # a tape line is laid below
        if taped and surface is not None:
            lines = tape_lines(
                surface,
                _joined([ends.first for _, ends in taped]),
                _joined([ends.second for _, ends in taped]),
            )
            for (k, ends), line in zip(taped, lines, strict=True):
                if line is not None:
                    out[k] = ends.tape(vertices, line, with_gradient)
        return out

    def _plain(self, vertices: Floats, distance: Distance, with_gradient: bool) -> Reading:
        """A straight distance that landmarks alone determine."""
        if distance.form == "from plane":
            points = self.landmarks.chosen(distance.landmarks[:1]).followed_by(self._sternum())
            return _reading(points, vertices, from_plane, with_gradient)
        return _reading(self.landmarks.chosen(distance.landmarks), vertices, between, with_gradient)

    def _sternum(self) -> SkinPoints:
        """Notch and xiphoid, or the notch alone."""
        return self.landmarks.chosen(name for name in ("sternal_notch", "xiphoid") if name in self.landmarks)

    def _ends(self, vertices: Floats, surface: Surface, distance: Distance) -> _Ends | None:
        first = self.landmarks.chosen(distance.landmarks[:1])
        if not distance.ends_at_midline:
            return _Ends(first, self.landmarks.chosen(distance.landmarks[1:2]), None)
        nipple = next(name for name in distance.landmarks if name.startswith("nipple"))
        line = self.landmarks.chosen([nipple]).followed_by(self._sternum())
        x, y = midline(line.at(vertices))
        front = np.array([[x, y, float(vertices[:, 2].max()) + 1.0]])
        face, _, weights = surface.first_hit(front, np.array([[0.0, 0.0, -1.0]]))
        if face[0] < 0:
            return None
        corners = self.faces[face[:1]]
        return _Ends(first, SkinPoints(corners, weights[:1]), line)


@dataclass(frozen=True, eq=False)
class _Ends:
    """Two ends on the skin; ``line`` (nipple, notch, xiphoid) where the second is the midline's."""

    first: SkinPoints
    second: SkinPoints
    line: SkinPoints | None

    def straight(self, vertices: Floats, form: str, with_gradient: bool) -> Reading:
        points = self._all()
        function = over_chord if form == "over chord" else to_midline
        return _reading(points, vertices, function, with_gradient)

    def tape(self, vertices: Floats, line: TapeLine, with_gradient: bool) -> Reading:
        value = line.length(vertices)
        if not with_gradient:
            return _value(value)
        by_corner = line.derivative(vertices)
        if self.line is None:
            return line.points.reading(value, by_corner)
        # The end on the midline does not stick to the skin: it follows sternum and nipple.
        pull, by_corner[-1] = by_corner[-1].copy(), 0.0
        points = self._all()
        by_point = derivative(lambda p: midline_point(p[1:]) @ pull, points.at(vertices))
        return line.points.followed_by(points).reading(value, np.vstack([by_corner, by_point]))

    def _all(self) -> SkinPoints:
        """First end; the corners of the midline's triangle; nipple and sternum."""
        corners = SkinPoints.of_vertices(self.second.corners[0])
        points = self.first.followed_by(corners)
        return points if self.line is None else points.followed_by(self.line)


def _reading(points: SkinPoints, vertices: Floats, function: Function, with_gradient: bool) -> Reading:
    positions = points.at(vertices)
    value = float(function(positions))
    if not with_gradient:
        return _value(value)
    return points.reading(value, derivative(function, positions))


def _value(value: float) -> Reading:
    return Reading(value, np.empty(0, dtype=np.int64), np.empty((0, 3)))


def _joined(points: Sequence[SkinPoints]) -> SkinPoints:
    return SkinPoints(
        np.concatenate([one.corners for one in points]), np.concatenate([one.weights for one in points])
    )


def measure_distances(mesh: TriangleMesh, landmarks: Landmarks) -> tuple[Measure, ...]:
    """All distances of an upright mesh (mm) whose landmarks lie on it: a scan, a registered mesh or a model instance.

    What landmarks do not determine is there too, with the reason.
    """
    # Others (navel, coracoid) may lie where a registered mesh does not reach, and no distance needs them.
    used = {mark for distance in DISTANCES.values() for mark in distance.landmarks}
    needed = landmarks.only(name for name in landmarks.names if name in used)
    return Gauge(mesh.faces, SkinLandmarks.on(Surface(mesh), needed)).measures(mesh.vertices)


# Borders of both breasts are drawn by one rule, and one chest lies behind both: by these sources the sides err
# together, and the difference has this share of what sides of their own would have (phantoms).
_APART = {"border": 0.5, "border, wall": 0.5, "wall": 0.4}


def asymmetries(measures: Iterable[Measure]) -> tuple[Measure, ...]:
    """Left minus right of what exists on both sides, under the names of :data:`distances.PAIRS`."""
    found = list(measures)
    by_name = {(one.name, one.kind): one for one in found}
    kinds = list(dict.fromkeys(one.kind for one in found))
    out = []
    for name, (of_left, of_right) in PAIRS.items():
        for kind in kinds:
            left, right = by_name.get((of_left, kind)), by_name.get((of_right, kind))
            if left is not None and right is not None:
                apart = _APART.get(left.source, 1.0) if left.source == right.source else 1.0
                out.append(
                    Measure(
                        name,
                        kind,
                        left.value - right.value,
                        left.unit,
                        left.reason or right.reason,
                        apart * float(np.hypot(left.sd, right.sd)),
                        left.source if left.source == right.source else f"{left.source}, {right.source}",
                        left.predicted or right.predicted,
                    )
                )
    return tuple(out)


def symmetry_indices(measures: Iterable[Measure]) -> dict[tuple[str, str], float]:
    """By name and kind of a pair: the difference of the sides in percent of their mean, 0 where they are alike."""
    by_name = {(one.name, one.kind): one for one in measures if one.known}
    out = {}
    for name, (of_left, of_right) in PAIRS.items():
        for kind in ("tape", "straight", "volume", "area"):
            left, right = by_name.get((of_left, kind)), by_name.get((of_right, kind))
            if left is not None and right is not None and left.value + right.value > 0.0:
                out[name, kind] = 200.0 * abs(left.value - right.value) / (left.value + right.value)
    return out


# --------------------------------------------------------------------------------------------------------------------
# Measures as features of a model's shapes: numbers that can be asked for, with their gradients
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DistanceFeature:
    """A distance of shapes with the same triangles, mm."""

    gauge: Gauge
    distance: str
    kind: str
    unit: str = "mm"

    @property
    def name(self) -> str:
        """``SN-NL`` for the straight distance, ``SN-NL tape`` for the one over the skin."""
        return self.distance if self.kind == STRAIGHT else f"{self.distance} {self.kind}"

    def value(self, shape: Floats) -> float:
        """The distance in an upright shape (n, 3), mm."""
        return self.gauge.measures(shape, [(self.distance, self.kind)])[0].value

    def read(self, shape: Floats) -> Reading:
        """The distance with its gradient."""
        return self.gauge.read(shape, self.distance, self.kind)


@dataclass(frozen=True)
class VolumeFeature:
    """A side's volume as a feature that can be edited; its unit is cc."""

    volumes: BreastVolumes
    side: str
    unit: str = "cc"

    @property
    def name(self) -> str:
        """``volume-left`` or ``volume-right``."""
        return f"volume-{self.side}"

    def value(self, shape: Floats) -> float:
        """Volume of a shape (n, 3), cc."""
        return self.volumes.cc(shape, self.side)

    def read(self, shape: Floats) -> Reading:
        """The volume with its gradient."""
        return self.volumes.read(shape, self.side)


def measured_features(model: ShapeModel, landmarks: SkinLandmarks | None = None) -> tuple[Feature, ...]:
    """All measures that landmarks determine, those of the model's vertices or a subject's own; fewer without some."""
    gauge = (
        Gauge(model.faces, landmarks)
        if landmarks is not None
        else Gauge.of_vertices(model.faces, model.landmark_ids)
    )
    found: list[Feature] = [
        DistanceFeature(gauge, distance.name, kind)
        for distance in DISTANCES.values()
        for kind in distance.kinds
        if not gauge.lacks(distance.name)
    ]
    try:
        volumes = BreastVolumes.of_model(model)
    except BreastMorphError:
        return tuple(found)
    return (*found, *(VolumeFeature(volumes, side) for side in SIDES))


# --------------------------------------------------------------------------------------------------------------------
# Ptosis: how low the nipple stands, and Regnault's grade where the fold is known
# --------------------------------------------------------------------------------------------------------------------

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
        return Ptosis(side, nan, nan, UNKNOWN, Finding("needs-landmarks", {"names": [f"nipple_{side}"]}))
    above_pole = float(nipple[1] - pole[1]) if pole is not None else nan
    if fold is None:
        return Ptosis(side, above_pole, nan, UNKNOWN, Finding("needs-fold/grade", {"name": f"imf_{side}"}))
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
