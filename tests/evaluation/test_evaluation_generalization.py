"""Leave-one-out: the fast way equals the definition, also where cohorts are degenerate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breastmorph.evaluation.generalization import LeaveOneOut, leave_one_out
from breastmorph.foundation.errors import BreastMorphError
from small_cohort import random_shapes


def cohort(k: int, n: int, seed: int, falloff: float = 0.8) -> np.ndarray:
    """Shapes with a falling spectrum, (k, n, 3)."""
    rng = np.random.default_rng(seed)
    modes = rng.normal(size=(k + 2, n, 3)) * (20.0 * falloff ** np.arange(k + 2))[:, None, None]
    return rng.normal(scale=100.0, size=(n, 3)) + np.einsum("km,mnd->knd", rng.normal(size=(k, k + 2)), modes)


def naive(shapes: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """Residuals by the definition: a model of the others, subject by subject and count by count, (s, c, n, 3)."""
    groups = np.arange(len(shapes)) if groups is None else groups
    most = len(shapes) - np.bincount(groups).max() - 1
    out = []
    for subject in np.sort(np.unique(groups, return_index=True)[1]):
        others = shapes[groups != groups[subject]].astype(float)
        mean = others.mean(axis=0)
        _, singular, axes = np.linalg.svd((others - mean).reshape(len(others), -1), full_matrices=False)
        axes = axes[singular**2 > 1e-10 * max(singular[0] ** 2, 1e-300)]
        deviation = (shapes[subject] - mean).ravel()
        rows = []
        for m in range(most + 1):
            basis = axes[:m]
            rows.append((deviation - (basis @ deviation) @ basis).reshape(-1, 3))
        out.append(rows)
    return np.array(out)


def assert_equal_to_naive(shapes, groups=None, within=1e-4):
    inside = np.arange(shapes.shape[1]) % 3 == 0
    found = leave_one_out(shapes, {"whole": np.ones(len(inside), bool), "breast": inside}, groups=groups)
    lengths = np.linalg.norm(naive(shapes, groups), axis=3)
    assert np.abs(found["whole"].values - lengths.mean(axis=2)).max() < within
    assert np.abs(found["breast"].values - lengths[:, :, inside].mean(axis=2)).max() < within
    assert found["whole"].components.tolist() == list(range(lengths.shape[1]))


@given(st.integers(2, 9), st.integers(4, 60), st.integers(0, 10**6), st.sampled_from([0.3, 0.8, 1.0]))
def test_equal_to_the_definition(k, n, seed, falloff):
    assert_equal_to_naive(cohort(k, n, seed, falloff))


def duplicates():
    shapes = cohort(6, 300, 1)
    return np.concatenate([shapes, shapes[:3]])


def nearly_constant_with_an_outlier():
    rng = np.random.default_rng(5)
    shapes = rng.normal(scale=100, size=(300, 3)) + rng.normal(scale=1e-3, size=(7, 300, 3))
    shapes[2] += rng.normal(scale=50, size=(300, 3))
    return shapes


@pytest.mark.parametrize(
    "shapes",
    [
        duplicates(),
        cohort(3, 50, 2),
        np.repeat(cohort(1, 40, 3), 5, axis=0),
        np.concatenate([cohort(4, 100, 4), cohort(1, 100, 9)]),
        cohort(30, 8, 6),  # more subjects than coordinates
        nearly_constant_with_an_outlier(),
        cohort(5, 400, 7) + 5000.0,
    ],
    ids=["duplicates", "three", "constant", "outlier", "rank", "nearly constant", "far away"],
)
def test_equal_to_the_definition_for_degenerate_cohorts(shapes):
    assert_equal_to_naive(shapes)


def test_a_subject_and_its_mirror_image_are_left_out_together():
    shapes = cohort(5, 120, 8)
    both = np.concatenate([shapes, shapes * [-1.0, 1.0, 1.0]])
    assert_equal_to_naive(both, np.tile(np.arange(5), 2))


def test_mapped_single_precision_shapes_give_the_same(tmp_path):
    shapes = cohort(8, 700, 9).astype(np.float32)
    np.save(tmp_path / "shapes.npy", shapes)
    mapped = np.load(tmp_path / "shapes.npy", mmap_mode="r")
    assert_equal_to_naive(mapped)


def test_reconstructions_are_what_the_distances_are_measured_on():
    shapes = random_shapes(8, seed=3)
    folds = LeaveOneOut(shapes)
    counts = np.array([0, 2, 6])
    regions = {"whole": np.ones(shapes.shape[1], bool)}
    distances = folds.point_distances(regions, counts)[:, :, 0]
    for subject in range(8):
        gone = np.linalg.norm(folds.reconstructions(subject, counts) - shapes[subject], axis=2).mean(axis=1)
        assert gone == pytest.approx(distances[subject], abs=1e-4)


def test_a_subject_within_the_span_of_the_others_comes_back_whole():
    shapes = cohort(6, 200, 10)
    between = np.concatenate([shapes, shapes[:3].mean(axis=0)[None]])
    curve = leave_one_out(between, {"whole": np.ones(200, bool)})["whole"]
    assert curve.values[6, -1] < 1e-4
    assert curve.values[6, 0] > 1.0


def test_neither_pose_nor_order_of_the_subjects_matters():
    shapes = cohort(7, 300, 11)
    regions = {"whole": np.ones(300, bool)}
    turned = shapes[::-1] @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0] + [5.0, -3.0, 80.0]
    a, b = leave_one_out(shapes, regions)["whole"], leave_one_out(turned, regions)["whole"]
    assert a.values[::-1] == pytest.approx(b.values, abs=1e-4)
    assert a.sd == pytest.approx(np.std(a.values, axis=0, ddof=1))


def test_chosen_counts_are_those_of_the_whole_curve():
    shapes = cohort(9, 100, 12)
    regions = {"whole": np.ones(100, bool)}
    chosen = leave_one_out(shapes, regions, np.array([1, 4, 7]))["whole"]
    assert chosen.values == pytest.approx(
        leave_one_out(shapes, regions)["whole"].values[:, [1, 4, 7]], abs=1e-5
    )


def test_one_subject_is_a_named_error():
    with pytest.raises(BreastMorphError, match="too few to leave one out"):
        LeaveOneOut(cohort(1, 10, 0))
