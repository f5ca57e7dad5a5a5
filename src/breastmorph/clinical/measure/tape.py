"""Tape lines: the shortest lines over the skin between points of it, with how their length changes with the shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.clinical.measure.skin_points import SkinPoints
from breastmorph.errors import MeshProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geodesic import Geodesics, near_lines
from breastmorph.mesh.triangle_mesh import Floats, TriangleMesh

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
    straight = np.linalg.norm(b - a, axis=1)
    lines: list[TapeLine | None] = [None] * len(a)
    left = np.flatnonzero(straight > 0)
    for k in np.flatnonzero(straight == 0):
        lines[k] = TapeLine(starts.chosen([int(k)]).followed_by(ends.chosen([int(k)])))
    for detour in _DETOURS:
        if not len(left):
            break
        limits = detour * straight
        part = mesh if np.isinf(detour) else near_lines(mesh, a[left], b[left], limits[left])
        open_pairs = []
        for k, path in zip(left, _paths(part, a[left], b[left]), strict=True):
            if path is None or np.linalg.norm(np.diff(path, axis=0), axis=1).sum() > limits[k]:
                open_pairs.append(k)
                continue
            between = SkinPoints.on(surface, path[1:-1])
            lines[k] = TapeLine(
                starts.chosen([int(k)]).followed_by(between).followed_by(ends.chosen([int(k)]))
            )
        left = np.array(open_pairs, dtype=np.int64)
    return lines


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
