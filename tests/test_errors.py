"""Errors say where, once, what is wrong and what to do, to each audience in its own words."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from breastmorph.foundation.errors import (
    BreastMorphError,
    FileProblem,
    LandmarkProblem,
    MeshProblem,
    error_context,
)
from breastmorph.foundation.messages import Audience

TOO_LARGE = "Decimate it first, or raise max_faces"


@pytest.mark.parametrize(
    ("error", "where"),
    [
        (LandmarkProblem("xiphoid is missing", "Add it"), Path("a.json")),
        (FileProblem("the file is empty"), Path("a.ply")),
        (LandmarkProblem("xiphoid is missing", "Add it", "b.json"), "b.json"),
    ],
)
def test_the_nearest_place_of_its_kind_is_named(error, where):
    with (
        pytest.raises(BreastMorphError) as caught,
        error_context(Path("a.ply")),
        error_context(Path("a.json"), LandmarkProblem),
    ):
        raise error
    assert caught.value is error
    assert error.where == where
    assert str(error).startswith(f"{where}: {error.cause}")


def too_large():
    return MeshProblem(
        "too large: {faces:,} faces (at most {most:,})",
        TOO_LARGE,
        Path("folder/a.ply"),
        code="too-large/decimate",
        faces=6_000_000,
        most=5_000_000,
    )


def test_an_error_keeps_its_values_and_fills_them_in():
    error = too_large()
    assert (error.code, error.name) == ("too-large", "too-large/decimate")
    assert error.values == {"faces": 6_000_000, "most": 5_000_000}
    assert error.cause == "too large: 6,000,000 faces (at most 5,000,000)"
    assert str(error) == f"{error.where}: {error.cause}. {TOO_LARGE}"
    assert error.text(folders=False).startswith("a.ply: too large")
    assert FileProblem("no {values} here").cause == "no {values} here"


def test_an_audience_reads_an_error_in_its_own_words_also_from_another_process():
    typing = Audience(wording={TOO_LARGE: "Decimate it first, or raise --max-faces"})
    error = pickle.loads(pickle.dumps(too_large()))
    assert error.text(typing).endswith("or raise --max-faces")
    assert str(error) == str(too_large())
