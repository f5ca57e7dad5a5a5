"""The mask: one function of mesh and landmarks, in any unit, with holes, with one side absent."""

from __future__ import annotations

import numpy as np
import pytest

from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.mask import breast_mask, measure_breasts
from breastmorph.mesh.closest import Geodesics
from breastmorph.mesh.geometry import Similarity, rotation_about, without_pinches
from breastmorph.mesh.remeshing import thinned
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import Landmarks
from refusals import refused
from torso import torso


@pytest.fixture(scope="module")
def subject():
    return torso(edge=6.0)


def test_mask_is_high_on_the_breast_and_low_elsewhere(subject):
    mesh, landmarks = subject
    mask = breast_mask(mesh, landmarks)
    assert mask.min() > 0
    assert 0.4 < mask.max() <= 1
    near = np.linalg.norm(mesh.vertices - landmarks["nipple_left"], axis=1) < 30
    assert mask[near].mean() > 3 * mask[np.abs(mesh.vertices[:, 0]) < 5].mean()


def test_sides_add_up_and_keep_to_their_side(subject):
    mesh, landmarks = subject
    left, right = (breast_mask(mesh, landmarks, side) for side in ("left", "right"))
    assert np.allclose(left + right, breast_mask(mesh, landmarks))
    assert left[mesh.vertices[:, 0] > 20].sum() > 3 * left[mesh.vertices[:, 0] < -20].sum()
    mirror_error = np.abs(np.sort(left) - np.sort(right)).max()
    assert mirror_error < 0.01  # a symmetric torso has a symmetric mask


@pytest.mark.parametrize("factor", [0.1, 0.001])
def test_unit_does_not_matter(subject, factor):
    mesh, landmarks = subject
    scaled = mesh.with_vertices(factor * mesh.vertices)
    marks = landmarks.transformed(Similarity(scale=factor))
    assert np.allclose(breast_mask(scaled, marks), breast_mask(mesh, landmarks), atol=1e-6)


def test_lengths_do_not_depend_on_the_pose_and_are_the_exact_geodesics(subject):
    mesh, landmarks = subject
    turn = Similarity(rotation_about(np.array([1.0, 2.0, 3.0]), 70.0), np.array([100.0, 0.0, -50.0]))
    there = measure_breasts(mesh.with_vertices(turn.apply(mesh.vertices)), landmarks.transformed(turn))
    here = measure_breasts(mesh, landmarks)
    names = ("nipple_left", "lateral_pole_left", "xiphoid", "lower_pole_left", "sternal_notch")
    geodesics = Geodesics(mesh, landmarks.array(names))
    exact = [geodesics.distance(0, k) for k in range(1, 5)]
    assert np.allclose(here.sides["left"], exact, rtol=1e-6)
    assert np.allclose(here.sides["left"], there.sides["left"], rtol=1e-6)


def test_geodesics_go_round_holes(subject):
    mesh, landmarks = subject
    between = 0.5 * (landmarks["nipple_left"] + landmarks["sternal_notch"])
    far = np.linalg.norm(mesh.vertices - between, axis=1) > 35
    holed = mesh.kept(far[mesh.faces].all(axis=1))
    before, after = (measure_breasts(m, landmarks).sides["left"] for m in (mesh, holed))
    assert after[3] > before[3]  # nipple to notch makes a detour
    assert after[3] < 1.5 * before[3]
    assert (
        np.abs(breast_mask(holed, landmarks) - breast_mask(mesh, landmarks)[far_used(mesh, far)]).max() < 0.15
    )


def far_used(mesh: TriangleMesh, far: np.ndarray) -> np.ndarray:
    used = np.zeros(mesh.n_vertices, bool)
    used[mesh.faces[far[mesh.faces].all(axis=1)]] = True
    return used


def test_absent_side_is_mirrored_across_the_sternum(subject):
    mesh, landmarks = subject
    one_sided = landmarks.only([name for name in landmarks if not name.endswith("_right")])
    mask = measure_breasts(mesh, one_sided).mask(one_sided)
    assert mask.mirrored_side == "right"
    assert np.allclose(mask.at(mesh.vertices), breast_mask(mesh, landmarks), atol=0.02)


def test_incomplete_landmarks_are_refused(subject):
    mesh, landmarks = subject
    with refused(kind=LandmarkProblem, names=["xiphoid"]):
        breast_mask(mesh, landmarks.only([name for name in landmarks if name != "xiphoid"]))
    with pytest.raises(LandmarkProblem, match="one breast"):
        breast_mask(mesh, landmarks.only(["sternal_notch", "xiphoid", "nipple_left"]))
    same = Landmarks.of(
        {name: landmarks[name] for name in landmarks} | {"lower_pole_left": landmarks["nipple_left"]}
    )
    with refused(kind=LandmarkProblem, nipple="nipple_left", name="lower_pole_left"):
        breast_mask(mesh, same)


def test_only_the_part_around_the_lines_is_thinned(subject):
    mesh, landmarks = subject
    parts = []

    def thin(part):
        parts.append(part.n_faces)
        return thinned(without_pinches(part)[0], 8.0)

    whole, found = measure_breasts(mesh, landmarks), measure_breasts(mesh, landmarks, thin)
    assert parts
    assert max(parts) < 0.7 * mesh.n_faces
    assert 0.0 < np.abs(found.sides["left"] / whole.sides["left"] - 1.0).max() < 0.01
