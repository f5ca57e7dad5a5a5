from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from breast_cohort import breast_shapes, breast_template
from breastmorph.cohort import Cohort
from breastmorph.evaluation.generalization import leave_one_out
from breastmorph.evaluation.training_set import training_set
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mask import breast_mask
from breastmorph.mesh.files import save_mesh
from breastmorph.model.building import build_model
from breastmorph.paper.masks import MaskExperiment, MaskParameters, compare_masks
from breastmorph.paper.significance import paired
from breastmorph.paper.statements import MaskTruth, mask_statements
from breastmorph.scan.check import CheckParameters, find_scans
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import Landmarks
from small_cohort import small_cohort

pytestmark = pytest.mark.slow

K = 14
QUICK = MaskParameters(samples=40, resamples=150, moved_samples=40)


def cohort(shapes):
    return Cohort.of(shapes, breast_template())


def noisy(shapes, seed, size=1.0):
    """Registered with errors that are smooth along the surface, different for every subject."""
    rng = np.random.default_rng(seed)
    points = breast_template().mesh.vertices
    waves = np.sin(points @ rng.normal(scale=0.02, size=(3, 30)) + rng.uniform(0, 6, 30))
    return shapes + size * np.einsum("nw,kwd->knd", waves, rng.normal(size=(len(shapes), 30, 3))) / 5.0


def shrunk(shapes, factor):
    mean = shapes.mean(axis=0)
    return mean + factor * (shapes - mean)


@pytest.fixture(scope="module")
def shapes():
    return breast_shapes(K)


@pytest.fixture(scope="module")
def truth(shapes, tmp_path_factory, breast_template):
    """A truth folder whose topology is the template's own."""
    folder = tmp_path_factory.mktemp("truth")
    template = breast_template
    inside = breast_mask(template.mesh, template.landmarks) > 0.2
    left = template.mesh.vertices[:, 0] > 0
    names = list(template.landmarks)
    np.savez(
        folder / "topology.npz",
        mean=template.mesh.vertices,
        faces=template.mesh.faces,
        landmark_names=np.array(names),
        landmark_true=template.landmarks.array(names),
    )
    for k, shape in enumerate(shapes):
        parts = {"breast_left": inside & left, "breast_right": inside & ~left}
        np.savez(folder / f"{k:03d}.npz", points=shape, visible=np.ones(len(shape), bool), **parts)
    return folder


@pytest.fixture(scope="module")
def collapsed(shapes, truth):
    """The masks' variant has collapsed to the mean, the other is nearly right."""
    return compare_masks(
        cohort(shrunk(shapes, 0.15)), cohort(noisy(shapes, 1)), QUICK, preset="paper", truth=truth
    )


def by_text(result):
    return {statement.text: statement for statement in mask_statements(result)}


def only(result, word):
    return next(statement for text, statement in by_text(result).items() if word in text)


def test_a_collapsed_cohort_wins_by_the_papers_measures_and_loses_by_truth(collapsed):
    statement = only(collapsed, "generalization")
    assert statement.holds == "yes"
    assert statement.by_truth == "contradicts"
    assert "correspondence error" in statement.truth
    perfect = collapsed.perfect.generalization[:, -1].mean()
    assert collapsed.with_masks.generalization[:, -1].mean() < 0.5 * perfect
    assert collapsed.with_masks.truth.explained_breast < 0.5 < collapsed.without_masks.truth.explained_breast


def test_what_the_paper_says_of_many_components_is_not_tested_with_few(collapsed, shapes):
    for word, reason in (("beyond 30", f"{K - 1} components"), ("Eight components", f"{K} subjects")):
        statement = only(collapsed, word)
        assert statement.holds == "not testable"
        assert reason in statement.measured
    many = breast_shapes(34)
    found = compare_masks(
        cohort(shrunk(many, 0.15)), cohort(noisy(many, 1)), replace(QUICK, samples=20, resamples=20)
    )
    assert only(found, "beyond 30").holds == "yes"
    assert "3 of 3 numbers" in only(found, "beyond 30").measured
    assert only(found, "Eight components").holds in ("yes", "no")


def test_the_true_shapes_can_be_left_out_while_the_truth_is_still_asked(shapes, truth):
    few = replace(QUICK, samples=5, resamples=10)
    found = compare_masks(cohort(shapes), cohort(noisy(shapes, 1)), few, truth=truth, true_shapes=False)
    assert found.perfect is None
    assert found.with_masks.truth is not None


def test_a_right_cohort_that_wins_is_confirmed_by_truth(shapes, truth):
    worse = noisy(noisy(shapes, 1), 2, size=6.0)
    result = compare_masks(cohort(noisy(shapes, 1)), cohort(worse), QUICK, truth=truth)
    statement = only(result, "generalization")
    assert (statement.holds, statement.by_truth) == ("yes", "agrees")
    assert statement.comparison.high < 0 < abs(statement.comparison.difference)


def test_two_registrations_of_the_same_quality_do_not_differ(shapes, truth):
    result = compare_masks(cohort(noisy(shapes, 3)), cohort(noisy(shapes, 4)), QUICK, truth=truth)
    for word in ("lower the generalization", "variance outside", "less often"):
        statement = only(result, word)
        assert statement.holds == "no"
        assert statement.comparison.p > 0.05
        assert statement.by_truth == "no preference"


def test_a_calmer_thorax_is_found_and_judged_by_the_true_ratio(shapes, truth, breast_template):
    template = breast_template
    inside = breast_mask(template.mesh, template.landmarks)[:, None]
    calm = shrunk(shapes, np.where(inside > 0.1, 1.0, 0.4))
    result = compare_masks(cohort(calm), cohort(noisy(shapes, 1)), QUICK, truth=truth)
    statement = only(result, "variance outside")
    assert statement.holds == "yes"
    assert statement.comparison.high < 0
    assert statement.by_truth == "contradicts"  # the true thorax is not so calm
    assert "explained variation outside" in statement.truth


@pytest.mark.parametrize(
    ("explained", "verdict"),
    [((0.5, 0.4), "mixed"), ((0.4, 0.5), "contradicts"), ((0.4, 0.405), "contradicts")],
)
def test_variance_of_the_right_size_is_not_called_right_unless_it_is_the_true_variation(explained, verdict):
    same = paired(np.arange(8.0), np.arange(8.0))
    truth = MaskTruth(same, same, ((0.6, 0.6), explained))
    found = truth.with_explained_outside({"by_truth": "contradicts", "truth": "ratio"}, prefers_masks=True)
    assert found["by_truth"] == verdict
    assert "explained variation outside" in found["truth"]


def test_where_random_samples_vary_most_is_found(shapes, breast_template):
    template = breast_template
    inside = breast_mask(template.mesh, template.landmarks)[:, None]
    restless = shrunk(shapes, np.where(inside > 0.05, 1.0, 3.0))
    result = compare_masks(cohort(shapes), cohort(restless), QUICK)
    assert only(result, "less often").holds == "yes"
    means = [one.moved_in_breast.mean() for one in (result.with_masks, result.without_masks)]
    assert means[1] < 0.7 * means[0]


def test_the_curves_are_those_of_plain_leave_one_out(collapsed, shapes):
    right = cohort(noisy(shapes, 1))
    training = training_set(build_model(right), right)
    plain = leave_one_out(training.shapes, training.regions)
    assert collapsed.without_masks.generalization == pytest.approx(plain["whole"].values, abs=1e-6)
    assert collapsed.without_masks.generalization_breast == pytest.approx(plain["breast"].values, abs=1e-6)
    assert collapsed.without_masks.components[-1] == K - 2
    assert collapsed.without_masks.share[-1] == pytest.approx(1.0)


def test_a_record_gives_the_same_value_back(collapsed):
    text = json.dumps(collapsed.record(), allow_nan=False)
    again = MaskExperiment.from_record(json.loads(text))
    assert again.record() == collapsed.record()
    assert repr(mask_statements(again)) == repr(mask_statements(collapsed))  # nan is not equal to itself
    assert again.with_masks.components.dtype == np.int64


def test_the_same_seed_gives_the_same_numbers(shapes):
    pair = cohort(noisy(shapes, 1)[:6]), cohort(noisy(shapes, 2)[:6])
    quick = replace(QUICK, samples=10, resamples=20)
    records = [
        compare_masks(*pair, replace(quick, seed=seed)).record()["with_masks"]["sampled"]
        for seed in (5, 5, 6)
    ]
    assert records[0] == records[1] != records[2]


def test_mean_squared_errors_come_from_both_sides_of_the_raw_scans(shapes, tmp_path, breast_template):
    template = breast_template
    names, few = list(template.landmarks), 8
    for k in range(few):
        mesh = template.mesh.with_vertices(shapes[k])
        ids = [template.landmark_ids[name] for name in names]
        save_mesh(mesh, tmp_path / f"{k:03d}.ply")
        save_landmarks(Landmarks(tuple(names), shapes[k][ids]), tmp_path / f"{k:03d}.json")
    (tmp_path / "001.ply").write_bytes(b"ply\n")
    right = cohort(shapes[:few])
    raised = cohort(shapes[:few] + np.array([0.0, 0.0, 3.0]))
    result = compare_masks(
        raised,
        right,
        replace(QUICK, samples=10, resamples=20),
        scans=find_scans(tmp_path),
        check=CheckParameters(mean_edge=20.0),
    )
    far, near = result.with_masks.scans, result.without_masks.scans
    known = np.arange(few) != 1
    assert np.isnan(far.mean_squared[1])
    assert far.failures[0].startswith("001")
    assert near.mean_squared[known].max() < 1e-3
    assert (far.squared[known] > 1.0).all()
    assert (far.squared[known] < 9.01).all()
    assert near.distance_breast[known].max() < 0.01
    statement = only(result, "mean squared")
    assert statement.holds == "yes"
    assert statement.comparison.n == few - 1
    # The reconstruction of a left-out subject is farther from its scan than the subject itself, and less so with
    # more components.
    assert (near.reconstructed_breast[known, -1] > near.distance_breast[known]).all()
    assert near.reconstructed_breast[known, -1].mean() < near.reconstructed_breast[known, 0].mean()


def test_only_subjects_with_both_sides_in_both_cohorts_are_compared(shapes):
    first, second = cohort(shapes[:9]), cohort(noisy(shapes, 1)[:8]).chosen([7, 6, 5, 4, 3, 2, 1, 0])
    first = replace(first, absent=("left", *first.absent[1:]))
    result = compare_masks(first, second, replace(QUICK, samples=5, resamples=10))
    assert result.ids == tuple(f"{k:03d}" for k in range(1, 8))
    assert result.left_out == 2
    assert only(result, "generalization").by_truth == "not known"
    assert only(result, "mean squared").holds == "not testable"


def test_a_subject_that_was_registered_twice_counts_once(shapes):
    twice = cohort(np.concatenate([shapes[:8], shapes[:1]]))
    result = compare_masks(twice, twice, replace(QUICK, samples=5, resamples=10))
    assert result.ids == tuple(f"{k:03d}" for k in range(8))
    assert result.left_out == 1
    assert result.with_masks.generalization[0, -1] > 0.1  # by a model with her twin it would be 0


def test_cohorts_that_cannot_be_compared_are_named(shapes):
    with pytest.raises(BreastMorphError, match="in both cohorts"):
        compare_masks(cohort(shapes[:3]), cohort(shapes[:3]), QUICK)
    with pytest.raises(BreastMorphError, match="different templates"):
        compare_masks(cohort(shapes[:6]), small_cohort(6), QUICK)
