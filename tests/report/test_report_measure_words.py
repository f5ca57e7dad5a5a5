"""Measures as people read them: in words and cm."""

from __future__ import annotations

import math

import pytest

from breastmorph.clinical.distances import DISTANCES, PAIRS
from breastmorph.clinical.measure_table import Measure
from breastmorph.foundation.terms import MEASURES, measure_in_words
from breastmorph.report.measure_tables import change_row, in_cm, measure_row


def test_every_measure_has_words():
    assert {*DISTANCES, *PAIRS["volume"]} < set(MEASURES)
    assert len(set(MEASURES.values())) == len(MEASURES)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("SN-NL", "Sternal notch to left nipple"),
        ("SN-NL tape", "Sternal notch to left nipple, tape"),
        ("bmi", "bmi"),
    ],
)
def test_a_name_in_words(name, words):
    assert measure_in_words(name) == words


@pytest.mark.parametrize(
    ("value", "unit", "digits", "text"),
    [
        (215.04, "mm", 1, "21.5 cm"),
        (215.04, "mm", 2, "21.50 cm"),
        (-0.02, "mm", 2, "0.00 cm"),
        (433.4, "cc", 2, "433 cc"),
        (23.66, "", 1, "23.7"),
        (math.nan, "mm", 1, ""),
    ],
)
def test_lengths_in_cm_and_volumes_in_whole_cc(value, unit, digits, text):
    assert in_cm(value, unit, digits) == text


def test_an_edit_has_the_same_numbers_on_a_sheet_and_on_the_terminal():
    change = Measure("SN-NL", "", 213.96, sd=2.2, beside={"before": 200.0, "requested": 215.0})
    numbers = ["20.00 cm", "21.50 cm", "21.40 \N{PLUS-MINUS SIGN} 0.2 cm", "-0.10 cm"]
    assert change_row(change, in_words=True) == ["Sternal notch to left nipple", *numbers]
    assert change_row(change, in_words=False) == ["SN-NL", *numbers]


def test_what_is_held_or_not_told_by_the_shape():
    held = Measure("volume-left", "", 400.2, "cc", held=True, beside={"before": 400.0, "requested": 400.0})
    assert change_row(held, in_words=True) == ["Left breast volume", "400 cc", "held", "400 cc", "+0 cc"]
    column = Measure("bmi", "", math.nan, "", beside={"requested": math.nan})
    assert change_row(column, in_words=True) == ["bmi", "", "changed", "", ""]


def test_a_small_spread_is_not_zero():
    one = Measure("NL-NR", "straight", 203.1, sd=0.3, beside={"mirrored": 209.8})
    assert measure_row(one, in_words=True) == ["Nipple to nipple", "", "20.3 cm", "< 0.1 cm", "21.0 cm"]
    assert measure_row(one, in_words=False) == ["NL-NR", "", "20.3 cm", "< 0.1 cm", "21.0 cm"]
    volume = Measure("volume", "volume", 488.2, "cc", sd=0.4, beside={"other side": 711.0, "mirrored": 727.0})
    assert measure_row(volume, in_words=True)[3] == "< 1 cc"
