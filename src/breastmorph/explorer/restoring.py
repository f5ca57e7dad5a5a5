"""Bringing a session back from its file: what was computed is computed again, so that nothing needs to be believed."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breastmorph.errors import FileProblem
from breastmorph.explorer.editing import edit_shape
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.opening import open_upload
from breastmorph.explorer.predicting import predict
from breastmorph.explorer.session_file import SavedSession, opened, restored_patient

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session


def restore(session: Session, path: Path, job: Job) -> dict[str, Any]:
    """Open a session file in a session; returns the page's own notes."""
    job.at("reading the session file", 0.05)
    found = opened(path, session.view.model, 2 * session.explorer.settings.max_upload)
    session.forget_patient()  # what comes back must not stand beside somebody else's results
    _take_landmark_ids(session, found)
    key = ""
    if found.scan_name:
        job.at("reading the scan", 0.2)
        key = _open_scan(session, found)
    patient = restored_patient(found, session.view.model, key)
    if patient is not None:
        session.take_patient(patient)
    edit, prediction = found.notes.get("edit"), found.notes.get("prediction")
    if edit is not None:
        job.at("editing", 0.5)
        edit_shape(session, edit)
    if prediction is not None:
        job.at("predicting", 0.6)
        session.predicted = predict(session, session.required_patient.patient, prediction, job)
    return {"page": found.notes.get("page")}


def _take_landmark_ids(session: Session, found: SavedSession) -> None:
    ids = found.notes.get("landmark_ids")
    if not ids:
        return
    if not isinstance(ids, dict) or not all(type(vertex) is int for vertex in ids.values()):
        raise FileProblem("the session file is damaged: landmarks of the model", "Save the session again")
    session.take_landmarks(ids)


def _open_scan(session: Session, found: SavedSession) -> str:
    kept = {name: session.uploads.keep(name, data) for name, data in found.files.items()}
    main = kept.pop(found.scan_name)
    scan = open_upload(session, main, [one.id for one in kept.values()])
    if found.landmarks:
        marks = session.folder / f"{secrets.token_hex(8)}.json"
        marks.write_bytes(found.landmarks)
        try:
            scan.take(marks)
        except BaseException:
            session.drop_scan(scan.key)
            raise
        finally:
            marks.unlink()
    return scan.key
