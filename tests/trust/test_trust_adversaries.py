"""Numbers that try to break it: every adversary ends in a correct result or one clear sentence, never a traceback."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from breast_cohort import breast_model, breast_shapes
from breastmorph.cli import main
from breastmorph.clinical.training_shapes import training_shapes
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.cohort.review import copy_groups, review_cohort, without_copies
from breastmorph.evaluation.model_evaluation import EvaluationParameters, evaluate_model
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.files import load_model, save_model
from breastmorph.scan.landmark_files import save_landmarks
from small_cohort import moved, random_shapes, write_registered
from torso import torso


def run(*words):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def refused(*words):
    """The sentence with which a command refuses."""
    result = run(*words)
    assert result.exit_code == 2, result.output
    assert result.stderr.splitlines()[-1].startswith("breastmorph: "), result.stderr  # behind warnings
    return result.stderr


def build(folder, shapes, *options):
    write_registered(folder / "out", np.asarray(shapes))
    return "build", folder / "out", "-o", folder / "model.h5", *options


# --- landmarks and surfaces -------------------------------------------------------------------------------------------

POINTS = {name: np.array(point) for name, point in torso(edge=12.0)[1].items()}
LEFT = {name: POINTS[name.replace("right", "left")] + [3.0, 0.0, 0.0] for name in POINTS if "right" in name}
LANDMARKS = {
    "on one line": ({name: [0.0, 100.0 - 20 * i, 100.0] for i, name in enumerate(POINTS)}, "off the surface"),
    "all at one point": (dict.fromkeys(POINTS, POINTS["xiphoid"]), "sternal notch to xiphoid measures 0"),
    "notch on xiphoid": ({"sternal_notch": POINTS["xiphoid"]}, "sternal notch to xiphoid measures 0"),
    "nipple on nipple": ({"nipple_right": POINTS["nipple_left"]}, "left and right cannot be distinguished"),
    "pole on nipple": ({"lower_pole_left": POINTS["nipple_left"]}, "nipple to lower pole (left) 0 mm"),
    "all on one side": (LEFT, "left and right cannot be distinguished"),
    "in one plane": ({name: point * [1, 1, 0] for name, point in POINTS.items()}, "off the surface"),
    "not a number": ({"nipple_left": [np.nan, 0.0, 0.0]}, "not finite (nan)"),
    "infinite": ({"nipple_left": [np.inf, 0.0, 0.0]}, "not finite (inf)"),
    "beyond all numbers": ({"nipple_left": [1e300, 0.0, 0.0]}, "off the surface"),
}


def checked(folder, mesh, points):
    save_mesh(mesh, folder / "a.ply")
    plain = {name: [float(x) for x in point] for name, point in {**POINTS, **points}.items()}
    (folder / "a.json").write_text(json.dumps(plain))
    result = run("check", folder, "--json")
    return result.exit_code, json.loads(result.stdout)["scans"][0]


@pytest.mark.parametrize("name", LANDMARKS)
def test_degenerate_landmarks_are_refused_with_the_reason(name, tmp_path):
    points, says = LANDMARKS[name]
    exit_code, found = checked(tmp_path, torso(edge=12.0)[0], points)
    assert exit_code == 1
    assert says in json.dumps(found)


@pytest.mark.parametrize(
    "name",
    [
        *("no area", "one point", "a line", "a plane", "far vertex"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("copies", "apart")),
    ],
)
def test_degenerate_surfaces_are_repaired_or_refused(name, tmp_path):
    mesh = torso(edge=6.0)[0]
    points, faces, ok = mesh.vertices.copy(), mesh.faces, False
    if name == "no area":
        points[faces[:20].ravel()], ok = points[faces[0, 0]], True
    elif name == "far vertex":
        points[5] = 1e30
    elif name == "copies":
        faces, ok = np.concatenate([faces] * 3), True
    elif name == "apart":
        points, faces, ok = points[faces.ravel()], np.arange(faces.size).reshape(-1, 3), True
    else:
        points *= {"one point": [0, 0, 0], "a line": [0, 1, 0], "a plane": [1, 1, 0]}[name]
    exit_code, found = checked(tmp_path, TriangleMesh(points, faces), {})
    assert exit_code == (0 if ok else 1)
    assert found["verdict"] == ("repaired" if ok else "refused")


# --- cohorts ----------------------------------------------------------------------------------------------------------


def test_a_copied_subject_is_named_by_build_and_left_out_together_by_evaluate(tmp_path):
    shapes = random_shapes(8)
    twin = moved(shapes[2:3] * 1.1)  # the same scan under another name, in another pose and size
    result = run(*build(tmp_path, np.concatenate([shapes, twin]), "--json"))
    assert result.exit_code == 0
    assert "002, 008" in result.stderr
    assert json.loads(result.stdout)["warnings"]
    model, cohort = load_model(tmp_path / "model.h5"), load_cohort(tmp_path / "out")
    assert model.info["copies"] == 1
    quick = EvaluationParameters(samples=5, surface=False)
    with_copy = evaluate_model(model, cohort, quick)
    assert any("copies are left out together" in warning for warning in with_copy.warnings)
    # With her twin in the model she would be given back without error.
    worst = with_copy.generalization[0].values[:, -1]
    assert worst[2] > 0.5 * np.median(worst)
    assert worst[8] > 0.5 * np.median(worst)


def test_different_people_are_no_copies_and_nobody_is_doubted(small_template):
    cohort = Cohort.of(random_shapes(12), small_template)
    found = review_cohort(cohort)
    assert (found.copies, found.mirrored, found.unlike) == ((), (), ())
    assert without_copies(cohort) is cohort
    assert len(set(copy_groups(cohort))) == 12


def test_prediction_calibrates_on_every_subject_once(breast_template):
    shapes = breast_shapes(12)
    cohort = Cohort.of(np.concatenate([shapes, shapes[:3]]), breast_template)
    assert training_shapes(breast_model(12), cohort).count == 12
    kept = build_model(cohort, BuildParameters(keep_scores=True))
    assert len(kept.training.scores) == 15
    assert training_shapes(kept).count == 12


def test_a_mirrored_and_a_crumpled_subject_are_doubted_by_name(tmp_path):
    shapes = random_shapes(9)
    shapes[3] *= [-1.0, 1.0, 1.0]
    shapes[5] += np.random.default_rng(0).normal(scale=40.0, size=shapes[5].shape)
    result = run(*build(tmp_path, shapes))
    assert result.exit_code == 0
    assert "mirrored: 003" in result.stderr
    assert "unlike all others: 005" in result.stderr


@pytest.mark.parametrize(("factor", "says"), [(1e-3, "004 (0.000984 times)"), (1e3, "004 (983 times)")])
def test_a_subject_in_metres_among_millimetres_is_refused_by_name(factor, says, tmp_path):
    shapes = random_shapes(9)
    shapes[4] *= factor
    for option in ((), ("--rigid",)):
        folder = tmp_path / "".join(option or ("similar",))
        folder.mkdir()
        assert says in refused(*build(folder, shapes, *option))


def test_one_absurd_coordinate_is_refused_by_name(tmp_path):
    shapes = random_shapes(9)
    shapes[4, 100, 1] = 1e30
    assert "004" in refused(*build(tmp_path, shapes))


@pytest.mark.parametrize("value", [np.nan, pytest.param(np.inf, marks=pytest.mark.slow)])
def test_no_number_in_one_of_110(value, tmp_path):
    shapes = random_shapes(110)
    shapes[77, 5, 2] = value
    said = refused(*build(tmp_path, shapes))
    assert "077.ply" in said
    assert "no numbers" in said
    assert not (tmp_path / "model.h5").exists()


@pytest.mark.parametrize("kind", ["the same", "the same in other poses"])
def test_a_constant_cohort_has_no_model(kind, tmp_path):
    same = np.repeat(random_shapes(1), 5, axis=0)
    shapes = same if kind == "the same" else moved(same)
    assert "show no differences" in refused(*build(tmp_path, shapes))


def test_one_subject_is_too_few_and_two_are_enough(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert "more than 1 subject" in refused(*build(tmp_path / "one", random_shapes(1)))
    assert run(*build(tmp_path / "two", random_shapes(2))).exit_code == 0
    model, cohort = load_model(tmp_path / "two/model.h5"), load_cohort(tmp_path / "two/out")
    assert model.n_components == 1
    found = evaluate_model(model, cohort, EvaluationParameters(samples=5, surface=False))
    assert len(found.generalization[0].components) == 1  # the other one's shape, without a component


def test_more_components_than_subjects_gives_what_there_is(tmp_path):
    result = run(*build(tmp_path, random_shapes(5), "--components", 500, "--json"))
    assert json.loads(result.stdout)["components"] == 4


@pytest.mark.parametrize("share", ["0", "-1", "nan", "inf", "1.5"])
def test_shares_of_variance_that_do_not_exist(share, tmp_path):
    assert "above 0, at most 1" in refused(*build(tmp_path, random_shapes(4), "--variance", share))


def test_a_mesh_of_another_topology_is_named(tmp_path):
    words = build(tmp_path, random_shapes(4))
    path = tmp_path / "out/registered/002.ply"
    mesh = load_mesh(path)
    save_mesh(TriangleMesh(mesh.vertices, mesh.faces[:, [1, 2, 0]]), path)
    assert "002.ply: this mesh does not have the same triangles" in refused(*words)
    fewer = mesh.faces[(mesh.faces < mesh.n_vertices - 1).all(axis=1)]
    save_mesh(TriangleMesh(mesh.vertices[:-1], fewer), path)
    assert "002.ply: this mesh does not have the same triangles" in refused(*words)


def test_an_empty_table_chooses_nobody_and_keeps_no_column(tmp_path):
    words = build(tmp_path, random_shapes(4))
    table = tmp_path / "cohort.csv"
    table.write_text("id,bmi,operated\n" + "".join(f"{i:03d},,\n" for i in range(4)) + ",,\n,,\n")
    assert "no subject is left" in refused(*words, "--table", table, "--where", "bmi > 25")
    assert run(*words, "--table", table, "--keep-scores").exit_code == 0
    model = load_model(tmp_path / "model.h5")
    assert model.training is not None
    assert not model.training.columns
    table.write_text("id,bmi\n,\n,\n")
    assert "knows none of the cohort's scans" in refused(*words, "--table", table)


# --- models -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A usual model, one without variance, one without components."""
    folder = tmp_path_factory.mktemp("models")
    model = breast_model(scores=False)
    save_model(model, folder / "usual.h5")
    save_model(replace(model, variances=np.zeros_like(model.variances)), folder / "still.h5")
    save_model(model.truncate(0), folder / "empty.h5")
    return folder


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_coefficients_beyond_all_shapes(value, breast_model):
    with pytest.raises(BreastMorphError, match="no number, or beyond"):
        breast_model.instance([value])


def test_large_coefficients_are_extrapolated_and_called_implausible(breast_model):
    model = breast_model
    coefficients = np.full(3, 1e6)
    assert np.isfinite(model.instance(coefficients)).all()
    assert model.plausibility(coefficients) == 0.0
    assert (np.abs(model.limited(coefficients)) <= 3.0001 * model.deviations[:3]).all()


@pytest.mark.parametrize("noise", [1e-300, 1e-30, 1e-12, 1.0])
def test_points_that_contradict_each_other_are_met_halfway(noise, breast_model):
    model = breast_model
    ids = np.array([5, 5])
    points = model.mean[ids] + [[0.0, 0.0, 0.0], [30.0, 30.0, 30.0]]
    found = model.posterior(points, ids, noise)
    away = np.abs(found.mean[5] - model.mean[5] - 15.0).max()
    assert away < (0.5 if noise < 1e-3 else 5.0)
    assert np.abs(found.mean - model.mean).max() < 300.0


@pytest.mark.parametrize("noise", [0.0, -1.0, np.nan, np.inf])
def test_noise_that_does_not_exist(noise, breast_model):
    model = breast_model
    with pytest.raises(BreastMorphError, match="noise above 0"):
        model.posterior(model.mean[:2], np.array([0, 1]), noise)


def test_all_points_known_gives_them_back_and_none_known_gives_the_model(breast_model):
    model = breast_model
    shape = model.instance(1.5 * model.deviations)
    everything = model.posterior(shape, np.arange(model.n_vertices), 1e-4)
    assert np.abs(everything.mean - shape).max() < 0.05
    nothing = model.posterior(np.zeros((0, 3)), np.zeros(0, int), 1.0)
    np.testing.assert_allclose(nothing.mean, model.mean, atol=1e-5)
    np.testing.assert_allclose(nothing.variances, model.variances, rtol=1e-3)


WISHES = {
    ("SN-NL=nan",): "is no request",
    ("SN-NL=inf",): "is no request",
    ("SN-NL=",): "is no request",
    ("SN-NL=0",): "would be 0.0 mm",
    ("SN-NL=-5000",): "It is 2",
    ("SN-NL=5km",): "not measured in km",
    ("SN-NL=100000",): "out of reach",
    ("SN-NL=210", "SN-NL=220"): "asked for twice",
    ("SN-NL=150", "SN-NR=150", "NL-NR=400"): "cannot be attained",
    ("height=3",): "is not known here",
}


@pytest.mark.parametrize("wishes", WISHES, ids=" ".join)
def test_impossible_edits_are_refused_with_what_is_possible(wishes, models, tmp_path):
    asked = [word for wish in wishes for word in ("--set", wish)]
    said = refused("edit", models / "usual.h5", *asked, "--no-sheet", "--out", tmp_path)
    assert WISHES[wishes] in said
    assert not list(tmp_path.iterdir())


def test_holding_everything_leaves_nothing_to_change(models, tmp_path):
    hold = [word for region in ("left", "right", "thorax") for word in ("--hold", region)]
    said = refused("edit", models / "usual.h5", "--set", "SN-NL=+10", *hold, "--no-sheet", "--out", tmp_path)
    assert "cannot be attained" in said


def test_a_model_without_variance_draws_its_mean_and_cannot_be_edited(models, tmp_path, breast_model):
    assert run("sample", models / "still.h5", "-n", 1, "--out", tmp_path).exit_code == 0
    drawn = load_mesh(tmp_path / "sample_000.ply").vertices
    np.testing.assert_allclose(drawn, breast_model.mean, atol=1e-3)
    said = refused("edit", models / "still.h5", "--set", "SN-NL=+10", "--no-sheet", "--out", tmp_path)
    assert "the same in all shapes" in said


def test_a_model_without_components_says_so(models, tmp_path):
    said = refused("edit", models / "empty.h5", "--set", "SN-NL=+10", "--no-sheet", "--out", tmp_path / "e")
    assert "no components" in said
    skin, landmarks = torso(edge=12.0)
    np.savetxt(tmp_path / "cloud.xyz", skin.vertices)
    save_landmarks(landmarks, tmp_path / "cloud.json")
    words = ("fit", models / "empty.h5", tmp_path / "cloud.xyz", "--landmarks", tmp_path / "cloud.json")
    assert "no components" in refused(*words, "--out", tmp_path / "f")


CLOUDS = {
    "three points": (torso(edge=12.0)[0].vertices[:3], "too few"),
    "one point, many times": (np.ones((500, 3)), "too few"),
    "no numbers": (np.full((500, 3), np.nan), "not finite"),
    "a strip": (torso(edge=6.0)[0].vertices[:120], "does not look like the front of an adult torso"),
}


@pytest.mark.parametrize("name", CLOUDS)
def test_fits_to_nothing_are_refused(name, models, tmp_path):
    points, says = CLOUDS[name]
    np.savetxt(tmp_path / "cloud.xyz", points)
    assert says in refused("fit", models / "usual.h5", tmp_path / "cloud.xyz", "--out", tmp_path / "out")


def test_a_fit_to_a_plane_is_refused(models, tmp_path):
    grid = np.stack(np.meshgrid(np.linspace(-200, 200, 30), np.linspace(-200, 200, 30), [0.0]), axis=-1)
    np.savetxt(tmp_path / "cloud.xyz", grid.reshape(-1, 3))
    said = refused("fit", models / "usual.h5", tmp_path / "cloud.xyz", "--out", tmp_path / "out")
    assert "too far apart" in said


def test_predicting_everything_or_nothing_is_refused(models, tmp_path, breast_template):
    template = breast_template
    save_mesh(template.mesh, tmp_path / "scan.ply")
    marks = {name: [float(x) for x in point] for name, point in template.landmarks.items()}
    (tmp_path / "scan.json").write_text(json.dumps(marks))
    words = ["predict", models / "usual.h5", tmp_path / "scan.ply", "--landmarks", tmp_path / "scan.json"]
    for name, painted in (("all", range(template.mesh.n_vertices)), ("none", [])):
        (tmp_path / "region.txt").write_text("\n".join(str(vertex) for vertex in painted))
        result = run(*words, "--region", tmp_path / "region.txt", "--no-sheet", "--out", tmp_path / name)
        assert result.exit_code == 2, result.output
        assert "Traceback" not in result.output
        assert result.stderr.startswith("breastmorph: ")


def test_a_model_of_copies_only_is_no_model(small_template):
    shapes = np.repeat(random_shapes(2), 3, axis=0)
    model = build_model(Cohort.of(shapes, small_template))
    assert model.n_components == 1  # two people, however often they are there
    found = evaluate_model(
        model, Cohort.of(shapes, small_template), EvaluationParameters(samples=3, surface=False)
    )
    assert found.generalization[0].mean[-1] > 1.0
