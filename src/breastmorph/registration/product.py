"""One scan to one product: everything that is kept of a registration, as bytes, whoever computes it and wherever."""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from breastmorph import __version__
from breastmorph.errors import BreastMorphError, FileProblem
from breastmorph.mesh.files.ply import encoded
from breastmorph.mesh.files.reading import no_such_file
from breastmorph.names import name_of, shown
from breastmorph.plain import plain
from breastmorph.registration.compiled import share_compiled_code
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.registration.pipeline import Registrar
from breastmorph.registration.result import Registration, StageMetrics
from breastmorph.scan.check import CheckParameters, check_scan
from breastmorph.scan.findings import Check
from breastmorph.scan.folder import ScanFiles
from breastmorph.scan.scan import Scan
from breastmorph.template import Template
from breastmorph.template.files import from_npz, template_hash, to_npz
from breastmorph.threads import one_thread

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
    """

    template: bytes
    parameters: RegistrationParameters
    check: CheckParameters
    pictures: Pictures | None

    @cached_property
    def common(self) -> dict[str, Any]:
        """What the records of all scans have in common; a record that differs is out of date."""
        return {
            "template": template_hash(from_npz(self.template)),
            "parameters": plain(asdict(self.parameters)),
            "check": plain(asdict(self.check)),
            "version": __version__,
        }


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
    """

    id: str
    message: str
    code: str
    inputs: Hashes = field(default_factory=dict)
    trace: str = ""

    @classmethod
    def of(
        cls, files: ScanFiles, message: str, code: str, inputs: Hashes | None = None, trace: str = ""
    ) -> Self:
        """The failure of some files, without saying where on this machine they or the program lie."""
        message, trace = shown(message), shown(trace)
        for path in files.paths:
            message, trace = (text.replace(shown(str(path)), shown(path.name)) for text in (message, trace))
        return cls(files.id, message, code, inputs or {}, _PROGRAM_FOLDER.sub(r'File "\1"', trace))


class ProductMaker:
    """A recipe made ready in one process; call it with scans."""

    def __init__(self, recipe: Recipe) -> None:
        share_compiled_code()
        self._recipe = recipe
        self._registrar = Registrar(from_npz(recipe.template), recipe.parameters)

    def __call__(self, files: ScanFiles) -> Product | FailedScan:
        """Read, check and register one scan. Whatever is wrong with it becomes a FailedScan."""
        inputs: Hashes = {}
        try:
            # Before reading: a file that changes meanwhile then differs from its record and is done again.
            inputs = input_hashes(files)
            with one_thread():  # several threads round differently; results must not depend on who computes
                judged = check_scan(files, self._recipe.check, self._registrar.template.as_reference)
                return self._product(judged, judged.accepted(), inputs)
        except BreastMorphError as error:
            return FailedScan.of(files, str(error), error.code, inputs)
        except MemoryError:
            raise  # how much there was is known to whoever set the limit
        except Exception as error:
            message = f"{files.mesh}: unexpected error ({type(error).__name__}: {error}). Please report it"
            return FailedScan.of(files, message, "unexpected", inputs, traceback.format_exc())

    def _product(self, judged: Check, scan: Scan, inputs: Hashes) -> Product:
        result = self._registrar.register(scan)
        mesh = encoded(result.mesh.with_vertices(scan.to_file.apply(result.vertices)))
        warnings = [*(f.message for f in judged.findings if f.level == "repair"), *result.warnings]
        outputs = {f"{scan.id}.ply": hashlib.sha256(mesh).hexdigest()}
        pictures = self._pictures(scan, result, outputs, warnings)
        record = {
            "id": scan.id,
            "metrics": plain(dict(result.metrics)),
            "absent_side": result.absent_side,
            "warnings": warnings,
            "stages": [_stage(stage) for stage in result.stages],
            "seconds": plain(dict(result.seconds)),
            "landmarks": {name: scan.landmarks[name].tolist() for name in scan.landmarks},
            "landmarks_estimated": {name: point.tolist() for name, point in result.estimated.items()},
            "to_file": scan.to_file.as_dict(),
            "inputs": inputs,
            **self._recipe.common,
            "outputs": outputs,
        }
        return Product(scan.id, record, mesh, pictures)

    def _pictures(
        self, scan: Scan, result: Registration, outputs: Hashes, warnings: list[str]
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
            warnings.append(f"its pictures could not be drawn ({type(error).__name__}: {error})")
            outputs |= dict.fromkeys(draw.places(scan.id), "")
            return {}
        return pictures


def input_hashes(files: ScanFiles) -> Hashes:
    """Hashes of a scan's files by name."""
    return {name_of(path.name): file_hash(path) for path in files.paths}


def file_hash(path: Path) -> str:
    """SHA-256 of a file's content."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise no_such_file(path) from error
    except OSError as error:
        raise FileProblem(
            f"the file cannot be read ({error.strerror})", "Check its permissions", path
        ) from error


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
