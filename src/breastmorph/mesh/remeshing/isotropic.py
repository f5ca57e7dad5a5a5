"""Remeshing of open surfaces: even triangles of a wished edge length, or fewer triangles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from breastmorph.errors import MeshProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_areas, vertex_normals
from breastmorph.mesh.remeshing.edges import (
    Net,
    collapse_short,
    edge_ids,
    flip_to_angles,
    flip_to_valence,
    split_edges,
    split_long,
)
from breastmorph.mesh.topology import edge_table, is_manifold
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints, TriangleMesh


@dataclass(frozen=True)
class IsotropicParameters:
    """How :func:`isotropic` works (Botsch and Kobbelt, "A remeshing approach to multiresolution modeling").

    Attributes
    ----------
    rounds : int
        Rounds of split, collapse, flip and relax.
    final_rounds : int
        Closing rounds of flip and relax alone.
    split_above, collapse_below : float
        Edge lengths, as multiples of the target, above which edges split and below which they collapse.
    relax_steps : int
        Relaxation steps per round.
    corner_degrees : float
        Where the border or a feature curve turns by more than this, its vertex stays.
    """

    rounds: int = 10
    final_rounds: int = 5
    split_above: float = 4.0 / 3.0
    collapse_below: float = 4.0 / 5.0
    relax_steps: int = 3
    corner_degrees: float = 50.0


def isotropic(
    mesh: TriangleMesh,
    edge: float,
    *,
    fixed: Ints | None = None,
    curves: Ints | None = None,
    onto: TriangleMesh | None = None,
    parameters: IsotropicParameters = IsotropicParameters(),  # noqa: B008 (frozen)
) -> tuple[TriangleMesh, Ints]:
    """Remesh into nearly equilateral triangles on the same surface; borders stay where they are.

    Border vertices slide along the border and nowhere else, so an open surface keeps its extent to within
    the sagitta of one new edge.

    Parameters
    ----------
    mesh : TriangleMesh
        Manifold and consistently oriented.
    edge : float
        Wished edge length; the mean comes out within some 5 % of it.
    fixed : (k,) int, optional
        Vertices that stay vertices, exactly where they are.
    curves : (c, 2) int, optional
        Edges of feature curves; the curves stay chains of edges.
    onto : TriangleMesh, optional
        The surface and border to stay on, where ``mesh`` is already an approximation of it.
    parameters : IsotropicParameters

    Returns
    -------
    mesh : TriangleMesh
    fixed : (k,) int
        Where the fixed vertices are now.
    """
    if not is_manifold(mesh.faces):
        raise MeshProblem(
            "the surface is not a manifold, so it cannot be remeshed",
            "Remove edges with more than two faces and vertices where separate pieces touch",
        )
    pinned = np.zeros(0, dtype=np.int64) if fixed is None else np.asarray(fixed, dtype=np.int64)
    table = edge_table(mesh.faces)
    chains = table.boundary
    if curves is not None and len(curves):
        if (edge_ids(table, np.asarray(curves)) < 0).any():
            raise MeshProblem("a feature curve runs where the mesh has no edge")
        inner = table.face_count[edge_ids(table, np.asarray(curves))] == 2
        chains = np.concatenate([chains, np.asarray(curves, dtype=np.int64)[inner]])
    stays = _corners(mesh.vertices, chains, parameters.corner_degrees)
    stays[pinned] = True
    net = Net(mesh.vertices, mesh.faces, chains, stays, np.where(stays, np.arange(mesh.n_vertices), -1))
    surface, track = Surface(mesh), mesh.vertices[chains]
    if onto is not None:
        surface = Surface(onto)
        track = np.concatenate([onto.vertices[edge_table(onto.faces).boundary], track[len(table.boundary) :]])

    longest, shortest = parameters.split_above * edge, parameters.collapse_below * edge
    for _ in range(parameters.rounds):
        net = split_long(net, longest)
        net = _free_ears(collapse_short(net, shortest, longest))
        net = flip_to_valence(net)
        for _ in range(parameters.relax_steps):
            net = _relaxed(net, surface, track)
    for _ in range(parameters.final_rounds):
        net = flip_to_angles(net)
        net = _relaxed(net, surface, track)
    place = np.full(mesh.n_vertices, -1)
    place[net.source[net.fixed]] = np.flatnonzero(net.fixed)
    return TriangleMesh(net.vertices, net.faces), place[pinned]


def decimate(
    mesh: TriangleMesh, *, n_vertices: int | None = None, n_faces: int | None = None
) -> TriangleMesh:
    """Fewer triangles by collapsing edges in the order of quadric error; borders are held.

    Parameters
    ----------
    mesh : TriangleMesh
    n_vertices, n_faces : int
        How many to leave; give one of them. The outcome may be off by a few.
    """
    if (n_vertices is None) == (n_faces is None):
        raise ValueError("give n_vertices or n_faces")
    if n_faces is not None:
        return _qslim(mesh, n_faces)
    assert n_vertices is not None  # noqa: S101 (for the type checker)
    if n_vertices >= mesh.n_vertices:
        return mesh
    # An inner collapse takes two faces, one on the border takes one; their share shows only afterwards.
    aim, best = mesh.n_faces - 2 * (mesh.n_vertices - n_vertices), mesh
    for _ in range(8):
        trial = _qslim(mesh, max(aim, 2))
        if abs(trial.n_vertices - n_vertices) < abs(best.n_vertices - n_vertices):
            best = trial
        if trial.n_vertices == n_vertices:
            break
        aim += 2 * (n_vertices - trial.n_vertices)
    return best


def _qslim(mesh: TriangleMesh, n_faces: int) -> TriangleMesh:
    import igl

    if n_faces >= mesh.n_faces:
        return mesh
    vertices, faces, _, _ = igl.qslim(np.array(mesh.vertices), np.array(mesh.faces), int(n_faces))
    return TriangleMesh(vertices, np.asarray(faces, dtype=np.int64))


def _corners(vertices: Floats, curves: Ints, degrees: float) -> Bools:
    """Vertices where curves end, meet or turn sharply, (n,)."""
    degree = np.bincount(curves.ravel(), minlength=len(vertices))
    sharp = (degree > 0) & (degree != 2)
    one, other = _chain_neighbours(curves, len(vertices))
    simple = np.flatnonzero(degree == 2)
    back = vertices[simple] - vertices[one[simple]]
    on = vertices[other[simple]] - vertices[simple]
    turn = np.arctan2(np.linalg.norm(np.cross(back, on), axis=1), (back * on).sum(axis=1))
    sharp[simple] |= turn > np.radians(degrees)
    return sharp


def _chain_neighbours(curves: Ints, n_vertices: int) -> tuple[Ints, Ints]:
    """The two neighbours along the curve of every vertex with two of them; meaningless elsewhere."""
    both = np.concatenate([curves, curves[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    one, other = np.zeros(n_vertices, dtype=np.int64), np.zeros(n_vertices, dtype=np.int64)
    other[both[:, 0]] = both[:, 1]  # the last entry wins
    one[both[::-1, 0]] = both[::-1, 1]  # the first entry wins
    return one, other


def _free_ears(net: Net) -> Net:
    """Give triangles with two border edges an inner neighbour more: their corner cannot be relaxed otherwise.

    The inner edge facing such a corner is split, unless the corner is sharp by nature (fixed).
    """
    n = len(net.vertices)
    lonely = (np.bincount(net.faces.ravel(), minlength=n) == 1) & ~net.fixed
    faces = net.faces[lonely[net.faces].any(axis=1)]
    if not len(faces):
        return net
    corner = lonely[faces].argmax(axis=1)
    row = np.arange(len(faces))
    facing = np.column_stack([faces[row, (corner + 1) % 3], faces[row, (corner + 2) % 3]])
    facing = facing[edge_ids(edge_table(net.faces), facing) >= 0]
    # One at a time keeps "no two of them in one face" true where ears are neighbours.
    used: set[int] = set()
    chosen = []
    for pair in facing.tolist():
        if not used.intersection(pair):
            used.update(pair)
            chosen.append(pair)
    return split_edges(net, np.array(chosen, dtype=np.int64))


def _relaxed(net: Net, surface: Surface, track: Floats) -> Net:
    """Move vertices along the surface towards the middle of their neighbours; curve vertices along curves."""
    vertices, faces, n = net.vertices, net.faces, len(net.vertices)
    weight = np.repeat(face_areas(vertices, faces), 3)
    corners = faces.ravel()
    total = np.bincount(corners, weights=weight, minlength=n)
    centroid = np.repeat(vertices[faces].mean(axis=1), 3, axis=0) * weight[:, None]
    middle = np.stack([np.bincount(corners, weights=centroid[:, k], minlength=n) for k in range(3)], axis=1)
    step = middle / np.maximum(total, 1e-300)[:, None] - vertices
    normal = vertex_normals(vertices, faces)
    step -= (step * normal).sum(axis=1, keepdims=True) * normal

    moved = np.array(vertices)
    on_curve = net.on_curve
    inner = np.flatnonzero(~on_curve & ~net.fixed)
    found = surface.closest(vertices[inner] + step[inner])
    # An inner vertex stays inside: one that slid onto the border could not be told from the border's own.
    moved[inner] = np.where(found.on_boundary[:, None], vertices[inner], found.points)
    along = np.flatnonzero(on_curve & ~net.fixed)
    if len(along):
        one, other = _chain_neighbours(net.curves, n)
        half_way = 0.5 * vertices[along] + 0.25 * (vertices[one[along]] + vertices[other[along]])
        moved[along] = closest_on_segments(half_way, track)

    # Where a step would turn a triangle over (or jump across a fold), its corners stay.
    before = np.cross(
        vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]]
    )
    for _ in range(5):
        after = np.cross(moved[faces[:, 1]] - moved[faces[:, 0]], moved[faces[:, 2]] - moved[faces[:, 0]])
        product = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        turned = (before * after).sum(axis=1) < 0.5 * product
        if not turned.any():
            break
        back = np.unique(faces[turned])
        moved[back] = vertices[back]
    return replace(net, vertices=moved)


def closest_on_segments(points: Floats, segments: Floats) -> Floats:
    """Closest points on a set of segments.

    Parameters
    ----------
    points : (k, 3) float
    segments : (s, 2, 3) float

    Returns
    -------
    (k, 3) float
    """
    start, along = segments[:, 0], segments[:, 1] - segments[:, 0]
    squared = np.maximum((along**2).sum(axis=1), 1e-300)
    found = np.empty_like(points)
    block = max(1, 2_000_000 // max(len(segments), 1))  # bounds the memory of the table of all pairs
    for first in range(0, len(points), block):
        p = points[first : first + block]
        t = np.clip((p @ along.T - (start * along).sum(axis=1)) / squared, 0.0, 1.0)
        distance = np.zeros_like(t)
        for k in range(3):
            distance += (start[:, k] + t * along[:, k] - p[:, k : k + 1]) ** 2
        best = distance.argmin(axis=1)
        found[first : first + block] = start[best] + t[np.arange(len(p)), best][:, None] * along[best]
    return found
