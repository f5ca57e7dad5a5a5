"""`breastmorph evaluate`: what it prints and writes, whose subjects it uses, and how it refuses."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from breastmorph.cli import main
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.files import save_model
from breastmorph.model.procrustes import ProcrustesParameters
from small_cohort import random_shapes, small_cohort, write_registered


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Nine registered subjects, their table, a model of them."""
    place = tmp_path_factory.mktemp("evaluate")
    write_registered(place / "cohort", random_shapes(9))
    rows = "\n".join(f"{k:03d},{20 + k}" for k in range(9))
    (place / "cohort.csv").write_text(f"id,bmi\n{rows}\n")
    save_model(build_model(small_cohort(9)), place / "model.h5")
    return place


def invoke(*arguments):
    return CliRunner().invoke(main, ["evaluate", *map(str, arguments)])


def run(*arguments):
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.slow
def test_without_a_cohort_compactness_only(folder, tmp_path):
    report = run(folder / "model.h5", "--out", tmp_path)
    drawn = (tmp_path / "curves.svg").read_text()
    assert "Compactness" in drawn
    assert "Specificity" not in drawn
    assert report["compactness"]["share"][-1] == pytest.approx(1.0)
    assert report["generalization"] == []
    assert report["truth"] is None
    assert "components" in invoke(folder / "model.h5").output


def test_curves_of_both_regions_and_both_distances_for_every_count(folder):
    report = run(folder / "model.h5", "--cohort", folder / "cohort", "--samples", 4)
    kinds = [("point", "whole"), ("point", "breast"), ("surface", "whole"), ("surface", "breast")]
    for metric, n, counts in (("generalization", 9, range(8)), ("specificity", 4, range(1, 9))):
        curves = {(curve["distance"], curve["region"]): curve for curve in report[metric]}
        assert list(curves) == kinds
        assert curves["point", "whole"]["components"] == list(counts)
        assert curves["point", "whole"]["n"] == n
        assert curves["surface", "whole"]["components"][-1] == counts[-1]
        last = [curves[kind, "whole"]["mean"][-1] for kind in ("surface", "point")]
        assert 0 < last[0] < last[1]
    assert report["decoupling"]["sd_inside"] > 0
    assert report["warnings"] == []


@pytest.mark.slow
def test_files_hold_the_same_numbers_every_time(folder, tmp_path):
    options = ("--cohort", folder / "cohort", "--samples", 10, "--seed", 4, "--no-surface")
    reports = [run(folder / "model.h5", *options, "--out", tmp_path / name) for name in "ab"]
    assert reports[0] == reports[1] == json.loads((tmp_path / "a" / "metrics.json").read_text())
    for name in ("metrics.csv", "curves.svg", "curves.pdf"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert (tmp_path / "a" / "curves.png").stat().st_size > 10_000
    with open(tmp_path / "a" / "metrics.csv") as file:
        rows = list(csv.DictReader(file))
    mean = [
        float(row["mean"]) for row in rows if (row["metric"], row["region"]) == ("generalization", "breast")
    ]
    assert mean == pytest.approx(reports[0]["generalization"][1]["mean"], rel=1e-4)
    assert {row["metric"] for row in rows} == {
        "compactness_variance", "compactness_share", "generalization", "specificity",
    }  # fmt: skip


def test_the_table_is_printed_at_some_counts_and_all(folder):
    result = invoke(folder / "model.h5", "--cohort", folder / "cohort", "--samples", 5, "--no-surface")
    assert result.exit_code == 0
    lines = [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in result.output.splitlines()]
    assert ["components", "1", "5", "all"] in lines
    rows = {line[0]: line[1:] for line in lines if line}
    assert all("±" in cell for cell in rows["generalization, breast, point to point"])
    assert rows["variance held"][-1] == "100.0 %"


def test_the_subjects_are_those_the_model_was_built_from(folder, tmp_path):
    chosen = small_cohort(9).chosen(range(5, 9))
    save_model(build_model(chosen, notes={"where": "bmi > 24"}), tmp_path / "some.h5")
    result = invoke(tmp_path / "some.h5", "--cohort", folder / "cohort")
    assert result.exit_code == 2
    assert "bmi > 24" in result.output
    options = (
        "--cohort",
        folder / "cohort",
        "--table",
        folder / "cohort.csv",
        "--no-surface",
        "--samples",
        3,
    )
    report = run(tmp_path / "some.h5", *options)
    assert report["subjects"] == 4
    assert report["warnings"] == []
    other = invoke(tmp_path / "some.h5", *options, "--where", "bmi > 21", "--json")
    assert "built from 4 subjects" in other.stderr
    excluded = run(tmp_path / "some.h5", *options, "--exclude", "008")
    assert excluded["subjects"] == 3


def test_a_rigid_model_is_evaluated_with_size_inside(folder, tmp_path):
    rigid = BuildParameters(procrustes=ProcrustesParameters(with_scale=False))
    save_model(build_model(small_cohort(9), rigid), tmp_path / "rigid.h5")
    report = run(tmp_path / "rigid.h5", "--cohort", folder / "cohort", "--no-surface", "--samples", 3)
    assert report["warnings"] == []


def test_truth_of_a_phantom(folder, tmp_path, small_template):
    """The registered shapes themselves as truth get full marks; the truth of others does not."""
    template = small_template
    mesh, landmarks = template.mesh, template.landmarks
    names, points = np.array(landmarks.names), landmarks.points
    np.savez(
        tmp_path / "topology.npz",
        mean=mesh.vertices,
        faces=mesh.faces,
        landmark_names=names,
        landmark_true=points,
    )
    everywhere, front = np.ones(mesh.n_vertices, bool), mesh.vertices[:, 2] > 50.0

    def report(shapes):
        for k, shape in enumerate(shapes):
            parts = {"points": shape, "visible": everywhere, "breast_left": front, "breast_right": front}
            np.savez(tmp_path / f"{k:03d}.npz", **parts)
        options = ("--cohort", folder / "cohort", "--truth", tmp_path, "--no-surface", "--samples", 2)
        return run(folder / "model.h5", *options)["truth"]

    right = report(random_shapes(9))
    assert right["n"] == 9
    for region in ("breast", "outside"):
        assert right[region]["correspondence_error"] < 0.01
        assert right[region]["explained_variation"] == pytest.approx(1.0, abs=1e-3)
        assert right[region]["variance_ratio"] == pytest.approx(1.0, abs=1e-3)
    wrong = report(random_shapes(9, seed=77))
    assert wrong["breast"]["correspondence_error"] > 3.0
    assert wrong["breast"]["explained_variation"] < 0.0
    (tmp_path / "003.npz").unlink()
    result = invoke(folder / "model.h5", "--cohort", folder / "cohort", "--truth", tmp_path)
    assert result.exit_code == 2
    assert "003.npz" in result.output


def test_truth_of_another_template_is_a_message(folder, tmp_path, small_template):
    template = small_template
    np.savez(
        tmp_path / "topology.npz",
        mean=template.mesh.vertices * [1.0, 1.0, 1.4],
        faces=template.mesh.faces,
        landmark_names=np.array(template.landmarks.names),
        landmark_true=template.landmarks.points,
    )
    result = invoke(folder / "model.h5", "--cohort", folder / "cohort", "--truth", tmp_path)
    assert result.exit_code == 2
    assert "no known place" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("model.h5", "--scans", "cohort"), "need --cohort"),
        (("model.h5", "--cohort", "cohort", "--landmarks", "nowhere"), "--landmarks belongs to --scans"),
        (("model.h5", "--cohort", "nowhere"), "not a folder of registered scans"),
        (("nothing.h5",), "nothing.h5"),
        (("cohort.csv",), "cohort.csv"),
        (("model.h5", "--cohort", "cohort", "--truth", "cohort"), "not the true values"),
        (("model.h5", "--cohort", "cohort", "--scans", "nowhere"), "no such file"),
        (("model.h5", "--cohort", "cohort", "--exclude", "zzz"), "no subject 'zzz'"),
        (("model.h5", "--cohort", "cohort", "--samples", "0"), "samples"),
    ],
)
def test_mistakes_are_messages_and_exit_code_two(folder, arguments, words, monkeypatch):
    monkeypatch.chdir(folder)
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert "Traceback" not in result.output


def test_another_topology_is_a_message(folder, tmp_path):
    save_model(build_model(small_cohort(9), BuildParameters()).marginal(np.arange(400)), tmp_path / "part.h5")
    result = invoke(tmp_path / "part.h5", "--cohort", folder / "cohort")
    assert result.exit_code == 2
    assert "triangles" in result.output
