"""Results are hashed again: every change is named, nothing else is."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import InProcess
from breastmorph.cli import main
from breastmorph.cohort import load_cohort
from breastmorph.model.building import build_model
from breastmorph.model.files import load_model, save_model
from breastmorph.paper.folder import StudyFolder
from breastmorph.paper.parameters import StudyParameters, demo_parameters
from breastmorph.paper.part import Made, Part
from small_cohort import random_shapes, write_registered
from tiny_cohort import tiny_recipe, write_scans


def verified(*arguments):
    result = CliRunner().invoke(main, ["verify", *map(str, arguments), "--json"])
    assert result.exit_code in (0, 1), result.output
    problems = [problem for entry in json.loads(result.stdout) for problem in entry["problems"]]
    assert result.exit_code == (1 if problems else 0)
    return problems


@pytest.fixture(scope="module")
def once_registered(tmp_path_factory):
    home = tmp_path_factory.mktemp("registered")
    register_batch(write_scans(home / "scans", 2), tiny_recipe(), home / "out", InProcess())
    return home


@pytest.fixture
def registered(once_registered, tmp_path):
    """A copy that a test may change."""
    return shutil.copytree(once_registered, tmp_path / "copy")


@pytest.fixture
def model_file(tmp_path):
    write_registered(tmp_path / "cohort", random_shapes(6))
    save_model(build_model(load_cohort(tmp_path / "cohort")), tmp_path / "model.h5")
    return tmp_path / "model.h5"


def test_a_registered_folder_is_as_it_was_written_until_a_file_changes(registered):
    out, scans = registered / "out", registered / "scans"
    assert verified(out, "--scans", scans) == []
    mesh = out / "registered" / "s00.ply"
    data = bytearray(mesh.read_bytes())
    data[-5] ^= 1
    mesh.write_bytes(data)
    assert [problem["where"] for problem in verified(out)] == [str(mesh)]


def test_missing_foreign_and_unreadable_files_are_named(registered):
    folder = registered / "out" / "registered"
    (folder / "s00.ply").rename(folder / "stranger.ply")
    (folder / "s01.json").write_text("{")
    found = {problem["where"].rsplit("/")[-1]: problem["cause"] for problem in verified(registered / "out")}
    assert set(found) == {"s00.ply", "stranger.ply", "s01.json"}
    assert "cannot be read" in found["s01.json"]
    assert "missing" in found["s00.ply"]


def test_a_changed_scan_is_noticed_only_when_scans_are_given(registered):
    scan = registered / "scans" / "s01.ply"
    scan.write_bytes(scan.read_bytes() + b"\n")
    assert verified(registered / "out") == []
    (problem,) = verified(registered / "out", "--scans", registered / "scans")
    assert "s01.ply" in problem["cause"]


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_a_model_carries_its_own_hash_in_every_format(model_file, suffix):
    other = model_file.with_suffix(suffix)
    save_model(load_model(model_file), other)
    assert verified(other) == []
    model = load_model(other)
    assert model.info["content"] == load_model(model_file).info["content"]
    import h5py

    with h5py.File(model_file, "r+") as file:
        file["model/mean"][7] += np.float32(0.01)
    (problem,) = verified(model_file)
    assert "not what was written" in problem["cause"]


def test_a_model_knows_the_shapes_it_was_built_from(model_file, tmp_path):
    assert verified(model_file, "--cohort", tmp_path / "cohort") == []
    write_registered(tmp_path / "other", random_shapes(6, seed=5))
    (problem,) = verified(model_file, "--cohort", tmp_path / "other")
    assert "not built from these shapes" in problem["cause"]


def _study(path, parameters):
    """A study of one part that made one figure."""
    study = StudyFolder(path)
    study.prepare()
    study.describe(
        {"program": "p", "cohort": None, "parameters": parameters.as_dict(), "inputs": {"template": ""}}
    )
    part = Part("figure-modes", "Modes", "figures", lambda job: Made({}))
    with study.scratch(part.name) as scratch:
        (scratch / "figures").mkdir()
        (scratch / "figures" / "modes.svg").write_text("<svg/>")
        study.store(part, "key", Made({}), scratch, {})
    return path


def test_a_study_names_what_is_missing_and_what_is_not_its_own(tmp_path):
    study = _study(tmp_path / "study", StudyParameters(phantom=20))
    assert verified(study) == []
    (study / "notes.txt").write_text("mine")
    (study / "figures" / "other.svg").write_text("<svg/>")
    (study / "figures" / "modes.svg").unlink()
    found = {problem["where"].rsplit("/")[-1]: problem for problem in verified(study)}
    assert set(found) == {"notes.txt", "other.svg", "modes.svg"}
    assert "missing" in found["modes.svg"]["cause"]
    assert "`breastmorph paper`" in found["modes.svg"]["remedy"]
    assert "no part of the study made" in found["notes.txt"]["cause"]


def test_the_remedy_names_the_command_that_made_the_study(tmp_path):
    study = _study(tmp_path / "demo", demo_parameters(False, 1))
    (study / "figures" / "modes.svg").write_text("changed")
    (problem,) = verified(study)
    assert "`breastmorph demo`" in problem["remedy"]


def test_a_folder_without_results_is_refused(tmp_path):
    result = CliRunner().invoke(main, ["verify", str(tmp_path)])
    assert result.exit_code == 2
    assert "holds no results" in result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["{out}", "--landmarks", "nowhere"], "--landmarks belongs to --scans"),
        (["{model}", "--scans", "{scans}"], "--scans are the inputs"),
        (["{out}", "--cohort", "nowhere"], "--cohort is what a model was built from"),
    ],
)
def test_an_option_that_would_compare_nothing_is_refused(registered, model_file, words, said):
    places = {"out": registered / "out", "scans": registered / "scans", "model": model_file}
    result = CliRunner().invoke(main, ["verify", *(word.format(**places) for word in words)])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert "as it was written" not in result.output
