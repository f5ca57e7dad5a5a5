"""Choosing subjects by conditions over the cohort's table."""

from __future__ import annotations

import numpy as np
import pytest

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.building import as_number, chosen_rows
from refusals import refused

TABLE = [
    {"id": "a", "bmi": "22.5", "operated": "yes", "centre": "Ulm", "absent": "left", "Age (years)": "30"},
    {"id": "b", "bmi": "27", "operated": "no", "centre": "Bonn", "absent": "", "Age (years)": "45"},
    {"id": "c", "bmi": "31", "operated": "1", "centre": "Ulm", "absent": "", "Age (years)": "60"},
    {"id": "d", "bmi": "", "operated": "FALSE", "centre": "", "absent": "", "Age (years)": "51"},
]


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("bmi > 25", "bc"),
        ("bmi>25 and not operated", "b"),
        ("operated", "ac"),
        ("not operated", "bd"),
        ("operated == yes", "ac"),
        ("operated == 'no'", "bd"),
        ("operated == 1", "ac"),
        ("operated == True", "ac"),
        ("20 < bmi <= 27", "ab"),
        ("bmi < 25 or bmi > 30", "ac"),
        ("not bmi > 25", "a"),
        ("bmi == 27.0", "b"),
        ("centre == 'ulm'", "ac"),
        ("centre != 'Ulm'", "b"),
        ("centre in ('Bonn', 'Wien')", "b"),
        ("centre not in ['Bonn']", "ac"),
        ("id in ('a', 'd')", "ad"),
        ("bmi in (27, 31)", "bc"),
        ("absent == ''", "bcd"),
        ("absent != ''", "a"),
        ("bmi > -1", "abc"),
        ("(bmi > 25 or operated) and centre == 'Ulm'", "ac"),
        ("age_years >= 50", "cd"),
        ("BMI > 30", "c"),
        ("operated or bmi > 100", "ac"),
        ("bmi > 25 and bmi < 20", ""),
    ],
)
def test_conditions(expression, chosen):
    found = chosen_rows(TABLE, expression)
    assert "".join(row["id"] for row, keep in zip(TABLE, found, strict=True) if keep) == chosen
    assert found.dtype == bool


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "bmi >",
        "bmi = 25",
        "__import__('os').system('true')",
        "bmi.__class__",
        "bmi + 1 > 2",
        "[x for x in (1,)]",
        "lambda: 1",
        "bmi > 25; operated",
        "bmi in 'abc'",
        "bmi is 25",
        "(bmi := 3) > 2",
        "f'{bmi}' == '3'",
        "1",
        "'text'",
        "(" * 500 + "bmi" + ")" * 500,
        "not " * 400 + "operated and " * 100 + "operated",
        "bmi > 1e999999 or " * 200 + "operated",
    ],
)
def test_anything_else_is_refused_and_never_executed(expression):
    with pytest.raises(BreastMorphError) as caught:
        chosen_rows(TABLE, expression)
    assert caught.value.remedy


def test_an_unknown_column_names_those_there_are():
    with pytest.raises(
        BreastMorphError, match=r"bmo.*Its columns are id, bmi, operated, centre, absent, age_years"
    ):
        chosen_rows(TABLE, "bmo > 25")


def test_text_where_a_number_or_truth_is_needed_names_the_column():
    with pytest.raises(BreastMorphError, match=r"'centre' holds text .'Ulm'. where a number"):
        chosen_rows(TABLE, "centre > 3")
    with refused("condition", id="centre", value="Ulm"):
        chosen_rows(TABLE, "not centre")


def test_no_table_is_said():
    with refused("no-table"):
        chosen_rows([{}, {}], "bmi > 3")


def test_cells_as_numbers():
    assert as_number(" 3.5 ") == 3.5
    assert (as_number("Yes"), as_number("no")) == (1.0, 0.0)
    assert np.isnan([as_number(text) for text in ("", "text", "inf", "nan")]).all()


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("bmi > 25 AND operated", "and instead of AND"),
        ("operated = no", "== instead of ="),
        ("bmi > 25 && operated", "and instead of &"),
        ("bmi <> 25", "!= instead of <>"),
    ],
)
def test_habits_of_other_languages_get_a_hint(expression, hint):
    with pytest.raises(BreastMorphError) as told:
        chosen_rows([{"bmi": "30", "operated": "no"}], expression)
    assert hint in told.value.remedy
