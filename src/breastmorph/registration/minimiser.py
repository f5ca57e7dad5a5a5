"""Alternating minimisation of F: scale and rotation of every cell, points, correspondences (appendix A)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_matrix, diags, vstack
from scipy.sparse.linalg import splu

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.mesh.geometry import vertex_areas
from breastmorph.registration.energy import Regulariser, fit_cells, regulariser_energy, wanted_edges
from breastmorph.registration.fronts import EdgeSystem
from breastmorph.registration.parameters import StageParameters
from breastmorph.registration.prepared import Cells, Level
from breastmorph.registration.result import Trace
from breastmorph.registration.target import Target, normals_at_vertices


@dataclass(frozen=True, eq=False)
class LandmarkPulls:
    """Landmarks that pull: vertices (m,), where they belong (m, 3), and beta of each (m,)."""

    ids: Ints
    targets: Floats
    weights: Floats


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
    landmarks : LandmarkPulls
    """

    targets: Floats
    weights: Floats
    cell_weights: Floats
    stay: Floats
    start: Floats
    landmarks: LandmarkPulls


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
        self.edge_weights = cells.cotangent_weights(rest, parameters.smallest_edge_weight)
        area = float(vertex_areas(rest, cells.faces).sum())
        per = 1.0 if parameters.consistency_of_whole_area else len(rest)
        self.consistency = parameters.consistency * area / per

    def update_cells(self, pulls: Pulls) -> None:
        """Best scale, then best rotation of every cell for the present points."""
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
        wanted = wanted_edges(self._regulariser(pulls), self.scales, self.rotations)
        data, stay = pulls.weights**2, pulls.stay**2
        diagonal = data + stay
        right = stiffness * wanted + data[:, None] * pulls.targets + stay[:, None] * pulls.start
        np.add.at(diagonal, pulls.landmarks.ids, pulls.landmarks.weights)
        np.add.at(right, pulls.landmarks.ids, pulls.landmarks.weights[:, None] * pulls.landmarks.targets)
        edges = self.cells.stiffness_of_edges(self.edge_weights, pulls.cell_weights)
        return self.system.solve(stiffness * edges, diagonal, right)

    def _stacked(self, pulls: Pulls, stiffness: float) -> Floats:
        """Appendix A to the letter: least squares of [C; alpha W L; beta D], which squares the Laplacian."""
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
        m = len(pulls.landmarks.ids)
        picks = csc_matrix((pulls.landmarks.weights, (np.arange(m), pulls.landmarks.ids)), shape=(m, n))
        matrix = vstack([diags(pulls.weights), diags(weights) @ laplacian, picks]).tocsc()
        right = np.concatenate(
            [
                pulls.weights[:, None] * pulls.targets,
                weights[:, None] * wanted,
                pulls.landmarks.weights[:, None] * pulls.landmarks.targets,
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
        regulariser = regulariser_energy(self._regulariser(pulls), self.points, self.scales, self.rotations)
        stay = (pulls.stay**2 * ((self.points - pulls.start) ** 2).sum(axis=1)).sum()
        marks = ((self.points[pulls.landmarks.ids] - pulls.landmarks.targets) ** 2).sum(axis=1)
        return float(
            0.5 * (self.gap(pulls) + stay)
            + stiffness * regulariser
            + 0.5 * (pulls.landmarks.weights * marks).sum()
        )

    def _regulariser(self, pulls: Pulls) -> Regulariser:
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


def minimise(
    level: Level,
    points: Floats,
    target: Target,
    template_mask: Floats,
    scan_mask: Callable[[Floats], Floats],
    landmarks: LandmarkPulls,
    parameters: StageParameters,
) -> tuple[Deformation, list[Trace]]:
    """Run one stage: new correspondences, one round of updates, lower stiffness, until it is soft.

    Parameters
    ----------
    level : Level
        The resolution of the template.
    points : (n, 3) float
        Where its vertices begin.
    target : Target
        The scan in template coordinates.
    template_mask : (n,) float
        Weights 0..1 of the template's vertices; all ones without masks.
    scan_mask : function from (k, 3) to (k,) float
    landmarks : LandmarkPulls
    parameters : StageParameters

    Returns
    -------
    deformation : Deformation
    history : list of Trace
    """
    rest = level.mesh.vertices if parameters.rest == "template" else points
    deformation = Deformation(level.cells, rest, points, level.system, parameters)
    start = deformation.points.copy()
    stiffness = parameters.stiffness
    history: list[Trace] = []
    while stiffness >= parameters.stiffness_end and len(history) < parameters.max_iterations:
        normals = normals_at_vertices(deformation.points, deformation.cells.faces)
        pairs = target.pairs(deformation.points, normals, parameters.max_angle)
        confidence = 0.5 * (template_mask + scan_mask(pairs.points))
        pulls = Pulls(
            pairs.points,
            np.where(pairs.sound, confidence, 0.0),
            1.0 / ((parameters.softness - 1.0) * confidence + 1.0),
            parameters.start_pull * np.maximum(1.0 - confidence, 0.0),
            start,
            landmarks,
        )
        deformation.update_cells(pulls)
        deformation.update_points(pulls, stiffness)
        distance = float(np.sqrt(deformation.gap(pulls) / max((pulls.weights**2).sum(), 1e-300)))
        history.append(Trace(stiffness, deformation.energy(pulls, stiffness), distance))
        stiffness /= parameters.stiffness_divisor
        if distance < parameters.stop_distance:
            break
    return deformation, history
