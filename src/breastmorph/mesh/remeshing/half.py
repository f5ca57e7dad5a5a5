"""Meshing one half of a symmetric surface (x >= 0, cut at x = 0) so that the whole comes out as wished."""

from __future__ import annotations

import numpy as np

from breastmorph.mesh.closest import closest_on_segments
from breastmorph.mesh.geometry import edge_lengths, face_areas
from breastmorph.mesh.remeshing.cut import insert_points
from breastmorph.mesh.remeshing.isotropic import IsotropicParameters, isotropic
from breastmorph.mesh.remeshing.symmetry import whole_of_half
from breastmorph.mesh.topology import boundary_loops, edge_table
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh

# For meshes on the way to another: few rounds, and a ragged border may be rounded.
QUICK = IsotropicParameters(rounds=5, final_rounds=2, corner_degrees=180.0)


def half_with_mean_edge(half: TriangleMesh, fixed: Ints, edge: float) -> tuple[TriangleMesh, Ints]:
    """Remesh a half so that the whole's mean edge is right to half a percent.

    Parameters
    ----------
    half : TriangleMesh
    fixed : (k,) int
        Vertices that stay.
    edge : float

    Returns
    -------
    half : TriangleMesh
    fixed : (k,) int
        Where the fixed vertices are now.
    """
    pinned = np.concatenate([fixed, ends_of_middle(half)])
    aim = 0.957 * edge  # what it takes on smooth torsos
    for _ in range(4):
        fine, ids = isotropic(half, aim, fixed=pinned)
        whole, _ = whole_of_half(fine)
        mean = float(edge_lengths(whole.vertices, whole.faces).mean())
        if abs(mean / edge - 1.0) < 0.005:
            break
        aim *= edge / mean
    return fine, ids[: len(fixed)]


def half_with_count(half: TriangleMesh, fixed: Ints, n_vertices: int) -> tuple[TriangleMesh, Ints]:
    """Remesh a half so that the whole has a number of vertices; its border stays close to what it was.

    Parameters
    ----------
    half : TriangleMesh
        Finely meshed.
    fixed : (k,) int
        Vertices that stay.
    n_vertices : int

    Returns
    -------
    half : TriangleMesh
    fixed : (k,) int
        Where the fixed vertices are now.
    """
    area = 2.0 * face_areas(half.vertices, half.faces).sum()
    aim = float(np.sqrt(2.0 * area / (np.sqrt(3.0) * n_vertices)))
    # Held where the outline bends, the coarse border cannot cut corners.
    pinned = np.concatenate([fixed, ends_of_middle(half), _bends_of_outline(half, 0.15 * aim)])
    # From half way down the trials cost little.
    start, pinned = isotropic(half, 0.45 * aim, fixed=pinned, parameters=QUICK)
    for _ in range(12):
        coarse, ids = isotropic(start, aim, fixed=pinned, onto=half)
        count = _count_of_whole(coarse)
        if 0 <= n_vertices - count <= 0.02 * n_vertices:
            break
        # Stops a little short of the number, for it is easier to add vertices than to take some.
        aim *= float(np.sqrt(count / (0.99 * n_vertices)))
    for _ in range(8):
        lacking = n_vertices - _count_of_whole(coarse)
        if lacking <= 0:
            break
        coarse, _ = insert_points(coarse, _middles_of_longest(coarse, lacking))
        coarse, ids = isotropic(coarse, aim, fixed=ids, onto=half, parameters=IsotropicParameters(rounds=0))
    return coarse, ids[: len(fixed)]


def _bends_of_outline(half: TriangleMesh, tolerance: float) -> Ints:
    """Vertices of the outer border whose polygon stays this close to it (Douglas and Peucker)."""
    loop = boundary_loops(half.faces)[0]
    middle = half.vertices[loop, 0] == 0.0
    first = int(np.flatnonzero(middle & ~np.roll(middle, -1))[0])
    loop = np.roll(loop, -first)
    chain = loop[: len(loop) - int(middle.sum()) + 2]  # from one end of the mid-line round to the other
    points = half.vertices[chain]
    kept, stack = [], [(0, len(chain) - 1)]
    while stack:
        i, j = stack.pop()
        if j - i < 2:
            continue
        between = points[i + 1 : j]
        off = np.linalg.norm(closest_on_segments(between, points[[i, j]][None]) - between, axis=1)
        if off.max() > tolerance:
            k = i + 1 + int(off.argmax())
            kept.append(int(chain[k]))
            stack += [(i, k), (k, j)]
    return np.array(sorted(kept), dtype=np.int64)


def _count_of_whole(half: TriangleMesh) -> int:
    return 2 * half.n_vertices - int((half.vertices[:, 0] == 0.0).sum())


def _middles_of_longest(half: TriangleMesh, lacking: int) -> Floats:
    """Middles (k, 3) of long edges: splitting them adds about so many vertices to the whole.

    An edge on the mid-line adds one, so one of them takes care of an odd number; every other edge adds two.
    """
    table = edge_table(half.faces)
    ends = half.vertices[table.edges]
    order = np.argsort(-edge_lengths(half.vertices, half.faces))
    middle = (ends[:, :, 0] == 0.0).all(axis=1)
    inner = (table.face_count == 2) & ~middle
    chosen = order[middle[order]][: lacking % 2].tolist()
    used = set(table.edges[chosen].ravel().tolist())
    for edge in order[inner[order]].tolist():
        if len(chosen) >= lacking % 2 + lacking // 2:
            break
        if not used.intersection(table.edges[edge].tolist()):
            used.update(table.edges[edge].tolist())
            chosen.append(edge)
    return ends[chosen].mean(axis=1)


def ends_of_middle(half: TriangleMesh) -> Ints:
    """Border vertices where the mid-line meets the outer border."""
    border = edge_table(half.faces).boundary
    middle = half.vertices[:, 0] == 0.0
    leaving = middle[border[:, 0]] != middle[border[:, 1]]
    return np.unique(border[leaving][middle[border[leaving]]])
