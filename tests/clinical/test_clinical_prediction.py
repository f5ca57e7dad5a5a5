"""Prediction: known skin stays, the rest is the likeliest, and its uncertainty is what is missed on left-out people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breastmorph.clinical.mirror_frame import mirror_frame
from breastmorph.clinical.predicted_measures import predicted_measures
from breastmorph.clinical.predicting import counts_as_absent, is_absent
from breastmorph.clinical.prediction import deviation_of
from breastmorph.clinical.predictor import PredictionParameters, fit_predictor
from breastmorph.clinical.training_shapes import training_shapes
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.cohort import Cohort
from breastmorph.foundation.errors import MeshProblem
from breastmorph.mesh.geometry import Similarity, vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.shape_model import ShapeModel
from predicted_people import alike, flattened, model, predictor
from refusals import refused


@pytest.mark.parametrize("evidence", ["points", "surface"])
def test_known_skin_stays_exactly_and_missing_skin_does_not_matter(evidence, strangers):
    shape = strangers[0]
    found = predictor(evidence).predict(shape)
    missing = found.region.missing
    assert np.array_equal(found.shape[~missing], shape[~missing])
    assert np.array_equal(found.mirrored[~missing], shape[~missing])
    assert (found.sd[~missing] == 0).all()
    assert (found.sd[missing] > 0).all()
    nonsense = shape.copy()
    nonsense[missing] += 500.0
    assert np.allclose(predictor(evidence).predict(nonsense).shape[missing], found.shape[missing])


def test_pose_and_size_of_the_scan_carry_over(predictor, strangers):
    shape = strangers[1]
    turn = Rotation.from_euler("xyz", [5, -70, 12], degrees=True).as_matrix()
    move = Similarity(turn, np.array([100.0, -40.0, 900.0]), 1.15)
    here, there = predictor.predict(shape), predictor.predict(move.apply(shape))
    assert np.allclose(there.shape, move.apply(here.shape), atol=1e-3)
    assert np.allclose(there.mirrored, move.apply(here.mirrored), atol=1e-3)
    assert np.allclose(there.sd, 1.15 * here.sd, rtol=1e-3)
    assert np.allclose(there.sd_normal, 1.15 * here.sd_normal, rtol=1e-2, atol=1e-2)


def test_left_is_right_in_the_mirror(strangers):
    frame = mirror_frame(model())
    shape = frame.to_frame.apply(strangers[2])
    right = predictor().predict(shape)
    left = predictor("points", "left").predict(frame.mirrored(shape))
    assert np.linalg.norm(frame.mirrored(left.shape) - right.shape, axis=1)[right.region.breast].mean() < 0.5


def test_strangers_are_predicted_better_than_by_mirroring_or_the_mean(predictor, strangers):
    errors = []
    for shape in strangers:
        found = predictor.predict(shape)
        breast = found.region.breast
        errors.append(
            [
                np.linalg.norm(candidate - shape, axis=1)[breast].mean()
                for candidate in (found.shape, found.mirrored, predictor.mean_shape(shape))
            ]
        )
    model_error, mirror_error, mean_error = np.mean(errors, axis=0)
    assert model_error < 0.9 * mirror_error
    assert model_error < 0.7 * mean_error


@pytest.mark.parametrize("evidence", ["points", "surface"])
def test_the_uncertainty_holds_for_strangers(evidence):
    shares = []
    for shape in alike(30, 500):
        found = predictor(evidence).predict(shape)
        breast = found.region.breast
        normals = vertex_normals(found.shape, found.faces)[breast]
        error = ((shape - found.shape)[breast] * normals).sum(axis=1)
        shares.append((np.abs(error) <= 1.96 * found.sd_normal[breast]).mean())
    assert 0.90 <= np.mean(shares) <= 0.98


def test_surface_evidence_does_not_feel_points_that_slide_along_the_skin(strangers):
    shape = strangers[5]
    mesh = TriangleMesh(shape, model().faces)
    normals = vertex_normals(mesh.vertices, mesh.faces)
    across = np.cross(normals, [0.0, 1.0, 0.0])
    moved = {}
    for evidence in ("points", "surface"):
        one = predictor(evidence)
        slid = shape + 2.0 * across * one.region.healthy[:, None]
        before, after = one.predict(shape), one.predict(slid)
        moved[evidence] = np.linalg.norm(after.shape - before.shape, axis=1)[one.region.breast].mean()
    # What is left is the mirror image, which slides along.
    assert moved["surface"] < moved["points"] + 2.0
    known = predictor("surface")
    slid = shape + 0.5 * across * known.region.healthy[:, None]
    lays = [known.view.known(known.view.align(s)[1]) for s in (shape, slid)]
    assert np.abs(lays[1] - lays[0]).mean() < 0.1


@pytest.mark.slow
def test_samples_are_as_wide_as_the_deviation_says(predictor, strangers):
    found = predictor.predict(strangers[6])
    rng = np.random.default_rng(0)
    drawn = np.stack([found.drawn(rng) for _ in range(400)])
    missing = found.region.missing
    assert np.array_equal(drawn[0][~missing], found.shape[~missing])
    wide = np.sqrt(((drawn - found.shape) ** 2).sum(axis=2).mean(axis=0))[missing]
    assert np.allclose(wide.mean(), found.sd[missing].mean(), rtol=0.1)
    volumes = BreastVolumes.of_model(model())
    sampled = np.std([volumes.cc(shape, "right") for shape in drawn])
    assert deviation_of(volumes.read(found.shape, "right"), found) == pytest.approx(sampled, rel=0.2)


def test_measures_come_with_their_standard_deviation(predictor, strangers):
    found = predictor.predict(strangers[6])
    measures = {one.name: one for one in predicted_measures(model(), found)}
    assert {"volume-right", "NL-NR", "SN-NR", "projection-right"} <= set(measures)
    assert "SN-NL" not in measures  # of the known side
    ids = model().landmark_ids
    across = np.linalg.norm(found.shape[ids["nipple_left"]] - found.shape[ids["nipple_right"]])
    assert measures["NL-NR"].value == pytest.approx(across)
    assert all(one.sd > 0 for one in measures.values() if one.kind != "area")


def test_a_prediction_is_the_posterior_of_the_subjects_and_their_mirror_images(strangers):
    """Where nothing is chosen and the mirror image has no share, but for the join, which moves it at the border."""
    noise, shape = 7.5, strangers[2]
    one = fit_predictor(model(), "right", "points", PredictionParameters(noise=noise, mirror_shares=(0.0,)))
    view, subjects = one.view, training_shapes(model())
    upright = [view.frame.to_frame.apply(subjects.shape(i)) for i in range(subjects.count)]
    laid = np.stack([view.align(each)[1] for own in upright for each in (own, view.frame.mirrored(own))])
    about = (laid - laid.mean(axis=0)).reshape(len(laid), -1)
    _, singular, modes = np.linalg.svd(about, full_matrices=False)
    variances = singular**2 / (len(laid) - 1)
    everybody = ShapeModel(laid.mean(axis=0), modes.T, variances, view.frame.faces)
    lay, torso_laid = view.align(shape)
    known = ~view.region.missing
    posterior = everybody.posterior(torso_laid[known], known, noise**2).mean
    joined = view.joined(posterior[view.region.missing], posterior, torso_laid)
    predicted = lay.apply(one.predict(shape).shape)[view.region.missing]
    assert np.linalg.norm(predicted - joined) < 1e-6 * np.linalg.norm(joined)
    # What is compared is no rounding error of the mean.
    assert np.linalg.norm(posterior - everybody.mean, axis=1)[view.region.breast].mean() > 0.5


def test_a_given_noise_is_used():
    found = fit_predictor(model(), "right", "points", PredictionParameters(noise=7.5))
    assert found.choice.noise == 7.5


def test_a_flat_side_is_recognised_by_its_volume(strangers):
    shape = strangers[3]
    assert not is_absent(model(), shape, "right")
    assert is_absent(model(), flattened(shape, "right"), "right")
    with refused("no-breast", side="left"):
        is_absent(model(), flattened(flattened(shape, "right"), "left"), "right")


def test_a_side_without_landmarks_counts_as_flat_unless_its_volume_is_a_breasts(strangers):
    shape = strangers[3]
    between = 0.7 * shape + 0.3 * flattened(shape, "right")  # half the volume of the other breast
    assert not is_absent(model(), between, "right")
    assert is_absent(model(), between, "right", stated=True)
    assert not is_absent(model(), shape, "right", stated=True)


def test_painted_skin_beside_the_side_without_a_breast_is_refused(predictor, strangers):
    painted = predictor.region.missing
    shape = flattened(strangers[3], "right")
    assert counts_as_absent(model(), shape, painted, "right")
    assert not counts_as_absent(model(), shape, painted)
    with refused("other-side-absent", absent="left"):
        counts_as_absent(model(), shape, painted, "left")
    with refused(n=1700):
        counts_as_absent(model(), shape, painted[:-1], "left")


@pytest.mark.slow
def test_a_breast_grows_where_there_was_none(strangers):
    volumes = BreastVolumes.of_model(model())
    for shape in strangers[:4]:
        flat = flattened(shape, "right")
        found = predictor("surface").predict(flat)
        assert volumes.cc(flat, "right") < 0.3 * volumes.cc(shape, "right")
        true, mirrored = volumes.cc(shape, "right"), volumes.cc(found.mirrored, "right")
        off = abs(volumes.cc(found.shape, "right") - true)
        assert off < max(0.35 * true, 1.1 * abs(mirrored - true))  # never much worse than her mirror image


def test_shapes_of_another_topology_are_refused(predictor, strangers):
    with refused(n_mean=1700):
        predictor.predict(strangers[0][:-1])


def test_another_unit_is_refused(predictor, strangers):
    with pytest.raises(MeshProblem, match="times as large"):
        predictor.predict(0.1 * strangers[0])


def test_what_does_not_look_like_the_model_is_refused(predictor, strangers):
    shape = strangers[0] + 40.0 * np.random.default_rng(0).normal(size=strangers[0].shape)
    with pytest.raises(MeshProblem, match="does not look like the model"):
        predictor.predict(shape)


def test_an_unusual_torso_is_predicted_with_a_warning(predictor, strangers):
    healthy = predictor.region.healthy
    shape = strangers[0] + 8.0 * np.sin(strangers[0][:, [1]] / 3.0) * healthy[:, None]
    assert any("worse than the worst" in str(warning) for warning in predictor.predict(shape).warnings)
    assert not predictor.predict(strangers[0]).warnings


def test_models_of_a_part_are_refused(breast_template):
    part = build_model(Cohort.of(alike(8, 1), breast_template), BuildParameters(part="left"))
    with refused("part-of-torso"):
        fit_predictor(part, "right")


def test_a_foreign_model_with_five_landmarks_will_do(strangers):
    five = ("sternal_notch", "nipple_left", "nipple_right", "lower_pole_left", "lower_pole_right")
    foreign = replace(
        model(), landmark_ids={name: model().landmark_ids[name] for name in five}, info={}, training=None
    )
    found = fit_predictor(foreign, "right", "points").predict(strangers[0])
    assert found.region.missing[foreign.landmark_ids["nipple_right"]]
