"""``breastmorph edit``: change a shape by its clinical measures."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from breastmorph.cli.options import (
    FOLDER,
    PATH,
    json_option,
    landmark_ids_option,
    landmarks_option,
    model_argument,
    opened_model,
    print_json,
    print_table,
    progress,
    provenance,
    scan_options,
    warn,
)
from breastmorph.clinical.distances import DISTANCES, KINDS, PAIRS, PAPER, STRAIGHT, TAPE
from breastmorph.clinical.edit import Edit
from breastmorph.clinical.editing import Editor
from breastmorph.clinical.examiner import landmarks_of
from breastmorph.clinical.feature_requests import REGIONS, Request, named, parse_request
from breastmorph.clinical.model_features import ModelFeatures
from breastmorph.clinical.patient import Patient, mean_patient
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError, measure_in_words, sentences
from breastmorph.foundation.files import csv_text, json_text, make_folder, write_file
from breastmorph.mesh.files import save_mesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.check import CheckParameters
from breastmorph.usecases.subject import SubjectFile, open_subject

_GRID = ",".join(PAPER)  # the features of the paper's figure
_STEPS = (-2.0, -1.0, 0.0, 1.0, 2.0)  # standard deviations in that figure
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
@model_argument
@click.option("--mean", "of_mean", is_flag=True, help="Edit the model's mean (the default).")
@click.option("--scan", type=PATH, help="Edit a patient's scan; it is registered first.")
@landmarks_option
@click.option("--registered", type=PATH, help="Edit OUT/registered/<id>.ply of `register`.")
@click.option(
    "--set", "wishes", multiple=True, metavar="NAME=VALUE", shell_complete=_offered(_MEASURES, "="),
    help="A measure and its new value; repeatable.",
)  # fmt: skip
@click.option(
    "--hold", multiple=True, metavar="NAME", shell_complete=_offered((*REGIONS, *_MEASURES)),
    help="A measure, thorax, left or right; repeatable.",
)  # fmt: skip
@click.option("--linear", is_flag=True, help="The paper's linear regression instead of the exact version.")
@click.option(
    "--kind", type=click.Choice(KINDS), default=STRAIGHT, show_default=True,
    help="How distances are measured: tape, along the skin; straight, through the air.",
)  # fmt: skip
@click.option(
    "--grid", is_flag=False, flag_value=_GRID, metavar="NAMES", shell_complete=_offered(_MEASURES),
    help=f"Draw measures at -2 to +2 standard deviations instead; {_GRID} when none are named.",
)  # fmt: skip
@landmark_ids_option
@click.option("--out", type=FOLDER, default=Path("edited"), show_default=True, help="Folder for the results.")
@click.option("--no-sheet", is_flag=True, help="Do not draw the page before/after.")
@scan_options
@json_option
def command(
    model_file: Path,
    of_mean: bool,
    scan: Path | None,
    landmarks: Path | None,
    registered: Path | None,
    wishes: Sequence[str],
    hold: Sequence[str],
    linear: bool,
    kind: str,
    grid: str | None,
    landmark_ids: Path | None,
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
    requests = [parse_request(text) for text in wishes]
    model = opened_model(model_file, landmark_ids)
    patient = _patient(model, scan, landmarks, registered, check)
    editor = Editor(
        model, patient, ModelFeatures(model, kind, patient.absent_side, landmarks_of(model, patient))
    )
    if grid is not None:
        _draw_grid(editor, [name.strip() for name in grid.split(",")], hold, linear, out, as_json)
        return
    edit = editor.linear(requests, hold) if linear else editor.exact(requests, hold)
    edit = replace(edit, warnings=(*patient.warnings, *edit.warnings))
    beside, why_not = (None, "") if linear else _linear(editor, edit, requests, hold)
    record = {**_record(edit, patient, model_file, kind, beside), "made": provenance()}
    files = _write(edit, patient, record, out)
    if not no_sheet:
        from breastmorph.report.clinical_sheet import caution
        from breastmorph.report.shape_sheets import save_editing_sheet

        asked = (measure_in_words(c.name) for c in edit.changes if c.requested is not None and not c.held)
        title = f"{patient.id}: {', '.join(asked)}"
        files += save_editing_sheet(edit, model.faces, title, out, caution(model), model_file.name)
    if as_json:
        print_json({**record, "files": [str(path) for path in files]})
    else:
        _print(edit, patient, beside, why_not)
        click.echo(f"Written: {', '.join(str(path) for path in files)}")
    warn(sentences(edit.warnings))


def _patient(
    model: ShapeModel,
    scan: Path | None,
    landmarks: Path | None,
    registered: Path | None,
    check: CheckParameters,
) -> Patient:
    file = registered or scan
    if file is None:
        return mean_patient(model)
    return open_subject(model, SubjectFile(file, landmarks, check, is_registered=registered is not None))


def _linear(
    editor: Editor, edit: Edit, requests: Sequence[Request], hold: Sequence[str]
) -> tuple[Edit | None, str]:
    """The paper's version beside the exact one, or why there is none; it knows no held regions."""
    if any(change.requested is not None and change.name.endswith(TAPE) for change in edit.changes):
        return None, "takes a minute with tape measures: ask for it with --linear"
    try:
        return editor.linear(requests, [name for name in hold if named(name, REGIONS) is None]), ""
    except BreastMorphError as error:
        return None, f"is not possible here: {error.said('command').cause}"


def _write(edit: Edit, patient: Patient, record: dict[str, Any], out: Path) -> list[Path]:
    """Write the edited mesh in the frame and unit of the patient's file, and what was done; returns the files."""
    make_folder(out)
    mesh = edit.mesh.with_vertices(patient.to_file.apply(edit.shape))
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


def _record(edit: Edit, patient: Patient, model_file: Path, kind: str, beside: Edit | None) -> dict[str, Any]:
    record = {"patient": patient.id, "model": model_file.name, "distances": kind, **edit.as_dict()}
    if beside is not None:
        record["linear_version"] = {
            "trained_on": beside.basis,
            "attained": {c.name: c.after for c in beside.changes if c.requested is not None},
            "error": {c.name: c.error for c in beside.changes if c.requested is not None},
        }
    return record


def _print(edit: Edit, patient: Patient, beside: Edit | None, why_not: str) -> None:
    from breastmorph.report.shape_sheets import change_row

    columns = ["measure", "before", "requested", "after", "difference"]
    rows = [change_row(change, in_words=False) for change in edit.changes]
    if beside is not None:
        columns.append("linear version's")
        others = {name: error for name, *_, error in (change_row(c, in_words=False) for c in beside.changes)}
        rows = [[*row, others.get(row[0], "")] for row in rows]
    title = f"{patient.id}, {edit.method} edit: {edit.length:.1f} standard deviations"
    print_table(escape(title), columns, [[escape(cell) for cell in row] for row in rows])
    moved = ", ".join(f"{region} {value:.2f} mm" for region, value in edit.movements.items())
    if moved:
        click.echo(f"Moved (root mean square): {moved}")
    if edit.standing is not None:
        click.echo(f"{edit.standing.level.capitalize()}: {edit.standing.finding.said('command').cause}")
    if edit.basis:
        click.echo(f"Regression trained on {edit.basis}")
    elif beside is not None:
        click.echo(f"The linear version (the paper's regression) was trained on {beside.basis}")
    else:
        click.echo(f"The linear version beside it {why_not}")


def _draw_grid(
    editor: Editor, names: Sequence[str], hold: Sequence[str], linear: bool, out: Path, as_json: bool
) -> None:
    from breastmorph.report.clinical_sheet import in_cm
    from breastmorph.report.shape_sheets import save_feature_grid

    rows: list[list[tuple[Floats | None, str]]] = []
    records: list[dict[str, Any]] = []
    for feature, _, sd in [editor.usual(name) for name in names]:
        rows.append([])
        title = feature.name.split(" ")[0]
        for step in progress(_STEPS, feature.name):
            where = f"{step:+g} sd" if step else "as it is"
            request = Request(feature.name, step * sd, relative=True)
            try:
                edit = editor.linear([request], hold) if linear else editor.exact([request], hold)
            except BreastMorphError as error:
                if not step:  # not this value, but something else is wrong
                    raise
                rows[-1].append((None, f"{title} {where}: not attainable"))
                records.append({"feature": feature.name, "step_sd": step, "refused": error.text("command")})
                continue
            asked = edit.changes[0]
            rows[-1].append((edit.shape, f"{title} {in_cm(asked.after, asked.unit)} ({where})"))
            records.append({"feature": feature.name, "step_sd": step, **edit.as_dict()})
    make_folder(out)
    path = out / "feature-editing.png"
    save_feature_grid(rows, editor.model.faces, path)
    if as_json:
        print_json({"figure": str(path), "edits": records, "made": provenance()})
    else:
        click.echo(f"Look at {path}")
    refused = [record["refused"] for record in records if "refused" in record]
    for text in refused:
        click.echo(f"Left white: {text}", err=True)
    sys.exit(1 if refused else 0)
