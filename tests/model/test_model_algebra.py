"""The algebra of the shape model: properties that hold for any model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.model.shape_model import condition
from refusals import refused
from small_cohort import built, moved, random_shapes, small_cohort


@pytest.fixture(scope="module")
def model():
    return built(small_cohort(k=12), keep_scores=True)


def coefficients(model, seed=3):
    return np.random.default_rng(seed).standard_normal(model.n_components) * model.deviations


def total_variance(model):
    return float((model.vertex_deviations() ** 2).sum())


def test_the_basis_is_orthonormal_and_variances_fall(model):
    products = model.basis.T.astype(float) @ model.basis
    assert np.allclose(products, np.eye(model.n_components), atol=1e-5)
    assert (np.diff(model.variances) <= 0).all()


def test_projecting_an_instance_gives_its_coefficients(model):
    c = coefficients(model)
    assert np.allclose(model.project(model.instance(c)), c, atol=1e-5 * np.abs(c).max())


def test_fewer_coefficients_leave_the_rest_at_zero(model):
    assert np.allclose(model.instance([50.0]), model.instance([50.0] + [0.0] * (model.n_components - 1)))


def test_training_shapes_are_reproduced_from_any_pose():
    shapes = random_shapes(k=12)
    cohort = small_cohort(k=12)
    model = built(cohort, keep_scores=True)
    for scores, scale, shape in zip(
        model.training.scores, model.training.scales, moved(shapes, seed=5), strict=True
    ):
        to_model = model.align(shape)
        found = model.project(to_model.apply(shape))
        assert np.allclose(found, scores, atol=0.01)
        back = to_model.inverse().apply(model.instance(found))
        assert np.abs(back - shape).max() < 2e-3
        assert model.training.scales.min() <= scale


def test_samples_have_the_models_mean_and_variances(model):
    rng = np.random.default_rng(0)
    drawn = np.array([model.project(model.drawn(rng)) for _ in range(2000)])
    assert np.allclose(drawn.mean(axis=0) / model.deviations, 0.0, atol=0.1)
    assert np.allclose(drawn.std(axis=0) / model.deviations, 1.0, atol=0.08)


def test_covariances_equal_those_of_the_full_matrix(model):
    noisy = replace(model, noise_variance=0.25)
    rows = model.basis.astype(float) * model.deviations
    full = rows @ rows.T + 0.25 * np.eye(len(rows))
    assert np.allclose(noisy.covariances(np.array([4, 9]))[1], full[27:30, 27:30], atol=1e-4)
    assert np.allclose(noisy.covariance(4, 9), full[12:15, 27:30], atol=1e-4)
    assert np.allclose(noisy.covariance(4, 4), full[12:15, 12:15], atol=1e-4)
    assert np.allclose(noisy.vertex_deviations() ** 2, np.diag(full).reshape(-1, 3).sum(axis=1), rtol=1e-5)
    along = np.tile([0.0, 0.6, 0.8], (model.n_vertices, 1))
    expected = along[7] @ full[21:24, 21:24] @ along[7]
    assert noisy.vertex_deviations(along)[7] ** 2 == pytest.approx(expected, rel=1e-5)


def test_posterior_of_all_points_with_little_noise_is_the_shape(model):
    shape = model.instance(coefficients(model))
    found = model.posterior(shape, np.arange(model.n_vertices), 1e-6)
    assert np.abs(found.mean - shape).max() < 1e-3
    assert found.vertex_deviations().max() < 0.01


def test_posterior_equals_the_printed_formula_with_the_scaled_basis(model):
    ids, noise = np.array([3, 50, 200]), 2.0
    points = model.instance(coefficients(model))[ids]
    q_all = model.basis.astype(float) * model.deviations
    known = q_all.reshape(-1, 3, model.n_components)[ids].reshape(-1, model.n_components)
    inverse = np.linalg.inv(known.T @ known + noise * np.eye(model.n_components))
    mean = model.mean.ravel() + q_all @ inverse @ known.T @ (points - model.mean[ids]).ravel()
    covariance = noise * q_all @ inverse @ q_all.T
    found = model.posterior(points, ids, noise)
    rows = found.basis.astype(float) * found.deviations
    assert np.allclose(found.mean.ravel(), mean, atol=1e-4)
    assert np.allclose(rows @ rows.T, covariance, atol=1e-3)


@pytest.mark.parametrize("noise", [1e-12, 1e-3, 1.0, 1e6])
def test_posterior_variance_never_exceeds_the_priors(model, noise):
    ids = np.array([10, 300])
    found = model.posterior(model.mean[ids] + 3.0, ids, noise)
    assert (found.vertex_deviations() <= model.vertex_deviations() * (1 + 1e-5)).all()
    products = found.basis.T.astype(float) @ found.basis
    assert np.allclose(products, np.eye(found.n_components), atol=1e-5)


def test_posterior_with_hardly_any_noise_meets_few_points_exactly(model):
    ids = np.array([10, 300])
    wanted = model.instance(coefficients(model))[ids]
    found = model.posterior(wanted, ids, 1e-12)
    assert np.allclose(found.mean[ids], wanted, atol=1e-3)
    far = np.argmax(np.linalg.norm(model.mean - model.mean[10], axis=1))
    assert found.vertex_deviations()[far] > 0.2 * model.vertex_deviations()[far]


def test_more_points_leave_less_variance_and_each_point_may_have_its_own_noise(model):
    shape = model.instance(coefficients(model))
    left = [total_variance(model.posterior(shape[:n], np.arange(n), 1.0)) for n in (1, 5, 50, 200)]
    assert left == sorted(left, reverse=True)
    ids = np.array([10, 300])
    mixed = model.posterior(shape[ids], ids, np.array([1e-6, 1e6]))
    only_first = model.posterior(shape[ids[:1]], ids[:1], 1e-6)
    assert np.allclose(mixed.mean, only_first.mean, atol=0.05)


def test_posteriors_one_after_the_other_equal_one_of_both(model):
    shape, (a, b) = model.instance(coefficients(model)), (np.array([10, 40]), np.array([300]))
    both = model.posterior(shape[np.r_[a, b]], np.r_[a, b], 0.5)
    chained = model.posterior(shape[a], a, 0.5).posterior(shape[b], b, 0.5)
    assert np.allclose(chained.mean, both.mean, atol=1e-3)
    assert np.allclose(chained.vertex_deviations(), both.vertex_deviations(), atol=1e-3)


def test_no_points_change_nothing(model):
    found = model.posterior(np.empty((0, 3)), np.empty(0, int), 1.0)
    assert np.allclose(found.mean, model.mean)
    assert np.allclose(found.variances, model.variances, rtol=1e-6)


def test_conditioning_is_stable_where_the_normal_equations_are_not():
    row = np.array([[1e3, 0.0], [1e3, 0.0]])
    mean, half = condition(row, np.array([1.0, 1.0]), np.full(2, 1e-20))
    assert mean == pytest.approx([1e-3, 0.0])
    assert np.linalg.norm(half[1]) == pytest.approx(1.0)


def test_truncation_is_monotone(model):
    shape = model.mean + 3.0 * np.random.default_rng(1).standard_normal(model.mean.shape)
    errors, held = [], []
    for count in range(model.n_components + 1):
        part = model.truncate(count)
        errors.append(np.linalg.norm(part.instance(part.project(shape)) - shape))
        held.append(part.variances.sum())
        assert total_variance(part) == pytest.approx(total_variance(model), rel=1e-5)
        assert part.training.scores.shape[1] == count
    assert (np.diff(errors) <= 1e-6).all()
    assert (np.diff(held) > 0).all()


@pytest.mark.parametrize("share", [0.5, 0.9, 1.0])
def test_truncation_by_variance_takes_as_few_as_hold_the_share(model, share):
    count = model.truncate(variance=share).n_components
    sums = np.cumsum(model.variances) / model.variances.sum()
    assert sums[count - 1] >= share - 1e-9
    assert count == 1 or sums[count - 2] < share


def test_marginal_is_the_model_of_those_vertices(model):
    ids = np.array([600, 5, 77, 300])
    part = model.marginal(ids)
    rows = (
        model.basis.astype(float).reshape(-1, 3, model.n_components)[ids].reshape(12, -1) * model.deviations
    )
    own = part.basis.astype(float) * part.deviations
    assert np.allclose(own @ own.T, rows @ rows.T, atol=1e-3)
    assert np.allclose(part.mean, model.mean[ids])
    assert np.allclose(part.basis.T @ part.basis, np.eye(part.n_components), atol=1e-5)
    expected = (model.mean + (model.basis @ model.training.scores[2]).reshape(-1, 3))[ids]
    assert np.allclose(part.instance(part.training.scores[2]), expected, atol=1e-3)


def test_marginal_keeps_faces_landmarks_and_symmetry_among_its_vertices(model):
    ids = np.flatnonzero(model.mean[:, 1] > 0)
    part = model.marginal(np.isin(np.arange(model.n_vertices), np.union1d(ids, model.mirror[ids])))
    assert 0 < len(part.faces) < len(model.faces)
    for name, vertex in part.landmark_ids.items():
        assert np.array_equal(part.mean[vertex], model.mean[model.landmark_ids[name]])
    assert np.array_equal(part.mirror[part.mirror], np.arange(part.n_vertices))
    assert model.marginal(ids[:-20]).mirror is None


def test_transform_moves_instances_and_keeps_coefficients_meaning(model):
    move = Similarity(rotation_about(np.array([1.0, 2.0, 0.5]), 35.0), np.array([5.0, -3.0, 8.0]), 0.001)
    found = model.transform(move)
    c = coefficients(model)
    assert np.allclose(found.instance(c * 0.001), move.apply(model.instance(c)), atol=1e-6)
    assert np.allclose(found.training.scales * 0.001, model.training.scales)
    assert np.allclose(found.vertex_deviations(), 0.001 * model.vertex_deviations(), rtol=1e-4)


def test_distance_plausibility_and_limits_of_a_shape(model):
    c = np.zeros(model.n_components)
    c[:2] = np.array([3.0, -4.0]) * model.deviations[:2]
    assert model.mahalanobis(c) == pytest.approx(5.0)
    assert model.plausibility(np.zeros(3)) == 1.0 > model.plausibility(c) > 0.0
    assert np.allclose(model.limited(c)[:2] / model.deviations[:2], [3.0, -3.0])
    flat = replace(model, variances=np.zeros(model.n_components))
    assert flat.mahalanobis(np.zeros(model.n_components)) == 0.0
    assert flat.mahalanobis(c) == np.inf


def test_a_model_cannot_be_changed(model):
    for array in (model.mean, model.basis, model.variances, model.faces, model.mirror):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError):
        model.landmark_ids["xiphoid"] = 3
    assert model.with_landmark_ids({"navel": 7}).landmark_ids["navel"] == 7
    assert "navel" not in model.landmark_ids


def test_landmarks_are_completed_under_their_common_names(model):
    found = model.with_landmark_ids({"XI": 3, "N-L": 4})
    assert (found.landmark_ids["xiphoid"], found.landmark_ids["nipple_left"]) == (3, 4)
    with refused(kind=LandmarkProblem, label="elbow"):
        model.with_landmark_ids({"elbow": 3})
    with refused(kind=LandmarkProblem, name="xiphoid", vertex=646):
        model.with_landmark_ids({"xiphoid": model.n_vertices})


def test_what_does_not_fit_is_refused(model, small_template):
    ids = np.array([1, 2])
    refused = [
        lambda: model.instance(np.zeros(model.n_components + 1)),
        lambda: model.truncate(model.n_components + 1),
        lambda: model.truncate(variance=1.5),
        lambda: model.truncate(),
        lambda: model.posterior(model.mean[ids], ids, 0.0),
        lambda: model.posterior(model.mean[ids], np.array([1, model.n_vertices]), 1.0),
        lambda: model.posterior(model.mean[:3], ids, 1.0),
        lambda: model.posterior(np.full((2, 3), np.nan), ids, 1.0),
        lambda: model.marginal(np.array([1, 1])),
        lambda: model.marginal(np.array([-1, 2])),
        lambda: replace(model, variances=-model.variances),
        lambda: replace(model, mean=model.mean[:-1]),
        lambda: replace(model, faces=model.faces + 1),
    ]
    for call in refused:
        with pytest.raises(BreastMorphError):
            call()
    assert small_template.mesh.n_vertices == model.n_vertices
