"""Remeshing of open surfaces: even triangles of a wished edge length, or fewer triangles."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from breastmorph.errors import MeshProblem
from breastmorph.mesh.closest import Surface, closest_on_segments
from breastmorph.mesh.geometry import face_areas, face_cross, vertex_normals
from breastmorph.mesh.remeshing.edges import (
    Net,
    collapse_short,
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
        Where the border turns by more than this, its vertex stays.
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
    stays = _corners(mesh.vertices, edge_table(mesh.faces).boundary, parameters.corner_degrees)
    stays[pinned] = True
    net = Net(mesh.vertices, mesh.faces, stays, np.where(stays, np.arange(mesh.n_vertices), -1))
    onto = onto or mesh
    surface, track = Surface(onto), onto.vertices[edge_table(onto.faces).boundary]
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


def decimate(mesh: TriangleMesh, n_vertices: int) -> TriangleMesh:
    """Fewer triangles by collapsing edges in the order of quadric error; borders are held.

    Parameters
    ----------
    mesh : TriangleMesh
    n_vertices : int
        How many to leave; the outcome may be off by a few.
    """
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


def _corners(vertices: Floats, border: Ints, degrees: float) -> Bools:
    """Vertices where the border turns sharply or touches itself, (n,)."""
    degree = np.bincount(border.ravel(), minlength=len(vertices))
    sharp = (degree > 0) & (degree != 2)
    one, other = _neighbours_along(border, len(vertices))
    simple = np.flatnonzero(degree == 2)
    back = vertices[simple] - vertices[one[simple]]
    on = vertices[other[simple]] - vertices[simple]
    turn = np.arctan2(np.linalg.norm(np.cross(back, on), axis=1), (back * on).sum(axis=1))
    sharp[simple] |= turn > np.radians(degrees)
    return sharp


def _neighbours_along(border: Ints, n_vertices: int) -> tuple[Ints, Ints]:
    """The two neighbours along the border of every vertex with two of them; meaningless elsewhere."""
    both = np.concatenate([border, border[:, ::-1]])
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
    # One at a time keeps "no two of them in one face" true where ears are neighbours.
    used: set[int] = set()
    chosen = []
    for pair in facing.tolist():
        if not used.intersection(pair):
            used.update(pair)
            chosen.append(pair)
    return split_edges(net, np.array(chosen, dtype=np.int64))


def _relaxed(net: Net, surface: Surface, track: Floats) -> Net:
    """Move vertices along the surface towards the middle of their neighbours; those of the border along it."""
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
    on_border = net.on_border
    inner = np.flatnonzero(~on_border & ~net.fixed)
    found = surface.closest(vertices[inner] + step[inner])
    # An inner vertex stays inside: one that slid onto the border could not be told from the border's own.
    moved[inner] = np.where(found.on_boundary[:, None], vertices[inner], found.points)
    along = np.flatnonzero(on_border & ~net.fixed)
    if len(along):
        one, other = _neighbours_along(net.table.boundary, n)
        half_way = 0.5 * vertices[along] + 0.25 * (vertices[one[along]] + vertices[other[along]])
        moved[along] = closest_on_segments(half_way, track)

    # Where a step would turn a triangle over (or jump across a fold), its corners stay.
    before = face_cross(vertices, faces)
    for _ in range(5):
        after = face_cross(moved, faces)
        product = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        turned = (before * after).sum(axis=1) < 0.5 * product
        if not turned.any():
            break
        back = np.unique(faces[turned])
        moved[back] = vertices[back]
    return replace(net, vertices=moved)
