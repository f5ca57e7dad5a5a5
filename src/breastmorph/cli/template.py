"""``breastmorph template``: make a symmetric template from one scan."""

from __future__ import annotations

from pathlib import Path

import click

from breastmorph.cli.options import FOLDER, PATH, json_option, scan_options
from breastmorph.cli.printing import print_json, print_table
from breastmorph.cli.provenance import provenance
from breastmorph.cli.wording import COMMAND
from breastmorph.foundation.messages import Message, sentences
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.scan import SIDES
from breastmorph.template import save_template
from breastmorph.template.making import TemplateParameters, quality
from breastmorph.usecases.template import TemplateRequest, template_of_scan

_LABELS = {
    "vertices": "vertices",
    "mean_edge_mm": "mean edge, mm",
    "smallest_angle_deg": "smallest angle, degrees",
    "angles_above_20_deg_percent": "triangles with all angles above 20 degrees, %",
    "flipped_triangles": "flipped triangles",
    "components": "connected pieces",
    "symmetry_error_mm": "largest error of symmetry, mm",
    "coarse_vertices": "vertices of the coarse twin",
    "coarse_mean_edge_mm": "mean edge of the coarse twin, mm",
    "coarse_border_distance_mm": "largest distance between the two borders, mm",
    "scan_asymmetry_mm": "median distance of the scan to its mirror image, mm",
    "filled_percent": "share of the surface filled over holes, %",
}


@click.command("template")
@click.argument("scan", type=PATH)
@click.option(
    "--landmarks", type=PATH, help="The scan's landmark file. What it does not have the program finds."
)
@click.option("--out", type=FOLDER, required=True, help="Folder for the template's files.")
@click.option(
    "--edge",
    type=click.FloatRange(0.5, 20.0),
    default=TemplateParameters.edge,
    help="Mean edge length in mm.",
)
@click.option(
    "--coarse",
    type=click.IntRange(100, 20_000),
    default=TemplateParameters.coarse_vertices,
    help="Vertices of the coarse twin.",
)
@click.option(
    "--side",
    type=click.Choice(SIDES),
    default=TemplateParameters.side,
    help="The patient's side that is mirrored.",
)
@scan_options
@json_option
def command(
    scan: Path,
    landmarks: Path | None,
    out: Path,
    edge: float,
    coarse: int,
    side: str,
    check: CheckParameters,
    as_json: bool,
) -> None:
    """Make a symmetric template and its coarse twin from SCAN.

    One half of the scan is mirrored along its plane of symmetry, smoothed and meshed evenly; the landmarks
    become vertices. Writes template.ply, template_coarse.ply, their landmarks and their left/right vertex
    permutations.

    Landmarks that you do not give are found by the program. A template's are every scan's: look at them.

    \b
    Examples:
      breastmorph template scans/torso7.ply --out template/
      breastmorph template scans/torso7.ply --landmarks landmarks/torso7.json --out template/
    """
    parameters = TemplateParameters(edge=edge, coarse_vertices=coarse, side=side)
    found = template_of_scan(TemplateRequest(scan, landmarks, parameters, check))
    written = save_template(found.made.template, out)
    figures, value = quality(found.made), found.scan
    if as_json:
        paths = [str(path) for path in written]
        marks = {name: mark.sd for name, mark in value.landmarks.found.items()}
        record = {"scan": value.id, "side": side, "landmarks_found": marks, **figures}
        print_json(
            {**record, "warnings": sentences(value.warnings, COMMAND), "files": paths, "made": provenance()}
        )
        return
    print_table("Template", ["figure", "value"], [[_LABELS[key], _shown(figures[key])] for key in _LABELS])
    if value.landmarks.found:
        note = Message("found by the program: {names:landmark}", {"names": list(value.landmarks.found)})
        click.echo(f"Note: {note}")
    for sentence in sentences(value.warnings, COMMAND):
        click.echo(f"Note: {sentence}")
    click.echo(f"Written to {out}: {', '.join(path.name for path in written)}")


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if abs(value) < 1e-3 else f"{value:.2f}"
