"""``breastmorph convert``: model files into other formats."""

from __future__ import annotations

from pathlib import Path

import click

from breastmorph.cli.options import COUNT, PATH, json_option, landmark_ids_option, opened_model
from breastmorph.cli.printing import print_json
from breastmorph.cli.provenance import provenance
from breastmorph.usecases.convert import ConvertRequest, convert


@click.command("convert")
@click.argument("source", metavar="IN", type=PATH)
@click.argument("out", metavar="OUT", type=PATH)
@landmark_ids_option
@click.option("--components", type=COUNT, help="Keep only the first components.")
@click.option("--drop-scores", is_flag=True, help="Leave out everything about single subjects.")
@click.option("--modes", type=COUNT, help="Modes in a .glb (20) or in a folder of PLY files (8).")
@click.option(
    "--sd",
    type=click.FloatRange(min=0.0, min_open=True),
    help="How far modes go: 1 in a .glb, 3 in a folder.",
)
@json_option
def command(
    source: Path,
    out: Path,
    landmark_ids: Path | None,
    components: int | None,
    drop_scores: bool,
    modes: int | None,
    sd: float | None,
    as_json: bool,
) -> None:
    """Turn the model IN into OUT.

    OUT ends in .h5 (statismo, Scalismo), .npz (Python) or .glb (Blender, web: the mean with modes as morph targets,
    in metres); a name without ending is a folder for PLY sequences of the modes.

    \b
    Examples:
      breastmorph convert rbsm-0122.h5 completed.h5 --landmark-ids ids.json
      breastmorph convert model.h5 model.glb
      breastmorph convert model.h5 modes/
    """
    model = opened_model(source, landmark_ids)
    request = ConvertRequest(model, out, components, drop_scores, modes, sd)
    if request.kind == "model" and (modes is not None or sd is not None):
        raise click.UsageError(
            "--modes and --sd are for .glb files and folders; a model file has --components."
        )
    made = provenance()  # before OUT is written: it may be IN
    converted = convert(request)
    model = converted.model
    if as_json:
        print_json(
            {
                "written": [str(path) for path in converted.written],
                "vertices": model.n_vertices,
                "components": model.n_components,
                "landmarks": dict(model.landmark_ids),
                "made": made,
            }
        )
        return
    click.echo(
        f"{out}: {model.n_vertices:,} vertices, {model.n_components} components, "
        f"landmarks {', '.join(model.landmark_ids) or 'none'}"
    )
