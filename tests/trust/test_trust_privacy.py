"""Nothing about a person leaves with a result that was not asked to carry it."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import breastmorph
from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import InProcess
from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.cli import main
from breastmorph.cohort import Cohort
from breastmorph.evaluation.privacy import PrivacyParameters, measure_privacy
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.report.summary_page import write_summaries
from small_cohort import random_shapes, small_cohort, write_registered
from tiny_cohort import tiny_recipe, write_scans

NAMES = ("Doe-Jane-1970", "Roe-Mary-1981", "Poe-Anne-1964", "Moe-Lucy-1959", "Low-Beth-1988")


@pytest.fixture
def folder(tmp_path):
    """Registered subjects under telling names, with a table."""
    write_registered(tmp_path / "secret-study", random_shapes(5))
    registered = tmp_path / "secret-study" / "registered"
    for k, name in enumerate(NAMES):
        (registered / f"{k:03d}.ply").rename(registered / f"{name}.ply")
        record = json.loads((registered / f"{k:03d}.json").read_text())
        record |= {"id": name, "outputs": {f"{name}.ply": next(iter(record["outputs"].values()))}}
        (registered / f"{k:03d}.json").unlink()
        (registered / f"{name}.json").write_text(json.dumps(record))
    rows = "".join(f"{name},{20 + k}.25,surgeon-x\n" for k, name in enumerate(NAMES))
    (tmp_path / "patients.csv").write_text("id,bodymass,operator\n" + rows)
    return tmp_path


def run(*words):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("suffix", ["h5", "npz", "glb"])
def test_a_model_names_nobody_by_default(suffix, folder):
    model = folder / "model.h5"
    run("build", folder / "secret-study", "-o", model, "--table", folder / "patients.csv")
    if suffix != "h5":
        run("convert", model, folder / f"model.{suffix}")
    data = (folder / f"model.{suffix}").read_bytes()
    if suffix == "npz":
        with np.load(folder / "model.npz", allow_pickle=False) as arrays:  # compressed, so looked into
            data += b"".join(arrays[name].tobytes() + name.encode() for name in arrays)
    for word in (*NAMES, "bodymass", "surgeon-x", "secret-study", "patients.csv", str(folder)):
        assert word.encode() not in data
        assert word.encode("utf-32-le") not in data  # as numpy stores texts


def test_scores_are_kept_only_on_request_and_still_name_nobody(folder):
    run(
        "build",
        folder / "secret-study",
        "-o",
        folder / "m.h5",
        "--keep-scores",
        "--table",
        folder / "patients.csv",
    )
    data = (folder / "m.h5").read_bytes()
    assert b"bodymass" in data  # asked for
    for word in (*NAMES, "surgeon-x", "secret-study"):
        assert word.encode() not in data


def test_records_and_pages_hold_no_path(tmp_path):
    found = write_scans(tmp_path / "scans", 2)
    register_batch(found, tiny_recipe(), tmp_path / "out", InProcess())
    write_summaries(RegisteredFolder(tmp_path / "out").outcomes(), tmp_path / "out")
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and path.name != ".lock"]
    assert {".json", ".csv", ".html", ".ply"} <= {path.suffix for path in written}
    for path in written:
        assert str(tmp_path).encode() not in path.read_bytes()


@pytest.mark.slow
def test_a_failed_scan_is_told_by_its_id_and_file_name_only(tmp_path):
    found = write_scans(tmp_path / "private-folder", 2)
    found[0].mesh.write_bytes(b"ply\nnot a mesh")
    outcomes = register_batch(found, tiny_recipe(), tmp_path / "out", InProcess())
    assert [outcome.status for outcome in outcomes] == ["failed", "registered"]
    told = (tmp_path / "out" / "failed" / "s00.json").read_text()
    assert "s00.ply: " in told
    assert str(tmp_path) not in told


def test_an_error_nobody_foresaw_is_told_without_places(tmp_path, monkeypatch):
    found = write_scans(tmp_path / "private-folder", 1)

    def unforeseen(*_):
        raise ZeroDivisionError(f"in {found[0].mesh}")

    monkeypatch.setattr("breastmorph.batch.product.ProductMaker._product", unforeseen)
    register_batch(found, tiny_recipe(), tmp_path / "out", InProcess())
    told = json.loads((tmp_path / "out" / "failed" / "s00.json").read_text())
    assert "batch/product.py" in told["trace"].replace("\\", "/")
    assert "ZeroDivisionError: in s00.ply" in told["trace"]
    assert str(tmp_path) not in json.dumps(told)
    assert str(Path(breastmorph.__file__).parents[1]) not in json.dumps(told)


@pytest.mark.slow
def test_numbers_of_an_evaluation_name_nobody(folder):
    run("build", folder / "secret-study", "-o", folder / "m.h5")
    words = ["evaluate", folder / "m.h5", "--cohort", folder / "secret-study", "--samples", 5, "--no-surface"]
    run(*words, "--privacy", "--out", folder / "e")
    for path in (folder / "e").iterdir():
        for name in (*NAMES, str(folder)):
            assert name.encode() not in path.read_bytes()


def test_nothing_is_sent(folder, monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    result = run("build", folder / "secret-study", "-o", folder / "m.h5")
    assert "5" in result.output
    assert run("measure", folder / "m.h5").exit_code == 0


# --- what a model reveals ---------------------------------------------------------------------------------------------


def test_a_full_model_recognises_its_subjects_and_a_truncated_one_less():
    cohort = small_cohort(30)
    found = measure_privacy(build_model(cohort), cohort, PrivacyParameters(samples=50))
    assert found.subjects == 30
    first, last = found.recognition[0], found.recognition[-1]
    assert last.chance > 0.99  # every subject lies in the span of all components
    assert last.subjects < 0.2 * last.others
    assert first.chance < last.chance
    assert any("% certainty" in sentence for sentence in found.verdict())


def test_samples_of_a_model_are_new_people_and_a_collapsed_model_copies(small_template):
    cohort = small_cohort(30)
    model = build_model(cohort)
    usual = measure_privacy(model, cohort, PrivacyParameters(samples=100)).nearness[0]
    assert not usual.repeats
    # A model of next to no variance repeats its mean; a subject at the mean is what it copies.
    shapes = cohort.array()
    shapes[0] = build_model(cohort).mean
    near = Cohort.of(shapes, small_template)
    still = replace(build_model(near), variances=1e-6 * build_model(near).variances)
    found = measure_privacy(still, near, PrivacyParameters(samples=20))
    assert found.nearness[0].repeats
    assert found.nearness[0].nearer_percent == 100.0
    assert any("It repeats its subjects" in sentence for sentence in found.verdict())


def test_stored_scores_and_small_cohorts_are_said_to_reveal(tmp_path):
    cohort = small_cohort(6)
    said = " ".join(measure_privacy(build_model(cohort, BuildParameters(keep_scores=True)), cohort).verdict())
    assert "Do not release it" in said
    assert "6 subjects only" in said
    with pytest.raises(BreastMorphError, match="too few"):
        measure_privacy(build_model(small_cohort(2)), small_cohort(2))


def test_evaluate_prints_privacy_in_plain_words_and_needs_the_cohort(folder):
    run("build", folder / "secret-study", "-o", folder / "m.h5")
    words = ["evaluate", folder / "m.h5", "--privacy", "--samples", "10", "--no-surface"]
    shown = run(*words, "--cohort", folder / "secret-study").output
    assert "nearest subject" in shown
    assert "50 % is guessing" in shown
    bad = CliRunner().invoke(main, [str(word) for word in words])
    assert bad.exit_code == 2
    assert "need --cohort" in bad.output
