"""Alternating minimisation of F: scale and rotation of every cell, points, correspondences (appendix A)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_matrix, diags, vstack
from scipy.sparse.linalg import splu

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import vertex_areas, vertex_normals
from breastmorph.mesh.topology import edge_table, faces_with_any
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.parameters import StageParameters
from breastmorph.registration.rigid import Target

if TYPE_CHECKING:
    from breastmorph.registration.energy import Fronts, Regulariser


# --------------------------------------------------------------------------------------------------------------------
# Cells of a mesh: the spokes and rims around every vertex, and the sparse pattern they make
# --------------------------------------------------------------------------------------------------------------------

_SMALLEST_WEIGHT = 0.01  # negative cotangents (obtuse pairs) would make the energy unbounded
_LARGEST_COTANGENT = 1.0 / math.tan(1e-3)  # of a needle


@dataclass(frozen=True, eq=False)
class Cells:
    """Which edges belong to which vertex's cell.

    An edge counts once in the cells of its two ends (spokes) and half in the cells of its one or two opposite
    vertices (rims).

    Attributes
    ----------
    faces : (m, 3) int
    edges : (e, 2) int
    of_half_edge : (3m,) int
        Edge of every directed edge: those leaving corner 0 of every face, then corner 1, then corner 2.
    opposite : (e, 2) int
        Vertices facing each edge; the second is -1 on the border.
    start : (n + 1,) int
        The members of vertex i's cell are ``members[start[i]:start[i + 1]]``.
    members : (k,) int
        Edges.
    share : (k,) float
        1 for spokes, 1/2 for rims.
    """

    faces: Ints
    edges: Ints
    of_half_edge: Ints
    opposite: Ints
    start: Ints
    members: Ints
    share: Floats

    def cotangent_weights(self, vertices: Floats) -> Floats:
        """w_jk = (cot + cot) / 2 of the angles facing each edge, clamped from below, (e,)."""
        from breastmorph.mesh import dense

        facing = dense.cotangents(vertices, self.faces, _LARGEST_COTANGENT)[
            :, [2, 0, 1]
        ].T.ravel()  # the half-edge leaving corner 0 faces corner 2
        total = np.bincount(self.of_half_edge, weights=0.5 * facing, minlength=len(self.edges))
        return np.maximum(total, _SMALLEST_WEIGHT)

    def stiffness_of_edges(self, edge_weights: Floats, vertex_weights: Floats) -> Floats:
        """Entries of K: each edge's weight times the weights of the cells it is in, over 3, (e,)."""
        padded = np.append(vertex_weights, 0.0)  # -1 finds the zero
        cells = padded[self.edges].sum(axis=1) + 0.5 * padded[self.opposite].sum(axis=1)
        found: Floats = edge_weights * cells / 3.0
        return found


def spokes_and_rims(faces: Ints, n_vertices: int) -> Cells:
    """Collect the cells of a manifold mesh."""
    table = edge_table(faces)
    facing = faces[:, [2, 0, 1]].T.ravel()
    order = np.argsort(table.of_half_edge, kind="stable")
    first = np.searchsorted(table.of_half_edge[order], np.arange(len(table.edges)))
    opposite = np.full((len(table.edges), 2), -1, dtype=np.int64)
    opposite[:, 0] = facing[order[first]]
    inner = table.face_count > 1
    opposite[inner, 1] = facing[order[first[inner] + 1]]

    edge_ids = np.arange(len(table.edges))
    has_second = opposite[:, 1] >= 0
    owner = np.concatenate([table.edges[:, 0], table.edges[:, 1], opposite[:, 0], opposite[has_second, 1]])
    member = np.concatenate([edge_ids, edge_ids, edge_ids, edge_ids[has_second]])
    share = np.where(np.arange(len(owner)) < 2 * len(edge_ids), 1.0, 0.5)
    by_owner = np.lexsort((member, owner))
    start = np.searchsorted(owner[by_owner], np.arange(n_vertices + 1))
    return Cells(
        np.array(faces),
        table.edges,
        table.of_half_edge,
        opposite,
        start.astype(np.int64),
        member[by_owner],
        share[by_owner],
    )


# --------------------------------------------------------------------------------------------------------------------
# Symmetric positive definite systems of one sparse pattern: analysed once, factored often
# --------------------------------------------------------------------------------------------------------------------


class EdgeSystem:
    """Systems whose off-diagonal entries sit on the edges of one mesh.

    Solved by a multifrontal Cholesky factorisation: columns with nearly the same rows make one dense front, whose
    update is added to the front that needs it. Which go together is found once for the mesh.

    Parameters
    ----------
    edges : (e, 2) int
    n_vertices : int
    """

    def __init__(self, edges: Ints, n_vertices: int) -> None:
        self._edges, self._n = edges, n_vertices
        self._fronts: Fronts | None = None
        self._panels = self._pool = np.empty(0)

    def factor(self, edge_stiffness: Floats, diagonal: Floats) -> None:
        """Factor sum_e k_e (x_j - x_k)^2 + sum_i d_i x_i^2 for edge stiffness k (e,) and diagonal d (n,)."""
        from breastmorph.registration.energy import factor_fronts

        if self._fronts is None:
            self._fronts, pool = fronts_of(self._edges, self._n)
            self._panels, self._pool = np.empty(self._fronts.panel_start[-1]), np.empty(pool)
        total = diagonal.copy()
        for end in (0, 1):
            total += np.bincount(self._edges[:, end], weights=edge_stiffness, minlength=self._n)
        self._panels[:] = 0.0
        self._panels[self._fronts.place] = np.concatenate([-edge_stiffness, total])
        factor_fronts(self._fronts, self._panels, self._pool)

    def solve(self, right: Floats) -> Floats:
        """Solve for right-hand sides (n, 3)."""
        from breastmorph.registration.energy import solve_fronts

        if self._fronts is None:
            raise ValueError("nothing has been factored")
        solved = np.ascontiguousarray(right[self._fronts.vertex])
        solve_fronts(self._fronts, self._panels, solved)
        found = np.empty_like(solved)
        found[self._fronts.vertex] = solved
        return found


def fronts_of(edges: Ints, n: int) -> tuple[Fronts, int]:
    """The fronts of a system on these edges, and how many numbers their updates take at most at once."""
    from breastmorph.registration.energy import Fronts, begin_fronts, children_first, room_for_updates

    lower, vertex = _filled_in(edges, n)
    start, count = lower.indptr.astype(np.int64), np.diff(lower.indptr).astype(np.int64)
    parent = np.full(n, -1)
    parent[count > 0] = lower.indices[start[:-1][count > 0]]
    order = children_first(parent)
    number = np.empty(n, np.int64)
    number[order] = np.arange(n)
    parent, count = np.where(parent[order] >= 0, number[parent[order]], -1), count[order]

    first = begin_fronts(parent, count)
    last, width = first[1:] - 1, np.diff(first)
    below = count[last]  # rows under the front's own columns: those of its last one
    height, of_column = width + below, np.repeat(np.arange(len(width)), width)
    row_start = np.concatenate([[0], np.cumsum(height)])
    front = np.repeat(np.arange(len(width)), height)
    within = np.arange(row_start[-1]) - row_start[front]
    is_own = within < width[front]
    source = start[order[last]][front] + within - width[front]
    rows = np.where(is_own, first[front] + within, number[lower.indices[np.where(is_own, 0, source)]])
    known = np.sort(front * n + rows)  # rows in ascending order within each front
    rows = known - front * n

    def at(fronts: Ints, rows: Ints) -> Ints:
        found: Ints = np.searchsorted(known, fronts * n + rows) - row_start[fronts]
        return found

    upper = np.where(parent[last] >= 0, of_column[parent[last]], -1)
    last_child, sibling = np.full((2, len(width)), -1)
    for child, above in enumerate(upper.tolist()):
        if above >= 0:
            sibling[child], last_child[above] = last_child[above], child
    panel_start = np.concatenate([[0], np.cumsum(width * height)])
    vertex = vertex[order]
    column = np.empty(n, np.int64)
    column[vertex] = np.arange(n)
    ends = column[np.vstack([edges, np.column_stack([np.arange(n)] * 2)])]
    low, high = ends.min(axis=1), ends.max(axis=1)
    own = of_column[low]
    fronts = Fronts(
        first,
        row_start,
        rows,
        panel_start,
        at(upper[front][~is_own], rows[~is_own]),
        np.concatenate([[0], np.cumsum(below)]),
        last_child,
        sibling,
        panel_start[own] + (low - first[own]) * height[own] + at(own, high),
        vertex,
    )
    return fronts, int(room_for_updates(fronts))


def _filled_in(edges: Ints, n: int) -> tuple[csc_matrix, Ints]:
    """Pattern of the factor below the diagonal, and which vertex each of its columns is: few entries are filled in."""
    import qdldl

    matrix = csc_matrix((np.full(len(edges), -0.5), (edges.min(axis=1), edges.max(axis=1))), shape=(n, n))
    factor, _, order = qdldl.Solver((matrix + diags(np.full(n, float(n)))).tocsc(), upper=True).factors()
    pattern = csc_matrix(factor)
    pattern.sort_indices()
    return pattern, np.asarray(order, np.int64)


# --------------------------------------------------------------------------------------------------------------------
# Alternating minimisation of F: scale and rotation of every cell, points, correspondences (appendix A)
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pulls:
    """Everything that pulls at the points, for fixed correspondences.

    Attributes
    ----------
    targets : (n, 3) float
        Q, anything where the weight is zero.
    weights : (n,) float
        c, zero for void pairs.
    cell_weights : (n,) float
        w of the regulariser.
    stay : (n,) float
        Weight of staying at ``start``.
    start : (n, 3) float
    landmark_ids : (m,) int
    landmark_targets : (m, 3) float
    landmark_weights : (m,) float
        beta of each landmark.
    """

    targets: Floats
    weights: Floats
    cell_weights: Floats
    stay: Floats
    start: Floats
    landmark_ids: Ints
    landmark_targets: Floats
    landmark_weights: Floats


@dataclass(frozen=True)
class Trace:
    """One iteration of a stage: stiffness, energy F after it, root mean square of the distance term in mm."""

    stiffness: float
    energy: float
    distance: float


class Deformation:
    """A mesh being bent: points, and scale and rotation of every cell.

    Each ``update_*`` lowers F, except by the printed rules and the stacked system.

    Parameters
    ----------
    cells : Cells
    rest : (n, 3) float
        The shape whose edges the regulariser keeps.
    points : (n, 3) float
        Where it begins.
    system : EdgeSystem
        Of the same mesh.
    parameters : StageParameters
    """

    def __init__(
        self, cells: Cells, rest: Floats, points: Floats, system: EdgeSystem, parameters: StageParameters
    ) -> None:
        self.cells, self.system, self.parameters = cells, system, parameters
        self.rest = np.ascontiguousarray(rest)
        self.points = np.array(points)
        self.scales = np.ones(len(rest))
        self.rotations = np.tile(np.eye(3), (len(rest), 1, 1))
        self.edge_weights = cells.cotangent_weights(rest)
        area = float(vertex_areas(rest, cells.faces).sum())
        per = 1.0 if parameters.consistency_of_whole_area else len(rest)
        self.consistency = parameters.consistency * area / per

    def update_cells(self, pulls: Pulls) -> None:
        """Best scale, then best rotation of every cell for the present points."""
        from breastmorph.registration.energy import fit_cells

        fit_cells(
            self._regulariser(pulls),
            self.points,
            self.scales,
            self.rotations,
            self.parameters.scale_rule == "printed",
            self.parameters.rotation_rule == "printed",
        )

    def update_points(self, pulls: Pulls, stiffness: float) -> None:
        """Best points for the present scales and rotations."""
        solve = self._stacked if self.parameters.system == "stacked" else self._symmetric
        self.points = solve(pulls, stiffness)

    def _symmetric(self, pulls: Pulls, stiffness: float) -> Floats:
        """C^2 + alpha K + beta D'D."""
        from breastmorph.registration.energy import wanted_edges

        wanted = wanted_edges(self._regulariser(pulls), self.scales, self.rotations)
        data, stay = pulls.weights**2, pulls.stay**2
        diagonal = data + stay
        right = stiffness * wanted + data[:, None] * pulls.targets + stay[:, None] * pulls.start
        np.add.at(diagonal, pulls.landmark_ids, pulls.landmark_weights)
        np.add.at(right, pulls.landmark_ids, pulls.landmark_weights[:, None] * pulls.landmark_targets)
        edges = self.cells.stiffness_of_edges(self.edge_weights, pulls.cell_weights)
        self.system.factor(stiffness * edges, diagonal)
        return self.system.solve(right)

    def _stacked(self, pulls: Pulls, stiffness: float) -> Floats:
        """Appendix A to the letter: least squares of [C; alpha W L; beta D], which squares the Laplacian."""
        from breastmorph.registration.energy import wanted_edges

        n = len(self.points)
        j, k = self.cells.edges.T
        ones = np.ones(n)
        # h_i divides by 2 + |G| / 2 edge by edge; the kernel divides by 3, so border edges are rescaled here.
        border = np.where(self.cells.opposite[:, 1] < 0, 3.0 / 2.5, 1.0)
        unweighted = self._regulariser(pulls)._replace(
            edge_weights=self.edge_weights * border, cell_weights=ones
        )
        wanted = wanted_edges(unweighted, self.scales, self.rotations)
        rows, columns = np.concatenate([j, k]), np.concatenate([k, j])
        off = csc_matrix((np.tile(-self.edge_weights, 2), (rows, columns)), shape=(n, n))
        laplacian = off - diags(np.asarray(off.sum(axis=1)).ravel())
        weights = stiffness * pulls.cell_weights
        m = len(pulls.landmark_ids)
        picks = csc_matrix((pulls.landmark_weights, (np.arange(m), pulls.landmark_ids)), shape=(m, n))
        matrix = vstack([diags(pulls.weights), diags(weights) @ laplacian, picks]).tocsc()
        right = np.concatenate(
            [
                pulls.weights[:, None] * pulls.targets,
                weights[:, None] * wanted,
                pulls.landmark_weights[:, None] * pulls.landmark_targets,
            ]
        )
        normal = (matrix.T @ matrix + 1e-10 * diags(ones)).tocsc()
        factor = splu(
            normal, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}, diag_pivot_thresh=0.0
        )
        found: Floats = factor.solve(matrix.T @ right)
        return found

    def gap(self, pulls: Pulls) -> float:
        """Twice the distance term: sum of the weighted squared distances from the targets."""
        squares = ((self.points - pulls.targets) ** 2).sum(axis=1)
        return float((pulls.weights**2 * squares).sum())

    def energy(self, pulls: Pulls, stiffness: float) -> float:
        """F for these pulls: distance, stay, alpha times regulariser, landmarks."""
        from breastmorph.registration.energy import regulariser_energy

        regulariser = regulariser_energy(self._regulariser(pulls), self.points, self.scales, self.rotations)
        stay = (pulls.stay**2 * ((self.points - pulls.start) ** 2).sum(axis=1)).sum()
        marks = ((self.points[pulls.landmark_ids] - pulls.landmark_targets) ** 2).sum(axis=1)
        return float(
            0.5 * (self.gap(pulls) + stay)
            + stiffness * regulariser
            + 0.5 * (pulls.landmark_weights * marks).sum()
        )

    def _regulariser(self, pulls: Pulls) -> Regulariser:
        from breastmorph.registration.energy import Regulariser

        return Regulariser(
            self.cells.start,
            self.cells.members,
            self.cells.share,
            self.cells.edges,
            self.cells.opposite,
            self.edge_weights,
            self.rest,
            pulls.cell_weights,
            self.consistency,
            self.parameters.scale_stiffness,
        )


def fit(
    deformation: Deformation,
    target: Target,
    template_mask: Floats,
    scan_mask: Callable[[Floats], Floats],
    landmark_ids: Ints,
    landmark_targets: Floats,
    landmark_shares: Floats,
) -> list[Trace]:
    """Run one stage: new correspondences, one round of updates, lower stiffness, until it is soft.

    Parameters
    ----------
    deformation : Deformation
        Changed in place.
    target : Target
        The scan in template coordinates.
    template_mask : (n,) float
        Weights 0..1 of the template's vertices; all ones without masks.
    scan_mask : function from (k, 3) to (k,) float
    landmark_ids, landmark_targets, landmark_shares : (m,) int, (m, 3) float, (m,) float
    """
    parameters = deformation.parameters
    start = deformation.points.copy()
    stiffness = parameters.stiffness
    history: list[Trace] = []
    while stiffness >= parameters.stiffness_end and len(history) < parameters.max_iterations:
        normals = vertex_normals(deformation.points, deformation.cells.faces)
        pairs = target.pairs(deformation.points, normals, parameters.max_angle)
        confidence = 0.5 * (template_mask + scan_mask(pairs.points))
        pulls = Pulls(
            pairs.points,
            np.where(pairs.sound, confidence, 0.0),
            1.0 / ((parameters.softness - 1.0) * confidence + 1.0),
            parameters.start_pull * np.maximum(1.0 - confidence, 0.0),
            start,
            landmark_ids,
            landmark_targets,
            parameters.landmark_weight * landmark_shares,
        )
        deformation.update_cells(pulls)
        deformation.update_points(pulls, stiffness)
        distance = float(np.sqrt(deformation.gap(pulls) / max((pulls.weights**2).sum(), 1e-300)))
        history.append(Trace(stiffness, deformation.energy(pulls, stiffness), distance))
        stiffness /= parameters.stiffness_divisor
        if distance < parameters.stop_distance:
            break
    return history


# --------------------------------------------------------------------------------------------------------------------
# Triangles pressed together: spread again over the skin around them
# --------------------------------------------------------------------------------------------------------------------

_RINGS = 12  # of triangles around them that take part
_OVERLAP = 2  # rings around what is turned over that are drawn flat first
_STEP = 0.5  # of the way to where a vertex's neighbours would have it, along the surface
_STEPS = 20  # before it is looked again which are still tight
_ROUNDS = 10


def membrane(rest: TriangleMesh, points: Floats, free: Bools) -> Floats:
    """Points (n, 3) of which the free ones hang between the others as a membrane that is even on the mesh at rest."""
    import igl

    laplacian = igl.cotmatrix(np.array(rest.vertices), np.array(rest.faces)).tocsr()[free]
    found = np.array(points)
    found[free] = splu(laplacian[:, free].tocsc()).solve(-laplacian[:, ~free] @ points[~free])
    return found


def evened(rest: TriangleMesh, points: Floats, tightest: float, held: Bools) -> Floats:
    """Points (n, 3) of the same surface on which no triangle is pressed together.

    Closest points of a deep fold lie side by side, and the skin before it ends on one line. Where along the surface it
    belongs no scan says; the template's own proportions do.

    Parameters
    ----------
    rest : TriangleMesh
        The template.
    points : (n, 3) float
    tightest : float
        Share of its area at rest, as the median triangle keeps its own, below which a triangle is spread.
    held : (n,) bool
        Vertices that stay.
    """
    tight, over = _pressed(rest, points, tightest)
    if not tight.any():
        return points
    import igl

    laplacian = igl.cotmatrix(np.array(rest.vertices), np.array(rest.faces)).tocsr()
    points, free, surface = np.array(points), np.zeros(len(points), bool), None
    for turn in range(_ROUNDS):
        if over.any():  # a surface that lies over itself is no surface to slide on
            points = membrane(rest, points, _around(rest.faces, over, _OVERLAP + turn, held))
            surface = None
        surface = Surface(rest.with_vertices(points)) if surface is None else surface
        free |= _around(rest.faces, tight, _RINGS, held)
        pull = diags(-_STEP / laplacian.diagonal()[free]) @ laplacian[free]
        faces = rest.faces[faces_with_any(free, rest.faces)]
        for _ in range(_STEPS):
            normals = vertex_normals(points, faces)[free]
            step = pull @ points
            step -= (step * normals).sum(axis=1)[:, None] * normals
            points[free] = surface.closest(points[free] + step).points
        tight, over = _pressed(rest, points, tightest)
        if not tight.any():
            break
    return points


def _pressed(rest: TriangleMesh, points: Floats, tightest: float) -> tuple[Bools, Bools]:
    """Triangles that are too small or turned over, and those that are turned over, (m,) bool each."""
    from breastmorph.mesh import dense

    ratio, over = dense.pressed(rest.vertices, points, rest.faces)
    return (ratio < tightest * np.median(ratio)) | over, over


def _around(faces: Ints, chosen: Bools, rings: int, held: Bools) -> Bools:
    """Vertices of chosen faces and so many rings about them, but for those that are held, (n,)."""
    near = np.zeros(len(held), bool)
    near[faces[chosen]] = True
    for _ in range(rings):
        near[faces[faces_with_any(near, faces)]] = True
    found: Bools = near & ~held
    return found
