"""The machinery under a study with invented parts: failures, what is not possible, keys, a full disk."""

from __future__ import annotations

import json
import shlex
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import invented_parts as do
from breastmorph.cli.wording import COMMAND
from breastmorph.foundation.errors import FileProblem
from breastmorph.paper import running
from breastmorph.paper.folder import StudyFolder
from breastmorph.paper.parameters import StudyParameters, demo_parameters
from breastmorph.paper.part import Part, PartState
from breastmorph.paper.plan import Inputs, make_plan
from breastmorph.paper.report import command_of
from breastmorph.paper.running import run_study
from breastmorph.scan.check import CheckParameters


@pytest.fixture
def run_parts(tmp_path, monkeypatch, small_template):
    """Runs invented parts as a study; a fixture because a study plans its own."""

    def run(*parts: Part, **options):
        monkeypatch.setattr(running, "make_plan", lambda parameters, inputs: list(parts))
        return run_study(
            tmp_path / "study", StudyParameters(phantom=4), template=small_template, jobs=1, **options
        )

    return run


def _part(name, work, needs=(), *, uses=(), spreads=True, **settings):
    return Part(name, name.upper(), "evaluate", work, needs, uses, settings, spreads)


def test_a_failure_costs_only_what_needs_it(run_parts, tmp_path):
    parts = [
        _part("a", do.counts),
        _part("b", do.fails, ("a",)),
        _part("c", do.counts, ("b",)),
        _part("d", do.counts, ("a",), uses=("b",)),
        _part("e", do.breaks),
    ]
    run = run_parts(*parts)
    assert {name: state.status for name, state in run.states.items()} == {
        "a": "done",
        "b": "failed",
        "c": "missing",
        "d": "done",
        "e": "failed",
    }
    assert "bad luck" in run.failed["b"]
    assert "bad luck" in run.states["c"].why
    assert run.result("d") == {"sum": 2}
    reason = json.loads((tmp_path / "study" / "failed" / "e.json").read_bytes())
    assert "ZeroDivisionError" in reason["trace"]
    # The next run tries again, and does what had to wait.
    mended = [parts[0], _part("b", do.counts, ("a",)), *parts[2:4]]
    again = run_parts(*mended)
    assert set(again.ran) == {"b", "c", "d"}
    assert again.result("d") == {"sum": 4}  # now with b
    assert not (tmp_path / "study" / "failed").exists()  # e is no part any more


@pytest.mark.slow
def test_a_crash_costs_one_part(run_parts):
    run = run_parts(_part("a", do.crashes, spreads=False), _part("b", do.counts, spreads=False))
    assert run.states["a"].status == "failed"
    assert "killed" in run.states["a"].why
    assert run.states["b"].status == "done"


def test_what_is_not_possible_is_no_failure(run_parts):
    parts = _part("a", do.is_not_possible), _part("b", do.counts, ("a",)), _part("c", do.counts, uses=("a",))
    run = run_parts(*parts)
    assert run.failed == {}
    assert run.states["b"] == PartState(
        "not possible", run.states["b"].key, run.states["b"].digest, "nobody was operated on"
    )
    assert run.result("a") == {"known": 0}
    assert run.states["c"].status == "done"
    assert run_parts(*parts).ran == ()


def test_changes_spread_by_content(run_parts):
    first = run_parts(_part("a", do.counts, seed=1), _part("b", do.counts, ("a",)))
    # Another setting with the same result: what depends on the result stays.
    second = run_parts(_part("a", do.counts, seed=2), _part("b", do.counts, ("a",)))
    assert first.ran == ("a", "b")
    assert second.ran == ("a",)
    assert first.states["a"].key != second.states["a"].key
    assert first.states["a"].digest == second.states["a"].digest


def test_another_program_computes_all_again_but_shows_what_is_there(run_parts, tmp_path, monkeypatch):
    parts = _part("a", do.counts), _part("b", do.counts, ("a",))
    run_parts(*parts)
    monkeypatch.setattr(running, "this_program", lambda: "another")
    assert {state.status for state in running.open_study(tmp_path / "study").states.values()} == {"done"}
    assert run_parts(*parts).ran == ("a", "b")


def test_parts_that_are_left_out_for_once_keep_their_results(run_parts):
    run_parts(_part("a", do.counts), _part("b", do.counts))
    run_parts(_part("a", do.counts))
    assert run_parts(_part("a", do.counts), _part("b", do.counts)).ran == ()


@pytest.mark.slow
@pytest.mark.parametrize("spreads", [True, False])
def test_a_full_disk_ends_the_run_and_keeps_what_is_done(run_parts, spreads):
    with pytest.raises(FileProblem, match=r"No space left.*what is done is kept"):
        run_parts(_part("a", do.counts), _part("b", do.finds_the_disk_full, ("a",), spreads=spreads))
    assert run_parts(_part("a", do.counts)).ran == ()


def test_a_result_without_a_number_is_a_failure_and_not_half_a_record(run_parts, tmp_path):
    run = run_parts(_part("a", do.holds_no_number))
    assert run.states["a"].status == "failed"
    assert not (tmp_path / "study" / "parts" / "a.json").exists()


def test_those_who_watch_see_every_part(run_parts):
    seen = []

    class Watching:
        def planned(self, to_do, done):
            seen.append(("planned", len(to_do), len(done)))

        def started(self, parts):
            seen.append(("started", *(part.name for part in parts)))

        def steps(self, part):
            return contextmanager(lambda what, total: iter([lambda: None]))

        def ended(self, part, state, seconds):
            seen.append((part.name, state.status))

    run_parts(_part("a", do.counts), _part("b", do.fails), watch=Watching())
    assert seen == [("planned", 2, 0), ("started", "a"), ("a", "done"), ("started", "b"), ("b", "failed")]


def test_the_plan_can_be_computed_in_its_order():
    for parameters in (StudyParameters(phantom=110), demo_parameters(False, 1), StudyParameters()):
        known: set[str] = set()
        plan = make_plan(parameters, Inputs("template"))
        for part in plan:
            assert set(part.after) <= known, part.name
            known.add(part.name)
            json.dumps(dict(part.settings), allow_nan=False)
        assert len(known) == len(plan)


def test_parameters_survive_their_file():
    parameters = demo_parameters(False, 7)
    assert StudyParameters.from_dict(json.loads(json.dumps(parameters.as_dict()))) == parameters


def test_a_folder_that_is_no_study(tmp_path):
    with pytest.raises(FileProblem, match=r"no such folder.*Make one") as caught:
        StudyFolder(tmp_path / "nowhere").description()
    assert f"breastmorph paper --phantom 110 --out {tmp_path / 'nowhere'}" in caught.value.text(COMMAND)
    with pytest.raises(FileProblem, match=r"holds no study.*Make one"):
        StudyFolder(tmp_path).description()
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(FileProblem, match="Run `breastmorph paper` again"):
        StudyFolder(tmp_path).description()


def test_the_command_of_a_report_can_be_pasted_and_says_all(tmp_path):
    check = CheckParameters(unit="cm", landmark_order=("xiphoid", "navel"), max_faces=9_000_000)
    results = SimpleNamespace(
        parameters=StudyParameters(seed=3, samples=50, printed_method=False, check=check),
        description={"cohort": "/elsewhere/my cohort"},
        run=SimpleNamespace(study=StudyFolder(tmp_path / "first study")),
    )
    words = shlex.split(command_of(results))
    assert words == [
        *("breastmorph", "paper", "--cohort", "my cohort/", "--out", "first study/"),
        *("--seed", "3", "--samples", "50", "--no-printed-method", "--unit", "cm"),
        *("--landmark-order", "xiphoid,navel", "--max-faces", "9000000"),
    ]
