"""Clinical distances of upright shapes in mm, with their derivatives by the vertices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from breastmorph.clinical.distances import DISTANCES, TAPE, Distance
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.skin_points import Function, Reading, SkinLandmarks, SkinPoints, derivative
from breastmorph.clinical.straight_distances import (
    between,
    from_plane,
    midline,
    midline_point,
    over_chord,
    to_midline,
)
from breastmorph.clinical.tape_lines import TapeLine, tape_lines
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.messages import Finding, note
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import Landmarks


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
            )  # a tape line is laid below
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
