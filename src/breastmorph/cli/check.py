"""``breastmorph check``: judge scans before any computing starts."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from breastmorph.cli.options import PATH, json_option, landmarks_option, scan_options
from breastmorph.cli.printing import print_json, print_table, progress_with, warn
from breastmorph.cli.provenance import provenance
from breastmorph.cli.wording import COMMAND
from breastmorph.foundation.text import shown
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.scan import Check
from breastmorph.usecases.check import CheckRequest, check_files

_STYLE = {"usable": "green", "repaired": "yellow", "refused": "red"}


@click.command("check")
@click.argument("scans", type=PATH)
@landmarks_option
@scan_options
@json_option
def command(scans: Path, landmarks: Path | None, check: CheckParameters, as_json: bool) -> None:
    """Judge SCANS (a file or a folder): usable, repaired or refused, and why.

    Scans and landmark files are matched by name: torso7.ply and torso7.json. What can be mended safely is
    mended in memory; files are never changed.

    \b
    Example:
      breastmorph check scans/ --landmarks landmarks/
    """
    found = check_files(CheckRequest(scans, landmarks, check), partial(progress_with, "Checking"))
    warn(filter(None, [found.passed_over]))
    checks = found.checks
    counts = {verdict: sum(c.verdict == verdict for c in checks) for verdict in _STYLE}
    warned = sum(bool(c.scan and c.scan.warnings) for c in checks)
    if as_json:
        print_json(
            {
                "counts": counts,
                "warned": warned,
                "scans": [_record(one) for one in checks],
                "made": provenance(),
            }
        )
    else:
        columns = ["scan", "verdict", "vertices", "edge mm", "unit", "upright by", "remarks"]
        print_table("Scans", columns, map(_row, checks))
        counted = [f"{n} {verdict}" for verdict, n in counts.items()]
        click.echo(", ".join([*counted, f"{warned} with warnings"] if warned else counted))
    sys.exit(1 if counts["refused"] else 0)


def _record(check: Check) -> dict[str, Any]:
    """The check as plain values for JSON."""
    return {
        "id": check.id,
        "verdict": check.verdict,
        **check.facts,
        "findings": [finding.described(COMMAND) for finding in check.findings],
    }


def _row(check: Check) -> list[str]:
    style = _STYLE[check.verdict]
    remarks = []
    for finding in check.findings:
        remark, remedy = finding.cause.text(COMMAND), finding.advice.text(COMMAND)
        if finding.level == "refusal":
            where = check.error.where if check.error else None
            place = f"{shown(where.name)}: " if isinstance(where, Path) else ""
            remark = f"{place}{remark}. {remedy}"
        elif finding.level == "warning":
            remark = f"Warning: {remark}. {remedy}"
        remarks.append(escape(remark))
    fact = {key: str(value) for key, value in check.facts.items()}
    return [
        escape(check.id),
        f"[{style}]{check.verdict}[/{style}]",
        fact.get("vertices", ""),
        fact.get("mean_edge_mm", ""),
        fact.get("unit", ""),
        fact.get("frame", ""),
        "\n".join(remarks),
    ]
