"""``breastmorph register``: the template in every subject's shape."""

from __future__ import annotations

import functools
import re
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Column

from breastmorph.batch.engine import TIME_LIMIT, Executor, InProcess, LocalProcesses
from breastmorph.batch.registered_folder import Outcome
from breastmorph.cli.options import (
    COUNT,
    FOLDER,
    PATH,
    STOPPED,
    ended_like_ctrl_c,
    json_option,
    landmarks_option,
    own_template,
    print_json,
    print_table,
    scan_options,
    template_options,
    warn,
)
from breastmorph.foundation.machine import cores
from breastmorph.foundation.workers import Limits
from breastmorph.registration.parameters import PRESETS, AcceptanceParameters, preset
from breastmorph.report.summary_page import ScanPictures, write_summaries
from breastmorph.scan.check import CheckParameters, passed_over
from breastmorph.usecases.register import RegisterFolderRequest, register_folder

# --------------------------------------------------------------------------------------------------------------------
# Live progress of a batch: a moving line on a terminal, a line now and then in a log; always on standard error
# --------------------------------------------------------------------------------------------------------------------

_LINE_SECONDS = 15.0  # between two lines of a log at least ...
_LINE_SHARE = 0.05  # ... and this share of the scans ...
_SILENT_SECONDS = 300.0  # ... but never a longer silence
_RECENT = 64  # scans the speed is measured over: long enough to be calm, short enough to follow the machine
_NAMED_FAILURES = 10  # a log full of failures helps nobody; all of them are in the summary
_ACCEPTED = AcceptanceParameters()
_WARNING_AT = (  # figure, value that deserves a warning, unit
    ("distance_inside", _ACCEPTED.breast_off, "mm from the breast"),
    ("angle_distortion", _ACCEPTED.distorted, "° change of angles"),
    ("flipped_percent", _ACCEPTED.folded, "% flipped triangles"),
)


class LiveProgress:
    """Shows how a batch goes; its methods are the batch's callbacks.

    Parameters
    ----------
    what : str
        What is being done, for example "Registering".
    console : Console, optional
        Standard error when not given.
    clock : callable, optional
        Seconds.
    """

    def __init__(
        self, what: str, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._console = console or Console(stderr=True, soft_wrap=True)
        self._clock = clock
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._total = self._done = self._failed = self._printed = 0
        self._begin = self._last_line = clock()
        self._times: deque[float] = deque(maxlen=_RECENT)
        self._worst, self._worst_text = 0.0, ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if self._total:
            took = _duration(self._clock() - self._begin)
            done = f"{self._done} of {self._total} scans, {self._failed} failed, in {took}"
            self._say(f"{self._what}: {done}{self._tail()}")

    def start(self, total: int, unchanged: int) -> None:
        """The number of scans to do, and of those that are already done."""
        if self._total:  # a second pass
            self.__exit__()
        self._total = total
        self._done = self._failed = self._printed = 0
        self._worst, self._worst_text = 0.0, ""
        self._begin = self._last_line = self._clock()
        self._times.clear()
        self._times.append(self._begin)
        already = f" ({unchanged} already done)" if unchanged else ""
        if not total:
            self._say(f"{self._what}: nothing to do{already}")
            return
        if not self._console.is_terminal:
            self._say(f"{self._what} {total} scans{already}")
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn(
                "{task.fields[state]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
            ),
        )
        self._bar = Progress(*columns, console=self._console, refresh_per_second=4, expand=True)
        self._task = self._bar.add_task(self._what, total=total, state="")
        self._bar.start()

    def done(self, outcome: Outcome) -> None:
        """One scan is finished."""
        self._done += 1
        self._times.append(self._clock())
        if outcome.status == "failed":
            self._failed += 1
            if self._failed <= _NAMED_FAILURES:
                self._say(f"failed {outcome.id}: {outcome.message}")
            if self._failed == _NAMED_FAILURES:
                self._say("further failures are in summary.csv")
        self._judge(outcome)
        if self._bar is not None:
            self._bar.update(self._task, advance=1, state=self._state())
        elif self._line_is_due():
            self._say(f"{self._done}/{self._total}, {self._state()}")

    def _say(self, text: str) -> None:
        self._last_line, self._printed = self._clock(), self._done
        self._console.print(text, markup=False, highlight=False)

    def _line_is_due(self) -> bool:
        silent = self._clock() - self._last_line
        more = self._done - self._printed >= _LINE_SHARE * self._total
        return self._done < self._total and silent >= (_LINE_SECONDS if more else _SILENT_SECONDS)

    def _state(self) -> str:
        parts = [f"{self._failed} failed"] if self._failed else []
        seconds = self._times[-1] - self._times[0]
        if seconds > 0:
            speed = (len(self._times) - 1) / seconds
            parts += [f"{60 * speed:.0f}/min", f"{_duration((self._total - self._done) / speed)} left"]
        return ", ".join(parts) + self._tail()

    def _tail(self) -> str:
        return f"; worst {self._worst_text}" if self._worst_text else ""

    def _judge(self, outcome: Outcome) -> None:
        metrics = outcome.record.get("metrics", {})
        for name, warning, unit in _WARNING_AT:
            value = metrics.get(name)
            if value is not None and value / warning > self._worst:
                self._worst, self._worst_text = value / warning, f"{outcome.id}: {value:.2g} {unit}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


# --------------------------------------------------------------------------------------------------------------------
# ``breastmorph register``: the template in every subject's shape
# --------------------------------------------------------------------------------------------------------------------

_STYLE = {"registered": "green", "unchanged": "cyan", "failed": "red"}
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class _Bytes(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A number of bytes such as 4GB or 500MB."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of bytes."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", str(value).strip(), re.IGNORECASE)
        if not found:
            self.fail(f"{value!r} is not a size; write for example 4GB", param, ctx)
        return int(float(found[1]) * _UNITS[found[2].upper()])


def _work_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say who does the work; they reach the command as ``executor``."""

    @click.option(
        "--jobs",
        type=COUNT,
        show_default="all cores",
        help="Worker processes; 1 works in this process (in one worker when a limit is given).",
    )
    @click.option("--scheduler", help="A Dask scheduler, tcp://host:port: its workers do the work.")
    @click.option(
        "--time-limit",
        type=click.FloatRange(min=0, min_open=True),
        show_default=f"{TIME_LIMIT:g}",
        help="Seconds a scan may take; it fails alone when it takes longer.",
    )
    @click.option(
        "--memory-limit",
        type=_Bytes(),
        show_default="a fair share",
        help="Memory a worker may use, for example 4GB (not on Windows).",
    )
    @functools.wraps(command)
    def with_executor(
        *args: Any,
        jobs: int | None,
        scheduler: str | None,
        time_limit: float | None,
        memory_limit: int | None,
        **others: Any,
    ) -> Any:
        limits = Limits(time_limit or TIME_LIMIT, memory_limit)
        executor: Executor
        if scheduler is not None:
            if jobs is not None:
                raise click.UsageError("--jobs is for this machine; with --scheduler the cluster decides.")
            from breastmorph.batch.cluster import Cluster

            executor = Cluster(scheduler, limits)
        elif jobs == 1 and time_limit is None and memory_limit is None:
            executor = InProcess()
        else:
            executor = LocalProcesses(jobs or cores(), limits)
        return command(*args, executor=executor, **others)

    return with_executor


@click.command("register")
@click.argument("scans", type=PATH)
@landmarks_option
@click.option("--out", type=FOLDER, required=True, help="Folder for the results.")
@template_options("Your own template mesh.")
@click.option("--template-coarse", type=PATH, help="Its coarse twin; derived when not given.")
@click.option(
    "--preset", "preset_name", type=click.Choice(list(PRESETS)), default="default", show_default=True,
    help="default is right by truth; paper is the printed method, for comparison.",
)  # fmt: skip
@click.option(
    "--learn/--no-learn", default=False, show_default=True,
    help="Register twice: how the others of this cohort differ is told to the second pass of each (20 and more scans).",
)  # fmt: skip
@click.option("--no-mask", is_flag=True, help="Fit the whole torso alike, without breast probability masks.")
@click.option("--quality-sheet", is_flag=True, help="Draw OUT/sheets/<id>.png for every scan.")
@click.option("--force", is_flag=True, help="Register again what is already done.")
@click.option("--retry-failed", is_flag=True, help="Register only what failed before.")
@_work_options
@scan_options
@json_option
def command(
    scans: Path,
    landmarks: Path | None,
    out: Path,
    template_file: Path | None,
    template_landmarks: Path | None,
    template_coarse: Path | None,
    preset_name: str,
    learn: bool,
    no_mask: bool,
    quality_sheet: bool,
    force: bool,
    retry_failed: bool,
    executor: Executor,
    check: CheckParameters,
    as_json: bool,
) -> None:
    """Bend the template onto SCANS (a file or a folder).

    Writes OUT/registered/<id>.ply (the template's topology in the scan's own frame), OUT/registered/<id>.json
    (metrics, timings, parameters, input hashes), OUT/summary.csv and OUT/summary.html. A scan that fails, crashes
    or hangs does not stop the rest. The run can be stopped at any time: the same command goes on where it was, and
    does only what is missing, failed or changed.

    \b
    Examples:
      breastmorph register scans/ --landmarks landmarks/ --out registered-cohort/
      breastmorph register scans/ --out registered-cohort/ --scheduler tcp://host:8786
    """
    template = own_template(template_file, template_landmarks, template_coarse)
    if force and retry_failed:
        raise click.UsageError("--force does all scans, --retry-failed only some: give one of them.")
    warn(filter(None, [passed_over(scans)]))
    request = RegisterFolderRequest(
        scans,
        landmarks,
        out,
        template,
        preset(preset_name, use_masks=not no_mask),
        learn,
        force,
        retry_failed,
        check,
        executor,
    )
    outcomes: list[Outcome] = []
    stopped = False
    with LiveProgress("Registering") as progress, ended_like_ctrl_c():

        def done(outcome: Outcome) -> None:
            outcomes.append(outcome)
            progress.done(outcome)

        try:
            outcomes = register_folder(
                request,
                ScanPictures(quality_sheet),
                on_start=progress.start,
                on_done=done,
                on_end=lambda known: write_summaries(known, out),
            )
        except KeyboardInterrupt:
            stopped = True
    counts = {status: sum(o.status == status for o in outcomes) for status in _STYLE}
    if as_json:
        results = [
            {
                "id": o.id,
                "status": o.status,
                "message": o.message,
                "code": o.code,
                **_figures(o),
                "warnings": o.warnings,
            }
            for o in outcomes
        ]
        print_json({"counts": counts, "stopped": stopped, "scans": results})
    else:
        columns = ["scan", "status", "breast mm", "outside mm", "angle °", "flipped %", "seconds", "remarks"]
        print_table(f"Registered into {escape(str(out))}", columns, map(_row, outcomes))
        click.echo(", ".join(f"{n} {status}" for status, n in counts.items()))
    if retry_failed and not outcomes and not stopped:
        click.echo("No scan failed before; without --retry-failed, what is missing is registered.", err=True)
    if stopped:
        click.echo(STOPPED, err=True)
        sys.exit(1)
    failed = counts["failed"]
    sys.exit(0 if not failed else 2 if failed == len(outcomes) else 1)


def _figures(outcome: Outcome) -> dict[str, float]:
    figures: dict[str, float] = dict(outcome.record.get("metrics", {}))
    figures["seconds"] = sum(outcome.record.get("seconds", {}).values())
    return figures


def _row(outcome: Outcome) -> list[str]:
    style = _STYLE[outcome.status]
    figures = _figures(outcome)
    names = ("distance_inside", "distance_outside", "angle_distortion", "flipped_percent", "seconds")
    return [
        escape(outcome.id),
        f"[{style}]{outcome.status}[/{style}]",
        *(
            f"{figures[name]:.2f}" if figures.get(name) is not None and outcome.record else ""
            for name in names
        ),
        escape(outcome.message or "\n".join(outcome.warnings)),
    ]
