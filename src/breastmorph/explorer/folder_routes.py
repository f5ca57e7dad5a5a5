"""What is asked of the folders of scans: proposing, checking and registering all of them, quality, a model of them."""

from __future__ import annotations

from typing import Any

from breastmorph.explorer.answers import bad_request, error_record, not_now, unknown
from breastmorph.explorer.asked import Asked
from breastmorph.explorer.checking import check_scans
from breastmorph.explorer.folder_results import built_view, quality_rows
from breastmorph.explorer.folders import Folders, ScanQueue
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.patients import failure, register_scans
from breastmorph.foundation.language import N_
from breastmorph.foundation.machine import cores

_NO_FOLDER = N_("Start with a folder of scans: breastmorph explore FOLDER")


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


def propose_queue(asked: Asked) -> dict[str, Any]:
    """Stop looking for landmarks in the background, or go on."""
    asked.require_proposals()
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
    """Judge the scans that have landmarks, and those that cannot be read; the others are not ready for it."""
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
                {"name": one.id, "error": error_record(failure(one)) if one.status == "failed" else None}
                for one in outcomes
            ]
        }

    return session.jobs.start("register", work)


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
