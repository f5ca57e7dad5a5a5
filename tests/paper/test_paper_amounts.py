from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from breast_cohort import breast_shapes
from breastmorph.cohort import Cohort
from breastmorph.evaluation.generalization import leave_one_out
from breastmorph.evaluation.specificity import specificity
from breastmorph.evaluation.training_set import training_set
from breastmorph.model.building import build_model
from breastmorph.paper.data_amount import (
    DataAmountExperiment,
    DataAmountParameters,
    compare_amounts,
    subset_sizes,
)
from breastmorph.paper.statements import amount_statements
from small_cohort import small_cohort

pytestmark = pytest.mark.slow

QUICK = DataAmountParameters(samples=60)


@pytest.fixture(scope="module")
def cohort(breast_template):
    return Cohort.of(breast_shapes(32), breast_template)


@pytest.fixture(scope="module")
def result(cohort):
    return compare_amounts(cohort, QUICK)


@pytest.mark.parametrize(
    ("subjects", "wanted", "sizes"),
    [
        (110, (), (30, 60, 90)),
        (100, (), (30, 60, 90)),
        (55, (), (15, 30, 45)),
        (20, (), (5, 11, 16)),
        (12, (), (7, 10)),
        (40, (10, 20, 40, 80, 2), (10, 20)),
        (11, (), ()),
        (5, (), ()),
    ],
)
def test_subsets_are_the_papers_or_in_proportion(subjects, wanted, sizes):
    assert subset_sizes(subjects, wanted) == sizes


def test_the_whole_cohort_is_what_plain_metrics_say(cohort, result):
    model = build_model(cohort)
    training = training_set(model, cohort)
    whole = {"whole": np.ones(model.n_vertices, bool)}
    (everybody,) = result.amounts[-1].draws
    plain = leave_one_out(training.shapes, whole)["whole"]
    assert everybody.generalization == pytest.approx(plain.values, abs=1e-6)
    near = specificity(model, training.shapes, whole, QUICK.samples, QUICK.seed)["whole"]
    assert everybody.specificity == pytest.approx(near.mean, abs=1e-5)
    assert everybody.sampled == pytest.approx(near.values[:, result.common - 1], abs=1e-5)


def test_draws_are_subsets_that_differ(result):
    for amount in result.amounts[:-1]:
        assert len(amount.draws) == 3
        chosen = [tuple(draw.subjects) for draw in amount.draws]
        assert len(set(chosen)) == 3
        assert all(len(set(one)) == amount.size for one in chosen)
    assert result.common == result.amounts[0].size - 2
    assert result.amounts[0].draws[0].generalization.shape == (result.amounts[0].size, result.common + 1)


def test_more_scans_are_found_to_be_better(result):
    compact, better, nearly, _ = amount_statements(result)
    assert compact.holds == better.holds == "yes"
    assert better.comparison.low > 0
    assert better.comparison.p < 0.05
    means = [amount.curve("generalization")[1][result.common] for amount in result.amounts]
    assert means[0] > means[-1]
    assert nearly.comparison.difference < better.comparison.difference


def test_more_scans_of_the_same_people_are_no_gain(breast_template):
    base = breast_shapes(4)
    rng = np.random.default_rng(0)
    again = np.repeat(base, 6, axis=0) + rng.normal(scale=0.1, size=(24, *base.shape[1:]))
    found = compare_amounts(Cohort.of(again, breast_template), replace(QUICK, sizes=(18, 21)))
    _, better, nearly, _ = amount_statements(found)
    assert nearly.holds == "yes"
    assert abs(better.comparison.difference) < 0.01


def test_a_subjects_error_is_the_mean_over_the_draws_it_is_in(result):
    amount = result.amounts[0]
    values = amount.of_subjects(32, 2)
    seen = np.zeros(32, bool)
    for draw in amount.draws:
        seen[draw.subjects] = True
    assert np.array_equal(np.isfinite(values), seen)
    subject = int(amount.draws[0].subjects[0])
    own = [
        draw.generalization[list(draw.subjects).index(subject), 2]
        for draw in amount.draws
        if subject in draw.subjects
    ]
    assert values[subject] == pytest.approx(np.mean(own))


def test_one_seed_decides_and_the_record_holds_everything():
    few = small_cohort(14)
    quick = DataAmountParameters(samples=10, draws=2)
    first, again, other = (compare_amounts(few, replace(quick, seed=seed)) for seed in (1, 1, 2))
    assert first.record() == again.record()
    assert first.record()["amounts"] != other.record()["amounts"]
    back = DataAmountExperiment.from_record(json.loads(json.dumps(first.record(), allow_nan=False)))
    assert back.record() == first.record()
    assert repr(amount_statements(back)) == repr(amount_statements(first))  # nan is not equal to itself


def test_too_few_subjects_are_a_result_with_a_reason():
    few = replace(small_cohort(6), absent=("left", "", "", "", "", ""))
    found = compare_amounts(few, QUICK)
    assert "5 subjects" in found.impossible
    assert {statement.holds for statement in amount_statements(found)} == {"not testable"}
    assert DataAmountExperiment.from_record(found.record()).record() == found.record()
