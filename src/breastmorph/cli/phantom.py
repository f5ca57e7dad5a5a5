"""``breastmorph phantom``: a synthetic cohort with known truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from breastmorph.cli.options import COUNT, FOLDER, jobs_option, json_option, seed_option
from breastmorph.cli.printing import print_json, print_table, progress_with
from breastmorph.foundation.machine import cores
from breastmorph.scan.scan import SIDES


@click.command("phantom")
@click.option("--n", type=COUNT, default=110, help="Number of subjects.")
@seed_option("cohort")
@click.option("--out", type=FOLDER, required=True, help="Folder for the cohort.")
@jobs_option
@click.option(
    "--one-sided",
    type=click.IntRange(min=0),
    default=0,
    help="How many subjects are flat on one side, as after a mastectomy.",
)
@click.option(
    "--colour",
    is_flag=True,
    help="Vertex colours: skin of every tone, areola, mottling, moles, scars, strap marks.",
)
@click.option(
    "--large", is_flag=True, help="Extremes: breasts of 1,000 cc and more, many touching each other."
)
@click.option(
    "--visits",
    type=click.IntRange(min=1),
    default=1,
    help="How often each person is scanned, in another posture and breath each time.",
)
@click.option(
    "--changed",
    type=click.FloatRange(0.0, 1.0),
    default=0.5,
    help="Share of the people one of whose breasts really changes between visits.",
)
@json_option
def command(
    n: int,
    seed: int,
    out: Path,
    jobs: int | None,
    one_sided: int,
    colour: bool,
    large: bool,
    visits: int,
    changed: float,
    as_json: bool,
) -> None:
    """Make a synthetic cohort of adult torso scans with known truth.

    Writes scans/, landmarks/, cohort.csv and truth/ (true positions of every point of one fixed topology,
    what the scanner saw, true volumes). Age, body mass index, volumes, ptosis and operations are distributed
    as in the clinical cohort of the paper.

    \b
    Examples:
      breastmorph phantom --n 12 --seed 1 --out cohort/
      breastmorph phantom --n 12 --visits 2 --out twice/
    """
    # Loaded here, so that --help and mistakes in the options answer at once.
    from breastmorph.phantom import VisitParameters, write_cohort
    from breastmorph.phantom.cohort import LARGE

    if one_sided > n:
        raise click.BadParameter(
            f"{one_sided} of {n} subjects cannot be one-sided.", param_hint="--one-sided"
        )
    with progress_with("Scanning", n * visits) as advance:
        rows = write_cohort(
            out,
            n,
            seed,
            jobs or cores(),
            one_sided,
            on_done=lambda done: advance(),
            colour=colour,
            visits=visits,
            changes=VisitParameters(changed=changed),
            parameters=LARGE if large else None,
        )
    summary = _summary([row for row in rows if row.get("visit", "1") == "1"])
    if as_json:
        print_json({"out": str(out), "seed": seed, "summary": summary, "subjects": rows})
    else:
        print_table(
            f"{n} subjects in {escape(str(out))}",
            ("", "mean", "sd", "range"),
            [
                (name, f"{s['mean']:.1f}", f"{s['sd']:.1f}", f"{s['min']:.1f} - {s['max']:.1f}")
                for name, s in summary["quantities"].items()
            ],
        )
        click.echo(", ".join(f"{count} {name}" for name, count in summary["counts"].items()))


def _summary(rows: list[dict[str, str]]) -> dict[str, Any]:
    """The cohort's marginals, as the paper's Table 1 gives them."""
    import numpy as np

    both = [(row["volume_left"], row["volume_right"]) for row in rows]
    columns = {
        "age, years": [row["age"] for row in rows],
        "BMI": [row["bmi"] for row in rows],
        "volume left, cc": [left for left, _ in both if left],
        "volume right, cc": [right for _, right in both if right],
        "difference, cc": [abs(float(left) - float(right)) for left, right in both if left and right],
    }
    quantities = {}
    for name, column in columns.items():
        values = np.array(column, dtype=float)
        if values.size:
            quantities[name] = {
                "mean": round(float(values.mean()), 3),
                "sd": round(float(values.std(ddof=min(1, values.size - 1))), 3),
                "min": round(float(values.min()), 3),
                "max": round(float(values.max()), 3),
            }
    counts = {
        "with ptosis": sum(any(row[f"ptosis_{side}"] not in ("", "0") for side in SIDES) for row in rows),
        "operated": sum(row["operated"] == "yes" for row in rows),
        "one-sided": sum(bool(row["absent"]) for row in rows),
    }
    return {"quantities": quantities, "counts": counts}
