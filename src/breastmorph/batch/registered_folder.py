"""A folder of registered scans: which files belong to a scan, where they lie, what became of each scan."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from breastmorph.batch.product import FailedScan, Product, Recipe, input_hashes
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.files import (
    json_text,
    make_folder,
    read_object,
    write_file,
    write_files,
    write_if_new,
)
from breastmorph.foundation.messages import Finding, recorded
from breastmorph.foundation.records import files_agree, remove_part_files
from breastmorph.foundation.text import name_of
from breastmorph.scan.check import ScanFiles

Status = Literal["registered", "unchanged", "failed"]
PICTURES = ("sheets", "thumbnails")  # folders of pictures that a result may have
_BRIEF = ("id", "metrics", "absent_side", "warnings", "findings", "seconds", "outputs", "template", "learnt")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of one scan.

    Attributes
    ----------
    id : str
    status : {"registered", "unchanged", "failed"}
    record : dict
        From ``<id>.json``: metrics, seconds, warnings, absent side, outputs, template.
        Empty when failed.
    message : str
        Why it failed.
    code : str
        The same for machines: "time-limit", "memory-limit", "crashed", or the code of the error.
    finding : dict
        The same as values; see :class:`FailedScan`.
    """

    id: str
    status: Status
    record: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    code: str = ""
    finding: dict[str, Any] = field(default_factory=dict)

    @property
    def warnings(self) -> list[str]:
        """Warnings of the registration and repairs of the scan, as sentences."""
        return list(self.record.get("warnings", ()))

    @property
    def findings(self) -> list[Finding]:
        """The same as values."""
        kept = self.record.get("findings", ())
        known = kept if isinstance(kept, list) else []
        return [
            recorded(found, text) for text, found in zip_longest(self.warnings, known[: len(self.warnings)])
        ]

    @property
    def why(self) -> Finding:
        """Why it failed, as a value."""
        return recorded(self.finding, self.message, self.code or BreastMorphError.code)


@dataclass(frozen=True)
class RegisteredFolder:
    """The files under one ``--out``."""

    path: Path

    @cached_property
    def registered(self) -> Path:
        """Meshes and records."""
        return self.path / "registered"

    @cached_property
    def failed(self) -> Path:
        """Reasons of failures."""
        return self.path / "failed"

    @cached_property
    def superseded(self) -> Path:
        """Results that are no longer valid."""
        return self.path / "superseded"

    def ids(self) -> list[str]:
        """Scans the folder knows, registered or failed, sorted."""
        # Names with a dot in front are half-written, or a Mac's own notes on a file.
        return sorted(
            {
                name_of(path.stem)
                for place in (self.registered, self.failed)
                for path in place.glob("[!.]*.json")
            }
        )

    def record(self, scan_id: str) -> dict[str, Any]:
        """A scan's record; empty where there is none that can be read."""
        return read_object(self.registered / f"{scan_id}.json")

    def has_failed(self, scan_id: str) -> bool:
        """Whether the last attempt at a scan failed."""
        return (self.failed / f"{scan_id}.json").exists()

    def outcome(self, scan_id: str) -> Outcome | None:
        """What is known of a scan; None where nothing is."""
        record = self.record(scan_id)
        if record:
            return Outcome(scan_id, "unchanged", _brief(record))
        if self.has_failed(scan_id):
            why = read_object(self.failed / f"{scan_id}.json")
            message, code = str(why.get("message", "unknown reason")), str(why.get("code", ""))
            return Outcome(scan_id, "failed", {}, message, code, why.get("finding", {}))
        return None

    def outcomes(self) -> Iterator[Outcome]:
        """What is known of all scans, by id."""
        for scan_id in self.ids():
            outcome = self.outcome(scan_id)
            if outcome is not None:
                yield outcome

    def is_current(self, files: ScanFiles, recipe: Recipe) -> bool:
        """Whether a scan's result is there, whole, and what a new run would compute again.

        Inputs and outputs are compared by their content: sizes and dates can deceive.
        """
        record = self.record(files.id)
        outputs = record.get("outputs")
        if not isinstance(outputs, dict) or any(
            record.get(key) != value for key, value in recipe.common.items()
        ):
            return False
        if recipe.pictures and any(place not in outputs for place in recipe.pictures.places(files.id)):
            return False
        try:
            if record.get("inputs") != input_hashes(files):
                return False
        except FileProblem:
            return False
        return files_agree({self.output(name): known for name, known in outputs.items()})

    def prepare(self) -> None:
        """Make the folders, and clear away what killed processes left half-written."""
        for folder in (self.path, self.registered):
            make_folder(folder)
        remove_part_files(self.path, self.registered, self.failed, *map(self.path.joinpath, PICTURES))

    def store(self, product: Product | FailedScan) -> Outcome:
        """Keep what came of a scan.

        Raises
        ------
        FileProblem
            The folder cannot be written to; nothing of the scan has changed then.
        """
        if isinstance(product, FailedScan):
            return self._store_failure(product)
        outputs = {self.path / place: data for place, data in product.pictures.items()}
        outputs[self.registered / f"{product.id}.ply"] = product.mesh
        for path in outputs:
            make_folder(path.parent)
        record = self.registered / f"{product.id}.json"
        # An old record must not vouch for the new mesh, nor an old picture show what the record does not know.
        old = [record, self.failed / record.name]
        old += [path for path in self._pictures(product.id) if path not in outputs]
        write_files(outputs | {record: json_text(product.record).encode()}, instead_of=old)
        return Outcome(product.id, "registered", _brief(product.record))

    def supersede(self, scan_id: str) -> None:
        """Put a result aside that is no longer valid, the record first."""
        old = [self.registered / f"{scan_id}.json", self.registered / f"{scan_id}.ply"]
        try:
            for path in filter(Path.exists, old):
                make_folder(self.superseded)
                os.replace(path, self.superseded / path.name)
            for path in self._pictures(scan_id):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise FileProblem(
                "an old result cannot be put aside ({why})",
                "Check the folder's permissions and free space",
                self.superseded,
                code="unwritable",
                why=error.strerror,
            ) from error

    @property
    def prior(self) -> Path:
        """The cohort prior of a first pass, where there was one."""
        return self.path / "learnt.npz"

    def keep_template(self, data: bytes) -> None:
        """Write ``template.npz`` where it is not there already."""
        write_if_new(self.path / "template.npz", data)

    def _store_failure(self, failed: FailedScan) -> Outcome:
        make_folder(self.failed)
        reason = {key: value for key, value in asdict(failed).items() if key != "trace" or value}
        self.supersede(failed.id)
        write_file(self.failed / f"{failed.id}.json", json_text(reason).encode())
        return Outcome(failed.id, "failed", {}, failed.message, failed.code, failed.finding)

    def _pictures(self, scan_id: str) -> list[Path]:
        return [self.path / folder / f"{scan_id}.png" for folder in PICTURES]

    def output(self, name: str) -> Path:
        """A file named in a record: the mesh lies beside the record, pictures in their folders."""
        return (self.path if "/" in name else self.registered) / name


def _brief(record: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a record that a summary needs: a run over many scans keeps all of these in memory."""
    return {key: record[key] for key in _BRIEF if key in record}
