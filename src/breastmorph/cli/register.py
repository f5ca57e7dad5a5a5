"""``breastmorph register``: the template in every subject's shape."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from breastmorph.batch.executors import TIME_LIMIT, Executor, InProcess, LocalProcesses
from breastmorph.batch.registered_folder import Outcome
from breastmorph.cli.live_progress import LiveProgress
from breastmorph.cli.options import (
    COUNT,
    FOLDER,
    PATH,
    json_option,
    landmarks_option,
    scan_options,
    template_options,
)
from breastmorph.cli.printing import print_json, print_table, warn
from breastmorph.cli.stopping import STOPPED, ended_like_ctrl_c
from breastmorph.cli.wording import COMMAND
from breastmorph.foundation.machine import cores
from breastmorph.foundation.messages import PYTHON
from breastmorph.foundation.workers import Limits
from breastmorph.registration.parameters import PRESETS, preset
from breastmorph.report.registration_pictures import ScanPictures
from breastmorph.report.summary_page import write_summaries
from breastmorph.scan.check import CheckParameters, passed_over
from breastmorph.template import Template
from breastmorph.usecases.register import RegisterFolderRequest, register_folder

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
@template_options("Your own template mesh.", coarse=True)
@click.option(
    "--preset",
    "preset_name",
    type=click.Choice(list(PRESETS)),
    default="default",
    help="default is right by truth; paper is the printed method, for comparison.",
)
@click.option(
    "--learn/--no-learn",
    default=False,
    help="Register twice: how the others of this cohort differ is given to the second pass (20 scans and more).",
)
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
    template: Template | None,
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
                "message": _message(o),
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


def _message(outcome: Outcome) -> str:
    """Why a scan failed, with the options of commands where the record names the arguments of functions."""
    if not outcome.message:
        return ""
    why = outcome.why
    recorded, typed = (
        ". ".join(filter(None, (why.cause.text(audience), why.advice.text(audience))))
        for audience in (PYTHON, COMMAND)
    )
    return outcome.message.replace(recorded, typed)


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
        escape(_message(outcome) or "\n".join(outcome.warnings)),
    ]
