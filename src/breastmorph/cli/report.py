"""``breastmorph report``: a study as one page."""

from __future__ import annotations

from pathlib import Path

import click

from breastmorph.cli.options import FOLDER, PATH, json_option, print_json
from breastmorph.study.report import write_report
from breastmorph.study.running import open_study


@click.command("report")
@click.argument("study", type=FOLDER)
@click.option("-o", "--output", type=PATH, show_default="STUDY/report.html", help="The page to write.")
@json_option
def command(study: Path, output: Path | None, as_json: bool) -> None:
    """Write the report of STUDY, the --out folder of `breastmorph paper` or `breastmorph demo`.

    One HTML file with everything in it: it opens without network and can be passed on and printed. An unfinished study
    has a report too, which says what is missing.

    \b
    Example:
      breastmorph report study/ -o report.html
    """
    run = open_study(study)
    path = write_report(run, output)
    missing = {part.name: run.states[part.name].why for part in run.plan if not run.states[part.name].settled}
    if as_json:
        print_json({"report": str(path), "missing": missing})
        return
    if missing:
        click.echo(f"{len(missing)} of {len(run.plan)} parts are missing; the page says which.", err=True)
    click.echo(f"Look at {path}")
