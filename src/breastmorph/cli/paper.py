"""``breastmorph paper``: the paper's experiments on one cohort, with figures and a report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from breastmorph.cli.options import FOLDER, jobs_option, json_option, scan_options, seed_option
from breastmorph.cli.stopping import STOPPED, ended_like_ctrl_c
from breastmorph.cli.study_progress import StudyProgress
from breastmorph.cli.terminal import print_json, print_table
from breastmorph.scan.check import CheckParameters
from breastmorph.study.parameters import StudyParameters
from breastmorph.study.plan import Inputs, make_plan
from breastmorph.study.report import write_report
from breastmorph.study.results import StudyResults
from breastmorph.study.running import StudyRun, run_study
from breastmorph.study.summary import key_figures, remarks


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
