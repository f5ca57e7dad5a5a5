from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.paper.operated import OperatedExperiment
from breastmorph.paper.records import rounded
from breastmorph.paper.significance import Comparison, paired, resampled, resamples, unpaired
from breastmorph.paper.statements import all_statements


def test_a_planted_difference_of_pairs_is_found_where_the_spread_hides_it_from_an_unpaired_test():
    rng = np.random.default_rng(0)
    base = rng.normal(5.0, 2.0, size=40)
    found = paired(base + 0.2 + rng.normal(scale=0.1, size=40), base)
    assert found.clear()
    assert found.low < 0.2 < found.high
    assert found.low > 0
    assert not unpaired(base + 0.2, base).clear()


@pytest.mark.parametrize("seed", range(5))
def test_no_difference_is_rarely_found_where_there_is_none(seed):
    rng = np.random.default_rng(seed)
    found = [paired(rng.normal(size=30), rng.normal(size=30)).clear() for _ in range(40)]
    assert np.mean(found) < 0.2


def test_unknown_values_are_left_out_in_pairs_and_few_pairs_decide_nothing():
    first = np.array([1.0, np.nan, 3.0, 4.0, 5.0])
    found = paired(first, np.array([2.0, 2.0, np.nan, 5.0, 6.0]))
    assert found.n == 3
    assert found.difference == -1.0
    assert not found.clear()
    assert np.isnan(paired(np.full(3, np.nan), first[:3]).first)
    assert paired(first[3:].repeat(5), first[3:].repeat(5)).p == 1.0


def test_resampled_subjects_give_intervals_of_the_right_width():
    rng = np.random.default_rng(0)
    values = rng.normal(0.5, 1.0, size=80)
    drawn = resamples(80, 4000, seed=1)
    assert (drawn.sum(axis=1) == 80).all()
    means = drawn @ values / 80
    found = resampled(float(values.mean()), 0.0, means, 80)
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(80), rel=0.1)
    assert found.clear() == (found.low > 0)
    assert 0.0 < resampled(1.0, 0.0, np.ones(99), 5).p <= 0.02


def test_a_comparison_survives_its_record_with_what_is_not_known():
    unknown = paired(np.full(3, np.nan), np.zeros(3))
    back = Comparison.from_record(unknown.record())
    assert unknown.record()["p"] is None
    assert np.isnan(back.p)
    assert back.record() == unknown.record()
    assert back.p_text == back.effect_text("mm") == ""


def test_p_values_read_well():
    same = paired(np.zeros(8), np.zeros(8))
    texts = [replace(same, p=p).p_text for p in (1e-9, 0.0123, 0.4321, float("nan"))]
    assert texts == ["p < 0.001", "p = 0.012", "p = 0.43", ""]


def test_a_foreign_record_is_a_named_error():
    with pytest.raises(BreastMorphError, match="not a record of OperatedExperiment"):
        OperatedExperiment.from_record({"ids": []})
    with pytest.raises(BreastMorphError, match="not a record of Comparison"):
        Comparison.from_record({})


def test_experiments_that_were_not_run_have_no_statements():
    assert all_statements() == []


def test_rounding_keeps_files_small_and_has_no_negative_zero():
    assert str(rounded([-1e-12, 1.23456789])[0]) == "0.0"
    assert rounded([1.23456789])[0] == 1.234568
