"""Wrong but plausible scans carry a warning; clean ones, also of another family and at other spacings, carry none."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner

from breastmorph.cli import main
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.topology import boundary_loops
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.phantom.cohort import draw_cohort
from breastmorph.phantom.cohort import torso as true_torso
from breastmorph.phantom.scanner import ScannerParameters, scan_subject
from breastmorph.scan.check import load_scan
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import Landmarks
from breastmorph.scan.suspicion import suspicions
from torso import torso


@cache
def scanned(k: int):
    subject, still = draw_cohort(3, 21)[k], ScannerParameters(turn=0.01, shift=0.0)
    return scan_subject(true_torso(subject), np.random.default_rng(k), still)


@pytest.fixture(params=[0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def person(request):
    return scanned(request.param)


@pytest.fixture
def first():
    return scanned(0)


def codes(mesh, landmarks):
    on_skin = Surface(mesh).closest(landmarks.points).points
    return [one.code for one in suspicions(mesh, Landmarks(landmarks.names, on_skin))]


def noisy(mesh, size):
    noise = np.random.default_rng(0).normal(0.0, size, mesh.vertices.shape)
    return mesh.with_vertices(mesh.vertices + noise)


def doubled(mesh, gap):
    """The surface twice, the second ``gap`` mm above the first, sewn together along the border."""
    n = mesh.n_vertices
    seam = np.asarray(boundary_loops(mesh.faces)[0])
    after = np.roll(seam, -1)
    strip = np.vstack([np.stack([after, seam, seam + n], 1), np.stack([after, seam + n, after + n], 1)])
    second = mesh.vertices + gap * vertex_normals(mesh.vertices, mesh.faces)
    return TriangleMesh(np.vstack([mesh.vertices, second]), np.vstack([mesh.faces, mesh.faces + n, strip]))


def test_clean_scans_are_not_suspected(person):
    assert codes(person.mesh, person.landmarks) == []
    assert codes(noisy(person.mesh, 0.5), person.landmarks) == []  # a poor scanner's noise


def test_breasts_without_relief_of_a_nipple_are_not_suspected():
    assert codes(*torso()) == []


def test_noise_of_3_mm_is_told(person):
    assert codes(noisy(person.mesh, 3.0), person.landmarks) == ["rough-surface"]


@pytest.mark.parametrize("gap", [-3.0, *(pytest.param(gap, marks=pytest.mark.slow) for gap in (5.0, 8.0))])
def test_a_second_layer_is_told(first, gap):
    assert codes(doubled(first.mesh, gap), first.landmarks) == ["layered-surface"]


@pytest.mark.parametrize("k", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_surface_pushed_outwards_is_told(k):
    one = scanned(k)
    nipples = one.landmarks.array(["nipple_left", "nipple_right"])
    away = np.linalg.norm(one.mesh.vertices[:, None] - nipples, axis=2).min(axis=1)
    push = 30.0 * np.exp(-((away / 90.0) ** 2) / 2.0)[:, None]
    normals = vertex_normals(one.mesh.vertices, one.mesh.faces)
    mesh = one.mesh.with_vertices(one.mesh.vertices + push * normals)
    near = Surface(one.mesh).closest(one.landmarks.points)
    corners = mesh.vertices[mesh.faces[near.faces]]
    moved = Landmarks(one.landmarks.names, np.einsum("kc,kci->ki", near.weights, corners))
    assert codes(mesh, moved) == ["covered-breasts"]


@pytest.mark.slow
@pytest.mark.parametrize("k", range(3))
def test_landmarks_of_another_person_are_told(k):
    assert codes(scanned(k).mesh, scanned((k - 1) % 3).landmarks) == ["landmarks-of-another"]


def test_a_mesh_3_per_cent_larger_than_its_landmarks_is_told(first):
    larger = first.mesh.with_vertices(1.03 * first.mesh.vertices)
    assert [found.code for found in suspicions(larger, first.landmarks)] == ["landmarks-off-skin"]


@pytest.mark.slow
def test_few_landmarks_are_enough(first):
    for names in (["sternal_notch", "nipple_right"], ["sternal_notch"]):
        assert codes(first.mesh, first.landmarks.only(names)) == []
        assert codes(noisy(first.mesh, 3.0), first.landmarks.only(names)) == ["rough-surface"]


@pytest.mark.slow
def test_the_check_says_the_warning_and_every_result_carries_it(tmp_path):
    mesh, landmarks = tmp_path / "a.ply", tmp_path / "a.json"
    skin, points = torso(edge=7.0)
    save_mesh(doubled(skin, 5.0), mesh)
    save_landmarks(points, landmarks)
    scan = load_scan(mesh, landmarks)
    assert len(scan.warnings) == 1
    assert "the same skin twice" in str(scan.warnings[0])
    shown = CliRunner().invoke(main, ["check", str(mesh)])
    assert shown.exit_code == 0
    assert "1 with warnings" in shown.output
    told = json.loads(CliRunner().invoke(main, ["check", str(mesh), "--json"]).output)
    levels = {finding["code"]: finding["level"] for finding in told["scans"][0]["findings"]}
    assert levels["layered-surface"] == "warning"
    assert told["warned"] == 1
    measured = CliRunner().invoke(main, ["measure", str(mesh), "--distances-only"])
    assert "the same skin twice" in " ".join(measured.output.split())
