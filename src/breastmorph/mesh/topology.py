"""What is joined to what: edges, borders, pieces, manifoldness. Plain functions on ``faces (m, 3)``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from breastmorph.mesh.triangle_mesh import Bools, Ints


@dataclass(frozen=True)
class EdgeTable:
    """Undirected edges of a mesh and the faces on them.

    Attributes
    ----------
    edges : (e, 2) int
        Vertex ids, smaller first, sorted.
    face_count : (e,) int
        Faces on each edge: 1 on the border, 2 inside, more where not manifold.
    of_half_edge : (3m,) int
        Edge of every directed edge.
    directed : (3m, 2) int
        Directed edges as their faces run: the edges (0,1) of every face, then (1,2), then (2,0).
    """

    edges: Ints
    face_count: Ints
    of_half_edge: Ints
    directed: Ints

    @cached_property
    def boundary(self) -> Ints:
        """Directed border edges (b, 2), each as its face runs through it."""
        return self.directed[self.face_count[self.of_half_edge] == 1]

    @property
    def corners(self) -> Ints:
        """The faces that the table was made of, (m, 3)."""
        return self.directed[:, 0].reshape(3, -1).T

    def ids_of(self, pairs: Ints) -> Ints:
        """Row in ``edges`` of every vertex pair (k, 2), (k,); -1 where the pair is no edge."""
        n = int(max(self.edges.max(initial=0), pairs.max(initial=0))) + 1
        known = self.edges[:, 0] * n + self.edges[:, 1]
        asked = pairs.min(axis=1) * n + pairs.max(axis=1)
        place = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        return np.where(known[place] == asked, place, -1)


_RECENT = 4  # tables that are kept: one scan is asked for its edges a dozen times on its way in
_recent: tuple[tuple[Ints, EdgeTable], ...] = ()


def edge_table(faces: Ints) -> EdgeTable:
    """The table of undirected edges. Those of the last meshes (read-only faces) are not built again."""
    global _recent
    if faces.flags.writeable:
        return _built(faces)
    for known, table in _recent:
        # A read-only view does not keep its owner from writing.
        if _is_same_memory(known, faces) and np.array_equal(table.corners, faces):
            return table
    table = _built(faces)
    _recent = (
        (faces, table),
        *_recent[: _RECENT - 1],
    )  # holding the array keeps its memory from being reused
    return table


def _is_same_memory(one: Ints, other: Ints) -> bool:
    return one.shape == other.shape and one.strides == other.strides and one.ctypes.data == other.ctypes.data


def _built(faces: Ints) -> EdgeTable:
    directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    ends = np.sort(directed, axis=1)
    n = int(faces.max()) + 1 if faces.size else 0
    key, of_half_edge, count = np.unique(ends[:, 0] * n + ends[:, 1], return_inverse=True, return_counts=True)
    edges = np.stack([key // max(n, 1), key % max(n, 1)], axis=1)
    return EdgeTable(edges, count, of_half_edge.ravel(), directed)


def boundary_vertices(faces: Ints, n_vertices: int) -> Bools:
    """Which vertices lie on a border, (n,)."""
    flag = np.zeros(n_vertices, bool)
    flag[edge_table(faces).boundary] = True
    return flag


def boundary_loops(faces: Ints) -> list[Ints]:
    """Border curves as vertex ids in order, longest first. Expects a manifold mesh.

    Where two loops touch in a vertex they are followed as they come; every border edge is used once.
    """
    following: dict[int, list[int]] = {}
    for start, end in edge_table(faces).boundary.tolist():
        following.setdefault(start, []).append(end)
    loops = []
    while following:
        loop = [next(iter(following))]
        while loop[-1] in following:
            ends = following[loop[-1]]
            loop.append(ends.pop())
            if not ends:
                del following[loop[-2]]
        loops.append(np.array(loop[:-1] if loop[0] == loop[-1] else loop, dtype=np.int64))
    return sorted(loops, key=len, reverse=True)


def face_components(faces: Ints) -> Ints:
    """Piece of every face, (m,): faces are joined where they share an edge."""
    table = edge_table(faces)
    m = len(faces)
    incidence = coo_matrix((np.ones(3 * m), (np.tile(np.arange(m), 3), table.of_half_edge)))
    return connected_components(incidence @ incidence.T, directed=False)[1].astype(np.int64)


def vertex_neighbours(faces: Ints, n_vertices: int) -> tuple[Ints, Ints]:
    """One-ring neighbours in compressed rows: those of vertex i are ``ids[start[i]:start[i + 1]]``."""
    edges = edge_table(faces).edges
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    start = np.searchsorted(both[:, 0], np.arange(n_vertices + 1))
    return both[:, 1].copy(), start


def orientation_conflicts(faces: Ints) -> int:
    """Inner edges that both faces run through in the same direction (0 when consistently oriented)."""
    directed = edge_table(faces).directed
    n = int(faces.max()) + 1 if faces.size else 0
    _, count = np.unique(directed[:, 0] * n + directed[:, 1], return_counts=True)
    return int((count - 1).sum())


def is_manifold(faces: Ints) -> bool:
    """Whether every edge has one or two faces, consistently oriented, and every vertex one fan of faces."""
    return (
        int(edge_table(faces).face_count.max(initial=0)) <= 2
        and orientation_conflicts(faces) == 0
        and not len(pinched_vertices(faces))
    )


def pinched_vertices(faces: Ints) -> Ints:
    """Vertices where separate fans of faces touch only in that vertex."""
    return np.unique(split_pinched(faces, 0)[1])


def with_three_corners(faces: Ints) -> Bools:
    """Which faces name three different vertices, (m,)."""
    return (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])


def split_pinched(faces: Ints, n_vertices: int) -> tuple[Ints, Ints]:
    """Give every fan of a pinched vertex a vertex of its own.

    Returns
    -------
    faces : (m, 3) int
        New vertices have ids from ``n_vertices`` on.
    source : (k,) int
        The old vertex each new vertex copies.
    """
    fan_of_corner, n_fans = _fans(faces)
    corners = faces.ravel()
    vertex_of_fan = np.empty(n_fans, dtype=np.int64)
    vertex_of_fan[fan_of_corner] = corners
    new_id = vertex_of_fan.copy()
    order = np.argsort(vertex_of_fan, kind="stable")
    again = order[1:][vertex_of_fan[order][1:] == vertex_of_fan[order][:-1]]
    new_id[again] = n_vertices + np.arange(len(again))
    return new_id[fan_of_corner].reshape(-1, 3), vertex_of_fan[again]


def _fans(faces: Ints) -> tuple[Ints, int]:
    """Fan of every face corner (3m,): corners of one vertex are joined across shared edges."""
    m = len(faces)
    table = edge_table(faces)
    # The half-edge k of face f leaves corner k and arrives at corner k + 1.
    leaving = (np.arange(m)[None, :] * 3 + np.arange(3)[:, None]).ravel()
    arriving = (np.arange(m)[None, :] * 3 + (np.arange(3)[:, None] + 1) % 3).ravel()
    corners = faces.ravel()
    rows, columns = [], []
    order = np.argsort(table.of_half_edge, kind="stable")
    same = table.of_half_edge[order][1:] == table.of_half_edge[order][:-1]
    one, other = order[:-1][same], order[1:][same]
    for a in (leaving, arriving):
        for b in (leaving, arriving):
            match = corners[a[one]] == corners[b[other]]
            rows.append(a[one][match])
            columns.append(b[other][match])
    row, column = np.concatenate(rows), np.concatenate(columns)
    graph = coo_matrix((np.ones(len(row)), (row, column)), shape=(3 * m, 3 * m))
    n_fans, fan = connected_components(graph, directed=False)
    return fan.astype(np.int64), int(n_fans)
