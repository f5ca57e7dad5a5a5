"""Scans: the queue, uploads, picking, check, registration and fit."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from breastmorph.explorer.answering import Asked, Created, Download
from breastmorph.explorer.arrays import packed
from breastmorph.explorer.checking import check_scans
from breastmorph.explorer.example_scan import NAME, example_scan
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.open_scan import OpenScan, optional_landmark, required_side
from breastmorph.explorer.opening import open_upload
from breastmorph.explorer.patients import (
    FitTask,
    ShownPatient,
    failure,
    fitted_patient,
    fitter,
    register_patient,
    register_scans,
    registered,
)
from breastmorph.explorer.picks import Picks, landmark_name
from breastmorph.explorer.problems import as_record, bad_request, not_now, unknown
from breastmorph.explorer.scan_queue import ScanQueue
from breastmorph.explorer.worker_calls import WorkerCalls
from breastmorph.machine import cores
from breastmorph.scan.folder import ScanFiles
from breastmorph.scan.landmarks import OPTIONAL


def queue(asked: Asked) -> dict[str, Any]:
    """The folder's scans and how far they are."""
    return _queue(asked).as_record()


def upload(asked: Asked) -> Created:
    """A mesh, with companions that came before."""
    session, file = asked.session, asked.file
    try:
        others = [session.uploads.find(one) for one in filter(None, asked.query.get("with", "").split(","))]
        path = session.uploads.together(file, others)
        scan = open_upload(session.explorer, path, file.path.stem)
        session.add_scan(scan, file.id)
    except BaseException:
        session.uploads.drop(file.id)
        raise
    return Created(scan.as_record())


def example(asked: Asked) -> Created:
    """A synthetic scan with landmarks, whole or with one side missing."""
    session, side = asked.session, required_side(asked.values.get("absent", ""))
    content, marks = example_scan(side)
    file = session.uploads.keep(NAME, content)
    try:
        scan = open_upload(session.explorer, file.path, file.path.stem)
        shown = marks.transformed(scan.read.to_file.inverse())
        scan.picks = Picks(dict(shown.items()), {}, side, frozenset(OPTIONAL))
        session.add_scan(scan, file.id)
    except BaseException:
        session.uploads.drop(file.id)
        raise
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
    picked = scan.pick(asked.values)
    return scan.as_record() | {"picked": picked.as_record()}


def undo(asked: Asked) -> dict[str, Any]:
    """The last step back."""
    return _stepped(asked, Picks.undone)


def clear(asked: Asked) -> dict[str, Any]:
    """Without one landmark, or without any."""
    name = asked.values.get("landmark")
    return _stepped(asked, lambda picks: picks.cleared(None if name is None else landmark_name(name, picks)))


def absent(asked: Asked) -> dict[str, Any]:
    """A side without a breast."""
    side = required_side(asked.values.get("side"))
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


def check(asked: Asked) -> Job:
    """Judge one scan."""
    session, scan = asked.session, _scan(asked)
    files = scan.files(session.folder)
    limits = session.explorer.settings.reading
    return session.jobs.start("check", lambda job: check_scans({scan.key: files}, limits, job)["checks"][0])


def check_queue(asked: Asked) -> Job:
    """Judge many scans: those whose landmarks were begun, and those that could not be opened."""
    line, limits = _queue(asked), asked.session.explorer.settings.reading
    chosen = dict(_chosen(asked)) if asked.values.get("scans") is not None else _to_check(line)

    def work(job: Job) -> dict[str, Any]:
        found = check_scans(chosen, limits, job)
        for one in found["checks"]:
            line.note_verdict(one["scan"], one["verdict"])
        return found

    return asked.session.jobs.start("check", work)


def register(asked: Asked) -> Job:
    """Register one scan; it becomes the patient."""
    session, scan = asked.session, _scan(asked)
    if not scan.picks.complete:
        raise not_now(
            f"landmarks are missing: {scan.picks.next or 'sternum'}".replace("_", " "),
            "Pick them, or say that a breast is absent",
            code="missing-landmarks",
        )
    files = scan.files(session.folder)
    line = session.explorer.queue
    out = line.registration if scan.source == "queue" and line else session.folder / f"registered-{scan.key}"
    limits, model = session.explorer.settings.registering, session.view.model

    def work(job: Job) -> dict[str, Any]:
        patient = register_patient(model, scan, files, out, limits, job)
        scan.registered = True
        session.take_patient(patient)
        return patient.as_record()

    return session.jobs.start("register", work)


def register_queue(asked: Asked) -> Job:
    """Register many scans of the folder."""
    chosen, line, session = _chosen(asked), _queue(asked), asked.session
    limits, model = session.explorer.settings.registering, session.view.model
    keys = {files.id: key for key, files in chosen.items()}

    def work(job: Job) -> dict[str, Any]:
        jobs = max(1, min(cores() - 1, len(chosen)))  # one core stays with the page
        outcomes = register_scans(model, list(chosen.values()), line.registration, limits, job, jobs)
        return {
            "registered": [
                {
                    "scan": keys[one.id],
                    "name": one.id,
                    "error": as_record(failure(one)) if one.status == "failed" else None,
                    "metrics": dict(one.record.get("metrics", {})),
                    "warnings": one.warnings,
                }
                for one in outcomes
            ]
        }

    return session.jobs.start("register", work)


def fit(asked: Asked) -> Job:
    """Fit the model to one scan; it becomes the patient."""
    session, scan = asked.session, _scan(asked)
    if scan.mesh_file is None:
        raise not_now("this is not a scan", "Choose a scan")
    mesh_file = scan.mesh_file
    marks = scan.files(session.folder).landmarks[0] if len(scan.picks.points) >= 3 else None
    model, origin = session.view.model, session.origin
    limits = session.explorer.settings.registering

    def work(job: Job) -> dict[str, Any]:
        begin = time.monotonic()
        job.at("fitting pose and shape", 0.1)
        with WorkerCalls(partial(fitter, origin), limits) as calls:
            found = calls.call(FitTask(mesh_file, marks), lambda: job.is_cancelled)
        job.at("laying it on the model", 0.95)
        patient = fitted_patient(model, scan, found, scan.picks.absent_side, time.monotonic() - begin)
        session.take_patient(patient)
        return patient.as_record()

    return session.jobs.start("fit", work)


def use(asked: Asked) -> dict[str, Any]:
    """A scan of the folder that was registered before becomes the patient."""
    patient = _registered(asked)
    asked.session.take_patient(patient)
    return patient.as_record()


def result(asked: Asked) -> bytes:
    """The registered mesh where the scan is shown."""
    scan, patient = _scan(asked), _registered(asked)
    vertices = scan.read.to_file.inverse().apply(patient.patient.to_file.apply(patient.patient.shape))
    arrays = {"vertices": vertices, "faces": asked.session.view.model.faces, "residual": patient.residual}
    return packed(arrays, patient.as_record())


def _registered(asked: Asked) -> ShownPatient:
    session, scan = asked.session, _scan(asked)
    if session.patient is not None and session.patient.scan == scan.key:
        return session.patient
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


def _chosen(asked: Asked) -> dict[str, ScanFiles]:
    """Scans of the queue that are named, or all whose landmarks are complete."""
    line, keys = _queue(asked), asked.values.get("scans")
    if keys is not None and (not isinstance(keys, list) or not all(isinstance(one, str) for one in keys)):
        raise bad_request("scans must be a list of keys")
    if keys is not None and any(key not in line.scans for key in keys):
        raise unknown("scan", code="no-scan")
    ready = {key: line.ready(key) for key in (line.scans if keys is None else keys)}
    chosen = {key: files for key, files in ready.items() if files is not None}
    if not chosen:
        raise not_now("no scan has all its landmarks yet", "Pick landmarks first", code="nothing-ready")
    return chosen


def _to_check(line: ScanQueue) -> dict[str, ScanFiles]:
    """Scans that somebody worked on, and those that cannot be read; the others are not ready to be judged."""
    worth = [row["scan"] for row in line.rows() if row["status"] != "todo" or row["problem"]]
    if not worth:
        raise not_now("no scan has landmarks yet", "Pick landmarks first", code="nothing-ready")
    return {key: line.with_landmarks(key) for key in worth}


def _stepped(asked: Asked, change: Any) -> dict[str, Any]:
    scan = _scan(asked)
    scan.step(change)
    return scan.as_record()
