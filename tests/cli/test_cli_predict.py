"""``breastmorph predict``: files in the scan's frame, and clear words where there is nothing to predict."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from breast_cohort import breast_model, breast_shapes
from breastmorph.cli import main
from breastmorph.cohort import reading
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.files import save_model
from breastmorph.scan.landmark_files import save_landmarks
from torso import torso


@pytest.fixture(scope="module")
def folder(tmp_path_factory, breast_template):
    """A model, a registered torso with two breasts and one without the right one, and a raw scan of the latter."""
    path = tmp_path_factory.mktemp("predict")
    save_model(breast_model(12), path / "model.h5")
    flat = torso(edge=10.0, size=0.0)[0].vertices - breast_template.mesh.vertices
    shape = breast_shapes(1, seed=9)[0]
    right = (breast_template.mesh.vertices[:, 0] < 0)[:, None]
    to_file = Similarity(translation=np.array([0.0, 1000.0, 0.0]), scale=0.1)  # cm
    (path / "registered").mkdir()
    for name, points, absent in (
        ("two", shape, ""),
        ("one", shape + right * flat, "right"),
        ("none", shape + flat, ""),
        ("between", shape + 0.7 * right * flat, ""),
        ("between_unmarked", shape + 0.7 * right * flat, "right"),
    ):
        save_mesh(
            TriangleMesh(to_file.apply(points), breast_template.mesh.faces), path / f"registered/{name}.ply"
        )
        record = {"id": name, "to_file": to_file.as_dict(), "absent_side": absent}
        (path / f"registered/{name}.json").write_text(json.dumps(record))
    full, landmarks = torso(edge=6.0)
    save_mesh(full, path / "whole.ply")
    raw = np.where(full.vertices[:, :1] < 0, torso(edge=6.0, size=0.0)[0].vertices, full.vertices)
    save_mesh(full.with_vertices(raw), path / "raw.ply")
    save_landmarks(landmarks.only([n for n in landmarks if not n.endswith("right")]), path / "raw.json")
    return path


def run(folder, *words):
    return CliRunner().invoke(
        main, ["predict", str(folder / "model.h5"), *map(str, words)], catch_exceptions=False
    )


def test_a_breast_that_is_gone_is_predicted_into_the_scans_own_frame(folder, tmp_path):
    result = run(
        folder,
        folder / "registered/one.ply",
        "--missing",
        "right",
        "--out",
        tmp_path,
        "--samples",
        2,
        "--no-sheet",
        "--json",
    )
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["side"] == "right"
    assert told["evidence"] == "surface"
    assert not told["breast_was_there"]
    volume = next(one for one in told["measures"] if one["name"] == "volume-right")
    assert volume["predicted"] > 100.0
    assert volume["deviation"] > 0.0
    for name in told["files"]:
        assert (tmp_path / name).stat().st_size > 0
    names = {name.rsplit("/", 1)[-1] for name in told["files"]}
    assert {
        "prediction.ply",
        "prediction.stl",
        "prediction.obj",
        "uncertainty.ply",
        "uncertainty.csv",
    } <= names
    assert {
        "mirrored.ply",
        "difference.ply",
        "difference.stl",
        "sample_2.ply",
        "prediction.json",
    } <= names
    given, found = load_mesh(folder / "registered/one.ply"), load_mesh(tmp_path / "prediction.ply")
    with np.load(tmp_path / "uncertainty.npz") as arrays:
        missing, deviation = arrays["missing"], arrays["sd"]
    assert np.allclose(found.vertices[~missing], given.vertices[~missing], atol=1e-4)
    assert np.abs(found.vertices - given.vertices)[missing].max() > 1.0  # cm
    assert (deviation > 0).sum() == missing.sum()
    assert load_mesh(tmp_path / "uncertainty.ply").colors is not None
    assert len((tmp_path / "uncertainty.csv").read_text().splitlines()) == missing.sum() + 1
    solid = load_mesh(tmp_path / "difference.ply")  # in the file's cm, which makes its volume cc
    a, b, c = (solid.vertices[solid.faces[:, k]] for k in range(3))
    volume = np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0
    assert volume == pytest.approx(told["difference"]["volume_cc"], rel=1e-3)
    assert told["difference"]["sd_cc"] > 0.0
    rows = {row["measure"]: row for row in csv.DictReader((tmp_path / "measures.csv").open())}
    assert list(rows) == [one["name"] for one in told["measures"]]
    for one in told["measures"]:
        assert float(rows[one["name"]]["predicted"]) == pytest.approx(one["predicted"], abs=0.01)
    assert float(rows["difference"]["predicted"]) == pytest.approx(told["difference"]["volume_cc"], abs=0.01)
    assert float(rows["difference"]["sd"]) == pytest.approx(told["difference"]["sd_cc"], abs=0.01)
    vertex = breast_model(20).landmark_ids["nipple_right"]
    (nipple,) = told["nipples"]
    assert (nipple["name"], nipple["predicted"]) == ("nipple_right", True)
    assert np.allclose(nipple["position"], found.vertices[vertex], atol=1e-4)  # cm, as the file
    assert nipple["sd_mm"] == pytest.approx(float(deviation[vertex]), rel=1e-4)
    assert 0.0 < nipple["sd_normal_mm"] < nipple["sd_mm"]
    assert told["given"] == []


@pytest.mark.slow
def test_what_is_known_of_the_lost_breast_can_be_given(folder, tmp_path):
    words = (folder / "registered/one.ply", "--missing", "right", "--no-sheet", "--samples", 0, "--json")
    result = run(folder, *words, "--out", tmp_path / "told", "--set", "volume-right=300cc")
    told = json.loads(result.stdout)
    volume = next(one for one in told["measures"] if one["name"] == "volume-right")
    assert volume["predicted"] == pytest.approx(300.0, rel=0.03)
    assert told["given"] == ["volume-right 300 cc"]
    result = run(folder, *words, "--out", tmp_path / "seen", "--before", folder / "registered/two.ply")
    assert json.loads(result.stdout)["given"] == ["an earlier scan"]
    refused = run(folder, *words, "--out", tmp_path / "no", "--set", "volume-left=300cc")
    assert refused.exit_code == 2
    assert "says nothing about the right breast" in refused.stderr
    assert not (tmp_path / "no").exists()


@pytest.mark.slow
def test_both_breasts_are_predicted_from_the_thorax(folder, tmp_path):
    words = ("--missing", "both", "--samples", 0, "--json")
    result = run(folder, folder / "registered/none.ply", *words, "--out", tmp_path)
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert (told["side"], told["evidence"], told["breast_was_there"]) == ("both", "surface", False)
    assert told["noise"]["mirror_share"] == 0.0
    measures = {one["name"]: one for one in told["measures"]}
    for side in ("left", "right"):
        volume = measures[f"volume-{side}"]
        assert volume["predicted"] > 100.0
        assert volume["deviation"] > 0.0
        assert volume["mirrored"] is None
        assert volume["other"] is None
    assert [one["name"] for one in told["nipples"]] == ["nipple_left", "nipple_right"]
    assert not (tmp_path / "mirrored.ply").exists()  # of what?
    given, found = load_mesh(folder / "registered/none.ply"), load_mesh(tmp_path / "prediction.ply")
    with np.load(tmp_path / "uncertainty.npz") as arrays:
        missing = arrays["missing"]
    assert np.allclose(found.vertices[~missing], given.vertices[~missing], atol=1e-4)
    refused = run(folder, folder / "registered/one.ply", *words, "--out", tmp_path / "no")
    assert refused.exit_code == 2
    assert "the left breast is there" in refused.stderr


def test_a_raw_scan_is_registered_first(folder, tmp_path, breast_template):
    words = (folder / "raw.ply", "--landmarks", folder / "raw.json", "--missing", "right")
    result = run(folder, *words, "--out", tmp_path)
    assert result.exit_code == 0
    assert {"sheet.png", "sheet.pdf", "prediction.png"} <= {path.name for path in tmp_path.iterdir()}
    assert "predicted right breast" in result.stdout
    assert "The right nipple's predicted place: ±" in result.stdout
    assert " cm" in result.stdout  # people read lengths in cm, as `measure` shows them
    assert not re.search(r"SN-NR.* mm", result.stdout)
    assert result.stderr.count("right breast is absent") == 1
    found = load_mesh(tmp_path / "prediction.ply")
    assert np.array_equal(found.faces, breast_template.mesh.faces)
    # A breast where the scan is flat.
    assert found.vertices[breast_template.landmark_ids["nipple_right"], 2] > 100.0


def test_a_breast_that_is_there_is_not_missing(folder, tmp_path):
    words = (folder / "registered/two.ply", "--missing", "right", "--out", tmp_path / "no", "--no-sheet")
    refused = run(folder, *words)
    assert refused.exit_code == 2
    assert "the right breast is there" in refused.stderr
    assert "--replace" in refused.stderr
    assert not (tmp_path / "no").exists()
    taken = run(folder, *words, "--replace", "--json")
    assert taken.exit_code == 0
    assert json.loads(taken.stdout)["evidence"] == "points"
    # An expander or a reconstruction is there, but nothing of that half tells of the breast that was.
    for name in ("two", "between"):
        result = run(
            folder, folder / f"registered/{name}.ply", *words[1:], "--operated", "--samples", 0, "--json"
        )
        told = json.loads(result.stdout)
        assert (told["evidence"], told["breast_was_there"]) == ("surface", True)


@pytest.mark.parametrize(
    ("name", "exit_code"), [("between", 2), pytest.param("between_unmarked", 0, marks=pytest.mark.slow)]
)
def test_of_a_breast_between_flat_and_whole_its_landmarks_tell(folder, tmp_path, name, exit_code):
    words = (folder / f"registered/{name}.ply", "--missing", "right", "--out", tmp_path / "out", "--no-sheet")
    assert run(folder, *words, "--samples", 0).exit_code == exit_code


@pytest.mark.slow
def test_a_breast_without_landmarks_is_seen_all_the_same(folder, tmp_path):
    words = (
        folder / "whole.ply",
        "--landmarks",
        folder / "raw.json",
        "--missing",
        "right",
        "--out",
        tmp_path / "no",
    )
    result = run(folder, *words)
    assert result.exit_code == 2
    assert "it has no landmarks, but its skin shows it" in result.stderr
    assert not (tmp_path / "no").exists()


def test_the_wrong_side_is_named(folder, tmp_path):
    result = run(folder, folder / "registered/one.ply", "--missing", "left", "--out", tmp_path)
    assert result.exit_code == 2
    assert "the right side is the one without a breast" in result.stderr


def region(folder, template):
    """A file of the vertices around the right nipple."""
    points = template.mesh.vertices
    away = np.linalg.norm(points - points[template.landmark_ids["nipple_right"]], axis=1)
    (folder / "region.txt").write_text("\n".join(map(str, np.flatnonzero(away < 60.0))))
    return folder / "region.txt"


@pytest.mark.slow
def test_a_painted_region_of_a_mesh_that_is_read_once(folder, tmp_path, breast_template, monkeypatch):
    read = []
    monkeypatch.setattr(reading, "load_mesh", lambda path: read.append(path) or load_mesh(path))
    painted = region(tmp_path, breast_template)
    words = ("--region", painted, "--out", tmp_path / "out", "--no-sheet", "--samples", 0, "--json")
    result = run(folder, folder / "registered/two.ply", *words)
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["missing_vertices"] == len(painted.read_text().splitlines())
    assert (told["evidence"], told["breast_was_there"]) == ("points", True)
    assert read == [folder / "registered/two.ply"]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_alternatives(folder, tmp_path, breast_template):
    words = ("--region", region(tmp_path, breast_template), "--samples", 1, "--no-sheet")
    drawn = []
    for k, seed in enumerate((3, 3, 4)):
        out = tmp_path / str(k)
        assert run(folder, folder / "registered/two.ply", *words, "--seed", seed, "--out", out).exit_code == 0
        drawn.append((out / "samples/sample_1.ply").read_bytes())
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    "words", [(), ("--missing", "right", "--region", "x.txt"), ("--missing", "right", "--template", "t.ply")]
)
def test_contradicting_options_are_usage_errors(folder, words):
    result = run(folder, folder / "registered/one.ply", *words)
    assert result.exit_code == 2
    assert "Usage" in result.stderr


def test_another_topology_is_refused(folder, tmp_path):
    mesh, _ = torso(edge=12.0)
    save_mesh(mesh, tmp_path / "other.ply")
    result = run(folder, tmp_path / "other.ply", "--missing", "right", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "breastmorph:" in result.stderr
    assert not (tmp_path / "out").exists()


def test_no_breast_at_all_is_refused(folder, tmp_path):
    flat, _ = torso(edge=10.0, size=0.0)
    save_mesh(flat, tmp_path / "flat.ply")
    result = run(folder, tmp_path / "flat.ply", "--missing", "right", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "no breast either" in result.stderr


@pytest.mark.slow
def test_a_plan_is_written_as_solids_of_the_volumes_that_are_shown(folder, tmp_path):
    import trimesh

    def planned(*words):
        words = ["plan", folder / "model.h5", *words, "--out", tmp_path, "--json"]
        return CliRunner().invoke(main, list(map(str, words)), catch_exceptions=False)

    (tmp_path / "removed-left.stl").write_text("of an earlier run")
    result = planned(folder / "registered/one.ply", "--side", "right")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    side = told["sides"][0]
    assert side["side"] == "right"
    assert side["sd_cc"] > 0.0
    assert "not the outcome of an operation" in told["note"]
    for part in ("added", "removed"):
        path = tmp_path / f"{part}-right.stl"
        if path.exists():
            solid = trimesh.load(path)  # in mm, though the scan is in cm
            assert solid.is_watertight
            assert solid.volume / 1000.0 == pytest.approx(side[f"{part}_cc"], abs=0.5, rel=1e-3)
    assert (tmp_path / "added-right.stl").exists()
    assert not (tmp_path / "removed-left.stl").exists()
    assert [one["kind"] for one in told["sections"]] == ["level", "upright"]
    shown = load_mesh(tmp_path / "thickness.ply")
    assert len(np.unique(shown.colors, axis=0)) > 20
    assert np.ptp(shown.vertices, axis=0).max() < 80.0  # cm
    assert (tmp_path / "handout.pdf").read_bytes().startswith(b"%PDF")
    refused = planned(folder / "registered/one.ply", "--side", "both", "--target", "mirrored")
    assert refused.exit_code == 2
