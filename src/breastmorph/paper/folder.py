"""The study folder: where things lie, the cohort it works on, and whether records and files still agree."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from breastmorph import __version__
from breastmorph.batch.product import Hashes
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import (
    file_hash,
    make_folder,
    plain,
    problems_at,
    read_object,
    write_file,
    write_if_new,
)
from breastmorph.foundation.records import files_agree, remove_part_files
from breastmorph.paper.parameters import StudyParameters
from breastmorph.paper.part import Made, Part, PartState, digest

FORMAT = 1
_SCRATCH = ".making"
_FIRST = (".lock", "parts", "template.npz")  # what a study killed in its first moment may leave


@dataclass(frozen=True)
class StudyFolder:
    """The files under one ``--out``."""

    path: Path

    @cached_property
    def parts(self) -> Path:
        """Records."""
        return self.path / "parts"

    @cached_property
    def failed(self) -> Path:
        """Reasons of failures."""
        return self.path / "failed"

    @cached_property
    def report(self) -> Path:
        """The page."""
        return self.path / "report.html"

    def registered(self, variant: str) -> Path:
        """A folder of registered scans."""
        return self.path / "registered" / variant

    def model(self, variant: str) -> Path:
        """A model file."""
        return self.path / "models" / f"{variant}.h5"

    def figure(self, name: str) -> Path:
        """A figure, without the ending .svg or .png."""
        return self.path / "figures" / name

    def description(self) -> dict[str, Any]:
        """What ``study.json`` says.

        Raises
        ------
        FileProblem
            The folder holds no study, or one of another version of the format.
        """
        path = self.path / "study.json"
        if not self.path.is_dir():
            raise FileProblem(
                "there is no such folder",
                "Make one of a synthetic cohort, or of your own scans",
                self.path,
                code="study/no-folder",
                out=str(self.path),
            )
        try:
            found = json.loads(path.read_bytes())
            known = isinstance(found, dict) and isinstance(found["parameters"], dict) and "program" in found
        except FileNotFoundError as error:
            raise FileProblem(
                "this folder holds no study",
                "Make one of a synthetic cohort, or of your own scans",
                self.path,
                code="study/none",
                out="study/",
            ) from error
        except (OSError, ValueError, KeyError) as error:
            raise FileProblem(
                "this file cannot be read ({why})",
                "Run `breastmorph paper` again: it writes a new one",
                path,
                why=str(error),
            ) from error
        if not known or found.get("format") != FORMAT:
            raise FileProblem(
                "this study was made by another version of BreastMorph",
                "Make it again in another folder",
                path,
                code="study/other-version",
            )
        return dict(found)

    def record(self, part: str) -> dict[str, Any]:
        """The record of a part; empty where there is none that can be read."""
        return read_object(self.parts / f"{part}.json")

    def result(self, part: str) -> dict[str, Any]:
        """The result of a part; empty where there is none."""
        return dict(self.record(part).get("result") or {})

    def state(
        self, part: Part, states: Mapping[str, PartState], program: str, *, look_at_files: bool
    ) -> PartState:
        """What is known of a part, given the states of those before it and the program that counts.

        With ``look_at_files``, its files must be what the record says.
        """
        for name in part.needs:
            if not states[name].settled:
                return PartState("missing", why=f"it needs {name}: {states[name].why}")
        key = part.key(states, program)
        record = self.record(part.name)
        places = {**record.get("outputs", {}), **record.get("timed", {})}
        stated = {self.path / place: known for place, known in places.items()}
        if record.get("key") == key and (not look_at_files or files_agree(stated)):
            return PartState(record["status"], key, record["digest"], record.get("why", ""))
        failure = read_object(self.failed / f"{part.name}.json")
        if failure.get("key") == key:
            return PartState("failed", key, why=str(failure.get("why", "unknown reason")))
        return PartState("missing", key, why="not computed yet")

    def require_own(self) -> None:
        """Refuse a folder with files that are not a study's: a study removes what it takes for its own."""
        if not self.path.is_dir() or (self.path / "study.json").is_file():
            return
        others = sorted(path.name for path in self.path.iterdir() if path.name not in _FIRST)
        if others:
            raise FileProblem(
                "this folder holds other files ({others})",
                "Choose a new or empty folder",
                self.path,
                others=others[0],
            )

    def require_same_cohort(
        self, cohort: Path | None, parameters: StudyParameters, scans: Mapping[str, Hashes]
    ) -> None:
        """Refuse the folder of another cohort's study: its results would give way to this one's.

        Scans may change, come and go. A cohort is another one when it has no scan id in common, or lies elsewhere and
        has no scan in common; a phantom, when its size or seed differs.

        Parameters
        ----------
        cohort : Path, optional
            None for a phantom.
        parameters : StudyParameters
        scans : mapping from scan to hashes of its files
        """
        try:
            known = self.description()
        except FileProblem:  # none yet, or one that is written anew anyway
            return
        before = StudyParameters.from_dict(known["parameters"])
        theirs, ours = _named(known.get("cohort"), before), _named(cohort, parameters)
        why = f"{theirs}, not {ours}"
        if cohort is None or not known.get("cohort"):
            same = theirs == ours
        else:
            old = dict(known.get("inputs", {}).get("scans", {}))
            here = str(cohort.resolve()) == known["cohort"]
            why = f"{theirs} as they were then; these have no {'id' if here else 'scan'} in common with them"
            same = not old or bool(
                set(old) & set(scans)
                if here
                else any(old.get(name) == files for name, files in scans.items())
            )
        if not same:
            raise FileProblem(
                "this folder holds the study of another cohort ({why})",
                "Choose another folder; nothing was changed",
                self.path,
                code="other-cohort",
                why=why,
            )

    def prepare(self) -> None:
        """Make the folders, and clear away what killed processes left half-written."""
        for folder in (self.path, self.parts):
            make_folder(folder)
        shutil.rmtree(self.path / _SCRATCH, ignore_errors=True)
        models, figures = self.path / "models", self.path / "figures"
        remove_part_files(self.path, self.parts, self.failed, models, figures)

    def describe(self, description: Mapping[str, Any]) -> None:
        """Write ``study.json`` where it does not say this already."""
        value = {"format": FORMAT, "version": __version__, **description}
        write_if_new(self.path / "study.json", json.dumps(value, indent=1, allow_nan=False).encode())

    @contextmanager
    def scratch(self, part: str) -> Iterator[Path]:
        """An empty folder for one part, removed afterwards."""
        folder = self.path / _SCRATCH / part
        shutil.rmtree(folder, ignore_errors=True)
        make_folder(folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # others may still work beside it
                (self.path / _SCRATCH).rmdir()

    def store(
        self, part: Part, key: str, made: Made, scratch: Path, seconds: Mapping[str, float]
    ) -> PartState:
        """Keep what a part made: its files first, its record last."""
        moved = sorted(path.relative_to(scratch).as_posix() for path in scratch.rglob("*") if path.is_file())
        old = set(self.record(part.name).get("outputs", {}))
        outputs = {name: file_hash(scratch / name) for name in moved}
        outputs |= {name: file_hash(self.path / name) for name in made.in_place}
        timed = {name: file_hash(self.path / name) for name in made.timed}
        result = dict(made.result)
        record = self._record(part, key, "done", "", result, outputs, seconds) | {"timed": timed}
        for name in moved:
            make_folder((self.path / name).parent)
            with problems_at(self.path / name):
                os.replace(scratch / name, self.path / name)
        self._remove(old - set(outputs))
        return self._keep(part, record)

    def store_not_possible(
        self, part: Part, key: str, why: str, result: Mapping[str, Any] | None = None
    ) -> PartState:
        """Keep why a part cannot be done with this cohort."""
        self._remove(self.record(part.name).get("outputs", {}))
        return self._keep(part, self._record(part, key, "not possible", why, dict(result or {}), {}, {}))

    def store_failure(self, part: Part, key: str, why: str, trace: str = "") -> PartState:
        """Keep why a part failed."""
        make_folder(self.failed)
        reason = {"part": part.name, "key": key, "why": why} | ({"trace": trace} if trace else {})
        write_file(self.failed / f"{part.name}.json", json.dumps(reason, indent=1).encode())
        return PartState("failed", key, why=why)

    def forget_failures(self, planned: Iterable[str]) -> None:
        """Remove failures of parts that are no longer planned; what they computed before is kept."""
        obsolete = {path.stem for path in self.failed.glob("*.json")} - set(planned)
        self._remove(f"{self.failed.name}/{name}.json" for name in obsolete)
        with suppress(OSError):
            self.failed.rmdir()

    def _record(
        self,
        part: Part,
        key: str,
        status: str,
        why: str,
        result: dict[str, Any],
        outputs: dict[str, str],
        seconds: Mapping[str, float],
    ) -> dict[str, Any]:
        return {
            "part": part.name,
            "status": status,
            "why": why,
            "key": key,
            "version": __version__,
            "settings": plain(dict(part.settings)),
            "needs": {name: self.record(name).get("digest", "") for name in part.after},
            "digest": digest([status, why, result, outputs]),
            "seconds": {name: round(value, 2) for name, value in seconds.items()},
            "outputs": outputs,
            "result": result,
        }

    def _keep(self, part: Part, record: dict[str, Any]) -> PartState:
        write_file(self.parts / f"{part.name}.json", json.dumps(record, allow_nan=False).encode())
        (self.failed / f"{part.name}.json").unlink(missing_ok=True)
        with suppress(OSError):
            self.failed.rmdir()
        return PartState(record["status"], record["key"], record["digest"], record["why"])

    def _remove(self, names: Iterable[str]) -> None:
        for name in names:
            with suppress(OSError):
                (self.path / name).unlink(missing_ok=True)


def _named(cohort: object, parameters: StudyParameters) -> str:
    """A cohort in a few words."""
    if cohort:
        return f"the scans in {Path(str(cohort)).name}/"
    return f"{parameters.phantom} synthetic torsos with seed {parameters.seed}"
