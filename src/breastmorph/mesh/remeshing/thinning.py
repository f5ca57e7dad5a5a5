"""Fewer vertices for a surface that is finer than it needs to be: those of a small cube become one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from breastmorph.mesh.files.corners import joined
from breastmorph.mesh.topology import edge_table, pinched_vertices, with_three_corners
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints, TriangleMesh

_Groups = NDArray[np.int32]  # (n,): which group a vertex belongs to

_ROUNDS = 10  # of giving back what was joined wrongly; none to three on scans


def thinned(mesh: TriangleMesh, cell: float) -> TriangleMesh:
    """Join the vertices that hang together within a cube of side ``cell`` to one in their middle.

    Skin that touches itself is not joined across the gap, and where a join would tear or fold the surface the
    vertices stay as they are: what was manifold stays so. A tube thinner than a cube may vanish.
    Colours are averaged; a texture is dropped.

    Parameters
    ----------
    mesh : TriangleMesh
        Manifold, every vertex used.
    cell : float
        In the mesh's unit.
    """
    group = _groups(mesh, cell)
    for _ in range(_ROUNDS):
        faces = _faces_between(group, mesh.faces)
        bad = _torn(faces, int(group.max()) + 1)
        if not bad.any():
            return _of_groups(mesh, group, faces) if len(faces) else mesh
        group = _given_back(group, bad)
    return mesh


def _groups(mesh: TriangleMesh, cell: float) -> _Groups:
    cube = np.zeros(mesh.n_vertices, np.int64)
    for along in mesh.vertices.T:
        place = ((along - along.min()) / cell).astype(np.int64)
        cube = cube * (place.max() + 1) + place
    edges = edge_table(mesh.faces).edges
    within = cube[edges[:, 0]] == cube[edges[:, 1]]
    start, end = edges[within].astype(np.int32).T
    graph = coo_matrix((np.ones(len(start), bool), (start, end)), shape=(len(cube), len(cube)))
    group: _Groups = connected_components(graph, directed=False)[1]
    return group


def _faces_between(group: _Groups, faces: Ints) -> Ints:
    """Faces with corners in three groups. Two that lie back to back enclose nothing: they leave together."""
    between: Ints = group[faces].astype(np.int64)
    between = between[with_three_corners(between)]
    first, copy_of = joined(np.sort(between, axis=1))
    if len(first) == len(between):
        return between
    a, b, c = between.T
    turned = (a < b) ^ (b < c) ^ (c < a)
    return between[np.bincount(copy_of, weights=1.0 - 2.0 * turned)[copy_of] != 0]


def _torn(faces: Ints, n_groups: int) -> Bools:
    """Groups where the faces between them are no manifold, (g,)."""
    table = edge_table(faces)
    bad = np.zeros(n_groups, bool)
    bad[table.edges[table.conflicts > 0]] = True
    bad[pinched_vertices(faces)] = True
    return bad


def _given_back(group: _Groups, bad: Bools) -> _Groups:
    """Every vertex of a bad group in a group of its own."""
    alone = bad[group]
    return np.where(alone, len(bad) + np.cumsum(alone) - 1, group).astype(np.int32)


def _of_groups(mesh: TriangleMesh, group: _Groups, faces: Ints) -> TriangleMesh:
    used = np.zeros(int(group.max()) + 1, bool)
    used[faces] = True
    size = np.maximum(np.bincount(group), 1)

    def middle(values: NDArray[Any]) -> Floats:
        return np.stack([np.bincount(group, weights=part) / size for part in values.T], axis=1)[used]

    return TriangleMesh(
        middle(mesh.vertices),
        (np.cumsum(used) - 1)[faces],
        None if mesh.colors is None else np.rint(middle(mesh.colors)).astype(np.uint8),
        space=mesh.space,
    )
