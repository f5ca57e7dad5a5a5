"""Bringing a session back from its file: what was computed is computed again, so that nothing needs to be believed."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph import __version__
from breastmorph.errors import BreastMorphError, FileProblem
from breastmorph.explorer.editing import edit_shape
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.open_scan import OpenScan
from breastmorph.explorer.opening import open_upload
from breastmorph.explorer.patients import ShownPatient, computed_patient
from breastmorph.explorer.predicting import predict
from breastmorph.explorer.session_file import SavedPatient, SavedSession, fingerprint, opened

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session

_SAME = 0.1  # mm: what other hardware may change


def restore(session: Session, path: Path, job: Job) -> dict[str, Any]:
    """Open a session file in a session; returns the page's own notes, and what a user must know."""
    job.at("reading the session file", 0.05)
    model, largest = session.view.model, 2 * session.explorer.settings.max_upload
    found: SavedSession = session.explorer.reading.call(
        (opened, path, fingerprint(model), model.n_vertices, largest), lambda: job.is_cancelled
    )
    session.forget_patient()  # what comes back must not stand beside somebody else's results
    _take_landmark_ids(session, found)
    scan = None
    try:
        if found.scan_name:
            job.at("reading the scan", 0.2)
            scan = _open_scan(session, found)
        said = _compute_again(session, scan, found, job)
    except BaseException:  # no half of it stays
        session.forget_patient()
        if scan is not None:
            session.drop_scan(scan.key)
        raise
    return {"page": found.notes.get("page"), "said": said}


def _compute_again(session: Session, scan: OpenScan | None, found: SavedSession, job: Job) -> str:
    """Patient, edit and prediction; returns what a user must know."""
    saved, said, used = found.patient, "", b""
    if saved is not None and scan is not None:
        used = saved.landmarks
        if used:
            _take_landmarks(session, scan, used)
        said = _take_patient(session, scan, saved, job)
    if scan is not None and found.landmarks not in (b"", used):  # changed after the patient was computed
        _take_landmarks(session, scan, found.landmarks)
    if saved is not None and session.patient is None:
        return said
    edit, prediction = found.notes.get("edit"), found.notes.get("prediction")
    if edit is not None:
        job.at("editing", 0.8)
        edit_shape(session, edit)
    if prediction is not None:
        job.at("predicting", 0.9)
        session.predicted = predict(session, session.required_patient.patient, prediction, job)
    job.settle()
    return said


def _take_patient(session: Session, scan: OpenScan, saved: SavedPatient, job: Job) -> str:
    """Compute the patient of the scan with its landmarks; returns what a user must know."""
    try:
        patient = computed_patient(session, scan, saved.how, job)
    except BreastMorphError as error:  # the scan and its landmarks are worth having nevertheless
        return f"the patient could not be computed again: {error.cause}. {error.remedy}"
    said = _difference(saved, patient)
    if said:
        known = replace(patient.patient, warnings=(*patient.patient.warnings, said))
        patient = replace(patient, patient=known)
    session.take_patient(patient)
    return said


def _difference(saved: SavedPatient, patient: ShownPatient) -> str:
    """What to say where the saved shape is not the one that the scan gives."""
    off = float(np.linalg.norm(saved.shape - patient.patient.shape, axis=1).max())
    if off <= _SAME:
        return ""
    return (
        f"the shape in the session file is not what its scan and landmarks give (they differ by up to {off:.1f} mm), "
        "so the computed one is shown: the file was changed, or made by another version "
        f"(saved with {saved.version}, opened with {__version__})"
    )


def _take_landmark_ids(session: Session, found: SavedSession) -> None:
    ids = found.notes.get("landmark_ids")
    if not ids:
        return
    if not isinstance(ids, dict) or not all(type(vertex) is int for vertex in ids.values()):
        raise FileProblem("the session file is damaged: landmarks of the model", "Save the session again")
    session.take_landmarks(ids)


def _open_scan(session: Session, found: SavedSession) -> OpenScan:
    kept = {name: session.uploads.keep(name, data) for name, data in found.files.items()}
    main = kept.pop(found.scan_name)
    return open_upload(session, main, [one.id for one in kept.values()])


def _take_landmarks(session: Session, scan: OpenScan, landmarks: bytes) -> None:
    marks = session.folder / f"{secrets.token_hex(8)}.json"
    marks.write_bytes(landmarks)
    try:
        scan.take(marks)
    finally:
        marks.unlink()
