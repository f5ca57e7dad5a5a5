"""``breastmorph build``: a shape model from registered scans."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.markup import escape

from breastmorph.cli.options import (
    COUNT,
    FOLDER,
    PATH,
    json_option,
    print_json,
    print_table,
    progress_with,
    provenance,
    table_option,
    warn,
)
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.cohort.cohort import doubts
from breastmorph.foundation.arrays import Bools
from breastmorph.foundation.errors import BreastMorphError, name_of, sentences
from breastmorph.foundation.files import without_quote
from breastmorph.foundation.phrases import short_list
from breastmorph.model.building import BuildParameters, build_model, chosen_rows
from breastmorph.model.files import save_model
from breastmorph.model.procrustes import ProcrustesParameters
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES


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
    cohort = read_cohort(folder, table)
    chosen, left_out = chosen_subjects(cohort, where, table, exclude, with_absent)
    procrustes = ProcrustesParameters(with_scale=not rigid)
    parameters = BuildParameters(**kind, with_absent=with_absent, procrustes=procrustes)
    notes: dict[str, Any] = {"left_out": {reason: len(ids) for reason, ids in left_out.items()}}
    if where:
        notes["where"] = where
    doubt = doubts(chosen)
    if doubt.n_copies:
        notes["copies"] = doubt.n_copies
    model = build_model(chosen, parameters, notes)
    save_model(model, out)
    flags = _flags(folder / "summary.csv", chosen.ids)
    record = {
        **_record(model, out, left_out, flags),
        "warnings": sentences(doubt.warnings()),
        "made": provenance(),
    }
    if as_json:
        print_json(record)
    else:
        _print(record)
    warn(record["warnings"])


def _flags(summary: Path, ids: Sequence[str]) -> dict[str, str]:
    """What the registration flagged about the subjects used."""
    try:
        with open(summary, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error):
        return {}
    flags = {name_of(without_quote(row.get("id") or "")): (row.get("flags") or "").strip() for row in rows}
    return {name: flag for name, flag in flags.items() if name in ids and flag}


def _record(
    model: ShapeModel, out: Path, left_out: Mapping[str, Sequence[str]], flags: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "model": str(out),
        "left_out": dict(left_out),
        "flags": dict(flags),
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


# --------------------------------------------------------------------------------------------------------------------
# Which subjects of a cohort a command takes
# --------------------------------------------------------------------------------------------------------------------

_ABSENT = "absent breast"
_NAMED = 12  # subjects named in a message; the rest is counted


def read_cohort(folder: Path, table: Path | None) -> Cohort:
    """The registered subjects of a folder, with a progress bar where they have to be read one by one."""
    with progress_with("Reading", sum(1 for _ in (folder / "registered").glob("*.json"))) as advance:
        return load_cohort(folder, table, on_packed=lambda done, total: advance())


def chosen_subjects(
    cohort: Cohort, where: str | None, table: Path | None, exclude: str | None, with_absent: bool
) -> tuple[Cohort, dict[str, list[str]]]:
    """The subjects that ``--where``, ``--exclude`` and ``--with-absent`` leave, and those left out by reason."""
    keep: Bools = np.ones(len(cohort), bool)
    left_out: dict[str, list[str]] = {}

    def leave(out: Bools, reason: str) -> None:
        new = keep & out
        if new.any():
            left_out[reason] = [cohort.ids[i] for i in np.flatnonzero(new)]
        keep[new] = False

    if exclude:
        names = [name_of(name.strip()) for name in exclude.split(",") if name.strip()]
        unknown = [name for name in names if name not in cohort.ids]
        if unknown:
            raise BreastMorphError(
                f"--exclude names {', '.join(unknown)}, which the folder does not have",
                f"Its subjects are {listed(cohort.ids)}",
            )
        leave(np.isin(cohort.ids, names), "by --exclude")
    if where is not None:
        leave(np.array([not row for row in cohort.table]) & (table is not None), "not in the table")
        leave(~chosen_rows(cohort.table, where), f'by --where "{where}"')
    if not with_absent:
        leave(np.array([bool(side) for side in cohort.absent]), _ABSENT)
    if not keep.any():
        reasons = "; ".join(f"{len(ids)} {reason}" for reason, ids in left_out.items())
        remedy = "Add --with-absent" if _ABSENT in left_out else "Choose more subjects"
        raise BreastMorphError(f"no subject is left ({reasons})", remedy)
    return cohort.chosen(keep), left_out


def listed(names: Sequence[str]) -> str:
    """How many, and the first of them."""
    return f"{len(names)}: {short_list(names, _NAMED)}"
