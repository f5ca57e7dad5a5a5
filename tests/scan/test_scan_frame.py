from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.mesh.geometry import Similarity, rotation_about, vertex_normals
from breastmorph.mesh.topology import boundary_loops, edge_table
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan import frame
from torso import torso


def turned(rotation):
    mesh, landmarks = torso()
    move = Similarity(rotation, np.array([30.0, -200.0, 70.0]))
    return mesh.with_vertices(move.apply(mesh.vertices)), landmarks.transformed(move)


def off_by(found, rotation):
    """Degrees between the found up axis and the true one."""
    return np.degrees(np.arccos(np.clip(found.axes[1] @ rotation[:, 1], -1, 1)))


def ragged(mesh):
    """The same scan without a straight lower edge."""
    x, y, _ = mesh.vertices[mesh.faces].mean(axis=1).T
    return mesh.kept(y > -195 + 12 * np.sin(x / 9.0) + 0.12 * x)


def ragged_part(mesh, rotation):
    """The same of a turned scan."""
    upright = mesh.with_vertices(mesh.vertices @ rotation + [-30, 200, -70] @ rotation)
    return TriangleMesh(mesh.vertices, ragged(upright.with_vertices(upright.vertices)).faces)


@pytest.mark.parametrize("seed", range(10))
def test_the_level_lower_edge_gives_up_in_any_pose(seed):
    rotation = Rotation.random(None, np.random.default_rng(seed)).as_matrix()
    found = frame.upright_frame(*turned(rotation))
    assert off_by(found, rotation) < 1.0
    assert np.isclose(np.linalg.det(found.axes), 1.0)


def test_the_files_axes_are_kept_when_they_agree():
    mesh, landmarks = torso()
    found = frame.upright_frame(mesh, landmarks)
    assert found.source == "file axes"
    assert np.array_equal(found.axes, np.eye(3))


def test_a_z_up_file_is_recognised():
    rotation = rotation_about(np.array([1.0, 0, 0]), 90)  # y up becomes z up
    found = frame.upright_frame(*turned(rotation))
    assert found.source == "file axes"
    assert off_by(found, rotation) < 1e-6


def test_a_leaning_sternum_does_not_tilt_the_scan():
    mesh, landmarks = torso()
    _, up, forward = landmarks["sternal_notch"] - landmarks["xiphoid"]
    assert np.degrees(np.arctan2(-forward, up)) == pytest.approx(21, abs=3)
    without_edge = ragged(mesh)
    assert frame.upright_frame(without_edge, landmarks).axes[1] @ [0, 1, 0] == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_without_a_level_edge_the_reference_decides(seed):
    mesh, landmarks = torso()
    rotation = Rotation.from_euler("yxz", [20 + 50 * seed, 45, 40], degrees=True).as_matrix()
    scan = ragged(mesh)
    move = Similarity(rotation)
    found = frame.upright_frame(
        scan.with_vertices(move.apply(scan.vertices)), landmarks.transformed(move), (mesh, landmarks)
    )
    assert found.source in ("reference", "file's up axis")
    if found.source == "reference":
        assert off_by(found, rotation) < 3.0


@pytest.mark.parametrize("seed", range(5))
def test_landmarks_alone_stay_within_the_stated_tolerance(seed):
    _, landmarks = torso()
    rotation = Rotation.random(None, np.random.default_rng(seed)).as_matrix()
    axes = frame.landmark_axes(landmarks.transformed(Similarity(rotation)))
    up = np.degrees(np.arccos(np.clip(axes[1] @ rotation[:, 1], -1, 1)))
    assert up < frame.LANDMARK_TOLERANCE


def test_one_side_is_enough():
    _, landmarks = torso()
    for side in ("left", "right"):
        names = [name for name in landmarks if not name.endswith(side)]
        axes = frame.landmark_axes(landmarks.only(names))
        assert axes[0][0] > 0.8
        assert axes[1][1] > 0.9


def test_swapped_sides_are_refused():
    _, landmarks = torso()
    swapped = {name: landmarks[name] for name in landmarks}
    for part in ("nipple", "lower_pole", "lateral_pole"):
        swapped[f"{part}_left"], swapped[f"{part}_right"] = (
            landmarks[f"{part}_right"],
            landmarks[f"{part}_left"],
        )
    with pytest.raises(LandmarkProblem, match="sides swapped or file mirrored"):
        frame.landmark_axes(type(landmarks).of(swapped))


@pytest.mark.parametrize("names", [("nipple_left", "nipple_right"), ("nipple_left", "xiphoid"), "all"])
def test_inside_out_is_seen(names):
    mesh, landmarks = torso()
    landmarks = landmarks if names == "all" else landmarks.only(("sternal_notch", *names))
    assert not frame.faces_inside_out(mesh, landmarks)
    assert frame.faces_inside_out(mesh.flipped(), landmarks)


@pytest.mark.parametrize(
    "names", [("nipple_left", "nipple_right"), ("nipple_left", "xiphoid"), ("nipple_right", "xiphoid")]
)
@pytest.mark.parametrize("seed", range(3))
def test_few_landmarks_lay_a_scan_upright_in_any_pose(seed, names):
    rotation = Rotation.random(None, np.random.default_rng(seed)).as_matrix()
    mesh, landmarks = turned(rotation)
    found = frame.upright_frame(mesh, landmarks.only(("sternal_notch", *names)))
    assert off_by(found, rotation) < 1.0
    assert found.axes[0] @ rotation[:, 0] > 0.99
    found = frame.upright_frame(ragged_part(mesh, rotation), landmarks.only(("sternal_notch", *names)))
    assert found.source == "landmarks"
    assert off_by(found, rotation) < frame.LANDMARK_TOLERANCE


def test_swapped_nipples_are_refused_without_any_pole():
    mesh, landmarks = torso()
    few = landmarks.only(("sternal_notch", "nipple_left", "nipple_right"))
    with pytest.raises(LandmarkProblem, match="sides swapped or file mirrored"):
        frame.upright_frame(mesh, type(few)(("sternal_notch", "nipple_right", "nipple_left"), few.points))


def test_alignment_recovers_a_known_pose_and_size():
    mesh, landmarks = torso()
    truth = Similarity(rotation_about(np.array([1.0, 1.0, 0.2]), 130), np.array([5.0, 900.0, 1.0]), 1.1)
    found = frame.align(
        mesh, landmarks, mesh.with_vertices(truth.apply(mesh.vertices)), landmarks.transformed(truth)
    )
    assert np.abs(found.apply(mesh.vertices) - truth.apply(mesh.vertices)).max() < 0.05


@pytest.mark.parametrize("seed", [15, 24, 34])
def test_noise_does_not_turn_a_scan_inside_out(seed):
    # Of the faces that happen to lie under the landmarks, most face inwards in these draws.
    mesh, landmarks = torso(edge=3)
    noise = np.random.default_rng(seed).normal(scale=3.0, size=mesh.vertices.shape)
    noisy = mesh.with_vertices(mesh.vertices + noise)
    assert not frame.faces_inside_out(noisy, landmarks)
    assert frame.faces_inside_out(noisy.flipped(), landmarks)


def test_the_inner_wall_of_a_thick_shell_does_not_count():
    mesh, landmarks = torso()
    inner = mesh.with_vertices(mesh.vertices - 4.0 * vertex_normals(mesh.vertices, mesh.faces)).flipped()
    rim = edge_table(mesh.faces).boundary
    a, b = rim.T
    walls = np.vstack(
        [
            np.column_stack([b, a, a + mesh.n_vertices]),
            np.column_stack([b, a + mesh.n_vertices, b + mesh.n_vertices]),
        ]
    )
    closed = TriangleMesh(
        np.vstack([mesh.vertices, inner.vertices]),
        np.vstack([mesh.faces, inner.faces + mesh.n_vertices, walls]),
    )
    assert not len(boundary_loops(closed.faces))
    assert not frame.faces_inside_out(closed, landmarks)
    assert frame.faces_inside_out(closed.flipped(), landmarks)
