"""``breastmorph paper``: the paper's experiments on one cohort, with figures and a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from breastmorph.cli.options import FOLDER, jobs_option, json_option, scan_options, seed_option
from breastmorph.scan.check import CheckParameters


def _offered_parts(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """What the shell offers for the name of a part."""
    from breastmorph.paper.commands import part_names

    return [name for name in part_names() if name.startswith(incomplete)]


@click.command("paper")
@click.option("--cohort", type=FOLDER, help="Your own cohort: scans/, landmarks/, cohort.csv.")
@click.option(
    "--phantom", type=click.IntRange(min=4), help="Instead: a synthetic cohort of so many adult torsos."
)
@click.option("--out", type=FOLDER, required=True, help="The study's folder.")
@seed_option("numbers")
@jobs_option
@click.option("--samples", type=click.IntRange(min=10), default=1000, help="Random shapes for specificity.")
@click.option("--no-printed-method", is_flag=True, help="Leave out the registrations by the printed method.")
@click.option(
    "--only",
    multiple=True,
    metavar="PART",
    shell_complete=_offered_parts,
    help="Only this part and what it needs; repeatable.",
)
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
    from breastmorph.paper.commands import run_paper

    run_paper(
        out,
        cohort=cohort,
        phantom=phantom,
        seed=seed,
        jobs=jobs,
        samples=samples,
        printed_method=not no_printed_method,
        only=only,
        check=check,
        as_json=as_json,
    )
