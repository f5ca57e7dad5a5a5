from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from breast_cohort import breast_shapes
from breastmorph.cohort import Cohort
from breastmorph.evaluation.training_set import training_set
from breastmorph.model.building import build_model
from breastmorph.paper.operated import OperatedExperiment, OperatedParameters, compare_operated
from breastmorph.paper.statements import operated_statements
from small_cohort import small_cohort


def labelled(cohort, operated):
    rows = tuple({"id": name, "operated": word} for name, word in zip(cohort.ids, operated, strict=True))
    return replace(cohort, table=rows)


@pytest.fixture(scope="module")
def cohort(breast_template):
    return labelled(Cohort.of(breast_shapes(30), breast_template), ["yes"] * 18 + ["no"] * 12)


@pytest.fixture(scope="module")
def result(cohort):
    return compare_operated(cohort)


def test_tested_subjects_are_never_in_the_model(result):
    assert len(result.draws) == 3
    for draw in result.draws:
        assert not set(draw.training) & set(draw.tested)
        assert set(draw.training) <= set(range(18))
        assert set(draw.tested) == set(range(18, 30))
        assert len(set(draw.training)) == 11
        assert draw.operated.shape == draw.not_operated.shape == (12, 11)
    assert len({tuple(draw.training) for draw in result.draws}) == 3


def test_errors_are_those_of_models_built_by_hand(cohort, result):
    shapes = training_set(build_model(cohort), cohort).shapes
    draw = result.draws[1]
    for place, others in ((3, draw.training), (3, np.delete(draw.tested, 3))):
        mean = shapes[others].mean(axis=0)
        basis = np.linalg.svd((shapes[others] - mean).reshape(len(others), -1), full_matrices=False)[2]
        away = (shapes[draw.tested[place]] - mean).ravel()
        found = draw.operated if others is draw.training else draw.not_operated
        for count in (0, 4, 10):
            left = away - basis[:count].T @ (basis[:count] @ away)
            error = np.linalg.norm(left.reshape(-1, 3), axis=1).mean()
            assert found[place, count] == pytest.approx(error, abs=1e-4)


@pytest.mark.slow
def test_labels_without_meaning_make_no_difference(cohort):
    labels = ["yes"] * 18 + ["no"] * 12
    np.random.default_rng(3).shuffle(labels)
    well, better = operated_statements(compare_operated(labelled(cohort, labels)))
    assert well.holds == "yes"
    assert better.holds == "no"


def test_operated_breasts_of_another_kind_are_found_to_explain_worse(cohort, breast_template):
    shapes = cohort.array()
    mean = shapes.mean(axis=0)
    directions = breast_shapes(3, seed=9) - breast_template.mesh.vertices
    amounts = np.random.default_rng(0).normal(size=(12, 3))
    shapes[18:] = mean + np.einsum("kw,wnd->knd", amounts, directions)
    narrow = replace(cohort, packed=shapes.astype(np.float32))
    well, better = operated_statements(compare_operated(narrow))
    assert better.holds == "yes"
    assert better.comparison.low > 0.1
    assert well.holds == "no"


@pytest.mark.slow
def test_few_operated_subjects_limit_both_models(cohort):
    few = labelled(cohort, ["yes"] * 4 + ["no"] * 26)
    found = compare_operated(few)
    for draw in found.draws:
        assert len(draw.training) == 4
        assert len(draw.tested) == 5
    assert found.available == (4, 26)
    capped = compare_operated(cohort, OperatedParameters(training=6))
    assert len(capped.draws[0].tested) == 7


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (None, "there is no cohort.csv"),
        (["yes"] * 8, "8 operated and 0 non-operated"),
        (["no", "yes", "yes", *["no"] * 5], "2 operated and 6 non-operated"),
        (["unknown"] * 8, "0 operated and 0 non-operated"),
    ],
)
def test_what_a_cohort_does_not_allow_is_a_result_with_a_reason(words, reason):
    cohort = small_cohort(8) if words is None else labelled(small_cohort(8), words)
    found = compare_operated(cohort)
    assert reason in found.impossible
    assert {statement.holds for statement in operated_statements(found)} == {"not testable"}
    assert OperatedExperiment.from_record(found.record()).record() == found.record()


def test_one_sided_subjects_are_left_out(cohort):
    absent = tuple("left" if k in (0, 29) else "" for k in range(30))
    found = compare_operated(replace(cohort, absent=absent))
    assert found.available == (17, 11)
    assert "000" not in found.ids


def test_records_round_trip(result):
    back = OperatedExperiment.from_record(json.loads(json.dumps(result.record(), allow_nan=False)))
    assert back.record() == result.record()
    assert repr(operated_statements(back)) == repr(operated_statements(result))  # nan is not equal to itself
