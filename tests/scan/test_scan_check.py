from __future__ import annotations

import os
import re
import sys
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breastmorph.batch.product import input_hashes
from breastmorph.foundation.errors import BreastMorphError, FileProblem, LandmarkProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.scan.anatomy import KnownDistance, unit_of
from breastmorph.scan.check import (
    CheckParameters,
    ScanFiles,
    check_scan,
    find_scans,
    landmark_stem,
    load_scan,
    passed_over,
)
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import RBSM_ORDER
from torso import torso


def write(folder, move=None, landmark_suffix=".json", turn_landmarks=False):
    mesh, landmarks = torso()
    move = move or Similarity()
    scan, points = folder / "a.ply", folder / f"a{landmark_suffix}"
    save_mesh(mesh.with_vertices(move.apply(mesh.vertices)), scan)
    landmarks = landmarks.transformed(move)
    if turn_landmarks:  # from LPS to RAS or back
        landmarks = landmarks.transformed(Similarity(np.diag([-1.0, -1.0, 1.0])))
    save_landmarks(landmarks, points)
    return scan, points


@pytest.mark.parametrize(
    ("seed", "factor"),
    [pytest.param(0, 1.0, marks=pytest.mark.slow), pytest.param(1, 0.1, marks=pytest.mark.slow), (2, 0.001)],
)
def test_any_pose_and_unit_gives_the_same_scan(tmp_path, seed, factor):
    rotation = Rotation.random(None, np.random.default_rng(seed)).as_matrix()
    upright = load_scan(*write(tmp_path))
    move = Similarity(rotation, np.array([0.3, -2.0, 7.0]) * 100 * factor, factor)
    scan = load_scan(*write(tmp_path, move))
    assert np.abs(scan.mesh.vertices - upright.mesh.vertices).max() < 5.0  # a degree of up, over 300 mm
    original = move.apply(torso()[0].vertices)
    assert np.abs(scan.to_file.apply(scan.mesh.vertices) - original).max() < 1e-6 * factor * 1000


def test_the_canonical_frame_is_left_up_forward_in_mm(tmp_path):
    scan = load_scan(*write(tmp_path))
    k = scan.landmarks
    assert k["nipple_left"][0] > 50 > -50 > k["nipple_right"][0]
    assert k["sternal_notch"][1] > k["xiphoid"][1] + 120
    assert k["nipple_left"][2] > k["lateral_pole_left"][2]


def test_slicer_axes_are_settled_by_the_surface(tmp_path):
    upright = load_scan(*write(tmp_path))
    turned = load_scan(*write(tmp_path, landmark_suffix=".mrk.json", turn_landmarks=True))
    assert np.abs(turned.landmarks.points - upright.landmarks.points).max() < 1e-6


def test_a_half_turn_is_not_guessed_for_files_without_axes(tmp_path):
    scan, points = write(tmp_path, turn_landmarks=True)
    with pytest.raises(LandmarkProblem, match="off the surface"):
        load_scan(scan, points)


def test_a_wrong_explicit_unit_is_named(tmp_path):
    scan, points = write(tmp_path)
    with pytest.raises(LandmarkProblem) as caught:
        load_scan(scan, points, parameters=CheckParameters(unit="cm"))
    assert (caught.value.code, caught.value.values["unit"]) == ("wrong-unit", "cm")


def test_errors_name_the_file_and_a_remedy(tmp_path):
    scan, points = write(tmp_path)
    points.write_text('{"sternal_notch": [0, 0, 0]}')
    with pytest.raises(BreastMorphError) as caught:
        load_scan(scan, points)
    assert caught.value.where == points
    assert caught.value.remedy
    assert "xiphoid" in str(caught.value)


def test_too_large_is_refused_before_any_work(tmp_path):
    scan, points = write(tmp_path)
    with pytest.raises(BreastMorphError, match="too large"):
        load_scan(scan, points, parameters=CheckParameters(max_faces=1000))


def test_files_are_never_changed(tmp_path):
    scan, points = write(tmp_path)
    before = scan.read_bytes(), points.read_bytes()
    load_scan(scan, points)
    assert (scan.read_bytes(), points.read_bytes()) == before


def test_unit_needs_an_adults_sternum():
    _, landmarks = torso()
    assert unit_of(landmarks) == "mm"
    too_long = landmarks.transformed(Similarity(scale=2.0))
    for unit in ("auto", "mm", "cm", "m"):  # no --unit helps, so none may be advised
        with pytest.raises(LandmarkProblem) as caught:
            unit_of(too_long, unit)
        assert "give the unit" not in caught.value.remedy
        assert "these two landmarks" in caught.value.remedy


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("p7.json", "p7"),
        ("p7.mrk.json", "p7"),
        ("p7_picked_points.pp", "p7"),
        ("p7_landmarks.CSV", "p7"),
        ("visit.2.fcsv", "visit.2"),
    ],
)
def test_landmark_files_are_matched_by_stem(tmp_path, name, stem):
    assert landmark_stem(tmp_path / name) == stem


def test_find_scans_pairs_a_folder(tmp_path):
    for name in ("b.ply", "a.stl", "a.json", "b_picked_points.pp", "notes.md", ".hidden.ply"):
        (tmp_path / name).write_bytes(b"x")
    found = find_scans(tmp_path)
    assert [files.id for files in found] == ["a", "b"]
    assert [files.landmarks[0].name for files in found] == ["a.json", "b_picked_points.pp"]


def test_points_in_a_ply_are_landmarks_in_a_folder_of_their_own(tmp_path):
    (tmp_path / "points").mkdir()
    for name in ("a.ply", "points/a.ply"):
        (tmp_path / name).write_bytes(b"x")
    assert find_scans(tmp_path)[0].landmarks == ()  # not its own landmarks
    assert find_scans(tmp_path, tmp_path / "points")[0].landmarks == (tmp_path / "points" / "a.ply",)


def rbsm(folder, order=range(4), move=None):
    """A scan, and its notch, navel and nipples as bare rows in some order."""
    scan, points = write(folder, move)
    mesh, k = torso()
    navel = mesh.vertices[np.linalg.norm(mesh.vertices - [0, -200, 100], axis=1).argmin()]
    rows = np.array([k["sternal_notch"], navel, k["nipple_left"], k["nipple_right"]])[list(order)]
    rows = (move or Similarity()).apply(rows)
    points = points.with_suffix(".csv")
    points.write_text("".join(f"{x!r},{y!r},{z!r}\n" for x, y, z in rows.tolist()))
    return scan, points


def checked(scan, points, **parameters):
    return check_scan(ScanFiles("a", scan, (points,)), CheckParameters(**parameters))


def test_notch_navel_and_nipples_are_enough(tmp_path):
    whole = load_scan(*write(tmp_path))
    one = checked(*rbsm(tmp_path))
    assert one.verdict == "usable"
    said = {finding.code: finding.message for finding in one.findings}
    assert "sternal_notch, navel, nipple_left, nipple_right" in said["landmark-order"]
    assert "xiphoid, lower_pole_left, lower_pole_right, lateral_pole_left" in said["landmarks-found"]
    assert one.facts["frame"] == "file axes"
    shift = one.scan.landmarks["nipple_left"] - whole.landmarks["nipple_left"]
    assert np.allclose(one.scan.mesh.vertices, whole.mesh.vertices + shift)
    assert set(one.scan.landmarks.found) == set(one.scan.landmarks) - set(RBSM_ORDER)
    for name in whole.landmarks:  # those that were set are where they were, the others near
        off = np.linalg.norm(one.scan.landmarks[name] - whole.landmarks[name] - shift)
        assert off < (1e-6 if name in RBSM_ORDER else 40.0)


@pytest.mark.parametrize(
    "order", [o for o in permutations(range(4)) if o not in {(0, 1, 2, 3), (1, 0, 3, 2)}]
)
def test_another_order_than_the_one_assumed_is_refused(tmp_path, order):
    assert checked(*rbsm(tmp_path, order)).verdict == "refused"


@pytest.mark.slow
def test_a_file_in_no_unit_needs_one_measured_distance(tmp_path):
    scan, points = write(tmp_path)
    upright, apart = (
        load_scan(scan, points),
        np.linalg.norm(np.subtract(*torso()[1].array(["nipple_left", "nipple_right"]))),
    )
    move = Similarity(rotation_about(np.array([0.0, 1.0, 0.0]), 90.0), np.array([1.0, 2.0, 3.0]), 1 / 371.3)
    for files in (write(tmp_path, move), rbsm(tmp_path, move=move)):
        with pytest.raises(LandmarkProblem, match=r"scale_by=\"NL-NR=21cm\"") as caught:
            load_scan(*files)
        assert caught.value.code == "unknown-unit"
        one = checked(*files, scale_by=f"NL-NR={apart / 10} cm")
        assert "one unit of the file is 371.3 mm" in {f.code: f.message for f in one.findings}["scaled"]
        assert one.facts["unit"] == "371.3 mm"
        shift = one.scan.landmarks["nipple_left"] - upright.landmarks["nipple_left"]
        assert np.allclose(one.scan.mesh.vertices, upright.mesh.vertices + shift, atol=1e-3)
        assert np.allclose(one.scan.to_file.apply(one.scan.mesh.vertices), move.apply(torso()[0].vertices))


def test_a_measured_distance_that_contradicts_the_unit_is_taken_and_said(tmp_path):
    files = write(tmp_path)
    apart = np.linalg.norm(np.subtract(*torso()[1].array(["nipple_left", "nipple_right"])))
    one = checked(*files, scale_by=f"left nipple-right nipple={1.2 * apart}mm")
    assert "+20 % against mm" in {f.code: f.message for f in one.findings}["scaled"]
    assert np.isclose(
        one.scan.landmarks["nipple_left"][0] - one.scan.landmarks["nipple_right"][0], 1.2 * apart
    )
    with pytest.raises(LandmarkProblem, match="landmark navel is not set"):
        load_scan(*files, parameters=CheckParameters(scale_by="SN-navel=38cm"))


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("NL-NR=21cm", ("nipple_left", "nipple_right", 210.0)),
        ("N-L-N-R = 8,5 in", ("nipple_left", "nipple_right", 215.9)),
        ("sternal_notch-navel=0.38 m", ("sternal_notch", "navel", 380.0)),
        *[
            (text, None)
            for text in ("NL-NR=21", "NL-NR", "NL=21cm", "NL-elbow=2cm", "NL-NL=2cm", "NL-NR=0cm", "=", "-=")
        ],
    ],
)
def test_measured_distances_as_people_write_them(text, known):
    if known is None:
        with pytest.raises(BreastMorphError, match=r"no measured distance|no distance between"):
            KnownDistance.of(text)
    else:
        found = KnownDistance.of(text)
        assert (found.first, found.second, round(found.length, 6)) == known


def test_nothing_to_work_on_is_said(tmp_path):
    with pytest.raises(FileProblem, match="no scan in this folder"):
        find_scans(tmp_path)
    with pytest.raises(FileProblem, match="no such file"):
        find_scans(tmp_path / "missing")


def test_two_scans_of_one_name_are_refused_before_one_overwrites_the_other(tmp_path):
    for name in ("a.ply", "a.old.ply", "a.obj"):  # another stem sorts between the two
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(FileProblem, match=r"a\.obj and a\.ply"):
        find_scans(tmp_path)


def test_composed_and_decomposed_names_are_one(tmp_path):
    (tmp_path / "Zoe\u0301.ply").write_bytes(b"x")  # as a Mac writes it
    (tmp_path / "Zo\u00e9.json").write_bytes(b"x")
    (files,) = find_scans(tmp_path)
    assert files.id == "Zo\u00e9"
    assert [path.name for path in files.landmarks] == ["Zo\u00e9.json"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
def test_names_that_are_no_text_become_text(tmp_path):
    for suffix in (b".ply", b".json"):
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/M\xfcller" + suffix))).write_bytes(b"x")
    (files,) = find_scans(tmp_path)
    assert files.id == "M%FCller"
    assert len(files.landmarks) == 1
    assert files.mesh.is_file()
    assert str(FileProblem(f"see {files.mesh.name}", where=files.mesh)).count("M%FCller.ply") == 2


def test_a_scan_may_be_called_as_landmark_files_are(tmp_path):
    for name in ("p_landmarks.ply", "p_landmarks.json", "q.ply", "q_landmarks.json"):
        (tmp_path / name).write_bytes(b"x")
    assert {files.id: [path.name for path in files.landmarks] for files in find_scans(tmp_path)} == {
        "p_landmarks": ["p_landmarks.json"],
        "q": ["q_landmarks.json"],
    }


def test_scans_in_subfolders_are_spoken_of(tmp_path):
    for name in (
        "visit 1/a.ply",
        "visit 2/deep/b.obj",
        "visit 2/deep/c.obj",
        ".hidden/d.ply",
        "out/registered/a.ply",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    said = r"scans in subfolders are not read: visit 1 \(1\), visit 2/deep \(2\)"
    with pytest.raises(FileProblem, match=f"{said}. Name a subfolder, for example .*visit 1"):
        find_scans(tmp_path)
    (tmp_path / "e.ply").write_bytes(b"x")
    assert [files.id for files in find_scans(tmp_path)] == ["e"]
    assert re.fullmatch(said, passed_over(tmp_path))
    assert passed_over(tmp_path / "e.ply") == passed_over(tmp_path / "visit 1") == ""


def test_a_link_that_leads_nowhere_is_a_scan_that_is_refused(tmp_path):
    write(tmp_path)
    (tmp_path / "b.ply").symlink_to(tmp_path / "unmounted" / "b.ply")
    (tmp_path / "c.ply").symlink_to(tmp_path / "a.ply")
    found = {files.id: files for files in find_scans(tmp_path)}
    assert list(found) == ["a", "b", "c"]
    with pytest.raises(FileProblem, match="link leads to a file that is not there"):
        check_scan(found["b"]).accepted()
    with pytest.raises(FileProblem, match="link leads to a file that is not there"):
        input_hashes(found["b"])


def test_landmarks_in_utf_16_are_read(tmp_path):
    scan, points = write(tmp_path, landmark_suffix=".csv")
    before = load_scan(scan, points)
    points.write_text(points.read_text(), encoding="utf-16")
    assert np.array_equal(load_scan(scan, points).landmarks.points, before.landmarks.points)
