"""``breastmorph landmarks``: the landmarks of raw scans, found by shape and colour."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from breastmorph.cli.options import (
    FOLDER,
    PATH,
    jobs_option,
    json_option,
    print_json,
    print_table,
    progress_with,
    provenance,
    scan_options,
    warn,
)
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import make_folder
from breastmorph.foundation.machine import cores
from breastmorph.foundation.workers import Failure, Limits, run_each
from breastmorph.scan.check import CheckParameters, ScanFiles, find_scans, landmarks_in, passed_over

_SECONDS = 300.0  # of one scan


@click.command("landmarks")
@click.argument("scans", type=PATH)
@click.option("--out", type=FOLDER, required=True, help="Folder for the landmark files and the pictures.")
@click.option("--no-sheets", is_flag=True, help="Write the landmark files alone, without pictures.")
@jobs_option
@scan_options
@json_option
def command(
    scans: Path, out: Path, no_sheets: bool, jobs: int | None, check: CheckParameters, as_json: bool
) -> None:
    """Find the landmarks of SCANS (a file or a folder), in any pose and unit, by shape and colour.

    Written are OUT/<id>.json, the landmarks in the scan's own coordinates with how sure each one is, and
    OUT/sheets/<id>.png, the scan with its landmarks. Doubtful ones are named: look at those. A side without a
    breast is recognised and left out; what is no adult torso is refused. Landmark files beside the scans are
    not read, and files of another origin in OUT are not replaced.

    \b
    Examples:
      breastmorph landmarks scans/ --out landmarks/
      breastmorph register scans/ --landmarks landmarks/ --out registered-cohort/
    """
    found = find_scans(scans)
    warn(filter(None, [passed_over(scans)]))
    make_folder(out)
    if not no_sheets:
        make_folder(out / "sheets")
    work = partial(_worker, check, out, not no_sheets)
    records: dict[str, dict[str, Any]] = {}
    jobs = min(jobs or cores(), len(found))
    with progress_with("Looking", len(found)) as advance:
        if jobs == 1:
            one = work()
            for files in found:
                records[files.id] = _tried(one, files)
                advance()
        else:
            for files, record in run_each(work, found, jobs, Limits(_SECONDS)):
                records[files.id] = _failed(files.id, record) if isinstance(record, Failure) else record
                advance()
    rows = [records[files.id] for files in found]
    refused = sum(row["verdict"] == "refused" for row in rows)
    doubtful = sum(bool(row.get("doubtful")) for row in rows)
    if as_json:
        print_json({"scans": rows, "refused": refused, "doubtful": doubtful, "made": provenance()})
    else:
        print_table("Landmarks", ["scan", "found", "absent", "remarks"], map(_row, rows))
        click.echo(
            f"{len(rows) - refused} found, {doubtful} of them with doubtful landmarks, {refused} refused"
        )
        if not no_sheets and refused < len(rows):
            click.echo(f"Look at {out / 'sheets'}")
    sys.exit(1 if refused else 0)


def _worker(check: CheckParameters, out: Path, sheets: bool) -> Callable[[ScanFiles], dict[str, Any]]:
    """What a process does with each scan; a refusal is a record too, so that the rest goes on."""
    return partial(_found, check, out, sheets)


def _tried(work: Callable[[ScanFiles], dict[str, Any]], files: ScanFiles) -> dict[str, Any]:
    try:
        return work(files)
    except Exception as error:  # one scan is not worth the batch
        return _failed(files.id, Failure(f"{type(error).__name__}: {error}", "error", error))


def _found(check: CheckParameters, out: Path, sheets: bool, files: ScanFiles) -> dict[str, Any]:
    # Loaded here, so that --help answers at once.
    from breastmorph.mesh.geometry import Similarity
    from breastmorph.report.shape_sheets import landmark_sheet
    from breastmorph.scan.anatomy import UNITS
    from breastmorph.scan.landmark_files import save_landmarks

    try:
        mesh, found = landmarks_in(files.mesh, check)
    except BreastMorphError as error:
        return _failed(files.id, Failure(error.text("command"), "error", error))
    save_landmarks(found.landmarks, out / f"{files.id}.json")
    warnings, left_out = (
        [one.said("command").cause for one in some] for some in (found.warnings, found.left_out.values())
    )
    if sheets:
        upright = Similarity(found.axes, scale=UNITS[found.unit])
        shown = mesh.with_vertices(upright.apply(mesh.vertices))
        sheet = out / "sheets" / f"{files.id}.png"
        landmark_sheet(
            files.id, shown, found.landmarks.transformed(upright), sheet, "; ".join([*warnings, *left_out])
        )
    return {
        "id": files.id,
        "verdict": "found",
        "landmarks": list(found.landmarks),
        "unit": found.unit,
        "absent": found.absent,
        "uncertainty": {name: round(sd, 2) for name, sd in found.uncertainty.items()},
        "doubtful": list(found.doubtful),
        "left_out": left_out,
        "warnings": warnings,
    }


def _failed(scan_id: str, failure: Failure) -> dict[str, Any]:
    error = failure.error
    told = error.text("command") if isinstance(error, BreastMorphError) else failure.reason
    return {"id": scan_id, "verdict": "refused", "reason": told}


def _row(record: dict[str, Any]) -> list[str]:
    if record["verdict"] == "refused":
        return [escape(record["id"]), "[red]refused[/red]", "", escape(record["reason"])]
    remarks = [f"doubtful: {', '.join(record['doubtful'])}"] if record["doubtful"] else []
    many = str(len(record["landmarks"]))
    return [
        escape(record["id"]),
        many,
        record["absent"],
        escape("\n".join([*remarks, *record["left_out"], *record["warnings"]])),
    ]
