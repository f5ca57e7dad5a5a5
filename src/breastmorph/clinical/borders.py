"""The borders of a breast on a shape, found by their definition: fold, poles and the border towards the sternum.

Lines that run over the skin of a template from the nipple downwards and towards the sternum, and down the side of the
chest, are placed once. On every shape with the template's triangles they say where the skin turns from the breast to
the chest. So the places are those of the shape, not of the template's vertices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from breastmorph.clinical.distance_meter import densely, midline, tape_lines
from breastmorph.clinical.distances import DISTANCES
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.skin_points import SkinLandmarks, SkinPoints
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.messages import note
from breastmorph.mask import completed_landmarks
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import SIDES, STERNUM, Landmarks

_STEP = 2.0  # mm between the places of a line
_ACROSS = (-40.0, -20.0, 0.0, 20.0, 40.0)  # mm beside the lower pole where lines to the fold end
_BELOW = 50.0  # mm below the lower pole
_BESIDE = 50.0  # mm up and down from the lateral pole that the line of the side reaches
_ARM = 20.0  # mm before and after a place over which its bend is seen
_AREOLA = 16.0  # mm around the nipple whose own shape is no border
# Found on a shape: standard deviations of a height or a place in mm. A fold that the breast hangs over is hidden
# from most scanners; what lies there is the template's skin, and it is the less known the further the breast hangs.
FOLD_HIDDEN = 5.0
_FOLD_SEEN, _HANGING = 3.5, 0.35
_POLE, _LATERAL, _MEDIAL = 3.0, 8.0, 5.0


@dataclass(frozen=True, eq=False)
class BreastBorders:
    """One breast's borders on a shape.

    Attributes
    ----------
    side : str
    points : SkinPoints
        Fold (its lowest place), lower pole, lateral pole, border towards the sternum: those of ``names``.
    names : tuple of str
    sd : mapping from name to float
        Standard deviation of each place along what it means, mm.
    fold : (k, 3) float
        The fold from one side to the other.
    hanging : float
        How far the lower pole lies below the fold, mm; the fold is behind it where this is positive.
    """

    side: str
    points: SkinPoints
    names: tuple[str, ...]
    sd: Mapping[str, float]
    fold: Floats
    hanging: float


@dataclass(frozen=True, eq=False)
class SubjectLandmarks:
    """Landmarks that stick to a subject's skin, each with how sure it is.

    Attributes
    ----------
    skin : SkinLandmarks
    sd : mapping from name to float
        Standard deviation along one direction, mm.
    """

    skin: SkinLandmarks
    sd: Mapping[str, float]

    def without(self, side: str) -> SubjectLandmarks:
        """Without those of a side; an empty one leaves all."""
        return self.only(name for name in self.skin.names if not (side and name.endswith(side)))

    def only(self, names: Iterable[str]) -> SubjectLandmarks:
        """Those that are named, where they exist."""
        wanted = set(names)
        kept = tuple(name for name in self.skin.names if name in wanted)
        return SubjectLandmarks(SkinLandmarks(kept, self.skin.chosen(kept)), self.sd)

    def at(self, shape: Floats) -> Landmarks:
        """Where they are on a shape (n, 3)."""
        return Landmarks(self.skin.names, self.skin.points.at(shape))


class BorderFinder:
    """A template or a model's mean prepared to find borders on every shape with its triangles.

    Parameters
    ----------
    mesh : TriangleMesh
        Upright, in mm.
    landmarks : Landmarks
        Sternal notch, nipple and lower pole of one side at least.
    """

    def __init__(self, mesh: TriangleMesh, landmarks: Landmarks) -> None:
        self._faces = mesh.faces
        surface = Surface(mesh)
        whole = completed_landmarks(mesh, landmarks)
        self._nipples: dict[str, SkinPoints] = {}
        self._down: dict[str, list[SkinPoints]] = {}
        self._inwards: dict[str, SkinPoints] = {}
        self._beside: dict[str, SkinPoints] = {}
        for side in SIDES:
            if not {f"nipple_{side}", f"lower_pole_{side}"} <= set(whole.names):
                continue
            nipple, pole, lateral = (
                whole[f"{part}_{side}"] for part in ("nipple", "lower_pole", "lateral_pole")
            )
            self._nipples[side] = start = SkinPoints.on(surface, nipple[None])
            low = max(pole[1] - _BELOW, float(mesh.vertices[:, 1].min()) + 5.0)
            ends = [_from_front(surface, pole[0] + across, low) for across in _ACROSS]
            x, y = midline(np.vstack([nipple, whole.array(STERNUM)]))
            side_of_chest = SkinPoints.on(surface, lateral[None])
            above, below = (
                SkinPoints.on(surface, (lateral + [0.0, by, 0.0])[None]) for by in (_BESIDE, -_BESIDE)
            )
            self._down[side] = [line for end in ends if (line := _line(surface, start, end)) is not None]
            inwards = _line(surface, start, _from_front(surface, float(x), float(y)))
            if inwards is not None:
                self._inwards[side] = inwards
            up, down = (_line(surface, side_of_chest, end) for end in (above, below))
            if up is not None and down is not None:
                self._beside[side] = up.chosen(range(len(up) - 1, 0, -1)).followed_by(down)

    def borders(self, shape: Floats) -> Mapping[str, BreastBorders]:
        """Of every side that has a breast on the template, on a shape (n, 3), upright, in mm."""
        normals = vertex_normals(shape, self._faces)
        return {side: self._of_side(shape, normals, side) for side in self._down if self._down[side]}

    def landmarks(
        self, shape: Floats, vertices: Mapping[str, int], absent: str = "", own: Landmarks | None = None
    ) -> SubjectLandmarks:
        """All landmarks of a shape with their standard deviations, mm.

        The subject's own where given, on its skin; otherwise sternum and nipples by the vertices that have them in
        every shape, and poles, folds and inner borders by their definition.

        Parameters
        ----------
        shape : (n, 3) float
        vertices : mapping from name to vertex
            The template's landmarks.
        absent : str
            A side without a breast.
        own : Landmarks, optional
            Must lie on the shape.
        """
        names: list[str] = []
        points = SkinPoints(np.empty((0, 3), dtype=np.int64), np.empty((0, 3)))
        sd: dict[str, float] = {}
        # Others (navel, coracoid) may lie where a registered mesh does not reach, and no measure needs them.
        own = own.only(name for name in own.names if _is_measured(name)) if own is not None else None
        if own is not None and len(own):
            skin = SkinLandmarks.on(Surface(TriangleMesh(shape, self._faces)), own)
            names, points = list(skin.names), skin.points
            sd = spreads(own.only(names))
        for side, border in self.borders(shape).items():
            if side == absent:
                continue
            for k, name in enumerate(border.names):
                if name not in names:
                    names.append(name)
                    points = points.followed_by(border.points.chosen([k]))
                    sd[name] = border.sd[name]
        for name, vertex in vertices.items():
            if name not in names and not (absent and name.endswith(absent)):
                names.append(name)
                points = points.followed_by(SkinPoints.of_vertices([vertex]))
                sd[name] = repeatability(name)
        return SubjectLandmarks(SkinLandmarks(tuple(names), points), sd)

    def _of_side(self, shape: Floats, normals: Floats, side: str) -> BreastBorders:
        folds, poles = [], []
        for line in self._down[side]:
            at, points, bend = _bends(line, shape, normals)
            turn = int(bend.argmax())
            folds.append((points[turn], line.chosen([at[turn]])))
            lowest = int(points[: turn + 1, 1].argmin())
            poles.append((points[lowest, 1], line.chosen([at[lowest]])))
        fold = min(folds, key=lambda one: float(one[0][1]))
        pole = min(poles, key=lambda one: float(one[0]))
        hanging = float(fold[0][1] - pole[0])
        chosen = {f"imf_{side}": fold[1], f"lower_pole_{side}": pole[1]}
        hidden = hanging > 2.0
        sd = {
            f"imf_{side}": FOLD_HIDDEN + _HANGING * hanging if hidden else _FOLD_SEEN,
            f"lower_pole_{side}": _POLE,
        }
        if side in self._beside:
            height = self._nipples[side].at(shape)[0, 1]
            beside = self._beside[side]
            off = np.abs(beside.at(shape)[:, 1] - height)
            chosen[f"lateral_pole_{side}"] = beside.chosen([int(off.argmin())])
            sd[f"lateral_pole_{side}"] = _LATERAL
        if side in self._inwards:
            line = self._inwards[side]
            at, _, bend = _bends(line, shape, normals)
            chosen[f"medial_border_{side}"] = line.chosen([at[int(bend.argmax())]])
            sd[f"medial_border_{side}"] = _MEDIAL
        together = SkinPoints(
            np.concatenate([one.corners for one in chosen.values()]),
            np.concatenate([one.weights for one in chosen.values()]),
        )
        return BreastBorders(
            side, together, tuple(chosen), sd, np.array([point for point, _ in folds]), hanging
        )


# Repeatability of a landmark that is set by hand, along one direction, mm (sd): bone under little fat and the nipple
# are found again within 1 to 2 mm, what is a place on a round form within several.
_REPEATED = {
    "sternal_notch": 2.0,
    "xiphoid": 4.0,
    "nipple": 1.0,
    "lower_pole": 4.0,
    "lateral_pole": 8.0,
    "imf": 3.0,
    "medial_border": _MEDIAL,
}


def repeatability(name: str) -> float:
    """Standard deviation along one direction of a landmark that is set by hand, mm."""
    part = name if name in _REPEATED else name.rpartition("_")[0]
    return _REPEATED.get(part, 4.0)


def spreads(landmarks: Landmarks) -> dict[str, float]:
    """Standard deviation of landmarks, mm: what the finder says of those it found, repeatability of those set."""
    found = landmarks.found
    return {name: found[name].sd if name in found else repeatability(name) for name in landmarks.names}


def _is_measured(name: str) -> bool:
    return name in _REPEATED or name.rpartition("_")[0] in _REPEATED


def _from_front(surface: Surface, x: float, y: float) -> SkinPoints | None:
    """The skin that faces the front at a place, or None."""
    origin = np.array([[x, y, float(surface.mesh.vertices[:, 2].max()) + 1.0]])
    face, _, weights = surface.first_hit(origin, np.array([[0.0, 0.0, -1.0]]))
    return SkinPoints(surface.mesh.faces[face[:1]], weights[:1]) if face[0] >= 0 else None


def _line(surface: Surface, start: SkinPoints, end: SkinPoints | None) -> SkinPoints | None:
    """Places every few mm along the shortest line over the skin."""
    if end is None:
        return None
    try:
        found = tape_lines(surface, start, end)[0]
    except BreastMorphError:
        return None
    if found is None:
        return None
    return SkinPoints.on(surface, densely(found.points.at(surface.mesh.vertices), _STEP))


def _arc(points: Floats) -> tuple[Floats, Floats]:
    """Way from the start of a line to each of its points, and to places every few mm."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    return along, np.arange(0.0, along[-1], _STEP)


def _between(values: Floats, along: Floats, way: Floats) -> Floats:
    return np.column_stack([np.interp(way, along, values[:, k]) for k in range(values.shape[1])])


def _bends(line: SkinPoints, shape: Floats, normals: Floats) -> tuple[Ints, Floats, Floats]:
    """Places of a line on a shape every few mm: the line's point nearest to each, positions, and how they bend.

    The bend is how much the direction turns outwards, 0 to 2; -1 where the line does not reach far enough to see it.
    """
    positions = line.at(shape)
    outwards = np.einsum("kc,kcd->kd", line.weights, normals[line.corners])
    along, way = _arc(positions)
    points, outwards = _between(positions, along, way), _between(outwards, along, way)
    nearest = np.clip(np.searchsorted(along, way), 0, len(line) - 1)
    bend = np.full(len(way), -1.0)
    arm = round(_ARM / _STEP)
    here = np.arange(max(arm, round(_AREOLA / _STEP)), len(way) - arm)
    if len(here):
        coming, going = points[here] - points[here - arm], points[here + arm] - points[here]
        turn = _unit(going) - _unit(coming)
        bend[here] = (turn * _unit(outwards[here])).sum(axis=1)
    return nearest, points, bend


def _unit(vectors: Floats) -> Floats:
    out: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return out


_SURFACE = 0.5  # mm (sd) that a registered surface lies beside the skin


def distance_spread(name: str, sd: Mapping[str, float]) -> tuple[float, str]:
    """Standard deviation of a distance from those of its landmarks, and what it comes from."""
    marks = [mark for mark in DISTANCES[name].landmarks if mark in sd]
    value = float(np.sqrt(sum(sd[mark] ** 2 for mark in marks) + _SURFACE**2))
    return value, _source(marks, sd)


def _source(marks: Sequence[str], sd: Mapping[str, float]) -> str:
    hidden = any(mark.startswith("imf") and sd[mark] > FOLD_HIDDEN for mark in marks)
    return "landmarks, hidden skin" if hidden else "landmarks"


HEIGHTS = {  # upper and lower landmark, and what it means
    "nipple-above-lower-pole": (
        "nipple",
        "lower_pole",
        "Height of the nipple above the lowest point of the breast, negative below",
    ),
    "nipple-above-fold": (
        "nipple",
        "imf",
        "Height of the nipple above the lowest point of the fold, negative below",
    ),
    "fold-height": ("sternal_notch", "imf", "How far the fold lies below the sternal notch"),
}


def height_landmarks(name: str, side: str) -> list[str]:
    """The two landmarks of a height."""
    return [mark if mark == "sternal_notch" else f"{mark}_{side}" for mark in HEIGHTS[name][:2]]


def marks_of(name: str) -> tuple[str, ...]:
    """The landmarks that a distance or height lies between; none of other measures."""
    if name in DISTANCES:
        return tuple(DISTANCES[name].landmarks)
    heights = [(one, side) for one in HEIGHTS for side in SIDES if name == f"{one}-{side}"]
    return tuple(mark for height in heights for mark in height_landmarks(*height))


def measure_heights(places: Landmarks, sd: Mapping[str, float]) -> tuple[Measure, ...]:
    """Vertical distances on the upright patient."""
    out = []
    for side in SIDES:
        for name in HEIGHTS:
            marks = height_landmarks(name, side)
            missing = [mark for mark in marks if mark not in places]
            if missing:
                code = "needs-fold" if missing[0].startswith("imf") else "needs-landmarks"
                reason = note(code, "needs {names:landmark| and }", names=missing)
                out.append(Measure(f"{name}-{side}", "height", float("nan"), "mm", reason))
                continue
            value = float(places[marks[0]][1] - places[marks[1]][1])
            spread = float(np.hypot(sd[marks[0]], sd[marks[1]]))
            out.append(Measure(f"{name}-{side}", "height", value, "mm", None, spread, _source(marks, sd)))
    return tuple(out)
