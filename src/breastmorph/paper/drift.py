"""Drift of a study: what its records say of results and files, compared with what is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from breastmorph.batch.drift import compared
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.messages import note
from breastmorph.paper.folder import StudyFolder
from breastmorph.paper.parameters import StudyParameters, making_command
from breastmorph.paper.part import digest

_OWN = {
    "study.json",
    "template.npz",
    "report.html",
    "parts",
    "failed",
    "cohort",
    "registered",
    "models",
    "figures",
}


def study_drift(path: Path) -> Iterator[FileProblem]:
    """Everything in a study folder that differs from what was written, one problem a file."""
    folder = StudyFolder(path)
    described = folder.description()
    parameters = StudyParameters.from_dict(described["parameters"])
    again = note(
        "study/again",
        "Make the study again in the same folder: only this part and what depends on it is redone",
        command=making_command(parameters, described.get("cohort")),
    )
    known_files: set[str] = set()
    for file in sorted(folder.parts.glob("*.json")):
        record = folder.record(file.stem)
        try:
            known = [record["status"], record["why"], record["result"], record["outputs"]]
            files = {**record["outputs"], **record.get("timed", {})}
            known_files.update(files)
        except (KeyError, TypeError):
            yield FileProblem(
                "the record cannot be read", "{again}", file, code="unreadable/no-record", again=again
            )
            continue
        if record.get("digest") != digest(known):
            yield FileProblem(
                "the record was changed", "{again}", file, code="unreadable/changed-record", again=again
            )
        for name, expected in files.items():
            yield from compared(path / name, expected, again)
    for other in _others(path, known_files):
        yield FileProblem("no part of the study made this", "Move it elsewhere", other)


def _others(path: Path, known: set[str]) -> Iterator[Path]:
    """What lies in a study folder and does not belong to it; hidden files may be anybody's."""
    for found in sorted(path.iterdir()):
        if found.name not in _OWN and not found.name.startswith("."):
            yield found
    for folder in ("models", "figures"):
        for found in sorted((path / folder).glob("*")):
            if f"{folder}/{found.name}" not in known and not found.name.startswith("."):
                yield found
