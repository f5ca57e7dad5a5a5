"""``breastmorph measure`` on scans, registered folders and models, and what it says of bad input."""

import csv
import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from breastmorph.cli import main
from breastmorph.cohort import load_cohort
from breastmorph.mesh.files import save_mesh
from breastmorph.model.files import save_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.landmark_files import save_landmarks
from small_cohort import random_shapes, small_template, write_registered
from torso import torso


def measure(*arguments: object):
    return CliRunner().invoke(main, ["measure", *map(str, arguments)])


@pytest.fixture(scope="module")
def registered(tmp_path_factory):
    out = tmp_path_factory.mktemp("measure") / "out"
    write_registered(out, random_shapes(3, size=2.0), absent={"001": "right"})
    return out


@pytest.fixture
def scan(tmp_path):
    mesh, landmarks = torso(6.0, 0.8)
    save_mesh(mesh, tmp_path / "s.ply")
    save_landmarks(landmarks, tmp_path / "s.json")
    return tmp_path / "s.ply"


def save_small_model(path, names=None):
    template = small_template()
    n = template.mesh.n_vertices
    basis = np.ones((3 * n, 1)) / np.sqrt(3 * n)
    ids = {name: vertex for name, vertex in template.landmark_ids.items() if names is None or name in names}
    save_model(ShapeModel(template.mesh.vertices, basis, np.ones(1), template.mesh.faces, ids), path)


def test_a_cohort_becomes_one_row_a_subject_with_units_and_absent_sides(registered, tmp_path):
    result = measure(registered, "--csv", tmp_path / "t" / "m.csv")
    assert result.exit_code == 0, result.output
    rows = {row["id"]: row for row in csv.DictReader((tmp_path / "t" / "m.csv").read_text().splitlines())}
    assert list(rows) == ["000", "001", "002"]
    whole, one = rows["000"], rows["001"]
    assert float(whole["SN-NL tape mm"]) >= float(whole["SN-NL straight mm"]) > 150
    assert 100 < float(whole["volume-left cc"]) < 1500
    difference = float(whole["volume-left cc"]) - float(whole["volume-right cc"])
    assert float(whole["left minus right volume cc"]) == pytest.approx(difference, abs=0.02)
    assert float(whole["mirror deviation mm"]) > 0.1
    assert one["absent_side"] == "right"
    assert float(one["volume-left cc"]) > 0
    for column in ("SN-NR tape mm", "NL-NR straight mm", "volume-right cc", "mirror deviation mm"):
        assert one[column] == ""
    assert "right side absent" in result.output


def test_one_registered_mesh_is_measured_alone(registered):
    result = measure(registered / "registered" / "002.ply", "--json")
    assert result.exit_code == 0, result.output
    (subject,) = json.loads(result.output)["subjects"]
    assert subject["id"] == "002"
    assert subject["source"] == "registered"


def test_a_registered_subject_is_measured_with_its_own_poles(registered, tmp_path, small_template):
    out = tmp_path / "out"
    shutil.copytree(registered, out)
    path = out / "registered" / "002.json"
    record = json.loads(path.read_text())
    shape = load_cohort(out).shape(2)
    marks = {name: shape[vertex].tolist() for name, vertex in small_template.landmark_ids.items()}
    from_nipple = np.linalg.norm(shape - np.array(marks["nipple_left"]), axis=1)
    elsewhere = np.abs(from_nipple - 80.0).argmin()
    marks["lower_pole_left"] = shape[elsewhere].tolist()
    path.write_text(json.dumps(record | {"landmarks": marks}))

    def straight(folder):
        subject = json.loads(measure(folder / "registered" / "002.ply", "--json").output)["subjects"][0]
        found = {(m["name"], m["kind"]): m["value"] for m in subject["distances"]}
        return found["NL-LPL", "straight"], found["SN-NR", "straight"]

    nipple = np.array(marks["nipple_left"])
    assert straight(out)[0] == pytest.approx(np.linalg.norm(nipple - marks["lower_pole_left"]), abs=0.01)
    assert straight(out)[0] != pytest.approx(straight(registered)[0], abs=1.0)
    assert straight(out)[1] == pytest.approx(straight(registered)[1], abs=0.01)


def test_json_gives_null_and_a_reason_where_something_is_not_determinable(registered):
    subjects = json.loads(measure(registered, "--json").output)["subjects"]
    one = next(s for s in subjects if s["id"] == "001")
    by_name = {(m["name"], m["kind"]): m for m in one["distances"]}
    assert by_name["SN-NR", "tape"]["value"] is None
    assert by_name["SN-NR", "tape"]["reason"] == "needs nipple_right"
    assert by_name["SN-NL", "tape"]["unit"] == "mm"
    assert one["symmetry"] == {"mean_deviation_mm": None, "reason": "right side absent"}
    assert one["ptosis"][0]["regnault"] != "not determinable"
    assert one["ptosis"][1]["regnault"] == "not determinable"
    assert one["volumes"][0]["sd"] > 0.0
    assert one["volumes"][0]["sd_source"] == "wall"
    assert one["volumes"][1]["sd"] is None


@pytest.mark.slow
def test_maps_are_drawn_for_subjects_with_two_breasts(registered, tmp_path):
    result = measure(registered, "--figures", tmp_path / "maps")
    assert result.exit_code == 0
    drawn = sorted(path.name for path in (tmp_path / "maps").iterdir())
    assert [name for name in drawn if "symmetry" in name] == ["000-symmetry.png", "002-symmetry.png"]
    assert [name for name in drawn if name.endswith("measures.pdf")] == [
        f"00{k}-measures.pdf" for k in range(3)
    ]


def test_a_model_is_measured_by_its_mean_and_few_landmarks_are_said(tmp_path):
    poles = ("lower_pole_left", "lower_pole_right")
    save_small_model(tmp_path / "m.h5", ("sternal_notch", "nipple_left", "nipple_right", *poles))
    result = measure(tmp_path / "m.h5")
    assert result.exit_code == 0, result.output
    assert "mean of m" in result.output
    assert "Not determinable: SN-XI (needs xiphoid)" in result.output
    assert "NL-NR" in result.output


def test_a_scan_has_distances_without_a_registration(scan):
    result = measure(scan, "--distances-only", "--json")
    assert result.exit_code == 0, result.output
    (subject,) = json.loads(result.output)["subjects"]
    assert subject["volumes"][0]["reason"] == "needs a registration"
    tape = next(m["value"] for m in subject["distances"] if (m["name"], m["kind"]) == ("SN-XI", "tape"))
    assert tape > 180


@pytest.mark.slow
def test_a_scan_gets_volumes_and_symmetry_from_a_registration(scan):
    result = measure(scan)
    assert result.exit_code == 0, result.output
    assert " cc" in result.output
    assert "mirror deviation" in result.output


def test_scans_that_fail_do_not_stop_the_rest(scan, tmp_path):
    (tmp_path / "broken.ply").write_text("ply\nformat ascii 1.0\nend_header\n")
    result = measure(tmp_path, "--distances-only", "--json")
    assert result.exit_code == 1
    found = json.loads(result.output)
    assert [one["id"] for one in found["subjects"]] == ["s"]
    assert [one["id"] for one in found["failed"]] == ["broken"]
    assert found["failed"][0]["message"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: p / "nothing.ply", "no such file"),
        (lambda p: _written(p / "notes.txt"), "neither a scan nor a model"),
        (lambda p: _written(p / "model.h5"), "model"),
        (lambda p: _written(p / "lonely.ply"), "too coarse"),
    ],
)
def test_bad_input_is_told_in_words(tmp_path, make, words):
    result = measure(make(tmp_path), "--distances-only")
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_a_model_without_landmarks_asks_for_them(tmp_path):
    save_small_model(tmp_path / "m.h5", ())
    result = measure(tmp_path / "m.h5")
    assert result.exit_code == 2
    assert "--landmark-ids" in result.output


def test_options_for_the_wrong_kind_of_input_are_refused(registered, scan, tmp_path):
    ids = tmp_path / "ids.json"
    ids.write_text("{}")
    assert measure(scan, "--landmark-ids", ids).exit_code == 2
    assert measure(registered, "--landmarks", tmp_path).exit_code == 2


def _written(path):
    if path.suffix == ".ply":
        save_mesh(torso(12.0)[0], path)
    else:
        path.write_text("some words")
    return path


@pytest.mark.parametrize(
    ("target", "words", "said"),
    [
        ("model.h5", ["--distances-only"], "are for scans"),
        ("model.h5", ["--landmarks", "nowhere.json"], "are for scans"),
        ("out", ["--distances-only"], "is for scans"),
        ("s.ply", ["--distances-only", "--figures", "maps"], "leaves out"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(registered, scan, target, words, said):
    save_small_model(scan.parent / "model.h5")
    shutil.copytree(registered, scan.parent / "out")
    result = measure(scan.parent / target, *words)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
