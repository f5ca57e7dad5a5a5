"""Drift of a study: what its records say of results and files, compared with what is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from breastmorph.errors import FileProblem
from breastmorph.registration.product import file_hash
from breastmorph.study.folder import StudyFolder
from breastmorph.study.part import digest

_AGAIN = "Run `breastmorph paper` again: it redoes only this part and what depends on it"


def study_drift(path: Path) -> Iterator[FileProblem]:
    """Everything in a study folder that differs from what was written, one problem a file."""
    folder = StudyFolder(path)
    folder.description()
    for record in sorted(folder.parts.glob("*.json")):
        said = folder.record(record.stem)
        try:
            known = [said["status"], said["why"], said["result"], said["outputs"]]
            files = {**said["outputs"], **said.get("timed", {})}
        except (KeyError, TypeError):
            yield FileProblem("the record cannot be read", _AGAIN, record)
            continue
        if said.get("digest") != digest(known):
            yield FileProblem("the record was changed", _AGAIN, record)
        for name, expected in files.items():
            try:
                if file_hash(path / name) != expected:
                    yield FileProblem("its content is not what the record says", _AGAIN, path / name)
            except FileProblem as problem:
                yield problem
