from __future__ import annotations

import numpy as np
import pytest

from breastmorph.mask import breast_mask
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.registration import Registrar, preset
from breastmorph.registration.absent_breast import BreastHeight, without_breast
from breastmorph.registration.parameters import AbsentBreastParameters
from breastmorph.registration.prepared import PreparedTemplate
from breastmorph.registration.result import shape_metrics
from breastmorph.scan.scan import Scan
from breastmorph.template import default_template, template_from
from torso import torso

PARAMETERS = AbsentBreastParameters()


def taken_off(mesh, landmarks, side="left"):
    """The mesh without the breast of a side."""
    return without_breast(mesh, breast_mask(mesh, landmarks, side), side, 0.0, PARAMETERS)


@pytest.mark.parametrize("side", ["left", pytest.param("right", marks=pytest.mark.slow)])
def test_the_default_templates_breast_comes_off_without_a_fold(side):
    template = default_template()
    for mesh in (template.mesh, template.coarse):
        before = mesh.vertices.copy()
        flat = taken_off(mesh, template.landmarks, side)
        assert shape_metrics(mesh.vertices, flat.vertices, mesh.faces)["flipped_percent"] == 0.0
        assert np.array_equal(mesh.vertices, before)
        sign = 1.0 if side == "left" else -1.0
        beyond = mesh.vertices[:, 0] * sign < 5.0
        assert np.array_equal(flat.vertices[beyond], mesh.vertices[beyond])  # the other side stays


def test_what_is_left_is_flat_where_the_breast_was():
    mesh, landmarks = torso(edge=6)
    flat = taken_off(mesh, landmarks)
    nipple = np.linalg.norm(mesh.vertices - landmarks["nipple_left"], axis=1).argmin()
    without, _ = torso(edge=6, size=0.0)
    assert mesh.vertices[nipple, 2] - flat.vertices[nipple, 2] > 30
    assert abs(flat.vertices[nipple, 2] - without.vertices[nipple, 2]) < 15


@pytest.mark.parametrize(
    "pose",
    [
        Similarity(),
        Similarity(rotation_about(np.array([1.0, 2.0, 0.5]), 70.0), np.array([5.0, 9.0, -300.0]), 1.3),
    ],
)
def test_how_far_a_scan_stands_out_does_not_depend_on_its_pose(pose):
    mesh, landmarks = torso(edge=6)
    flat = taken_off(mesh, landmarks)
    shares = []
    for size in (0.0, 0.5, 1.0):
        scan = torso(edge=6, size=size)[0]
        placed = Surface(scan.with_vertices(pose.apply(scan.vertices)))
        shares.append(BreastHeight.of(mesh, flat, PARAMETERS).share_in(placed, pose))
    assert shares[0] < 0.3
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] == pytest.approx(1.0, abs=0.01)


def test_a_scan_with_a_hole_there_shows_no_breast():
    mesh, landmarks = torso(edge=6)
    flat = taken_off(mesh, landmarks)
    right = mesh.kept(mesh.vertices[mesh.faces, 0].max(axis=1) < 0.0)
    assert BreastHeight.of(mesh, flat, PARAMETERS).share_in(Surface(right), Similarity()) == 0.0


def one_sided(size_left):
    """A scan without landmarks on the left, whose left breast has the given size."""
    flat, _ = torso(edge=6, size=size_left)
    full, landmarks = torso(edge=6)
    vertices = np.where(full.vertices[:, :1] > 0, flat.vertices, full.vertices)
    names = [name for name in landmarks if not name.endswith("left")]
    return Scan("one-sided", full.with_vertices(vertices), landmarks.only(names))


def test_an_absent_breast_is_taken_off_and_a_present_one_is_kept_with_a_warning():
    registrar = Registrar(template_from(*torso(edge=9)))
    nipple = registrar.template.landmark_ids["nipple_left"]
    for size, present in ((0.0, False), (1.0, True)):
        scan = one_sided(size)
        result = registrar.register(scan)
        assert result.absent_side == "left"
        assert any("looks like a breast" in str(warning) for warning in result.warnings) == present
        assert Surface(scan.mesh).closest(result.vertices[nipple][None]).distances[0] < 0.5
        assert result.metrics["flipped_percent"] == 0.0


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_template_may_stand_anywhere(side):
    mesh, landmarks = torso(edge=6)
    away = Similarity(translation=np.array([400.0, 0.0, 900.0]))
    there, marks = mesh.with_vertices(away.apply(mesh.vertices)), landmarks.transformed(away)
    heights = []
    for whole, points in ((mesh, landmarks), (there, marks)):
        prepared = PreparedTemplate(template_from(whole, points, whole), preset("rigid"))
        heights.append(prepared.without_breast(side).height)
    assert np.nanmax(heights[0].breast) > 30.0
    assert np.allclose(heights[0].breast, heights[1].breast, equal_nan=True)
