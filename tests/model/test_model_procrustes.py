from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import procrustes
from scipy.spatial.transform import Rotation

from breastmorph.mesh.similarity import Similarity
from breastmorph.model.procrustes import align_shapes


def cohort(k=6, n=40, spread=0.1, seed=0):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=(n, 3)) * 100
    return base + rng.normal(size=(k, n, 3)) * 100 * spread


def moved(shapes, seed=1):
    rng = np.random.default_rng(seed)
    return np.stack(
        [
            Similarity(
                Rotation.random(rng=rng).as_matrix(), rng.normal(size=3) * 500, rng.uniform(0.5, 2)
            ).apply(x)
            for x in shapes
        ]
    )


def pairwise(shapes):
    return np.array([[np.linalg.norm(a - b) for a in shapes] for b in shapes])


def test_alignment_is_invariant_to_similarity_of_the_inputs():
    shapes = cohort()
    a, b = align_shapes(shapes), align_shapes(moved(shapes))
    scale = np.linalg.norm(b.mean) / np.linalg.norm(a.mean)
    assert np.allclose(pairwise(a.shapes) * scale, pairwise(b.shapes), rtol=1e-6)


def test_transforms_take_inputs_to_aligned_shapes_and_the_mean_keeps_the_mean_size():
    shapes = moved(cohort())
    found = align_shapes(shapes)
    for transform, shape, aligned in zip(found.transforms, shapes, found.shapes, strict=True):
        assert np.allclose(transform.apply(shape), aligned)
    sizes = [np.linalg.norm(shape - shape.mean(axis=0)) for shape in shapes]
    assert np.linalg.norm(found.mean) == pytest.approx(np.mean(sizes))


def test_two_shapes_agree_with_scipy():
    a, b = cohort(k=2)
    found = align_shapes(np.stack([a, b]), tolerance=1e-13)
    _, _, disparity = procrustes(a, b)
    x, y = (s - s.mean(axis=0) for s in found.shapes)
    cosine = (x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y)
    assert 1 - cosine**2 == pytest.approx(disparity, rel=1e-6)


def test_rigid_alignment_keeps_size():
    shapes = moved(cohort())
    found = align_shapes(shapes, with_scale=False)
    assert all(transform.scale == 1.0 for transform in found.transforms)
