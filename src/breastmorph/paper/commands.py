"""What the commands ``paper``, ``demo`` and ``report`` do; their options stand in ``cli``."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from breastmorph.cli.printing import print_json, print_table
from breastmorph.cli.stopping import STOPPED, ended_like_ctrl_c
from breastmorph.paper.comparison import compare_studies
from breastmorph.paper.parameters import StudyParameters, demo_parameters
from breastmorph.paper.plan import Inputs, make_plan
from breastmorph.paper.progress import StudyProgress
from breastmorph.paper.report import write_report
from breastmorph.paper.running import StudyRun, open_study, run_study
from breastmorph.paper.summary import StudyResults, key_figures, remarks
from breastmorph.scan.check import CheckParameters


def part_names() -> list[str]:
    """What the parts of a study of the paper's size are called."""
    return [part.name for part in make_plan(StudyParameters(phantom=110), Inputs(""))]


def run_paper(
    out: Path,
    *,
    cohort: Path | None,
    phantom: int | None,
    seed: int,
    jobs: int | None,
    samples: int,
    printed_method: bool,
    only: Sequence[str],
    check: CheckParameters,
    as_json: bool,
) -> None:
    """``breastmorph paper``: run a study, write its report, print its figures and end with its exit code."""
    parameters = StudyParameters(
        phantom=phantom, seed=seed, printed_method=printed_method, samples=samples, check=check
    )
    with StudyProgress() as progress:
        run = _run_and_report(out, parameters, progress, cohort=cohort, jobs=jobs, only=only)
    if as_json:
        print_json(_record(run))
    else:
        figures = key_figures(StudyResults(run))
        if figures:
            print_table("The study in figures", ["", "ours", "paper"], figures)
        _print_problems(run)
        click.echo(f"Look at {run.study.report}")
    sys.exit(_exit_code(run))


def run_demo(out: Path, *, full: bool, n: int | None, seed: int, jobs: int | None) -> None:
    """``breastmorph demo``: the same on a small phantom, with a sentence before each stage and where to look."""
    begin = time.monotonic()
    parameters = demo_parameters(full, seed, n)
    click.echo(
        "The whole job on a synthetic cohort: from scans to shape models, experiments and a report.", err=True
    )
    with StudyProgress(_sentences(parameters.phantom or 0, full)) as progress:
        run = _run_and_report(out, parameters, progress, jobs=jobs)
    click.echo("", err=True)
    columns = ["", "here (synthetic cohort)", "paper (110 patients)"]
    print_table("What came out", columns, key_figures(StudyResults(run)))
    _print_problems(run)
    places = [
        ("Report, the page to begin with", run.study.report),
        ("Scans, landmarks, known truth", run.study.path / "cohort"),
        ("Registered meshes, one page of pictures", run.study.registered("masks") / "summary.html"),
        ("Shape models", run.study.path / "models"),
        ("Figures (PDF, SVG, PNG, CSV)", run.study.path / "figures"),
    ]
    print_table("Where to look", ["what", "where"], [[what, escape(str(path))] for what, path in places])
    click.echo(f"Open the explorer:  breastmorph explore {run.study.model('masks')}")
    click.echo(f"Finished in {time.monotonic() - begin:.0f} s", err=True)
    sys.exit(_exit_code(run))


def write_study_report(study: Path, output: Path | None, as_json: bool) -> None:
    """``breastmorph report``: the page of one study, finished or not."""
    run = open_study(study)
    path = write_report(run, output)
    missing = {part.name: run.states[part.name].why for part in run.plan if not run.states[part.name].settled}
    if as_json:
        print_json({"report": str(path), "missing": missing})
        return
    if missing:
        click.echo(f"{len(missing)} of {len(run.plan)} parts are missing; the page says which.", err=True)
    click.echo(f"Look at {path}")


def write_comparison(first: Path, second: Path, output: Path | None, as_json: bool) -> None:
    """``breastmorph report --compare``: the page of two studies."""
    path = compare_studies(open_study(first), open_study(second), output or first / "comparison.html")
    if as_json:
        print_json({"report": str(path)})
    else:
        click.echo(f"Look at {path}")


def _sentences(n: int, full: bool) -> dict[str, str]:
    """What each stage does, in plain words."""
    ways = "four ways: by the default and by the printed method, each" if full else "two ways:"
    return {
        "cohort": f"Cohort. {n} synthetic adult torsos are made and scanned; where each point of the skin belongs is "
        "known.",
        "check": "Check. Every scan and its landmarks are judged before any computing starts.",
        "register": f"Register. The template is bent onto every scan, {ways} with and without breast masks.",
        "build": "Build. The registered torsos become statistical shape models.",
        "evaluate": "Evaluate. The four experiments of the paper: masks, amount of data, operated breasts, clinical "
        "distances.",
        "edit": "Edit. Breast shapes are changed by distances that surgeons measure.",
        "predict": "Predict. A missing breast is predicted from the rest of the torso, with its uncertainty.",
        "figures": "Figures. Everything is drawn as in the paper.",
    }


def _run_and_report(
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


def _exit_code(run: StudyRun) -> int:
    """0 all well, 1 some parts or scans failed, 2 nothing to show."""
    hopeless = "check" in run.states and run.states["check"].status == "not possible"
    built = any(part.stage == "build" and run.states[part.name].status == "done" for part in run.plan)
    if hopeless or (run.failed and not built):
        return 2
    return 1 if run.failed or run.failed_scans else 0


def _print_problems(run: StudyRun) -> None:
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
