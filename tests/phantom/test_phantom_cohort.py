"""The drawn cohort: Table 1's marginals, independence of chest and breast, determinism."""

from dataclasses import astuple

import numpy as np
import pytest

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.phantom import draw_cohort


def column(cohort, read):
    return np.array([read(subject) for subject in cohort], dtype=float)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("read", "mean", "sd", "low", "high"),
    [
        (lambda s: s.age, 40.78, 14.30, 18.0, 83.0),
        (lambda s: s.bmi, 23.66, 3.57, 16.9, 38.3),
        (lambda s: s.left.volume, 477.0, 243.0, 71.0, 1259.0),
        (lambda s: s.right.volume, 481.0, 240.0, 80.0, 1609.0),
        (lambda s: abs(s.left.volume - s.right.volume), 80.0, 81.0, 0.0, 367.0),
    ],
    ids=["age", "bmi", "left", "right", "difference"],
)
def test_marginals_follow_table_1(seed, read, mean, sd, low, high):
    values = column(draw_cohort(110, seed), read)
    assert values.mean() == pytest.approx(mean, rel=0.06)
    assert values.std(ddof=1) == pytest.approx(sd, rel=0.12)
    assert values.min() >= low
    assert values.max() <= high
    # The range is used, not only its middle.
    assert values.min() < mean - 0.9 * sd
    assert values.max() > mean + 2.0 * sd


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_counts_follow_table_1(seed):
    cohort = draw_cohort(110, seed)
    assert sum(max(s.left.sag, s.right.sag) >= 1.0 for s in cohort) == 62  # ptosis
    assert sum(s.operated for s in cohort) == 72


def test_same_seed_same_cohort_and_another_seed_another():
    assert draw_cohort(12, 5) == draw_cohort(12, 5)
    assert draw_cohort(12, 5) != draw_cohort(12, 6)


@pytest.mark.slow
def test_chest_and_breast_vary_independently():
    cohort = draw_cohort(1500, 8)
    thorax = np.array([np.hstack(astuple(s.thorax)) for s in cohort])[:, 1:]  # adiposity follows the BMI
    breast = np.array([np.hstack(astuple(s.left)) for s in cohort])
    breast = breast[:, np.ptp(breast, axis=0) > 0]  # the areola is as high in all
    n = len(cohort)
    scores = [(x - x.mean(axis=0)) / x.std(axis=0) for x in (thorax, breast)]
    correlation = scores[0].T @ scores[1] / n
    # Independent columns correlate like noise of variance 1/n; a single planted link of 0.2 fails this.
    assert np.sqrt((correlation**2).mean()) == pytest.approx(1.0 / np.sqrt(n), rel=0.1)
    assert np.abs(correlation).max() < 5.0 / np.sqrt(n)


def test_body_mass_and_volume_are_weakly_linked_as_in_life():
    cohort = draw_cohort(600, 3)
    r = np.corrcoef(column(cohort, lambda s: s.bmi), column(cohort, lambda s: s.left.volume))[0, 1]
    assert 0.15 < r < 0.55
    fat = column(cohort, lambda s: s.thorax.adiposity)
    assert np.corrcoef(column(cohort, lambda s: s.bmi), fat)[0, 1] > 0.9


def test_operated_breasts_are_fuller_above_rounder_and_sag_less():
    cohort = draw_cohort(400, 3)
    operated = column(cohort, lambda s: s.operated) > 0
    for read, sign in (
        (lambda s: s.left.upper_fullness, 1),
        (lambda s: s.left.roundness, 1),
        (lambda s: s.left.sag, -1),
    ):
        values = column(cohort, read)
        spread = values.std()
        assert sign * (values[operated].mean() - values[~operated].mean()) > 0.4 * spread


def test_sides_of_one_subject_are_alike_but_not_equal():
    cohort = draw_cohort(300, 2)
    for name in ("fold", "lateral", "nipple_up", "sag"):
        left = column(cohort, lambda s, name=name: getattr(s.left, name))
        right = column(cohort, lambda s, name=name: getattr(s.right, name))
        assert 0.5 < np.corrcoef(left, right)[0, 1] < 0.999


def test_one_sided_subjects_are_marked():
    cohort = draw_cohort(10, 1, one_sided=4)
    assert [bool(s.absent) for s in cohort] == [False] * 6 + [True] * 4
    assert {s.absent for s in cohort} == {"", "left", "right"}


@pytest.mark.parametrize(("n", "one_sided"), [(0, 0), (3, 4), (3, -1)])
def test_impossible_cohorts_are_refused(n, one_sided):
    with pytest.raises(BreastMorphError, match="cannot be"):
        draw_cohort(n, 1, one_sided)
