"""A seamless join: how a difference at a region's border fades out inside it, and how sharply skin is bent there."""

from __future__ import annotations

import numpy as np
from scipy.sparse import diags
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.mesh.geometry import face_normals, vertex_areas
from breastmorph.mesh.topology import edge_table
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel

_COLUMNS = 96  # right-hand sides at a time


class Seam:
    """The continuation of a difference into a region.

    Parameters
    ----------
    mesh : TriangleMesh
        A template or a model's mean.
    region : (n,) bool
        Vertices where the difference is not known.
    length : float
        mm over which it fades out.
    """

    def __init__(self, mesh: TriangleMesh, region: Bools, length: float) -> None:
        import igl

        laplacian = igl.cotmatrix(np.array(mesh.vertices), np.array(mesh.faces)).tocsr()
        areas = vertex_areas(mesh.vertices, mesh.faces)
        areas = np.maximum(areas, 1e-6 * areas.mean())
        energy = (laplacian.T @ diags(1.0 / areas) @ laplacian + diags(areas / length**4)).tocsr()
        self.region = np.flatnonzero(region)
        rows = energy[self.region]
        around = np.zeros(mesh.n_vertices, bool)
        around[rows.indices] = True
        self.border = np.flatnonzero(around & ~region)
        self._given = rows[:, self.border]
        # Symmetric, so that the ordering by A + A' keeps the factors small.
        self._factor = splu(
            rows[:, self.region].tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}
        )

    def continued(self, at_border: Floats) -> Floats:
        """The field inside the region, (m, ...), of a difference at the vertices ``border``, (b, ...)."""
        given = self._given @ at_border.reshape(len(self.border), -1)
        out = np.empty_like(given)
        for start in range(0, given.shape[1], _COLUMNS):
            part = slice(start, start + _COLUMNS)
            out[:, part] = self._factor.solve(-given[:, part])
        found: Floats = out.reshape(len(self.region), *at_border.shape[1:])
        return found

    def pulled_back(self, inside: Floats) -> Floats:
        """From a derivative by :meth:`continued` (m, 3) to that by the difference at the border, (b, 3)."""
        back: Floats = -(self._given.T @ self._factor.solve(inside))  # the system is symmetric
        return back


_BAND = 30.0  # mm of free skin along the border that are looked at
_DRAWN = 32  # differences of two people
_SHARPEST = 99.0  # percent of the places that bend less than what is reported
_STIFF = 0.1  # of the usual difference: places where people differ less than that count as differing by it


class JoinedBorder:
    """The free skin along the border of fixed skin.

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
