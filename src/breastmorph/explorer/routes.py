"""What each endpoint does: thin functions that call the modules that know."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from breastmorph.explorer.answers import Spoken, as_record, bad_request, not_now, packed, unknown
from breastmorph.explorer.app import Asked, Created, Download
from breastmorph.explorer.jobs import Job, check_scans
from breastmorph.explorer.model_view import shape_of, skin_arrays
from breastmorph.explorer.open_scans import (
    NAME,
    Folders,
    OpenScan,
    ScanQueue,
    example_scan,
    find_on,
    open_upload,
    picked_vertices,
)
from breastmorph.explorer.patients import (
    ShownPatient,
    built_view,
    computed_patient,
    failure,
    quality_rows,
    register_scans,
    registered,
)
from breastmorph.explorer.picking import Picks, landmark_name, optional_landmark, side_or_none
from breastmorph.explorer.predicting import planned
from breastmorph.explorer.predicting import predict as predicted
from breastmorph.foundation.machine import cores
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.files import save_model
from breastmorph.scan.scan import SIDES

_NO_FOLDER = "Start with a folder of scans: breastmorph explore FOLDER"

# --------------------------------------------------------------------------------------------------------------------
# Sessions, jobs and files
# --------------------------------------------------------------------------------------------------------------------


def new_session(asked: Asked) -> Created:
    """A new session with its state."""
    return Created({"session": asked.session.id, **asked.session.as_record()})


def session_state(asked: Asked) -> dict[str, Any]:
    """The whole state; a page that is loaded again asks for it first."""
    asked.session.notice(loaded=True)
    return asked.session.as_record()


def left(asked: Asked) -> None:
    """Its page is gone; a reload comes back at once."""
    asked.session.leave()


def undo_step(asked: Asked) -> dict[str, Any]:
    """As before the last step."""
    return {"undone": asked.session.undo(), **asked.session.as_record()}


def redo_step(asked: Asked) -> dict[str, Any]:
    """The step that was undone last, again."""
    return {"redone": asked.session.redo(), **asked.session.as_record()}


def notes(asked: Asked) -> dict[str, Any]:
    """What the page's own controls show, as a step of its own or with the last one."""
    values = asked.values
    asked.session.take_notes(
        values.get("notes"), str(values.get("what")), joined=values.get("joined") is True
    )
    return asked.session.change_record()


def cases(asked: Asked) -> dict[str, Any]:
    """The list of open scans, and what can be undone."""
    return asked.session.change_record()


def switch(asked: Asked) -> dict[str, Any]:
    """Work on another scan, or on none."""
    key = asked.values.get("scan")
    asked.session.switch(key if isinstance(key, str) else "")
    return asked.session.as_record()


def rename(asked: Asked) -> dict[str, Any]:
    """Name, person and day of a scan."""
    asked.session.rename(asked.ids["scan"], asked.values)
    return asked.session.as_record()


def remove_scan(asked: Asked) -> dict[str, Any]:
    """Take a scan out of the list; it can be brought back for some minutes."""
    asked.session.remove(asked.ids["scan"])
    return asked.session.as_record()


def thumbnail(asked: Asked) -> None:
    """A small picture of a scan."""
    asked.session.take_thumbnail(asked.ids["scan"], asked.values.get("picture"))


def job(asked: Asked) -> dict[str, Any]:
    """How far a job is."""
    return asked.session.jobs.find(asked.ids["job"]).as_record()


def cancel(asked: Asked) -> dict[str, Any]:
    """Stop a job."""
    found = asked.session.jobs.find(asked.ids["job"])
    found.cancel()
    return found.as_record()


def add_file(asked: Asked) -> Created:
    """A companion of a mesh that comes next."""
    return Created({"file": asked.file.id})


def fetch_file(asked: Asked) -> Download:
    """A file that the server made."""
    name, content = asked.session.uploads.fetched(asked.ids["file"])
    return Download(name, "application/octet-stream", content)


# --------------------------------------------------------------------------------------------------------------------
# The model: geometry, maps, shapes, measures, editing, its landmarks
# --------------------------------------------------------------------------------------------------------------------


def model_state(asked: Asked) -> dict[str, Any]:
    """What the model is."""
    return asked.session.model_record()


def model_geometry(asked: Asked) -> bytes:
    """Mean, faces and modes."""
    return asked.session.view.geometry


def model_maps(asked: Asked) -> bytes:
    """Values per vertex."""
    return asked.session.view.maps


def shape(asked: Asked) -> bytes:
    """Any shape, where the page shows it."""
    found = shape_of(asked.session, asked.values.get("shape"))
    return packed({"vertices": found.to_shown.apply(found.vertices), **found.arrays})


def measures(asked: Asked) -> dict[str, Any]:
    """Measures of any shape, and how usual it is; a torso without one breast is not compared with whole ones."""
    session, view, spec = asked.session, asked.session.view, asked.values.get("shape", {})
    found = shape_of(session, spec)
    record = view.measures(found, tape=asked.values.get("tape") is True)
    if found.absent_side:
        return record | {"plausibility": None}
    kind = spec["kind"]
    scores = view.scores(spec.get("scores", [])) if kind == "model" else None
    edit = session.required_edit.edit if kind == "edit" else None
    return record | {"plausibility": view.standing(found.vertices, scores, edit)}


def features(asked: Asked) -> dict[str, Any]:
    """What can be edited."""
    base = asked.query.get("base", "mean")
    if base not in ("mean", "patient"):
        raise bad_request("editing starts from the mean or from the patient")
    return {"features": asked.session.editing(base).features(wait=base == "patient")}


def edit(asked: Asked) -> dict[str, Any]:
    """Fulfil wishes."""
    from breastmorph.explorer.editing import edit_shape

    return edit_shape(asked.session, asked.values).record


def forget_edit(asked: Asked) -> None:
    """Drop the edit."""
    asked.session.edited = None


def keep(asked: Asked) -> dict[str, Any]:
    """Keep a shape to compare with: what it was made of may change."""
    found = shape_of(asked.session, asked.values.get("shape"))
    asked.session.kept = replace(found, name=f"{found.name.removesuffix('-kept')}-kept")
    return {"name": asked.session.required_kept.name, "token": asked.session.as_record()["kept"]["token"]}


def forget_kept(asked: Asked) -> None:
    """Compare with nothing any more."""
    asked.session.kept = None


def use_landmarks(asked: Asked) -> dict[str, Any]:
    """Use what was picked on the mean as the model's landmarks."""
    session = asked.session
    view = session.view
    session.take_model(view.with_landmarks(picked_vertices(view, session.scan("mean"))), "model-landmarks")
    return session.model_record()


def model_file(asked: Asked) -> Download:
    """The model with the landmarks picked here."""
    session = asked.session
    with tempfile.TemporaryDirectory(dir=session.folder) as folder:
        path = Path(folder) / "model.h5"
        save_model(session.view.model, path)
        name = f"{Path(session.view.origin.name).stem.replace(' ', '-').lower()}.h5"
        return Download(name, "application/x-hdf5", path.read_bytes())


# --------------------------------------------------------------------------------------------------------------------
# Scans: the queue, uploads, picking, check, registration and fit
# --------------------------------------------------------------------------------------------------------------------


def queue(asked: Asked) -> dict[str, Any]:
    """The folder's scans and how far they are."""
    line = _queue(asked)
    background = _folders(asked).background(line)
    return line.as_record() | {"proposing": background.as_record() if background is not None else None}


def folders(asked: Asked) -> dict[str, Any]:
    """The folders of scans that can be opened."""
    return {"folders": _folders(asked).as_record(asked.session.queue)}


def open_folder(asked: Asked) -> dict[str, Any]:
    """Open one of them; scans of others that are worked on stay open."""
    asked.session.queue = _folders(asked).open(asked.values.get("folder"))
    return queue(asked)


def quality(asked: Asked) -> dict[str, Any]:
    """How good the registrations of the folder are."""
    return {"rows": quality_rows(_queue(asked))}


def build(asked: Asked) -> Job:
    """A model of the folder's registered scans; this tab then works with it."""
    session, line = asked.session, _queue(asked)
    if not any(row["registered"] for row in line.rows()):
        raise not_now("no scan of this folder is registered yet", "Register them first", code="nothing-ready")

    def work(job: Job) -> dict[str, Any]:
        view, left_out = built_view(session, line, job)
        job.settle()
        session.take_model(view, "model")
        return session.model_record() | {"left_out": left_out}

    return session.jobs.start("build", work)


def upload(asked: Asked) -> Created:
    """A mesh, with companions that came before; ``beside`` the scan that is worked on, or in its place."""
    companions = [one for one in asked.query.get("with", "").split(",") if one]
    return Created(open_upload(asked.session, asked.file, companions, "beside" in asked.query).as_record())


def example(asked: Asked) -> Created:
    """A synthetic scan with landmarks."""
    content, marks = example_scan()
    scan = open_upload(asked.session, asked.session.uploads.keep(NAME, content))
    with asked.session.step("points"):
        scan.picks = Picks.given(marks.transformed(scan.read.to_file.inverse()))
    return Created(scan.as_record())


def scan_state(asked: Asked) -> dict[str, Any]:
    """One scan."""
    return _scan(asked).as_record()


def scan_geometry(asked: Asked) -> bytes:
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


def propose(asked: Asked) -> Job:
    """Look for the landmarks of one scan; what a person has set stays."""
    session, scan = asked.session, _scan(asked)
    _require_proposals(asked)

    def work(job: Job) -> dict[str, Any]:
        find_on(session, scan, job)
        return scan.as_record()

    return session.jobs.start("propose", work, scan.key)


def confirm(asked: Asked) -> dict[str, Any]:
    """A person says yes to one proposed landmark, or to all."""
    name = asked.values.get("landmark")
    chosen = landmark_name(name) if name is not None else ""
    return _stepped(asked, lambda picks: picks.confirming(chosen))


def pick(asked: Asked) -> dict[str, Any]:
    """A click; the page says on which scan it was made, so that none lands on another patient's."""
    scan = _scan(asked)
    if asked.values.get("scan", scan.key) != scan.key:
        raise not_now(
            "this click was made on another scan", "Wait until the scan is shown", code="other-scan"
        )
    with asked.session.step("points"):
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
        with asked.session.step("points"):
            unknown_labels = scan.take(asked.file.path)
    finally:
        asked.session.uploads.drop(asked.file.id)
    return scan.as_record() | {"unknown_labels": unknown_labels}


def delete_scan(asked: Asked) -> None:
    """Close it for good."""
    asked.session.drop_scan(asked.ids["scan"])


def propose_queue(asked: Asked) -> dict[str, Any]:
    """Stop looking for landmarks in the background, or go on."""
    _require_proposals(asked)
    background = _folders(asked).background(_queue(asked))
    if asked.values.get("on") not in (True, False):
        raise bad_request("say whether to go on")
    if background is not None and asked.values["on"]:
        background.go_on()
    elif background is not None:
        background.stop()
    return queue(asked)


def accept_queue(asked: Asked) -> dict[str, Any]:
    """Say yes to the landmarks of all scans about which the program has no doubt."""
    return {"accepted": _queue(asked).accept_sure()} | queue(asked)


def check_queue(asked: Asked) -> Job:
    """Judge the scans that somebody worked on, and those that cannot be read; the others are not ready for it."""
    line, limits = _queue(asked), asked.session.explorer.settings.reading
    chosen = line.chosen(lambda row: row["status"] not in ("todo", "proposed") or bool(row["problem"]))
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
            f"landmarks are missing: {scan.picks.lacking[0]}".replace("_", " "),
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

    def work(job: Job) -> dict[str, Any]:
        jobs = max(1, min(cores() - 1, len(chosen)))  # one core stays with the page
        outcomes = register_scans(session, chosen, line.registration, job, jobs)
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
    return packed(arrays | skin_arrays(patient.patient.skin))


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
    own = asked.session.patient_of(asked.ids["scan"])  # whichever scan is worked on by now
    return own if own is not None else _from_folder(asked)


def _from_folder(asked: Asked) -> ShownPatient:
    session, scan = asked.session, _scan(asked)
    line = session.queue
    if scan.source != "queue" or line is None or not line.is_registered(scan.key):
        raise not_now("this scan is not registered yet", "Register it first", code="not-registered")
    return registered(session.view.model, scan, line.registration)


def _scan(asked: Asked) -> OpenScan:
    return asked.session.scan(asked.ids["scan"])


def _queue(asked: Asked) -> ScanQueue:
    found = asked.session.queue
    if found is None:
        raise unknown("folder", _NO_FOLDER, code="no-queue")
    return found


def _folders(asked: Asked) -> Folders:
    found = asked.session.explorer.folders
    if found is None:
        raise unknown("folder", _NO_FOLDER, code="no-queue")
    return found


def _require_proposals(asked: Asked) -> None:
    if not asked.session.explorer.settings.propose:
        raise not_now(
            "landmarks are set by hand here",
            "Start the explorer so that it proposes them, or set them here",
            code="by-hand",
        )


def _stepped(asked: Asked, change: Callable[[Picks], Picks]) -> dict[str, Any]:
    scan = _scan(asked)
    with asked.session.step("points"):
        scan.step(change)
    return scan.as_record()


# --------------------------------------------------------------------------------------------------------------------
# The patient: prediction of a missing breast
# --------------------------------------------------------------------------------------------------------------------


def predict(asked: Asked) -> Job:
    """Predict a side, or what is painted."""
    session = asked.session
    patient = session.required_patient

    def work(job: Job) -> dict[str, Any]:
        found = predicted(session, patient.patient, asked.values, job)
        session.take_prediction(found, patient, job)
        return found.record

    return session.jobs.start("predict", work, patient.scan)


def alternatives(asked: Asked) -> bytes:
    """For the sliders."""
    session = asked.session
    return session.required_prediction.alternatives(session.required_patient.to_shown)


def forget_prediction(asked: Asked) -> None:
    """Drop the prediction."""
    asked.session.predicted = None


# --------------------------------------------------------------------------------------------------------------------
# Planning: what is to be added or taken away, and cuts through any shapes
# --------------------------------------------------------------------------------------------------------------------

_MOST_CUT = 4  # shapes in one cut


def plan(asked: Asked) -> dict[str, Any]:
    """What is to be added or taken away to get to ``target``, by side."""
    found = planned(asked.session, asked.values.get("target"))
    return found.as_dict() | {"note": Spoken(found.note.name, found.note.values)}


def thickness(asked: Asked) -> bytes:
    """The same at every vertex of the target, mm."""
    return packed({"thickness": planned(asked.session, asked.values.get("target")).thickness})


def cuts(asked: Asked) -> dict[str, Any]:
    """The level and the upright cut through the nipple of ``side``, of some shapes; the last one says where it is.

    ``line_mm`` is in the upright frame of the patient, ``shown`` the same line where the page shows her.
    """
    from breastmorph.clinical.cuts import sections

    session, specs, side = asked.session, asked.values.get("shapes"), asked.values.get("side")
    if not isinstance(specs, list) or not 0 < len(specs) <= _MOST_CUT or side not in SIDES:
        raise bad_request(f"a cut goes through one to {_MOST_CUT} shapes, on the left or on the right")
    to_shown = session.patient.to_shown if session.patient is not None else Similarity()
    shapes = [shape_of(session, spec) for spec in specs]
    laid = {
        f"{k}": to_shown.inverse().apply(one.to_shown.apply(one.vertices)) for k, one in enumerate(shapes)
    }
    found = []
    for one in sections(session.view.model, laid, str(side)):
        record = one.as_dict()
        lines = [
            {**record["outlines"][key], "name": shape.name, "shown": to_shown.apply(one.outlines[key].line)}
            for key, shape in zip(laid, shapes, strict=True)
        ]
        found.append(record | {"outlines": lines})
    return {"sections": found}
