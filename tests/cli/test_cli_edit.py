"""`breastmorph edit`: what it writes, says and refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from breast_cohort import breast_model, breast_shapes
from breastmorph.cli import main
from breastmorph.clinical.features import ModelFeatures
from breastmorph.mask import breast_regions
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.files import save_model
from breastmorph.scan.landmark_files import save_landmarks
from torso import torso

SHAPE = 3  # the subject whose registered mesh the tests edit


@pytest.fixture(scope="module")
def folder(tmp_path_factory, breast_template):
    """A model with scores, one without, a registered mesh in metres, a scan in cm with landmarks."""
    folder = tmp_path_factory.mktemp("edit")
    save_model(breast_model(), folder / "model.h5")
    save_model(breast_model(scores=False), folder / "plain.h5")
    to_file = Similarity(np.eye(3), np.array([0.1, 0.2, 0.3]), 0.001)
    shape, template = breast_shapes(40)[SHAPE], breast_template
    save_mesh(template.mesh.with_vertices(to_file.apply(shape)), folder / "registered.ply")
    record = {"to_file": to_file.as_dict(), "absent_side": ""}
    (folder / "registered.json").write_text(json.dumps(record))
    mesh, landmarks = torso(edge=6.0, size=1.1)
    save_mesh(mesh.with_vertices(mesh.vertices / 10.0), folder / "scan.ply")
    save_landmarks(landmarks.transformed(Similarity(scale=0.1)), folder / "marks.json")
    return folder


def run(*arguments, sheet=False):
    options = [] if sheet else ["--no-sheet"]
    result = CliRunner().invoke(main, ["edit", *(str(argument) for argument in arguments), *options])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def distance(path, name="SN-NL", mm=1.0):
    return ModelFeatures(breast_model()).find(name).value(load_mesh(path).vertices * mm)


def test_the_mean_is_edited_and_written_in_all_formats(folder, tmp_path, breast_model):
    out = tmp_path / "out"
    wishes = ("--set", "SN-NL=+1.5cm", "--hold", "NL-NR", "--hold", "thorax")
    result = run(folder / "model.h5", *wishes, "--out", out, "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    written = {path.name for path in out.iterdir()}
    assert written == {"edited.ply", "edited.stl", "edited.obj", "edit.json", "measures.csv"}
    assert {path.split("/")[-1] for path in record["files"]} == written
    before = ModelFeatures(breast_model).find("SN-NL").value(breast_model.mean)
    for name in ("edited.ply", "edited.obj"):
        assert distance(out / name) == pytest.approx(before + 15.0, abs=0.1)
    assert np.array_equal(load_mesh(out / "edited.ply").faces, breast_model.faces)
    assert load_mesh(out / "edited.stl").n_faces == len(breast_model.faces)
    kept = json.loads((out / "edit.json").read_bytes())
    changes = {change["name"]: change for change in kept["changes"]}
    assert abs(changes["SN-NL"]["error"]) < 0.1
    assert changes["NL-NR"]["held"]
    assert changes["volume-left"]["requested"] is None
    assert kept["movement_mm"]["thorax"] == 0.0
    assert kept["linear_version"]["trained_on"] == "the 40 subjects of the model"
    assert set(kept["linear_version"]["error"]) == {"SN-NL", "NL-NR"}


def test_a_sheet_is_drawn_unless_nobody_wants_it(folder, tmp_path, blank_pictures):
    result = run(folder / "model.h5", "--set", "SN-NL=+1.5cm", "--out", tmp_path, "--json", sheet=True)
    assert result.exit_code == 0, result.stderr
    assert {"sheet.png", "sheet.pdf"} <= {path.split("/")[-1] for path in json.loads(result.stdout)["files"]}
    with Image.open(tmp_path / "sheet.png") as picture:
        assert picture.height > picture.width > 1000
    assert (tmp_path / "sheet.pdf").read_bytes().startswith(b"%PDF")


def test_the_table_names_before_requested_and_after(folder, tmp_path):
    result = run(folder / "plain.h5", "--mean", "--set", "NL-NR=21cm", "--out", tmp_path)
    assert result.exit_code == 0
    for words in ("requested", "21.00 cm", "linear version's", "10,000 samples", "Moved", "volume-right"):
        assert words in result.stdout


@pytest.mark.slow
def test_a_registered_mesh_comes_back_in_its_own_unit_and_place(folder, tmp_path, breast_model):
    out = tmp_path / "same"
    result = run(
        folder / "model.h5", "--registered", folder / "registered.ply", "--set", "SN-NL=+0mm", "--out", out
    )
    assert result.exit_code == 0, result.stderr
    assert np.allclose(
        load_mesh(out / "edited.ply").vertices, load_mesh(folder / "registered.ply").vertices, atol=1e-12
    )
    out = tmp_path / "other"
    options = ("--registered", folder / "registered.ply", "--set", "SN-NL=+1cm", "--hold", "thorax")
    assert run(folder / "model.h5", *options, "--out", out).exit_code == 0
    longer = distance(out / "edited.ply", mm=1000.0) - distance(folder / "registered.ply", mm=1000.0)
    assert longer == pytest.approx(10.0, abs=0.1)
    breasts = breast_regions(breast_model.mean_mesh, breast_model.landmarks)
    thorax = ~(breasts["left"] | breasts["right"])
    moved = load_mesh(out / "edited.ply").vertices - load_mesh(folder / "registered.ply").vertices
    assert 1000.0 * np.abs(moved)[thorax].max() < 0.01
    assert 1000.0 * np.abs(moved).max() > 5.0


@pytest.mark.slow
def test_a_scan_is_registered_first(folder, tmp_path):
    options = ("--scan", folder / "scan.ply", "--landmarks", folder / "marks.json", "--set", "SN-NR=-8mm")
    result = run(folder / "model.h5", *options, "--out", tmp_path, "--json")
    assert result.exit_code == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["patient"] == "scan"
    change = record["changes"][0]
    assert distance(tmp_path / "edited.ply", "SN-NR", mm=10.0) == pytest.approx(change["after"], abs=0.01)
    assert change["after"] - change["before"] == pytest.approx(-8.0, abs=0.1)


def test_linear_and_columns_of_the_table(folder, tmp_path):
    result = run(
        folder / "model.h5",
        "--linear",
        "--set",
        "weight=+4",
        "--set",
        "SN-NL=+1cm",
        "--out",
        tmp_path,
        "--json",
    )
    record = json.loads(result.stdout)
    assert record["method"] == "linear"
    assert record["trained_on"] == "the 40 subjects of the model"
    assert [change["name"] for change in record["changes"][:2]] == ["weight", "SN-NL"]
    assert record["size_change"] > 0.0
    assert "linear_version" not in record


def test_tape_measures_are_named_so(folder, tmp_path):
    result = run(folder / "model.h5", "--kind", "tape", "--set", "SN-NL=+8mm", "--out", tmp_path, "--json")
    change = json.loads(result.stdout)["changes"][0]
    assert change["name"] == "SN-NL tape"
    assert abs(change["error"]) < 0.1


@pytest.mark.slow
def test_the_figure_of_features_is_one_command(folder, tmp_path):
    result = run(
        folder / "model.h5", "--grid", "SN-NL,volume-left", "--hold", "thorax", "--out", tmp_path, "--json"
    )
    assert result.exit_code == 0, result.stderr
    edits = json.loads(result.stdout)["edits"]
    assert [edit["step_sd"] for edit in edits] == [-2.0, -1.0, 0.0, 1.0, 2.0] * 2
    after = [edit["changes"][0]["after"] for edit in edits[:5]]
    assert np.allclose(np.diff(after), np.diff(after)[0], atol=0.1)
    with Image.open(tmp_path / "feature-editing.png") as picture:
        assert picture.width > 5 * 200


def test_unusual_wishes_are_warned_about_on_stderr(folder, tmp_path):
    result = run(folder / "model.h5", "--set", "SN-NL=+7cm", "--out", tmp_path, "--json")
    assert result.exit_code == 0
    assert "Warning: SN-NL: the value asked for lies" in result.stderr
    assert json.loads(result.stdout)["warnings"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "--set"),
        (["--set", "SN-NL=20cm", "--grid"], "--set"),
        (["--set", "SN-NL"], "is no request"),
        (["--set", "SN-NL=20cm", "--mean", "--scan", "x.ply"], "one of --mean"),
        (["--set", "SN-NL=20cm", "--landmarks", "x.json"], "belongs to --scan"),
        (["--set", "SN-NL=20cm", "--scan", "{}/none.ply"], "no such file"),
        (["--set", "SN-NL=20cm", "--registered", "{}/none.ply"], "none.ply"),
        (["--set", "SN-NL=8cm", "--set", "SN-NR=8cm", "--set", "NL-NR=40cm"], "cannot be attained"),
        (["--set", "SN-XI=+6cm", "--hold", "thorax"], "while thorax stays cannot be attained"),
        (["--set", "shoes=40"], "not known here"),
        (["--grid", "shoes"], "not known here"),
        (["--linear", "--set", "SN-NL=20cm", "--hold", "thorax"], "linear version cannot hold"),
    ],
)
def test_bad_wishes_end_with_2_a_reason_and_no_files(folder, tmp_path, options, says):
    out = tmp_path / "out"
    result = run(folder / "model.h5", *(option.format(folder) for option in options), "--out", out)
    assert result.exit_code == 2
    assert says in result.stderr
    assert not out.exists()


@pytest.mark.slow
def test_a_value_out_of_reach_leaves_a_white_place_in_the_figure(folder, tmp_path):
    result = run(
        folder / "model.h5", "--grid", "SN-XI", "--hold", "thorax", "--hold", "SN-XI", "--out", tmp_path
    )
    assert result.exit_code == 2
    assert "both to be changed and to be held" in result.stderr
    result = run(
        folder / "model.h5", "--grid", "SN-XI", "--hold", "thorax", "--hold", "tape SN-XI", "--out", tmp_path
    )
    assert result.exit_code == 1
    assert "Left white: SN-XI" in result.stderr
    assert (tmp_path / "feature-editing.png").exists()
