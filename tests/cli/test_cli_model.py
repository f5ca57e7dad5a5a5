"""`breastmorph build`, `sample` and `convert`: what they write, say and refuse."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from breastmorph.cli import main
from breastmorph.mesh.files import load_mesh
from breastmorph.model.files import load_model
from small_cohort import random_shapes, write_registered

TABLE = """id,bmi,operated
000,20,no
001,22,yes
002,26,no
003,28,no
004,31,no
005,33,yes
006,29,no
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight registered subjects, one with an absent breast, one not in the table."""
    folder = tmp_path_factory.mktemp("cohort")
    write_registered(folder / "out", random_shapes(k=8), absent={"006": "left"})
    (folder / "cohort.csv").write_text(TABLE)
    return folder


def run(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def built(folder, tmp_path, *options):
    result = run("build", folder / "out", "-o", tmp_path / "m.h5", "--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout), load_model(tmp_path / "m.h5")


def test_build_writes_a_model_and_says_who_is_in_it(folder, tmp_path, small_template):
    record, model = built(folder, tmp_path)
    assert record["subjects"] == 7
    assert record["left_out"] == {"absent breast": ["006"]}
    assert record["components"] == model.n_components == 6
    assert record["vertices"] == small_template.mesh.n_vertices
    assert record["removed"]["variance_after"] <= record["removed"]["variance_before"]
    assert not record["keeps_scores"]
    assert model.training is None
    assert dict(model.landmark_ids) == dict(small_template.landmark_ids)
    assert model.info["left_out"] == {"absent breast": 1}


def test_the_table_on_the_terminal_names_reasons(folder, tmp_path):
    result = run("build", folder / "out", "-o", tmp_path / "m.h5", "--exclude", "000, 001")
    assert result.exit_code == 0
    for words in ("subjects", "absent breast", "2: 000, 001", "variance held", "removed rotations"):
        assert words in result.stdout


def test_where_chooses_by_the_table(folder, tmp_path):
    options = ("--table", folder / "cohort.csv", "--where", "bmi > 25 and not operated", "--exclude", "002")
    record, model = built(folder, tmp_path, *options, "--rigid", "--components", 1)
    assert set(record["left_out"]) == {
        "by --exclude",
        "not in the table",
        'by --where "bmi > 25 and not operated"',
        "absent breast",
    }
    assert set(model.info["left_out"]) == set(record["left_out"])
    assert (model.info["alignment"], model.n_components) == ("rigid", 1)


def test_scores_are_kept_only_on_request(folder, tmp_path):
    built(folder, tmp_path, "--keep-scores", "--table", folder / "cohort.csv")
    with h5py.File(tmp_path / "m.h5") as file:
        assert "scores" in file["modelinfo"]
    built(folder, tmp_path)
    with h5py.File(tmp_path / "m.h5") as file:
        assert "scores" not in file["modelinfo"]
        assert "training" not in file["breastmorph"]


def test_flagged_subjects_are_named(folder, tmp_path):
    (folder / "out" / "summary.csv").write_text(
        "id,status,flags\n000,registered,\n002,registered,odd shape\n"
    )
    try:
        result = run("build", folder / "out", "-o", tmp_path / "m.h5")
        record, _ = built(folder, tmp_path)
    finally:
        (folder / "out" / "summary.csv").unlink()
    assert "002 (odd shape)" in result.stderr
    assert record["flags"] == {"002": "odd shape"}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--where", "bmi > 3"], "no table"),
        (["--table", "{}/cohort.csv", "--where", "bmo > 3"], "Its columns are id, bmi, operated"),
        (["--table", "{}/cohort.csv", "--where", "bmi > 99"], "no subject is left"),
        (["--table", "{}/cohort.csv", "--where", "bmi > 32"], "more than 1 subject"),
        (["--table", "{}/none.csv"], "none.csv: there is no such file"),
        (["--exclude", "000,xyz"], "xyz"),
        (["--symmetric", "--asymmetry"], "either"),
        (["--components", "2", "--variance", "0.9"], "either"),
        (["--variance", "3"], "above 0, at most 1"),
    ],
)
def test_bad_wishes_end_with_2_and_a_reason(folder, tmp_path, options, says):
    options = [option.format(folder) for option in options]
    result = run("build", folder / "out", "-o", tmp_path / "m.h5", *options)
    assert result.exit_code == 2
    assert says in result.stderr
    assert not list(tmp_path.iterdir())


def test_no_registered_folder_is_said(tmp_path):
    result = run("build", tmp_path, "-o", tmp_path / "m.h5")
    assert result.exit_code == 2
    assert "not a folder of registered scans" in result.stderr


def test_sample_writes_the_models_shapes_and_a_sheet(folder, tmp_path):
    _, model = built(folder, tmp_path)
    out = tmp_path / "samples"
    result = run("sample", tmp_path / "m.h5", "-n", 2, "--seed", 4, "--out", out, "--json")
    record = json.loads(result.stdout)
    assert [entry["file"] for entry in record["shapes"]] == [str(out / f"sample_00{k}.ply") for k in (0, 1)]
    rng = np.random.default_rng(4)
    for k in range(2):
        assert np.allclose(load_mesh(out / f"sample_00{k}.ply").vertices, model.drawn(rng), atol=1e-6)
    with Image.open(record["sheet"]) as sheet:
        assert np.asarray(sheet).std() > 5


def test_fewer_components_give_samples_of_the_truncated_model(folder, tmp_path):
    _, model = built(folder, tmp_path)
    run("sample", tmp_path / "m.h5", "-n", 1, "--components", 2, "--out", tmp_path / "s")
    drawn = load_mesh(tmp_path / "s" / "sample_000.ply").vertices
    assert np.allclose(drawn, model.truncate(2).drawn(np.random.default_rng(1)), atol=1e-6)


def test_modes_go_both_ways_from_the_mean(folder, tmp_path):
    _, model = built(folder, tmp_path)
    out = tmp_path / "modes"
    result = run("sample", tmp_path / "m.h5", "--modes", 2, "--sd", 2, "--out", out, "--format", "obj")
    assert result.exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "contact-sheet.png",
        "mean.obj",
        *(f"mode_0{k}_{way}_2_sd.obj" for k in (1, 2) for way in ("minus", "plus")),
    ]
    plus, minus = (load_mesh(out / f"mode_02_{way}_2_sd.obj").vertices for way in ("plus", "minus"))
    assert np.allclose((plus + minus) / 2, model.mean, atol=1e-4)
    assert np.allclose(plus, model.instance([0.0, 2 * model.deviations[1]]), atol=1e-4)


def test_convert_goes_through_every_format(folder, tmp_path):
    _, model = built(folder, tmp_path, "--keep-scores")
    (tmp_path / "ids.json").write_text('{"navel": 5}')
    first = run("convert", tmp_path / "m.h5", tmp_path / "m.npz", "--landmark-ids", tmp_path / "ids.json")
    second = run(
        "convert", tmp_path / "m.npz", tmp_path / "n.h5", "--components", 2, "--drop-scores", "--json"
    )
    assert (first.exit_code, second.exit_code) == (0, 0)
    found = load_model(tmp_path / "n.h5")
    assert found.landmark_ids["navel"] == 5
    assert found.training is None
    assert json.loads(second.stdout)["components"] == found.n_components == 2
    assert np.allclose(found.mean, model.mean, atol=1e-4)
    assert run("convert", tmp_path / "m.h5", tmp_path / "m.glb", "--modes", 2).exit_code == 0
    assert load_mesh(tmp_path / "m.glb").n_faces == len(model.faces)
    record = json.loads(run("convert", tmp_path / "m.h5", tmp_path / "seq", "--modes", 1, "--json").stdout)
    assert len(record["written"]) == 14


@pytest.mark.parametrize("command", [["sample", "--out", "s"], ["convert"]])
def test_what_is_no_model_is_refused(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.h5").write_bytes(b"no model")
    result = run(command[0], "x.h5", *command[1:], *(["y.h5"] if command == ["convert"] else []))
    assert result.exit_code == 2
    assert "not a model file" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["x.h5"]


@pytest.mark.parametrize("option", ["--modes", "--sd"])
def test_what_a_model_file_has_not_is_refused(folder, tmp_path, option):
    built(folder, tmp_path)
    result = run("convert", tmp_path / "m.h5", tmp_path / "n.h5", option, 2)
    assert result.exit_code == 2
    assert "--components" in result.stderr
    assert not (tmp_path / "n.h5").exists()
