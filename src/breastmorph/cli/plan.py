"""``breastmorph plan``: what is to be added or taken away, where, and how thick."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from breastmorph.cli.options import (
    FOLDER,
    ModelFile,
    handout_options,
    json_option,
    model_options,
    subject_options,
)
from breastmorph.cli.printing import print_json, print_table, warn
from breastmorph.cli.provenance import provenance
from breastmorph.cli.wording import COMMAND
from breastmorph.clinical.feature_requests import parse_request
from breastmorph.clinical.missing_region import BOTH
from breastmorph.foundation.errors import error_context
from breastmorph.foundation.files import json_text, make_folder, write_file
from breastmorph.foundation.messages import sentences
from breastmorph.mesh.files import save_mesh
from breastmorph.scan.scan import SIDES
from breastmorph.usecases.plan import PlanRequest, PlanResult, plan
from breastmorph.usecases.predict import PredictRequest, predict
from breastmorph.usecases.subject import SubjectFile

_TARGETS = ("predicted", "mirrored")


@click.command("plan")
@model_options
@subject_options
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
    help="The breast that the model predicts, or the mirror image of the other one.",
)
@click.option(
    "--set",
    "stated",
    multiple=True,
    metavar="NAME=VALUE",
    help="What the breast shall have, or is known to have had: volume-right=420cc, SN-NR=24cm; repeatable.",
)
@handout_options
@click.option("--out", type=FOLDER, default=Path("planned"), help="Folder for the results.")
@json_option
def command(
    model: ModelFile,
    subject: SubjectFile,
    side: str,
    target: str,
    stated: tuple[str, ...],
    language: str,
    paper: str,
    date: str,
    out: Path,
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

    known = tuple(parse_request(text) for text in stated)
    if target == "mirrored" and stated:
        raise click.UsageError(
            "--set states what the predicted breast has; the mirror image is not predicted."
        )
    opened = model.open()
    predicted = predict(PredictRequest(opened, subject, side, replace=None, known=known))
    with error_context(subject.path):
        result = plan(
            PlanRequest(opened, predicted.patient, predicted.prediction, mirrored=target == "mirrored")
        )
    identity = Identity(result.patient.id, date, model=model.name)
    page = planned_handout(opened, result.plan, *result.examinations, identity)
    record: dict[str, Any] = {
        "patient": result.patient.id,
        "model": model.name,
        **result.plan.as_dict(),
        "sections": [cut.as_dict() for cut in result.sections],
        "made": provenance(),
    }
    files = _write(result, record, out)
    save_handout(page, out / "handout.pdf", language, paper)
    files.append(out / "handout.pdf")
    if as_json:
        print_json({**record, "files": [str(path) for path in files]})
    else:
        _print(result)
        click.echo(f"Written to {out}")
    warn(sentences(predicted.prediction.warnings, COMMAND))


def _write(result: PlanResult, record: dict[str, Any], out: Path) -> list[Path]:
    """Solids as printers take them, upright and in mm; the map in the frame and unit of the patient's file."""
    from breastmorph.report.handout import thickness_mesh

    make_folder(out)
    for old in (path for kind in ("added", "removed") for path in out.glob(f"{kind}-*.stl")):
        old.unlink()  # of an earlier run for another side
    files = []
    for side in result.plan.sides:
        for kind, part in (("added", side.added), ("removed", side.removed)):
            if part.solid is not None:
                files.append(out / f"{kind}-{side.side}.stl")
                save_mesh(part.solid, files[-1])
    mesh, record["thickness_colors_end_mm"] = thickness_mesh(result.plan)
    save_mesh(mesh.with_vertices(result.patient.to_file.apply(mesh.vertices)), out / "thickness.ply")
    write_file(out / "plan.json", json_text(record).encode())
    return [*files, out / "thickness.ply", out / "plan.json"]


def _print(result: PlanResult) -> None:
    from breastmorph.report.handout import plan_rows, section_rows

    found = result.plan
    click.echo(f"{found.note.cause.text(COMMAND)}.")
    rows = [*plan_rows(found), *section_rows(result.sections)]
    columns = ["", *(f"{side.side} breast" for side in found.sides)]
    title = f"{result.patient.id}: {found.target} minus scanned"
    print_table(escape(title), columns, [[escape(cell) for cell in row] for row in rows])
