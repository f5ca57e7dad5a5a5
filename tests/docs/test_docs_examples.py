"""Every example of the documentation is run, in a folder that has what it names.

Blocks marked ``bash`` or ``python`` are run, in the order of the page; blocks marked ``text`` or ``console`` are not
(other programs, other machines), and a command in a block without a mark would be an example nobody runs.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from breastmorph.cli import main
from docs_world import docs_world

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")) + ["README.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SMALLER = ((r"--n \d+", "--n 2"), (r"--phantom \d+", "--phantom 4"), (r"--one-sided \d+", "--one-sided 1"))
NOT_HERE = {  # commands that are tested where they can be
    "explore": "tests/explorer drives the page in a browser",
    "paper": "tests/study runs whole studies",
    "report": "tests/study reads the page",
    "demo": "tests/cli runs it",
    "doctor": "tests/cli/test_cli_doctor.py",
}


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def commands(block: str) -> list[list[str]]:
    lines = block.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if shlex.split(line, comments=True)]


@pytest.fixture
def here(tmp_path_factory, tmp_path, monkeypatch):
    """A copy of the world as the current folder."""
    world = docs_world(tmp_path_factory.getbasetemp().parent)
    place = tmp_path / "world"
    shutil.copytree(world, place)
    monkeypatch.chdir(place)
    return place


@pytest.mark.parametrize("page", PAGES)
def test_no_command_hides_in_a_block_that_is_not_run(page):
    unmarked = [body for language, body in blocks(page) if not language]
    assert not [
        body for body in unmarked if re.search(r"^\s*(breastmorph|python|import|from) ", body, re.MULTILINE)
    ]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if {"bash", "python"} & {lang for lang, _ in blocks(page)}]
)
def test_examples_run(page, here):
    names: dict[str, object] = {"__name__": "example"}
    ran = 0
    for language, body in blocks(page):
        if language == "python":
            exec(compile(body, page, "exec"), names)
            ran += 1
        elif language == "bash":
            for words in commands(body):
                ran += _run(words, page)
    assert ran


def _run(words: list[str], page: str) -> int:
    assert words[0] == "breastmorph", f"{page}: only our own commands are run, not {words}"
    if words[1] in NOT_HERE:
        return 1
    line = " ".join(map(shlex.quote, words[1:]))
    for pattern, small in SMALLER:
        line = re.sub(pattern, small, line)
    result = CliRunner().invoke(main, shlex.split(line))
    assert result.exit_code == 0, f"{page}: breastmorph {line}\n{result.output}\n{result.exception}"
    return 1
