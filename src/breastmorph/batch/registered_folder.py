"""A folder of registered scans: what is kept of each, where it lies, whether it is still what was written."""

from __future__ import annotations

import hashlib
import os
import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np

from breastmorph import __version__
from breastmorph.batch.cohort_prior import CohortPrior, digest
from breastmorph.foundation.errors import (
    BreastMorphError,
    FileProblem,
    Finding,
    name_of,
    recorded,
    sentences,
    shown,
    warning,
)
from breastmorph.foundation.files import (
    PART_FILES,
    file_hash,
    json_text,
    make_folder,
    plain,
    read_object,
    write_file,
    write_files,
    write_if_new,
)
from breastmorph.foundation.machine import one_thread, share_compiled_code
from breastmorph.mesh.files.ply import encoded
from breastmorph.mesh.skin import share_seen
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.registration.pipeline import Registrar
from breastmorph.registration.result import Registration, StageMetrics
from breastmorph.scan.check import CheckParameters, ScanFiles, check_scan
from breastmorph.scan.scan import Check, Doubts, Scan
from breastmorph.template import Template, from_npz, template_hash, to_npz

# --------------------------------------------------------------------------------------------------------------------
# One scan to one product: everything that is kept of a registration, as bytes, whoever computes it and wherever
# --------------------------------------------------------------------------------------------------------------------

Hashes = dict[str, str]  # of files, by name: SHA-256
_PROGRAM_FOLDER = re.compile(r'File "[^"]*?([^"/\\]+[/\\][^"/\\]+)"')  # keeps the last two parts


class Pictures(Protocol):
    """Pictures that belong to every result. Called where the scan is registered, so it must be picklable."""

    def __call__(self, scan: Scan, result: Registration) -> Mapping[str, bytes]:
        """PNG files by their place in the output folder, for example ``sheets/<id>.png``."""

    def places(self, scan_id: str) -> Sequence[str]:
        """The places that a call will fill."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """All that shapes a result beside the scan itself. Can be sent to other processes and machines.

    Attributes
    ----------
    template : bytes
        As an NPZ file with exact coordinates; see :func:`recipe`.
    parameters : RegistrationParameters
    check : CheckParameters
    pictures : Pictures, optional
    learnt : bytes
        What a first pass taught, as the content of ``learnt.npz``; empty for a first pass.
    doubts : mapping from scan to (hashes, doubts)
        What an earlier check by the same rules said of scans, and of which files; saves time and changes no result.
    """

    template: bytes
    parameters: RegistrationParameters
    check: CheckParameters
    pictures: Pictures | None
    learnt: bytes = b""
    doubts: Mapping[str, tuple[Hashes, Doubts]] = field(default_factory=dict)

    @cached_property
    def common(self) -> dict[str, Any]:
        """What the records of all scans have in common; a record that differs is out of date."""
        return {
            "template": template_hash(from_npz(self.template)),
            "parameters": plain(asdict(self.parameters)),
            "check": plain(asdict(self.check)),
            "learnt": digest(self.learnt),
            "version": __version__,
        }

    @property
    def first_pass(self) -> str:
        """What is common to the first pass that this recipe builds on, as text."""
        return json_text({key: value for key, value in self.common.items() if key != "learnt"})


def recipe(
    template: Template,
    parameters: RegistrationParameters | None = None,
    check: CheckParameters | None = None,
    pictures: Pictures | None = None,
) -> Recipe:
    """A recipe from values."""
    # 64 bits: results must not depend on whether a process got the template as a file or as a value.
    return Recipe(
        to_npz(template, np.float64),
        parameters or RegistrationParameters(),
        check or CheckParameters(),
        pictures,
    )


@dataclass(frozen=True, eq=False)
class Product:
    """A registered scan.

    Attributes
    ----------
    id : str
    record : dict
        What ``<id>.json`` will hold.
    mesh : bytes
        A PLY file.
    pictures : mapping from place to bytes
        PNG files by their place in the output folder.
    """

    id: str
    record: dict[str, Any]
    mesh: bytes
    pictures: Mapping[str, bytes]


@dataclass(frozen=True)
class FailedScan:
    """A scan without a result.

    Attributes
    ----------
    id : str
    message : str
        Why, and what to do about it.
    code : str
        The same for machines.
    inputs : dict
        Hashes of the input files by name; empty where they cannot be read.
    trace : str
        Where in the program it happened, for errors that nobody foresaw.
    finding : dict
        What :meth:`breastmorph.foundation.errors.Finding.from_dict` reads, so that others can phrase it anew.
    """

    id: str
    message: str
    code: str
    inputs: Hashes = field(default_factory=dict)
    trace: str = ""
    finding: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, files: ScanFiles, error: BreastMorphError, inputs: Hashes | None = None, trace: str = ""
    ) -> Self:
        """The failure of some files, without saying where on this machine they or the program lie."""
        parts = (error.text("command", folders=False), trace, Finding.of(error).as_dict())
        message, trace, finding = (_by_name(part, files) for part in parts)
        return cls(
            files.id, message, error.code, inputs or {}, _PROGRAM_FOLDER.sub(r'File "\1"', trace), finding
        )


def _by_name(value: Any, files: ScanFiles) -> Any:
    """Texts, alone or within plain values, that name files without their folders."""
    if isinstance(value, dict):
        return {key: _by_name(one, files) for key, one in value.items()}
    if isinstance(value, list):
        return [_by_name(one, files) for one in value]
    if isinstance(value, str):
        value = shown(value)
        for path in files.paths:
            value = value.replace(shown(str(path)), shown(path.name))
    return value


class ProductMaker:
    """A recipe made ready in one process; call it with scans."""

    def __init__(self, recipe: Recipe) -> None:
        share_compiled_code()
        self._recipe = recipe
        self._registrar = Registrar(from_npz(recipe.template), recipe.parameters)
        self._learnt = CohortPrior.from_npz(recipe.learnt) if recipe.learnt else None

    def __call__(self, files: ScanFiles) -> Product | FailedScan:
        """Read, check and register one scan. Whatever is wrong with it becomes a FailedScan."""
        inputs: Hashes = {}
        try:
            # Before reading: a file that changes meanwhile then differs from its record and is done again.
            inputs = input_hashes(files)
            with one_thread():  # several threads round differently; results must not depend on who computes
                of_files, known = self._recipe.doubts.get(files.id, ({}, None))
                judged = check_scan(
                    files,
                    self._recipe.check,
                    self._registrar.template.as_reference,
                    known if of_files == inputs else None,
                )
                return self._product(judged, judged.accepted(), inputs)
        except BreastMorphError as error:
            return FailedScan.of(files, error, inputs)
        except MemoryError:
            raise  # how much there was is known to whoever set the limit
        except Exception as error:
            said = BreastMorphError.of("unexpected", files.mesh, why=f"{type(error).__name__}: {error}")
            return FailedScan.of(files, said, inputs, traceback.format_exc())

    def _product(self, judged: Check, scan: Scan, inputs: Hashes) -> Product:
        told = () if self._learnt is None else self._learnt.for_scan(scan.id)
        result = self._registrar.register(scan, told)
        mesh = encoded(result.mesh.with_vertices(scan.to_file.apply(result.vertices)))
        warnings = [*(one for one in judged.findings if one.level == "repair"), *result.warnings]
        outputs = {f"{scan.id}.ply": hashlib.sha256(mesh).hexdigest()}
        pictures = self._pictures(scan, result, outputs, warnings)
        record = {
            "id": scan.id,
            "metrics": plain(dict(result.metrics)),
            "absent_side": result.absent_side,
            "warnings": sentences(warnings),
            "findings": plain([one.as_dict() for one in warnings]),
            "stages": [_stage(stage) for stage in result.stages],
            "seconds": plain(dict(result.seconds)),
            "landmarks": {name: scan.landmarks[name].tolist() for name in scan.landmarks},
            "landmarks_found": {name: round(one.sd, 2) for name, one in result.landmarks.found.items()},
            "landmarks_estimated": {name: point.tolist() for name, point in result.estimated.items()},
            "to_file": scan.to_file.as_dict(),
            "rigid": result.transform.as_dict(),
            "inputs": inputs,
            **self._recipe.common,
            "outputs": outputs,
        }
        if result.mesh.colors is not None:
            record["skin_seen"] = round(share_seen(result.mesh.colors), 4)
        return Product(scan.id, record, mesh, pictures)

    def _pictures(
        self, scan: Scan, result: Registration, outputs: Hashes, warnings: list[Finding]
    ) -> Mapping[str, bytes]:
        draw = self._recipe.pictures
        if draw is None:
            return {}
        try:
            pictures = draw(scan, result)
            outputs |= {place: hashlib.sha256(data).hexdigest() for place, data in pictures.items()}
        except MemoryError:
            raise
        except Exception as error:  # a good registration must not be lost for a picture
            warnings.append(warning("no-pictures", why=f"{type(error).__name__}: {error}"))
            outputs |= dict.fromkeys(draw.places(scan.id), "")
            return {}
        return pictures


def input_hashes(files: ScanFiles) -> Hashes:
    """Hashes of a scan's files by name."""
    return {name_of(path.name): file_hash(path) for path in files.paths}


def _stage(stage: StageMetrics) -> Any:
    return plain(
        {
            "name": stage.name,
            "seconds": stage.seconds,
            "iterations": stage.iterations,
            "distance_inside": stage.distance_inside,
            "distance_outside": stage.distance_outside,
            "landmark_residuals": dict(stage.landmark_residuals),
        }
    )


# --------------------------------------------------------------------------------------------------------------------
# The registered folder: which files belong to a scan, in which order they appear, what is still to be done
# --------------------------------------------------------------------------------------------------------------------

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
        What ``<id>.json`` says of the result: metrics, seconds, warnings, absent side, outputs, template.
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
        """Warnings of the registration and repairs of the scan, as commands say them."""
        return list(self.record.get("warnings", ()))

    @property
    def findings(self) -> list[Finding]:
        """The same as values."""
        kept = self.record.get("findings", ())
        known = kept if isinstance(kept, list) else []
        return [recorded(one, text) for text, one in zip_longest(self.warnings, known[: len(self.warnings)])]

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

    # -- reading -----------------------------------------------------------------------------------------------

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
        """What the folder says of a scan; None when it says nothing."""
        record = self.record(scan_id)
        if record:
            return Outcome(scan_id, "unchanged", _brief(record))
        if self.has_failed(scan_id):
            why = read_object(self.failed / f"{scan_id}.json")
            message, code = str(why.get("message", "unknown reason")), str(why.get("code", ""))
            return Outcome(scan_id, "failed", {}, message, code, why.get("finding", {}))
        return None

    def outcomes(self) -> Iterator[Outcome]:
        """What the folder says of all scans, by id."""
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
            return bool(record.get("inputs") == input_hashes(files)) and all(
                file_hash(self.output(name)) == digest for name, digest in outputs.items() if digest
            )
        except FileProblem:
            return False

    # -- writing -----------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Make the folders, and clear away what killed processes left half-written."""
        for folder in (self.path, self.registered):
            make_folder(folder)
        for folder in (self.path, self.registered, self.failed, *map(self.path.joinpath, PICTURES)):
            for left_over in folder.glob(PART_FILES):
                with suppress(OSError):
                    left_over.unlink(missing_ok=True)

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
                f"an old result cannot be put aside ({error.strerror})",
                "Check the folder's permissions and free space",
                self.superseded,
                code="unwritable",
            ) from error

    @property
    def learnt(self) -> Path:
        """What a first pass taught, where there was one."""
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
