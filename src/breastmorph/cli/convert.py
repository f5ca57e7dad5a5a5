"""``breastmorph convert``: model files into other formats."""

from __future__ import annotations

from pathlib import Path

import click

from breastmorph.cli.terminal import json_option, print_json
from breastmorph.model.files import load_landmark_ids, load_model, save_model


@click.command("convert")
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option(
    "--landmark-ids",
    type=click.Path(path_type=Path),
    help='JSON file that completes landmarks: {"xiphoid": 15120}.',
)
@click.option("--components", type=click.IntRange(min=1), help="Keep only the first components.")
@click.option("--drop-scores", is_flag=True, help="Leave out everything about single subjects.")
@click.option(
    "--modes", type=click.IntRange(min=1), help="Modes in a .glb (20) or in a folder of PLY files (8)."
)
@click.option(
    "--sd",
    type=click.FloatRange(min=0.0, min_open=True),
    help="How far modes go: 1 in a .glb, 3 in a folder.",
)
@json_option
def command(
    source: Path,
    target: Path,
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
    model = load_model(source, load_landmark_ids(landmark_ids) if landmark_ids else None)
    if components is not None and components < model.n_components:
        model = model.truncate(components)
    if drop_scores:
        model = model.without_training()
    written = [target]
    if target.suffix.lower() == ".glb":
        from breastmorph.model.files.morph_targets import write_morph_targets

        write_morph_targets(model, target, modes or 20, sd or 1.0)
    elif target.is_dir() or not target.suffix:
        from breastmorph.model.files.mode_sequence import write_mode_sequence

        written = write_mode_sequence(model, target, modes or 8, sd or 3.0)
    else:
        save_model(model, target)
    if as_json:
        print_json(
            {
                "written": [str(path) for path in written],
                "vertices": model.n_vertices,
                "components": model.n_components,
                "landmarks": dict(model.landmark_ids),
            }
        )
        return
    click.echo(
        f"{target}: {model.n_vertices:,} vertices, {model.n_components} components, "
        f"landmarks {', '.join(model.landmark_ids) or 'none'}"
    )
