from __future__ import annotations

import numpy as np
import pytest

from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.scan.scan import NAMES, Landmarks, canonical_name
from torso import torso


@pytest.mark.parametrize("name", NAMES)
def test_our_names_are_their_own_aliases(name):
    assert canonical_name(name) == name
    assert canonical_name(name.upper().replace("_", " ")) == name


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("SN", "sternal_notch"),
        ("XI", "xiphoid"),
        ("N-L", "nipple_left"),
        ("NR", "nipple_right"),
        ("LBP_R", "lower_pole_right"),
        ("LaBP-L", "lateral_pole_left"),
        ("left nipple", "nipple_left"),
        ("R Lower Pole", "lower_pole_right"),
        ("LowerPoleLeft", "lower_pole_left"),
        ("Jugular Notch", "sternal_notch"),
        ("umbilicus", "navel"),
    ],
)
def test_aliases(label, name):
    assert canonical_name(label) == name


@pytest.mark.parametrize("label", ["", "nipple", "left", "SN left", "nipple left right", "F-1", "42"])
def test_labels_that_say_too_little_are_not_guessed(label):
    assert canonical_name(label) is None


def test_a_landmark_given_twice_is_refused():
    with pytest.raises(LandmarkProblem, match="xiphoid is given twice"):
        Landmarks(("xiphoid", "xiphoid"), np.zeros((2, 3)))


def test_absent_and_complete_sides():
    _, landmarks = torso(edge=20)
    assert landmarks.complete_sides == ("left", "right")
    one = landmarks.only([name for name in landmarks if not name.endswith("right")])
    assert (one.absent_sides, one.complete_sides) == (("right",), ("left",))
    partial = landmarks.only([name for name in landmarks if name != "nipple_right"])
    assert (partial.absent_sides, partial.complete_sides) == ((), ("left",))


def test_mirroring_swaps_names_and_twice_is_the_same():
    _, landmarks = torso(edge=20)
    mirrored = landmarks.mirrored()
    assert np.allclose(mirrored["nipple_left"], landmarks["nipple_right"] * [-1, 1, 1])
    twice = mirrored.mirrored()
    assert twice.names == landmarks.names
    assert np.array_equal(twice.points, landmarks.points)


def test_lookup_of_a_missing_name_is_a_key_error():
    _, landmarks = torso(edge=20)
    with pytest.raises(KeyError):
        landmarks["navel"]
    assert "navel" not in landmarks
