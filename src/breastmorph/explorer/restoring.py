"""Bringing a session back from its file: what was computed is computed again, so that nothing needs to be believed."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph import __version__
from breastmorph.explorer.answers import sentences
from breastmorph.explorer.editing import edit_shape
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.open_scans import taken_from, uploaded_case
from breastmorph.explorer.patients import ShownPatient, computed_patient
from breastmorph.explorer.predicting import predict_patient
from breastmorph.explorer.session_file import SavedPatient, SavedSession, fingerprint, opened
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.messages import Finding, Message, warning

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
    session.begin_anew()  # what comes back must not stand beside another patient's results
    _take_landmark_ids(session, found)
    key = ""
    try:
        if found.scan_name:
            job.at("reading the scan", 0.2)
            key = _open_scan(session, found)
        notices = _compute_again(session, key, found, job)
    except BaseException:  # no half of it stays
        session.begin_anew()
        if key:
            session.delete(key)
        raise
    return {"page": found.notes.get("page"), "said": notices}


def _compute_again(session: Session, key: str, found: SavedSession, job: Job) -> list[Message]:
    """Patient, edit and prediction of the case; returns what a user must know."""
    saved, notices, used = found.patient, list[Message](), b""
    if saved is not None and key:
        used = saved.landmarks
        if used:
            _take_landmarks(session, key, used)
        notices = _take_patient(session, key, saved, job)
    if key and found.landmarks not in (b"", used):  # changed after the patient was computed
        _take_landmarks(session, key, found.landmarks)
    case = session.workspace.case(key)
    if saved is not None and case.patient is None:
        return notices
    edit, prediction = found.notes.get("edit"), found.notes.get("prediction")
    if edit is not None:
        job.at("editing", 0.8)
        edited = edit_shape(session, case, edit)
        session.step("edit", lambda now: now.changed(key, edited=edited))
    if prediction is not None and prediction.get("earlier"):
        # The file holds the patient's scan alone.
        notices.append(
            Message(
                "the breast was predicted by an earlier scan, which a session file does not hold: predict it again"
            )
        )
    elif prediction is not None:
        job.at("predicting", 0.9)
        predicted = predict_patient(session, case, prediction, job)
        session.step("predict", lambda now: now.changed(key, predicted=predicted))
    job.settle()
    return notices


def _take_patient(session: Session, key: str, saved: SavedPatient, job: Job) -> list[Message]:
    """Compute the patient of the scan with its landmarks; returns what a user must know."""
    try:
        patient = computed_patient(session, session.workspace.case(key), saved.how, job)
    except BreastMorphError as error:  # the scan and its landmarks are worth having nevertheless
        return [
            Message("the patient could not be computed again: {why}. {why:remedy}", {"why": error.finding})
        ]
    different = _difference(saved, patient)
    known = replace(patient.patient, warnings=(*patient.patient.warnings, *different))
    session.take_patient(replace(patient, patient=known))
    return sentences(different)


def _difference(saved: SavedPatient, patient: ShownPatient) -> list[Finding]:
    """A warning where the saved shape is not the one that the scan gives."""
    off = float(np.linalg.norm(saved.shape - patient.patient.shape, axis=1).max())
    if off <= _SAME:
        return []
    return [
        warning(
            "session-differs",
            "the shape in the session file is not what its scan and landmarks give (they differ by "
            "up to {off:.1f} mm), so the computed one is shown: the file was changed, or made by "
            "another version (saved with {saved}, opened with {opened})",
            off=off,
            saved=saved.version,
            opened=__version__,
        )
    ]


def _take_landmark_ids(session: Session, found: SavedSession) -> None:
    ids = found.notes.get("landmark_ids")
    if not ids:
        return
    if not isinstance(ids, dict) or not all(type(vertex) is int for vertex in ids.values()):
        raise FileProblem("the session file is damaged: landmarks of the model", "Save the session again")
    session.take_model(session.view.with_landmarks(ids), "model-landmarks")


def _open_scan(session: Session, found: SavedSession) -> str:
    kept = {name: session.uploads.keep(name, data) for name, data in found.files.items()}
    main = kept.pop(found.scan_name)
    case = uploaded_case(session, main, [file.id for file in kept.values()])
    session.add(case)
    return case.key


def _take_landmarks(session: Session, key: str, landmarks: bytes) -> None:
    marks = session.folder / f"{secrets.token_hex(8)}.json"
    marks.write_bytes(landmarks)
    try:
        picks, _ = taken_from(session.workspace.case(key), marks)
        session.step("points", lambda now: now.changed(key, picks=picks))
    finally:
        marks.unlink()
