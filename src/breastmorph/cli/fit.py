"""``breastmorph fit``: a model fitted to a raw scan or point cloud."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from breastmorph.cli.options import (
    COUNT,
    FOLDER,
    PATH,
    json_option,
    landmark_ids_option,
    model_argument,
    opened_model,
    scan_options,
)
from breastmorph.cli.printing import print_json, print_table
from breastmorph.cli.provenance import provenance
from breastmorph.foundation.errors import Finding, error_context, sentences
from breastmorph.foundation.files import json_text, make_folder, write_file
from breastmorph.mesh.files import save_mesh
from breastmorph.model.fitting import Fit, FitParameters, fit_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.model.standing import Standing, population_of
from breastmorph.report.shape_sheets import fit_sheet
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.raw_target import RawTarget, load_target
from breastmorph.template import default_template

_MESHES = ("fit.ply", "fit.stl", "fit.obj")


@click.command("fit")
@model_argument
@click.argument("scan", type=PATH)
@click.option("--out", type=FOLDER, required=True, help="Folder for the results.")
@click.option(
    "--landmarks",
    type=PATH,
    help="Landmark file. The landmarks that it does not have are found by the program.",
)
@landmark_ids_option
@click.option("--components", type=COUNT, help="Use only the first components.")
@scan_options
@json_option
def command(
    model_file: Path,
    scan: Path,
    out: Path,
    landmarks: Path | None,
    landmark_ids: Path | None,
    components: int | None,
    check: CheckParameters,
    as_json: bool,
) -> None:
    """Fit MODEL to SCAN, a raw surface or point cloud, without registration: pose and shape in one go.

    It begins from landmarks; those that you do not give are found by the program, and fit.json names them.

    SCAN is a mesh file, a PLY file without faces, or a table of x y z (.xyz, .csv, .txt). Holes, noise, stray
    points and partial views are allowed. Written are the shape as PLY, STL and OBJ in the scan's frame and unit,
    fit.json with the coefficients, residuals.csv and the picture fit.png.

    \b
    Examples:
      breastmorph fit model.h5 scan.ply --out fitted/
      breastmorph fit model.h5 scan.ply --landmarks scan.json --out fitted/
      breastmorph fit rbsm-0122.h5 cloud.xyz --landmarks points.csv --components 60 --out fitted/
    """
    model = opened_model(model_file, landmark_ids)
    target = load_target(scan, landmarks, check, default_template().as_reference)
    with error_context(scan):
        fit = fit_model(model, target.shape, target.landmarks, FitParameters(components=components))
    make_folder(out)
    files = _write(model, target, fit, out)
    record = {**_record(model, target, fit), "made": provenance()}
    write_file(out / "fit.json", json_text(record).encode())
    if as_json:
        print_json({**record, "files": [str(out / name) for name in files]})
        return
    _print(target, fit, population_of(model).standing(fit.coefficients))
    click.echo(f"Look at {out / 'fit.png'}")


def _write(model: ShapeModel, target: RawTarget, fit: Fit, out: Path) -> list[str]:
    in_file = fit.mesh.with_vertices(target.to_file.apply(fit.mesh.vertices))
    for name in _MESHES:
        save_mesh(in_file, out / name)
    rows = np.column_stack([np.arange(model.n_vertices), fit.residuals, fit.deviations])
    lines = ["vertex,residual_mm,sd_mm", *(f"{int(v)},{_cell(r)},{_cell(d)}" for v, r, d in rows)]
    write_file(out / "residuals.csv", ("\n".join(lines) + "\n").encode())
    fit_sheet(target.id, target.shape, fit, out / "fit.png")
    return [*_MESHES, "fit.json", "residuals.csv", "fit.png"]


def _cell(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else ""


def _record(model: ShapeModel, target: RawTarget, fit: Fit) -> dict[str, Any]:
    """The fit as plain values."""
    to_file = target.to_file.after(fit.transform)
    deviations = np.where(model.deviations > 0, model.deviations, 1.0)
    return {
        "id": target.id,
        "coefficients": fit.coefficients.tolist(),
        "scores": (fit.coefficients / deviations).tolist(),
        "transform": to_file.as_dict(),
        "landmarks": _landmarks(model, fit, target),
        "landmarks_set": [name for name in fit.landmarks if name not in fit.landmarks.found],
        "landmarks_found": {name: one.sd for name, one in fit.landmarks.found.items()},
        "landmarks_doubtful": list(fit.landmarks.doubtful),
        **_figures(fit),
        "warnings": sentences([one for one in _findings(target, fit) if one.level == "warning"]),
        "findings": [finding.told("command") for finding in target.findings],
    }


def _findings(target: RawTarget, fit: Fit) -> list[Finding]:
    """What was found of the target and of the fit; what both say, once."""
    told = {one.code for one in fit.warnings}
    return [*(one for one in target.findings if one.code not in told), *fit.warnings]


def _landmarks(model: ShapeModel, fit: Fit, target: RawTarget) -> Mapping[str, list[float]]:
    places = target.to_file.apply(fit.mesh.vertices)
    return {name: places[vertex].tolist() for name, vertex in model.landmark_ids.items()}


def _figures(fit: Fit) -> dict[str, float | str | int | None]:
    seen = np.isfinite(fit.residuals)
    return {
        "start": fit.start,
        "mean_residual_mm": float(np.abs(fit.residuals[seen]).mean()) if seen.sum() else None,
        "noise_mm": fit.noise,
        "misfit_mm": fit.misfit,
        "explained": fit.explained,
        "over_model": fit.over_model,
        "covered": fit.covered,
        "mahalanobis": fit.mahalanobis,
        "unusual": fit.unusual,
        "plausibility": fit.plausibility,
        "size": fit.transform.scale / fit.unit,
    }


def _print(target: RawTarget, fit: Fit, standing: Standing) -> None:
    figures = _figures(fit)
    mean = figures["mean_residual_mm"]
    rows = [
        ("start", str(figures["start"])),
        ("mean distance where seen", f"{mean:.2f} mm" if mean is not None else "nothing seen"),
        ("noise of the points", f"{fit.noise:.2f} mm"),
        ("shape the model cannot follow", f"{fit.misfit:.2f} mm"),
        ("points over the model explained", f"{fit.explained:.0%}"),
        ("model seen in the scan", f"{fit.covered:.0%}"),
        ("distance from the mean", f"{fit.mahalanobis:.1f} sd ({fit.unusual:.2f} of a typical member's)"),
        ("among the model's subjects", standing.finding.said("command").cause),
        ("size against the mean", f"{figures['size']:.3f}"),
    ]
    print_table(f"Fit of {target.id}", ["", ""], rows)
    for sentence in sentences(_findings(target, fit)):
        click.echo(f"Note: {sentence}")
