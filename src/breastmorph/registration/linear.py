"""Symmetric positive definite systems of one sparse pattern: analysed once, factored often."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csc_matrix

from breastmorph.mesh.triangle_mesh import Floats, Ints


class EdgeSystem:
    """Systems whose off-diagonal entries sit on the edges of one mesh.

    Parameters
    ----------
    edges : (e, 2) int
    n_vertices : int
    """

    def __init__(self, edges: Ints, n_vertices: int) -> None:
        self._edges, self._n = edges, n_vertices
        rows = np.concatenate([np.minimum(edges[:, 0], edges[:, 1]), np.arange(n_vertices)])
        columns = np.concatenate([np.maximum(edges[:, 0], edges[:, 1]), np.arange(n_vertices)])
        order = np.lexsort((rows, columns))
        self._order = order  # places (edges, diagonal) values into the upper triangle's columns
        self._indices = rows[order].astype(np.int32)
        self._indptr = np.searchsorted(columns[order], np.arange(n_vertices + 1)).astype(np.int32)
        self._solver: Any = None

    def factor(self, edge_stiffness: Floats, diagonal: Floats) -> None:
        """Factor sum_e k_e (x_j - x_k)^2 + sum_i d_i x_i^2 for edge stiffness k (e,) and diagonal d (n,)."""
        total = diagonal.copy()
        for end in (0, 1):
            total += np.bincount(self._edges[:, end], weights=edge_stiffness, minlength=self._n)
        values = np.concatenate([-edge_stiffness, total])[self._order]
        upper = csc_matrix((values, self._indices, self._indptr), shape=(self._n, self._n))
        import qdldl

        if self._solver is None:
            self._solver = qdldl.Solver(upper, upper=True)
        else:
            self._solver.update(upper, upper=True)

    def solve(self, right: Floats) -> Floats:
        """Solve for right-hand sides (n, 3)."""
        return np.column_stack([self._solver.solve(np.ascontiguousarray(column)) for column in right.T])
