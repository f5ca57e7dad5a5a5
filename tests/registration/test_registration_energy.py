"""The energy: every update of the default lowers F; known answers; the linear system."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import Delaunay

import plain_energy
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import rotation_about
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration import energy
from breastmorph.registration.fronts import EdgeSystem
from breastmorph.registration.minimiser import Deformation, LandmarkPulls, Pulls
from breastmorph.registration.parameters import RelaxationParameters, StageParameters, preset
from breastmorph.registration.prepared import EmbeddedDeformation, spokes_and_rims
from breastmorph.registration.relaxation import relaxed
from breastmorph.registration.result import shape_metrics


def patch(rng: np.random.Generator, count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    flat = rng.uniform(-50, 50, (count, 2))
    faces = Delaunay(flat).simplices.astype(np.int64)
    a, b, c = (flat[faces[:, k]] for k in range(3))
    turned = (b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0] < 0
    faces[turned] = faces[turned][:, ::-1]
    height = 20 * np.exp(-(flat**2).sum(axis=1) / 900)
    return np.column_stack([flat, height]), faces


def deformation(vertices, faces, points, parameters) -> Deformation:
    cells = spokes_and_rims(faces, len(vertices))
    return Deformation(cells, vertices, points, EdgeSystem(cells.edges, len(vertices)), parameters)


def pulls_for(rng: np.random.Generator, vertices: np.ndarray) -> Pulls:
    n = len(vertices)
    confidence = rng.uniform(0, 1, n)
    return Pulls(
        targets=vertices + rng.normal(0, 10, (n, 3)),
        weights=np.where(rng.random(n) < 0.3, 0.0, confidence),
        cell_weights=1.0 / (confidence + 1.0),
        stay=rng.uniform(0, 0.3, n),
        start=vertices + rng.normal(0, 2, (n, 3)),
        landmarks=LandmarkPulls(
            rng.choice(n, 3, replace=False), rng.normal(0, 40, (3, 3)), rng.uniform(0, 1000, 3)
        ),
    )


@given(
    seed=st.integers(0, 10**6),
    stiffness=st.floats(0.01, 1000.0),
    consistency=st.sampled_from([0.0, 0.02, 1.0, 100.0]),
    scale_stiffness=st.sampled_from([0.0, 0.3, 10.0]),
)
def test_every_update_lowers_the_energy(seed, stiffness, consistency, scale_stiffness):
    rng = np.random.default_rng(seed)
    vertices, faces = patch(rng)
    parameters = replace(preset("default").fine, consistency=consistency, scale_stiffness=scale_stiffness)
    state = deformation(vertices, faces, vertices + rng.normal(0, 15, vertices.shape), parameters)
    pulls = pulls_for(rng, vertices)
    energy = state.energy(pulls, stiffness)
    for _ in range(3):
        for update in (
            lambda: state.update_cells(pulls),
            lambda: state.update_points(pulls, stiffness),
        ):
            update()
            after = state.energy(pulls, stiffness)
            assert after <= energy * (1 + 1e-10) + 1e-9
            energy = after
        assert np.allclose(state.rotations @ state.rotations.transpose(0, 2, 1), np.eye(3), atol=1e-9)
        assert (np.linalg.det(state.rotations) > 0).all()


@pytest.mark.parametrize(("consistency", "scale_stiffness"), [(0.0, 0.0), (0.02, 0.0), (5.0, 0.3)])
def test_the_compiled_kernels_are_equation_8_in_plain_numpy(consistency, scale_stiffness):
    rng = np.random.default_rng(7)
    vertices, faces = patch(rng)
    parameters = replace(preset("default").fine, consistency=consistency, scale_stiffness=scale_stiffness)
    state = deformation(vertices, faces, vertices + rng.normal(0, 8, vertices.shape), parameters)
    pulls = pulls_for(rng, vertices)
    state.scales = rng.uniform(0.5, 2.0, len(vertices))
    state.rotations = np.stack([rotation_about(axis, 60.0) for axis in rng.normal(size=(len(vertices), 3))])
    f = state._regulariser(pulls)
    scales, rotations = state.scales.copy(), state.rotations.copy()
    for i in range(len(vertices)):  # one after the other, as the kernel does
        scales[i] = plain_energy.best_scale(f, i, state.points, rotations, energy.SMALLEST_SCALE)
        rotations[i] = plain_energy.best_rotation(f, i, state.points, scales, rotations)
    state.update_cells(pulls)
    assert np.allclose(state.scales, scales, atol=1e-9)
    assert np.allclose(state.rotations, rotations, atol=1e-7)
    now = (f, state.points, scales, rotations)
    assert np.isclose(energy.regulariser_energy(*now), plain_energy.equation_8(*now), rtol=1e-12)
    assert np.allclose(
        energy.wanted_edges(f, scales, rotations), plain_energy.edges_wanted(f, scales, rotations)
    )


def test_updates_are_stationary_points():
    rng = np.random.default_rng(5)
    vertices, faces = patch(rng)
    state = deformation(vertices, faces, vertices + rng.normal(0, 5, vertices.shape), preset("default").fine)
    pulls = pulls_for(rng, vertices)
    state.update_cells(pulls)
    state.update_points(pulls, 3.0)
    best = state.energy(pulls, 3.0)
    for _ in range(20):
        state_points = state.points.copy()
        state.points = state_points + rng.normal(0, 0.05, vertices.shape)
        assert state.energy(pulls, 3.0) > best
        state.points = state_points


def test_a_similarity_costs_nothing_and_is_found():
    rng = np.random.default_rng(1)
    vertices, faces = patch(rng)
    turn = rotation_about(np.array([1.0, 0.3, -0.2]), 130.0)
    state = deformation(vertices, faces, 1.7 * vertices @ turn.T + 5.0, StageParameters())
    pulls = pulls_for(rng, vertices)
    unled = replace(pulls.landmarks, weights=np.zeros(3))
    free = replace(pulls, weights=np.zeros(60), stay=np.zeros(60), landmarks=unled)
    for _ in range(30):  # rotations settle one after the other because neighbours hold each other
        state.update_cells(free)
    assert np.allclose(state.scales, 1.7, atol=1e-3)
    assert np.allclose(state.rotations, turn, atol=1e-3)
    assert state.energy(free, 1.0) < 1e-2


def test_stiffness_matrix_is_the_laplacian_where_all_cells_weigh_one():
    vertices, faces = patch(np.random.default_rng(2))
    cells = spokes_and_rims(faces, len(vertices))
    weights = cells.cotangent_weights(vertices, 0.01)
    inner = cells.opposite[:, 1] >= 0
    assert np.allclose(cells.stiffness_of_edges(weights, np.ones(len(vertices)))[inner], weights[inner])


@pytest.mark.parametrize("rule", ["paper", "paper-stacked"])
def test_printed_rules_run_and_keep_rotations(rule):
    rng = np.random.default_rng(3)
    vertices, faces = patch(rng)
    state = deformation(vertices, faces, vertices + rng.normal(0, 2, vertices.shape), preset(rule).fine)
    pulls = pulls_for(rng, vertices)
    state.update_cells(pulls)
    state.update_points(pulls, 10.0)
    assert np.isfinite(state.points).all()
    assert (state.scales > 0).all()


def test_system_refactors_with_new_values():
    vertices, faces = patch(np.random.default_rng(4))
    cells = spokes_and_rims(faces, len(vertices))
    system, rng = EdgeSystem(cells.edges, len(vertices)), np.random.default_rng(4)
    for _ in range(3):
        stiffness, diagonal = rng.uniform(0.1, 2, len(cells.edges)), rng.uniform(0.1, 1, len(vertices))
        matrix = np.diag(diagonal)
        for (j, k), value in zip(cells.edges, stiffness, strict=True):
            matrix[[j, k], [j, k]] += value
            matrix[[j, k], [k, j]] -= value
        right = rng.normal(size=(len(vertices), 3))
        assert np.allclose(system.solve(stiffness, diagonal, right), np.linalg.solve(matrix, right))


def test_embedded_deformation_carries_a_similarity_exactly():
    rng = np.random.default_rng(6)
    points, nodes = rng.uniform(-50, 50, (200, 3)), rng.uniform(-50, 50, (30, 3))
    turn = rotation_about(np.array([0.0, 1.0, 1.0]), 40.0)
    moved = EmbeddedDeformation(points, nodes, 6).apply(
        1.3 * nodes @ turn.T + 7.0, np.full(30, 1.3), np.tile(turn, (30, 1, 1))
    )
    assert np.allclose(moved, 1.3 * points @ turn.T + 7.0)


def _sheet(shift: np.ndarray) -> TriangleMesh:
    """A sheet of 1 mm squares with a fold across it, whose columns lie elsewhere by so much in its middle."""
    x, y = np.meshgrid(np.arange(41.0), np.arange(31.0), indexing="ij")
    x += shift[:, None] * np.sin(np.pi * y / 30.0) ** 2
    n, k = x.shape
    corner = (np.arange(n - 1)[:, None] * k + np.arange(k - 1)).ravel()
    one = np.column_stack([corner, corner + k, corner + 1])
    other = np.column_stack([corner + 1, corner + k, corner + k + 1])
    height = np.hypot(x - 20.0, 10.0)
    return TriangleMesh(np.column_stack([x.ravel(), y.ravel(), height.ravel()]), np.concatenate([one, other]))


@pytest.mark.parametrize(("gap", "off"), [(0.02, 0.1), (-0.2, 0.8)], ids=["compressed", "turned over"])
def test_compressed_triangles_at_a_fold_are_spread_over_the_same_surface(gap: float, off: float) -> None:
    tight = np.zeros(41)
    tight[19:23] = 20.0 + gap * np.arange(4.0) - np.arange(19.0, 23.0)
    rest, compressed = _sheet(np.zeros(41)), _sheet(tight)
    fixed = np.isin(rest.vertices[:, 0], (0.0, 40.0)) | np.isin(rest.vertices[:, 1], (0.0, 30.0))
    found = relaxed(rest, compressed.vertices, 0.15, fixed, RelaxationParameters())
    before, after = (shape_metrics(rest.vertices, v, rest.faces) for v in (compressed.vertices, found))
    assert before["smallest_area_ratio"] < 0.05
    assert (before["flipped_percent"] > 0.0) == (gap < 0.0)
    assert after["smallest_area_ratio"] > 0.15
    assert after["flipped_percent"] == 0.0
    assert np.array_equal(found[fixed], compressed.vertices[fixed])
    assert Surface(rest).distances(found).max() < off
    assert np.array_equal(relaxed(rest, rest.vertices, 0.15, fixed, RelaxationParameters()), rest.vertices)
