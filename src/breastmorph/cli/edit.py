"""``breastmorph edit``: change a shape by its clinical measures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from breastmorph.cli.options import (
    FOLDER,
    PATH,
    ModelFile,
    json_option,
    landmarks_option,
    model_options,
    scan_options,
)
from breastmorph.cli.printing import print_json, print_table, progress_with, warn
from breastmorph.cli.provenance import provenance
from breastmorph.cli.wording import COMMAND
from breastmorph.clinical.distances import DISTANCES, KINDS, PAIRS, PAPER, STRAIGHT
from breastmorph.clinical.feature_requests import REGIONS, parse_request
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.files import csv_text, json_text, make_folder, write_file
from breastmorph.foundation.messages import sentences
from breastmorph.mesh.files import save_mesh
from breastmorph.scan.check import CheckParameters
from breastmorph.usecases.edit import EditRequest, EditResult, GridRequest, edit, edit_grid
from breastmorph.usecases.subject import SubjectFile

_GRID = ",".join(PAPER)  # the features of the paper's figure
_MEASURES = (*DISTANCES, *PAIRS["volume"])


def _offered(
    names: Sequence[str], ending: str = ""
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What the shell offers for a name, or for the last one of several with commas."""

    def offer(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
        before, comma, begun = incomplete.rpartition(",")
        return [f"{before}{comma}{name}{ending}" for name in names if name.lower().startswith(begun.lower())]

    return offer


@click.command("edit")
@model_options
@click.option("--mean", "of_mean", is_flag=True, help="Edit the model's mean (the default).")
@click.option("--scan", type=PATH, help="Edit a patient's scan; it is registered first.")
@landmarks_option
@click.option("--registered", type=PATH, help="Edit OUT/registered/<id>.ply of `register`.")
@click.option(
    "--set",
    "wishes",
    multiple=True,
    metavar="NAME=VALUE",
    shell_complete=_offered(_MEASURES, "="),
    help="A measure and its new value; repeatable.",
)
@click.option(
    "--hold",
    multiple=True,
    metavar="NAME",
    shell_complete=_offered((*REGIONS, *_MEASURES)),
    help="A measure, thorax, left or right; repeatable.",
)
@click.option("--linear", is_flag=True, help="The paper's linear regression instead of the exact version.")
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default=STRAIGHT,
    help="How distances are measured: tape, along the skin; straight, through the air.",
)
@click.option(
    "--grid",
    is_flag=False,
    flag_value=_GRID,
    metavar="NAMES",
    shell_complete=_offered(_MEASURES),
    help=f"Draw measures at -2 to +2 standard deviations instead; {_GRID} when none are named.",
)
@click.option("--out", type=FOLDER, default=Path("edited"), help="Folder for the results.")
@click.option("--no-sheet", is_flag=True, help="Do not draw the page before/after.")
@scan_options
@json_option
def command(
    model: ModelFile,
    of_mean: bool,
    scan: Path | None,
    landmarks: Path | None,
    registered: Path | None,
    wishes: tuple[str, ...],
    hold: tuple[str, ...],
    linear: bool,
    kind: str,
    grid: str | None,
    out: Path,
    no_sheet: bool,
    check: CheckParameters,
    as_json: bool,
) -> None:
    """Change a shape by its clinical measures, with MODEL saying what is likely.

    Finds the most likely shape that has the measures asked for. Values are in mm (distances) or cc (volumes) unless
    they end in mm, cm, cc or ml; a value with + or - is added to the present one. Writes edited.ply, .stl and .obj in
    the frame and unit of the scan, edit.json, measures.csv, and a page before/after as sheet.png and sheet.pdf.

    \b
    Examples:
      breastmorph edit model.h5 --set SN-NL=21.5cm --set NL-NR=20cm --hold thorax
      breastmorph edit model.h5 --scan scan.ply --landmarks scan.json --set volume-left=+80cc --hold right
      breastmorph edit model.h5 --grid SN-NL,NL-NR --hold thorax --out figure/
    """
    if sum((of_mean, scan is not None, registered is not None)) > 1:
        raise click.UsageError("Give one of --mean, --scan and --registered.")
    if landmarks is not None and scan is None:
        raise click.UsageError("--landmarks belongs to --scan.")
    if bool(wishes) == (grid is not None):
        raise click.UsageError("Say what to change with --set, or draw a figure with --grid.")
    changes = tuple(parse_request(text) for text in wishes)
    opened = model.open()
    file = registered or scan
    subject = None
    if file is not None:
        subject = SubjectFile(file, landmarks, check, is_registered=registered is not None)
    if grid is not None:
        measures = tuple(name.strip() for name in grid.split(","))
        _draw_grid(GridRequest(opened, measures, subject, hold, kind, linear), out, as_json)
        return
    result = edit(EditRequest(opened, changes, subject, hold, kind, linear, compare_linear=True))
    record = {**_record(result, model.name, kind), "made": provenance()}
    files = _write(result, record, out)
    if not no_sheet:
        from breastmorph.report.document import Identity
        from breastmorph.report.examination_sheet import caution
        from breastmorph.report.shape_sheets import editing_page
        from breastmorph.report.sheet import print_page

        identity = Identity(result.patient.id, model=model.name)
        page = editing_page(result.edit, opened.faces, identity, caution(opened))
        files += print_page(page, out / "sheet")
    if as_json:
        print_json({**record, "files": [str(path) for path in files]})
    else:
        _print(result)
        click.echo(f"Written: {', '.join(str(path) for path in files)}")
    warn(sentences(result.edit.warnings, COMMAND))


def _write(result: EditResult, record: dict[str, Any], out: Path) -> list[Path]:
    """Write the edited mesh in the frame and unit of the patient's file, and what was done; returns the files."""
    make_folder(out)
    mesh = result.edit.mesh
    mesh = mesh.with_vertices(result.patient.to_file.apply(mesh.vertices))
    files = [out / f"edited.{suffix}" for suffix in ("ply", "stl", "obj")]
    for path in files:
        save_mesh(mesh, path)
    write_file(out / "edit.json", json_text(record).encode())
    return [*files, out / "edit.json", _write_measures(record["changes"], out / "measures.csv")]


def _write_measures(changes: Sequence[dict[str, Any]], path: Path) -> Path:
    """The measures before and after in mm and cc, a row each, as the record has them; empty where there is none."""

    def cell(value: float | str | None) -> str:
        return value if isinstance(value, str) else "" if value is None else f"{value:.2f}"

    kept = {"measure": "name", "unit": "unit", "before": "before", "requested": "requested", "after": "after"}
    kept |= {"sd": "sd", "sd_source": "sd_source"}
    rows = [{column: cell(one[key]) for column, key in kept.items()} for one in changes]
    write_file(path, csv_text(list(kept), rows).encode())
    return path


def _record(result: EditResult, model: str, kind: str) -> dict[str, Any]:
    found, linear = result.edit, result.linear
    record = {"patient": result.patient.id, "model": model, "distances": kind, **found.as_dict()}
    if linear is not None:
        asked = [row for row in linear.changes if row.requested is not None]
        record["linear_version"] = {
            "trained_on": linear.basis,
            "attained": {row.name: row.after for row in asked},
            "error": {row.name: row.error for row in asked},
        }
    return record


def _print(result: EditResult) -> None:
    from breastmorph.report.measure_tables import change_row

    found, beside = result.edit, result.linear
    columns = ["measure", "before", "requested", "after", "difference"]
    rows = [change_row(change, in_words=False) for change in found.changes]
    if beside is not None:
        columns.append("linear version's")
        others = {name: error for name, *_, error in (change_row(c, in_words=False) for c in beside.changes)}
        rows = [[*row, others.get(row[0], "")] for row in rows]
    title = f"{result.patient.id}, {found.method} edit: {found.length:.1f} standard deviations"
    print_table(escape(title), columns, [[escape(cell) for cell in row] for row in rows])
    moved = ", ".join(f"{region} {value:.2f} mm" for region, value in found.movements.items())
    if moved:
        click.echo(f"Moved (root mean square): {moved}")
    if found.plausibility is not None:
        click.echo(
            f"{found.plausibility.level.capitalize()}: {found.plausibility.finding.cause.text(COMMAND)}"
        )
    if found.basis:
        click.echo(f"Regression trained on {found.basis}")
    elif beside is not None:
        click.echo(f"The linear version (the paper's regression) was trained on {beside.basis}")
    elif result.linear_refusal is not None:
        click.echo(
            f"The linear version beside it is not possible here: {result.linear_refusal.finding.cause.text(COMMAND)}"
        )
    else:
        click.echo("The linear version beside it takes a minute with tape measures: ask for it with --linear")


def _draw_grid(request: GridRequest, out: Path, as_json: bool) -> None:
    from breastmorph.report.measure_tables import in_cm
    from breastmorph.report.shape_sheets import save_feature_grid

    rows: list[list[tuple[Floats | None, str]]] = []
    records: list[dict[str, Any]] = []
    refused: list[str] = []
    for row in edit_grid(request, partial(progress_with, "Editing")):
        rows.append([])
        for step in row:
            title = step.measure.split(" ")[0]
            where = f"{step.deviations:+g} sd" if step.deviations else "as it is"
            record: dict[str, Any] = {"feature": step.measure, "step_sd": step.deviations}
            if step.edit is not None:
                asked = step.edit.changes[0]
                rows[-1].append((step.edit.shape, f"{title} {in_cm(asked.after, asked.unit)} ({where})"))
                record |= step.edit.as_dict()
            elif step.refusal is not None:
                rows[-1].append((None, f"{title} {where}: not attainable"))
                refused.append(step.refusal.text(COMMAND))
                record["refused"] = refused[-1]
            records.append(record)
    make_folder(out)
    path = out / "feature-editing.png"
    save_feature_grid(rows, request.model.faces, path)
    if as_json:
        print_json({"figure": str(path), "edits": records, "made": provenance()})
    else:
        click.echo(f"Look at {path}")
    for text in refused:
        click.echo(f"Left white: {text}", err=True)
    sys.exit(1 if refused else 0)
