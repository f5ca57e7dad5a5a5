"""Results say of what they were made, also those of commands that only look or convert."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from click.testing import CliRunner

from breastmorph import __version__
from breastmorph.cli import main
from breastmorph.mesh.files import save_mesh
from breastmorph.model.files import load_model, save_model
from breastmorph.scan.landmark_files import save_landmarks
from small_cohort import built, small_cohort
from torso import torso


def digest(path):
    return sha256(path.read_bytes()).hexdigest()


def made(*words):
    result = CliRunner().invoke(main, [*map(str, words), "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)["made"]
    assert told["software"] == f"BreastMorph {__version__}"
    assert told["command"] == words[0]
    return told


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One scan with its landmarks."""
    folder = tmp_path_factory.mktemp("made")
    mesh, landmarks = torso(edge=6.0)
    save_mesh(mesh, folder / "patient.ply")
    save_landmarks(landmarks, folder / "patient.json")
    return folder


def test_a_check_names_its_scans(folder):
    scan, landmarks = folder / "patient.ply", folder / "patient.json"
    told = made("check", scan, "--landmarks", landmarks, "--unit", "mm")
    assert told["inputs"] == {"scans": digest(scan), "landmarks": digest(landmarks)}
    assert told["parameters"]["unit"] == "mm"
    whole = made("check", folder)["inputs"]["scans"]
    (folder / "patient.json").write_text(landmarks.read_text() + "\n")
    assert made("check", folder)["inputs"]["scans"] != whole
    assert str(folder) not in json.dumps(told)


@pytest.mark.slow
def test_a_template_names_its_scan(folder, tmp_path):
    scan, landmarks = folder / "patient.ply", folder / "patient.json"
    words = ("--landmarks", landmarks, "--out", tmp_path, "--edge", 12, "--coarse", 150)
    told = made("template", scan, *words)
    assert told["inputs"] == {"scan": digest(scan), "landmarks": digest(landmarks)}
    assert told["parameters"]["edge"] == 12.0


def test_a_converted_model_names_what_it_was_also_when_it_is_replaced(tmp_path):
    model, landmark_ids = tmp_path / "m.npz", tmp_path / "ids.json"
    save_model(built(small_cohort(6)), model)
    landmark_ids.write_text('{"xiphoid": 3}')
    before = digest(model)
    told = made("convert", model, model, "--components", 2, "--landmark-ids", landmark_ids)
    assert told["inputs"] == {"landmark_ids": digest(landmark_ids), "source": before}
    assert told["parameters"]["components"] == 2
    assert load_model(model).n_components == 2
    assert digest(model) != before
