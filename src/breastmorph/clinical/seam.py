"""A seamless join: how a difference at the border of a region fades out inside it."""

from __future__ import annotations

import numpy as np
from scipy.sparse import diags
from scipy.sparse.linalg import splu

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.mesh.geometry import vertex_areas
from breastmorph.mesh.triangle_mesh import TriangleMesh

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
