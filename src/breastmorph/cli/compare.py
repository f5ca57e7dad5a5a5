"""``breastmorph compare``: what changed between scans of one person; and how well repeated scans agree."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from breastmorph.cli.options import FOLDER, PATH, json_option, scan_options
from breastmorph.cli.printing import print_json, print_table, progress_with, warn
from breastmorph.cli.provenance import provenance
from breastmorph.cli.wording import COMMAND
from breastmorph.foundation.files import csv_text, json_text, make_folder, write_file
from breastmorph.foundation.messages import sentences
from breastmorph.scan.check import CheckParameters

if TYPE_CHECKING:
    from breastmorph.clinical.comparison import Comparison
    from breastmorph.clinical.repeatability import RepeatStudy


@click.command("compare")
@click.argument("scans", metavar="BEFORE AFTER [MORE...]", type=PATH, nargs=-1)
@click.option("--out", type=FOLDER, required=True, help="Folder for the page, the sheet and the tables.")
@click.option(
    "--landmarks",
    type=PATH,
    multiple=True,
    help="Landmark file or folder: once, or once for every scan; beside the scans, or found, when not given.",
)
@click.option(
    "--repeat",
    type=FOLDER,
    help="Instead of scans: repeated scans of unchanged people, a subfolder each or called NAME_1, NAME_2.",
)
@click.option(
    "--repeatability",
    "repeatability_file",
    type=PATH,
    help="repeatability.json of a study made with --repeat: where the ± come from.",
)
@scan_options
@json_option
def command(
    scans: tuple[Path, ...],
    out: Path,
    landmarks: tuple[Path, ...],
    repeat: Path | None,
    repeatability_file: Path | None,
    check: CheckParameters,
    as_json: bool,
) -> None:
    """Say what changed between scans of one person, and whether it is more than noise.

    The scans come in the order of the visits; landmarks that are not given are found. Written are comparison.html,
    comparison.pdf, comparison.json, comparison.csv and maps of the change. With --repeat, repeated scans of
    unchanged people give repeatability.json and its page: within-subject standard deviations, repeatability
    coefficients and Bland-Altman plots.

    \b
    Examples:
      breastmorph compare 2023.ply 2025.ply --out change/
      breastmorph compare --repeat volunteers/ --out study/
      breastmorph compare 2023.ply 2025.ply --repeatability study/repeatability.json --out change/
    """
    if repeat is not None and scans:
        raise click.UsageError("Give scans of one person, or a folder with --repeat, not both.")
    if repeat is None and len(scans) < 2:
        raise click.UsageError("Give two or more scans of one person, in the order of the visits.")
    if len(landmarks) > 1 and len(landmarks) != len(scans):
        raise click.UsageError("Give --landmarks once, or once for every scan.")
    # Loaded here, so that --help and mistakes in the options answer at once.
    from breastmorph.clinical.repeatability import load_repeatability, repeated_people
    from breastmorph.usecases.check import one_scan
    from breastmorph.usecases.compare import CompareRepeatedRequest, CompareRequest, compare, compare_repeated

    known = load_repeatability(repeatability_file) if repeatability_file is not None else None
    make_folder(out)
    if repeat is None:
        marks = landmarks if len(landmarks) > 1 else (next(iter(landmarks), None),) * len(scans)
        visits = [
            one_scan(path, own, "Name the file of one scan") for path, own in zip(scans, marks, strict=True)
        ]
        _show_comparison(compare(CompareRequest(visits, None, known, check)), out, as_json)
        return
    people = repeated_people(repeat, next(iter(landmarks), None))
    request = CompareRepeatedRequest(people, folder=repeat.name, repeatability=known, check=check)
    found = compare_repeated(request, partial(progress_with, "Comparing"))
    for person, error in found.failed.items():
        click.echo(f"{person}: {error.text(COMMAND)}", err=True)
    _show_study(found.study, out, as_json)


def _show_comparison(found: Comparison, out: Path, as_json: bool) -> None:
    from breastmorph.clinical.comparison import COLUMNS, as_record, as_rows
    from breastmorph.report.comparison_page import comparison_sheet, verdict_text, write_comparison_page
    from breastmorph.report.measure_tables import change_text
    from breastmorph.report.sheet import print_page

    record = as_record(found) | {"made": provenance()}
    write_file(out / "comparison.csv", csv_text(COLUMNS, as_rows(found)).encode())
    print_page(comparison_sheet(found), out / "comparison")
    page = write_comparison_page(found, out)
    write_file(out / "comparison.json", json_text(record).encode())
    warn(sentences(found.warnings, COMMAND))
    if as_json:
        print_json(record)
        return
    for visit in found.changes:
        click.echo(f"{found.visits[0].id} to {visit.id}:")
        for side, volume in visit.volumes.items():
            click.echo(f"  {verdict_text(volume, side)}")
        beyond = [one for one in visit.measures if one.exceeds]
        rows = [[one.name, one.kind, change_text(one)] for one in beyond]
        if rows:
            print_table("Measures that changed more than noise", ["measure", "kind", "change"], rows)
    click.echo(f"Look at {page}")


def _show_study(study: RepeatStudy, out: Path, as_json: bool) -> None:
    from breastmorph.report.comparison_page import write_repeat_page

    study.repeatability.save(out / "repeatability.json")
    page = write_repeat_page(study, out)
    warn(sentences(study.warnings, COMMAND))
    if as_json:
        print_json(study.repeatability.as_record() | {"made": provenance()})
        return
    rows = [
        [one.name, one.kind, one.unit, str(len(one.people)), f"{one.within_sd:.1f}", f"{one.coefficient:.1f}"]
        for one in study.measures
    ]
    columns = ["measure", "kind", "unit", "pairs", "within-subject sd", "repeatability coefficient"]
    print_table(f"Repeatability: {study.repeatability.source}", columns, rows)
    click.echo(f"Look at {page}")
