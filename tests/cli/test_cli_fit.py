"""`breastmorph fit`: files in and out, units, and clear refusals that write nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial.transform import Rotation

import breastmorph as bm
from breastmorph.cli import main
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.building import build_model
from breastmorph.model.files import save_model
from breastmorph.model.fitting import points_of
from breastmorph.phantom import draw_cohort, scan_subject, topology, torso
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.raw_target import load_points, load_target
from breastmorph.scan.scan import Landmarks
from small_cohort import small_cohort

FIVE = ("sternal_notch", "nipple_left", "nipple_right", "lower_pole_left", "lower_pole_right")
OUTPUTS = {"fit.ply", "fit.stl", "fit.obj", "fit.json", "residuals.csv", "fit.png"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, and a member of its population as a turned point cloud with landmarks."""
    here = tmp_path_factory.mktemp("fit")
    model = build_model(small_cohort(k=12))
    save_model(model, here / "model.h5")
    pose = Similarity(
        Rotation.from_euler("xyz", [30, 160, -50], degrees=True).as_matrix(), np.array([90.0, 500, 40])
    )
    scores = np.random.default_rng(4).normal(size=model.n_components)
    mesh = model.mesh(pose.apply(model.instance(scores * model.deviations)))
    save_mesh(mesh, here / "scan.ply")
    rng = np.random.default_rng(0)
    points = points_of(mesh, 3000, rng).points + 0.3 * rng.normal(size=(3000, 3))
    np.savetxt(here / "cloud.xyz", points)
    np.savetxt(here / "metres.csv", points / 1000.0, delimiter=",", header="x,y,z", comments="")
    landmarks = Landmarks(tuple(model.landmark_ids), mesh.vertices[list(model.landmark_ids.values())])
    save_landmarks(landmarks, here / "all.json")
    save_landmarks(landmarks.only(FIVE), here / "five.json")
    save_landmarks(landmarks.transformed(Similarity(scale=0.001)), here / "metres.json")
    mirrored = Landmarks(landmarks.names, landmarks.points * np.array([-1.0, 1.0, 1.0]))
    save_landmarks(mirrored, here / "mirrored.json")
    np.savetxt(here / "mirrored.xyz", points * np.array([-1.0, 1.0, 1.0]))
    return here


def run(folder, out, scan, *more):
    return CliRunner().invoke(
        main, ["fit", str(folder / "model.h5"), str(folder / scan), "--out", str(out), *more]
    )


@pytest.mark.slow
def test_a_cloud_with_five_landmarks(folder, tmp_path):
    result = run(folder, tmp_path / "out", "cloud.xyz", "--landmarks", str(folder / "five.json"), "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.output)
    assert {path.name for path in (tmp_path / "out").iterdir()} == OUTPUTS
    truth, fit = load_mesh(folder / "scan.ply"), load_mesh(tmp_path / "out" / "fit.ply")
    assert np.array_equal(fit.faces, truth.faces)
    assert Surface(truth).closest(fit.vertices).distances.mean() < 0.6
    assert record["start"] == "set and found landmarks" if record["landmarks_found"] else "set landmarks"
    assert set(record["landmarks_set"]) == set(FIVE)
    assert len(record["coefficients"]) == len(record["scores"]) == 11
    assert (
        np.linalg.norm(np.array(record["landmarks"]["xiphoid"]) - fit.vertices, axis=1).min() < 1e-4
    )  # the file has 32 bits
    rows = (tmp_path / "out" / "residuals.csv").read_text().splitlines()
    assert len(rows) == 1 + truth.n_vertices
    assert (tmp_path / "out" / "fit.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_result_stays_in_the_files_unit(folder, tmp_path):
    result = run(folder, tmp_path / "out", "metres.csv", "--landmarks", str(folder / "metres.json"))
    assert result.exit_code == 0, result.output
    assert "unit taken as m" in result.output
    truth, fit = load_mesh(folder / "scan.ply"), load_mesh(tmp_path / "out" / "fit.stl")
    assert Surface(truth).closest(1000.0 * fit.vertices).distances.mean() < 0.6
    transform = Similarity.from_dict(json.loads((tmp_path / "out" / "fit.json").read_bytes())["transform"])
    assert transform.scale == pytest.approx(0.001, rel=0.1)


@pytest.mark.slow
def test_without_landmarks_and_with_few_components(tmp_path):
    scan = scan_subject(torso(draw_cohort(1, 5)[0]), np.random.default_rng(5))
    save_mesh(scan.mesh.with_vertices(scan.mesh.vertices[:, [1, 2, 0]] / 10.0), tmp_path / "torso.ply")
    save_model(bm.demo_model(), tmp_path / "model.h5")
    result = run(tmp_path, tmp_path / "out", "torso.ply", "--components", "8")
    assert result.exit_code == 0, result.output
    assert "begun from landmarks that the program found" in result.output
    fit = load_mesh(tmp_path / "out" / "fit.obj").vertices[:, [2, 0, 1]] * 10.0
    assert Surface(TriangleMesh(scan.points, topology())).closest(fit).distances.mean() < 6.0
    record = json.loads((tmp_path / "out" / "fit.json").read_bytes())
    assert not any(record["coefficients"][8:])
    assert not record["landmarks_set"]
    assert 0.0 < record["landmarks_found"]["nipple_left"] < 20.0


def bad_file(folder, name):
    rng = np.random.default_rng(0)
    sphere = rng.normal(size=(2000, 3))
    sphere *= 150.0 / np.linalg.norm(sphere, axis=1, keepdims=True)
    contents = {
        "sphere.xyz": "\n".join("{} {} {}".format(*point) for point in sphere),
        "empty.xyz": "",
        "blank.xyz": "\n\n",
        "nan.xyz": "nan nan nan\n" * 500,
        "three.xyz": "1 2 3\n400 5 6\n7 800 9\n",
        "words.csv": "this,is,no\ntable,of,points\n",
        "two.csv": "1,2\n3,4\n",
        "huge.xyz": "\n".join("{} {} {}".format(*point) for point in sphere * 1e5),
        "cut.ply": "ply\nformat ascii 1.0\nelement vertex 900\nproperty float x\nend_header\n1\n",
    }
    path = folder / name
    path.write_text(contents[name])
    return name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sphere.xyz", "no landmarks can be found"),
        ("empty.xyz", "empty"),
        ("blank.xyz", "no points"),
        ("nan.xyz", "not finite"),
        ("three.xyz", "too few"),
        ("words.csv", "no table of points"),
        ("two.csv", "no table of points"),
        ("huge.xyz", "no adult torso in mm, cm or m"),
        ("cut.ply", ""),
        ("missing.ply", "no such file"),
    ],
)
def test_bad_input_is_refused_in_words_and_leaves_nothing(folder, tmp_path, name, words):
    scan = name if name == "missing.ply" else bad_file(folder, name)
    result = run(folder, tmp_path / "out", scan)
    assert result.exit_code == 2
    assert words in result.output
    assert name in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_swapped_sides_and_a_wrong_unit_are_refused(folder, tmp_path):
    mirrored = run(folder, tmp_path / "a", "mirrored.xyz", "--landmarks", str(folder / "mirrored.json"))
    assert mirrored.exit_code == 2
    assert "sides swapped or file mirrored" in mirrored.output
    unit = run(folder, tmp_path / "b", "cloud.xyz", "--unit", "cm")
    assert unit.exit_code == 2
    assert "--unit" in unit.output
    elsewhere = run(folder, tmp_path / "c", "cloud.xyz", "--landmarks", str(folder / "mirrored.json"))
    assert elsewhere.exit_code == 2
    assert "off the points" in elsewhere.output
    assert not any((tmp_path / name).exists() for name in "abc")


@pytest.mark.parametrize(
    "text",
    ["1 2 3\n4 5 6\n", "x,y,z\n1,2,3\n4,5,6\n", "# made by hand\n2\n1\t2\t3\t9\n4\t5\t6\t9\n",
     "id;z;y;x\n7;3;2;1\n8;6;5;4\n", "// points\n1,2,3,255\n4,5,6,255\n"],
)  # fmt: skip
def test_tables_of_points(tmp_path, text):
    (tmp_path / "points.txt").write_text(text)
    assert np.array_equal(load_points(tmp_path / "points.txt"), [[1, 2, 3], [4, 5, 6]])


def test_a_mesh_file_without_faces_is_a_cloud_and_a_damaged_one_is_repaired_or_refused(folder, tmp_path):
    mesh = load_mesh(folder / "scan.ply")
    body = "\n".join("{} {} {}".format(*point) for point in mesh.vertices)
    head = f"ply\nformat ascii 1.0\nelement vertex {mesh.n_vertices}\n"
    head += "property double x\nproperty double y\nproperty double z\nend_header\n"
    (tmp_path / "cloud.ply").write_text(head + body + "\n")
    target = load_target(tmp_path / "cloud.ply", folder / "five.json")
    assert not isinstance(target.shape, TriangleMesh)
    assert np.allclose(target.shape, mesh.vertices)
    broken = mesh.vertices.copy()
    broken[:400] = np.nan
    save_mesh(mesh.with_vertices(broken), tmp_path / "broken.ply")
    with pytest.raises(BreastMorphError, match="too damaged"):
        load_target(tmp_path / "broken.ply")
