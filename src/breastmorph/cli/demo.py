"""``breastmorph demo``: the whole job as a guided run on a synthetic cohort."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
from rich.markup import escape

from breastmorph.cli.options import FOLDER, jobs_option, print_table, seed_option
from breastmorph.cli.paper import StudyProgress, exit_code, print_problems, run_and_report
from breastmorph.study.part import demo_parameters
from breastmorph.study.summary import StudyResults, key_figures


@click.command("demo")
@click.option("--out", type=FOLDER, default=Path("demo"), show_default=True, help="The study's folder.")
@click.option("--full", is_flag=True, help="The paper's size: 110 scans and all experiments, some 7 minutes.")
@click.option(
    "--n", type=click.IntRange(min=4), show_default="16, or 110 with --full", help="Number of subjects."
)
@seed_option("numbers")
@jobs_option
def command(out: Path, full: bool, n: int | None, seed: int, jobs: int | None) -> None:
    """The whole job from scans to a report, on a synthetic cohort with known truth.

    A small study as `breastmorph paper` makes it: it can be stopped and goes on where it was.

    \b
    Examples:
      breastmorph demo
      breastmorph demo --full --out demo-full/
    """
    begin = time.monotonic()
    parameters = demo_parameters(full, seed, n)
    click.echo(
        "The whole job on a synthetic cohort: from scans to shape models, experiments and a report.", err=True
    )
    with StudyProgress(_sentences(parameters.phantom or 0, full)) as progress:
        run = run_and_report(out, parameters, progress, jobs=jobs)
    click.echo("", err=True)
    columns = ["", "here (synthetic cohort)", "paper (110 patients)"]
    print_table("What came out", columns, key_figures(StudyResults(run)))
    print_problems(run)
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
    sys.exit(exit_code(run))


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
