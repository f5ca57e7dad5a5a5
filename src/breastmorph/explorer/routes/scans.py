"""Scans: the queue, uploads, picking, check, registration and fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from breastmorph.explorer.answering import Asked, Created, Download
from breastmorph.explorer.answers import as_record, not_now, packed, unknown
from breastmorph.explorer.jobs import Job, check_scans
from breastmorph.explorer.open_scans import NAME, OpenScan, ScanQueue, example_scan, open_upload
from breastmorph.explorer.patients import ShownPatient, computed_patient, failure, register_scans, registered
from breastmorph.explorer.picking import Picks, optional_landmark, side_or_none
from breastmorph.foundation.machine import cores


def queue(asked: Asked) -> dict[str, Any]:
    """The folder's scans and how far they are."""
    return _queue(asked).as_record()


def upload(asked: Asked) -> Created:
    """A mesh, with companions that came before."""
    companions = [one for one in asked.query.get("with", "").split(",") if one]
    return Created(open_upload(asked.session, asked.file, companions).as_record())


def example(asked: Asked) -> Created:
    """A synthetic scan with landmarks."""
    content, marks = example_scan()
    scan = open_upload(asked.session, asked.session.uploads.keep(NAME, content))
    scan.picks = Picks.given(marks.transformed(scan.read.to_file.inverse()))
    return Created(scan.as_record())


def state(asked: Asked) -> dict[str, Any]:
    """One scan."""
    return _scan(asked).as_record()


def geometry(asked: Asked) -> bytes:
    """What is shown of it."""
    return _scan(asked).geometry


def texture(asked: Asked) -> Download:
    """Its picture."""
    image = _scan(asked).read.image
    if not image:
        raise unknown("texture", "This scan has none", code="no-texture")
    is_jpeg = image[:2] == b"\xff\xd8"
    return Download(
        "texture.jpg" if is_jpeg else "texture.png", "image/jpeg" if is_jpeg else "image/png", image
    )


def pick(asked: Asked) -> dict[str, Any]:
    """A click; the page says on which scan it was made, so that none lands on another patient's."""
    scan = _scan(asked)
    if asked.values.get("scan", scan.key) != scan.key:
        raise not_now(
            "this click was made on another scan", "Wait until the scan is shown", code="other-scan"
        )
    moved = scan.pick(asked.values)
    return scan.as_record() | {"moved_mm": moved}


def undo(asked: Asked) -> dict[str, Any]:
    """The last step back."""
    return _stepped(asked, Picks.undone)


def absent(asked: Asked) -> dict[str, Any]:
    """A side without a breast."""
    side = side_or_none(asked.values.get("side"))
    return _stepped(asked, lambda picks: picks.without_side(side))


def skip(asked: Asked) -> dict[str, Any]:
    """An optional landmark that is not wanted."""
    name = optional_landmark(asked.values.get("landmark"))
    return _stepped(asked, lambda picks: picks.skipping(name))


def swap(asked: Asked) -> dict[str, Any]:
    """Left and right exchanged."""
    return _stepped(asked, Picks.swapped)


def landmarks(asked: Asked) -> dict[str, Any]:
    """A landmark file."""
    try:
        scan = _scan(asked)
        unknown_labels = scan.take(asked.file.path)
    finally:
        asked.session.uploads.drop(asked.file.id)
    return scan.as_record() | {"unknown_labels": unknown_labels}


def delete(asked: Asked) -> None:
    """Forget it."""
    asked.session.drop_scan(asked.ids["scan"])


def check_queue(asked: Asked) -> Job:
    """Judge the scans that somebody worked on, and those that cannot be read; the others are not ready for it."""
    line, limits = _queue(asked), asked.session.explorer.settings.reading
    chosen = line.chosen(lambda row: row["status"] != "todo" or bool(row["problem"]))
    if not chosen:
        raise not_now("no scan has landmarks yet", "Pick landmarks first", code="nothing-ready")

    def work(job: Job) -> dict[str, Any]:
        found = check_scans(chosen, limits, job)
        for one in found["checks"]:
            line.note_verdict(one["scan"], one["verdict"])
        return found

    return asked.session.jobs.start("check", work)


def register(asked: Asked) -> Job:
    """Register one scan; it becomes the patient."""
    scan = _scan(asked)
    if not scan.picks.complete:
        raise not_now(
            f"landmarks are missing: {scan.picks.next or 'sternum'}".replace("_", " "),
            "Pick them, or say that a breast is absent",
            code="missing-landmarks",
        )
    return _computing(asked, scan, "register")


def register_queue(asked: Asked) -> Job:
    """Register all scans of the folder whose landmarks are complete."""
    line, session = _queue(asked), asked.session
    chosen = list(line.chosen(lambda row: row["status"] == "done").values())
    if not chosen:
        raise not_now("no scan has all its landmarks yet", "Pick landmarks first", code="nothing-ready")
    limits, model = session.explorer.settings.computing, session.view.model

    def work(job: Job) -> dict[str, Any]:
        jobs = max(1, min(cores() - 1, len(chosen)))  # one core stays with the page
        outcomes = register_scans(model, chosen, line.registration, limits, job, jobs)
        return {
            "registered": [
                {"name": one.id, "error": as_record(failure(one)) if one.status == "failed" else None}
                for one in outcomes
            ]
        }

    return session.jobs.start("register", work)


def fit(asked: Asked) -> Job:
    """Fit the model to one scan; it becomes the patient."""
    return _computing(asked, _scan(asked), "fit")


def use(asked: Asked) -> dict[str, Any]:
    """A scan of the folder that was registered before becomes the patient, as its newest result is."""
    patient = _from_folder(asked)
    asked.session.take_patient(patient)
    return patient.as_record()


def result(asked: Asked) -> bytes:
    """The registered mesh where the scan is shown."""
    scan, patient = _scan(asked), _registered(asked)
    vertices = scan.read.to_file.inverse().apply(patient.patient.to_file.apply(patient.patient.shape))
    arrays = {"vertices": vertices, "faces": asked.session.view.model.faces, "residual": patient.residual}
    return packed(arrays)


def _computing(asked: Asked, scan: OpenScan, kind: str) -> Job:
    session = asked.session
    if scan.mesh_file is None:
        raise not_now("this is not a scan", "Choose a scan")

    def work(job: Job) -> dict[str, Any]:
        patient = computed_patient(session, scan, "fitted" if kind == "fit" else "registered", job)
        session.take_patient(patient, job)
        return patient.as_record()

    return session.jobs.start(kind, work, scan.key)


def _registered(asked: Asked) -> ShownPatient:
    session = asked.session
    if session.patient is not None and session.patient.scan == asked.ids["scan"]:
        return session.patient
    return _from_folder(asked)


def _from_folder(asked: Asked) -> ShownPatient:
    session, scan = asked.session, _scan(asked)
    line = session.explorer.queue
    if scan.source != "queue" or line is None or not line.is_registered(scan.key):
        raise not_now("this scan is not registered yet", "Register it first", code="not-registered")
    return registered(session.view.model, scan, line.registration)


def _scan(asked: Asked) -> OpenScan:
    return asked.session.scan(asked.ids["scan"])


def _queue(asked: Asked) -> ScanQueue:
    found = asked.session.explorer.queue
    if found is None:
        raise unknown("folder", "Start with a folder of scans: breastmorph explore FOLDER", code="no-queue")
    return found


def _stepped(asked: Asked, change: Callable[[Picks], Picks]) -> dict[str, Any]:
    scan = _scan(asked)
    scan.step(change)
    return scan.as_record()
