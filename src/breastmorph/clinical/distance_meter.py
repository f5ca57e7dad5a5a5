"""Clinical distances of upright shapes in mm with their derivatives: straight, and over the skin by tape lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.distances import DISTANCES, TAPE, Distance
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.skin_points import Function, Reading, SkinLandmarks, SkinPoints, derivative
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, MeshProblem
from breastmorph.foundation.messages import Finding, note
from breastmorph.mesh.closest import Geodesics, Surface, near_lines
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import Landmarks

_DETOURS = (1.5, np.inf)  # how much longer than the straight line a tape line may be, tried in turn


@dataclass(frozen=True, eq=False)
class TapeLine:
    """A line of straight pieces over the skin.

    Attributes
    ----------
    points : SkinPoints
        Its corners, from end to end; they stick to the skin. To first order the shortest line keeps them when the
        shape changes, because a shortest line's length does not change when the line itself is moved a little.
    """

    points: SkinPoints

    def length(self, vertices: Floats) -> float:
        """Length in a shape (n, 3)."""
        return float(np.linalg.norm(np.diff(self.points.at(vertices), axis=0), axis=1).sum())

    def derivative(self, vertices: Floats) -> Floats:
        """Derivative of the length by the line's corners, (k, 3)."""
        steps = np.diff(self.points.at(vertices), axis=0)
        lengths = np.linalg.norm(steps, axis=1, keepdims=True)
        along = np.divide(steps, lengths, out=np.zeros_like(steps), where=lengths > 0)
        out = np.zeros((len(self.points), 3))
        out[1:] += along
        out[:-1] -= along
        return out


def tape_lines(surface: Surface, starts: SkinPoints, ends: SkinPoints) -> list[TapeLine | None]:
    """Shortest lines between pairs of points; None where no line joins a pair.

    Parameters
    ----------
    surface : Surface
        Of a manifold mesh.
    starts, ends : SkinPoints
        k of each, on that mesh.
    """
    mesh = surface.mesh
    a, b = starts.at(mesh.vertices), ends.at(mesh.vertices)
    lines: list[TapeLine | None] = []
    for k, path in enumerate(shortest_paths(mesh, a, b)):
        if path is None:
            lines.append(None)
            continue
        first, last = starts.chosen([k]), ends.chosen([k])
        inner = first.followed_by(SkinPoints.on(surface, path[1:-1])) if len(path) > 2 else first
        lines.append(TapeLine(inner.followed_by(last)))
    return lines


def shortest_paths(mesh: TriangleMesh, a: Floats, b: Floats) -> list[Floats | None]:
    """Polylines over the skin between pairs of points (k, 3); None where no line joins a pair.

    They are looked for near the straight line first: most of a torso is far from any of them.
    """
    straight = np.linalg.norm(b - a, axis=1)
    paths: list[Floats | None] = [None] * len(a)
    left = np.flatnonzero(straight > 0)
    for k in np.flatnonzero(straight == 0):
        paths[k] = np.stack([a[k], b[k]])
    for detour in _DETOURS:
        if not len(left):
            break
        limits = detour * straight
        part = mesh if np.isinf(detour) else near_lines(mesh, a[left], b[left], limits[left])
        open_pairs = []
        for k, path in zip(left, _paths(part, a[left], b[left]), strict=True):
            if path is None or np.linalg.norm(np.diff(path, axis=0), axis=1).sum() > limits[k]:
                open_pairs.append(k)
            else:
                paths[k] = path
        left = np.array(open_pairs, dtype=np.int64)
    return paths


def _paths(mesh: TriangleMesh, a: Floats, b: Floats) -> list[Floats | None]:
    """Polylines from end to end; None where no line joins the two."""
    points, place = np.unique(np.vstack([a, b]), axis=0, return_inverse=True)
    starts, ends = place.reshape(2, -1).tolist()
    geodesics = Geodesics(mesh, points)
    paths: list[Floats | None] = []
    for start, end in zip(starts, ends, strict=True):
        try:
            paths.append(geodesics.path(start, end))
        except MeshProblem:
            paths.append(None)
    return paths


def densely(points: Floats, step: float) -> Floats:
    """Points of a polyline (k, 3) at most ``step`` apart, (m, 3)."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    way = np.linspace(0.0, along[-1], max(2, int(along[-1] / step) + 2))
    return np.column_stack([np.interp(way, along, points[:, axis]) for axis in range(3)])


def section_length(vertices: Floats, faces: Ints, height: float) -> float:
    """Length of the horizontal line over the skin at a height, mm; NaN where there is no skin."""
    corners = vertices[faces]
    above = corners[:, :, 1] > height
    crossed = corners[above.any(axis=1) & ~above.all(axis=1)]
    if not len(crossed):
        return float("nan")
    over = crossed[:, :, 1] > height
    alone = np.where(
        over.sum(axis=1) == 1, over.argmax(axis=1), (~over).argmax(axis=1)
    )  # corner on its own side
    rows = np.arange(len(crossed))
    tip = crossed[rows, alone]
    cuts = []
    for step in (1, 2):
        end = crossed[rows, (alone + step) % 3]
        share = (height - tip[:, 1]) / (end[:, 1] - tip[:, 1])
        cuts.append(tip + share[:, None] * (end - tip))
    return float(np.linalg.norm(cuts[0] - cuts[1], axis=1).sum())


def _norm(vector: NDArray[Any]) -> NDArray[Any]:
    length: NDArray[Any] = np.sqrt((vector * vector).sum())
    return length


def between(points: NDArray[Any]) -> NDArray[Any]:
    """Distance of the first two points."""
    return _norm(points[0] - points[1])


def from_plane(points: NDArray[Any]) -> NDArray[Any]:
    """Distance of a point from the sagittal plane through notch and xiphoid (the notch alone: x = that of it)."""
    normal = np.array([1.0, 0.0, 0.0], dtype=points.dtype)
    if len(points) == 3:
        down = points[2] - points[1]
        normal = np.stack([down[1], -down[0], 0.0 * down[0]])  # across the sternum, horizontal in depth
    offset: NDArray[Any] = ((points[0] - points[1]) * normal).sum() / _norm(normal)
    return offset if offset.real >= 0 else -offset


def midline(points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """x and y of the midline at the height of the first point, from notch and xiphoid or the notch alone."""
    height, notch = points[0, 1], points[1]
    if len(points) == 2:
        return notch[0], height
    down = points[2] - notch
    return notch[0] + (height - notch[1]) / down[1] * down[0], height


def midline_point(points: NDArray[Any]) -> NDArray[Any]:
    """The midline on the plane of a triangle (first three points), at the height of the nipple (fourth), (3,)."""
    x, y = midline(points[3:])
    a, b, c = points[:3]
    u, v = b - a, c - a
    normal = np.stack([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])
    depth = a[2] - (normal[0] * (x - a[0]) + normal[1] * (y - a[1])) / normal[2]
    return np.stack([x, y, depth])


def to_midline(points: NDArray[Any]) -> NDArray[Any]:
    """Distance from the first point to the midline."""
    return _norm(points[0] - midline_point(points[1:]))


def over_chord(points: NDArray[Any]) -> NDArray[Any]:
    """Distance of the nipple (fifth point) from the line between the first point and the midline."""
    end = midline_point(points[1:])
    chord, up = end - points[0], points[4] - points[0]
    along = (up * chord).sum() / (chord * chord).sum()
    return _norm(up - along * chord)


class DistanceMeter:
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
    def of_vertices(cls, faces: Ints, ids: Mapping[str, int]) -> DistanceMeter:
        """For a template's or a model's landmark vertices."""
        return cls(faces, SkinLandmarks.of_vertices(ids))

    def lacks(self, name: str) -> Finding | None:
        """Why a distance cannot be determined, or None."""
        missing = [one for one in DISTANCES[name].landmarks if one not in self.landmarks]
        if not missing:
            return None
        return note(
            "needs-fold" if missing[0].startswith("imf") else "needs-landmarks",
            "needs {names:landmark| and }",
            names=missing,
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
            raise BreastMorphError(
                "{name:measure} cannot be determined: {why}",
                "Choose another measure",
                code="not-determinable/why",
                name=name,
                why=one,
            )
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
                    reason = note("no-midline", "no skin at the midline at the height of the nipple")
                elif kind == TAPE:
                    taped.append((k, ends))
                else:
                    out.append(ends.straight(vertices, distance.form, with_gradient))
                    continue
            elif reason is None:
                out.append(self._plain(vertices, distance, with_gradient))
                continue
            out.append(
                reason or note("no-line", "no way over the skin joins its ends")
            )  # a tape line is found below
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
    return DistanceMeter(mesh.faces, SkinLandmarks.on(Surface(mesh), needed)).measures(mesh.vertices)
