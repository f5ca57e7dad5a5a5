"""``breastmorph paper``: the paper's experiments on one cohort, with figures and a report."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from breastmorph.cli.options import (
    FOLDER,
    STOPPED,
    ended_like_ctrl_c,
    jobs_option,
    json_option,
    print_json,
    print_table,
    scan_options,
    seed_option,
)
from breastmorph.scan.check import CheckParameters
from breastmorph.study.part import Part, PartState, Steps, StudyParameters
from breastmorph.study.report import write_report
from breastmorph.study.running import Inputs, StudyRun, Watch, make_plan, run_study
from breastmorph.study.summary import StudyResults, key_figures, remarks

# --------------------------------------------------------------------------------------------------------------------
# How a study goes: bars on a terminal, a line now and then in a log; always on standard error
# --------------------------------------------------------------------------------------------------------------------

_STUDY_LINE_SECONDS = 20.0  # between two lines of a log about one part


class StudyProgress(Watch):
    """Shows how a study goes.

    Parameters
    ----------
    sentences : mapping from stage to text, optional
        Said when the first part of a stage starts.
    console : Console, optional
        Standard error when not given.
    """

    def __init__(self, sentences: Mapping[str, str] | None = None, console: Console | None = None) -> None:
        self._sentences = dict(sentences or {})
        self._console = console or Console(stderr=True, soft_wrap=True)
        self._bar: Progress | None = None
        self._said = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def planned(self, to_do: Sequence[Part], done: Sequence[Part]) -> None:
        """Say how much there is to do."""
        if not to_do:
            self._say(f"All {len(done)} parts are there already: nothing to do")
        elif done:
            self._say(f"{len(done)} parts are there already, {len(to_do)} to do")

    def started(self, parts: Sequence[Part]) -> None:
        """Introduce new stages, and show how many of several parts are done."""
        self._close()
        for stage in dict.fromkeys(part.stage for part in parts):
            sentence = self._sentences.pop(stage, "")
            if sentence:
                self._said += 1
                self._say(f"\n{self._said}. {sentence}")
        if len(parts) > 1 and self._console.is_terminal:
            self._open("parts done", len(parts))

    def steps(self, part: Part) -> Steps:
        """A bar for one part on a terminal, a line now and then in a log."""

        @contextmanager
        def show(what: str, total: int) -> Iterator[Callable[[], None]]:
            if self._console.is_terminal:
                yield self._open(what, total)
                self._close()
                return
            last, done = time.monotonic(), 0

            def advance() -> None:
                nonlocal last, done
                done += 1
                if time.monotonic() - last > _STUDY_LINE_SECONDS and done < total:
                    last = time.monotonic()
                    self._say(f"   {done} of {total} {what}")

            yield advance

        return show

    def ended(self, part: Part, state: PartState, seconds: float) -> None:
        """One line a part."""
        if state.note:
            self._say(f"   {state.note}")
        if state.status == "failed":
            self._say(f"   {part.title}: FAILED: {state.why}")
        elif state.status == "not possible":
            self._say(f"   {part.title}: not possible here: {state.why}")
        elif seconds >= 0.5:
            self._say(f"   {part.title}: {seconds:.{0 if seconds >= 10 else 1}f} s")
        if self._bar is not None:
            self._bar.advance(self._bar.tasks[0].id)

    def _open(self, what: str, total: int) -> Callable[[], None]:
        columns = (
            TextColumn("   {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._bar = bar = Progress(*columns, console=self._console, transient=True)
        task = bar.add_task(what, total=total)
        bar.start()
        return lambda: bar.advance(task)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)


# --------------------------------------------------------------------------------------------------------------------
# ``breastmorph paper``: the paper's experiments on one cohort, with figures and a report
# --------------------------------------------------------------------------------------------------------------------


def _offered_parts(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """What the shell offers for the name of a part."""
    names = [part.name for part in make_plan(StudyParameters(phantom=110), Inputs(""))]
    return [name for name in names if name.startswith(incomplete)]


@click.command("paper")
@click.option("--cohort", type=FOLDER, help="Your own cohort: scans/, landmarks/, cohort.csv.")
@click.option(
    "--phantom", type=click.IntRange(min=4), help="Instead: a synthetic cohort of so many adult torsos."
)
@click.option("--out", type=FOLDER, required=True, help="The study's folder.")
@seed_option("numbers")
@jobs_option
@click.option(
    "--samples", type=click.IntRange(min=10), default=StudyParameters.samples, show_default=True,
    help="Random shapes for specificity.",
)  # fmt: skip
@click.option("--no-printed-method", is_flag=True, help="Leave out the registrations by the printed method.")
@click.option(
    "--only", multiple=True, metavar="PART", shell_complete=_offered_parts,
    help="Only this part and what it needs; repeatable.",
)  # fmt: skip
@scan_options
@json_option
def command(
    cohort: Path | None,
    phantom: int | None,
    out: Path,
    seed: int,
    jobs: int | None,
    samples: int,
    no_printed_method: bool,
    only: Sequence[str],
    check: CheckParameters,
    as_json: bool,
) -> None:
    """Run every experiment of the paper on a cohort, draw its figures and write a report.

    The cohort is registered with and without masks, by the default method and by the printed one; models are built; the
    four experiments and both applications follow. All of it goes into the folder OUT, with OUT/report.html to look at.
    It can be stopped at any time: the same command goes on where it was and ends with the same numbers.

    \b
    Examples:
      breastmorph paper --phantom 110 --out study/
      breastmorph paper --cohort my-cohort/ --out study/ --jobs 4
      breastmorph paper --cohort my-cohort/ --out study/ --only experiment-3
    """
    if (cohort is None) == (phantom is None):
        raise click.UsageError(
            "Give your own scans with --cohort, or a number of synthetic ones with --phantom."
        )
    parameters = StudyParameters(
        phantom=phantom, seed=seed, printed_method=not no_printed_method, samples=samples, check=check
    )
    with StudyProgress() as progress:
        run = run_and_report(out, parameters, progress, cohort=cohort, jobs=jobs, only=only)
    if as_json:
        print_json(_record(run))
    else:
        _print(run)
    sys.exit(exit_code(run))


def run_and_report(
    out: Path, parameters: StudyParameters, progress: StudyProgress, **options: Any
) -> StudyRun:
    """Run a study and write its report; Ctrl-C ends the command in order."""
    try:
        with ended_like_ctrl_c():
            run = run_study(out, parameters, watch=progress, **options)
            write_report(run)
    except KeyboardInterrupt:
        click.echo(STOPPED, err=True)
        sys.exit(1)
    return run


def exit_code(run: StudyRun) -> int:
    """0 all well, 1 some parts or scans failed, 2 nothing to show."""
    hopeless = "check" in run.states and run.states["check"].status == "not possible"
    built = any(part.stage == "build" and run.states[part.name].status == "done" for part in run.plan)
    if hopeless or (run.failed and not built):
        return 2
    return 1 if run.failed or run.failed_scans else 0


def _print(run: StudyRun) -> None:
    """The key figures, what went wrong and where to look."""
    figures = key_figures(StudyResults(run))
    if figures:
        print_table("The study in figures", ["", "ours", "paper"], figures)
    print_problems(run)
    click.echo(f"Look at {run.study.report}")


def print_problems(run: StudyRun) -> None:
    """Print what a reader must know beside the figures, and what failed."""
    check = run.states.get("check")
    if check is not None and check.status == "not possible":
        click.echo(f"Nothing was registered: {check.why}.", err=True)
    for remark in remarks(run):
        click.echo(f"Note: {remark}", err=True)
    for name, why in run.failed.items():
        click.echo(f"Failed: {name}: {why}", err=True)
    for name, why in run.failed_scans.items():
        click.echo(f"Not registered: {name}: {why}", err=True)
    if run.failed:
        click.echo("Run the same command again to try what failed; all else is kept.", err=True)


def _record(run: StudyRun) -> dict[str, Any]:
    """A run as plain values for JSON."""
    return {
        "study": str(run.study.path),
        "report": str(run.study.report),
        "parts": {
            part.name: {
                "status": run.states[part.name].status,
                "why": run.states[part.name].why,
                "computed": part.name in run.ran,
                "seconds": run.study.record(part.name).get("seconds", {}),
            }
            for part in run.plan
        },
        "key_figures": [
            dict(zip(("name", "ours", "paper"), figure, strict=True))
            for figure in key_figures(StudyResults(run))
        ],
        "remarks": remarks(run),
        "failed_scans": run.failed_scans,
    }
