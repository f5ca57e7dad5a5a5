"""A new irregular triangulation of a surface: centroidal clusters of a dense sampling and their dual."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, identity, vstack
from scipy.spatial import cKDTree

from breastmorph.mesh.geometry import face_areas, vertex_areas
from breastmorph.mesh.topology import (
    boundary_loops,
    edge_table,
    face_components,
    pinched_vertices,
    with_three_corners,
)
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh

_AREA_PER_VERTEX = 0.80  # of the squared mean edge, measured on the clusters below
_EVEN = np.array([0 * 9 + 1 * 3 + 2, 1 * 9 + 2 * 3 + 0, 2 * 9 + 0 * 3 + 1])  # even orders of three corners
_ROUNDS = 4  # of moving the seeds to the centres of their clusters; fewer is more irregular
_PINHOLE = 9  # edges around a hole that is filled


def refinement(points: Floats, faces: Ints, longest: float) -> tuple[csr_matrix, Ints]:
    """Split edges in the middle until none is longer than ``longest``.

    Returns
    -------
    midpoints : (k, n) sparse
        Its product with values per vertex gives them on the finer mesh, whose first n vertices are the old.
    faces : (l, 3) int
    """
    total = identity(len(points), format="csr")
    while True:
        table = edge_table(faces)
        ends = points[table.edges]
        long = ((ends[:, 0] - ends[:, 1]) ** 2).sum(axis=1) > longest**2
        if not long.any():
            return total, faces
        n, new = len(points), int(long.sum())
        middle = np.full(len(table.edges), -1)
        middle[long] = n + np.arange(new)
        halves = csr_matrix(
            (np.full(2 * new, 0.5), (np.repeat(np.arange(new), 2), table.edges[long].ravel())), (new, n)
        )
        total = vstack([total, halves @ total], format="csr")
        points = np.vstack([points, ends[long].mean(axis=1)])
        # Middles of the edges ab, bc, ca of every face, -1 where not split.
        faces = _split(faces, middle[table.of_half_edge].reshape(3, -1).T)


def _split(faces: Ints, cut: Ints) -> Ints:
    """Faces cut at the given middles of their edges."""
    parts = []
    count = (cut >= 0).sum(axis=1)
    parts.append(faces[count == 0])
    # Turn every face so that its first edges are the cut ones, then one pattern serves each count.
    for number, pattern in ((1, _ONE), (2, _TWO), (3, _THREE)):
        chosen = count == number
        f, c = faces[chosen], cut[chosen]
        uncut = np.argmax(c < 0, axis=1) if number == 2 else np.argmax(c >= 0, axis=1)
        turn = (uncut + 1) % 3 if number == 2 else uncut * (number == 1)
        columns = (np.arange(3)[None, :] + turn[:, None]) % 3
        six = np.hstack([np.take_along_axis(f, columns, axis=1), np.take_along_axis(c, columns, axis=1)])
        parts.append(six[:, pattern].reshape(-1, 3))
    return np.concatenate(parts)


# Corners 0-2 and the middles 3 (of 0-1), 4 (of 1-2), 5 (of 2-0).
_ONE = np.array([0, 3, 2, 3, 1, 2])
_TWO = np.array([3, 1, 4, 0, 3, 4, 0, 4, 2])
_THREE = np.array([0, 3, 5, 3, 1, 4, 5, 4, 2, 3, 4, 5])


def retriangulated(points: Floats, faces: Ints, edge: float, rng: np.random.Generator) -> TriangleMesh:
    """Triangulate a densely sampled surface anew.

    Parameters
    ----------
    points, faces : (n, 3) float, (m, 3) int
        The dense surface, its edges well below ``edge``.
    edge : float
        Wanted mean edge, mm.
    rng : numpy Generator
    """
    weight = vertex_areas(points, faces)
    used = np.flatnonzero(weight > 0)
    area = face_areas(points, faces).sum()
    count = int(area / (_AREA_PER_VERTEX * edge**2))
    # Seeds as evenly spread at random as a low-cost draw gives: one per stratum of the cumulated area.
    steps = np.cumsum(weight[used])
    order = np.searchsorted(steps, (np.arange(count) + rng.uniform(size=count)) * steps[-1] / count)
    seeds = points[used[np.minimum(order, len(used) - 1)]]
    label = np.zeros(len(points), dtype=np.int64)
    for _ in range(_ROUNDS):
        label[used] = cKDTree(seeds, balanced_tree=False).query(points[used])[1]
        mass = np.bincount(label[used], weight[used], minlength=count)
        total = [np.bincount(label[used], weight[used] * points[used, k], minlength=count) for k in range(3)]
        seeds = np.where(
            (mass > 0)[:, None], np.stack(total, axis=1) / np.maximum(mass, 1e-12)[:, None], seeds
        )
    corner = label[faces]
    return _cleaned(seeds, corner[with_three_corners(corner)])


def _cleaned(points: Floats, faces: Ints) -> TriangleMesh:
    """One manifold piece of the dual: no face twice, no edge with more than two faces."""
    # Clusters map the dense surface onto their dual. Where the map folds, a face appears with either side up;
    # only the balance of both is surface, and taking it leaves no gaps.
    order = np.argsort(faces, axis=1)
    side = np.where(np.isin(order @ np.array([9, 3, 1]), _EVEN), 1, -1)
    key = np.take_along_axis(faces, order, axis=1) @ np.array([len(points) ** 2, len(points), 1])
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    balance = np.bincount(inverse, side) * side[first]
    faces = np.where((balance > 0)[:, None], faces[first], faces[first][:, ::-1])[balance != 0]
    while True:
        table = edge_table(faces)
        directed = table.directed
        key = directed[:, 0] * len(points) + directed[:, 1]
        _, inverse, uses = np.unique(key, return_inverse=True, return_counts=True)
        bad = (uses[inverse] > 1) | (table.face_count[table.of_half_edge] > 2)
        bad = bad.reshape(3, -1).any(axis=0)
        piece = face_components(faces[~bad])
        faces = faces[~bad][piece == np.bincount(piece).argmax()]
        pinched = np.isin(faces, pinched_vertices(faces)).any(axis=1)
        if not bad.any() and not pinched.any():
            break
        faces = faces[~pinched]
    points, faces = _filled(points, faces)
    return TriangleMesh(points, faces).kept(np.ones(len(faces), bool))  # drops vertices without faces


def _filled(points: Floats, faces: Ints) -> tuple[Floats, Ints]:
    """Close pinholes, as scanners' software does: a new vertex in the middle of every short border loop."""
    for loop in boundary_loops(faces):
        if len(loop) <= _PINHOLE and len(set(loop.tolist())) == len(loop):
            # A border edge is run through backwards by the faces that close it.
            fan = np.stack([np.roll(loop, -1), loop, np.full(len(loop), len(points))], axis=1)
            faces = np.vstack([faces, fan])
            points = np.vstack([points, points[loop].mean(axis=0)])
    return points, faces
