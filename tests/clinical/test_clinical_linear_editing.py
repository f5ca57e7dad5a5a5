"""The paper's linear editing, and what both versions are made of: populations, gradients, the solver."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breast_cohort import breast_model
from breastmorph.clinical.edit_solver import EditSpace, most_likely
from breastmorph.clinical.editing import Editor
from breastmorph.clinical.feature_regression import RegressionParameters, population, regress
from breastmorph.clinical.feature_requests import Request
from breastmorph.clinical.patient import mean_patient
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.shape_model import Training
from edited_people import change, editor
from refusals import refused


def test_the_regression_is_the_papers(breast_model, features):
    model = breast_model
    chosen = [features.find(name) for name in ("SN-NL", "SN-NR", "NL-NR")]
    found = regress(model, chosen, [], 1.0)
    scores = model.training.scores
    table = np.array(
        [[f.value(model.instance(score)) for score in scores] for f in chosen] + [np.ones(len(scores))]
    )
    printed = scores.T @ np.linalg.pinv(table)  # M = A F+, the last column is the constant's
    assert np.abs(found.matrix - printed[:, :3]).max() < 1e-6 * np.abs(printed).max()
    assert found.source == "the 40 subjects of the model"


@pytest.mark.slow
def test_without_scores_the_model_is_sampled_and_that_is_said(features):
    with_scores, without = breast_model(), breast_model(scores=False)
    chosen = [features.find("SN-NL"), features.find("volume-left")]
    few = regress(without, chosen[:1], [], 1.0)
    assert few.source == "10,000 samples of the model"
    costly = regress(without, chosen, [], 1.0, RegressionParameters(costly_samples=120))
    assert costly.source == "120 samples of the model"
    same = regress(with_scores, chosen[:1], [], 1.0)
    difference = (few.matrix - same.matrix)[:, 0] / with_scores.deviations
    assert np.linalg.norm(difference) < 0.2 * np.linalg.norm(same.matrix[:, 0] / with_scores.deviations)


def test_linear_errs_where_exact_does_not_and_small_steps_agree(editor):
    request = [Request("NR-LPR", 20.0, relative=True), Request("SN-NR", 20.0, relative=True)]
    exact, linear = editor.exact(request), editor.linear(request)
    assert exact.largest_error < 0.1 < linear.largest_error
    small = [Request("SN-NR", 0.5, relative=True)]
    exact, linear = editor.exact(small), editor.linear(small)
    moved = np.linalg.norm(exact.shape - exact.before)
    assert np.linalg.norm(linear.shape - exact.shape) < 0.1 * moved
    with refused("linear-hold", region="thorax"):
        editor.linear(small, ["thorax"])


def test_a_column_of_the_table_is_edited_with_size(breast_model):
    model = breast_model
    weights = model.training.columns["weight"]
    edit = editor().linear([Request("weight", float(weights.mean()) + 3.0)])
    assert edit.size_change == pytest.approx(3.0 / weights.mean(), rel=0.1)
    assert change(edit, "weight").before == pytest.approx(weights.mean())
    kept = editor().exact([Request("weight", 3.0, relative=True)], ["SN-NL"])
    assert abs(change(kept, "SN-NL").error) < 0.1
    assert kept.length > 0.1
    with refused(column="weight"):
        editor("stranger").linear([Request("weight", 70.0)])
    assert editor("stranger").linear([Request("age", 5.0, relative=True)]).length > 0.0


def test_columns_that_tell_nothing_or_too_much_are_refused(breast_model, editor, features):
    model = breast_model
    weights = model.training.columns["weight"]
    with refused("beyond-model", name="weight", deviations=9.0) as caught:
        editor.linear([Request("weight", 9.0 * float(weights.std()), relative=True)])
    assert "Usual" not in caught.value.remedy  # there is no measure whose usual values could be told
    even = replace(model, training=replace(model.training, columns={"sex": np.ones(len(weights))}))
    with refused(column="sex"):
        Editor(even, mean_patient(even), features).linear([Request("sex", 1.0, relative=True)])


def test_columns_need_the_scores(features):
    one = Editor(breast_model(scores=False), mean_patient(breast_model(scores=False)), features)
    with refused("unknown-measure", name="weight"):
        one.linear([Request("weight", 3.0, relative=True)])


def test_columns_of_too_few_subjects_are_said_to_be_that(breast_model, features):
    model = breast_model
    few = Training(model.training.scores[:2], model.training.scales[:2], {"weight": np.array([60.0, 70.0])})
    two = replace(model, training=few)
    with pytest.raises(BreastMorphError, match="weight needs a model of more than 2 subjects"):
        Editor(two, mean_patient(two), features).linear([Request("weight", 3.0, relative=True)])


def test_population_is_that_of_samples(breast_model, features):
    model, rng = breast_model, np.random.default_rng(1)
    feature = features.find("SN-NL")
    mean, sd = population(model, feature, 1.2)
    values = [feature.value(1.2 * model.drawn(rng)) for _ in range(400)]
    assert abs(np.mean(values) - mean) < 0.2 * sd
    assert 0.85 < np.std(values) / sd < 1.15


@pytest.mark.parametrize("name", ["SN-NL", "half-chest-width-left", "volume-right"])
def test_gradients_reach_the_coordinates(name, breast_model, features, stranger):
    one = editor("stranger")
    space = EditSpace(breast_model, stranger.shape, one.place, one._regions["thorax"], with_size=True)
    feature = features.find(name)
    rng = np.random.default_rng(2)
    at, along = 0.5 * rng.normal(size=space.dimension), rng.normal(size=space.dimension)
    slope = space.pulled_back(feature.read(space.displaced(at))) @ along
    step = 1e-3
    values = [feature.value(space.displaced(at + sign * step * along)) for sign in (1, -1)]
    assert slope == pytest.approx((values[0] - values[1]) / (2 * step), rel=2e-2, abs=0.05)


def test_a_constraint_that_bends_much_is_still_met():
    # The unit circle about (0, 3) in two of six dimensions: plain linear steps swing about it.
    def read(u):
        out = u[:2] - np.array([0.0, 3.0])
        length = np.linalg.norm(out)
        return np.array([length]), np.concatenate([out / length, np.zeros(4)])[None]

    gram = np.diag([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    found = most_likely(read, np.array([1.0]), np.zeros(6), [gram], limit=2.5)
    assert found.attained
    assert found.coordinates[:2] == pytest.approx([0.0, 2.0], abs=1e-3)
    assert found.movements[0] <= 2.5
    tight = most_likely(read, np.array([1.0]), np.zeros(6), [gram], limit=1.0)
    assert not (tight.attained and tight.movements[0] <= 1.0)
