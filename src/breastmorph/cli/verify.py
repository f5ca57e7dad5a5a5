"""``breastmorph verify``: are results still what was written, and do they belong to these inputs?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from breastmorph.cli.options import FOLDER, PATH, json_option, landmarks_option
from breastmorph.cli.printing import print_json
from breastmorph.cli.wording import COMMAND
from breastmorph.usecases.verify import VerifyRequest, is_registered, verify


@click.command("verify")
@click.argument("results", nargs=-1, required=True, type=PATH)
@click.option("--scans", type=PATH, help="Also compare the inputs of registered folders.")
@landmarks_option
@click.option(
    "--cohort", type=FOLDER, help="Also compare the shapes a model was built from: its registered folder."
)
@json_option
def command(
    results: tuple[Path, ...], scans: Path | None, landmarks: Path | None, cohort: Path | None, as_json: bool
) -> None:
    """Hash RESULTS again and report everything that differs from what was written.

    RESULTS are folders of `breastmorph register`, `paper` or `demo`, and model files. Exit code 1 when something
    changed, is missing or does not belong there: a mesh that no record knows, or in a study a file that no part made.

    \b
    Examples:
      breastmorph verify registered-cohort/ --scans scans/ --landmarks landmarks/
      breastmorph verify model.h5 --cohort registered-cohort/
    """
    _require_use_of(results, scans, landmarks, cohort)
    from breastmorph.paper.drift import study_drift

    report = verify(VerifyRequest(results, scans, landmarks, cohort), study_drift)
    changed = sum(len(result.problems) for result in report)
    if as_json:
        print_json(
            [
                {
                    "path": str(result.path),
                    "unchanged": not result.problems,
                    "problems": [
                        {
                            "where": str(p.where),
                            "cause": p.finding.cause.text(COMMAND),
                            "remedy": p.finding.advice.text(COMMAND),
                        }
                        for p in result.problems
                    ],
                }
                for result in report
            ]
        )
    else:
        for result in report:
            for problem in result.problems:
                click.echo(problem.text(COMMAND))
            differs = f"{len(result.problems)} differences" if result.problems else "as it was written"
            click.echo(f"{result.path}: {differs}")
    sys.exit(1 if changed else 0)


def _require_use_of(
    results: Sequence[Path], scans: Path | None, landmarks: Path | None, cohort: Path | None
) -> None:
    """Refuse options that would compare nothing: "as it was written" must not be printed of what was not compared."""
    if landmarks is not None and scans is None:
        raise click.UsageError("--landmarks belongs to --scans.")
    if scans is not None and not any(map(is_registered, results)):
        raise click.UsageError("--scans are the inputs of a folder of `register`, and none is given.")
    if cohort is not None and not any(path.is_file() for path in results):
        raise click.UsageError("--cohort is what a model was built from, and no model file is given.")
