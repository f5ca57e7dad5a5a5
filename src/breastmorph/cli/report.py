"""``breastmorph report``: a study as one page, or two side by side."""

from __future__ import annotations

from pathlib import Path

import click

from breastmorph.cli.options import FOLDER, PATH, json_option, print_json
from breastmorph.study.comparison import compare_studies
from breastmorph.study.report import write_report
from breastmorph.study.running import open_study


@click.command("report")
@click.argument("studies", metavar="STUDY [STUDY]", type=FOLDER, nargs=-1, required=True)
@click.option("--compare", is_flag=True, help="Put two studies side by side, with tests.")
@click.option(
    "-o",
    "--output",
    type=PATH,
    show_default="STUDY/report.html, or STUDY/comparison.html",
    help="The page to write.",
)
@json_option
def command(studies: tuple[Path, ...], compare: bool, output: Path | None, as_json: bool) -> None:
    """Write the report of STUDY, the --out folder of `breastmorph paper` or `breastmorph demo`.

    One HTML file with everything in it: it opens without network and can be passed on and printed. Beside it goes a ZIP
    file with every figure for print (PDF, SVG, 300 dpi PNG), the numbers behind it (CSV), the tables (LaTeX, Word, CSV)
    and a methods paragraph. An unfinished study has a report too, which says what is missing.

    With --compare two studies are put side by side: two hospitals, two methods, before and after. Subjects whose scans
    are the same files are compared in pairs.

    \b
    Examples:
      breastmorph report study/ -o report.html
      breastmorph report --compare hospital-a/ hospital-b/ -o both.html
    """
    if len(studies) != 1 + compare:
        raise click.UsageError("Give two studies with --compare, otherwise one.")
    if compare:
        path = compare_studies(
            open_study(studies[0]), open_study(studies[1]), output or studies[0] / "comparison.html"
        )
        if as_json:
            print_json({"report": str(path)})
        else:
            click.echo(f"Look at {path}")
        return
    run = open_study(studies[0])
    path = write_report(run, output)
    missing = {part.name: run.states[part.name].why for part in run.plan if not run.states[part.name].settled}
    if as_json:
        print_json({"report": str(path), "missing": missing})
        return
    if missing:
        click.echo(f"{len(missing)} of {len(run.plan)} parts are missing; the page says which.", err=True)
    click.echo(f"Look at {path}")
