"""``breastmorph predict``: a missing breast from the rest of the torso, with its uncertainty."""

from __future__ import annotations

import io
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.markup import escape

from breastmorph.cli.options import (
    FOLDER,
    PATH,
    ModelFile,
    json_option,
    model_options,
    seed_option,
    subject_options,
    template_options,
)
from breastmorph.cli.printing import print_json, print_table, warn
from breastmorph.cli.provenance import provenance
from breastmorph.cli.wording import COMMAND
from breastmorph.clinical.feature_requests import parse_request
from breastmorph.clinical.measure_table import Measure, predicted_record
from breastmorph.clinical.missing_region import BOTH, load_painted
from breastmorph.clinical.patient import Patient
from breastmorph.clinical.predicted_measures import PredictedNipple
from breastmorph.cohort import load_cohort
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.files import csv_text, json_text, make_folder, write_file
from breastmorph.foundation.messages import sentences
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import SIDES
from breastmorph.template import Template
from breastmorph.usecases.predict import PredictRequest, PredictResult, predict
from breastmorph.usecases.subject import SubjectFile


@click.command("predict")
@model_options
@subject_options
@click.option(
    "--missing", type=click.Choice((*SIDES, BOTH)), help="The patient's side without a breast, or both."
)
@click.option(
    "--region",
    type=PATH,
    help="Instead of --missing: a list of missing vertices, or a registered mesh with these painted red.",
)
@click.option(
    "--before",
    type=PATH,
    help="A scan of hers from before the operation, or its registered mesh; any pose and unit.",
)
@click.option("--before-landmarks", type=PATH, help="Landmarks of that scan; beside it when not given.")
@click.option(
    "--set",
    "stated",
    multiple=True,
    metavar="NAME=VALUE",
    help="What the lost breast is known to have had: volume-right=420cc, SN-NR=24cm; repeatable.",
)
@click.option("--replace", "replaced", is_flag=True, help="Predict a breast although it is there.")
@click.option(
    "--operated",
    is_flag=True,
    help="What is predicted was operated on (expander, implant, reconstruction, part removed): nothing of its half "
    "is evidence. Implies --replace.",
)
@click.option("--out", type=FOLDER, default=Path("predicted"), help="Folder for the results.")
@click.option("--samples", type=click.IntRange(0, 200), default=5, help="Alternatives to draw.")
@seed_option("alternatives", default=0)
@click.option(
    "--cohort",
    type=FOLDER,
    help="The registered folder the model was built from: its subjects choose noise and uncertainty.",
)
@template_options("The model's own template mesh.")
@click.option("--no-sheet", is_flag=True, help="Do not draw pictures.")
@json_option
def command(
    model: ModelFile,
    subject: SubjectFile,
    missing: str | None,
    region: Path | None,
    before: Path | None,
    before_landmarks: Path | None,
    stated: tuple[str, ...],
    replaced: bool,
    operated: bool,
    out: Path,
    samples: int,
    seed: int,
    cohort: Path | None,
    template: Template | None,
    no_sheet: bool,
    as_json: bool,
) -> None:
    """Predict a missing breast of SCAN, a raw scan or OUT/registered/<id>.ply of `register`.

    The scan of a patient after a mastectomy lacks that side's nipple and poles, and so does its landmark file.
    Known skin stays exactly as scanned. Nothing on a flat chest tells which way the lost breast differed: what is
    known of it can be given with --set and --before. Written are the torso as PLY, STL and OBJ in the scan's frame and
    unit, the uncertainty as colours and numbers, plausible alternatives, the mirror image for comparison, the solid
    between the chest and the prediction, and a page for the clinic.

    \b
    Examples:
      breastmorph predict model.h5 scan.ply --landmarks scan.json --missing right --out predicted/
      breastmorph predict model.h5 out/registered/017.ply --missing left --replace
      breastmorph predict model.h5 scan.ply --missing right --set volume-right=420cc
      breastmorph predict model.h5 scan.ply --missing right --before earlier.ply
      breastmorph predict model.h5 out/registered/017.ply --missing both
      breastmorph predict model.h5 scan.ply --missing left --operated      # an expander, a reconstructed breast
    """
    known = tuple(parse_request(text) for text in stated)
    if (missing is None) == (region is None):
        raise click.UsageError("Name the side with --missing left|right|both, or paint it with --region.")
    subject = replace(subject, template=template)
    opened = model.open()
    request = PredictRequest(
        opened,
        subject,
        load_painted(region, opened.n_vertices) if region is not None else missing or "",
        replaced,
        operated,
        replace(subject, path=before, landmarks=before_landmarks) if before is not None else None,
        known,
        load_cohort(cohort) if cohort is not None else None,
    )
    result = predict(request)
    record = _record(result, model.name)
    files = _write(result, record, out, samples, seed)
    if not no_sheet:
        files += _draw(request, result, out, model.name)
    if as_json:
        print_json({**record, "files": [str(path) for path in files]})
    else:
        _print(result)
        click.echo(f"Look at {out / 'sheet.png'}" if not no_sheet else f"Written to {out}")
    warn(sentences(result.prediction.warnings, COMMAND))


def _write(result: PredictResult, record: dict[str, Any], out: Path, samples: int, seed: int) -> list[Path]:
    """Write all but the pictures, in the frame and unit of the patient's file; returns the files."""
    from breastmorph.report.prediction_sheet import vertex_colors

    make_folder(out)
    found, to_file = result.prediction, result.patient.to_file
    region = found.region

    def mesh(shape: Floats) -> TriangleMesh:
        return TriangleMesh(to_file.apply(shape), found.faces, found.skin)

    predicted = mesh(found.shape)
    colors, record["uncertainty_colors_end_mm"] = vertex_colors(found)
    meshes = {out / f"prediction.{suffix}": predicted for suffix in ("ply", "stl", "obj")}
    meshes[out / "uncertainty.ply"] = replace(predicted, colors=colors)
    if region.side != BOTH:
        meshes[out / "mirrored.ply"] = mesh(found.mirrored)
    solid = result.difference.solid
    solid = solid.with_vertices(to_file.apply(solid.vertices))
    meshes |= {out / f"difference.{suffix}": solid for suffix in ("ply", "stl")}
    rng = np.random.default_rng(seed)
    if samples:
        make_folder(out / "samples")
    for old in (out / "samples").glob("sample_*.ply"):
        old.unlink()  # of an earlier run with more of them
    meshes |= {out / "samples" / f"sample_{k + 1}.ply": mesh(found.drawn(rng)) for k in range(samples)}
    for path, one in meshes.items():
        save_mesh(one, path)
    arrays = io.BytesIO()
    np.savez_compressed(
        arrays,
        sd=found.sd.astype(np.float32),
        sd_normal=found.sd_normal.astype(np.float32),
        missing=region.missing,
        breast=region.breast,
    )
    rows = ["vertex,sd_mm,sd_normal_mm"]
    rows += [f"{v},{found.sd[v]:.3f},{found.sd_normal[v]:.3f}" for v in np.flatnonzero(region.missing)]
    texts = {
        out / "uncertainty.csv": ("\n".join(rows) + "\n").encode(),
        out / "uncertainty.npz": arrays.getvalue(),
        out / "prediction.json": json_text(record).encode(),
        out / "measures.csv": _measures(found.measures.measures).encode(),
    }
    for path, data in texts.items():
        write_file(path, data)
    return [*meshes, *texts]


def _measures(measures: tuple[Measure, ...]) -> str:
    """The measures in mm, cm2 and cc as CSV, a row each; a cell is empty where there is no number."""

    def cell(value: float) -> str:
        return f"{value:.2f}" if np.isfinite(value) else ""

    columns = ("measure", "kind", "unit", "other_side", "predicted", "sd", "mirrored")
    rows = []
    for one in measures:
        numbers = map(cell, (one.other, one.value, one.sd, one.mirrored))
        rows.append(dict(zip(columns, (one.name, one.kind, one.unit, *numbers), strict=True)))
    return csv_text(columns, rows)


def _draw(request: PredictRequest, result: PredictResult, out: Path, made_with: str) -> list[Path]:
    from breastmorph.report.document import Identity
    from breastmorph.report.examination_sheet import caution
    from breastmorph.report.prediction_sheet import Example, prediction_page, save_prediction_figure
    from breastmorph.report.sheet import print_page

    patient, found = result.patient, result.prediction
    page = prediction_page(
        found,
        patient.shape,
        found.measures.measures,
        Identity(patient.id, model=made_with),
        nipples=result.nipples,
        warning=caution(request.model),
    )
    files = print_page(page, out / "sheet")
    save_prediction_figure([Example(patient.id, patient.shape, found)], out / "prediction.png")
    return [*files, out / "prediction.png"]


def _record(result: PredictResult, model: str) -> dict[str, Any]:
    found = result.prediction
    inside = found.sd_normal[found.region.breast]
    return {
        "patient": result.patient.id,
        "model": model,
        "side": found.region.side,
        "breast_was_there": not result.was_absent,
        "evidence": found.evidence,
        "given": list(found.given),
        "noise": asdict(found.choice),
        "calibrated_on": found.source,
        "border_mismatch_mm": found.mismatch,
        "spread": found.spread,
        "missing_vertices": int(found.region.missing.sum()),
        "sd_normal_mm": {"mean": float(inside.mean()), "largest": float(inside.max())},
        "units": "mm, cm2 and cc; deviation is one standard deviation of the prediction",
        "measures": [predicted_record(row) for row in found.measures],
        "warnings": sentences(found.warnings, COMMAND),
        "made": provenance(),
        "difference": {"volume_cc": result.difference.volume, "sd_cc": result.difference.deviation},
        "nipples": [_place(nipple, result.patient) for nipple in result.nipples],
    }


def _place(nipple: PredictedNipple, patient: Patient) -> dict[str, Any]:
    """A nipple in the frame and unit of the patient's file."""
    return {
        "name": nipple.name,
        "position": patient.to_file.apply(nipple.position[None])[0].tolist(),
        "sd_mm": nipple.deviation,
        "sd_normal_mm": nipple.across,
        "predicted": True,
    }


def _print(result: PredictResult) -> None:
    from breastmorph.report.measure_tables import measure_row

    found, difference = result.prediction, result.difference
    print_table(
        escape(found.measures.title),
        ["measure (straight)", "other side", "predicted", "1 sd", "mirror image"],
        [[escape(cell) for cell in measure_row(row, in_words=False)] for row in found.measures],
    )
    inside = found.sd_normal[found.region.breast]
    click.echo(
        f"Uncertainty along the normal: {inside.mean():.1f} mm on average, {inside.max():.1f} mm at most (1 sd), "
        f"from leave-one-out over {found.source}"
    )
    for nipple in result.nipples:
        click.echo(nipple.in_words)
    click.echo(
        f"Between the chest as it is and the prediction: {difference.volume:.0f} ± {difference.deviation:.0f} cc (1 sd)"
    )
