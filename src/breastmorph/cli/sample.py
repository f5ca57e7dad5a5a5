"""``breastmorph sample``: random shapes of a model, and its modes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
from rich.markup import escape

from breastmorph.cli.options import COUNT, FOLDER, json_option, model_argument, seed_option
from breastmorph.cli.printing import print_json, print_table, progress
from breastmorph.cli.provenance import provenance
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.files import make_folder
from breastmorph.mesh.files import save_mesh
from breastmorph.model.files import load_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.usecases.sample import SampleRequest, sample

_ON_SHEET = 24
_CELL = (240, 260)  # pixels


@click.command("sample")
@model_argument
@click.option("--out", type=FOLDER, required=True, help="Folder for the meshes.")
@click.option(
    "-n", "number", type=click.IntRange(min=0), help="Random shapes; 10 unless only modes are asked for."
)
@seed_option("shapes")
@click.option("--modes", type=COUNT, help="Also the first modes, at minus and plus --sd.")
@click.option(
    "--sd",
    type=click.FloatRange(min=0.0, min_open=True),
    default=3.0,
    help="How far modes go, in standard deviations.",
)
@click.option("--components", type=COUNT, help="Use only the first components: smoother shapes.")
@click.option("--format", "kind", type=click.Choice(["ply", "stl", "obj"]), default="ply")
@json_option
def command(
    model_file: Path,
    out: Path,
    number: int | None,
    seed: int,
    modes: int | None,
    sd: float,
    components: int | None,
    kind: str,
    as_json: bool,
) -> None:
    """Draw random shapes from MODEL, or show its modes, as meshes with a contact sheet.

    \b
    Examples:
      breastmorph sample model.h5 -n 10 --seed 1 --out samples/
      breastmorph sample model.h5 --modes 8 --sd 3 --out modes/
    """
    request = SampleRequest(load_model(model_file), number, seed, modes or 0, sd, components)
    shapes = sample(request)
    model, wanted = shapes.model, shapes.coefficients
    make_folder(out)
    drawn: dict[str, Floats] = {}
    for name in progress(list(wanted), "Writing"):
        shape = model.instance(wanted[name])
        save_mesh(model.mesh(shape), out / f"{name}.{kind}")
        if len(drawn) < max(_ON_SHEET, 2 * (modes or 0) + 1):
            drawn[name] = shape
    sheet = out / "contact-sheet.png"
    if drawn:
        _draw(model, drawn, sheet)
    files = {name: out / f"{name}.{kind}" for name in wanted}
    distances = {name: model.mahalanobis(coefficients) for name, coefficients in wanted.items()}
    if as_json:
        listed = [{"file": str(files[name]), "mahalanobis": distances[name]} for name in wanted]
        print_json({"shapes": listed, "sheet": str(sheet) if drawn else None, "made": provenance()})
        return
    print_table(
        f"Shapes of {escape(model_file.name)} ({model.n_components} components)",
        ["file", "from the mean, sd"],
        [(files[name].name, f"{distances[name]:.1f}") for name in wanted],
    )
    if drawn:
        click.echo(f"Look at {sheet}")


def _draw(model: ShapeModel, shapes: Mapping[str, Floats], path: Path) -> None:
    """A contact sheet of shapes at one scale, obliquely from the front."""
    from breastmorph.report.render import View, box_around, render, save_picture_grid

    box = box_around(list(shapes.values()))
    cells = [
        render(model.mesh(shape), View(yaw=20.0), size=_CELL, box=box)
        for shape in progress(list(shapes.values()), "Drawing")
    ]
    save_picture_grid(cells, [name.replace("_", " ") for name in shapes], path, columns=min(len(cells), 6))
