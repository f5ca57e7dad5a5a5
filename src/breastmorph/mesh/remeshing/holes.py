"""Closing holes with the triangulation of least area."""

from __future__ import annotations

import numpy as np

from breastmorph.mesh.topology import boundary_loops, edge_table, split_pinched
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh

_LONGEST = 600  # vertices of a border; longer ones are left open


def fill_holes(mesh: TriangleMesh) -> tuple[TriangleMesh, int]:
    """Close every hole but the longest border, each with the triangles of least total area.

    Parameters
    ----------
    mesh : TriangleMesh
        Without edges of more than two faces; colours and texture are dropped.

    Returns
    -------
    mesh : TriangleMesh
    n_old : int
        The faces from here on are new.
    """
    faces, copied = split_pinched(mesh.faces, mesh.n_vertices)
    vertices = np.concatenate([mesh.vertices, mesh.vertices[copied]])
    edges = edge_table(faces).edges
    known = set((edges[:, 0] * len(vertices) + edges[:, 1]).tolist())
    patches = []
    for loop in boundary_loops(faces)[1:]:
        if 3 <= len(loop) <= _LONGEST and len(np.unique(loop)) == len(loop):
            patch = loop[_least_area(vertices[loop], _taken(loop, known, len(vertices)))]
            patches.append(patch[:, ::-1])  # a border runs along its face; the filling runs against it
    return TriangleMesh(vertices, np.concatenate([faces, *patches])), len(faces)


def _taken(loop: Ints, known: set[int], n_vertices: int) -> list[tuple[int, int]]:
    """Pairs of loop positions that are not neighbours on the loop but already joined by an edge."""
    n = len(loop)
    low, high = np.triu_indices(n, 2)
    key = np.minimum(loop[low], loop[high]) * n_vertices + np.maximum(loop[low], loop[high])
    hit = np.fromiter((k in known for k in key.tolist()), bool, len(key))
    return [
        (i, j) for i, j in zip(low[hit].tolist(), high[hit].tolist(), strict=True) if (i, j) != (0, n - 1)
    ]


def _least_area(points: Floats, taken: list[tuple[int, int]]) -> Ints:
    """Triangles (n - 2, 3) of positions that close a polygon in space with the least area."""
    n = len(points)
    cost = np.zeros((n, n))
    via = np.zeros((n, n), dtype=np.int64)
    blocked = np.zeros((n, n))
    for pair in taken:
        blocked[pair] = 1e12
    for gap in range(2, n):
        i = np.arange(n - gap)[:, None]
        k = i + np.arange(1, gap)[None, :]
        j = i + gap
        side, other = points[k] - points[i], points[j] - points[i]
        area = 0.5 * np.linalg.norm(np.cross(side, other), axis=2)
        total = area + cost[i, k] + cost[k, j]
        best = total.argmin(axis=1)
        row = np.arange(n - gap)
        via[row, row + gap] = row + 1 + best
        cost[row, row + gap] = total[row, best] + blocked[row, row + gap]
    triangles, stack = [], [(0, n - 1)]
    while stack:
        first, last = stack.pop()
        if last - first >= 2:
            between = int(via[first, last])
            triangles.append((first, between, last))
            stack += [(first, between), (between, last)]
    return np.array(triangles, dtype=np.int64)
