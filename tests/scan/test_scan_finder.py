"""Landmarks found by the program: in any pose, with how sure they are, and never on what is no torso."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial.transform import Rotation

from breastmorph.cli.landmarks import command
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.remeshing import thinned
from breastmorph.mesh.skin import to_lab
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.phantom.cohort import draw_cohort
from breastmorph.phantom.cohort import torso as phantom
from breastmorph.phantom.scanner import ScannedTorso, scan_subject
from breastmorph.registration.parameters import RigidParameters, WarpParameters
from breastmorph.registration.pipeline import _share_of_a_set_one
from breastmorph.registration.rigid import landmark_alignment
from breastmorph.registration.warp import _landmark_precision
from breastmorph.scan.check import CheckParameters, ScanFiles, check_scan
from breastmorph.scan.finder import (
    _STRANGE,
    _USUAL,
    FOUND_NAMES,
    Estimate,
    _at_home,
    _sighted,
    find_landmarks,
    improbable,
    recheck_landmarks,
)
from breastmorph.scan.landmark_files import load_landmarks, save_landmarks
from breastmorph.scan.scan import REQUIRED, Found, Landmarks, Scan
from breastmorph.scan.views import lightened

NEAR = {"nipple": 8.0, "sternal_notch": 15.0, "xiphoid": 25.0, "lower_pole": 30.0, "lateral_pole": 40.0}


@cache
def scanned(one_sided: bool = False) -> ScannedTorso:
    """A scan with a vertex every 5 mm: the nets' coarsest view has a pixel every 10."""
    subject = draw_cohort(2, 31, one_sided=1)[-1 if one_sided else 0]
    scan = scan_subject(phantom(subject), np.random.default_rng(4))
    return replace(scan, mesh=thinned(scan.mesh, 5.0))


@cache
def found():
    return find_landmarks(scanned().mesh)


def part(name: str) -> str:
    return name if name in NEAR else name.rsplit("_", 1)[0]


@pytest.mark.parametrize(("seed", "scale"), [(1, 0.001), pytest.param(2, 0.1, marks=pytest.mark.slow)])
def test_all_landmarks_are_found_in_any_pose_and_unit(seed, scale):
    scan = scanned()
    pose = Similarity(
        Rotation.random(None, np.random.default_rng(seed)).as_matrix(), np.array([3.0, -1.0, 9.0]), scale
    )
    seen = find_landmarks(scan.mesh.with_vertices(pose.apply(scan.mesh.vertices)))
    assert set(REQUIRED) <= set(seen.landmarks) <= set(FOUND_NAMES)
    assert seen.unit == {0.001: "m", 0.1: "cm"}[scale]
    assert not seen.absent
    here = seen.landmarks.transformed(pose.inverse())
    for name in REQUIRED:
        assert np.linalg.norm(here[name] - scan.landmark_true[name]) < NEAR[part(name)]
        assert 0.5 < seen.uncertainty[name] < 25.0
        assert np.linalg.eigvalsh(seen.landmarks.found[name].covariance).min() > 0.0
    up = pose.rotation @ scan.pose.rotation @ np.array([0.0, 1.0, 0.0])
    assert np.degrees(np.arccos(seen.axes[1] @ up)) < 20.0


@pytest.mark.slow
def test_a_side_without_a_breast_is_recognised_and_nothing_is_invented_there():
    scan = scanned(one_sided=True)
    seen = find_landmarks(scan.mesh)
    (absent,) = scan.landmark_true.absent_sides
    assert seen.absent == absent
    assert not [name for name in seen.landmarks if name.endswith(absent)]
    assert len(seen.landmarks.only(REQUIRED)) == 5


@pytest.mark.slow
def test_inside_out_and_dense_surfaces_give_the_same():
    marks, mesh = found().landmarks, scanned().mesh
    inside_out = find_landmarks(mesh.flipped())
    assert [one.code for one in inside_out.warnings] == ["inverted-orientation"]
    assert not found().warnings
    turned = inside_out.landmarks
    assert np.linalg.norm(turned.array(REQUIRED) - marks.array(REQUIRED), axis=1).max() < 10.0
    assert lightened(mesh) is mesh
    many = np.tile(mesh.faces, (12, 1))
    light = lightened(TriangleMesh(mesh.vertices, many))
    assert light.n_vertices <= mesh.n_vertices


def test_areolas_are_seen_where_there_is_colour():
    levels = np.array([[255, 255, 255], [0, 0, 0], [255, 0, 0]], np.uint8)
    assert np.allclose(to_lab(levels), [[100, 0, 0], [0, 0, 0], [53.2, 80.1, 67.2]], atol=0.5)
    mesh, true = scanned().mesh, scanned().landmark_true
    away = np.min(
        [np.linalg.norm(mesh.vertices - true[f"nipple_{s}"], axis=1) for s in ("left", "right")], axis=0
    )
    skin = np.where(away[:, None] < 18.0, [150, 100, 90, 255], [215, 180, 160, 255]).astype(np.uint8)
    seen = find_landmarks(TriangleMesh(mesh.vertices, mesh.faces, skin)).landmarks
    for side in ("left", "right"):
        assert seen.found[f"nipple_{side}"].how == "shape and colour"
        assert np.linalg.norm(seen[f"nipple_{side}"] - true[f"nipple_{side}"]) < 6.0


def ball(radius: float) -> TriangleMesh:
    angle, height = np.meshgrid(np.linspace(0, 2 * np.pi, 60), np.linspace(-1, 1, 40))
    ring = np.sqrt(1 - height**2)
    points = radius * np.stack([ring * np.cos(angle), height, ring * np.sin(angle)], axis=-1).reshape(-1, 3)
    a = (np.arange(39)[:, None] * 60 + np.arange(59)).ravel()
    return TriangleMesh(points, np.concatenate([np.c_[a, a + 60, a + 1], np.c_[a + 1, a + 60, a + 61]]))


def plate() -> TriangleMesh:
    flat = ball(250.0)
    return flat.with_vertices(flat.vertices * [1.0, 1.0, 0.004])


def kept(share) -> TriangleMesh:
    mesh = scanned().mesh
    upright = scanned().pose.inverse().apply(mesh.vertices)
    return mesh.kept(share(upright)[mesh.faces].all(axis=1))


def nipple_height() -> float:
    true = scanned().landmark_true.transformed(scanned().pose.inverse())
    return float(min(true["nipple_left"][1], true["nipple_right"][1]))


def two_people() -> TriangleMesh:
    mesh = scanned().mesh
    return TriangleMesh(
        np.vstack([mesh.vertices, mesh.vertices + [700, 0, 0]]),
        np.vstack([mesh.faces, mesh.faces + mesh.n_vertices]),
    )


@pytest.mark.parametrize(
    ("thing", "code"),
    [
        pytest.param(lambda: ball(200.0), ("not-a-torso", "no-breast"), marks=pytest.mark.slow),
        pytest.param(plate, ("not-a-torso", "no-breast"), marks=pytest.mark.slow),
        (two_people, ("several-bodies", "not-a-torso")),
        pytest.param(
            lambda: kept(lambda p: p[:, 0] > 0),
            ("torso-cut-off",),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda: kept(lambda p: p[:, 1] < -130),
            ("torso-cut-off", "not-a-torso", "implausible-anatomy"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda: kept(lambda p: p[:, 1] > nipple_height() + 10.0),
            ("torso-cut-off",),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            lambda: scanned().mesh.with_vertices(scanned().mesh.vertices * 0.5),
            ("not-a-torso", "implausible-anatomy"),
            marks=pytest.mark.slow,
        ),
        (lambda: ball(5.0).with_vertices(ball(5.0).vertices * 1.1), ("landmarks-unknown-unit",)),
        (lambda: TriangleMesh(np.eye(3), np.zeros((0, 3), int)), ("landmarks-no-surface",)),
    ],
    ids=[
        "ball",
        "plate",
        "two people",
        "half a torso",
        "lower half",
        "upper half",
        "a child's size",
        "no unit",
        "three points",
    ],
)
def test_what_is_no_adult_torso_is_refused_by_name(thing, code):
    with pytest.raises(BreastMorphError) as caught:
        find_landmarks(thing())
    assert caught.value.code in code
    assert caught.value.remedy


@pytest.mark.slow
def test_a_breast_that_the_scan_ends_in_is_left_out_whole_and_by_name():
    seen = find_landmarks(kept(lambda p: p[:, 0] > -60.0))
    gone = {f"{part}_right" for part in ("nipple", "lower_pole", "lateral_pole")}
    assert gone <= set(seen.left_out)
    assert gone.isdisjoint(seen.landmarks)
    assert {reason.code for reason in seen.left_out.values()} == {"landmark-cut-off"}
    assert set(REQUIRED) - gone <= set(seen.landmarks)


@pytest.mark.slow
def test_half_a_cloud_shows_the_breast_that_it_holds():
    half = kept(lambda p: p[:, 0] > 0.0)
    some = half.vertices[np.unique(half.faces)][::2]
    seen = find_landmarks(TriangleMesh(some, np.zeros((0, 3), int)), "mm")
    assert not [name for name in seen.landmarks if name.endswith("right")]
    assert "nipple_left" in seen.landmarks


def test_something_else_on_the_skin_makes_a_nipple_doubtful():
    expected = Estimate(np.zeros(3), 6.0 * np.eye(3))
    near = _sighted(expected, Estimate(np.array([4.0, 0.0, 0.0]), np.eye(3)))
    assert near.point == pytest.approx([3.4, 0.0, 0.0], abs=0.3)
    assert np.sqrt(np.trace(near.covariance) / 3.0) < 1.5
    away = _sighted(expected, Estimate(np.array([0.0, 30.0, 0.0]), np.eye(3)))
    assert away.point[1] < 3.0
    between = _sighted(expected, Estimate(np.array([0.0, 9.0, 0.0]), np.eye(3)))
    assert 1.0 < between.point[1] < 8.0
    assert np.sqrt(between.covariance[1, 1]) > 2.5
    flat = _sighted(Estimate(np.zeros(3), 25.0 * np.eye(3)), Estimate(np.zeros(3), np.eye(3)))
    assert np.sqrt(flat.covariance[1, 1]) > 4.0


def test_deviations_are_smaller_on_what_the_nets_know_and_whole_on_a_stranger():
    def said(times):
        def answer(net, name):
            own = (times * _USUAL[net][part_of(name)]) ** 2 + _STRANGE[net][part_of(name)] ** 2
            return Estimate(np.zeros(3), own * np.eye(3))

        def part_of(name):
            return name if name in _USUAL["coarse"] else name.rsplit("_", 1)[0]

        close = {name: [answer("close", name)] for name in FOUND_NAMES}
        for side in ("left", "right"):
            close[f"nipple_{side}"].append(answer("skin", f"nipple_{side}"))
        return {name: answer("coarse", name) for name in FOUND_NAMES}, close

    shares = [_at_home(FOUND_NAMES, *said(times)) for times in (0.5, 1.0, 1.35, 1.6, 5.0)]
    assert shares[0] == shares[1] < shares[2] < shares[3] == shares[4] == 1.0


def test_files_carry_how_sure_they_are(tmp_path):
    marks = found().landmarks
    save_landmarks(marks, tmp_path / "a.json")
    content = json.loads((tmp_path / "a.json").read_text())
    assert (
        content["uncertainty"].keys() == content["covariance"].keys() == content["found"].keys() == set(marks)
    )
    again = load_landmarks(tmp_path / "a.json")
    assert np.allclose(again.points, marks.points)
    assert again.doubtful == marks.doubtful
    assert again.found["xiphoid"].sd == pytest.approx(marks.found["xiphoid"].sd, abs=0.01)
    content["found"]["xiphoid"] = "set"
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert "xiphoid" not in load_landmarks(tmp_path / "a.json").found
    for key, value in (("uncertainty", {"nipple_left": "far"}), ("found", [1]), ("doubtful", 3)):
        (tmp_path / "b.json").write_text(json.dumps({**content, key: value}))
        with pytest.raises(LandmarkProblem):
            load_landmarks(tmp_path / "b.json")


@pytest.mark.slow
def test_a_check_without_landmarks_finds_them_and_with_a_few_keeps_those(tmp_path):
    scan = scanned()
    save_mesh(scan.mesh, tmp_path / "a.ply")
    alone = check_scan(ScanFiles("a", tmp_path / "a.ply"))
    assert alone.verdict in ("usable", "repaired")  # older libraries leave slivers when they thin the phantom
    assert set(alone.scan.landmarks.found) == set(alone.scan.landmarks)
    save_landmarks(scan.landmarks.only(["sternal_notch", "nipple_left"]), tmp_path / "a.json")
    few = check_scan(ScanFiles("a", tmp_path / "a.ply", (tmp_path / "a.json",)), CheckParameters()).scan
    here = few.landmarks.transformed(few.to_file)
    assert np.allclose(here["nipple_left"], scan.landmarks["nipple_left"])
    assert {"sternal_notch", "nipple_left"}.isdisjoint(few.landmarks.found)
    assert np.linalg.norm(here["nipple_right"] - scan.landmarks["nipple_right"]) < NEAR["nipple"]


def test_a_second_pair_of_eyes_names_what_is_wrong_and_nothing_else():
    upright = scanned().pose.inverse()
    mesh = scanned().mesh.with_vertices(upright.apply(scanned().mesh.vertices))
    marks = scanned().landmarks.transformed(upright)
    assert recheck_landmarks(mesh, marks, Similarity())[0] == []
    seen = found().landmarks.transformed(upright)
    for off in ([0, 30, 0], [-21, -21, 0]):
        wrong = Landmarks(marks.names, marks.points + (np.array(marks.names) == "nipple_left")[:, None] * off)
        (told,) = improbable(wrong, seen, Similarity())
        assert (told.code, told.values["name"], told.level) == (
            "landmark-improbable",
            "nipple_left",
            "warning",
        )
    told, rather = recheck_landmarks(mesh, wrong, Similarity())
    assert [one.values["name"] for one in told] == list(rather) == ["nipple_left"]
    trusted = Scan("s", mesh, wrong, rather=rather).trusted
    assert np.linalg.norm(trusted["nipple_left"] - marks["nipple_left"]) < NEAR["nipple"]
    assert np.array_equal(trusted["nipple_right"], marks["nipple_right"])
    assert set(trusted.found) == {"nipple_left"}
    names = list(marks.names)
    i, j = names.index("nipple_left"), names.index("nipple_right")
    names[i], names[j] = names[j], names[i]
    (told,) = improbable(Landmarks(tuple(names), marks.points), seen, Similarity())
    assert told.code == "landmarks-exchanged"
    assert {told.values["first"], told.values["second"]} == {"nipple_left", "nipple_right"}
    assert improbable(marks.only(["nipple_right"]), seen, Similarity()) == []


def test_a_vague_landmark_pulls_less():
    points = {"nipple_left": np.zeros(3), "xiphoid": np.ones(3)}
    vague = Landmarks(
        tuple(points), np.array(list(points.values())), found={"xiphoid": Found("shape", 8.0, 64 * np.eye(3))}
    )
    assert _share_of_a_set_one(vague, "nipple_left", 2.0) == 1.0
    assert _share_of_a_set_one(vague, "xiphoid", 2.0) < 0.1
    assert _landmark_precision("xiphoid", WarpParameters()).min() > 0.9  # set by a person


def test_a_vague_landmark_leads_the_rigid_start_less():
    template = scanned().landmark_true.only(REQUIRED)
    off = (np.array(template.names) == "xiphoid")[:, None] * np.array([0.0, -40.0, 0.0])
    wrong = Landmarks(template.names, template.points + off)
    vague = replace(wrong, found={"xiphoid": Found("shape", 20.0, 400 * np.eye(3))})
    by_set, by_found = (landmark_alignment(template, one, RigidParameters()).scale for one in (wrong, vague))
    assert by_set > 1.1
    assert abs(by_found - 1.0) < 0.5 * abs(by_set - 1.0)


def test_the_command_writes_files_and_pictures_and_goes_on_after_a_refusal(tmp_path):
    (tmp_path / "scans").mkdir()
    save_mesh(scanned().mesh, tmp_path / "scans" / "torso.ply")
    save_mesh(ball(5.5), tmp_path / "scans" / "ball.ply")  # of no unit that a torso has
    arguments = [str(tmp_path / "scans"), "--out", str(tmp_path / "out"), "--jobs", "1", "--json"]
    result = CliRunner().invoke(command, arguments, catch_exceptions=False)
    assert result.exit_code == 1
    said = {scan["id"]: scan for scan in json.loads(result.stdout)["scans"]}
    assert said["ball"]["verdict"] == "refused"
    assert "ball.ply" in said["ball"]["reason"]
    assert set(REQUIRED) <= set(said["torso"]["landmarks"])
    assert (tmp_path / "out" / "sheets" / "torso.png").stat().st_size > 20_000
    assert set(load_landmarks(tmp_path / "out" / "torso.json").found) == set(said["torso"]["landmarks"])
    assert not (tmp_path / "out" / "ball.json").exists()
