"""Edge operations on many edges at once: split, collapse and flip in sets that do not touch each other.

A mesh under work is held as plain arrays in a :class:`Net`. Every pass picks, by rank, edges whose
neighbourhoods are disjoint and changes them together, so that no pass depends on the order of the edges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_matrix

from breastmorph.mesh.geometry import face_angles, face_cross, lengths, vertex_normals
from breastmorph.mesh.topology import (
    EdgeTable,
    boundary_vertices,
    edge_table,
    vertex_neighbours,
    with_three_corners,
)
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints

_MAX_PASSES = 30  # a pass always settles the most urgent edge, so this many rarely happen
_FACING = 0.3  # cosine a new triangle must keep with the surface around it


@dataclass(frozen=True, eq=False)
class Net:
    """A triangle mesh being remeshed.

    Attributes
    ----------
    vertices : (n, 3) float
    faces : (m, 3) int
    fixed : (n,) bool
        Vertices that neither move nor vanish.
    source : (n,) int
        Id of the input's vertex for every fixed vertex, otherwise -1.
    """

    vertices: Floats
    faces: Ints
    fixed: Bools
    source: Ints

    def __post_init__(self) -> None:
        self.faces.flags.writeable = False  # so that its edges are found only once

    @property
    def table(self) -> EdgeTable:
        """Its edges; those on the border have one face."""
        return edge_table(self.faces)

    @property
    def on_border(self) -> Bools:
        """Vertices on the border, (n,)."""
        return boundary_vertices(self.faces, len(self.vertices))


def split_long(net: Net, longest: float) -> Net:
    """Halve edges longer than ``longest`` until none is left."""
    for _ in range(_MAX_PASSES):
        length = lengths(net.vertices, net.table.edges)
        candidate = length > longest
        if not candidate.any():
            break
        net = _split(net, _longest_of_all_their_faces(net.table, length, candidate))
    return net


def split_edges(net: Net, chosen: Ints) -> Net:
    """Halve the given edges, (k, 2) vertex ids; no two of them in one face."""
    flag = np.zeros(len(net.table.edges), bool)
    flag[net.table.ids_of(chosen)] = True
    return _split(net, flag)


def collapse_short(net: Net, shortest: float, longest: float) -> Net:
    """Pull edges shorter than ``shortest`` together if no fold and no edge over ``longest`` comes of it."""
    for _ in range(_MAX_PASSES):
        short = np.flatnonzero(lengths(net.vertices, net.table.edges) < shortest)
        if not len(short):
            break
        accepted = _collapsible(net, short, longest)
        if not len(accepted):
            break
        net = _collapse(net, accepted)
    return net


def flip_to_valence(net: Net) -> Net:
    """Flip edges towards six neighbours inside and four on the border."""
    for _ in range(_MAX_PASSES):
        diamonds = _diamonds(net)
        valence = np.bincount(net.table.edges.ravel(), minlength=len(net.vertices))
        excess = valence - np.where(net.on_border, 4, 6)
        a, b, c, d = diamonds.T
        before = sum(np.abs(excess[v]) for v in (a, b, c, d))
        after = np.abs(excess[a] - 1) + np.abs(excess[b] - 1) + np.abs(excess[c] + 1) + np.abs(excess[d] + 1)
        better = before > after
        diamonds, gain = diamonds[better], (before - after)[better].astype(float)
        worst_before, worst_after = _worst_angles(net.vertices, diamonds)
        allowed = worst_after > np.minimum(worst_before, np.radians(25.0))
        flipped = _flip(net, diamonds, gain, allowed)
        if flipped is None:
            break
        net = flipped
    return net


def flip_to_angles(net: Net) -> Net:
    """Flip edges where that enlarges the smallest angle of the two triangles (Delaunay)."""
    for _ in range(_MAX_PASSES):
        diamonds = _diamonds(net)
        before, after = _worst_angles(net.vertices, diamonds)
        flipped = _flip(net, diamonds, after - before, after - before > 1e-3)
        if flipped is None:
            break
        net = flipped
    return net


def _longest_of_all_their_faces(table: EdgeTable, length: Floats, candidate: Bools) -> Bools:
    rank = np.empty(len(length), dtype=np.int64)
    rank[np.lexsort((np.arange(len(length)), length))] = np.arange(len(length))
    of_face = table.of_half_edge.reshape(3, -1)
    score = np.where(candidate, rank, -1)[of_face]
    best = of_face[score.argmax(axis=0), np.arange(of_face.shape[1])]
    votes = np.bincount(best, minlength=len(length))
    return candidate & (votes == table.face_count)


def _split(net: Net, chosen: Bools) -> Net:
    n, m, table = len(net.vertices), len(net.faces), net.table
    split = table.edges[chosen]
    middle = np.full(len(chosen), -1)
    middle[chosen] = n + np.arange(len(split))
    of_face = middle[table.of_half_edge.reshape(3, m)]
    corner, face = np.nonzero(of_face >= 0)
    a, b, c = (net.faces[face, (corner + k) % 3] for k in range(3))
    new = of_face[corner, face]
    faces = net.faces.copy()
    faces[face] = np.stack([a, new, c], axis=1)
    return Net(
        np.concatenate([net.vertices, net.vertices[split].mean(axis=1)]),
        np.concatenate([faces, np.stack([new, b, c], axis=1)]),
        np.concatenate([net.fixed, np.zeros(len(split), bool)]),
        np.concatenate([net.source, np.full(len(split), -1)]),
    )


def _collapsible(net: Net, short: Ints, longest: float) -> Ints:
    """Directed edges (k, 2), from the vertex that goes to the one that stays, far enough from each other."""
    vertices, faces, n = net.vertices, net.faces, len(net.vertices)
    table, on_border = net.table, net.on_border
    pairs = np.concatenate([table.edges[short], table.edges[short][:, ::-1]])
    edge = np.tile(short, 2)
    allowed = ~net.fixed[pairs[:, 0]] & (~on_border[pairs[:, 0]] | (table.face_count[edge] == 1))
    pairs, edge = pairs[allowed], edge[allowed]
    if not len(pairs):
        return pairs

    # Link condition: the ends share no neighbour besides the corners facing the edge.
    neighbours, start = vertex_neighbours(faces, n)
    adjacency = csr_matrix((np.ones(len(neighbours), dtype=np.int64), neighbours, start), shape=(n, n))
    common = np.asarray(adjacency[pairs[:, 0]].multiply(adjacency[pairs[:, 1]]).sum(axis=1)).ravel()
    sound = common == table.face_count[edge]
    # Corners facing the edge lose one triangle; they must keep a proper fan.
    n_fan = np.bincount(faces.ravel(), minlength=n)
    too_few = n_fan < np.where(on_border, 2, 4)
    poor = np.zeros(len(table.edges), bool)
    opposite = faces[:, [2, 0, 1]].T.ravel()
    poor[table.of_half_edge[too_few[opposite]]] = True
    sound &= ~poor[edge]
    pairs, edge = pairs[sound], edge[sound]

    # Geometry: no long edges, no triangle turned against the surface.
    owner, ring = _expand(neighbours, start, pairs[:, 0])
    reach = np.linalg.norm(vertices[ring] - vertices[pairs[owner, 1]], axis=1)
    bad = np.zeros(len(pairs), bool)
    bad[owner[reach > longest]] = True
    face_order = np.argsort(faces.ravel(), kind="stable")
    face_start = np.concatenate([[0], np.cumsum(n_fan)])
    owner, corner = _expand(face_order, face_start, pairs[:, 0])
    fan = faces[corner // 3]
    stays = ~(fan == pairs[owner, 1][:, None]).any(axis=1)
    owner, fan = owner[stays], fan[stays]
    moved = np.where(fan == pairs[owner, 0][:, None], pairs[owner, 1][:, None], fan)
    normal = face_cross(vertices, moved)
    around = vertex_normals(vertices, faces)[pairs[owner, 0]]
    facing = (normal * around).sum(axis=1)
    bad[owner[facing <= _FACING * np.linalg.norm(normal, axis=1) + 1e-12]] = True
    pairs, edge = pairs[~bad], edge[~bad]
    if not len(pairs):
        return pairs

    length = lengths(vertices, pairs)
    rank = np.lexsort((pairs[:, 0], length)).argsort()
    owners, touched = zip(*(_expand(neighbours, start, pairs[:, k]) for k in range(2)), strict=True)
    alone = _disjoint(rank, np.concatenate(owners), np.concatenate(touched), n)
    return pairs[alone]


def _collapse(net: Net, pairs: Ints) -> Net:
    n = len(net.vertices)
    into = np.arange(n)
    into[pairs[:, 0]] = pairs[:, 1]
    faces = into[net.faces]
    keep = np.ones(n, bool)
    keep[pairs[:, 0]] = False
    new_id = np.cumsum(keep) - 1
    return Net(
        net.vertices[keep],
        new_id[faces[with_three_corners(faces)]],
        net.fixed[keep],
        net.source[keep],
    )


def _diamonds(net: Net) -> Ints:
    """Corners (k, 4) around every inner edge: its ends a, b, then c left and d right of it."""
    table = net.table
    order = np.argsort(table.of_half_edge, kind="stable")
    order = order[table.face_count[table.of_half_edge[order]] == 2]
    one, other = order[::2], order[1::2]
    opposite = net.faces[:, [2, 0, 1]].T.ravel()
    # A net is consistently oriented, so the second face runs through the edge from b to a.
    return np.column_stack([table.directed[one], opposite[one], opposite[other]])


def _before_and_after(diamonds: Ints) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
    """The two triangles (k, 3) at every edge as they are, and after a flip."""
    return (diamonds[:, [0, 1, 2]], diamonds[:, [1, 0, 3]]), (diamonds[:, [0, 3, 2]], diamonds[:, [3, 1, 2]])


def _worst_angles(vertices: Floats, diamonds: Ints) -> tuple[Floats, Floats]:
    """Smallest angle of the two triangles at every edge, as it is and after a flip; radians."""
    before, after = (
        np.minimum(*(face_angles(vertices, triangles).min(axis=1) for triangles in pair))
        for pair in _before_and_after(diamonds)
    )
    return before, after


def _flip(net: Net, diamonds: Ints, gain: Floats, allowed: Bools) -> Net | None:
    diamonds, gain = diamonds[allowed], gain[allowed]
    if not len(diamonds):
        return None

    old, new = (
        [face_cross(net.vertices, triangles) for triangles in pair] for pair in _before_and_after(diamonds)
    )
    around = old[0] + old[1]
    around /= np.maximum(np.linalg.norm(around, axis=1, keepdims=True), 1e-300)
    # An inner edge from border to border would cut a triangle off that no relaxation can improve.
    sound = ~net.on_border[diamonds[:, 2:]].all(axis=1)
    sound &= net.table.ids_of(diamonds[:, 2:]) < 0
    for one in new:
        sound &= (one * around).sum(axis=1) > _FACING * np.linalg.norm(one, axis=1) + 1e-12
    # A flip must not make a crease out of a smooth place.
    sound &= _cosine(*new) > _cosine(*old) - 0.1
    diamonds, gain = diamonds[sound], gain[sound]
    if not len(diamonds):
        return None

    rank = np.lexsort((np.arange(len(gain)), -gain)).argsort()
    alone = _disjoint(rank, np.repeat(np.arange(len(gain)), 4), diamonds.ravel(), len(net.vertices))
    diamonds = diamonds[alone]
    changed = np.zeros(len(net.table.edges), bool)
    changed[net.table.ids_of(diamonds[:, :2])] = True
    touched = changed[net.table.of_half_edge].reshape(3, -1).any(axis=0)
    return replace(net, faces=np.concatenate([net.faces[~touched], *_before_and_after(diamonds)[1]]))


def _cosine(one: Floats, other: Floats) -> Floats:
    length = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (one * other).sum(axis=1) / np.maximum(length, 1e-300)


def _expand(values: Ints, start: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """Entries of compressed rows: the position in ``rows`` each belongs to, and the entries."""
    count = start[rows + 1] - start[rows]
    owner = np.repeat(np.arange(len(rows)), count)
    offset = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return owner, values[start[rows][owner] + offset]


def _disjoint(rank: Ints, owner: Ints, touched: Ints, n_vertices: int) -> Bools:
    """Candidates that hold the lowest rank at every vertex they touch, (k,)."""
    lowest = np.full(n_vertices, len(rank))
    np.minimum.at(lowest, touched, rank[owner])
    alone = np.ones(len(rank), bool)
    alone[owner[lowest[touched] != rank[owner]]] = False
    return alone
