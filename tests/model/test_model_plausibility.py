"""Where a shape stands among the subjects: shares are uniform on left-out people, and what is unusual is noticed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from breast_cohort import breast_model, breast_shapes, breast_template
from breastmorph.cohort import Cohort
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.plausibility import model_population
from breastmorph.model.shape_model import ShapeModel


@cache
def model(scores: bool) -> ShapeModel:
    """A model of sixty subjects, with or without their scores."""
    cohort = Cohort.of(breast_shapes(60), breast_template())
    found = build_model(cohort, BuildParameters(keep_scores=True))
    return found if scores else replace(found, training=None)


@pytest.mark.parametrize("scores", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_shares_of_people_the_model_does_not_know_are_uniform(scores):
    people = model_population(model(scores))
    found = [people.judge_shape(shape) for shape in breast_shapes(120, seed=7)]
    shares = np.array([one.share for one in found])
    n = len(shares)
    off = np.sort(shares) - np.arange(n) / n  # Kolmogorov and Smirnov: the furthest from the diagonal
    assert max(off.max(), 1.0 / n - off.min()) < 0.16  # 1 in 200 of truly uniform ones
    assert np.mean([one.level == "usual" for one in found]) > 0.65
    assert all(one.level != "implausible" for one in found)


@pytest.mark.parametrize("scores", [True, False])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_what_is_unusual_is_noticed_and_named(scores, sign):
    one, people = model(scores), model_population(model(scores))
    assert people.judge(np.zeros(one.n_components)).share == 0.0
    for k in reversed(range(one.n_components)):  # also those that hardly show
        coefficients = np.zeros(one.n_components)
        coefficients[k] = 2.5 * sign * one.deviations[k]
        found = people.judge(coefficients * (1.04 if k < people.traits.modes else 1.0))
        assert found.level == "unusual"
        if k >= people.traits.modes:
            assert f"mode {k + 1} is {'larger' if sign > 0 else 'smaller'} than" in found.finding.cause.text()
        far = people.judge(2.0 * coefficients)
        assert far.level == "implausible"
        assert far.share > found.share > 0.6
    if scores:
        said = people.judge(coefficients * 0.95).finding.cause.text()
        assert "% of the model's 60 subjects; all in all more unusual than" in said
        assert far.finding.cause.text().endswith("more unusual than all of them")


@pytest.mark.parametrize(("reach", "apart"), [(35.0, 30.0), (20.0, 34.0)])
def test_three_centimetres_between_the_nipples_are_noticed(reach, apart):
    """Also where some are skin that the model cannot express, as an edit with a still thorax adds."""
    one = model(True)
    shape = np.array(one.mean)
    away = np.linalg.norm(shape - one.landmarks["nipple_left"], axis=1)
    shape[:, 1] -= apart * np.exp(-0.5 * (away / reach) ** 2)
    found = model_population(one).judge_shape(shape)
    assert found.level != "usual"
    assert found.share > 0.75


def test_size_and_pose_do_not_matter(breast_model):
    shape, people = breast_shapes(1, seed=5)[0], model_population(breast_model)
    first, second = (people.judge_shape(one) for one in (shape, 1.2 * shape + [5.0, 80.0, -9.0]))
    assert second.share == pytest.approx(first.share, abs=1e-3)


def test_models_without_landmarks_or_with_few_subjects_judge_too():
    for one in (replace(breast_model(), landmark_ids={}), breast_model(k=5)):
        coefficients = np.zeros(one.n_components)
        coefficients[0] = 6.0 * one.deviations[0]
        assert model_population(one).judge(coefficients).level == "implausible"
        assert one.plausibility(coefficients) < 0.05
