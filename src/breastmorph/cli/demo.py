"""``breastmorph demo``: the whole job as a guided run on a synthetic cohort."""

from __future__ import annotations

from pathlib import Path

import click

from breastmorph.cli.options import FOLDER, jobs_option, seed_option


@click.command("demo")
@click.option("--out", type=FOLDER, default=Path("demo"), help="The study's folder.")
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
    from breastmorph.paper.commands import run_demo

    run_demo(out, full=full, n=n, seed=seed, jobs=jobs)
