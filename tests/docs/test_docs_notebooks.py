"""The notebooks run from the first to the last cell, and are kept without results."""

from __future__ import annotations

import json
import re
import shutil
import sys

import matplotlib
import pytest

from docs_world import NOTEBOOKS

pytestmark = pytest.mark.slow

NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


def cells(name: str, kind: str) -> list[dict]:
    book = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    return [cell for cell in book["cells"] if cell["cell_type"] == kind]


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """What lies in the folder of the notebooks, in a folder of its own: notebooks are run where they are."""
    for path in NOTEBOOKS.glob("*.py"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")
    matplotlib.use(before)


def test_there_are_three():
    assert len(NAMES) == 3


@pytest.mark.parametrize("name", NAMES)
def test_kept_without_results(name):
    book = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells(name, "code"))


@pytest.mark.parametrize("name", NAMES)
def test_no_other_language_in_code(name):
    lines = [line for cell in cells(name, "code") for line in cell["source"]]
    assert lines
    assert not [line for line in lines if re.match(r"\s*[%!]", line)]  # magic would not run here


def run(name: str, names: dict[str, object]) -> None:
    code = cells(name, "code")
    assert len(code) >= 6
    for number, cell in enumerate(code):
        exec(compile("".join(cell["source"]), f"{name}, code cell {number}", "exec"), names)


@pytest.mark.parametrize("name", NAMES[:-1])
def test_runs(name, beside):
    run(name, {"__name__": "__main__"})


def test_the_last_one_runs_with_the_real_model_which_is_not_written_over(beside, tmp_path):
    names: dict[str, object] = {"__name__": "__main__"}
    first = compile("".join(cells(NAMES[-1], "code")[0]["source"]), NAMES[-1], "exec")
    exec(first, names)  # without the file: a stand-in, which then plays the real one
    real = shutil.copy(names["path"], tmp_path / "rbsm-0122.h5")
    before = real.read_bytes()
    run(NAMES[-1], names)
    assert names["path"].resolve() == real
    assert real.read_bytes() == before
