"""What a prediction learns from left-out subjects: noise, share of the mirror image, uncertainty; and who they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breastmorph.clinical.left_out import LeftOut, best_choice
from breastmorph.clinical.prediction import deviation_of
from breastmorph.clinical.predictor import fit_predictor
from breastmorph.clinical.skin_points import Reading
from breastmorph.clinical.training_shapes import training_shapes
from breastmorph.cohort import Cohort
from breastmorph.cohort.review import review_cohort
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.geometry import Similarity, rotation_about, vertex_normals
from breastmorph.model.building import BuildParameters, build_model
from predicted_people import alike, model, predictor
from refusals import refused

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("weighted", [False, True])
def test_residuals_of_left_out_subjects_are_those_of_refitting(weighted):
    rng = np.random.default_rng(0)
    known, targets = rng.normal(size=(12, 30)), rng.normal(size=(12, 4))
    subjects = np.repeat(np.arange(6), 2)
    left_out = LeftOut.of(known @ known.T, subjects, rng.uniform(0.1, 3.0, 12) if weighted else None)
    w = left_out.weights
    assert np.allclose(w, 1.0) != weighted
    noise = 0.8
    residuals = left_out.residual_weights(noise) @ targets
    for subject in range(6):
        rest, own = subjects != subject, subjects == subject
        centre, mean = (np.average(part[rest], axis=0, weights=w[rest]) for part in (known, targets))
        a = known[rest] - centre
        solved = np.linalg.solve(
            a @ a.T + left_out.strength(noise) * np.diag(1.0 / w[rest]), targets[rest] - mean
        )
        refitted = targets[own] - mean - (known[own] - centre) @ a.T @ solved
        assert np.allclose(residuals[own], refitted)


def test_a_pair_that_differs_much_hardly_teaches_the_others():
    """Of 40 subjects one has a target far off; with weights by what is missed the others' slope comes out."""
    rng = np.random.default_rng(1)
    known = rng.normal(size=(40, 1))
    targets = 0.5 * known + 0.05 * rng.normal(size=(40, 1))
    known[0], targets[0] = 3.0, -8.0
    gram, subjects, noise = known @ known.T, np.arange(40), 0.01
    left_out = LeftOut.of(gram, subjects)

    def told(by: LeftOut) -> float:
        mean = np.average(known[:, 0], weights=by.weights)
        return float((by.solve((known[:, 0] - mean) * (2.0 - mean), noise) + by.weights / 40) @ targets[:, 0])

    assert abs(told(left_out) - 1.0) > 0.5
    for _ in range(4):
        squared = ((left_out.residual_weights(noise) @ targets) ** 2).mean(axis=1)
        left_out = LeftOut.of(gram, subjects, left_out.usual(squared, 1.0))
    assert abs(told(left_out) - 1.0) < 0.1
    assert left_out.weights[0] < 0.05


@pytest.mark.parametrize(("told", "expected"), [(True, "little"), (False, "much")])
def test_the_noise_is_small_where_the_known_tells_and_large_where_not(told, expected):
    rng = np.random.default_rng(3)
    known = rng.normal(size=(60, 5))
    targets = known @ rng.normal(size=(5, 7)) if told else rng.normal(size=(60, 7))
    left_out = LeftOut.of(known @ known.T, np.arange(60))
    noises = left_out.noises([1e-4, 1e-2, 1.0, 1e2])
    choice = best_choice(left_out, targets, np.zeros_like(targets), noises, [0.0])
    assert choice.noise == noises[0 if expected == "little" else -1]


def test_a_perfect_mirror_image_is_taken_whole():
    rng = np.random.default_rng(4)
    targets = rng.normal(size=(40, 6))
    left_out = LeftOut.of(np.eye(40), np.arange(40))
    mirrors = targets + 0.05 * rng.normal(size=targets.shape)
    choice = best_choice(left_out, targets, mirrors, left_out.noises([1e-2, 1.0]), [0.0, 0.5, 1.0])
    assert choice.mirror_share == 1.0


def test_a_left_out_subject_leaves_no_trace(breast_template, predictor):
    shape = model().instance(model().training.scores[4])
    with_her, without_her = predictor, predictor.without(4)
    breast = with_her.region.breast
    off = [
        np.linalg.norm(one.predict(shape).shape - shape, axis=1)[breast].mean()
        for one in (with_her, without_her)
    ]
    assert off[0] < off[1]
    others = build_model(
        Cohort.of(np.delete(alike(30, 1), 4, axis=0), breast_template), BuildParameters(keep_scores=True)
    )
    refitted = fit_predictor(others, "right", "points").predict(shape)
    apart = np.linalg.norm(refitted.shape - without_her.predict(shape).shape, axis=1)[breast].mean()
    assert apart < 0.15 * off[1]  # the common mean differs by one of thirty


def test_drawn_subjects_have_the_models_mean_and_variances():
    bare = replace(model(), training=None)
    drawn = training_shapes(bare, seed=3)
    scores = np.array([bare.project(drawn.shape(i)) for i in range(drawn.count)])
    assert drawn.count == 30
    assert np.allclose(scores.mean(axis=0), 0.0, atol=1e-2)
    assert np.allclose(np.cov(scores.T), np.diag(bare.variances), atol=2e-3 * bare.variances[0])


@pytest.mark.parametrize("keeps_scores", [True, False])
@pytest.mark.parametrize("evidence", ["points", "surface"])
def test_what_a_truncated_model_cut_off_is_noise_and_not_a_reason_to_refuse(
    keeps_scores, evidence, strangers
):
    few = model().truncate(12)
    few = few if keeps_scores else few.without_training()
    assert training_shapes(few).lost_variance == few.noise_variance > 0.0
    assert training_shapes(model()).lost_variance == 0.0
    one, breast = fit_predictor(few, "right", evidence), predictor().region.breast
    errors, covered = [], []
    for shape in strangers:
        found = one.predict(shape)  # none is refused
        assert not found.warnings
        error = ((shape - found.shape) * vertex_normals(found.shape, found.faces)).sum(axis=1)[breast]
        covered.append((np.abs(error) <= 1.96 * found.sd_normal[breast]).mean())
        errors.append(np.linalg.norm(shape - found.shape, axis=1)[breast].mean())
    by_all = [
        np.linalg.norm(shape - predictor(evidence).predict(shape).shape, axis=1)[breast].mean()
        for shape in strangers
    ]
    assert np.mean(covered) > 0.85
    assert np.mean(errors) < 1.6 * np.mean(by_all)


def test_what_a_truncated_model_cut_off_is_uncertain_in_measures_too(strangers):
    found = fit_predictor(model().truncate(1), "right", "points").predict(strangers[0])
    nipple = model().landmark_ids["nipple_right"]
    for axis in np.eye(3):
        along = deviation_of(Reading(0.0, np.array([nipple]), axis[None]), found)
        assert along >= np.sqrt(found.rest_variance) > 0.0
    whole = [deviation_of(Reading(0.0, np.array([nipple]), axis[None]), found) for axis in np.eye(3)]
    assert np.linalg.norm(whole) == pytest.approx(found.sd[nipple], rel=1e-5)


def test_a_copy_in_another_pose_counts_once(breast_template):
    shapes = alike(8, 1)
    turned = Similarity(rotation_about(np.array([0.0, 1.0, 0.0]), 4.0), np.array([30.0, 5.0, -9.0]))
    copy = np.round(turned.apply(shapes[2]), 2)
    found = build_model(
        Cohort.of(np.concatenate([shapes, [copy]]), breast_template), BuildParameters(keep_scores=True)
    )
    assert training_shapes(found).count == 8
    assert training_shapes(model()).count == 30


def test_without_stored_subjects_the_uncertainty_is_about_the_same(predictor, strangers):
    bare = fit_predictor(replace(model(), training=None), "right", "points")
    shape = strangers[3]
    here, there = predictor.predict(shape), bare.predict(shape)
    breast = here.region.breast
    assert "drawn" in there.source
    assert there.sd_normal[breast].mean() == pytest.approx(here.sd_normal[breast].mean(), rel=0.35)


def test_a_cohort_counts_as_the_models_own_subjects(breast_template, predictor, strangers):
    cohort = Cohort.of(alike(30, 1), breast_template)
    shape = strangers[3]
    subjects = training_shapes(model(), cohort)
    by_cohort = fit_predictor(model(), "right", "points", subjects=subjects).predict(shape)
    assert np.allclose(by_cohort.shape, predictor.predict(shape).shape, atol=0.05)


def test_models_of_few_subjects_are_refused(breast_template):
    few = build_model(Cohort.of(alike(3, 1), breast_template))
    with refused(count=3):
        fit_predictor(few, "right")


def test_a_cohort_of_patients_after_a_mastectomy_has_nobody_to_learn_from(breast_template):
    cohort = replace(Cohort.of(alike(6, 1), breast_template), absent=("left",) * 6)
    with pytest.raises(BreastMorphError, match="needs more than 0 subjects"):
        training_shapes(model(), cohort)
    assert review_cohort(cohort.chosen([])).warnings() == []
