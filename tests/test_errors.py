"""Errors say where, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from breastmorph.foundation.errors import BreastMorphError, FileProblem, LandmarkProblem, about


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
        about(Path("a.ply")),
        about(Path("a.json"), LandmarkProblem),
    ):
        raise error
    assert caught.value is error
    assert error.where == where
    assert str(error).startswith(f"{where}: {error.cause}")
