"""Specificity: the pruned search equals the definition, samples are nested, nothing depends on the order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breastmorph.evaluation.generalization import surface_specificity
from breastmorph.evaluation.specificity import draw_coefficients, spatial_order, specificity
from breastmorph.mesh.closest import Surface
from breastmorph.model.building import build_model
from breastmorph.model.shape_model import ShapeModel
from refusals import refused
from small_cohort import random_shapes, small_cohort


def model_of(shapes: np.ndarray) -> ShapeModel:
    mean = shapes.mean(axis=0)
    rows = (shapes - mean).reshape(len(shapes), -1)
    _, singular, axes = np.linalg.svd(rows, full_matrices=False)
    q = max(min(len(shapes) - 1, int((singular > 1e-9).sum())), 1)
    return ShapeModel(
        mean, axes[:q].T.copy(), singular[:q] ** 2 / (len(shapes) - 1), np.zeros((0, 3), np.int64)
    )


def naive(model: ShapeModel, shapes, inside, samples, seed) -> np.ndarray:
    """Every sample with every count against every shape, (samples, q)."""
    drawn = draw_coefficients(model, samples, seed)
    return np.array(
        [
            [
                np.linalg.norm((model.instance(row[:m]) - shapes)[:, inside], axis=2).mean(axis=1).min()
                for m in range(1, model.n_components + 1)
            ]
            for row in drawn
        ]
    )


def assert_equal_to_naive(model, shapes, samples=12, seed=3):
    n = shapes.shape[1]
    regions = {"whole": np.ones(n, bool), "breast": np.arange(n) % 4 < 2}
    found = specificity(model, shapes, regions, samples, seed)
    for name, inside in regions.items():
        expected = naive(model, shapes, inside, samples, seed)
        assert np.abs(found[name].values - expected).max() < 1e-4


@given(st.integers(2, 12), st.sampled_from([5, 31, 300, 1025]), st.integers(0, 10**6))
def test_equal_to_the_definition(k, n, seed):
    rng = np.random.default_rng(seed)
    base, size = rng.normal(scale=100, size=(n, 3)), 15.0 * 0.7 ** np.arange(k)
    shapes = base + rng.normal(size=(k, n, 3)) * size[:, None, None]
    assert_equal_to_naive(model_of(shapes), shapes, seed=seed)


def test_equal_to_the_definition_on_smooth_torsos():
    shapes = random_shapes(15, seed=2)
    assert_equal_to_naive(model_of(shapes), shapes, samples=40)


@pytest.mark.parametrize("k", [2, 3, 8])
def test_duplicates_and_constant_cohorts(k):
    shapes = random_shapes(2, seed=4)[np.arange(k) % 2]
    assert_equal_to_naive(model_of(shapes), shapes)
    constant = np.repeat(shapes[:1], k, axis=0)
    still = ShapeModel(shapes[0], np.zeros((shapes[0].size, 1)), np.zeros(1), np.zeros((0, 3), np.int64))
    assert_equal_to_naive(still, constant)


def test_fewer_samples_and_fewer_components_are_the_first_of_the_same():
    shapes = random_shapes(8, seed=5)
    model = model_of(shapes)
    all_of_them = draw_coefficients(model, 20, seed=1)
    assert draw_coefficients(model, 6, seed=1) == pytest.approx(all_of_them[:6])
    assert draw_coefficients(model.truncate(3), 20, seed=1) == pytest.approx(all_of_them[:, :3])
    regions = {"whole": np.ones(shapes.shape[1], bool)}
    full = specificity(model, shapes, regions, 10)["whole"]
    few = specificity(model, shapes, regions, 10, components=np.array([2, 5]))["whole"]
    assert few.values == pytest.approx(full.values[:, [1, 4]], abs=1e-5)
    assert few.components.tolist() == [2, 5]


def test_deterministic_for_a_seed_and_blind_to_the_order_of_the_shapes():
    shapes = random_shapes(9, seed=6)
    model = model_of(shapes)
    regions = {"whole": np.ones(shapes.shape[1], bool)}
    one, again = (specificity(model, shapes, regions, 30, seed=7)["whole"].values for _ in range(2))
    assert np.array_equal(one, again)
    assert specificity(model, shapes[::-1], regions, 30, seed=7)["whole"].values == pytest.approx(
        one, abs=1e-5
    )
    assert not np.allclose(specificity(model, shapes, regions, 30, seed=8)["whole"].values, one)


def test_no_samples_is_a_named_error():
    shapes = random_shapes(4)
    with refused(samples=0):
        specificity(model_of(shapes), shapes, {"whole": np.ones(shapes.shape[1], bool)}, 0)


def test_spatial_order_keeps_neighbours_together_and_everyone_once():
    points = np.random.default_rng(0).uniform(0, 100, size=(1000, 3))
    order = spatial_order(points, 10)
    assert np.array_equal(np.sort(order), np.arange(1000))
    extent = np.ptp(points[order].reshape(100, 10, 3), axis=1).mean()
    assert extent < 0.5 * np.ptp(points.reshape(100, 10, 3), axis=1).mean()


def test_surface_specificity_is_the_nearest_of_the_mean_closest_point_distances():
    cohort = small_cohort(6, seed=8)
    model = build_model(cohort)
    shapes = cohort.array()
    breast = np.abs(model.mean[:, 0]) > 60
    counts = np.array([1, model.n_components])
    regions = {"whole": np.ones(len(breast), bool), "breast": breast}
    found = surface_specificity(model, shapes, regions, counts, samples=3, seed=2, vertices=10**6)
    by_points = specificity(model, shapes, regions, 3, 2, counts)
    drawn = draw_coefficients(model, 3, 2)
    for s in range(3):
        for c, count in enumerate(counts):
            surface = Surface(model.mesh(model.instance(drawn[s, :count])))
            distances = np.array([surface.closest(shape).distances for shape in shapes])
            assert found["whole"].values[s, c] == pytest.approx(distances.mean(axis=1).min())
            assert found["breast"].values[s, c] == pytest.approx(distances[:, breast].mean(axis=1).min())
    assert (found["whole"].values <= by_points["whole"].values + 1e-4).all()
    assert found["whole"].distance == "surface"
    assert by_points["whole"].distance == "point"
