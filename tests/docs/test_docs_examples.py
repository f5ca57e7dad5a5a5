"""Every example of the documentation is run, in a folder that has what it names.

Blocks marked ``bash`` or ``python`` are run, in the order of the page. Commands of ``console`` blocks (other machines,
hours of work) and those that stand inside sentences are not run, but every command, option, script and target that they
name must exist. ``text`` is for what is no example of ours.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import shutil

import click
import pytest

from breastmorph.cli import main
from breastmorph.template import default_template
from docs_world import ROOT, docs_world, published_model, run, shared, small_template

PAGES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
PAGES += ["README.md", "CONTRIBUTING.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARKS = {"bash", "python", "console", "text", "json", "math"}
WIDEST = 96  # characters of an example that a page shows without scrolling, on a screen of 1280 pixels
OTHERS = {"pip", "dask", "source", "ssh", "echo"}  # programs of others that examples may call
SMALLER = {  # what an example asks for, and what is enough to see that it works
    r"--n \d+": "--n 2",
    r"--phantom \d+": "--phantom 4",
    r"--one-sided \d+": "--one-sided 1",
    r"--grid \S+ --hold thorax": "--grid NL-NR",  # a model of five cannot hold the thorax at two deviations
    r"(--set SN-NL=21.5cm --set NL-NR=20cm) --hold thorax": r"\1",  # nor while a nipple rises by 3 cm
    r"--hold right --hold thorax": "--hold SN-NR",  # nor a breast, while the other one grows
}
LESS_CODE = {  # the same for Python; tests/test_api.py runs it as it stands
    "bm.evaluate(model, fits)": "bm.evaluate(model, fits, samples=20, surface=False)",
    "jobs=2": "jobs=1",
    ', preset="paper"': "",
}
LESS_WORK = {  # options of commands that would take minutes or all cores
    "phantom": ["--jobs", "1"],
    "register": ["--jobs", "1"],
    "evaluate": ["--samples", "20", "--no-surface"],
    "measure scans/": ["--distances-only"],
}
NOT_HERE = {  # commands that are run by other tests; here their options are only looked at
    "explore": "tests/explorer drives the page in a browser",
    "paper": "tests/cli/test_cli_paper.py",
    "report": "tests/cli/test_cli_paper.py",
    "demo": "tests/cli/test_cli_paper.py",
    "doctor": "tests/cli/test_cli_doctor.py",
}


def blocks(page: str) -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))


def commands(block: str) -> list[list[str]]:
    lines = block.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if shlex.split(line, comments=True)]


def options_of(command: click.Command) -> set[str]:
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}


def parsed(words: list[str]) -> click.Context:
    """A command with its options understood, but not run."""
    command = main.get_command(click.Context(main), words[0])
    assert command is not None, words
    return command.make_context(words[0], words[1:])


COMMANDS = {
    name: options_of(command)
    for name in main.list_commands(click.Context(main))
    if (command := main.get_command(click.Context(main), name)) is not None
}
SCRIPTS = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("*.py"))
OPTIONS = set().union(*COMMANDS.values(), {"--version", "--nthreads"}, re.findall(r'"(--[a-z-]+)"', SCRIPTS))


@pytest.fixture
def small(tmp_path_factory, monkeypatch):
    """The default template is a small one, except for the published model, which has its own size."""
    published_model(tmp_path_factory)
    monkeypatch.setattr("breastmorph.template.files._DEFAULT", small_template(tmp_path_factory).resolve())
    default_template.cache_clear()
    assert default_template().mesh.n_vertices < 3000
    yield
    default_template.cache_clear()


@pytest.fixture
def here(small, blank_pictures, tmp_path_factory, tmp_path, monkeypatch):
    """A copy of the world as the current folder. Pictures are written but not drawn: nobody looks at them here."""
    place = tmp_path / "world"
    shutil.copytree(docs_world(tmp_path_factory), place)
    monkeypatch.chdir(place)
    yield tmp_path_factory
    shutil.rmtree(place)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_says_what_it_is(page):
    fences = re.findall(r"^\s*(?:`{3,}|~{3,})", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(blocks(page)), (
        "a block that is indented or marked otherwise is not seen here"
    )
    assert {language for language, _ in blocks(page)} <= MARKS


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_examples_are_not_cut_at_the_border_of_the_page(page):
    shown = [line for language, body in blocks(page) if language != "math" for line in body.splitlines()]
    assert [line for line in shown if len(line) > WIDEST] == []


@pytest.mark.parametrize("page", PAGES)
def test_what_is_not_run_names_only_what_exists(page):
    for language, body in blocks(page):
        if language == "json":
            assert json.loads(body)
        elif language == "text":
            assert not re.search(r"^\s*(breastmorph|make|python) ", body, re.MULTILINE)
        elif language == "console":
            for words in commands(body):
                for ended, group in itertools.groupby(words, lambda word: word == "&&"):
                    if not ended:
                        must_exist(list(group))
    text = BLOCK.sub("", (ROOT / page).read_text(encoding="utf-8"))
    for inline in re.findall(r"`([^`\n]+)`", text):
        if re.match(r"(breastmorph|make|python) \S", inline):
            must_exist(inline.split())
        elif re.match(r"--[a-z]", inline):
            assert inline.split()[0] in OPTIONS, inline


def must_exist(words: list[str]) -> None:
    """The program, script or target of a command, and its options."""
    words = list(itertools.dropwhile(lambda word: re.fullmatch(r"[A-Z_]+=\S+", word), words))
    words = list(itertools.takewhile(lambda word: word not in (">", ">>"), words))
    options = {word.split("=")[0] for word in words if re.match(r"--[a-z]", word)} - {"--help"}
    if words[0] == "breastmorph":
        named = [word for word in words[1:2] if not word.startswith("-")]
        assert options <= set().union(*(COMMANDS[name] for name in named or COMMANDS), {"--version"}), words
    elif words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), words
    elif words[:2] == ["python", "-m"]:
        if words[2] not in ("build", "venv"):
            path = ROOT.joinpath(*words[2].split("."))
            source = path / "__main__.py" if path.is_dir() else path.with_suffix(".py")
            assert all(option in source.read_text(encoding="utf-8") for option in options), words
    elif words[0] == "python":
        source = (ROOT / words[1]).read_text(encoding="utf-8")
        parts = itertools.takewhile(lambda word: not word.startswith("-"), words[2:])
        assert all(f'"{word}"' in source for word in (*options, *parts)), words
    else:
        assert words[0] in OTHERS, words


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if {"bash", "python"} & {lang for lang, _ in blocks(page)}]
)
def test_examples_run(page, here):
    names: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    for language, body in blocks(page):
        if language == "python":
            for code, less in LESS_CODE.items():
                body = body.replace(code, less)
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
        assert parsed(words).params
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
