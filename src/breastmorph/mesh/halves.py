"""Surfaces made whole and symmetric: holes filled, borders smoothed, one half mirrored into the other."""

from __future__ import annotations

import numpy as np
from scipy.sparse import diags_array

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import MeshProblem
from breastmorph.mesh.closest import Surface, closest_on_segments, insert_points
from breastmorph.mesh.geometry import Plane, edge_lengths, face_areas, face_normals
from breastmorph.mesh.remeshing import IsotropicParameters, isotropic
from breastmorph.mesh.topology import (
    boundary_loops,
    boundary_vertices,
    edge_table,
    is_manifold,
    split_pinched,
)
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh


def smoothed(
    vertices: Floats, faces: Ints, weights: Floats, wavelength: float, values: Floats | None = None
) -> Floats:
    """Smooth a surface without shrinking it; fair it where it has no weight.

    Minimises ``sum weights area |x - x0|^2 + (wavelength / 2 pi)^4 sum area |laplacian x|^2``: undulations of
    that wavelength keep half their height (where the weight is 1), much longer ones all of it. With weight 0
    the surface becomes a thin plate that continues its surroundings.

    Parameters
    ----------
    vertices : (n, 3) float
    faces : (m, 3) int
    weights : (n,) float
    wavelength : float
        Same unit as the vertices.
    values : (n, k) float, optional
        Smooth these functions on the surface instead of the coordinates.

    Returns
    -------
    (n, 3) or (n, k) float
    """
    import igl
    from scipy.sparse.linalg import splu

    v, f = np.array(vertices), np.array(faces)
    laplacian = igl.cotmatrix(v, f)
    area = igl.massmatrix(v, f, igl.MASSMATRIX_TYPE_BARYCENTRIC).diagonal()
    area = np.maximum(area, 1e-9 * area.mean())
    # On the border the operator does not vanish for flat surfaces; left in, it would pull the border in.
    stiff = np.where(boundary_vertices(f, len(v)), 0.0, 1.0 / area)
    bending = laplacian.T @ diags_array(stiff) @ laplacian
    # A trace of weight keeps the system definite where whole pieces have none.
    data = area * np.maximum(weights, 1e-9)
    system = diags_array(data) + (wavelength / (2.0 * np.pi)) ** 4 * bending
    factor = splu(system.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    start = vertices if values is None else values
    return factor.solve(data[:, None] * start)


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


_STEPS = 40
_ANCHORS = 0.2  # weight of all anchors together against all points


def symmetry_plane(surface: Surface, points: Floats, start: Plane, anchors: Floats) -> tuple[Plane, float]:
    """The plane that best mirrors a surface onto itself.

    Iterates closest points between the mirror image of ``points`` and the surface (Gauss-Newton on the
    distance along the normal). Pairs on the border, with other normals or far off are left out, so that
    what is asymmetric (one larger breast) does not turn the plane.

    Parameters
    ----------
    surface : Surface
    points : (k, 3) float
        Vertices of the surface to mirror.
    start : Plane
    anchors : (a, 3) float
        Points the plane should contain, as the sternum's landmarks: without them a round chest lets it turn.

    Returns
    -------
    plane : Plane
    residual : float
        Median distance between the mirror image and the surface.
    """
    normals = face_normals(surface.mesh.vertices, surface.mesh.faces)
    point_normals = normals[surface.closest(points).faces]
    plane, residual = start, np.inf
    for _ in range(_STEPS):
        image = plane.reflected(points)
        hit = surface.closest(image)
        facing = normals[hit.faces]
        turned = point_normals - 2.0 * (point_normals @ plane.normal)[:, None] * plane.normal
        fits = ~hit.on_boundary & ((turned * facing).sum(axis=1) > 0.7)
        if fits.sum() < 10:
            break
        residual = float(np.median(hit.distances[fits]))
        fits &= hit.distances < 3.0 * max(residual, 0.1)
        # Turn about two axes across the normal and shift: r = p - 2 (n.p - d) n, linearised in n and d.
        u = np.cross(plane.normal, [0.0, 1.0, 0.0])
        u /= np.linalg.norm(u)
        w = np.cross(plane.normal, u)
        p, m = points[fits], facing[fits]
        depth, along = plane.distance(p), m @ plane.normal
        rows = [-2.0 * ((p @ axis) * along + depth * (m @ axis)) for axis in (u, w)]
        jacobian = np.column_stack([*rows, 2.0 * along])
        error = ((image[fits] - hit.points[fits]) * m).sum(axis=1)
        weight = np.sqrt(_ANCHORS * len(p) / max(len(anchors), 1)) * 2.0
        anchored = np.column_stack([anchors @ u, anchors @ w, -np.ones(len(anchors))]) * weight
        system = np.concatenate([jacobian, anchored])
        right = np.concatenate([error, plane.distance(anchors) * weight])
        change = -np.linalg.lstsq(system, right, rcond=None)[0]
        normal = plane.normal + change[0] * u + change[1] * w
        length = np.linalg.norm(normal)
        plane = Plane(normal / length, (plane.offset + float(change[2])) / float(length))
        if np.abs(change[:2]).max() < 1e-6 and abs(change[2]) < 1e-4:
            break
    return plane, residual


def whole_of_half(half: TriangleMesh) -> tuple[TriangleMesh, Ints]:
    """Join a half (x >= 0, cut exactly at x = 0) with its mirror image.

    Returns
    -------
    mesh : TriangleMesh
        First the half's vertices and faces, then those of the mirror image.
    mirror : (n,) int
        The vertex at the mirror image's place; a vertex on the mid-line is its own.
    """
    middle = half.vertices[:, 0] == 0.0
    if not (middle & boundary_vertices(half.faces, half.n_vertices)).any() or half.vertices[:, 0].min() < 0:
        raise MeshProblem("the half surface does not end at the plane x = 0")
    n = half.n_vertices
    partner = np.arange(n)
    partner[~middle] = n + np.arange(n - int(middle.sum()))
    image = half.vertices[~middle] * MIRROR
    faces = np.concatenate([half.faces, partner[half.faces][:, ::-1]])
    mirror = np.concatenate([partner, np.flatnonzero(~middle)])
    mesh = TriangleMesh(np.concatenate([half.vertices, image]), faces)
    if not is_manifold(mesh.faces):
        raise MeshProblem("the half surface touches the plane x = 0 apart from its border there")
    return mesh, mirror


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
    # Fixed where the outline bends, the coarse border cannot cut corners.
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
