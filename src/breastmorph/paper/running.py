"""Running a study: what is missing or changed, each part once, independent ones side by side."""

from __future__ import annotations

import errno
import os
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.files import make_folder, write_if_new
from breastmorph.foundation.locks import FolderLock, locked_folder
from breastmorph.foundation.machine import cores
from breastmorph.foundation.workers import Failure, run_each
from breastmorph.paper.cohort_source import Source
from breastmorph.paper.folder import StudyFolder
from breastmorph.paper.parameters import StudyParameters
from breastmorph.paper.part import NotPossible, Part, PartJob, PartState, this_program
from breastmorph.paper.plan import Inputs, make_plan
from breastmorph.template import Template, default_template, from_npz, template_hash, to_npz
from breastmorph.usecases import Steps, no_steps

States = dict[str, PartState]
_NO_PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)


class Watch:
    """Looks on while a study runs; this one says nothing."""

    def planned(self, to_do: Sequence[Part], done: Sequence[Part]) -> None:
        """What this run will see to, and what an earlier one left; more may turn out to be missing later."""

    def started(self, parts: Sequence[Part]) -> None:
        """Parts that run beside each other from now on."""

    def steps(self, part: Part) -> Steps:
        """Shows the progress of a part that says how far it is."""
        return no_steps

    def ended(self, part: Part, state: PartState, seconds: float) -> None:
        """A part is finished, for good or not."""


@dataclass(frozen=True)
class StudyRun:
    """What a run found and did.

    Attributes
    ----------
    study : StudyFolder
    plan : tuple of Part
    states : dict from part to PartState
        Of all parts, after the run.
    ran : tuple of str
        Parts that this run computed.
    """

    study: StudyFolder
    plan: tuple[Part, ...]
    states: States
    ran: tuple[str, ...]

    @property
    def failed(self) -> dict[str, str]:
        """Parts that have no result though they should, and why."""
        return {
            part.name: self.states[part.name].why
            for part in self.plan
            if self.states[part.name].status == "failed"
        }

    @property
    def failed_scans(self) -> dict[str, str]:
        """Scans that could not be registered, and why."""
        found: dict[str, str] = {}
        for part in self.plan:
            if part.stage == "register" and self.states[part.name].status == "done":
                found |= self.study.result(part.name)["failed"]
        return found

    def result(self, part: str) -> dict[str, Any]:
        """The result of a part that is done, or what is known although it is not possible; empty otherwise."""
        state = self.states.get(part)
        return self.study.result(part) if state is not None and state.settled else {}


def run_study(
    out: Path,
    parameters: StudyParameters,
    *,
    cohort: Path | None = None,
    template: Template | None = None,
    jobs: int | None = None,
    only: Iterable[str] = (),
    watch: Watch | None = None,
) -> StudyRun:
    """Fill a study folder with what is missing or changed.

    It can be stopped at any moment: the same call goes on where it was and ends with the same numbers. A part that
    fails does not stop the others.

    Parameters
    ----------
    out : Path
    parameters : StudyParameters
    cohort : Path, optional
        A cohort of one's own; the phantom when not given.
    template : Template, optional
        The default template when not given.
    jobs : int, optional
        Processes; all cores when not given.
    only : iterable of str
        Names of parts: only these and what they need.
    watch : Watch, optional

    Raises
    ------
    BreastMorphError
        The folder is in use, cannot be written to or holds the study of another cohort; there are no scans; nobody
        knows a part named in ``only``.
    """
    study = StudyFolder(out)
    study.require_own()
    make_folder(out)
    with locked_folder(out) as lock:
        study.prepare()
        plan = _described(study, parameters, cohort, template or default_template())
        wanted = _wanted(plan, only)
        run = _Run(study, lock, jobs or cores(), watch or Watch())
        run.go([part for part in plan if part.name in wanted])
        states = known_states(study, plan, this_program(), run.states)
    return StudyRun(study, tuple(plan), states, tuple(run.ran))


def open_study(out: Path) -> StudyRun:
    """What a study folder holds, finished or not; nothing is computed."""
    study = StudyFolder(out)
    description = study.description()
    parameters = StudyParameters.from_dict(description["parameters"])
    plan = make_plan(parameters, Inputs.from_dict(description["inputs"]))
    # By the program that made the study: an older one's results can still be shown.
    return StudyRun(study, tuple(plan), known_states(study, plan, description["program"]), ())


def known_states(
    study: StudyFolder, plan: Sequence[Part], program: str, known: Mapping[str, PartState] | None = None
) -> States:
    """States of all parts by their records."""
    states: States = {}
    for part in plan:
        found = (known or {}).get(part.name)
        states[part.name] = found or study.state(part, states, program, look_at_files=False)
    return states


def _described(
    study: StudyFolder, parameters: StudyParameters, cohort: Path | None, template: Template
) -> list[Part]:
    """Write down what the study is about, and plan it."""
    if (cohort is None) == (parameters.phantom is None):
        raise BreastMorphError("a study is either of a phantom or of a cohort", "Give one of them")
    source = Source(cohort) if cohort is not None else None
    scans = source.scan_hashes() if source is not None else {}
    study.require_same_cohort(cohort, parameters, scans)  # before anything is written
    # 64 bits: results must not depend on whether a process got the template as a file or as a value.
    data = to_npz(template, np.float64)
    write_if_new(study.path / "template.npz", data)
    inputs = Inputs(template_hash(from_npz(data)))
    if source is not None:
        inputs = Inputs(inputs.template, scans, source.table_hash(), source.truth_hashes())
    plan = make_plan(parameters, inputs)
    study.forget_failures(part.name for part in plan)
    study.describe(
        {
            "program": this_program(),
            "cohort": str(cohort.resolve()) if cohort is not None else None,
            "parameters": parameters.as_dict(),
            "inputs": inputs.as_dict(),
        }
    )
    return plan


def _wanted(plan: Sequence[Part], only: Iterable[str]) -> set[str]:
    """Names of parts asked for, with all that they need."""
    by_name = {part.name: part for part in plan}
    waiting = list(only) or list(by_name)
    wanted: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in by_name:
            raise BreastMorphError(
                "a study of this kind has no part {name!r}",
                "Its parts are {by_name}",
                name=name,
                by_name=", ".join(by_name),
            )
        if name not in wanted:
            wanted.add(name)
            waiting += (*by_name[name].after, *by_name[name].gates)
    return wanted


class _Run:
    """One run over some parts of a plan."""

    def __init__(self, study: StudyFolder, lock: FolderLock, jobs: int, watch: Watch) -> None:
        self._study, self._lock, self._jobs, self._watch = study, lock, jobs, watch
        self.states: States = {}
        self.ran: list[str] = []

    def go(self, parts: Sequence[Part]) -> None:
        waiting = list(parts)
        announced = False
        while waiting:
            to_run = self._settle(waiting)
            if not announced:
                done = [part for part in parts if part.name in self.states]
                self._watch.planned([part for part in parts if part.name not in self.states], done)
                announced = True
            waiting = [part for part in waiting if part.name not in self.states]
            spreading = [part for part in to_run if part.spreads]
            if spreading:
                self._here(spreading[0])
            elif to_run:
                # Nearly everything waits for the models, so they come before the long experiments.
                models = [part for part in to_run if part.stage == "build"]
                self._in_processes(models or to_run)
            waiting = [part for part in waiting if part.name not in self.states]

    def _settle(self, waiting: Sequence[Part]) -> list[Part]:
        """Note what is done or hopeless already; returns what can be computed now."""
        to_run = []
        for part in waiting:
            if any(name not in self.states for name in (*part.after, *part.gates)):
                continue
            state = self._study.state(part, self.states, this_program(), look_at_files=True)
            unsettled = [name for name in part.needs if not self.states[name].settled]
            decisive = (*part.needs, *part.gates)
            hopeless = next((n for n in decisive if self.states[n].status == "not possible"), "")
            if state.settled or unsettled:
                self.states[part.name] = state
            elif hopeless:
                why = self.states[hopeless].why
                self.states[part.name] = self._study.store_not_possible(part, state.key, why)
            else:
                to_run.append(part)
        return to_run

    def _here(self, part: Part) -> None:
        """A part that spreads over processes by itself."""
        self._watch.started([part])
        begin = time.monotonic()
        key = part.key(self.states, this_program())
        state = _computed(self._study, part, key, self._jobs, self._watch.steps(part))
        self._note(part, state, time.monotonic() - begin)

    def _in_processes(self, parts: Sequence[Part]) -> None:
        """Parts beside each other, the long ones first."""
        self._watch.started(parts)
        items = [
            (part, part.key(self.states, this_program()))
            for part in sorted(parts, key=lambda part: -part.cost)
        ]
        setup = partial(_worker, self._study, self._lock)
        with closing(run_each(setup, items, min(self._jobs, len(items)))) as results:
            for (part, key), result in results:
                if isinstance(result, Failure):
                    if result.error is not None:  # the folder cannot be written to: nothing else will work
                        raise result.error
                    result = self._study.store_failure(part, key, result.reason), 0.0
                self._note(part, *result)

    def _note(self, part: Part, state: PartState, seconds: float) -> None:
        self.states[part.name] = state
        self.ran.append(part.name)
        self._watch.ended(part, state, seconds)


def _worker(study: StudyFolder, lock: FolderLock) -> Callable[[tuple[Part, str]], tuple[PartState, float]]:
    def work(item: tuple[Part, str], lock: FolderLock = lock) -> tuple[PartState, float]:  # holds the lock
        begin = time.monotonic()
        state = _computed(study, *item)
        return state, time.monotonic() - begin

    return work


class _Stopwatch:
    """Time from here on: by the clock, and of the processor with all processes that have ended."""

    def __init__(self) -> None:
        self._clock, self._processor = time.monotonic(), sum(os.times()[:4])

    def seconds(self) -> dict[str, float]:
        return {"clock": time.monotonic() - self._clock, "processor": sum(os.times()[:4]) - self._processor}


def _computed(study: StudyFolder, part: Part, key: str, jobs: int = 1, steps: Steps = no_steps) -> PartState:
    """Compute a part and keep what comes of it, also when it fails.

    Raises
    ------
    FileProblem
        The folder cannot be written to.
    """
    stopwatch = _Stopwatch()
    try:
        with study.scratch(part.name) as scratch:
            result = part.work(PartJob(study, part, scratch, jobs, steps))
            state = study.store(part, key, result, scratch, stopwatch.seconds())
            return replace(state, note=result.note)
    except NotPossible as reason:
        return study.store_not_possible(part, key, str(reason), reason.result)
    except MemoryError:
        raise  # the one who set the limit knows how much there was
    except BreastMorphError as error:
        if isinstance(error, FileProblem) and error.code in ("unwritable", "busy"):
            raise
        return study.store_failure(part, key, error.text())
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_PLACE:
            raise FileProblem(
                "the folder cannot be written to ({why})",
                "Check its permissions and free space, then run the same command again: what is done is kept",
                study.path,
                code="unwritable",
                why=error.strerror,
            ) from error
        why = f"unexpected error ({type(error).__name__}: {error})"
        return study.store_failure(part, key, why, traceback.format_exc())
