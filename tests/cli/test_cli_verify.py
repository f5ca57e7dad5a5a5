"""`breastmorph verify`: what it prints, its exit code, and options that would compare nothing."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from breastmorph.cli import main
from breastmorph.model.building import build_model
from breastmorph.model.files import save_model
from small_cohort import random_shapes, small_cohort, write_registered


@pytest.fixture
def places(tmp_path):
    """A registered folder, and a model whose file was changed."""
    write_registered(tmp_path / "out", random_shapes(2))
    save_model(build_model(small_cohort(6)), tmp_path / "model.h5")
    import h5py

    with h5py.File(tmp_path / "model.h5", "r+") as file:
        file["model/mean"][7] += 1.0
    return {"out": tmp_path / "out", "scans": tmp_path, "model": tmp_path / "model.h5"}


def test_what_differs_is_printed_and_ends_with_one(places):
    result = CliRunner().invoke(main, ["verify", str(places["model"]), "--json"])
    assert result.exit_code == 1
    (entry,) = json.loads(result.stdout)
    assert (entry["path"], entry["unchanged"]) == (str(places["model"]), False)
    assert [set(problem) for problem in entry["problems"]] == [{"where", "cause", "remedy"}]
    assert "1 differences" in CliRunner().invoke(main, ["verify", str(places["model"])]).stdout


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["{out}", "--landmarks", "nowhere"], "--landmarks"),
        (["{model}", "--scans", "{scans}"], "--scans"),
        (["{out}", "--cohort", "nowhere"], "--cohort"),
        (["{scans}"], ""),
    ],
)
def test_what_would_compare_nothing_is_refused(places, words, option):
    result = CliRunner().invoke(main, ["verify", *(word.format(**places) for word in words)])
    assert result.exit_code == 2
    assert option in result.output
    assert not result.stdout
