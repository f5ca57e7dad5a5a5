"""``breastmorph plan``: what is to be added or taken away, where, and how thick."""

from __future__ import annotations

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
    model_argument,
    opened_model,
    scan_options,
)
from breastmorph.cli.printing import print_json, print_table, warn
from breastmorph.cli.provenance import provenance
from breastmorph.clinical.absent_breast import counts_as_gone
from breastmorph.clinical.cuts import Section, sections
from breastmorph.clinical.examiner import examiner_of
from breastmorph.clinical.feature_requests import parse_request
from breastmorph.clinical.missing_region import BOTH
from breastmorph.clinical.patient import Patient
from breastmorph.clinical.planning import Plan, plan_of
from breastmorph.clinical.predicted_measures import known_landmarks, predicted_side
from breastmorph.clinical.predicting import predict_breast
from breastmorph.foundation.errors import error_context, sentences
from breastmorph.foundation.files import json_text, make_folder, write_file
from breastmorph.mesh.files import save_mesh
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.scan import SIDES
from breastmorph.usecases.subject import SubjectFile, open_subject

_TARGETS = ("predicted", "mirrored")


@click.command("plan")
@model_argument
@click.argument("scan", type=PATH)
@landmarks_option
@click.option(
    "--side",
    type=click.Choice((*SIDES, BOTH)),
    required=True,
    help="The patient's side that is planned for; a breast that is there is replaced.",
)
@click.option(
    "--target",
    type=click.Choice(_TARGETS),
    default="predicted",
    show_default=True,
    help="The breast that the model predicts, or the mirror image of the other one.",
)
@click.option(
    "--set",
    "stated",
    multiple=True,
    metavar="NAME=VALUE",
    help="What the breast shall have, or is known to have had: volume-right=420cc, SN-NR=24cm; repeatable.",
)
@landmark_ids_option
@handout_options
@click.option(
    "--out", type=FOLDER, default=Path("planned"), show_default=True, help="Folder for the results."
)
@scan_options
@json_option
def command(
    model_file: Path,
    scan: Path,
    landmarks: Path | None,
    side: str,
    target: str,
    stated: tuple[str, ...],
    landmark_ids: Path | None,
    language: str,
    paper: str,
    date: str,
    out: Path,
    check: CheckParameters,
    as_json: bool,
) -> None:
    """Say what is to be added to SCAN or taken away to get to the predicted or mirrored breast.

    The difference in cc with its uncertainty, how thick it is and how wide and high its base; as closed solids in mm,
    upright, for a printed template (added-SIDE.stl, removed-SIDE.stl); a mesh coloured by thickness; the level and the
    upright cut through the nipple; and handout.pdf, a page to take home. It is what is usual among the model's
    subjects, not the outcome of an operation, and of a synthetic model no advice.

    \b
    Examples:
      breastmorph plan model.h5 scan.ply --landmarks scan.json --side right --out planned/
      breastmorph plan model.h5 out/registered/017.ply --side left --target mirrored
      breastmorph plan model.h5 scan.ply --side right --set volume-right=420cc
    """
    from breastmorph.report.document import Identity
    from breastmorph.report.handout import planned_handout, save_handout

    requests = [parse_request(text) for text in stated]
    if target == "mirrored" and stated:
        raise click.UsageError("--set tells of the predicted breast; the mirror image knows no wishes.")
    model = opened_model(model_file, landmark_ids)
    patient = open_subject(model, SubjectFile(scan, landmarks, check))
    with error_context(scan):
        gone = counts_as_gone(
            model, patient.shape, side, patient.absent_side, replace=not patient.absent_side
        )
        found = predict_breast(model, patient.shape, side, absent=gone, stated=requests)
        plan = plan_of(model, patient.shape, found, mirrored=target == "mirrored")
    cuts = [
        one
        for planned in plan.sides
        for one in sections(model, {"scanned": plan.before, plan.target: plan.after}, planned.side)
    ]
    record: dict[str, Any] = {
        "patient": patient.id,
        "model": model_file.name,
        **plan.as_dict(),
        "sections": [one.as_dict() for one in cuts],
        "made": provenance(),
    }
    files = _write(plan, patient, record, out)
    examiner, known = examiner_of(model), known_landmarks(found, patient.landmarks)
    own = examiner.shape(patient.id, patient.shape, patient.absent_side, annotated=patient.landmarks)
    told = predicted_side(found) if plan.target == "predicted" else None
    there = examiner.shape(patient.id, plan.after, annotated=known, predicted=told)
    identity = Identity(patient.id, date, model=model_file.name)
    save_handout(planned_handout(model, plan, own, there, identity), out / "handout.pdf", language, paper)
    files.append(out / "handout.pdf")
    if as_json:
        print_json({**record, "files": [str(path) for path in files]})
    else:
        _print(plan, cuts, patient)
        click.echo(f"Written to {out}")
    warn(sentences((*patient.warnings, *found.warnings)))


def _write(plan: Plan, patient: Patient, record: dict[str, Any], out: Path) -> list[Path]:
    """Solids as printers take them, upright and in mm; the map in the frame and unit of the patient's file."""
    from breastmorph.report.handout import thickness_mesh

    make_folder(out)
    for old in (path for kind in ("added", "removed") for path in out.glob(f"{kind}-*.stl")):
        old.unlink()  # of an earlier run for another side
    files = []
    for one in plan.sides:
        for kind, part in (("added", one.added), ("removed", one.removed)):
            if part.solid is not None:
                files.append(out / f"{kind}-{one.side}.stl")
                save_mesh(part.solid, files[-1])
    mesh, record["thickness_colors_end_mm"] = thickness_mesh(plan)
    save_mesh(mesh.with_vertices(patient.to_file.apply(mesh.vertices)), out / "thickness.ply")
    write_file(out / "plan.json", json_text(record).encode())
    return [*files, out / "thickness.ply", out / "plan.json"]


def _print(plan: Plan, cuts: list[Section], patient: Patient) -> None:
    from breastmorph.report.handout import plan_rows, section_rows

    click.echo(f"{plan.note.said('command').cause}.")
    title = f"{patient.id}: {plan.target} minus scanned"
    rows = [*plan_rows(plan), *section_rows(cuts)]
    columns = ["", *(f"{one.side} breast" for one in plan.sides)]
    print_table(escape(title), columns, [[escape(cell) for cell in row] for row in rows])
