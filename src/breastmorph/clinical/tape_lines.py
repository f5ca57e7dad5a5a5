"""Tape lines: the shortest lines over the skin between points of it, and how their length changes with the shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.clinical.skin_points import SkinPoints
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import MeshProblem
from breastmorph.mesh.closest import Geodesics, Surface, near_lines
from breastmorph.mesh.triangle_mesh import TriangleMesh

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
