from __future__ import annotations

import numpy as np
import pytest

from breastmorph.evaluation.truth import (
    SubjectTruth,
    Tie,
    cohort_truth,
    correspondence_error,
    load_tie,
    load_truth,
)
from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.geometry import Similarity
from breastmorph.template import default_template, template_from
from torso import torso


@pytest.fixture(scope="module")
def truths():
    shapes = [torso(edge=15, size=size)[0].vertices for size in (0.5, 0.8, 1.0, 1.4)]
    breast = np.linalg.norm(shapes[0] - shapes[-1], axis=1) > 5
    return [SubjectTruth(shape, np.ones(len(shape), bool), breast) for shape in shapes]


def test_the_truth_itself_scores_full_marks(truths):
    figures = cohort_truth(np.stack([t.points for t in truths]), truths)
    assert figures.explained_breast == pytest.approx(1.0)
    assert figures.sd_ratio_breast == pytest.approx(1.0)
    assert correspondence_error(truths[0].points, truths[0]) == (0.0, 0.0)


def test_a_collapsed_cohort_explains_nothing_however_smooth_it_is(truths):
    mean = np.mean([t.points for t in truths], axis=0)
    figures = cohort_truth(np.stack([mean] * len(truths)), truths)
    assert figures.explained_breast < 0.2
    assert figures.sd_ratio_breast < 0.01


def test_noise_cannot_fake_variation(truths):
    rng = np.random.default_rng(0)
    noisy = np.stack([t.points + rng.normal(scale=30, size=t.points.shape) for t in truths])
    assert cohort_truth(noisy, truths).explained_breast < 0


def test_explained_variation_does_not_depend_on_pose(truths):
    rng = np.random.default_rng(1)
    registered = np.stack([t.points + rng.normal(scale=2, size=t.points.shape) for t in truths])
    move = Similarity(np.eye(3)[[1, 2, 0]], np.array([5.0, 6.0, 7.0]))
    moved = [SubjectTruth(move.apply(t.points), t.visible, t.breast) for t in truths]
    a, b = cohort_truth(registered, truths), cohort_truth(move.apply(registered), moved)
    assert a.explained_breast == pytest.approx(b.explained_breast)


def test_a_tie_carries_values_from_the_topology_to_the_template():
    fine, landmarks = torso(edge=5)
    mesh, points = torso(edge=10)
    shift = Similarity(translation=np.array([0.0, 50.0, -20.0]))
    template = template_from(mesh.with_vertices(shift.apply(mesh.vertices)), points.transformed(shift))
    tie = Tie.of(template, fine, landmarks)
    assert np.linalg.norm(tie.at(fine.vertices) - mesh.vertices, axis=1).mean() < 3.0
    assert tie.at(np.ones(fine.n_vertices)) == pytest.approx(1.0)


def test_a_foreign_file_is_a_named_error(tmp_path):
    np.savez(tmp_path / "x.npz", points=np.zeros(3))
    tie = Tie(np.zeros((1, 3), dtype=np.int64), np.ones((1, 3)) / 3)
    with pytest.raises(FileProblem, match="not a file of true values"):
        load_truth(tmp_path / "x.npz", tie)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"no archive"])
def test_a_damaged_truth_is_named(content, tmp_path):
    (tmp_path / "topology.npz").write_bytes(content)
    with pytest.raises(FileProblem, match="not the true values of a phantom"):
        load_tie(tmp_path, default_template())
