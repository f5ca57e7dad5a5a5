"""``breastmorph landmarks``: the landmarks of raw scans, found by shape and colour."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from breastmorph.cli.options import FOLDER, PATH, jobs_option, json_option, scan_options
from breastmorph.cli.printing import print_json, print_table, progress_with, warn
from breastmorph.cli.provenance import provenance
from breastmorph.cli.wording import COMMAND
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import make_folder
from breastmorph.foundation.messages import Finding
from breastmorph.foundation.workers import Failure
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.check import CheckParameters, ScanFiles
from breastmorph.scan.finder import FoundLandmarks
from breastmorph.usecases.landmarks import LandmarksOfScan, LandmarksRequest, find_landmarks


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
    make_folder(out)
    if not no_sheets:
        make_folder(out / "sheets")
    request = LandmarksRequest(scans, check, jobs)
    found = find_landmarks(request, partial(_keep, out, not no_sheets), partial(progress_with, "Looking"))
    warn(filter(None, [found.passed_over]))
    rows = [_record(scan) for scan in found.scans]
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


def _keep(out: Path, sheets: bool, files: ScanFiles, mesh: TriangleMesh, found: FoundLandmarks) -> None:
    """Write the landmarks of one scan, and draw them."""
    # Loaded here, so that --help answers at once.
    from breastmorph.mesh.geometry import Similarity
    from breastmorph.report.shape_sheets import landmark_sheet
    from breastmorph.scan.anatomy import UNITS
    from breastmorph.scan.landmark_files import save_landmarks

    save_landmarks(found.landmarks, out / f"{files.id}.json")
    if sheets:
        upright = Similarity(found.axes, scale=UNITS[found.unit])
        shown = mesh.with_vertices(upright.apply(mesh.vertices))
        sheet = out / "sheets" / f"{files.id}.png"
        remarks = "; ".join([*_causes(found.warnings), *_causes(found.left_out.values())])
        landmark_sheet(files.id, shown, found.landmarks.transformed(upright), sheet, remarks)


def _causes(findings: Iterable[Finding]) -> list[str]:
    return [finding.cause.text(COMMAND) for finding in findings]


def _record(scan: LandmarksOfScan) -> dict[str, Any]:
    found = scan.outcome
    if isinstance(found, Failure):
        error = found.error
        reason = error.text(COMMAND) if isinstance(error, BreastMorphError) else found.reason
        return {"id": scan.id, "verdict": "refused", "reason": reason}
    if isinstance(found, BreastMorphError):
        return {"id": scan.id, "verdict": "refused", "reason": found.text(COMMAND)}
    return {
        "id": scan.id,
        "verdict": "found",
        "landmarks": list(found.landmarks),
        "unit": found.unit,
        "absent": found.absent,
        "uncertainty": {name: round(sd, 2) for name, sd in found.uncertainty.items()},
        "doubtful": list(found.doubtful),
        "left_out": _causes(found.left_out.values()),
        "warnings": _causes(found.warnings),
    }


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
