"""Edge operations on many edges at once: split, collapse and flip in sets that do not touch each other.

A mesh under work is held as plain arrays in a :class:`Net`. Every pass picks, by rank, edges whose
neighbourhoods are disjoint and changes them together, so that no pass depends on the order of the edges.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_matrix

from breastmorph.mesh.geometry import face_angles, vertex_normals
from breastmorph.mesh.topology import EdgeTable, edge_table, vertex_neighbours
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
    curves : (c, 2) int
        Edges that must stay edges: the border and the feature curves.
    fixed : (n,) bool
        Vertices that neither move nor vanish.
    source : (n,) int
        Id of the input's vertex for every fixed vertex, otherwise -1.
    """

    vertices: Floats
    faces: Ints
    curves: Ints
    fixed: Bools
    source: Ints

    @property
    def on_curve(self) -> Bools:
        """Vertices on the border or on a feature curve, (n,)."""
        flag = np.zeros(len(self.vertices), bool)
        flag[self.curves] = True
        return flag


def split_long(net: Net, longest: float) -> Net:
    """Halve edges longer than ``longest`` until none is left."""
    for _ in range(_MAX_PASSES):
        table = edge_table(net.faces)
        length = _lengths(net.vertices, table.edges)
        candidate = length > longest
        if not candidate.any():
            break
        net = _split(net, table, _longest_of_all_their_faces(table, length, candidate))
    return net


def split_edges(net: Net, chosen: Ints) -> Net:
    """Halve the given edges, (k, 2) vertex ids; no two of them in one face."""
    table = edge_table(net.faces)
    flag = np.zeros(len(table.edges), bool)
    flag[edge_ids(table, chosen)] = True
    return _split(net, table, flag)


def collapse_short(net: Net, shortest: float, longest: float) -> Net:
    """Pull edges shorter than ``shortest`` together if no fold and no edge over ``longest`` comes of it."""
    for _ in range(_MAX_PASSES):
        table = edge_table(net.faces)
        short = np.flatnonzero(_lengths(net.vertices, table.edges) < shortest)
        if not len(short):
            break
        accepted = _collapsible(net, table, short, longest)
        if not len(accepted):
            break
        net = _collapse(net, accepted)
    return net


def flip_to_valence(net: Net) -> Net:
    """Flip edges towards six neighbours inside and four on the border."""
    for _ in range(_MAX_PASSES):
        diamonds = _diamonds(net)
        valence = np.bincount(edge_table(net.faces).edges.ravel(), minlength=len(net.vertices))
        excess = valence - np.where(net.on_curve, 4, 6)
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


def edge_ids(table: EdgeTable, pairs: Ints) -> Ints:
    """Row in ``table.edges`` of every vertex pair, (k,); -1 where the pair is no edge."""
    n = int(max(table.edges.max(initial=0), pairs.max(initial=0))) + 1
    known = table.edges[:, 0] * n + table.edges[:, 1]
    asked = pairs.min(axis=1) * n + pairs.max(axis=1)
    place = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    return np.where(known[place] == asked, place, -1)


def _lengths(vertices: Floats, edges: Ints) -> Floats:
    return np.linalg.norm(vertices[edges[:, 0]] - vertices[edges[:, 1]], axis=1)


def _longest_of_all_their_faces(table: EdgeTable, length: Floats, candidate: Bools) -> Bools:
    rank = np.empty(len(length), dtype=np.int64)
    rank[np.lexsort((np.arange(len(length)), length))] = np.arange(len(length))
    of_face = table.of_half_edge.reshape(3, -1)
    score = np.where(candidate, rank, -1)[of_face]
    best = of_face[score.argmax(axis=0), np.arange(of_face.shape[1])]
    votes = np.bincount(best, minlength=len(length))
    return candidate & (votes == table.face_count)


def _split(net: Net, table: EdgeTable, chosen: Bools) -> Net:
    n, m = len(net.vertices), len(net.faces)
    split = table.edges[chosen]
    middle = np.full(len(chosen), -1)
    middle[chosen] = n + np.arange(len(split))
    of_face = middle[table.of_half_edge.reshape(3, m)]
    corner, face = np.nonzero(of_face >= 0)
    a, b, c = (net.faces[face, (corner + k) % 3] for k in range(3))
    new = of_face[corner, face]
    faces = net.faces.copy()
    faces[face] = np.stack([a, new, c], axis=1)
    curve_middle = middle[edge_ids(table, net.curves)]
    cut = curve_middle >= 0
    curves = [
        net.curves[~cut],
        np.stack([net.curves[cut, 0], curve_middle[cut]], axis=1),
        np.stack([curve_middle[cut], net.curves[cut, 1]], axis=1),
    ]
    return Net(
        np.concatenate([net.vertices, net.vertices[split].mean(axis=1)]),
        np.concatenate([faces, np.stack([new, b, c], axis=1)]),
        np.concatenate(curves),
        np.concatenate([net.fixed, np.zeros(len(split), bool)]),
        np.concatenate([net.source, np.full(len(split), -1)]),
    )


def _collapsible(net: Net, table: EdgeTable, short: Ints, longest: float) -> Ints:
    """Directed edges (k, 2), from the vertex that goes to the one that stays, far enough from each other."""
    vertices, faces, n = net.vertices, net.faces, len(net.vertices)
    on_curve = net.on_curve
    is_curve = np.zeros(len(table.edges), bool)
    is_curve[edge_ids(table, net.curves)] = True
    pairs = np.concatenate([table.edges[short], table.edges[short][:, ::-1]])
    edge = np.tile(short, 2)
    allowed = ~net.fixed[pairs[:, 0]] & (~on_curve[pairs[:, 0]] | is_curve[edge])
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
    too_few = n_fan < np.where(on_curve, 2, 4)
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
    p = vertices[moved]
    normal = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
    around = vertex_normals(vertices, faces)[pairs[owner, 0]]
    facing = (normal * around).sum(axis=1)
    bad[owner[facing <= _FACING * np.linalg.norm(normal, axis=1) + 1e-12]] = True
    pairs, edge = pairs[~bad], edge[~bad]
    if not len(pairs):
        return pairs

    length = _lengths(vertices, pairs)
    rank = np.lexsort((pairs[:, 0], length)).argsort()
    owners, touched = zip(*(_expand(neighbours, start, pairs[:, k]) for k in range(2)), strict=True)
    alone = _disjoint(rank, np.concatenate(owners), np.concatenate(touched), n)
    return pairs[alone]


def _collapse(net: Net, pairs: Ints) -> Net:
    n = len(net.vertices)
    into = np.arange(n)
    into[pairs[:, 0]] = pairs[:, 1]
    faces = into[net.faces]
    whole = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
    curves = into[net.curves]
    keep = np.ones(n, bool)
    keep[pairs[:, 0]] = False
    new_id = np.cumsum(keep) - 1
    return Net(
        net.vertices[keep],
        new_id[faces[whole]],
        new_id[curves[curves[:, 0] != curves[:, 1]]],
        net.fixed[keep],
        net.source[keep],
    )


def _diamonds(net: Net) -> Ints:
    """Corners (k, 4) around every inner edge that may flip: its ends a, b, then c left and d right of it."""
    table = edge_table(net.faces)
    flippable = table.face_count == 2
    flippable[edge_ids(table, net.curves)] = False
    order = np.argsort(table.of_half_edge, kind="stable")
    order = order[flippable[table.of_half_edge[order]]]
    one, other = order[::2], order[1::2]
    opposite = net.faces[:, [2, 0, 1]].T.ravel()
    # A net is consistently oriented, so the second face runs through the edge from b to a.
    return np.column_stack([table.directed[one], opposite[one], opposite[other]])


def _worst_angles(vertices: Floats, diamonds: Ints) -> tuple[Floats, Floats]:
    """Smallest angle of the two triangles at every edge, as it is and after a flip; radians."""
    a, b, c, d = diamonds.T

    def worst(*triangles: tuple[Ints, Ints, Ints]) -> Floats:
        angles = [face_angles(vertices, np.column_stack(triangle)).min(axis=1) for triangle in triangles]
        return np.minimum(*angles)

    return worst((a, b, c), (b, a, d)), worst((a, d, c), (d, b, c))


def _flip(net: Net, diamonds: Ints, gain: Floats, allowed: Bools) -> Net | None:
    vertices = net.vertices
    diamonds, gain = diamonds[allowed], gain[allowed]
    if not len(diamonds):
        return None

    def normal(u: Ints, v: Ints, w: Ints) -> Floats:
        return np.cross(vertices[v] - vertices[u], vertices[w] - vertices[u])

    a, b, c, d = diamonds.T
    old, new = (normal(a, b, c), normal(b, a, d)), (normal(a, d, c), normal(d, b, c))
    around = old[0] + old[1]
    around /= np.maximum(np.linalg.norm(around, axis=1, keepdims=True), 1e-300)
    # An inner edge from curve to curve would cut a triangle off that no relaxation can improve.
    sound = ~net.on_curve[diamonds[:, 2:]].all(axis=1)
    sound &= edge_ids(edge_table(net.faces), diamonds[:, 2:]) < 0
    for one in new:
        sound &= (one * around).sum(axis=1) > _FACING * np.linalg.norm(one, axis=1) + 1e-12
    # A flip must not make a crease out of a smooth place.
    sound &= _cosine(*new) > _cosine(*old) - 0.1
    diamonds, gain = diamonds[sound], gain[sound]
    if not len(diamonds):
        return None

    rank = np.lexsort((np.arange(len(gain)), -gain)).argsort()
    alone = _disjoint(rank, np.repeat(np.arange(len(gain)), 4), diamonds.ravel(), len(vertices))
    a, b, c, d = diamonds[alone].T
    table = edge_table(net.faces)
    changed = np.zeros(len(table.edges), bool)
    changed[edge_ids(table, np.column_stack([a, b]))] = True
    touched = changed[table.of_half_edge].reshape(3, -1).any(axis=0)
    faces = np.concatenate([net.faces[~touched], np.column_stack([a, d, c]), np.column_stack([d, b, c])])
    return replace(net, faces=faces)


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
