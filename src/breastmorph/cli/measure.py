"""``breastmorph measure``: clinical distances, volumes and symmetry of scans, registered cohorts and models."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from breastmorph.cli.options import (
    FOLDER,
    PATH,
    handout_options,
    json_option,
    landmark_ids_option,
    landmarks_option,
    opened_model,
    scan_options,
)
from breastmorph.cli.printing import print_json, print_table, progress_with
from breastmorph.cli.provenance import provenance
from breastmorph.cli.wording import COMMAND
from breastmorph.clinical.data_dictionary import dictionary
from breastmorph.clinical.distances import PAIRS, PAPER
from breastmorph.clinical.examination import UNKNOWN, Examination, as_record, as_row
from breastmorph.clinical.measure_table import Measure
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.files import csv_text, make_folder, write_file
from breastmorph.foundation.messages import Finding, sentences
from breastmorph.report.measure_tables import in_cm, shown_measure
from breastmorph.scan.check import CheckParameters
from breastmorph.usecases.measure import (
    MeasuredFiles,
    MeasureFilesRequest,
    MeasureRequest,
    kind_of,
    measure,
    measure_files,
)


def _print_dictionary(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print what every measure is, and stop."""
    if not wanted or context.resilient_parsing:
        return
    rows = [[escape(cell) for cell in (d.name, d.kinds, d.unit, d.points, d.meaning)] for d in dictionary()]
    print_table("Measures (units of CSV and JSON)", ["name", "kind", "unit", "points", "meaning"], rows)
    context.exit()


@click.command("measure")
@click.argument("target", metavar="SCAN|FOLDER|MODEL", type=PATH)
@click.option(
    "--dictionary",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_dictionary,
    help="Say what every measure is, and stop.",
)
@landmarks_option
@click.option(
    "--distances-only", is_flag=True, help="Scans only: no volume and symmetry, which need a registration."
)
@click.option("--csv", "csv_file", type=PATH, help="Write all measures, one row a subject.")
@click.option("--figures", type=FOLDER, help="Folder for a sheet and a symmetry map of every subject.")
@click.option("--handout", is_flag=True, help="With --figures: a page to take home of every subject, too.")
@handout_options
@landmark_ids_option
@scan_options
@json_option
def command(
    target: Path,
    landmarks: Path | None,
    distances_only: bool,
    csv_file: Path | None,
    figures: Path | None,
    handout: bool,
    language: str,
    paper: str,
    date: str,
    landmark_ids: Path | None,
    check: CheckParameters,
    as_json: bool,
) -> None:
    """Measure a scan, a folder of scans, a registered folder (the --out of `register`) or the mean of a model.

    Distances are given twice: tape, along the skin, and straight, through the air; each with one standard deviation.
    What cannot be determined is named with the reason. A scan is registered to the built-in template and measured
    between its own landmarks; folds and borders are found on the shape. Tables are in cm and cc, CSV and JSON in mm.

    \b
    Examples:
      breastmorph measure torso7.ply --landmarks torso7.json
      breastmorph measure registered-cohort/ --csv measures.csv --figures maps/
      breastmorph measure model.h5 --json
    """
    if distances_only and figures is not None:
        raise click.UsageError("--figures draws the symmetry, which --distances-only leaves out.")
    if handout and figures is None:
        raise click.UsageError("--handout is written into the folder of --figures.")
    found = _measured(target, landmarks, landmark_ids, check, distances_only)
    done: list[Examination] = []
    failed: list[tuple[str, BreastMorphError]] = []
    with progress_with("Measuring", found.total) as advance:
        for name, result in found.results:
            if isinstance(result, BreastMorphError):
                failed.append((name, result))
            else:
                if figures is not None:
                    _draw(result, figures, _reference(target))
                    if handout:
                        _hand_out(result, figures, _reference(target), language, paper, date)
                done.append(replace(result, mesh=None))  # thousands of meshes would fill the memory
            advance()
    if csv_file is not None and done:
        rows: list[dict[str, Any]] = [as_row(examination) for examination in done]
        make_folder(csv_file.parent)
        write_file(csv_file, csv_text(list(rows[0]), rows).encode())
    if as_json:
        print_json(
            {
                "subjects": [as_record(examination) for examination in done],
                "failed": [
                    {"id": name, "message": error.text(COMMAND), "code": error.code} for name, error in failed
                ],
                "made": provenance(),
            }
        )
    else:
        if len(done) == 1:
            _print_one(done[0])
        elif done:
            _print_many(done)
        if csv_file is not None and done:
            click.echo(f"All measures are in {csv_file}")
        for name, error in failed:
            click.echo(f"{name}: {error.text(COMMAND)}", err=True)
    sys.exit(0 if not failed else 1 if done else 2)


def _measured(
    target: Path,
    landmarks: Path | None,
    landmark_ids: Path | None,
    check: CheckParameters,
    distances_only: bool,
) -> MeasuredFiles:
    """The subjects of a scan, a folder or a model; refuses options that do not belong to what was given."""
    kind = kind_of(target)
    if kind == "model":
        if landmarks is not None or distances_only:
            raise click.UsageError(
                "--landmarks and --distances-only are for scans; models take --landmark-ids."
            )
        model = opened_model(target, landmark_ids)
        if not model.landmark_ids:
            raise FileProblem(
                "this model has no landmarks", "Name their vertices with --landmark-ids", target
            )
        mean = replace(measure(MeasureRequest(model)), id=f"mean of {target.stem}")
        return MeasuredFiles(1, iter([(target.stem, mean)]))
    if landmark_ids is not None:
        raise click.UsageError("--landmark-ids is for models; scans take --landmarks.")
    if kind == "registered" and (target.is_dir() or landmarks is None):
        if landmarks is not None:
            raise click.UsageError("A registered folder has its landmarks; --landmarks is for scans.")
        if distances_only:
            raise click.UsageError(
                "--distances-only is for scans; registered ones need no further registration."
            )
    return measure_files(MeasureFilesRequest(target, landmarks, distances_only, check))


def _reference(target: Path) -> str:
    """What shapes are in correspondence with, as a sheet names it."""
    names = {"registered": "template of the registration", "scans": "built-in template"}
    return names.get(kind_of(target), target.name)


def _print_one(one: Examination) -> None:
    by_name = {(m.name, m.kind): m for m in one.measures}
    sided = {name for pair in PAIRS.values() for name in pair}
    rows = [
        [m.name, m.kind, shown_measure(m) or UNKNOWN, "", "", ""] for m in one.measures if m.name not in sided
    ]
    for difference in one.asymmetries:
        pair = [by_name[name, difference.kind] for name in PAIRS[difference.name]]
        each = [shown_measure(m) or UNKNOWN for m in pair]
        rows.append([difference.name, difference.kind, "", *each, shown_measure(difference, "+")])
    rows.append(["ptosis (Regnault)", "grade", "", *(p.grade for p in one.ptosis), ""])
    if one.symmetry is not None:
        of_side = one.symmetry.sides
        each = [in_cm(of_side[side], "mm", 2) for side in ("left", "right")]
        rows.append(["mirror deviation", "mean", in_cm(one.symmetry.deviation, "mm", 2), *each, ""])
    title = f"{escape(one.id)}" + (f" ({one.absent} side absent)" if one.absent else "")
    print_table(title, ["measure", "kind", "value", "left", "right", "left - right"], rows)
    for line in _remarks(one):
        click.echo(line)


def _print_many(done: Sequence[Examination]) -> None:
    rows = []
    for one in done:
        by_name = {(m.name, m.kind): m for m in one.measures}
        deviation = f"{one.symmetry.deviation:.1f}" if one.symmetry else "-"
        rows.append(
            [
                escape(one.id),
                *(_number(by_name[name, "tape"]) for name in PAPER),  # the CSV file has all
                *(_number(volume) for volume in one.volumes),
                deviation,
                f"{one.absent} side absent" if one.absent else "",
            ]
        )
    columns = [
        "subject",
        *(f"{name} tape mm" for name in PAPER),
        "volume L cc",
        "volume R cc",
        "mirror dev. mm",
        "remarks",
    ]
    print_table("Measures (- : not determinable)", columns, rows)


def _why(reason: Finding | None) -> str:
    return reason.cause.text(COMMAND) if reason is not None else ""


def _remarks(one: Examination) -> list[str]:
    """Why something is not determinable, each reason once."""
    reasons: dict[str, list[str]] = {}
    for row in one.measures:
        if not row.known:
            reasons.setdefault(_why(row.reason), []).append(row.name)
    lines = [
        f"Not determinable: {', '.join(dict.fromkeys(names))} ({reason})" for reason, names in reasons.items()
    ]
    ungraded = [f"{p.side} {_why(p.reason)}" for p in one.ptosis if p.reason]
    if ungraded:
        lines.append(f"Not determinable: grade of ptosis ({'; '.join(ungraded)})")
    if one.symmetry_reason:
        lines.append(f"Not determinable: symmetry ({_why(one.symmetry_reason)})")
    return lines + [f"Note: {sentence}" for sentence in sentences(one.warnings, COMMAND)]


def _number(measure: Measure) -> str:
    return f"{measure.value:.0f}" if measure.known else "-"


def _draw(one: Examination, folder: Path, made_with: str) -> None:
    from breastmorph.report.document import Identity
    from breastmorph.report.examination_sheet import examination_page, save_symmetry_map
    from breastmorph.report.sheet import print_page

    if one.mesh is None:
        return
    print_page(examination_page(one, Identity(one.id, model=made_with)), folder / f"{one.id}-measures")
    if one.symmetry is not None:
        save_symmetry_map(one.mesh, one.symmetry, folder / f"{one.id}-symmetry.png", one.id)


def _hand_out(one: Examination, folder: Path, made_with: str, language: str, paper: str, date: str) -> None:
    from breastmorph.report.document import Identity
    from breastmorph.report.handout import Handout, save_handout

    if one.mesh is not None:
        page = Handout(one, Identity(one.id, date, model=made_with))
        save_handout(page, folder / f"{one.id}-handout.pdf", language, paper)
