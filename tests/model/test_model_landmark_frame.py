"""Models of other programs: their landmarks tell their unit, their axes and whether the sides are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.files import is_unchanged, load_model, save_model
from breastmorph.model.shape_model import ShapeModel, landmark_frame
from breastmorph.usecases.subject import registered_patient
from refusals import refused
from small_cohort import built, small_cohort

FIVE = ("sternal_notch", "nipple_left", "nipple_right", "lower_pole_left", "lower_pole_right")
Z_UP = Rotation.from_euler("x", 90, degrees=True).as_matrix()
BACKWARDS = Rotation.from_euler("y", 180, degrees=True).as_matrix()


def model(few: bool = False) -> ShapeModel:
    full = built(small_cohort()).truncate(4)
    ids = {name: full.landmark_ids[name] for name in FIVE}
    return replace(full, landmark_ids=ids) if few else full


def other_side(name: str) -> str:
    there = {"left": "right", "right": "left"}
    return "_".join(there.get(word, word) for word in name.split("_"))


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize(
    "elsewhere",
    [
        Similarity(scale=0.001),
        Similarity(scale=0.1),
        Similarity(Z_UP),
        Similarity(BACKWARDS, np.array([0.2, 1.1, -0.3]), 0.001),
    ],
    ids=["metres", "centimetres", "z up", "metres, backwards"],
)
def test_a_model_in_another_unit_or_along_other_axes_is_read_in_ours(few, elsewhere, tmp_path):
    ours = model(few)
    save_model(ours.transform(elsewhere), tmp_path / "foreign.h5")
    read = load_model(tmp_path / "foreign.h5")
    place = read.mean.mean(axis=0) - ours.mean.mean(axis=0)
    assert np.allclose(read.mean - place, ours.mean, atol=1e-2)
    assert np.allclose(read.deviations, ours.deviations, rtol=1e-4)
    assert np.allclose(np.abs(read.rows([3])), np.abs(ours.rows([3])), atol=1e-4)
    assert is_unchanged(read) is None  # its numbers are others than those in the file


@pytest.mark.parametrize(
    "elsewhere", [Similarity(), Similarity(Z_UP, scale=0.001)], ids=["ours", "z up, metres"]
)
def test_a_model_that_is_inside_out_is_turned(elsewhere, tmp_path, caplog):
    ours = model(few=True)
    inside_out = replace(ours.transform(elsewhere), faces=ours.faces[:, ::-1])
    save_model(inside_out, tmp_path / "inside.h5")
    read = load_model(tmp_path / "inside.h5")
    assert np.array_equal(read.faces, ours.faces)
    assert is_unchanged(read) is None
    assert "inside out" in caplog.text
    save_mesh(ours.mesh(ours.mean).flipped(), tmp_path / "patient.ply")
    assert np.allclose(registered_patient(read, tmp_path / "patient.ply").shape, ours.mean, atol=1e-2)


@pytest.mark.parametrize("few", [False, True])
def test_a_model_in_our_frame_is_read_as_it_is(few, tmp_path):
    ours = model(few)
    leaning = ours.transform(Similarity(Rotation.from_euler("xyz", [25, 8, 5], degrees=True).as_matrix()))
    for one in (ours, leaning):
        save_model(one, tmp_path / "model.npz")
        assert np.array_equal(load_model(tmp_path / "model.npz").mean, one.mean)
        assert is_unchanged(load_model(tmp_path / "model.npz"))


def test_landmarks_of_the_wrong_sides_are_refused(tmp_path):
    swapped = {other_side(name): vertex for name, vertex in model(few=True).landmark_ids.items()}
    bare = replace(model(), landmark_ids={})
    with refused("sides-swapped", LandmarkProblem) as caught:
        bare.with_landmark_ids(swapped)
    assert caught.value.code == "sides-swapped"
    save_model(bare, tmp_path / "bare.h5")
    with refused("sides-swapped", LandmarkProblem):
        load_model(tmp_path / "bare.h5", swapped)


def test_a_file_with_swapped_sides_is_read_with_a_warning(tmp_path, caplog):
    swapped = {other_side(name): vertex for name, vertex in model().landmark_ids.items()}
    save_model(replace(model(), landmark_ids=swapped), tmp_path / "swapped.h5")
    assert load_model(tmp_path / "swapped.h5").landmark_ids == swapped
    assert "sides swapped or model mirrored" in caplog.text


@pytest.mark.parametrize("names", [["nipple_left", "nipple_right"], None], ids=["only nipples", "all"])
def test_a_file_with_one_pair_exchanged_is_read_with_a_warning(names, tmp_path, caplog):
    ids = {name: vertex for name, vertex in model().landmark_ids.items() if names is None or name in names}
    save_model(replace(model(), landmark_ids=ids), tmp_path / "right.h5")
    load_model(tmp_path / "right.h5")
    assert not caplog.text
    ids["nipple_left"], ids["nipple_right"] = ids["nipple_right"], ids["nipple_left"]
    save_model(replace(model(), landmark_ids=ids), tmp_path / "exchanged.h5")
    assert load_model(tmp_path / "exchanged.h5").landmark_ids == ids
    assert "exchanged (nipple)" in caplog.text


def test_few_landmarks_and_those_of_no_torso_tell_nothing():
    marks = model().landmarks
    assert landmark_frame(marks.only(FIVE[:4])) is None
    anywhere = np.random.default_rng(0).normal(scale=150.0, size=marks.points.shape)
    assert landmark_frame(replace(marks, points=anywhere)) is None
    assert landmark_frame(replace(marks, points=0.02 * marks.points)) is None  # in no unit an adult's
