"""Results are hashed again: every change is named, nothing else is."""

from __future__ import annotations

import shutil

import h5py
import numpy as np
import pytest

from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import InProcess
from breastmorph.cli.wording import COMMAND
from breastmorph.cohort import load_cohort
from breastmorph.foundation.errors import FileProblem
from breastmorph.model.building import build_model
from breastmorph.model.files import load_model, save_model
from breastmorph.paper.drift import study_drift
from breastmorph.paper.folder import StudyFolder
from breastmorph.paper.parameters import StudyParameters, demo_parameters
from breastmorph.paper.part import Made, Part
from breastmorph.usecases.verify import VerifyRequest, verify
from small_cohort import random_shapes, write_registered
from tiny_cohort import tiny_recipe, write_scans


def differing(path, **request):
    """The problems of one result by the name of their file."""
    (found,) = verify(VerifyRequest((path,), **request), study_drift)
    return {problem.where.name: problem for problem in found.problems}


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
    assert differing(out, scans=scans) == {}
    mesh = out / "registered" / "s00.ply"
    data = bytearray(mesh.read_bytes())
    data[-5] ^= 1
    mesh.write_bytes(data)
    assert set(differing(out)) == {"s00.ply"}


def test_missing_foreign_and_unreadable_files_are_named(registered):
    folder = registered / "out" / "registered"
    (folder / "s00.ply").rename(folder / "stranger.ply")
    (folder / "s01.json").write_text("{")
    found = {name: problem.code for name, problem in differing(registered / "out").items()}
    assert set(found) == {"s00.ply", "stranger.ply", "s01.json"}
    assert found["s01.json"] == "unreadable"
    assert found["s00.ply"] == "missing"


def test_a_changed_scan_is_noticed_only_when_scans_are_given(registered):
    scan = registered / "scans" / "s01.ply"
    scan.write_bytes(scan.read_bytes() + b"\n")
    assert differing(registered / "out") == {}
    assert set(differing(registered / "out", scans=registered / "scans")) == {"s01.json"}


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_a_model_carries_its_own_hash_in_every_format(model_file, suffix):
    other = model_file.with_suffix(suffix)
    save_model(load_model(model_file), other)
    assert differing(other) == {}
    assert load_model(other).info["content"] == load_model(model_file).info["content"]
    with h5py.File(model_file, "r+") as file:
        file["model/mean"][7] += np.float32(0.01)
    assert set(differing(model_file)) == {"model.h5"}


def test_a_model_knows_the_shapes_it_was_built_from(model_file, tmp_path):
    assert differing(model_file, cohort=tmp_path / "cohort") == {}
    write_registered(tmp_path / "other", random_shapes(6, seed=5))
    assert set(differing(model_file, cohort=tmp_path / "other")) == {"model.h5"}


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


@pytest.mark.parametrize(
    ("parameters", "command"),
    [(StudyParameters(phantom=20), "breastmorph paper"), (demo_parameters(False, 1), "breastmorph demo")],
)
def test_a_study_names_what_is_missing_and_what_is_not_its_own(tmp_path, parameters, command):
    study = _study(tmp_path / "study", parameters)
    assert differing(study) == {}
    (study / "notes.txt").write_text("mine")
    (study / "figures" / "other.svg").write_text("<svg/>")
    (study / "figures" / "modes.svg").unlink()
    found = differing(study)
    assert set(found) == {"notes.txt", "other.svg", "modes.svg"}
    assert found["modes.svg"].code == "missing"
    assert command in found["modes.svg"].text(COMMAND)


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(FileProblem):
        differing(tmp_path)
