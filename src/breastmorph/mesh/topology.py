"""What is joined to what: edges, borders, pieces, manifoldness. Plain functions on ``faces (m, 3)``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components

from breastmorph.foundation.arrays import Bools, Floats, Ints

_Indices = NDArray[np.int32]

MANY = 250_000  # faces from which on compiled code is worth the second in which it is made ready


def pays_compiled(count: int) -> bool:
    """Whether to ask the compiled twin of a function, which gives the same bits; a registration asks it at any size."""
    return count > MANY


_BLOCK = 2**16  # half-edges at once: numpy makes all numbers that it looks up by twice as long


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
    partner : (3m,) int32
        Another directed edge on the same edge, of another face where those name three vertices; -1 on the border.
    corners : (m, 3) int
        The faces that the table was made of.
    """

    edges: Ints
    face_count: Ints
    of_half_edge: Ints
    partner: _Indices
    corners: Ints

    @property
    def directed(self) -> Ints:
        """Directed edges (3m, 2) as their faces run: the edges (0,1) of every face, then (1,2), then (2,0)."""
        return np.concatenate([self.corners[:, [0, 1]], self.corners[:, [1, 2]], self.corners[:, [2, 0]]])

    @cached_property
    def boundary(self) -> Ints:
        """Directed border edges (b, 2), each as its face runs through it."""
        side, face = np.divmod(np.flatnonzero(self.partner < 0), len(self.corners))
        return np.stack([self.corners[face, side], self.corners[face, (side + 1) % 3]], axis=1)

    @property
    def conflicts(self) -> Ints:
        """How many faces too many run through each edge in one direction, (e,): 0 where neighbours agree."""
        upwards = np.concatenate([self.corners[:, k] < self.corners[:, (k + 1) % 3] for k in range(3)])
        up = np.bincount(self.of_half_edge[upwards], minlength=len(self.edges))
        return np.maximum(up - 1, 0) + np.maximum(self.face_count - up - 1, 0)

    @cached_property
    def is_plain(self) -> bool:
        """Whether every edge has one or two faces, and two run through it in opposite directions."""
        if self.face_count.max(initial=0) > 2:
            return False
        upwards = np.concatenate([self.corners[:, k] < self.corners[:, (k + 1) % 3] for k in range(3)])
        return not any(
            ((upwards[here] == upwards[self.partner[here]]) & (self.partner[here] >= 0)).any()
            for here in (slice(start, start + _BLOCK) for start in range(0, len(upwards), _BLOCK))
        )

    def ids_of(self, pairs: Ints) -> Ints:
        """Row in ``edges`` of every vertex pair (k, 2), (k,); -1 where the pair is no edge."""
        n = int(max(self.edges.max(initial=0), pairs.max(initial=0))) + 1
        known = self.edges[:, 0] * n + self.edges[:, 1]
        asked = pairs.min(axis=1) * n + pairs.max(axis=1)
        place = np.minimum(np.searchsorted(known, asked), len(known) - 1)
        return np.where(known[place] == asked, place, -1)


_RECENT = 8  # tables that are kept: one scan is asked for its edges a dozen times, between its parts
_RECENT_FACES = 4_000_000  # of the older ones together: those of a dense scan take 100 bytes a face
_recent: tuple[tuple[Ints, EdgeTable], ...] = ()


def edge_table(faces: Ints) -> EdgeTable:
    """The table of undirected edges. Those of the last meshes (read-only faces) are not built again."""
    global _recent
    if faces.flags.writeable:
        return _built(faces)
    # A read-only view does not keep its owner from writing.
    found = [
        (known, table)
        for known, table in _recent
        if known.shape == faces.shape
        and known.strides == faces.strides
        and known.ctypes.data == faces.ctypes.data
        and np.array_equal(table.corners, faces)
    ]
    table = found[0][1] if found else _built(faces)
    older = tuple(entry for entry in _recent if entry[1] is not table)[: _RECENT - 1]
    while len(older) > 1 and sum(len(known) for known, _ in older) > _RECENT_FACES:
        older = older[:-1]
    _recent = ((faces, table), *older)  # holding the array keeps its memory from being reused
    return table


def _built(faces: Ints) -> EdgeTable:
    n = max(int(faces.max()) + 1, 1) if faces.size else 1
    if pays_compiled(len(faces)):
        from breastmorph.mesh import dense

        found = dense.edges_of(faces, n)
        if found is not None:
            return EdgeTable(*found, np.array(faces))
    low, high = np.empty((2, 3, len(faces)), np.int32)
    for k in range(3):
        start, end = faces[:, k], faces[:, (k + 1) % 3]
        low[k], high[k] = np.minimum(start, end), np.maximum(start, end)
    order, (low, high), is_new = _in_order([low.ravel(), high.ravel()], n)
    first = np.flatnonzero(is_new)
    of_half_edge = np.empty(len(order), np.int64)
    of_half_edge[order] = np.cumsum(is_new, dtype=np.int32) - 1
    edges = np.stack([low[first], high[first]], axis=1).astype(np.int64)
    again = np.flatnonzero(~is_new)
    partner = np.full(len(order), -1, np.int32)
    partner[order[again - 1]] = order[again]
    partner[order[again]] = order[again - 1]  # of more than two, each but the first has the one before it
    return EdgeTable(edges, np.diff(first, append=len(order)), of_half_edge, partner, np.array(faces))


def _in_order(columns: Sequence[_Indices], n: int) -> tuple[_Indices, Sequence[_Indices], Bools]:
    """Rows of numbers from 0 to n - 1 in their order, which is stable.

    The numbers are counted, not compared, which is far quicker for millions: to transpose a sparse matrix with one
    entry a row is to do just that.

    Returns
    -------
    order : (k,) int32
    columns : sequence of (k,) int32
        As given, in that order.
    is_new : (k,) bool
        Whether a row differs from the one before it.
    """
    k = len(columns[0])
    start, one = np.arange(k + 1, dtype=np.int32), np.ones(k, np.int8)
    *others, last = columns
    order: _Indices = csr_matrix((one, last, start), shape=(k, n)).tocsc().indices
    for column in others[::-1]:
        order = order[csr_matrix((one, column[order], start), shape=(k, n)).tocsc().indices]
    columns = [column[order] for column in columns]
    is_new = np.zeros(k, bool)
    is_new[:1] = True
    for column in columns:
        is_new[1:] |= column[1:] != column[:-1]
    return order, columns, is_new


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
    m, partner = len(faces), edge_table(faces).partner
    if m > MANY:
        from breastmorph.mesh import dense

        return dense.pieces(partner, m)
    second = np.flatnonzero((partner >= 0) & (partner < np.arange(len(partner), dtype=np.int32)))
    face, other = second % m, partner[second] % m
    graph = coo_matrix((np.ones(len(face), np.int8), (face, other)), shape=(m, m))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def vertex_neighbours(faces: Ints, n_vertices: int) -> tuple[Ints, Ints]:
    """One-ring neighbours in compressed rows: those of vertex i are ``ids[start[i]:start[i + 1]]``."""
    edges = edge_table(faces).edges
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    start = np.searchsorted(both[:, 0], np.arange(n_vertices + 1))
    return both[:, 1].copy(), start


def orientation_conflicts(faces: Ints) -> int:
    """Inner edges that both faces run through in the same direction (0 when consistently oriented)."""
    table = edge_table(faces)
    return 0 if table.is_plain else int(table.conflicts.sum())


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


def faces_with_all(chosen: Bools, faces: Ints) -> Bools:
    """Which faces have all three corners among chosen vertices (n,), (m,)."""
    a, b, c = faces.T
    return chosen[a] & chosen[b] & chosen[c]


def faces_with_any(chosen: Bools, faces: Ints) -> Bools:
    """Which faces have a corner among chosen vertices (n,), (m,)."""
    a, b, c = faces.T
    return chosen[a] | chosen[b] | chosen[c]


def has_twin_faces(faces: Ints) -> bool:
    """Whether two faces name the same three vertices, or may do so where many meet in one edge; a quick test."""
    table = edge_table(faces)
    if table.face_count.max(initial=0) > 2:
        return True
    one, other, third = table.partner.reshape(3, -1)
    inner = np.flatnonzero((one >= 0) & (other >= 0) & (third >= 0))
    beside = one[inner] % len(faces)
    inner, beside = (x[beside == other[inner] % len(faces)] for x in (inner, beside))
    return bool((beside == third[inner] % len(faces)).any())


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
    if _has_one_fan_each(faces):
        return faces, np.empty(0, np.int64)
    fan_of_corner, n_fans = _fans(faces)
    corners = faces.ravel()
    vertex_of_fan = np.empty(n_fans, dtype=np.int64)
    vertex_of_fan[fan_of_corner] = corners
    new_id = vertex_of_fan.copy()
    order = np.argsort(vertex_of_fan, kind="stable")
    again = order[1:][vertex_of_fan[order][1:] == vertex_of_fan[order][:-1]]
    new_id[again] = n_vertices + np.arange(len(again))
    return new_id[fan_of_corner].reshape(-1, 3), vertex_of_fan[again]


def _has_one_fan_each(faces: Ints) -> bool:
    """A quick test whether the mesh is manifold: from one corner of every vertex, all its corners are reached."""
    table = edge_table(faces)
    if not len(faces) or not table.is_plain:
        return False
    # Corner k of face f and the half-edge that leaves it have the number k m + f.
    corners, numbers = faces.T.ravel(), np.arange(faces.size, dtype=np.int32)
    border = np.flatnonzero(table.partner < 0)
    following = np.roll(table.partner, len(faces))  # across the half-edge that arrives
    begin = np.full(int(corners.max()) + 1, -1, np.int32)
    begin[corners] = numbers
    begin[corners[border]] = border  # an open fan begins at its end
    left = np.bincount(corners)
    begin, left = begin[begin >= 0], left[begin >= 0] - 1
    at = begin
    while len(at):
        at = following[at]
        goes_on = (at >= 0) & (at != begin)
        if left[~goes_on].any():
            return False
        begin, left, at = begin[goes_on], left[goes_on] - 1, at[goes_on]
    return True


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


_ROUNDS = 8  # each leaves a third of the rows at most
_ODD = np.uint64(0x9E3779B97F4A7C15)


def joined(rows: NDArray[Any]) -> tuple[Ints, Ints]:
    """Join equal rows (n, w) of numbers, as vertices at exactly the same position.

    Returns
    -------
    kept : (k,) int
        The first of each, in the order of the list.
    new_id : (n,) int
        Where each row went.
    """
    values = np.ascontiguousarray(rows + 0.0)  # -0 is 0
    words = values.view(f"u{values.itemsize}")
    every = np.arange(len(words))
    first, left, key = every.copy(), every, _mixed(words)
    # Far quicker than a sort: a table with the first row of each place, and another for the rows that are unlike it.
    for _ in range(_ROUNDS):
        key *= _ODD
        bits = len(left).bit_length() or 1
        place = (key >> np.uint64(64 - bits)).astype(np.intp)
        lowest = np.full(1 << bits, len(words))
        np.minimum.at(lowest, place, left)
        first[left] = found = lowest[place]
        is_other = np.any([column[left] != column[found] for column in words.T], axis=0)
        left, key = left[is_other], key[is_other]
    if len(left):  # a few, unless the file was made for it
        _, at, group = np.unique(words[left], axis=0, return_index=True, return_inverse=True)
        first[left] = left[at[group.ravel()]]
    is_kept = first == every
    return np.flatnonzero(is_kept), (np.cumsum(is_kept) - 1)[first]


def linked(rows: Floats, reach: float) -> Ints:
    """Groups of rows (k, d) that paths of steps no longer than ``reach`` link, (k,)."""
    from scipy.spatial import cKDTree  # late: reading and writing meshes needs none

    if not len(rows):  # nothing is left, of which there would be no tree
        return np.zeros(0, np.int64)
    pairs = cKDTree(rows).query_pairs(reach, output_type="ndarray")
    links = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(rows),) * 2)
    groups: Ints = connected_components(links, directed=False)[1]
    return groups


def _mixed(words: NDArray[Any]) -> NDArray[np.uint64]:
    """A number of each row (n, w) of bits that is hardly ever that of another row, (n,)."""
    key = np.zeros(len(words), np.uint64)
    for column in words.T:
        key ^= column
        key *= _ODD
        key ^= key >> np.uint64(32)
    return key
