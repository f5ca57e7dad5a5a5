"""``breastmorph fit``: a model fitted to a raw scan or point cloud."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from breastmorph.cli.options import COUNT, FOLDER, PATH, ModelFile, json_option, model_options, scan_options
from breastmorph.cli.printing import print_json, print_table
from breastmorph.cli.provenance import provenance
from breastmorph.cli.wording import COMMAND
from breastmorph.foundation.files import json_text, make_folder, write_file
from breastmorph.foundation.messages import sentences
from breastmorph.mesh.files import save_mesh
from breastmorph.model.fitting import Fit
from breastmorph.model.plausibility import Plausibility, model_population
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.shape_sheets import fit_sheet
from breastmorph.scan.check import CheckParameters
from breastmorph.usecases.fit import FitRequest, FitResult, fit

_MESHES = ("fit.ply", "fit.stl", "fit.obj")


@click.command("fit")
@model_options
@click.argument("scan", type=PATH)
@click.option("--out", type=FOLDER, required=True, help="Folder for the results.")
@click.option(
    "--landmarks",
    type=PATH,
    help="Landmark file. The landmarks that it does not have are found by the program.",
)
@click.option("--components", type=COUNT, help="Use only the first components.")
@scan_options
@json_option
def command(
    model: ModelFile,
    scan: Path,
    out: Path,
    landmarks: Path | None,
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
    opened = model.open()
    result = fit(FitRequest(opened, scan, landmarks, components, check))
    files = _write(result, out)
    record = {**_record(opened, result), "made": provenance()}
    write_file(out / "fit.json", json_text(record).encode())
    if as_json:
        print_json({**record, "files": [str(out / name) for name in files]})
        return
    _print(result, model_population(opened).judge(result.fit.coefficients))
    click.echo(f"Look at {out / 'fit.png'}")


def _write(result: FitResult, out: Path) -> list[str]:
    make_folder(out)
    found, mesh = result.fit, result.mesh_in_file
    for name in _MESHES:
        save_mesh(mesh, out / name)
    rows = enumerate(zip(found.residuals, found.deviations, strict=True))
    lines = ["vertex,residual_mm,sd_mm", *(f"{v},{_cell(r)},{_cell(d)}" for v, (r, d) in rows)]
    write_file(out / "residuals.csv", ("\n".join(lines) + "\n").encode())
    fit_sheet(result.target.id, result.target.shape, found, out / "fit.png")
    return [*_MESHES, "fit.json", "residuals.csv", "fit.png"]


def _cell(value: float) -> str:
    return f"{value:.3f}" if np.isfinite(value) else ""


def _record(model: ShapeModel, result: FitResult) -> dict[str, Any]:
    """The fit as plain values."""
    found, target = result.fit, result.target
    deviations = np.where(model.deviations > 0, model.deviations, 1.0)
    places = result.mesh_in_file.vertices
    return {
        "id": target.id,
        "coefficients": found.coefficients.tolist(),
        "scores": (found.coefficients / deviations).tolist(),
        "transform": target.to_file.after(found.transform).as_dict(),
        "landmarks": {name: places[vertex].tolist() for name, vertex in model.landmark_ids.items()},
        "landmarks_set": [name for name in found.landmarks if name not in found.landmarks.found],
        "landmarks_found": {name: one.sd for name, one in found.landmarks.found.items()},
        "landmarks_doubtful": list(found.landmarks.doubtful),
        **_figures(found),
        "warnings": sentences(
            [finding for finding in result.findings if finding.level == "warning"], COMMAND
        ),
        "findings": [finding.described(COMMAND) for finding in target.findings],
    }


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


def _print(result: FitResult, plausibility: Plausibility) -> None:
    found = result.fit
    figures = _figures(found)
    mean = figures["mean_residual_mm"]
    rows = [
        ("start", str(figures["start"])),
        ("mean distance where seen", f"{mean:.2f} mm" if mean is not None else "nothing seen"),
        ("noise of the points", f"{found.noise:.2f} mm"),
        ("shape the model cannot follow", f"{found.misfit:.2f} mm"),
        ("points over the model explained", f"{found.explained:.0%}"),
        ("model seen in the scan", f"{found.covered:.0%}"),
        ("distance from the mean", f"{found.mahalanobis:.1f} sd ({found.unusual:.2f} of a typical member's)"),
        ("among the model's subjects", plausibility.finding.cause.text(COMMAND)),
        ("size against the mean", f"{figures['size']:.3f}"),
    ]
    print_table(f"Fit of {result.target.id}", ["", ""], rows)
    for sentence in sentences(result.findings, COMMAND):
        click.echo(f"Note: {sentence}")
