"""``breastmorph build``: a shape model from registered scans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.markup import escape

from breastmorph.cli.options import COUNT, FOLDER, PATH, json_option, table_option
from breastmorph.cli.printing import print_json, print_table, progress_with, warn
from breastmorph.cli.provenance import provenance
from breastmorph.cli.wording import COMMAND
from breastmorph.foundation.messages import sentences
from breastmorph.foundation.phrases import short_list
from breastmorph.foundation.text import name_of
from breastmorph.model.building import BuildParameters
from breastmorph.model.files import save_model
from breastmorph.model.procrustes import ProcrustesParameters
from breastmorph.scan.scan import SIDES
from breastmorph.usecases.build import BuildRequest, BuiltModel, Reason, Subjects, build

_NAMED = 12  # subjects named in a message; the rest is counted


@click.command("build")
@click.argument("folder", type=FOLDER)
@click.option("-o", "--out", type=PATH, required=True, help="Model file: .h5, .npz or .glb.")
@click.option("--components", type=COUNT, help="At most so many components; default all.")
@click.option(
    "--variance", type=float, help="As many components as hold this share of the variance, as 0.98."
)
@click.option("--rigid", is_flag=True, help="Keep size inside the model instead of removing it.")
@click.option("--symmetric", is_flag=True, help="Every subject with its mirror image: a symmetric model.")
@click.option("--asymmetry", is_flag=True, help="A model of the difference from symmetric.")
@click.option("--part", type=click.Choice(SIDES), help="A model of one breast only.")
@click.option("--where", help='Only these subjects, as "bmi > 25 and not operated"; needs --table.')
@table_option
@click.option("--exclude", help="Leave these subjects out: ids, separated by commas.")
@click.option("--with-absent", is_flag=True, help="Also take subjects with an absent breast.")
@click.option(
    "--keep-scores", is_flag=True, help="Keep the subjects' coefficients in the file; they describe people."
)
@json_option
def command(
    folder: Path,
    out: Path,
    rigid: bool,
    where: str | None,
    table: Path | None,
    exclude: str | None,
    with_absent: bool,
    as_json: bool,
    **kind: Any,  # the fields of BuildParameters by their names
) -> None:
    """Build a shape model from FOLDER, the --out of `breastmorph register`.

    Subjects are brought into one frame (Procrustes alignment); the model is the mean shape and the main ways in
    which the subjects differ from it. Subjects with an absent breast are left out unless asked for.

    \b
    Examples:
      breastmorph build cohort/ -o model.h5
      breastmorph build cohort/ -o heavy.h5 --table cohort.csv --where "bmi > 25 and not operated"
    """
    if kind["components"] is not None and kind["variance"] is not None:
        raise click.UsageError("Give either --components or --variance.")
    if kind["symmetric"] and kind["asymmetry"]:
        raise click.UsageError("Give either --symmetric or --asymmetry.")
    procrustes = ProcrustesParameters(with_scale=not rigid)
    parameters = BuildParameters(**kind, with_absent=with_absent, procrustes=procrustes)
    subjects = Subjects(folder, table, where, excluded_ids(exclude), reasons_named(where))
    built = build(BuildRequest(subjects, parameters), partial(progress_with, "Reading"))
    save_model(built.model, out)
    record = {
        **_record(built, out),
        "warnings": sentences(built.review.warnings(), COMMAND),
        "made": provenance(),
    }
    if as_json:
        print_json(record)
    else:
        _print(record)
    warn(record["warnings"])


def _record(built: BuiltModel, out: Path) -> dict[str, Any]:
    model = built.model
    return {
        "model": str(out),
        "left_out": dict(built.left_out),
        "flags": dict(built.flags),
        "vertices": model.n_vertices,
        "components": model.n_components,
        "variances": model.variances.tolist(),
        "noise_variance": model.noise_variance,
        "landmarks": dict(model.landmark_ids),
        "keeps_scores": model.training is not None,
        **{key: model.info[key] for key in ("subjects", "alignment", "removed", "total_variance")},
    }


def _print(record: Mapping[str, Any]) -> None:
    removed, count = record["removed"], record["components"]
    share = 100.0 * np.cumsum(record["variances"]) / record["total_variance"]
    shown = [*(n for n in (1, 5, 10, 20, 50) if n < count), count]
    rows = [("subjects", str(record["subjects"]))]
    rows += [(f"left out, {escape(why)}", escape(listed(ids))) for why, ids in record["left_out"].items()]
    rows += [
        ("vertices", f"{record['vertices']:,}"),
        ("components", str(count)),
        ("variance held", ", ".join(f"{share[n - 1]:.1f} % by {n}" for n in shown)),
        ("alignment", f"{record['alignment']}, {removed['iterations']} iterations"),
    ]
    if record["alignment"] == "similarity":
        sizes = f"{100 * removed['scale_min']:.0f} to {100 * removed['scale_max']:.0f} % of the mean size"
        rows.append(("removed sizes", f"{sizes} (sd {100 * removed['scale_sd']:.1f} %)"))
    spread = (record["total_variance"] / record["vertices"]) ** 0.5
    rows += [
        ("removed rotations", f"sd {removed['rotation_sd']:.1f}°, largest {removed['rotation_max']:.1f}°"),
        (
            "removed places",
            f"sd {removed['translation_sd']:.1f} mm, largest {removed['translation_max']:.1f} mm",
        ),
        ("spread of a vertex", f"{spread:.1f} mm"),
        ("scores of subjects", "kept in the file" if record["keeps_scores"] else "not kept"),
    ]
    print_table(f"Model {escape(record['model'])}", ["", ""], rows)
    flags = [f"{name} ({flag})" for name, flag in record["flags"].items()]
    if flags:
        warn([f"the registration flagged subjects of this model, {listed(flags)}"])


def excluded_ids(exclude: str | None) -> tuple[str, ...]:
    """The ids of ``--exclude``."""
    return tuple(name_of(name.strip()) for name in (exclude or "").split(",") if name.strip())


def reasons_named(where: str | None) -> dict[Reason, str]:
    """What leaves subjects out, by the options that ask for it."""
    return {"excluded": "by --exclude", "not chosen": f'by --where "{where}"'}


def listed(names: Sequence[str]) -> str:
    """How many, and the first of them."""
    return f"{len(names)}: {short_list(names, _NAMED)}"
