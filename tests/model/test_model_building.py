"""Building models: the frame, signs, symmetry, parts, asymmetry, who is left out, what is kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breastmorph.cohort import Cohort
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.building import BuildParameters, build_model, built_with, part_vertices
from breastmorph.model.files import save_model
from breastmorph.model.procrustes import ProcrustesParameters, mirrored
from small_cohort import built, moved, random_shapes, small_cohort


def test_the_mean_stands_upright_like_the_template_at_the_mean_size(small_template):
    shapes = moved(random_shapes())
    model = built(Cohort.of(shapes, small_template))
    to_template = Similarity.fit(model.mean, small_template.mesh.vertices, with_scale=False)
    assert np.allclose(to_template.rotation, np.eye(3), atol=1e-6)
    assert np.allclose(model.mean.mean(axis=0), 0.0, atol=1e-6)
    sizes = [np.linalg.norm(shape - shape.mean(axis=0)) for shape in shapes]
    assert np.linalg.norm(model.mean) == pytest.approx(np.mean(sizes), rel=1e-6)
    assert model.info["removed"]["scale_sd"] > 0.1


def test_a_rigid_model_holds_size_and_a_similarity_model_does_not(small_template):
    grown = random_shapes(k=8) * np.linspace(0.8, 1.2, 8)[:, None, None]
    cohort = Cohort.of(grown, small_template)
    rigid = build_model(cohort, BuildParameters(procrustes=ProcrustesParameters(with_scale=False)))
    similar = build_model(cohort)
    along_first = rigid.basis[:, 0] @ rigid.mean.ravel() / np.linalg.norm(rigid.mean)
    assert np.abs(along_first) > 0.9
    assert rigid.variances[0] > 5 * similar.variances[0]
    along_size = similar.basis.T @ similar.mean.ravel() / np.linalg.norm(similar.mean)
    assert np.abs(along_size).max() < 1e-4
    assert similar.info["removed"]["scale_max"] / similar.info["removed"]["scale_min"] > 1.3
    assert rigid.info["removed"]["scale_sd"] == 0.0


def test_the_same_cohort_gives_the_same_bytes(tmp_path):
    for name in ("a.h5", "b.h5", "a.npz", "b.npz", "a.glb", "b.glb"):
        save_model(built(small_cohort(), keep_scores=True), tmp_path / name)
    for kind in ("h5", "npz", "glb"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_signs_do_not_depend_on_the_order_of_the_subjects(small_template):
    shapes = random_shapes()
    model = built(Cohort.of(shapes, small_template))
    other = built(Cohort.of(shapes[::-1], small_template))
    assert ((model.basis * other.basis).sum(axis=0) > 0.99).all()


def test_plus_makes_the_breasts_fuller(small_template):
    template = small_template
    towards = np.zeros_like(template.mesh.vertices)
    nipples = [template.landmark_ids[f"nipple_{side}"] for side in ("left", "right")]
    for nipple in nipples:
        away = np.linalg.norm(template.mesh.vertices - template.mesh.vertices[nipple], axis=1)
        towards[:, 2] += 30.0 * np.exp(-((away / 50.0) ** 2))
    amounts = np.array([-1.0, -0.4, 0.3, 1.1])
    shapes = template.mesh.vertices + amounts[:, None, None] * towards
    model = built(Cohort.of(shapes, template), components=1)
    larger = model.instance(model.deviations)
    assert (larger[nipples, 2] > model.mean[nipples, 2] + 5.0).all()


def test_a_symmetric_model_equals_that_of_subjects_and_mirror_images(small_template):
    template, shapes = small_template, random_shapes(k=6)
    model = built(Cohort.of(shapes, template), symmetric=True, keep_scores=True)
    doubled = built(Cohort.of(np.concatenate([shapes, mirrored(shapes, template.mirror)]), template))
    assert model.n_components == doubled.n_components == 11
    assert np.allclose(model.mean, doubled.mean, atol=1e-3)
    assert np.allclose(model.variances, doubled.variances, rtol=1e-3)
    assert np.allclose(mirrored(model.mean, template.mirror), model.mean, atol=1e-6)
    for column, kind in zip(model.basis.T, model.info["mode_symmetry"], strict=True):
        sign = 1.0 if kind == "symmetric" else -1.0
        assert np.allclose(
            mirrored(column.reshape(-1, 3), template.mirror), sign * column.reshape(-1, 3), atol=1e-6
        )
    aligned = model.align(shapes[2]).apply(shapes[2])
    assert np.allclose(model.instance(model.training.scores[2]), aligned, atol=1e-3)


def test_a_model_of_asymmetry_holds_only_asymmetry(small_template):
    template = small_template
    shapes = random_shapes(k=7)
    model = built(Cohort.of(shapes, template), asymmetry=True, keep_scores=True)
    for column in model.basis.T:
        assert np.allclose(
            mirrored(column.reshape(-1, 3), template.mirror), -column.reshape(-1, 3), atol=1e-6
        )
    symmetric = (model.mean + mirrored(model.mean, template.mirror)) / 2
    frame = built(Cohort.of(shapes, template), symmetric=True)
    assert np.allclose(symmetric, frame.mean, atol=1e-6)
    aligned = frame.align(shapes[3]).apply(shapes[3])
    own = (aligned - mirrored(aligned, template.mirror)) / 2
    assert np.allclose(model.instance(model.training.scores[3]) - symmetric, own, atol=1e-3)


def test_subjects_that_do_not_differ_are_refused(small_template):
    template, shapes = small_template, random_shapes(k=5)
    even = (shapes + mirrored(shapes, template.mirror)) / 2
    with pytest.raises(BreastMorphError, match="no asymmetry"):
        built(Cohort.of(even, template), asymmetry=True)
    with pytest.raises(BreastMorphError, match="no differences"):
        built(Cohort.of(moved(np.repeat(shapes[:1], 4, axis=0)), template))


@pytest.mark.parametrize("options", [{}, {"symmetric": True}, {"asymmetry": True}])
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_part_is_the_marginal_of_the_whole_model(side, options):
    cohort = small_cohort(k=6)
    whole = built(cohort, keep_scores=True, **options)
    part = built(cohort, part=side, keep_scores=True, **options)
    ids = part_vertices(whole.mean_mesh, whole.landmark_ids, side)
    expected = whole.marginal(ids)
    assert np.allclose(part.mean, whole.mean[ids], atol=1e-6)
    assert np.array_equal(part.faces, expected.faces)
    assert np.allclose(part.variances, expected.variances[: part.n_components], rtol=1e-3)
    assert np.allclose(part.vertex_deviations(), expected.vertex_deviations(), rtol=1e-3)
    assert np.allclose(
        part.instance(part.training.scores[1]), expected.instance(expected.training.scores[1]), atol=1e-2
    )


def test_a_part_is_one_breast_with_its_nipple(small_template):
    model = built(small_cohort(), part="left")
    assert "nipple_left" in model.landmark_ids
    assert "nipple_right" not in model.landmark_ids
    assert model.mean[model.landmark_ids["nipple_left"], 0] > 0
    assert (model.mean[:, 0] > -5.0).all()
    assert set(np.unique(model.faces)) == set(range(model.n_vertices))
    assert 0.03 < model.n_vertices / small_template.mesh.n_vertices < 0.45


def test_subjects_with_an_absent_side_are_left_out_unless_asked_for():
    cohort = replace(small_cohort(k=6), absent=("", "left", "", "", "", "right"))
    model = build_model(cohort)
    assert (model.info["subjects"], model.info["left_out"]) == (4, {"absent breast": 2})
    assert np.allclose(model.mean, build_model(cohort.chosen([0, 2, 3, 4])).mean)
    assert build_model(cohort, BuildParameters(with_absent=True)).info["subjects"] == 6


def test_nothing_about_single_subjects_is_kept_unless_asked_for():
    ids = ("s-a", "s-b", "s-c", "s-d", "s-e")
    cohort = replace(
        small_cohort(k=5),
        ids=ids,
        table=tuple({"id": i, "bmi": "2" + str(k), "note": "x"} for k, i in enumerate(ids)),
    )
    plain = build_model(cohort)
    assert plain.training is None
    assert not any(name in str(dict(plain.info)) for name in ids)
    kept = build_model(cohort, BuildParameters(keep_scores=True))
    assert kept.training.scores.shape == (5, 4)
    assert list(kept.training.columns) == ["bmi"]
    assert np.allclose(kept.training.columns["bmi"], [20, 21, 22, 23, 24])
    assert np.allclose(kept.training.scores.var(axis=0, ddof=1), kept.variances, rtol=1e-5)
    assert kept.training.scales.mean() == pytest.approx(kept.info["removed"]["scale_mean"])


def test_left_out_components_become_noise():
    whole = built(small_cohort())
    some = built(small_cohort(), components=3)
    assert whole.noise_variance == 0.0
    assert some.noise_variance == pytest.approx(whole.truncate(3).noise_variance, rel=1e-4)
    assert np.allclose(some.basis, whole.basis[:, :3], atol=1e-5)
    assert 1 < built(small_cohort(), variance=0.9).n_components < whole.n_components


def test_what_cannot_be_built_is_refused():
    cohort = small_cohort(k=3)
    with pytest.raises(BreastMorphError, match="more than 1 subject"):
        build_model(cohort.chosen([1]))
    with pytest.raises(BreastMorphError, match="either"):
        built(cohort, symmetric=True, asymmetry=True)
    lopsided = replace(cohort, template=replace(cohort.template, mirror=None))
    with pytest.raises(BreastMorphError, match="mirror images"):
        built(lopsided, symmetric=True)
    bare = replace(cohort.template, landmark_ids={"sternal_notch": 0}, coarse_landmark_ids={})
    with pytest.raises(LandmarkProblem, match="where the breasts are"):
        built(replace(cohort, template=bare), part="left")


def test_a_model_says_what_kind_it_is_and_nonsense_in_a_file_is_passed_over():
    asked = BuildParameters(
        symmetric=True, part="right", procrustes=ProcrustesParameters(with_scale=False, tolerance=1e-8)
    )
    assert built_with(build_model(small_cohort(k=5), asked)) == asked
    model = build_model(small_cohort(k=5))
    for said in (
        7,
        {"part": "both", "symmetric": "yes", "procrustes": []},
        {"part": ["left"], "procrustes": {"max_iterations": 0, "tolerance": "much", "else": 1}},
    ):
        assert built_with(replace(model, info={**model.info, "parameters": said})) == BuildParameters()
