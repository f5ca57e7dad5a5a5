"""The commands paper, report and demo."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from rich.console import Console

from breastmorph.cli import main
from breastmorph.paper import cohort_parts, commands
from breastmorph.paper.part import Made, Part, PartState
from breastmorph.paper.progress import StudyProgress
from breastmorph.paper.running import run_study
from study_cohort import CHECK, in_this_process, write_study_cohort

pytestmark = pytest.mark.slow


@pytest.fixture
def quick(monkeypatch, small_template):
    """Studies with the small template and few samples, and only up to the models."""

    def small(out, parameters, **options):
        parameters = replace(parameters, check=CHECK, samples=10, printed_method=False)
        options = {**options, "only": options.get("only") or ["model-masks"], "jobs": 1}
        return run_study(out, parameters, template=small_template, **options)

    monkeypatch.setattr(commands, "run_study", small)
    with in_this_process():
        yield


def _run(*arguments: object):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_paper_and_report(quick, tmp_path):
    cohort, study = write_study_cohort(tmp_path / "cohort", 7), tmp_path / "study"
    found = _run("paper", "--cohort", cohort, "--out", study, "--json")
    assert found.exit_code == 0, found.output
    told = json.loads(found.stdout)
    assert told["parts"]["model-masks"]["status"] == "done"
    assert told["parts"]["model-masks"]["computed"] is True
    assert told["parts"]["prediction"]["status"] == "missing"
    assert {figure["name"] for figure in told["key_figures"]} >= {"scans registered"}
    again = _run("paper", "--cohort", cohort, "--out", study)
    assert again.exit_code == 0
    assert "nothing to do" in again.stderr
    assert "report.html" in again.stdout

    page = tmp_path / "elsewhere" / "report.html"  # its figures are called after it
    reported = _run("report", study, "-o", page)
    assert reported.exit_code == 0
    assert "parts are missing" in reported.stderr
    assert page.read_bytes() == (study / "report.html").read_bytes()
    assert "model-no-masks" in json.loads(_run("report", study, "--json").stdout)["missing"]


def test_a_scan_that_fails_gives_exit_code_1(quick, tmp_path):
    cohort = write_study_cohort(tmp_path / "cohort", 6)
    (cohort / "scans" / "003.ply").write_bytes(b"")
    found = _run("paper", "--cohort", cohort, "--out", tmp_path / "study", "--only", "model-masks")
    assert found.exit_code == 1
    assert "Not registered: 003" in found.stderr
    assert "5 of 6 scans registered, 1 failed: 003" in found.stderr


def test_too_few_scans_give_exit_code_2_and_say_so(quick, tmp_path):
    cohort = write_study_cohort(tmp_path / "cohort", 3)
    found = _run("paper", "--cohort", cohort, "--out", tmp_path / "study", "--only", "model-masks")
    assert found.exit_code == 2
    assert "needs at least 4" in found.stderr
    assert "run the same command again" not in found.output.lower()
    assert "The study in figures" not in found.output
    assert not (tmp_path / "study" / "registered").exists()  # refused before hours of computing


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["paper", "--out", "x"], "--cohort, or a number"),
        (["paper", "--out", "x", "--cohort", "y", "--phantom", "9"], "--cohort, or a number"),
        (["paper", "--out", "OUT/x", "--cohort", "OUT/nowhere"], "no such folder"),
        (["report", "OUT"], "breastmorph paper --phantom 110"),
        (["report", "OUT/nowhere"], "there is no such folder"),
    ],
)
def test_wrong_usage_is_explained(arguments, words, tmp_path):
    found = _run(*(argument.replace("OUT", str(tmp_path)) for argument in arguments))
    assert found.exit_code == 2
    assert words in " ".join(found.output.split())
    assert "Traceback" not in found.output


def test_demo_tells_what_it_does(quick, tmp_path, monkeypatch):
    def scans(out, n, seed, jobs, on_done):
        write_study_cohort(out, n, truth=False)
        for k in range(n):
            on_done(k + 1)

    monkeypatch.setattr(cohort_parts, "write_cohort", scans)
    found = _run("demo", "--out", tmp_path / "demo", "--n", "6")
    assert found.exit_code == 0, found.output
    for words in ("1. Cohort. 6 synthetic adult torsos", "2. Check.", "3. Register.", "4. Build."):
        assert words in found.stderr
    for words in ("What came out", "Where to look", "breastmorph explore"):
        assert words in found.stdout
    assert (tmp_path / "demo" / "report.html").is_file()


def test_progress_of_a_study_in_a_log():
    console = Console(file=io.StringIO(), width=200)
    parts = [Part(name, name.upper(), "evaluate", lambda job: Made({})) for name in ("a", "b", "c")]
    with StudyProgress({"evaluate": "Experiments."}, console) as progress:
        progress.planned(parts, [])
        progress.started(parts)
        with progress.steps(parts[0])("scans", 2) as advance:
            advance()
        progress.ended(parts[0], PartState("done"), 12.0)
        progress.ended(parts[1], PartState("failed", why="bad luck"), 0.0)
        progress.ended(parts[2], PartState("not possible", why="nobody was operated on"), 0.0)
    text = console.file.getvalue()
    assert "1. Experiments." in text
    assert "A: 12 s" in text
    assert "B: FAILED: bad luck" in text
    assert "C: not possible here: nobody was operated on" in text
