"""The session file: all that a visitor did, in one archive that opens again; read back as strictly as any upload."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph import __version__
from breastmorph.explorer.open_scans import landmark_json
from breastmorph.explorer.uploads import harmless_name
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import printable
from breastmorph.foundation.language import N_
from breastmorph.model.shape_model import ShapeModel

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session
    from breastmorph.explorer.workspace import Case

_KIND = "BreastMorph session 2"
_KINDS = (_KIND, "BreastMorph session 1")
_LARGEST_NOTES = 2 * 1024**2  # bytes of session.json
_LARGEST_ARRAY = 64 * 1024**2
_MOST_MEMBERS = 24
_MOST_COMPRESSED = 200  # times: more is an archive made to burst
_REMEDY = N_("Save the session again from the explorer")


@dataclass(frozen=True, eq=False)
class SavedPatient:
    """What a session file says of the patient: how to compute her again.

    Attributes
    ----------
    how : {"registered", "fitted"}
    landmarks : bytes
        Those that were used, as a JSON file of ours; empty where there were none.
    shape : (n, 3) float
        What came out when it was saved, mm; not to be believed.
    version : str
        Of BreastMorph, when it was saved.
    """

    how: str
    landmarks: bytes
    shape: Floats
    version: str


@dataclass(frozen=True, eq=False)
class SavedSession:
    """What a session file holds, checked.

    Attributes
    ----------
    notes : dict
        Of session.json.
    files : mapping from name to bytes
        The scan and its companions.
    scan_name : str
        Which of them is the scan; empty where there is none.
    landmarks : bytes
        Those of the scan, as a JSON file of ours; empty where there are none.
    patient : SavedPatient, optional
    """

    notes: dict[str, Any]
    files: dict[str, bytes]
    scan_name: str = ""
    landmarks: bytes = b""
    patient: SavedPatient | None = None


def fingerprint(model: ShapeModel) -> str:
    """What tells one model from another."""
    digest = hashlib.sha256()
    for array in (model.mean.astype("<f4"), model.faces.astype("<i4"), model.variances.astype("<f4")):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def saved(session: Session, case: Case, page: Any) -> bytes:
    """A case with the page's own notes as the bytes of a session file."""
    patient = case.patient
    notes: dict[str, Any] = {
        "kind": _KIND,
        "version": __version__,
        "model": {"name": session.view.origin.name, "fingerprint": fingerprint(session.view.model)},
        "page": page,
        "landmark_ids": dict(session.view.origin.landmark_ids),
        "edit": dict(case.edited.asked) if case.edited is not None else None,
        "prediction": dict(case.predicted.asked) if case.predicted is not None else None,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        if case.scan is not None and case.scan.mesh_file is not None:
            notes["scan"] = _write_scan(archive, case, case.scan.mesh_file)
        if patient is not None:
            notes["patient"] = {"how": patient.how, "landmarks": json.loads(patient.landmarks or "null")}
            archive.writestr("patient.npy", _npy(patient.patient.shape))
        archive.writestr("session.json", json.dumps(notes, indent=1))
    return buffer.getvalue()


def _write_scan(archive: zipfile.ZipFile, case: Case, path: Path) -> dict[str, Any]:
    scan = case.required_scan
    companions = sorted(path.parent.iterdir()) if scan.source == "upload" else []
    for member in [path, *(file for file in companions if file != path and file.is_file())]:
        archive.write(member, f"scan/{harmless_name(member.name)}")
    return {
        "name": case.name,
        "file": harmless_name(path.name),
        "landmarks": json.loads(landmark_json(case.picks, scan.read.to_file)) if case.picks.points else None,
    }


def opened(path: Path, model: str, n_vertices: int, largest: int) -> SavedSession:
    """Read a session file; everything in it is checked before it is used. For the reading process.

    Parameters
    ----------
    path : Path
    model : str
        Fingerprint of the model that it must belong to.
    n_vertices : int
        Of that model.
    largest : int
        Bytes that it may unpack to.

    Raises
    ------
    FileProblem
        It is no session file, damaged, made to burst, or belongs to another model.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = _checked_members(archive, largest)
            notes = _notes(_content(archive, members, "session.json"))
            _require_model(notes, model)
            files = {
                name.removeprefix("scan/"): _content(archive, members, name)
                for name in members
                if name.startswith("scan/")
            }
            scan = _scan(notes, files)
            return SavedSession(notes, files, *scan, _patient(notes, archive, members, n_vertices))
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, OSError) as error:
        raise FileProblem(
            "this is not a session file, or it is damaged ({why})", _REMEDY, why=printable(str(error), 160)
        ) from error
    except Exception as error:  # a damaged archive raises more kinds than can be listed
        if isinstance(error, FileProblem):
            raise
        raise FileProblem(
            "the session file is damaged ({name})", _REMEDY, name=type(error).__name__
        ) from error


def _checked_members(archive: zipfile.ZipFile, largest: int) -> dict[str, zipfile.ZipInfo]:
    infos = archive.infolist()
    members = {info.filename: info for info in infos}
    if len(infos) > _MOST_MEMBERS or len(members) != len(infos):
        raise FileProblem("the session file holds too many files, or one twice", _REMEDY)
    for name, info in members.items():
        plain = name in ("session.json", "patient.npy", "residual.npy")
        if not plain and (not name.startswith("scan/") or harmless_name(name) != name.removeprefix("scan/")):
            raise FileProblem("the session file holds a file that does not belong there", _REMEDY)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FileProblem("the session file is compressed in another way than ours", _REMEDY)
        if info.flag_bits & 0x1 or info.file_size > _MOST_COMPRESSED * max(info.compress_size, 1024):
            raise FileProblem("the session file announces more than it can hold", _REMEDY)
    if sum(info.file_size for info in infos) > largest:
        raise FileProblem(
            "the session file unpacks to more than {most:,.0f} MB",
            "Start the explorer so that it takes larger files",
            code="unreadable/large-session",
            most=largest / 1024**2,
        )
    return members


def _content(archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], name: str) -> bytes:
    info = members.get(name)
    if info is None:
        raise FileProblem("the session file lacks {name}", _REMEDY, name=name)
    with archive.open(info) as stream:
        data = stream.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise FileProblem("the session file is damaged: a file in it is longer than announced", _REMEDY)
    return data


def _notes(data: bytes) -> dict[str, Any]:
    if len(data) > _LARGEST_NOTES:
        raise FileProblem("the notes of the session file are too large", _REMEDY)
    notes = json.loads(data)
    if not isinstance(notes, dict) or notes.get("kind") not in _KINDS:
        raise FileProblem("this is not a session file", "Give a file that the explorer saved")
    for part in ("edit", "prediction", "scan", "patient"):
        if not isinstance(notes.get(part), (dict, type(None))):
            raise FileProblem("the session file is damaged: {part}", _REMEDY, part=part)
    return notes


def _require_model(notes: dict[str, Any], model: str) -> None:
    wanted = notes["model"]
    if wanted.get("fingerprint") != model:
        name = str(wanted.get("name", "another model"))[:80]
        raise FileProblem(
            "the session was saved with another model ({name})",
            "Start the explorer with this model: {name}",
            code="other-model",
            name=name,
        )


def _scan(notes: dict[str, Any], files: dict[str, bytes]) -> tuple[str, bytes]:
    part = notes.get("scan")
    if part is None:
        return "", b""
    if part.get("file") not in files:
        raise FileProblem("the session file lacks its scan", _REMEDY)
    return str(part["file"]), _landmarks(part)


def _landmarks(part: dict[str, Any]) -> bytes:
    marks = part.get("landmarks")
    return json.dumps(marks).encode() if isinstance(marks, dict) else b""


def _patient(
    notes: dict[str, Any], archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], n_vertices: int
) -> SavedPatient | None:
    part, scan = notes.get("patient"), notes.get("scan")
    if part is None:
        return None
    if scan is None:
        raise FileProblem(
            "the session file has a patient's shape without the scan it was computed from",
            "Open the scan itself, and register it again",
        )
    how, used = part.get("how"), part if "landmarks" in part else scan  # kind 1 has those of the scan only
    shape = _array(_content(archive, members, "patient.npy"), (n_vertices, 3))
    if how not in ("registered", "fitted") or not np.isfinite(shape).all():
        raise FileProblem("the session file is damaged: the patient", _REMEDY)
    return SavedPatient(how, _landmarks(used), shape, printable(str(notes.get("version", "?")), 20))


def _array(data: bytes, shape: tuple[int, ...]) -> Floats:
    """An array of known shape; the header is looked at before memory is taken."""
    if len(data) > _LARGEST_ARRAY:
        raise FileProblem("an array in the session file is too large", _REMEDY)
    stream = io.BytesIO(data)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise FileProblem("the session file is damaged: an array", _REMEDY)
    found, _, dtype = np.lib.format.read_array_header_1_0(stream)
    if found != shape or dtype != np.dtype("<f8"):
        raise FileProblem("an array in the session file does not fit the model", _REMEDY)
    return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)


def _npy(array: Floats) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array, "<f8"), (1, 0), allow_pickle=False)
    return buffer.getvalue()
