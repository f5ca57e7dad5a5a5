"""Every example of the documentation is run, in a folder that has what it names.

Blocks marked ``bash`` or ``python`` are run, in the order of the page; blocks marked ``text`` or ``console`` are not
(other programs, other machines), and a command in a block without a mark would be an example nobody runs.
"""

from __future__ import annotations

import re
import shlex
import shutil

import pytest

from breastmorph.template.files import default_template
from docs_world import ROOT, docs_world, published_model, run, shared, small_template

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")) + ["README.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
SMALLER = {  # what an example asks for, and what is enough to see that it works
    r"--n \d+": "--n 2",
    r"--phantom \d+": "--phantom 4",
    r"--one-sided \d+": "--one-sided 1",
    r"--grid \S+ --hold thorax": "--grid NL-NR",  # a model of five cannot hold the thorax at two deviations
}
LESS_WORK = {  # options of commands that would take minutes or all cores
    "phantom": ["--jobs", "1"],
    "register": ["--jobs", "1"],
    "evaluate": ["--samples", "20", "--no-surface"],
    "measure scans/": ["--distances-only"],
}
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
def small(tmp_path_factory, monkeypatch):
    """The default template is a small one, except for the published model, which has its own size."""
    published_model(tmp_path_factory)
    monkeypatch.setattr(
        "breastmorph.template.files._DEFAULT", str(small_template(tmp_path_factory).resolve())
    )
    default_template.cache_clear()
    assert default_template().mesh.n_vertices < 3000
    yield
    default_template.cache_clear()


@pytest.fixture
def here(small, tmp_path_factory, tmp_path, monkeypatch):
    """A copy of the world as the current folder."""
    place = tmp_path / "world"
    shutil.copytree(docs_world(tmp_path_factory), place)
    monkeypatch.chdir(place)
    yield tmp_path_factory
    shutil.rmtree(place)


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
                assert words[0] == "breastmorph", f"only our own commands are run, not {words}"
                _run(words[1:], here)
                ran += 1
    assert ran


def _run(words: list[str], temporary: pytest.TempPathFactory) -> None:
    """A command of an example, with less to do."""
    line = " ".join(map(shlex.quote, words))
    for pattern, small in SMALLER.items():
        line = re.sub(pattern, small, line)
    words = shlex.split(line)
    if words[0] in NOT_HERE:
        return
    words += LESS_WORK.get(words[0], []) + LESS_WORK.get(" ".join(words[:2]), [])
    if words[0] != "phantom":
        run(*words)
        return
    at = words.index("--out") + 1  # the same cohort on several pages is made once
    out, words[at] = words[at], ""
    name = re.sub(r"\W+", "", " ".join(words))
    made = shared(temporary, name, lambda place: run(*words[:at], place, *words[at + 1 :]))
    shutil.copytree(made, out, dirs_exist_ok=True)
