"""Prediction: known skin stays, the rest is the likeliest, and its uncertainty is what is missed on left-out people."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breast_cohort import breast_model, breast_shapes, breast_template
from breastmorph.clinical.measure.volume import BreastVolumes
from breastmorph.clinical.patient import model_landmarks
from breastmorph.clinical.predict.leave_one_out import LeftOut, choose
from breastmorph.clinical.predict.missing_region import mirror_frame, missing_region, symmetry_plane
from breastmorph.clinical.predict.painted_region import load_painted
from breastmorph.clinical.predict.predicted_measures import predicted_measures
from breastmorph.clinical.predict.prediction import (
    BreastPredictor,
    PredictionParameters,
    is_gone,
    predict_breast,
)
from breastmorph.clinical.predict.seam import Seam
from breastmorph.clinical.predict.training_shapes import training_shapes
from breastmorph.cohort import Cohort
from breastmorph.errors import BreastMorphError, FileProblem, MeshProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.building import BuildParameters, build_model
from torso import torso


def alike(k: int, seed: int) -> np.ndarray:
    """People whose breasts are alike: what one side has, the other has nearly too."""
    shapes = breast_shapes(k, seed=seed)
    twin = mirror_frame(breast_model()).twin
    other = np.stack([twin.at(shape) for shape in shapes]) * [-1.0, 1.0, 1.0]
    return 0.75 * shapes + 0.25 * other


@cache
def model(k: int = 30):
    return build_model(Cohort.of(alike(k, 1), breast_template()), BuildParameters(keep_scores=True))


@cache
def predictor(evidence: str = "points", side: str = "right") -> BreastPredictor:
    return BreastPredictor(model(), side, evidence)


@cache
def strangers() -> np.ndarray:
    return alike(12, 77)


def flattened(shape: np.ndarray, side: str) -> np.ndarray:
    """The shape without a breast on one side: the template's flat twin there."""
    flat, _ = torso(edge=10.0, size=0.0)
    sign = 1.0 if side == "left" else -1.0
    own = sign * breast_template().mesh.vertices[:, 0] > 0
    return np.where(own[:, None], shape + flat.vertices - breast_template().mesh.vertices, shape)


# --- left-out subjects ------------------------------------------------------------------------------------------------


def test_residuals_of_left_out_subjects_are_those_of_refitting():
    rng = np.random.default_rng(0)
    known, targets = rng.normal(size=(12, 30)), rng.normal(size=(12, 4))
    subjects = np.repeat(np.arange(6), 2)
    left_out = LeftOut(known @ known.T, subjects)
    noise = 0.8
    residuals = left_out.residual_weights(noise) @ targets
    for subject in range(6):
        rest, own = subjects != subject, subjects == subject
        centre, mean = known[rest].mean(axis=0), targets[rest].mean(axis=0)
        a = known[rest] - centre
        solved = np.linalg.solve(a @ a.T + left_out.strength(noise) * np.eye(10), targets[rest] - mean)
        refitted = targets[own] - mean - (known[own] - centre) @ a.T @ solved
        assert np.allclose(residuals[own], refitted)


@pytest.mark.parametrize(("told", "expected"), [(True, "little"), (False, "much")])
def test_the_noise_is_small_where_the_known_tells_and_large_where_not(told, expected):
    rng = np.random.default_rng(3)
    known = rng.normal(size=(60, 5))
    targets = known @ rng.normal(size=(5, 7)) if told else rng.normal(size=(60, 7))
    left_out = LeftOut(known @ known.T, np.arange(60))
    noises = left_out.noises([1e-4, 1e-2, 1.0, 1e2])
    choice = choose(left_out, targets, np.zeros_like(targets), noises, [0.0])
    assert choice.noise == noises[0 if expected == "little" else -1]


def test_a_perfect_mirror_image_is_taken_whole():
    rng = np.random.default_rng(4)
    targets = rng.normal(size=(40, 6))
    left_out = LeftOut(np.eye(40), np.arange(40))
    mirrors = targets + 0.05 * rng.normal(size=targets.shape)
    choice = choose(left_out, targets, mirrors, left_out.noises([1e-2, 1.0]), [0.0, 0.5, 1.0])
    assert choice.mirror_share == 1.0


# --- regions, mirrors and seams ---------------------------------------------------------------------------------------


def test_the_plane_of_symmetry_is_found_in_any_pose():
    points = np.random.default_rng(1).normal(size=(50, 3)) * [40.0, 80.0, 25.0]
    turn = Similarity(
        Rotation.from_euler("xyz", [10, 25, -8], degrees=True).as_matrix(), np.array([5.0, 9.0, -3.0])
    )
    normal, offset = symmetry_plane(turn.apply(points), turn.apply(points * [-1.0, 1.0, 1.0]))
    expected = turn.rotation[:, 0]
    assert np.allclose(normal, expected)
    assert offset == pytest.approx(float(expected @ turn.translation))


def test_a_model_without_mirror_vertices_is_mirrored_all_the_same():
    assert model().mirror is None
    frame = mirror_frame(model())
    assert np.abs(frame.mirrored(frame.mean) - frame.mean).max() < 1.0
    shape = frame.to_frame.apply(model().instance([2.0 * model().deviations[0]]))
    assert np.linalg.norm(frame.mirrored(frame.mirrored(shape)) - shape, axis=1).mean() < 0.2


@pytest.mark.parametrize("side", ["left", "right"])
def test_regions_do_not_overlap_and_lie_on_their_side(side):
    frame = mirror_frame(model())
    region = missing_region(model(), frame, side)
    sign = 1.0 if side == "left" else -1.0
    assert (sign * frame.mean[region.missing, 0] > 0).all()
    assert (sign * frame.mean[region.healthy, 0] < 0).all()
    assert not (region.missing & region.thorax).any()
    assert not (region.healthy & region.thorax).any()
    assert region.missing[region.breast].all()
    assert region.missing[model().landmark_ids[f"nipple_{side}"]]
    assert region.thorax.sum() > 100


def test_a_seam_continues_smoothly_and_fades_out():
    mesh, _ = torso(edge=8.0)
    inside = np.linalg.norm(mesh.vertices - mesh.vertices[mesh.n_vertices // 2], axis=1) < 70.0
    seam = Seam(mesh, inside, 12.0)
    field = seam.continued(np.ones((len(seam.border), 2)))
    away = np.linalg.norm(mesh.vertices - mesh.vertices[mesh.n_vertices // 2], axis=1)[inside]
    assert np.allclose(field[:, 0], field[:, 1])
    assert field[away > 64.0].min() > 0.5  # next to the border it goes on
    assert np.abs(field[away < 25.0]).max() < 0.1  # in the middle it is gone
    assert np.allclose(seam.continued(np.zeros((len(seam.border), 3))), 0.0)


# --- the prediction ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("evidence", ["points", "surface"])
def test_known_skin_stays_exactly_and_missing_skin_does_not_matter(evidence):
    shape = strangers()[0]
    found = predictor(evidence).predict(shape)
    missing = found.region.missing
    assert np.array_equal(found.shape[~missing], shape[~missing])
    assert np.array_equal(found.mirrored[~missing], shape[~missing])
    assert (found.deviation[~missing] == 0).all()
    assert (found.deviation[missing] > 0).all()
    nonsense = shape.copy()
    nonsense[missing] += 500.0
    assert np.allclose(predictor(evidence).predict(nonsense).shape[missing], found.shape[missing])


def test_pose_and_size_of_the_scan_carry_over():
    shape = strangers()[1]
    turn = Rotation.from_euler("xyz", [5, -70, 12], degrees=True).as_matrix()
    move = Similarity(turn, np.array([100.0, -40.0, 900.0]), 1.15)
    here, there = predictor().predict(shape), predictor().predict(move.apply(shape))
    assert np.allclose(there.shape, move.apply(here.shape), atol=1e-3)
    assert np.allclose(there.mirrored, move.apply(here.mirrored), atol=1e-3)
    assert np.allclose(there.deviation, 1.15 * here.deviation, rtol=1e-3)
    assert np.allclose(there.normal_deviation, 1.15 * here.normal_deviation, rtol=1e-2, atol=1e-2)


def test_left_is_right_in_the_mirror():
    frame = mirror_frame(model())
    shape = frame.to_frame.apply(strangers()[2])
    right = predictor().predict(shape)
    left = predictor("points", "left").predict(frame.mirrored(shape))
    assert np.linalg.norm(frame.mirrored(left.shape) - right.shape, axis=1)[right.region.breast].mean() < 0.5


def test_strangers_are_predicted_better_than_by_mirroring_or_the_mean():
    errors = []
    for shape in strangers():
        found = predictor().predict(shape)
        breast = found.region.breast
        errors.append(
            [
                np.linalg.norm(candidate - shape, axis=1)[breast].mean()
                for candidate in (found.shape, found.mirrored, predictor().mean_shape(shape))
            ]
        )
    model_error, mirror_error, mean_error = np.mean(errors, axis=0)
    assert model_error < 0.9 * mirror_error
    assert model_error < 0.7 * mean_error


@pytest.mark.parametrize("evidence", ["points", "surface"])
def test_the_uncertainty_holds_for_strangers(evidence):
    shares = []
    for shape in alike(30, 500):
        found = predictor(evidence).predict(shape)
        breast = found.region.breast
        normals = vertex_normals(found.shape, found.faces)[breast]
        error = ((shape - found.shape)[breast] * normals).sum(axis=1)
        shares.append((np.abs(error) <= 1.96 * found.normal_deviation[breast]).mean())
    assert 0.90 <= np.mean(shares) <= 0.98


def test_a_left_out_subject_leaves_no_trace():
    shape = model().instance(model().training.scores[4])
    with_her, without_her = predictor(), predictor().without(4)
    breast = with_her.region.breast
    off = [
        np.linalg.norm(one.predict(shape).shape - shape, axis=1)[breast].mean()
        for one in (with_her, without_her)
    ]
    assert off[0] < off[1]
    others = build_model(
        Cohort.of(np.delete(alike(30, 1), 4, axis=0), breast_template()), BuildParameters(keep_scores=True)
    )
    refitted = predict_breast(others, shape, "right", absent=False)
    apart = np.linalg.norm(refitted.shape - without_her.predict(shape).shape, axis=1)[breast].mean()
    assert apart < 0.15 * off[1]  # the common mean differs by one of thirty


def test_drawn_subjects_have_the_models_mean_and_variances():
    bare = replace(model(), training=None)
    drawn = training_shapes(bare, seed=3)
    scores = np.array([bare.project(drawn.shape(i)) for i in range(drawn.count)])
    assert drawn.count == 30
    assert not drawn.real
    assert np.allclose(scores.mean(axis=0), 0.0, atol=1e-2)
    assert np.allclose(np.cov(scores.T), np.diag(bare.variances), atol=2e-3 * bare.variances[0])


def test_without_stored_subjects_the_uncertainty_is_about_the_same():
    bare = BreastPredictor(replace(model(), training=None), "right", "points")
    shape = strangers()[3]
    here, there = predictor().predict(shape), bare.predict(shape)
    breast = here.region.breast
    assert "drawn" in there.source
    assert there.normal_deviation[breast].mean() == pytest.approx(
        here.normal_deviation[breast].mean(), rel=0.35
    )


def test_a_cohort_counts_as_the_models_own_subjects():
    cohort = Cohort.of(alike(30, 1), breast_template())
    shape = strangers()[3]
    by_cohort = predict_breast(
        model(), shape, "right", absent=False, subjects=training_shapes(model(), cohort)
    )
    assert np.allclose(by_cohort.shape, predictor().predict(shape).shape, atol=0.05)


def test_surface_evidence_does_not_feel_points_that_slide_along_the_skin():
    shape = strangers()[5]
    mesh = TriangleMesh(shape, model().faces)
    normals = vertex_normals(mesh.vertices, mesh.faces)
    across = np.cross(normals, [0.0, 1.0, 0.0])
    moved = {}
    for evidence in ("points", "surface"):
        one = predictor(evidence)
        slid = shape + 2.0 * across * one.region.healthy[:, None]
        before, after = one.predict(shape), one.predict(slid)
        moved[evidence] = np.linalg.norm(after.shape - before.shape, axis=1)[one.region.breast].mean()
    # What is left is the mirror image, which slides along.
    assert moved["surface"] < moved["points"] + 2.0
    known = predictor("surface")
    slid = shape + 0.5 * across * known.region.healthy[:, None]
    lays = [known._known(known._laid(s)[1]) for s in (shape, slid)]
    assert np.abs(lays[1] - lays[0]).mean() < 0.1


def test_samples_are_as_wide_as_the_deviation_says():
    found = predictor().predict(strangers()[6])
    rng = np.random.default_rng(0)
    drawn = np.stack([found.sample(rng) for _ in range(400)])
    missing = found.region.missing
    assert np.array_equal(drawn[0][~missing], found.shape[~missing])
    wide = np.sqrt(((drawn - found.shape) ** 2).sum(axis=2).mean(axis=0))[missing]
    assert np.allclose(wide.mean(), found.deviation[missing].mean(), rtol=0.1)
    volumes = BreastVolumes(model().mean_mesh, model_landmarks(model()))
    sampled = np.std([volumes.cc(shape, "right") for shape in drawn])
    assert found.deviation_of(volumes.read(found.shape, "right")) == pytest.approx(sampled, rel=0.2)


def test_measures_come_with_their_standard_deviation():
    found = predictor().predict(strangers()[6])
    measures = {one.name: one for one in predicted_measures(model(), found)}
    assert {"volume", "NL-NR", "SN-NR", "projection-right"} <= set(measures)
    assert "SN-NL" not in measures  # of the known side
    ids = model().landmark_ids
    across = np.linalg.norm(found.shape[ids["nipple_left"]] - found.shape[ids["nipple_right"]])
    assert measures["NL-NR"].predicted == pytest.approx(across)
    assert all(one.deviation > 0 for one in measures.values())


def test_a_given_noise_is_used():
    found = BreastPredictor(model(), "right", "points", PredictionParameters(noise=7.5))
    assert found.choice.noise == 7.5


# --- a breast that is gone --------------------------------------------------------------------------------------------


def test_a_flat_side_is_recognised_by_its_volume():
    shape = strangers()[3]
    assert not is_gone(model(), shape, "right")
    assert is_gone(model(), flattened(shape, "right"), "right")
    assert predict_breast(model(), flattened(shape, "right"), "right").evidence == "surface"
    with pytest.raises(BreastMorphError, match="no breast either"):
        is_gone(model(), flattened(flattened(shape, "right"), "left"), "right")


def test_a_breast_grows_where_there_was_none():
    volumes = BreastVolumes(model().mean_mesh, model_landmarks(model()))
    for shape in strangers()[:4]:
        flat = flattened(shape, "right")
        found = predict_breast(model(), flat, "right", absent=True)
        assert volumes.cc(flat, "right") < 0.3 * volumes.cc(shape, "right")
        assert volumes.cc(found.shape, "right") == pytest.approx(volumes.cc(shape, "right"), rel=0.35)


# --- painted regions --------------------------------------------------------------------------------------------------


def test_a_painted_region_is_a_region():
    by_side = predictor()
    painted = BreastPredictor(model(), by_side.region.missing, "points")
    assert painted.region.side == "right"
    assert np.array_equal(painted.region.missing, by_side.region.missing)
    shape = strangers()[8]
    # The noise is chosen on all that is painted, not on the breast alone, so it may differ somewhat.
    apart = np.linalg.norm(painted.predict(shape).shape - by_side.predict(shape).shape, axis=1)
    assert (
        apart[by_side.region.breast].mean()
        < 0.5 * by_side.predict(shape).deviation[by_side.region.breast].mean()
    )


def test_painted_regions_in_files(tmp_path):
    wanted = np.zeros(model().n_vertices, bool)
    wanted[[3, 5, 200]] = True
    (tmp_path / "a.txt").write_text("3 5\n200\n")
    (tmp_path / "b.json").write_text(json.dumps([3, 5, 200]))
    colors = np.where(wanted[:, None], [220, 30, 30, 255], [200, 180, 170, 255]).astype(np.uint8)
    save_mesh(replace(model().mean_mesh, colors=colors), tmp_path / "c.ply")
    for name in ("a.txt", "b.json", "c.ply"):
        assert np.array_equal(load_painted(tmp_path / name, model().n_vertices), wanted)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", "3 five", "no vertex number"),
        ("a.txt", "999999", "does not exist"),
        ("a.txt", "-1", "does not exist"),
        ("a.txt", "\n\n", "no vertex is painted"),
        ("a.json", "[]", "no vertex is painted"),
    ],
)
def test_bad_painted_files_are_refused(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(FileProblem, match=words):
        load_painted(tmp_path / name, model().n_vertices)


def test_unpainted_meshes_are_refused(tmp_path):
    save_mesh(model().mean_mesh, tmp_path / "a.ply")
    with pytest.raises(FileProblem, match="no vertex colours"):
        load_painted(tmp_path / "a.ply", model().n_vertices)
    with pytest.raises(FileProblem, match="vertices, the model"):
        load_painted(tmp_path / "a.ply", 17)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_shapes_of_another_topology_are_refused():
    with pytest.raises(BreastMorphError, match="vertices for a model of"):
        predictor().predict(strangers()[0][:-1])


def test_another_unit_is_refused():
    with pytest.raises(MeshProblem, match="times as large"):
        predictor().predict(0.1 * strangers()[0])


def test_what_does_not_look_like_the_model_is_refused():
    shape = strangers()[0] + 40.0 * np.random.default_rng(0).normal(size=strangers()[0].shape)
    with pytest.raises(MeshProblem, match="does not look like the model"):
        predictor().predict(shape)


def test_an_unusual_torso_is_predicted_with_a_warning():
    healthy = predictor().region.healthy
    shape = strangers()[0] + 8.0 * np.sin(strangers()[0][:, [1]] / 3.0) * healthy[:, None]
    assert any("worse than the worst" in warning for warning in predictor().predict(shape).warnings)
    assert not predictor().predict(strangers()[0]).warnings


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("middle", "no side"),
        (np.zeros(5, bool), "painted vertices for a model"),
        (None, "is empty"),
        (True, "no thorax"),
    ],
)
def test_impossible_regions_are_refused(missing, words):
    if missing is None or missing is True:
        missing = np.full(model().n_vertices, missing is True)
    with pytest.raises(BreastMorphError, match=words):
        BreastPredictor(model(), missing)


def test_models_of_a_part_are_refused():
    part = build_model(Cohort.of(alike(8, 1), breast_template()), BuildParameters(part="left"))
    with pytest.raises(BreastMorphError, match="not one of whole torsos"):
        BreastPredictor(part, "right")


def test_models_of_few_subjects_are_refused():
    few = build_model(Cohort.of(alike(3, 1), breast_template()))
    with pytest.raises(BreastMorphError, match="too few"):
        BreastPredictor(few, "right")


def test_a_foreign_model_with_five_landmarks_will_do():
    five = ("sternal_notch", "nipple_left", "nipple_right", "lower_pole_left", "lower_pole_right")
    foreign = replace(
        model(), landmark_ids={name: model().landmark_ids[name] for name in five}, info={}, training=None
    )
    found = predict_breast(foreign, strangers()[0], "right")
    assert found.evidence == "points"
    assert found.region.missing[foreign.landmark_ids["nipple_right"]]
