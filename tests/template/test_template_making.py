"""The template: symmetric by construction, evenly meshed, landmarks on vertices, true to the scan's half."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from breastmorph.cli.template import command
from breastmorph.foundation.errors import LandmarkProblem, MeshProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.mesh.topology import boundary_loops, is_manifold
from breastmorph.phantom import draw_cohort, scan_subject
from breastmorph.phantom import torso as phantom_torso
from breastmorph.scan.landmark_files import load_landmarks, save_landmarks
from breastmorph.scan.scan import OF_A_BREAST, REQUIRED, Landmarks, Scan
from breastmorph.template import Template, default_template, from_npz, load_template, to_npz
from breastmorph.template.making import MadeTemplate, TemplateParameters, make_template, quality
from refusals import refused
from torso import torso

pytestmark = pytest.mark.slow

COARSER = TemplateParameters(edge=10.0, coarse_vertices=151)


def asymmetric_scan(*, pose: bool = True) -> Scan:
    """The left breast is larger; a hole under it; turned and shifted off the plane of symmetry."""
    mesh, landmarks = torso(edge=7.0)
    large, large_landmarks = torso(edge=7.0, size=1.3)
    mesh = mesh.with_vertices(np.where(mesh.vertices[:, :1] > 0, large.vertices, mesh.vertices))
    points = {name: (large_landmarks if name.endswith("left") else landmarks)[name] for name in landmarks}
    centre = mesh.vertices[mesh.faces].mean(axis=1)
    under = points["lower_pole_left"] + [12.0, 0.0, 0.0]
    mesh = mesh.kept(np.linalg.norm(centre - under, axis=1) > 14.0)
    motion = Similarity(rotation_about(np.array([0.1, 1.0, 0.3]), 4.0), np.array([9.0, 20.0, -5.0]))
    motion = motion if pose else Similarity()
    placed = mesh.with_vertices(motion.apply(mesh.vertices))
    return Scan("torso", placed, Landmarks.of(points).transformed(motion))


@pytest.fixture(scope="module")
def made() -> MadeTemplate:
    return make_template(asymmetric_scan(), COARSER)


@pytest.fixture(scope="module")
def template(made) -> Template:
    return made.template


def test_template_meets_its_figures(made):
    figures = quality(made)
    assert figures["symmetry_error_mm"] == 0.0
    assert figures["components"] == 1
    assert figures["flipped_triangles"] == 0
    assert figures["angles_above_20_deg_percent"] > 99
    assert figures["mean_edge_mm"] == pytest.approx(10.0, rel=0.02)
    assert figures["coarse_vertices"] == 151
    assert figures["coarse_border_distance_mm"] < 5.0  # edges of 25 mm here
    assert 0 < figures["filled_percent"] < 5


def test_both_meshes_are_whole_surfaces_and_their_permutations_are_involutions(template):
    for mesh, mirror in ((template.mesh, template.mirror), (template.coarse, template.coarse_mirror)):
        assert is_manifold(mesh.faces)
        assert len(boundary_loops(mesh.faces)) == 1  # the hole is closed
        np.testing.assert_array_equal(mirror[mirror], np.arange(mesh.n_vertices))
        faces = {tuple(sorted(face)) for face in mesh.faces.tolist()}
        assert {tuple(sorted(face)) for face in mirror[mesh.faces].tolist()} == faces


def test_landmarks_are_paired_vertices(template):
    for ids, mirror, mesh in (
        (template.landmark_ids, template.mirror, template.mesh),
        (template.coarse_landmark_ids, template.coarse_mirror, template.coarse),
    ):
        assert set(ids) == set(REQUIRED)
        for part in OF_A_BREAST:
            assert mirror[ids[f"{part}_left"]] == ids[f"{part}_right"]
            assert mesh.vertices[ids[f"{part}_left"], 0] > 0
        for name in ("sternal_notch", "xiphoid"):
            assert mirror[ids[name]] == ids[name]
            assert mesh.vertices[ids[name], 0] == 0.0
    np.testing.assert_array_equal(template.landmarks.points, template.coarse_landmarks.points)


def test_template_is_the_chosen_half_of_the_scan(made, template):
    scan = asymmetric_scan()
    back = made.to_scan.apply(template.mesh.vertices)
    left = template.mesh.vertices[:, 0] > 15.0
    distance = Surface(scan.mesh).closest(back[left]).distances
    assert np.quantile(distance, 0.9) < 1.0
    for part in ("nipple_left", "lateral_pole_left", "sternal_notch", "xiphoid"):
        found = made.to_scan.apply(template.landmarks[part][None])[0]
        assert np.linalg.norm(found - scan.landmarks[part]) < 2.5
    other = make_template(scan, replace(COARSER, side="right")).template
    projection = [t.landmarks["nipple_left"][2] for t in (template, other)]
    assert projection[0] > projection[1] + 8.0  # the right breast is smaller


def test_template_ends_smoothly_where_the_scan_is_too_short():
    scan = asymmetric_scan(pose=False)
    lowest = scan.landmarks["lower_pole_left"][1] - 36.0
    height = scan.mesh.vertices[scan.mesh.faces, 1]
    ragged = height.min(axis=1) > lowest + np.random.default_rng(2).uniform(0, 6, scan.mesh.n_faces)
    cut = Scan("short", scan.mesh.kept(ragged), scan.landmarks)
    made = make_template(cut, COARSER)
    mesh = made.template.mesh
    border = mesh.vertices[boundary_loops(mesh.faces)[0]]
    ahead, behind = np.roll(border, -1, axis=0) - border, border - np.roll(border, 1, axis=0)
    turn = np.degrees(
        np.arctan2(np.linalg.norm(np.cross(behind, ahead), axis=1), (behind * ahead).sum(axis=1))
    )
    assert turn.max() < 60
    assert quality(made)["angles_above_20_deg_percent"] > 99


def test_template_is_refused_without_the_side_or_the_surface():
    scan = asymmetric_scan(pose=False)
    one_sided = Landmarks.of({n: scan.landmarks[n] for n in scan.landmarks if not n.endswith("left")})
    with refused(kind=LandmarkProblem, missing="nipple_left"):
        make_template(replace(scan, landmarks=one_sided), COARSER)
    with refused(kind=LandmarkProblem, side="middle"):
        make_template(scan, replace(COARSER, side="middle"))
    low = scan.mesh.vertices[scan.mesh.faces, 1].max(axis=1) < -50
    with refused(kind=MeshProblem, name="sternal_notch"):
        make_template(replace(scan, mesh=scan.mesh.kept(low)), COARSER)


def test_command_finds_the_landmarks_that_are_not_given_and_says_so(tmp_path):
    scan = scan_subject(phantom_torso(draw_cohort(1, 5)[0]), np.random.default_rng(5))
    save_mesh(scan.mesh, tmp_path / "scan.ply")
    arguments = [
        str(tmp_path / "scan.ply"),
        "--out",
        str(tmp_path / "made"),
        "--edge",
        "12",
        "--coarse",
        "150",
    ]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "found by the program: sternal_notch" in result.stdout
    made = load_landmarks(tmp_path / "made" / "template_landmarks.json")
    apart = np.linalg.norm(made["nipple_left"] - made["sternal_notch"])
    true = np.linalg.norm(scan.landmarks["nipple_left"] - scan.landmarks["sternal_notch"])
    assert apart == pytest.approx(true, abs=20.0)


def test_command_writes_what_can_be_read_again(tmp_path):
    scan = asymmetric_scan()
    save_mesh(scan.mesh, tmp_path / "scan.ply")
    save_landmarks(scan.landmarks, tmp_path / "scan.json")
    arguments = [str(tmp_path / "scan.ply"), "--landmarks", str(tmp_path / "scan.json")]
    arguments += ["--out", str(tmp_path / "made"), "--edge", "12", "--coarse", "150", "--json"]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    for name in ("template", "template_coarse"):
        mesh = load_mesh(tmp_path / "made" / f"{name}.ply")
        mirror = np.load(tmp_path / "made" / f"{name}_mirror.npy", allow_pickle=False)
        points = load_landmarks(tmp_path / "made" / f"{name}_landmarks.json")
        assert np.abs(mesh.vertices[mirror] * [-1, 1, 1] - mesh.vertices).max() < 1e-6
        nearest = np.linalg.norm(mesh.vertices[:, None] - points.points, axis=2).min(axis=0)
        assert nearest.max() < 1e-4  # files round to 32 bits
    assert printed["coarse_vertices"] == mesh.n_vertices == 150
    assert len(printed["files"]) == 6


def test_a_template_survives_its_npz_file_and_stays_symmetric(template):
    again = from_npz(to_npz(template))
    assert np.abs(again.mesh.vertices - template.mesh.vertices).max() < 1e-4
    assert np.array_equal(again.mesh.faces, template.mesh.faces)
    assert dict(again.landmark_ids) == dict(template.landmark_ids)
    assert np.array_equal(again.mesh.vertices[again.mirror] * [-1, 1, 1], again.mesh.vertices)


def test_a_users_template_needs_its_own_landmarks(tmp_path, template):
    save_mesh(template.mesh, tmp_path / "t.ply")
    save_landmarks(template.landmarks, tmp_path / "t.json")
    loaded = load_template(tmp_path / "t.ply", tmp_path / "t.json")
    assert dict(loaded.landmark_ids) == dict(template.landmark_ids)
    far = template.landmarks.transformed(Similarity(translation=np.array([0.0, 300.0, 0.0])))
    save_landmarks(far, tmp_path / "far.json")
    with pytest.raises(LandmarkProblem, match=r"far\.json"):
        load_template(tmp_path / "t.ply", tmp_path / "far.json")


def test_the_default_template_is_what_it_says():
    template = default_template()
    figures = quality(MadeTemplate(template, Similarity(), 0.0, 0.0))
    assert 29_000 < figures["vertices"] < 32_000
    assert figures["mean_edge_mm"] == pytest.approx(2.05, abs=0.05)
    assert figures["angles_above_20_deg_percent"] > 99
    assert figures["flipped_triangles"] == 0
    assert figures["components"] == 1
    assert figures["symmetry_error_mm"] <= 1e-6
    assert figures["coarse_vertices"] == 646
    assert figures["coarse_border_distance_mm"] < 4.0
    assert set(template.landmark_ids) == set(template.coarse_landmark_ids) == set(REQUIRED)
    for name in REQUIRED:
        assert np.allclose(template.landmarks[name], template.coarse_landmarks[name], atol=1e-4)
