"""What is asked of the folders of scans: proposing, checking and registering all of them, quality, a model of them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.batch.summary import summarise
from breastmorph.explorer.answers import bad_request, error_record, finding_record, not_now, unknown
from breastmorph.explorer.app import Asked
from breastmorph.explorer.folders import Folders, ScanQueue
from breastmorph.explorer.jobs import Job, WorkerCalls
from breastmorph.explorer.model_view import ModelOrigin, ModelView
from breastmorph.explorer.patients import failure, register_scans
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.language import N_
from breastmorph.foundation.machine import cores
from breastmorph.foundation.messages import Finding
from breastmorph.scan.check import ScanFiles
from breastmorph.scan.scan import Verdict

_NO_FOLDER = N_("Start with a folder of scans: breastmorph explore FOLDER")
_SHOWN = ("distance_inside", "distance_outside", "overlap")  # figures of quality on the page


def queue(asked: Asked) -> dict[str, Any]:
    """The folder's scans and how far they are."""
    scans = _queue(asked)
    background = _folders(asked).background(scans)
    return scans.as_record() | {"proposing": background.as_record() if background is not None else None}


def folders(asked: Asked) -> dict[str, Any]:
    """The folders of scans that can be opened."""
    return {"folders": _folders(asked).as_record(asked.session.queue)}


def open_folder(asked: Asked) -> dict[str, Any]:
    """Open one of them; scans of others that are worked on stay open."""
    asked.session.queue = _folders(asked).open(asked.values.get("folder"))
    return queue(asked)


def quality(asked: Asked) -> dict[str, Any]:
    """One row for each scan of the folder that was registered or refused: figures, what is unusual, warnings."""
    scans = _queue(asked)
    folder, keys = RegisteredFolder(scans.registration), {files.id: key for key, files in scans.scans.items()}
    by_id = {outcome.id: outcome for outcome in folder.outcomes() if outcome.id in keys}
    found = []
    for row in summarise(by_id.values()):
        outcome = by_id[row.id]
        failed = row.status == "failed"
        found.append(
            {
                "scan": keys[row.id],
                "name": row.id,
                "failed": finding_record(outcome.why) if failed else None,
                "figures": {name: row.figures.get(name) for name in _SHOWN},
                "flags": [flag.figure for flag in row.flags],
                "absent_side": outcome.record.get("absent_side", ""),
                "warnings": [] if failed else [finding_record(finding) for finding in outcome.findings],
            }
        )
    return {"rows": found}


def build(asked: Asked) -> Job:
    """A model of the folder's registered scans; this tab then works with it."""
    session, scans = asked.session, _queue(asked)
    if not any(row["registered"] for row in scans.rows()):
        raise not_now("no scan of this folder is registered yet", "Register them first", code="nothing-ready")

    def work(job: Job) -> dict[str, Any]:
        job.at("reading the registered scans")
        place = Path(tempfile.mkdtemp(prefix="model-", dir=session.folder))
        origin = ModelOrigin(place / f"{scans.folder.resolve().name or 'folder'}.h5", is_built=True)
        with WorkerCalls(builder, session.explorer.settings.computing) as calls:
            left_out: list[str] = calls.call((scans.registration, origin.path), lambda: job.is_cancelled)
        job.at("preparing the model")
        model = origin.load()
        view = ModelView(origin, model, min(session.explorer.settings.modes, model.n_components))
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
    scans, limits = _queue(asked), asked.session.explorer.settings.reading
    chosen = scans.chosen(lambda row: row["status"] not in ("todo", "proposed") or bool(row["problem"]))
    if not chosen:
        raise not_now("no scan has landmarks yet", "Pick landmarks first", code="nothing-ready")

    def work(job: Job) -> dict[str, Any]:
        checks: list[dict[str, Any]] = []
        with WorkerCalls(checker, limits) as calls:
            for k, (key, files) in enumerate(chosen.items()):
                job.at(files.id, k / len(chosen))
                verdict: str
                findings: tuple[Finding, ...]
                try:
                    verdict, findings = calls.call(files, lambda: job.is_cancelled)
                except BreastMorphError as error:  # one that crashes its process is refused, the others go on
                    verdict, findings = "refused", (error.finding,)
                records = [finding_record(finding) for finding in findings]
                checks.append({"scan": key, "name": files.id, "verdict": verdict, "findings": records})
        for check in checks:
            scans.note_verdict(check["scan"], check["verdict"])
        return {"checks": checks}

    return asked.session.jobs.start("check", work)


def register_queue(asked: Asked) -> Job:
    """Register all scans of the folder whose landmarks are complete."""
    scans, session = _queue(asked), asked.session
    chosen = list(scans.chosen(lambda row: row["status"] == "done").values())
    if not chosen:
        raise not_now("no scan has all its landmarks yet", "Pick landmarks first", code="nothing-ready")

    def work(job: Job) -> dict[str, Any]:
        jobs = max(1, min(cores() - 1, len(chosen)))  # one core stays with the page
        outcomes = register_scans(session, chosen, scans.registration, job, jobs)
        return {
            "registered": [
                {
                    "name": outcome.id,
                    "error": error_record(failure(outcome)) if outcome.status == "failed" else None,
                }
                for outcome in outcomes
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


def checker() -> Callable[[ScanFiles], tuple[Verdict, tuple[Finding, ...]]]:
    """Setup of a checking process."""
    from breastmorph.scan.check import check_scan
    from breastmorph.template import default_template

    upright = default_template().as_reference

    def judge(files: ScanFiles) -> tuple[Verdict, tuple[Finding, ...]]:
        found = check_scan(files, None, upright)
        return found.verdict, found.findings

    return judge


def builder() -> Callable[[tuple[Path, Path]], list[str]]:
    """Setup of a process that builds a model: of a registered folder, into a file beside which there is room."""
    from breastmorph.cohort import load_cohort
    from breastmorph.model.files import save_model
    from breastmorph.usecases.build import BuildRequest, Subjects, build

    def work(asked: tuple[Path, Path]) -> list[str]:
        folder, target = asked
        cohort = load_cohort(folder, packed_in=target.parent / "cohort")
        built = build(BuildRequest(Subjects(cohort)))
        save_model(built.model, target)
        shutil.rmtree(target.parent / "cohort", ignore_errors=True)
        return list(built.left_out.get("absent breast", ()))

    return work
