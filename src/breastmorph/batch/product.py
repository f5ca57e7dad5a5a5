"""One scan to one product: everything kept of a registration, as bytes that do not depend on where it is made."""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Protocol, Self

from breastmorph import __version__
from breastmorph.batch.cohort_prior import CohortPrior, digest
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import (
    file_hash,
    json_text,
    plain,
)
from breastmorph.foundation.machine import one_thread
from breastmorph.foundation.messages import Finding, sentences, warning
from breastmorph.foundation.text import name_of, shown
from breastmorph.mesh.files.ply import encoded
from breastmorph.mesh.skin import share_seen
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.registration.pipeline import Registrar
from breastmorph.registration.result import Registration, StageMetrics
from breastmorph.scan.check import CheckParameters, ScanFiles, check_scan
from breastmorph.scan.scan import Check, PlausibilityReport, Scan
from breastmorph.template import Template, template_hash

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
    template : Template
    parameters : RegistrationParameters
    check : CheckParameters
    pictures : Pictures, optional
    prior : bytes
        The cohort prior that a first pass gave, as the content of ``learnt.npz``; empty for a first pass.
    checked : mapping from scan to (hashes, report)
        What an earlier check by the same rules found in scans, and of which files; saves time and changes no result.
    """

    template: Template
    parameters: RegistrationParameters = field(default_factory=RegistrationParameters)
    check: CheckParameters = field(default_factory=CheckParameters)
    pictures: Pictures | None = None
    prior: bytes = b""
    checked: Mapping[str, tuple[Hashes, PlausibilityReport]] = field(default_factory=dict)

    @cached_property
    def common(self) -> dict[str, Any]:
        """What the records of all scans have in common; a record that differs is out of date."""
        return {
            "template": template_hash(self.template),
            "parameters": plain(asdict(self.parameters)),
            "check": plain(asdict(self.check)),
            "learnt": digest(self.prior),
            "version": __version__,
        }

    @property
    def first_pass(self) -> str:
        """What is common to the first pass that this recipe builds on, as text."""
        return json_text({key: value for key, value in self.common.items() if key != "learnt"})


@dataclass(frozen=True, eq=False)
class Product:
    """A registered scan.

    Attributes
    ----------
    id : str
    record : dict
        The content of ``<id>.json``.
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
        Where in the program it happened, for unforeseen errors.
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
        parts = (error.text(folders=False), trace, error.finding.as_dict())
        message, trace, finding = (_by_name(part, files) for part in parts)
        return cls(
            files.id, message, error.code, inputs or {}, _PROGRAM_FOLDER.sub(r'File "\1"', trace), finding
        )


def _by_name(value: Any, files: ScanFiles) -> Any:
    """Texts, alone or within plain values, that name files without their folders."""
    if isinstance(value, dict):
        return {key: _by_name(part, files) for key, part in value.items()}
    if isinstance(value, list):
        return [_by_name(part, files) for part in value]
    if isinstance(value, str):
        value = shown(value)
        for path in files.paths:
            value = value.replace(shown(str(path)), shown(path.name))
    return value


class ProductMaker:
    """A recipe made ready in one process; call it with scans."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._registrar = Registrar(recipe.template, recipe.parameters)
        known = recipe.parameters.cohort_prior
        self._prior = CohortPrior.from_npz(recipe.prior, None, known) if recipe.prior else None

    def __call__(self, files: ScanFiles) -> Product | FailedScan:
        """Read, check and register one scan. Whatever is wrong with it becomes a FailedScan."""
        inputs: Hashes = {}
        try:
            # Before reading: a file that changes meanwhile then differs from its record and is done again.
            inputs = input_hashes(files)
            with one_thread():  # several threads round differently; results must not depend on who computes
                of_files, known = self._recipe.checked.get(files.id, ({}, None))
                judged = check_scan(
                    files,
                    self._recipe.check,
                    self._registrar.template.as_reference,
                    known if of_files == inputs else None,
                )
                scan = judged.accepted()
                priors = () if self._prior is None else self._prior.for_scan(scan.id)
                return self._product(judged, scan, self._registrar.register(scan, priors), inputs)
        except BreastMorphError as error:
            return FailedScan.of(files, error, inputs)
        except MemoryError:
            raise  # the process that set the limit knows how much there was
        except Exception as error:
            unforeseen = BreastMorphError(
                "unexpected error ({why})",
                "Please report it",
                files.mesh,
                code="unexpected",
                why=f"{type(error).__name__}: {error}",
            )
            return FailedScan.of(files, unforeseen, inputs, traceback.format_exc())

    def _product(self, judged: Check, scan: Scan, result: Registration, inputs: Hashes) -> Product:
        mesh = encoded(result.mesh.with_vertices(scan.to_file.apply(result.vertices)))
        warnings = [*(repair for repair in judged.findings if repair.level == "repair"), *result.warnings]
        outputs = {f"{scan.id}.ply": hashlib.sha256(mesh).hexdigest()}
        pictures = self._pictures(scan, result, outputs, warnings)
        record = {
            "id": scan.id,
            "metrics": plain(dict(result.metrics)),
            "absent_side": result.absent_side,
            "warnings": sentences(warnings),
            "findings": plain([finding.as_dict() for finding in warnings]),
            "stages": [_stage(stage) for stage in result.stages],
            "seconds": plain(dict(result.seconds)),
            "landmarks": {name: scan.landmarks[name].tolist() for name in scan.landmarks},
            "landmarks_found": {name: round(found.sd, 2) for name, found in result.landmarks.found.items()},
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
            warnings.append(
                warning(
                    "no-pictures",
                    "its pictures could not be drawn ({why})",
                    why=f"{type(error).__name__}: {error}",
                )
            )
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
