"""Same inputs and seed, same bytes: across runs, jobs, threads and orders of files; and every result says of what."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from breast_cohort import breast_model
from breastmorph import __version__
from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import InProcess, LocalProcesses
from breastmorph.cli import main
from breastmorph.cohort import load_cohort
from breastmorph.mesh.files import save_mesh
from breastmorph.model.building import build_model
from breastmorph.model.files import load_model, save_model
from breastmorph.scan.landmark_files import save_landmarks
from small_cohort import random_shapes, write_registered
from tiny_cohort import digest, meshes, metrics, tiny_recipe, write_scans
from torso import torso

pytestmark = pytest.mark.slow

THREADS = """
import hashlib
import numpy as np
from breastmorph.clinical.editing import Editor
from breastmorph.clinical.feature_requests import parse_request
from breastmorph.clinical.patient import mean_patient
from breastmorph.model.fitting import FitParameters, fit_model
from breastmorph.cohort import Cohort
from breastmorph.model.building import build_model
from breastmorph.template import default_template

template = default_template()
rng = np.random.default_rng(1)
points = template.mesh.vertices
waves = np.cos(points @ rng.normal(scale=0.02, size=(3, 30)))
shapes = points + np.einsum("nw,kwd->knd", waves, rng.normal(scale=3.0, size=(12, 30, 3)))
model = build_model(Cohort.of(shapes, template))
edited = Editor(model, mean_patient(model)).exact([parse_request("SN-NL=+5")]).shape
fitted = fit_model(model, model.mean_mesh, model.landmarks, FitParameters(components=5)).coefficients
parts = (model.mean, model.basis, model.variances, edited, fitted)
print(hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest())
"""


def run(*words):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def without_paths(record):
    """A record without where its files lie."""
    for shape in record.get("shapes", ()):
        shape.pop("file", None)
    return {key: value for key, value in record.items() if key not in ("files", "model", "sheet")}


def test_scans_to_metrics_are_the_same_with_one_and_two_jobs(tmp_path):
    found = write_scans(tmp_path / "scans", 5)
    results = {}
    for jobs, executor in (("1", InProcess()), ("2", LocalProcesses(2))):
        out = tmp_path / jobs
        order = found if jobs == "1" else found[::-1]
        register_batch(order, tiny_recipe(), out, executor)
        built = run("build", out, "-o", tmp_path / f"{jobs}.h5", "--json")
        words = ["evaluate", tmp_path / f"{jobs}.h5", "--cohort", out, "--samples", 10, "--no-surface"]
        evaluated = run(*words, "--json")
        for record in (built, evaluated):
            record["made"]["parameters"].pop("folder")  # the names of the two folders
            record["made"]["parameters"].pop("model_file", None)
        results[jobs] = meshes(out), metrics(out), without_paths(built), without_paths(evaluated)
    assert results["1"] == results["2"]
    assert digest(tmp_path / "1.h5") == digest(tmp_path / "2.h5")


def test_a_model_file_is_the_same_bytes_in_every_run_and_format(tmp_path):
    write_registered(tmp_path / "out", random_shapes(6))
    for suffix in ("h5", "npz"):
        for name in ("a", "b"):
            run("build", tmp_path / "out", "-o", tmp_path / f"{name}.{suffix}", "--json")
        assert digest(tmp_path / f"a.{suffix}") == digest(tmp_path / f"b.{suffix}")


def test_the_order_in_which_files_were_written_does_not_matter(tmp_path):
    shapes = random_shapes(6)
    write_registered(tmp_path / "one", shapes)
    write_registered(tmp_path / "two", shapes)
    folder = tmp_path / "two" / "registered"
    for path in sorted(folder.iterdir(), reverse=True):  # a folder lists its files as they came
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    models = [build_model(load_cohort(tmp_path / name)) for name in ("one", "two")]
    np.testing.assert_array_equal(models[0].basis, models[1].basis)
    np.testing.assert_array_equal(models[0].mean, models[1].mean)


def test_the_number_of_threads_does_not_change_a_bit_of_a_model_an_edit_or_a_fit():
    hashes = set()
    for threads in ("1", "2"):
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, threads), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", THREADS], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        hashes.add(done.stdout)
    assert len(hashes) == 1


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model and a scan in files."""
    folder = tmp_path_factory.mktemp("made")
    save_model(breast_model(scores=False), folder / "model.h5")
    mesh, landmarks = torso(edge=6.0)
    save_mesh(mesh, folder / "patient.ply")
    save_landmarks(landmarks, folder / "patient.json")
    return folder


def results(made: Path, out: Path, command: str) -> dict:
    model, scan = made / "model.h5", made / "patient.ply"
    words = {
        "edit": ["edit", model, "--set", "SN-NL=+5", "--no-sheet", "--out", out],
        "fit": ["fit", model, scan, "--landmarks", made / "patient.json", "--unit", "mm", "--out", out],
        "measure": ["measure", model],
        "sample": ["sample", model, "-n", 1, "--out", out],
        "evaluate": ["evaluate", model, "--out", out],
    }
    return run(*words[command], "--json")


FILES = {"edit": "edit.json", "fit": "fit.json", "evaluate": "metrics.json"}


@pytest.mark.parametrize("command", ["edit", "fit", "measure", "sample", "evaluate"])
def test_every_result_says_of_what_it_was_made(command, made, tmp_path):
    record = results(made, tmp_path / "1", command)
    told = record["made"]
    assert told["software"] == f"BreastMorph {__version__}"
    assert told["command"] == command
    assert digest(made / "model.h5") in told["inputs"].values()
    if command == "fit":
        assert told["inputs"]["scan"] == digest(made / "patient.ply")
        assert told["inputs"]["landmarks"] == digest(made / "patient.json")
        assert told["parameters"]["unit"] == "mm"
    assert str(made) not in json.dumps(told)
    assert without_paths(results(made, tmp_path / "2", command)) == without_paths(record)
    if command in FILES:
        assert json.loads((tmp_path / "1" / FILES[command]).read_text())["made"] == told


def test_a_model_says_of_what_it_was_made(tmp_path):
    write_registered(tmp_path / "out", random_shapes(6))
    run("build", tmp_path / "out", "-o", tmp_path / "m.h5", "--components", 3, "--json")
    info = load_model(tmp_path / "m.h5").info
    assert info["software"] == f"BreastMorph {__version__}"
    assert info["parameters"]["components"] == 3
    assert info["shapes"] == load_cohort(tmp_path / "out").fingerprint()
    assert {"template", "content"} <= set(info)
