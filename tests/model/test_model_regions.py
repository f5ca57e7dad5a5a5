"""Breast regions: one piece on each side, the same from few landmarks, refused where nothing shows a breast."""

from __future__ import annotations

import numpy as np
import pytest

from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.mask import RegionParameters, breast_regions
from breastmorph.mesh.topology import face_components
from breastmorph.scan.scan import SIDES
from torso import torso

EDGE = 7.0
FIVE = ("sternal_notch", "nipple_left", "nipple_right", "lower_pole_left", "lower_pole_right")


def test_regions_are_connected_disjoint_and_hold_their_landmarks():
    mesh, landmarks = torso(EDGE)
    found = breast_regions(mesh, landmarks)
    assert not (found["left"] & found["right"]).any()
    for side, sign in (("left", 1), ("right", -1)):
        inside = found[side]
        assert (sign * mesh.vertices[inside, 0] > 0).all()
        nearest = np.linalg.norm(mesh.vertices - landmarks[f"nipple_{side}"], axis=1).argmin()
        assert inside[nearest]
        for part in (inside, ~inside):
            assert face_components(mesh.faces[part[mesh.faces].all(axis=1)]).max() == 0
    assert 0.05 < found["left"].mean() < 0.35


def test_regions_of_a_symmetric_mesh_mirror_each_other():
    mesh, landmarks = torso(EDGE)
    found = breast_regions(mesh, landmarks)
    assert found["left"].sum() == found["right"].sum()


def test_a_lower_level_reaches_further():
    mesh, landmarks = torso(EDGE)
    near, far = (
        breast_regions(mesh, landmarks, RegionParameters(level=level))["left"] for level in (0.1, 0.03)
    )
    assert far[near].all()
    assert far.sum() > 1.2 * near.sum()


@pytest.mark.parametrize("names", [FIVE, ("sternal_notch", "xiphoid", "nipple_left", "lower_pole_left")])
def test_regions_from_few_landmarks_are_nearly_the_same(names):
    mesh, landmarks = torso(EDGE)
    full, few = breast_regions(mesh, landmarks), breast_regions(mesh, landmarks.only(names))
    for side in SIDES:
        assert (full[side] & few[side]).sum() > 0.8 * (full[side] | few[side]).sum()


def test_landmarks_that_show_no_breast_are_refused():
    mesh, landmarks = torso(12.0)
    with pytest.raises(LandmarkProblem, match="where the breasts are"):
        breast_regions(mesh, landmarks.only(("sternal_notch", "xiphoid", "nipple_left")))
