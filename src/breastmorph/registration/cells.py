"""Cells of a mesh: the spokes and rims around every vertex, and the sparse pattern they make."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.mesh.topology import edge_table

_LARGEST_COTANGENT = 1.0 / math.tan(1e-3)  # of a needle


@dataclass(frozen=True, eq=False)
class Cells:
    """Which edges belong to which vertex's cell.

    An edge counts once in the cells of its two ends (spokes) and half in the cells of its one or two opposite
    vertices (rims).

    Attributes
    ----------
    faces : (m, 3) int
    edges : (e, 2) int
    of_half_edge : (3m,) int
        Edge of every directed edge: those leaving corner 0 of every face, then corner 1, then corner 2.
    opposite : (e, 2) int
        Vertices facing each edge; the second is -1 on the border.
    start : (n + 1,) int
        The members of vertex i's cell are ``members[start[i]:start[i + 1]]``.
    members : (k,) int
        Edges.
    share : (k,) float
        1 for spokes, 1/2 for rims.
    """

    faces: Ints
    edges: Ints
    of_half_edge: Ints
    opposite: Ints
    start: Ints
    members: Ints
    share: Floats

    def cotangent_weights(self, vertices: Floats, smallest: float) -> Floats:
        """w_jk = (cot + cot) / 2 of the angles facing each edge, at least ``smallest``, (e,)."""
        from breastmorph.mesh import dense

        at_corners = dense.cotangents(vertices, self.faces, _LARGEST_COTANGENT)
        facing = at_corners[:, [2, 0, 1]].T.ravel()  # the half-edge leaving corner 0 faces corner 2
        total = np.bincount(self.of_half_edge, weights=0.5 * facing, minlength=len(self.edges))
        return np.maximum(total, smallest)

    def stiffness_of_edges(self, edge_weights: Floats, vertex_weights: Floats) -> Floats:
        """Entries of K: each edge's weight times the weights of the cells it is in, over 3, (e,)."""
        padded = np.append(vertex_weights, 0.0)  # -1 finds the zero
        cells = padded[self.edges].sum(axis=1) + 0.5 * padded[self.opposite].sum(axis=1)
        found: Floats = edge_weights * cells / 3.0
        return found


def spokes_and_rims(faces: Ints, n_vertices: int) -> Cells:
    """Collect the cells of a manifold mesh."""
    table = edge_table(faces)
    facing = faces[:, [2, 0, 1]].T.ravel()
    order = np.argsort(table.of_half_edge, kind="stable")
    first = np.searchsorted(table.of_half_edge[order], np.arange(len(table.edges)))
    opposite = np.full((len(table.edges), 2), -1, dtype=np.int64)
    opposite[:, 0] = facing[order[first]]
    inner = table.face_count > 1
    opposite[inner, 1] = facing[order[first[inner] + 1]]

    edge_ids = np.arange(len(table.edges))
    has_second = opposite[:, 1] >= 0
    owner = np.concatenate([table.edges[:, 0], table.edges[:, 1], opposite[:, 0], opposite[has_second, 1]])
    member = np.concatenate([edge_ids, edge_ids, edge_ids, edge_ids[has_second]])
    share = np.where(np.arange(len(owner)) < 2 * len(edge_ids), 1.0, 0.5)
    by_owner = np.lexsort((member, owner))
    start = np.searchsorted(owner[by_owner], np.arange(n_vertices + 1))
    return Cells(
        np.array(faces),
        table.edges,
        table.of_half_edge,
        opposite,
        start.astype(np.int64),
        member[by_owner],
        share[by_owner],
    )
