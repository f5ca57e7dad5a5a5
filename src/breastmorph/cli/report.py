"""``breastmorph report``: a study as one page, or two side by side."""

from __future__ import annotations

from pathlib import Path

import click

from breastmorph.cli.options import FOLDER, PATH, json_option


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
    from breastmorph.paper.commands import write_comparison, write_study_report

    if compare:
        write_comparison(studies[0], studies[1], output, as_json)
    else:
        write_study_report(studies[0], output, as_json)
