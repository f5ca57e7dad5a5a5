"""What is to be added or taken away: solids of the volume that is shown, thickness, base; cuts and their areas."""

from dataclasses import replace

import numpy as np
import pytest
import trimesh

import breastmorph as bm
from breastmorph.clinical.planning import cut, plan_of, sections
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh
from predicted_people import flattened, model, predictor
from refusals import refused


@pytest.fixture(scope="module")
def predicted(strangers):
    """A chest without its right breast, and its prediction."""
    now = predictor("surface").view.frame.to_frame.apply(flattened(strangers[5], "right"))
    return now, predictor("surface").predict(now)


def reopened(solid, path):
    """A solid as another program sees its STL file."""
    save_mesh(solid, path)
    return trimesh.load(path)


@pytest.mark.parametrize("mirrored", [False, True])
def test_the_solid_is_closed_and_has_the_volume_that_is_shown(predicted, tmp_path, mirrored):
    now, found = predicted
    plan = plan_of(model(), now, found, mirrored=mirrored)
    one = plan.side("right")
    assert one.added.volume > 100.0
    for part in (one.added, one.removed):
        if part.solid is not None:
            there = reopened(part.solid, tmp_path / "a.stl")
            assert there.is_watertight
            assert there.is_winding_consistent
            assert there.volume / 1000.0 == pytest.approx(part.volume, abs=0.5, rel=1e-3)
            assert there.volume > 0.0  # outside out
    assert one.volume == pytest.approx(one.added.volume - one.removed.volume)
    assert one.deviation > 0.0
    with refused("not-planned", side="left"):
        plan.side("left")


def test_what_is_added_and_what_is_removed_make_up_the_whole(predicted, tmp_path):
    """A ragged border, islands and pinches: a target that goes in and out of the skin at random."""
    now, found = predicted
    rng = np.random.default_rng(3)
    outwards = trimesh.Trimesh(now, model().faces, process=False).vertex_normals
    step = np.where(rng.uniform(size=len(now)) < 0.5, 3.0, -2.0) * found.region.missing
    there = replace(found, shape=now + step[:, None] * outwards)
    plan = plan_of(model(), now, there)
    one = plan.side("right")
    for part in (one.added, one.removed):
        assert reopened(part.solid, tmp_path / "a.stl").is_watertight
    whole = trimesh.Trimesh(now, model().faces, process=False)
    after = trimesh.Trimesh(there.shape, model().faces, process=False)
    difference = (after.volume - whole.volume) / 1000.0  # what both leave open is the same
    assert one.volume == pytest.approx(difference, abs=0.5)
    assert one.added.volume > 1.0 < one.removed.volume


def test_thickness_base_and_volume_of_a_known_slab():
    """A flat chest with a block of 10 mm on it."""
    now = model().mean.copy()
    found = predictor("surface").predict(predictor("surface").view.frame.to_frame.apply(now))
    missing = found.region.missing
    flat = np.where(missing[:, None], now * [1.0, 1.0, 0.0] + [0.0, 0.0, now[~missing, 2].mean()], now)
    slab = flat + missing[:, None] * np.array([0.0, 0.0, 10.0])
    plan = plan_of(model(), flat, replace(found, shape=slab))
    one = plan.side(found.region.side)
    deep = found.region.breast
    inner = deep & (np.abs(plan.thickness - 10.0) < 0.2)
    assert inner.sum() > 0.5 * deep.sum()  # at the border the skin beside is nearer
    point = slab[np.flatnonzero(inner)[0]]
    assert plan.thickness_at(point)[0] == pytest.approx(10.0, abs=0.2)
    width, height = np.ptp(flat[missing & (plan.thickness > 2.0), :2], axis=0)
    assert (one.base_width, one.base_height) == (pytest.approx(width), pytest.approx(height))
    assert one.thickest == pytest.approx(plan.thickness.max())


def test_it_says_what_it_is_and_a_synthetic_model_gives_no_advice(predicted):
    now, found = predicted
    plan = plan_of(model(), now, found)
    assert "not the outcome of an operation" in plan.as_dict()["note"]
    assert plan.as_dict()["advice"]
    made_up = replace(model(), info={**model().info, "synthetic": "phantoms"})
    told = plan_of(made_up, now, found)
    assert told.synthetic
    assert not told.as_dict()["advice"]
    assert "no advice" in repr(told)
    from breastmorph.report.handout import plan_rows

    for code, advice in (("en", ("To add", "To take away")), ("de", ("Hinzuzufügen", "Wegzunehmen"))):
        assert set(advice) <= {row[0] for row in plan_rows(plan, bm.language(code))}
        assert not set(advice) & {row[0] for row in plan_rows(told, bm.language(code))}


def test_an_edit_is_planned_on_both_sides(editor, tmp_path):
    from breastmorph.clinical.feature_requests import parse_request

    edit = editor.exact([parse_request("volume-left=+40cc")], ["thorax", "right"])
    plan = plan_of(editor.model, edit.before, edit)
    left, right = plan.side("left"), plan.side("right")
    # The border of the volume is not that of what moves: skin beside the breast does, too.
    assert left.volume == pytest.approx(40.0, abs=12.0)
    assert abs(right.volume) < 2.0
    assert reopened(left.added.solid, tmp_path / "a.stl").is_watertight


def test_there_is_no_mirror_image_of_two_missing_breasts(predicted):
    now, found = predicted
    both = replace(found, region=replace(found.region, side="both"))
    with refused("no-mirror-image"):
        plan_of(model(), now, both, mirrored=True)


def test_cuts_of_a_body_with_a_known_area():
    body = trimesh.creation.cylinder(radius=50.0, height=100.0, sections=256)
    mesh = TriangleMesh(body.vertices, body.faces)
    assert cut(mesh, 2, 7.0).area == pytest.approx(np.pi * 25.0, rel=1e-3)
    upright = cut(mesh, 0, 0.0)
    assert upright.area == pytest.approx(100.0, rel=1e-3)
    assert np.array_equal(upright.line[0], upright.line[-1])  # closed
    assert np.allclose(upright.line[:, 0], 0.0)
    assert len(cut(mesh, 2, 500.0).line) == 0


def test_cuts_go_through_the_nipple_and_show_what_is_added(predicted):
    now, found = predicted
    level, upright = sections(model(), {"scanned": now, "predicted": found.shape}, "right")
    nipple = found.shape[model().landmark_ids["nipple_right"]]
    for one, axis in ((level, 1), (upright, 0)):
        for outline in one.outlines.values():
            assert np.allclose(outline.line[:, axis], nipple[axis], atol=1e-6)
            steps = np.linalg.norm(np.diff(outline.line, axis=0), axis=1)
            assert steps.max() < 40.0  # one line along the skin, no jumps
        away = np.linalg.norm(one.outlines["predicted"].line - nipple, axis=1)
        assert away.min() < 8.0
        assert one.outlines["predicted"].area > one.outlines["scanned"].area + 3.0
