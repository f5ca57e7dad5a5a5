"""A breast that is gone: what an operation changed is no evidence, and what is known moves the answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breastmorph.clinical.feature_requests import parse_request
from breastmorph.clinical.features import measured_features
from breastmorph.clinical.mirror_frame import plane_between, plane_by_surface
from breastmorph.clinical.missing_region import OperatedSkin, OperationLimits
from breastmorph.clinical.predicted_measures import missing_volume
from breastmorph.clinical.predicting import predicted_by, with_measures
from breastmorph.clinical.prediction import deviation_of
from breastmorph.clinical.predictor import PredictionParameters, fit_predictor
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.geometry import Similarity, vertex_normals
from predicted_people import alike, flattened, model, predictor
from refusals import refused


def operated(shape: np.ndarray, seed: int = 5) -> np.ndarray:
    """Her chest with the skin that an operation leaves beside the right breast."""
    view = predictor("surface").view
    return OperatedSkin(view.frame, view.region).of(view.frame.to_frame.apply(shape), seed)


def test_an_operation_changes_skin_beside_the_breast_only(strangers):
    view = predictor("surface").view
    shape = view.frame.to_frame.apply(strangers[0])
    skin = OperatedSkin(view.frame, view.region).of(shape, 1)
    moved = np.linalg.norm(skin - shape, axis=1)
    beside = view.region.around & ~view.region.untouched
    assert moved[~beside].max() == 0.0
    assert moved[beside].max() > 1.0
    across = ((skin - shape) * vertex_normals(shape, view.frame.faces)).sum(axis=1)[beside]
    assert across.max() < 1e-6  # deeper, never higher
    assert np.array_equal(skin, OperatedSkin(view.frame, view.region).of(shape, 1))


def test_evidence_is_the_other_breast_and_skin_away_from_the_operation(strangers):
    view = predictor("surface").view
    region, side = view.region, view.frame.mean[:, 0]
    assert side[region.untouched].min() > -20.0
    assert not (region.untouched & (region.missing | region.healthy)).any()
    # Whatever the skin beside the lost breast looks like: laying-on and evidence do not see it.
    shape = view.frame.to_frame.apply(strangers[1])
    beside = region.around & ~region.untouched & ~region.thorax
    assert beside.sum() > 50
    changed = shape.copy()
    changed[beside] += [3.0, -4.0, 5.0]
    known, with_change = (view.known(view.align(one)[1]) for one in (shape, changed))
    np.testing.assert_allclose(known, with_change, atol=1e-9)
    # The operated half further away is seen, and nothing is laid on by it.
    changed = shape.copy()
    changed[region.thorax & ~region.untouched] += [0.0, 0.0, 5.0]
    assert np.abs(view.known(view.align(changed)[1]) - known).max() > 1.0
    np.testing.assert_allclose(view.align(changed)[0].rotation, view.align(shape)[0].rotation, atol=1e-12)


def test_points_that_slid_along_the_skin_do_not_turn_the_plane_of_the_surface():
    rng = np.random.default_rng(0)
    left = np.column_stack([rng.uniform(5, 120, 400), rng.uniform(-120, 120, 400), np.zeros(400)])
    left[:, 2] = 60.0 - left[:, 0] ** 2 / 300.0 - left[:, 1] ** 2 / 900.0
    normals = np.column_stack([left[:, 0] / 150.0, left[:, 1] / 450.0, np.ones(400)])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    mirror = np.array([-1.0, 1.0, 1.0])
    slip = np.array([0.0, 8.0, 0.0]) - (normals @ [0.0, 8.0, 0.0])[:, None] * normals
    right, right_normals = (left + slip) * mirror, normals * mirror
    points, twins = np.vstack([left, right]), np.vstack([right, left])
    both = np.vstack([normals, right_normals])
    by_points = plane_between(points, twins)
    by_surface = plane_by_surface(points, twins, both, 0.1)
    tilt = [np.degrees(np.arccos(abs(plane.normal[0]))) for plane in (by_points, by_surface)]
    assert tilt[0] > 1.5
    assert tilt[1] < 0.35 * tilt[0]


def test_the_sternum_holds_the_plane_where_a_flank_was_changed():
    """Skin beside a lost breast that sank, and not at the midline, turns the plane less the more the midline counts."""
    grid = np.stack(np.meshgrid(np.linspace(-120, 120, 41), np.linspace(-100, 100, 21)), axis=-1).reshape(
        -1, 2
    )
    points = np.column_stack([grid, 60.0 - grid[:, 0] ** 2 / 300.0])
    normals = np.column_stack([grid[:, 0] / 150.0, np.zeros(len(grid)), np.ones(len(grid))])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    points[:, 0] += 6.0 * np.clip(-points[:, 0] / 60.0, 0.0, 1.0)
    twin = np.array([np.linalg.norm(grid - one * [-1, 1], axis=1).argmin() for one in grid])
    middle = np.abs(grid[:, 0]) < 15.0
    off = []
    for weight in (1.0, 100.0):
        counting = np.where(middle, weight, 1.0)
        plane = plane_by_surface(points, points[twin], normals, 0.4, counting)
        off.append(np.abs(plane.distance(points[np.abs(grid[:, 0]) < 1.0])).mean())
    assert off[0] > 1.5
    assert off[1] < 0.3 * off[0]


def test_a_prediction_holds_what_left_out_breasts_hold(strangers):
    shape = operated(strangers[6])
    whole = predictor("surface")
    fitted = whole.fitted
    # What was missed, added to the predictions, are the breasts themselves, so that more of them is missed_volume.
    average = replace(whole, fitted=replace(fitted, missed_volume=0.0))
    more = missing_volume(average.predict(shape).shape, whole.predict(shape)).volume
    size = whole.view.align(shape)[0].scale
    assert more == pytest.approx(fitted.missed_volume / 1000.0 / size**3, abs=0.02 * abs(more) + 0.05)
    twice = replace(whole, fitted=replace(fitted, missed_volume=2e4))
    assert missing_volume(average.predict(shape).shape, twice.predict(shape)).volume == pytest.approx(
        20.0 / size**3, rel=0.05
    )
    # All points count where a breast is replaced: that is the posterior mean as it stands.
    points = predictor("points")
    fuller = replace(points, fitted=replace(points.fitted, missed_volume=2e4))
    np.testing.assert_array_equal(points.predict(shape).shape, fuller.predict(shape).shape)


def test_mirror_image_for_comparison_is_the_plain_one(strangers):
    shape = operated(strangers[2])
    found = predictor("surface").predict(shape)
    plain = predictor("points").predict(shape)
    # Where this template's mirror images lie between vertices, some of these are missing and stand-ins differ.
    assert np.median(np.abs(found.mirrored - plain.mirrored)[found.region.missing]) < 1e-3


def test_a_stated_volume_moves_the_breast_and_is_no_longer_doubted(strangers):
    shape = operated(strangers[3])
    found = predictor("surface").predict(shape)
    volumes = BreastVolumes.of_model(model())
    wanted = 1.25 * volumes.cc(found.shape, "right")
    told = with_measures(model(), found, [parse_request(f"volume-right={wanted:.1f}cc")])
    assert volumes.cc(told.shape, "right") == pytest.approx(wanted, rel=0.02)
    outside = ~found.region.missing
    np.testing.assert_array_equal(told.shape[outside], shape[outside])
    assert told.sd[found.region.breast].mean() < found.sd[found.region.breast].mean()
    assert told.given == (f"volume-right {wanted:.0f} cc",)
    assert with_measures(model(), found, []) is found


def test_what_is_stated_of_the_other_side_is_refused(strangers):
    found = predictor("surface").predict(strangers[0])
    for text, why in (("volume-left=300cc", "nothing about the right"), ("waist=80cm", "does not know")):
        with pytest.raises(BreastMorphError, match=why):
            with_measures(model(), found, [parse_request(text)])


@pytest.mark.slow
def test_an_earlier_scan_in_any_pose_brings_her_own_breast_back(strangers):
    view = predictor("surface").view
    before = view.frame.to_frame.apply(strangers[4])
    now = operated(strangers[4])
    now[view.region.missing] = view.frame.mean[view.region.missing] - [0.0, 0.0, 20.0]
    pose = Similarity(Rotation.from_euler("y", 40, degrees=True).as_matrix(), np.array([9.0, 80.0, -3.0]))
    found = predictor("surface").predict(now, pose.apply(before))
    breast = found.region.breast
    off = np.linalg.norm(found.shape - before, axis=1)[breast]
    without = np.linalg.norm(predictor("surface").predict(now).shape - before, axis=1)[breast]
    assert off.mean() < 1.5
    assert off.mean() < 0.5 * without.mean()
    assert found.given == ("an earlier scan",)
    with refused("earlier-without-breast", side="right"):
        predicted_by(predictor("surface"), model(), now, flattened(now, "right"))


def test_what_it_would_take_is_a_closed_solid_of_that_volume(strangers):
    import trimesh

    now = operated(strangers[5])
    now[predictor("surface").region.missing] -= [0.0, 0.0, 8.0]
    found = predictor("surface").predict(now)
    take = missing_volume(now, found)
    solid = trimesh.Trimesh(take.solid.vertices, take.solid.faces, process=False)
    assert solid.is_watertight
    assert solid.volume / 1000.0 == pytest.approx(take.volume, rel=1e-6)
    assert take.volume > 0.0
    assert 0.0 < take.deviation < 400.0
    assert missing_volume(found.shape, found).volume == pytest.approx(0.0, abs=1e-6)


def test_the_seam_has_no_step_where_the_skin_was_operated():
    # What an operation took beside the breast is made good inside the region, and not at all at its border.
    found = predictor("surface")
    gentle = PredictionParameters(operation=OperationLimits(sunken=0.0, slip=0.0))
    untouched = fit_predictor(model(), "right", "surface", gentle)
    view, rows, plain = found.view, found.fitted.rows, untouched.fitted.rows
    taken = np.linalg.norm(rows.border[0] - plain.border[0], axis=2).max()
    assert taken > 1.0
    beside, at = view.frame.mean[view.seam.border], view.frame.mean[view.seam.region]
    away = np.linalg.norm(at[:, None] - beside, axis=2).min(axis=1)
    made_good = np.linalg.norm(rows.inside[0] - plain.inside[0], axis=2).max(axis=0)
    assert made_good[away < 12.0].max() < 0.7 * taken
    assert made_good[away > 50.0].max() < 0.05 * taken


def test_of_both_breasts_the_population_tells_and_says_how_little(strangers):
    """On flat chests: what the thorax tells, joined to it, with an uncertainty that holds for strangers."""
    both = predictor("surface", "both")
    within, volumes = [], BreastVolumes.of_model(model())
    for shape in strangers:
        flat = flattened(flattened(shape, "left"), "right")
        found = both.predict(flat)
        assert np.array_equal(found.shape[~found.region.missing], flat[~found.region.missing])
        assert min(volumes.cc(found.shape, side) for side in ("left", "right")) > 100.0
        breast = found.region.breast
        off = ((found.shape - shape) * vertex_normals(found.shape, found.faces)).sum(axis=1)[breast]
        within.append((np.abs(off) <= 1.96 * found.sd_normal[breast]).mean())
    assert 0.85 < np.mean(within) <= 1.0


@pytest.mark.slow
def test_weight_tells_of_both_breasts_where_the_models_subjects_have_it(strangers):
    """A number of the table that goes with the breasts moves both, and makes them surer; unknown ones are refused."""
    plain = model()
    volumes = BreastVolumes.of_model(plain)

    def weight(shape: np.ndarray) -> float:
        return 50.0 + sum(volumes.cc(shape, side) for side in ("left", "right")) / 40.0

    weights = np.array([weight(shape) for shape in alike(30, 1)])
    weights[3] = np.nan  # nobody asked her
    known = replace(plain, training=replace(plain.training, columns={"weight": weights}))
    feature = next(one for one in measured_features(known) if one.name == "volume-left")
    errors, fitted = [], fit_predictor(known, "both")
    for shape in strangers[:3]:
        flat = flattened(flattened(shape, "left"), "right")
        told = parse_request(f"weight={weight(shape):.3f}")
        both = [predicted_by(fitted, known, flat, stated=some) for some in ((), (told,))]
        errors.append([abs(weight(one.shape) - weight(shape)) for one in both])
        spread = [deviation_of(feature.read(one.shape), one) for one in both]
        assert spread[1] < 0.9 * spread[0]
        assert both[1].given[0].startswith("weight ")
    without, with_weight = np.mean(errors, axis=0)
    assert with_weight < 0.8 * without
    with refused(name="weight"):
        predicted_by(fit_predictor(plain, "both"), plain, flat, stated=(told,))
