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
    json_option,
    landmark_ids_option,
    landmarks_option,
    model_argument,
    opened_model,
    own_template,
    print_json,
    print_table,
    provenance,
    scan_options,
    seed_option,
    template_options,
    warn,
)
from breastmorph.clinical.absent_breast import counts_as_gone
from breastmorph.clinical.feature_requests import parse_request
from breastmorph.clinical.measure_table import Measure, predicted_record
from breastmorph.clinical.missing_region import BOTH
from breastmorph.clinical.missing_volume import Lacking, lacking
from breastmorph.clinical.painted_region import load_painted
from breastmorph.clinical.patient import Patient
from breastmorph.clinical.predicted_measures import PredictedNipple, predicted_measures, predicted_nipples
from breastmorph.clinical.predicting import predict_breast, with_skin
from breastmorph.clinical.prediction import Prediction
from breastmorph.clinical.training_shapes import training_shapes
from breastmorph.cohort import load_cohort
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import error_context, sentences
from breastmorph.foundation.files import csv_text, json_text, make_folder, write_file
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.scan import SIDES
from breastmorph.usecases.subject import SubjectFile, open_subject


@click.command("predict")
@model_argument
@click.argument("scan", type=PATH)
@landmarks_option
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
@click.option(
    "--out", type=FOLDER, default=Path("predicted"), show_default=True, help="Folder for the results."
)
@click.option(
    "--samples", type=click.IntRange(0, 200), default=5, show_default=True, help="Alternatives to draw."
)
@seed_option("alternatives", default=0)
@click.option(
    "--cohort",
    type=FOLDER,
    help="The registered folder the model was built from: its subjects choose noise and uncertainty.",
)
@template_options("The model's own template mesh.")
@landmark_ids_option
@click.option("--no-sheet", is_flag=True, help="Do not draw pictures.")
@scan_options
@json_option
def command(
    model_file: Path,
    scan: Path,
    landmarks: Path | None,
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
    template_file: Path | None,
    template_landmarks: Path | None,
    landmark_ids: Path | None,
    no_sheet: bool,
    check: CheckParameters,
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
    requests = [parse_request(text) for text in stated]
    if (missing is None) == (region is None):
        raise click.UsageError("Name the side with --missing left|right|both, or paint it with --region.")
    template = own_template(template_file, template_landmarks)
    model = opened_model(model_file, landmark_ids)
    what: str | Bools = missing or ""
    if region is not None:
        what = load_painted(region, model.n_vertices)
    patient = open_subject(model, SubjectFile(scan, landmarks, check, template))
    with error_context(scan):
        gone = counts_as_gone(model, patient.shape, what, patient.absent_side, replace=replaced or operated)
    subjects = training_shapes(model, load_cohort(cohort) if cohort is not None else None)
    earlier = None
    if before is not None:
        earlier = open_subject(model, SubjectFile(before, before_landmarks, check, template)).shape
    with error_context(scan):
        found = predict_breast(
            model,
            patient.shape,
            what,
            absent=gone or operated,
            subjects=subjects,
            earlier=earlier,
            stated=requests,
        )
    found = with_skin(model, found, patient.skin)
    found = replace(found, warnings=(*patient.warnings, *found.warnings))
    take, nipples = lacking(patient.shape, found), predicted_nipples(model, found)
    measures = (*predicted_measures(model, found, patient.landmarks), take.measure)
    record = {**_record(found, patient, model_file, gone, measures), "made": provenance()}
    record["difference"] = {"volume_cc": take.volume, "sd_cc": take.deviation}
    record["nipples"] = [_place(one, patient) for one in nipples]
    files = _write(found, patient, take, record, out, samples, seed)
    files.append(_write_measures(measures, out / "measures.csv"))
    if not no_sheet:
        from breastmorph.report.clinical_sheet import caution

        files += _draw(found, patient, measures, nipples, out, caution(model), model_file.name)
    if as_json:
        print_json({**record, "files": [str(path) for path in files]})
    else:
        _print(found, patient, measures)
        for one in nipples:
            click.echo(one.in_words)
        click.echo(
            f"Between the chest as it is and the prediction: {take.volume:.0f} ± {take.deviation:.0f} cc (1 sd)"
        )
        click.echo(f"Look at {out / 'sheet.png'}" if not no_sheet else f"Written to {out}")
    warn(sentences(found.warnings))


# --- output -----------------------------------------------------------------------------------------------------------


def _write(
    found: Prediction,
    patient: Patient,
    take: Lacking,
    record: dict[str, Any],
    out: Path,
    samples: int,
    seed: int,
) -> list[Path]:
    """Write all but the pictures, in the frame and unit of the patient's file; returns the files."""
    from breastmorph.report.clinical_sheet import vertex_colors

    make_folder(out)

    def mesh(shape: Floats) -> TriangleMesh:
        return TriangleMesh(patient.to_file.apply(shape), found.faces, found.skin)

    predicted = mesh(found.shape)
    colors, most = vertex_colors(found)
    meshes = {out / f"prediction.{suffix}": predicted for suffix in ("ply", "stl", "obj")}
    meshes[out / "uncertainty.ply"] = replace(predicted, colors=colors)
    if found.region.side != BOTH:
        meshes[out / "mirrored.ply"] = mesh(found.mirrored)
    solid = take.solid.with_vertices(patient.to_file.apply(take.solid.vertices))
    meshes |= {out / f"difference.{suffix}": solid for suffix in ("ply", "stl")}
    rng = np.random.default_rng(seed)
    if samples:
        make_folder(out / "samples")
    for old in (out / "samples").glob("sample_*.ply"):
        old.unlink()  # of an earlier run with more of them
    meshes |= {out / "samples" / f"sample_{k + 1}.ply": mesh(found.drawn(rng)) for k in range(samples)}
    for path, one in meshes.items():
        save_mesh(one, path)
    record["uncertainty_colors_end_mm"] = most
    arrays = io.BytesIO()
    np.savez_compressed(
        arrays,
        sd=found.sd.astype(np.float32),
        sd_normal=found.sd_normal.astype(np.float32),
        missing=found.region.missing,
        breast=found.region.breast,
    )
    texts = {
        out / "uncertainty.csv": _table(found.region.missing, found.sd, found.sd_normal),
        out / "uncertainty.npz": arrays.getvalue(),
        out / "prediction.json": json_text(record).encode(),
    }
    for path, data in texts.items():
        write_file(path, data)
    return [*meshes, *texts]


def _write_measures(measures: tuple[Measure, ...], path: Path) -> Path:
    """The measures in mm, cm2 and cc, a row each; empty where there is none."""

    def cell(value: float) -> str:
        return f"{value:.2f}" if np.isfinite(value) else ""

    columns = ("measure", "kind", "unit", "other_side", "predicted", "sd", "mirrored")
    rows = []
    for one in measures:
        numbers = map(cell, (one.other, one.value, one.sd, one.mirrored))
        rows.append(dict(zip(columns, (one.name, one.kind, one.unit, *numbers), strict=True)))
    write_file(path, csv_text(columns, rows).encode())
    return path


def _table(missing: Bools, deviation: Floats, normal: Floats) -> bytes:
    """The uncertainty of the missing vertices as CSV."""
    rows = ["vertex,sd_mm,sd_normal_mm"]
    rows += [f"{v},{deviation[v]:.3f},{normal[v]:.3f}" for v in np.flatnonzero(missing)]
    return ("\n".join(rows) + "\n").encode()


def _draw(
    found: Prediction,
    patient: Patient,
    measures: tuple[Measure, ...],
    nipples: tuple[PredictedNipple, ...],
    out: Path,
    warning: str,
    made_with: str,
) -> list[Path]:
    from breastmorph.report.clinical_sheet import Example, save_prediction_figure, save_prediction_sheet

    title = f"{patient.id}: predicted {found.region.called}"
    files = save_prediction_sheet(found, patient.shape, measures, title, out, warning, nipples, made_with)
    save_prediction_figure([Example(patient.id, patient.shape, found)], out / "prediction.png")
    return [*files, out / "prediction.png"]


def _record(
    found: Prediction,
    patient: Patient,
    model_file: Path,
    gone: bool,
    measures: tuple[Measure, ...],
) -> dict[str, Any]:
    breast = found.region.breast
    return {
        "patient": patient.id,
        "model": model_file.name,
        "side": found.region.side,
        "breast_was_there": not gone,
        "evidence": found.evidence,
        "given": list(found.given),
        "noise": asdict(found.choice),
        "calibrated_on": found.source,
        "border_mismatch_mm": found.mismatch,
        "spread": found.spread,
        "missing_vertices": int(found.region.missing.sum()),
        "sd_normal_mm": {
            "mean": float(found.sd_normal[breast].mean()),
            "largest": float(found.sd_normal[breast].max()),
        },
        "units": "mm, cm2 and cc; deviation is one standard deviation of the prediction",
        "measures": [predicted_record(row) for row in measures],
        "warnings": sentences(found.warnings),
    }


def _place(one: PredictedNipple, patient: Patient) -> dict[str, Any]:
    """A nipple in the frame and unit of the patient's file."""
    return {
        "name": one.name,
        "position": patient.to_file.apply(one.position[None])[0].tolist(),
        "sd_mm": one.deviation,
        "sd_normal_mm": one.across,
        "predicted": True,
    }


def _print(found: Prediction, patient: Patient, measures: tuple[Measure, ...]) -> None:
    from breastmorph.report.clinical_sheet import measure_row

    print_table(
        f"{escape(patient.id)}: predicted {found.region.called}",
        ["measure (straight)", "other side", "predicted", "1 sd", "mirror image"],
        [[escape(cell) for cell in measure_row(one, in_words=False)] for one in measures],
    )
    inside = found.sd_normal[found.region.breast]
    click.echo(
        f"Uncertainty along the normal: {inside.mean():.1f} mm on average, {inside.max():.1f} mm at most (1 sd), "
        f"from leave-one-out over {found.source}"
    )
