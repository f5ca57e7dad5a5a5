"""How sharply skin is bent where free skin meets fixed skin, and how sharply people's skin differs there."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.mesh.geometry import face_normals
from breastmorph.mesh.topology import edge_table
from breastmorph.model.shape_model import ShapeModel

_BAND = 30.0  # mm of free skin along the border that are looked at
_DRAWN = 32  # differences of two people
_SHARPEST = 99.0  # percent of the places that bend less than what is told
_STIFF = 0.1  # of the usual difference: places where people differ less than that count as differing by it


class JoinedBorder:
    """The free skin along the border of what is held.

    Parameters
    ----------
    model : ShapeModel
    free : (n,) bool
        Skin that may move.
    """

    def __init__(self, model: ShapeModel, free: Bools) -> None:
        table = edge_table(model.faces)
        near = free & (cKDTree(model.mean[~free]).query(model.mean, distance_upper_bound=_BAND)[0] < np.inf)
        inside = np.flatnonzero((table.face_count == 2) & near[table.edges].any(axis=1))
        # The two faces of every such edge, by its two directed edges.
        half_edges = np.argsort(table.of_half_edge, kind="stable")
        first = half_edges[np.searchsorted(table.of_half_edge[half_edges], inside)[:, None] + [0, 1]]
        self._edges = table.edges[inside]
        self._corners = np.asarray(model.faces)[first % len(model.faces)]  # (e, 2, 3)
        rng = np.random.default_rng(0)
        apart = np.sqrt(2.0)  # two people differ by so much more than one from the mean
        drawn = [model.mean + apart * (model.drawn(rng) - model.mean) for _ in range(_DRAWN)]
        differ = np.array([self._turned(model.mean, shape) for shape in drawn])
        people = np.sqrt((differ**2).mean(axis=0))
        self._people = np.maximum(
            people, max(_STIFF * float(np.median(people)) if len(people) else 0.0, 1e-9)
        )
        self._most = max(map(self._sharpest, differ))

    def bend(self, before: Floats, after: Floats) -> float:
        """How much the skin is bent from one shape (n, 3) to another; 1 is what two of the model's people differ by.

        Place by place, because people's skin differs much along the fold and little on the breastbone; of the places
        the sharpest.
        """
        return self._sharpest(self._turned(before, after)) / max(self._most, 1e-9)

    def _turned(self, before: Floats, after: Floats) -> Floats:
        """Change of the angles between neighbouring triangles, (e,)."""
        turned = self._angles(after) - self._angles(before)
        return np.abs((turned + np.pi) % (2.0 * np.pi) - np.pi)

    def _sharpest(self, turned: Floats) -> float:
        return float(np.percentile(turned / self._people, _SHARPEST)) if len(turned) else 0.0

    def _angles(self, shape: Floats) -> Floats:
        """Signed angles between neighbouring triangles, (e,)."""
        one, other = (face_normals(shape, self._corners[:, k]) for k in (0, 1))
        along = shape[self._edges[:, 1]] - shape[self._edges[:, 0]]
        along = along / np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
        sine = (np.cross(one, other) * along).sum(axis=1)
        return np.arctan2(sine, (one * other).sum(axis=1))
