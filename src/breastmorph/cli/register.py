"""``breastmorph register``: the template in every subject's shape."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.markup import escape

from breastmorph.cli.terminal import (
    json_option,
    landmarks_option,
    print_json,
    print_table,
    progress_with,
    scan_options,
)
from breastmorph.registration.folder import Outcome, register_folder
from breastmorph.registration.parameters import PRESETS, preset
from breastmorph.registration.pipeline import Registrar
from breastmorph.registration.result import Registration
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.folder import find_scans
from breastmorph.scan.scan import Scan
from breastmorph.template.files import default_template, load_template

_STYLE = {"registered": "green", "unchanged": "cyan", "failed": "red"}


@click.command("register")
@click.argument("scans", type=click.Path(path_type=Path))
@landmarks_option
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder for the results.")
@click.option("--template", "template_file", type=click.Path(path_type=Path), help="Your own template mesh.")
@click.option("--template-landmarks", type=click.Path(path_type=Path), help="Landmarks of your own template.")
@click.option(
    "--template-coarse",
    type=click.Path(path_type=Path),
    help="Its coarse twin; derived when not given.",
)
@click.option(
    "--preset", "preset_name", type=click.Choice(list(PRESETS)), default="default", show_default=True,
    help="default is right by truth; paper is the printed method, for comparison.",
)  # fmt: skip
@click.option("--no-mask", is_flag=True, help="Fit the whole torso alike, without breast probability masks.")
@click.option("--quality-sheet", is_flag=True, help="Draw OUT/sheets/<id>.png for every scan.")
@click.option("--force", is_flag=True, help="Register again what is already done.")
@scan_options
@json_option
def command(
    scans: Path,
    landmarks: Path | None,
    out: Path,
    template_file: Path | None,
    template_landmarks: Path | None,
    template_coarse: Path | None,
    preset_name: str,
    no_mask: bool,
    quality_sheet: bool,
    force: bool,
    check: CheckParameters,
    as_json: bool,
) -> None:
    """Bend the template onto SCANS (a file or a folder).

    Writes OUT/registered/<id>.ply (the template's topology in the scan's own frame), OUT/registered/<id>.json
    (metrics, timings, parameters, input hashes) and OUT/summary.csv. A second run does only what is missing or
    changed; a scan that fails does not stop the rest.

    \b
    Example:
      breastmorph register scans/ --landmarks landmarks/ --out registered-cohort/
    """
    if (template_file is None) != (template_landmarks is None):
        raise click.UsageError("--template and --template-landmarks go together.")
    found = find_scans(scans, landmarks)
    if template_file is not None and template_landmarks is not None:
        template = load_template(template_file, template_landmarks, template_coarse)
    else:
        template = default_template()
    registrar = Registrar(template, preset(preset_name, use_masks=not no_mask))

    def sheet(scan_id: str) -> Path:
        return out / "sheets" / f"{scan_id}.png"

    def draw(scan: Scan, result: Registration) -> None:
        from breastmorph.report.quality_sheet import quality_sheet as draw_sheet

        if quality_sheet:
            draw_sheet(scan, result, sheet(scan.id))
        else:
            sheet(scan.id).unlink(missing_ok=True)  # it would show an older result

    with progress_with("Registering", len(found)) as advance:
        outcomes = register_folder(
            found,
            registrar,
            out,
            check=check,
            force=force,
            complete=lambda scan_id: not quality_sheet or sheet(scan_id).exists(),
            on_result=draw,
            on_done=lambda outcome: advance(),
        )
    counts = {status: sum(o.status == status for o in outcomes) for status in _STYLE}
    if as_json:
        results = [
            {"id": o.id, "status": o.status, "message": o.message, **_figures(o), "warnings": o.warnings}
            for o in outcomes
        ]
        print_json({"counts": counts, "scans": results})
    else:
        print_outcomes(outcomes, out)
        click.echo(", ".join(f"{n} {status}" for status, n in counts.items()))
    failed = counts["failed"]
    sys.exit(0 if not failed else 2 if failed == len(outcomes) else 1)


def print_outcomes(outcomes: Sequence[Outcome], out: Path) -> None:
    """Print one row a scan."""
    print_table(
        f"Registered into {out}",
        ["scan", "status", "breast mm", "outside mm", "angle °", "flipped %", "seconds", "remarks"],
        map(_row, outcomes),
    )


def _figures(outcome: Outcome) -> dict[str, float]:
    figures: dict[str, float] = dict(outcome.record.get("metrics", {}))
    figures["seconds"] = sum(outcome.record.get("seconds", {}).values())
    return figures


def _row(outcome: Outcome) -> list[str]:
    style = _STYLE[outcome.status]
    figures = _figures(outcome)
    names = ("distance_inside", "distance_outside", "angle_distortion", "flipped_percent", "seconds")
    return [
        escape(outcome.id),
        f"[{style}]{outcome.status}[/{style}]",
        *(
            f"{figures[name]:.2f}" if figures.get(name) is not None and outcome.record else ""
            for name in names
        ),
        escape(outcome.message or "\n".join(outcome.warnings)),
    ]
