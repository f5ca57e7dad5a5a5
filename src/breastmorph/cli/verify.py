"""``breastmorph verify``: are results still what was written, and do they belong to these inputs?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from breastmorph.cli.options import FOLDER, PATH, json_option, landmarks_option, print_json
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.scan.check import find_scans


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
    for path in results:
        if not path.exists():
            raise FileProblem("there is no such file or folder", "Check the path", path)
    _require_use_of(results, scans, landmarks, cohort)
    inputs = {files.id: files for files in find_scans(scans, landmarks)} if scans is not None else None
    report = []
    for path in results:
        if path.is_file():
            problems = list(_model_drift(path, cohort))
        elif _is_study(path):
            from breastmorph.study.folder import study_drift

            problems = list(study_drift(path))
        elif _is_registered(path):
            from breastmorph.batch.registered_folder import folder_drift

            problems = list(folder_drift(path, inputs))
        else:
            raise FileProblem(
                "this folder holds no results", "Give the --out of `breastmorph register` or `paper`", path
            )
        report.append((path, problems))
    changed = sum(len(problems) for _, problems in report)
    if as_json:
        print_json(
            [
                {
                    "path": str(path),
                    "unchanged": not problems,
                    "problems": [{"where": str(p.where), **p.said("command")._asdict()} for p in problems],
                }
                for path, problems in report
            ]
        )
    else:
        for path, problems in report:
            for problem in problems:
                click.echo(problem.text("command"))
            click.echo(f"{path}: " + (f"{len(problems)} differences" if problems else "as it was written"))
    sys.exit(1 if changed else 0)


def _is_study(path: Path) -> bool:
    return (path / "study.json").exists()


def _is_registered(path: Path) -> bool:
    return (path / "registered").is_dir() and not _is_study(path)


def _require_use_of(
    results: Sequence[Path], scans: Path | None, landmarks: Path | None, cohort: Path | None
) -> None:
    """Refuse options that would compare nothing: "as it was written" must not be said of what nobody looked at."""
    if landmarks is not None and scans is None:
        raise click.UsageError("--landmarks belongs to --scans.")
    if scans is not None and not any(map(_is_registered, results)):
        raise click.UsageError("--scans are the inputs of a folder of `register`, and none is given.")
    if cohort is not None and not any(path.is_file() for path in results):
        raise click.UsageError("--cohort is what a model was built from, and no model file is given.")


def _model_drift(path: Path, cohort: Path | None) -> Iterator[BreastMorphError]:
    from breastmorph.model.files import is_unchanged, load_model

    model = load_model(path)
    unchanged = is_unchanged(model)
    if unchanged is None:
        yield FileProblem(
            "the model carries no hash of its content",
            "Only models that BreastMorph wrote can be verified",
            path,
        )
    elif not unchanged:
        yield FileProblem("the model is not what was written", "Build it again", path)
    if cohort is not None:
        from breastmorph.cohort import load_cohort
        from breastmorph.model.building import built_with, usable

        subjects = usable(load_cohort(cohort), with_absent=built_with(model).with_absent)
        if model.info.get("shapes") != subjects.fingerprint():
            yield FileProblem(
                "the model was not built from these shapes, or not from all of them", "Build it again", path
            )
