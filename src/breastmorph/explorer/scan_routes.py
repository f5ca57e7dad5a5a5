"""What is asked of one scan: opening, its landmarks, registration and fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from breastmorph.explorer import picking
from breastmorph.explorer.answers import not_now, packed, unknown
from breastmorph.explorer.app import Asked, Created, Download
from breastmorph.explorer.example import NAME, example_scan
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.open_scans import scan_record, taken_from, uploaded_case, with_proposal
from breastmorph.explorer.patients import ShownPatient, computed_patient, registered
from breastmorph.explorer.picks import Picks, landmark_name, optional_landmark, side_or_none
from breastmorph.explorer.proposing import found_on
from breastmorph.explorer.shapes import skin_arrays
from breastmorph.explorer.workspace import Case


def upload(asked: Asked) -> Created:
    """A mesh, with companions that came before; ``beside`` the scan that is worked on, or in its place."""
    companions = [file for file in asked.query.get("with", "").split(",") if file]
    case = uploaded_case(asked.session, asked.file, companions)
    asked.session.add(case, beside="beside" in asked.query)
    return Created(_record(asked, case.key))


def example(asked: Asked) -> Created:
    """A synthetic scan with landmarks."""
    content, marks = example_scan()
    session = asked.session
    case = uploaded_case(session, session.uploads.keep(NAME, content))
    session.add(case)
    own = marks.transformed(case.required_scan.read.to_file.inverse())
    session.change_picks(case.key, lambda _: Picks.given(own))
    return Created(_record(asked, case.key))


def scan_state(asked: Asked) -> dict[str, Any]:
    """One scan."""
    return _record(asked, asked.scanned.key)


def scan_geometry(asked: Asked) -> bytes:
    """What is shown of it."""
    return asked.scanned.required_scan.geometry


def texture(asked: Asked) -> Download:
    """Its picture."""
    image = asked.scanned.required_scan.read.image
    if not image:
        raise unknown("texture", "This scan has none", code="no-texture")
    kind = "jpg" if image[:2] == b"\xff\xd8" else "png"
    return Download(f"texture.{kind}", "image/jpeg" if kind == "jpg" else "image/png", image)


def propose(asked: Asked) -> Job:
    """Look for the landmarks of one scan; what a person has set stays."""
    session, case = asked.session, asked.scanned
    asked.require_proposals()

    def work(job: Job) -> dict[str, Any]:
        found = found_on(session, case, job)
        if found is not None:  # nothing is saved before a person says yes
            session.step(
                "propose", lambda now: now.with_case(with_proposal(now.case(case.key), found)), save=False
            )
        return _record(asked, case.key)

    return session.jobs.start("propose", work, case.key)


def confirm(asked: Asked) -> dict[str, Any]:
    """A person says yes to one proposed landmark, or to all."""
    name = asked.values.get("landmark")
    chosen = landmark_name(name) if name is not None else ""
    return _stepped(asked, lambda picks: picks.confirming(chosen))


def pick(asked: Asked) -> dict[str, Any]:
    """A click; the page says on which scan it was made, so that none lands on another patient's."""
    case, moved = asked.scanned, 0.0
    if asked.values.get("scan", case.key) != case.key:
        raise not_now(
            "this click was made on another scan", "Wait until the scan is shown", code="other-scan"
        )

    def place(picks: Picks) -> Picks:
        nonlocal moved
        found = picking.pick(case.required_scan.surface, picks, asked.values)
        moved = found.moved
        return picks.placed(found.landmark, found.point, found.front)

    return _stepped(asked, place) | {"moved_mm": moved}


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
    session = asked.session
    try:
        case = asked.scanned
        picks, unknown_labels = taken_from(case, asked.file.path)
        session.change_picks(case.key, lambda _: picks)
    finally:
        session.uploads.drop(asked.file.id)
    return _record(asked, case.key) | {"unknown_labels": unknown_labels}


def delete_scan(asked: Asked) -> None:
    """Close it for good."""
    asked.session.delete(asked.ids["scan"])


def register(asked: Asked) -> Job:
    """Register one scan; it becomes the patient."""
    picks = asked.scanned.picks
    if not picks.complete:
        raise not_now(
            "landmarks are missing: {name:landmark}",
            "Pick them, or say that a breast is absent",
            code="missing-landmarks",
            name=picks.lacking[0],
        )
    return _computing(asked, "register")


def fit(asked: Asked) -> Job:
    """Fit the model to one scan; it becomes the patient."""
    return _computing(asked, "fit")


def use(asked: Asked) -> dict[str, Any]:
    """A scan of the folder that was registered before becomes the patient, as its newest result is."""
    case = asked.scanned
    patient = _from_folder(asked, case)
    asked.session.take_patient(patient)
    return patient.as_record(case.name)


def result(asked: Asked) -> bytes:
    """The registered mesh where the scan is shown."""
    case = asked.scanned
    patient = case.patient if case.patient is not None else _from_folder(asked, case)
    to_shown = case.required_scan.read.to_file.inverse()
    vertices = to_shown.apply(patient.patient.to_file.apply(patient.patient.shape))
    arrays = {"vertices": vertices, "faces": asked.session.view.model.faces, "residual": patient.residual}
    return packed(arrays | skin_arrays(patient.patient.skin))


def _record(asked: Asked, key: str) -> dict[str, Any]:
    case = asked.session.workspace.case(key)
    return scan_record(case, has_result=asked.session.has_result(case))


def _stepped(asked: Asked, change: Callable[[Picks], Picks]) -> dict[str, Any]:
    key = asked.scanned.key
    asked.session.change_picks(key, change)
    return _record(asked, key)


def _computing(asked: Asked, kind: str) -> Job:
    session, case = asked.session, asked.scanned
    _ = case.required_scan.required_file

    def work(job: Job) -> dict[str, Any]:
        patient = computed_patient(session, case, "fitted" if kind == "fit" else "registered", job)
        session.take_patient(patient, job)
        return patient.as_record(case.name)

    return session.jobs.start(kind, work, case.key)


def _from_folder(asked: Asked, case: Case) -> ShownPatient:
    session, queue = asked.session, asked.session.queue
    if case.required_scan.source != "queue" or queue is None or not queue.is_registered(case.key):
        raise not_now("this scan is not registered yet", "Register it first", code="not-registered")
    return registered(session.view.model, case, queue.registration)
