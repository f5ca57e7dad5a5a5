"""Principal components: agreement with scikit-learn, blocks, many rows."""

from __future__ import annotations

import numpy as np
import pytest

import breastmorph.model.building as components_module
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.building import principal_components
from breastmorph.model.procrustes import align_shapes
from small_cohort import built, moved, random_shapes, small_cohort


@pytest.fixture(scope="module")
def peer_of():
    """scikit-learn takes a second to import: here, not where tests are collected."""
    from sklearn.decomposition import PCA

    return PCA(svd_solver="full").fit


def of(rows, **wanted):
    centred = rows - rows.mean(axis=0)
    return principal_components(
        [(len(rows), lambda ids: centred[:, ids])], np.arange(rows.shape[1]), len(rows) - 1, **wanted
    )


def test_mean_variances_and_basis_equal_those_of_scikit_learn(peer_of):
    aligned = align_shapes(moved(random_shapes(k=14))).shapes
    peer = peer_of(aligned.reshape(14, -1))
    ours = of(aligned)
    q = len(ours.variances)
    assert q == 13
    assert np.allclose(ours.variances, peer.explained_variance_[:q], rtol=1e-5)
    signs = np.sign((ours.basis * peer.components_[:q].T).sum(axis=0))
    assert np.abs(ours.basis * signs - peer.components_[:q].T).max() < 1e-5
    assert np.allclose(ours.scores[0] * signs, peer.transform(aligned.reshape(14, -1))[:, :q], atol=1e-5)


def test_a_built_model_equals_scikit_learn_on_the_same_aligned_shapes(peer_of):
    cohort = small_cohort(k=10)
    model = built(cohort)
    aligned = np.stack([model.align(shape).apply(shape) for shape in cohort.shapes()]).reshape(10, -1)
    peer = peer_of(aligned)
    assert np.allclose(model.mean.ravel(), peer.mean_, atol=1e-5)
    assert np.allclose(model.variances, peer.explained_variance_[:9], rtol=1e-5)
    signs = np.sign((model.basis * peer.components_[:9].T).sum(axis=0))
    assert np.abs(model.basis * signs - peer.components_[:9].T).max() < 1e-5


def test_small_blocks_change_nothing(monkeypatch):
    shapes = random_shapes(k=7)
    whole = of(shapes)
    monkeypatch.setattr(components_module, "_BLOCK_BYTES", 24 * 7 * 100)
    in_blocks = of(shapes)
    assert np.allclose(whole.variances, in_blocks.variances, rtol=1e-9)
    signs = np.sign((whole.basis * in_blocks.basis).sum(axis=0))
    assert np.allclose(whole.basis, in_blocks.basis * signs, atol=1e-5)


def test_some_components_of_many_rows_equal_the_first_of_all(monkeypatch):
    shapes = random_shapes(k=20)
    every = of(shapes)
    monkeypatch.setattr(components_module, "_MANY", 5)
    some = of(shapes, components=4)
    assert np.allclose(some.variances, every.variances[:4], rtol=1e-9)
    assert np.allclose(np.abs((some.basis * every.basis[:, :4]).sum(axis=0)), 1.0, atol=1e-5)
    assert some.total == pytest.approx(every.total)


def test_a_share_of_the_variance_takes_as_few_components_as_hold_it():
    shapes = random_shapes(k=20)
    every = of(shapes)
    count = len(of(shapes, variance=0.9).variances)
    share = np.cumsum(every.variances) / every.total
    assert share[count - 1] >= 0.9 > share[count - 2]


def test_copies_of_subjects_give_no_components_of_rounding():
    shapes = random_shapes(k=4)
    assert len(of(np.concatenate([shapes, shapes, shapes])).variances) == 3


@pytest.mark.parametrize("wanted", [{"variance": 0.0}, {"variance": 1.2}, {"components": 0}])
def test_impossible_wishes_are_refused(wanted):
    with pytest.raises(BreastMorphError):
        of(random_shapes(k=3), **wanted)
