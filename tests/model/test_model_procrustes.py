"""Generalised Procrustes analysis: invariance, agreement with scipy, the frame, what was removed, symmetry."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import procrustes

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.model.procrustes import ProcrustesParameters, align_shapes, common_frame, mirrored
from small_cohort import moved, random_shapes, small_template


def pairwise(shapes):
    return np.array([[np.linalg.norm(a - b) for a in shapes] for b in shapes])


def frame_of(shapes, **options):
    mirror = options.pop("mirror", None)
    reference = small_template().mesh.vertices
    return common_frame(shapes, np.arange(len(shapes)), reference, ProcrustesParameters(**options), mirror)


def test_alignment_is_invariant_to_similarity_of_the_inputs():
    shapes = random_shapes()
    a, b = align_shapes(shapes), align_shapes(moved(shapes))
    scale = np.linalg.norm(b.mean) / np.linalg.norm(a.mean)
    assert np.allclose(pairwise(a.shapes) * scale, pairwise(b.shapes), rtol=1e-6)


def test_the_frame_does_not_depend_on_the_poses_of_the_inputs_nor_on_their_order():
    shapes = random_shapes()
    rigid = np.stack(
        [
            Similarity(rotation_about(np.ones(3), 40.0 * k), 9.0 * k * np.ones(3)).apply(s)
            for k, s in enumerate(shapes)
        ]
    )
    mean = frame_of(shapes).mean
    assert np.allclose(frame_of(rigid).mean, mean, atol=1e-6)
    assert np.allclose(frame_of(shapes[::-1]).mean, mean, atol=1e-6)


def test_transforms_take_inputs_to_aligned_shapes_and_the_mean_keeps_the_mean_size():
    shapes = moved(random_shapes())
    found = align_shapes(shapes)
    for transform, shape, aligned in zip(found.transforms, shapes, found.shapes, strict=True):
        assert np.allclose(transform.apply(shape), aligned)
    sizes = [np.linalg.norm(shape - shape.mean(axis=0)) for shape in shapes]
    assert np.linalg.norm(found.mean) == pytest.approx(np.mean(sizes))


def test_the_mean_is_the_average_of_the_aligned_shapes_and_holds_no_size():
    found = align_shapes(moved(random_shapes()))
    assert np.allclose(found.shapes.mean(axis=0), found.mean, atol=1e-6)
    deviations = (found.shapes - found.mean).reshape(len(found.shapes), -1)
    assert np.abs(deviations @ found.mean.ravel()).max() < 1e-6 * np.linalg.norm(found.mean) ** 2


def test_every_shape_fits_the_mean_best_where_it_lies():
    found = align_shapes(moved(random_shapes()))
    for shape in found.shapes:
        again = Similarity.fit(found.mean, shape)
        assert np.allclose(again.rotation, np.eye(3), atol=1e-8)
        assert again.scale == pytest.approx(1.0, abs=1e-8)


def test_pairs_of_shapes_agree_with_scipy():
    shapes = moved(random_shapes(k=4))
    for i in range(4):
        for j in range(i):
            found = align_shapes(shapes[[i, j]])
            _, _, disparity = procrustes(shapes[i], shapes[j])
            x, y = (s - s.mean(axis=0) for s in found.shapes)
            cosine = (x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y)
            assert 1 - cosine**2 == pytest.approx(disparity, rel=1e-6)


def test_rigid_alignment_keeps_size():
    shapes = moved(random_shapes())
    found = align_shapes(shapes, with_scale=False)
    assert all(transform.scale == 1.0 for transform in found.transforms)


def test_the_report_tells_what_was_put_in(small_template):
    shape = small_template.mesh.vertices
    sizes, turns, places = [0.9, 1.0, 1.1], [-10.0, 0.0, 10.0], [-30.0, 0.0, 30.0]
    shapes = np.stack(
        [
            Similarity(
                rotation_about(np.array([0.0, 1.0, 0.0]), turn), np.array([place, 0.0, 0.0]), size
            ).apply(shape - shape.mean(axis=0))
            for size, turn, place in zip(sizes, turns, places, strict=True)
        ]
    )
    removed = frame_of(shapes).removed
    assert (removed.scale_min, removed.scale_max) == pytest.approx((0.9, 1.1))
    assert removed.scale_sd == pytest.approx(0.1)
    assert removed.rotation_max == pytest.approx(10.0)
    assert removed.translation_max == pytest.approx(30.0)
    assert removed.variance_after == pytest.approx(0.0, abs=1e-6)
    assert removed.variance_before > 900.0


def test_a_symmetric_frame_has_a_symmetric_mean_and_sees_mirror_images_alike(small_template):
    mirror = small_template.mirror
    shapes = random_shapes()
    found = frame_of(shapes, mirror=mirror)
    assert np.allclose(mirrored(found.mean, mirror), found.mean, atol=1e-9)
    both = np.concatenate([shapes, mirrored(shapes, mirror)])
    assert np.allclose(frame_of(both).mean, found.mean, atol=1e-5)
    assert np.allclose(frame_of(mirrored(shapes, mirror), mirror=mirror).mean, found.mean, atol=1e-6)


def test_a_shape_that_is_not_finite_is_refused():
    shapes = random_shapes(k=3)
    shapes[1, 5, 0] = np.nan
    with pytest.raises(BreastMorphError, match="shape 2 of 3"):
        align_shapes(shapes)
