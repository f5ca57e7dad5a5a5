"""Files to take home: meshes, measures, landmarks, pages for the clinic, and the session file."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from breastmorph.explorer.answers import bad_request
from breastmorph.explorer.asked import Asked, Download
from breastmorph.explorer.documents import (
    handout_file,
    landmark_file,
    measures_file,
    mesh_file,
    named,
    sheet,
    solid_file,
    textured_file,
)
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.open_scans import scan_files
from breastmorph.explorer.patients import comparer
from breastmorph.explorer.restoring import restore
from breastmorph.explorer.session_file import saved
from breastmorph.explorer.worker_calls import WorkerCalls

_HANDOUT = {
    "language": "en",
    "paper": "A4",
    "identifier": "",
    "date": "",
}  # what may be given, and what is usual
_LARGEST_PAGE = 64 * 1024  # bytes of the page's own notes


def mesh(asked: Asked) -> Download:
    """A shape as a mesh file."""
    values = asked.values
    plain = values.get("plain") is True
    return mesh_file(asked.session, asked.case, values.get("shape"), values.get("format"), plain=plain)


def textured(asked: Asked) -> Job:
    """OBJ with a picture of the skin; painted in the background."""
    session, case, spec = asked.session, asked.case, asked.values.get("shape")
    return _kept(asked, lambda job: textured_file(session, case, spec, job))


def solid(asked: Asked) -> Download:
    """A part of a plan: ``target``, ``side``, ``part`` and ``format``."""
    get = asked.values.get
    kind = get("format", "stl")
    return solid_file(asked.session, asked.case, get("target"), get("side"), get("part"), kind)


def measures(asked: Asked) -> Download:
    """A table of measures."""
    return measures_file(asked.session, asked.case, asked.values.get("shapes"))


def landmarks(asked: Asked) -> Download:
    """The landmarks of a scan."""
    key = asked.values.get("scan")
    if not isinstance(key, str):
        raise bad_request("say which scan")
    return landmark_file(asked.session, asked.session.open(key), asked.values.get("format", ".json"))


def page(asked: Asked) -> Job:
    """A page for the clinic; drawn in the background."""
    session, case, values = asked.session, asked.case, asked.values

    def draw(job: Job) -> tuple[str, bytes]:
        job.at("drawing", 0.2)
        return sheet(session, case, values.get("kind"), values.get("shape"))

    return _kept(asked, draw)


def handout(asked: Asked) -> Job:
    """The page to take home, of ``target`` where one is named, otherwise of ``shape``; drawn in the background."""
    session, case, values = asked.session, asked.case, asked.values
    given = {key: str(values.get(key) or default) for key, default in _HANDOUT.items()}
    if given["language"] not in ("en", "de") or given["paper"] not in ("A4", "Letter"):
        raise bad_request("the page is in English or German, on A4 or Letter")

    def draw(job: Job) -> tuple[str, bytes]:
        job.at("drawing", 0.2)
        return handout_file(session, case, values, given)

    return _kept(asked, draw)


def comparison(asked: Asked) -> Job:
    """The page of ``breastmorph compare`` of two open ``scans`` of one person, the earlier visit first."""
    session, keys = asked.session, asked.values.get("scans")
    if not isinstance(keys, list) or len(keys) != 2 or not all(isinstance(key, str) for key in keys):
        raise bad_request("a comparison is of two open scans")
    visits = [session.open(key) for key in keys]
    if all(visit.day for visit in visits):
        visits.sort(key=lambda visit: visit.day)
    template = session.view.template

    def draw(job: Job) -> tuple[str, bytes]:
        job.at("comparing the visits")
        with (
            tempfile.TemporaryDirectory(dir=session.folder, ignore_cleanup_errors=True) as place,
            WorkerCalls(comparer, session.explorer.settings.computing) as calls,
        ):
            folder = Path(place)
            files = [replace(scan_files(visit, folder), id=visit.name) for visit in visits]
            content = calls.call((template, files, folder), lambda: job.is_cancelled)
        return named(f"{visits[0].name}-comparison", ".html"), content

    return _kept(asked, draw)


def session(asked: Asked) -> Download:
    """The session file."""
    notes, name = asked.values.get("page"), asked.case.name
    if len(json.dumps(notes)) > _LARGEST_PAGE:
        raise bad_request("the page's notes are too long")
    content = saved(asked.session, asked.case, notes)
    return Download(named(f"{name}-session", ".zip") if name else "session.zip", "application/zip", content)


def reopen(asked: Asked) -> Job:
    """A session file; opened in the background."""
    session, file = asked.session, asked.file

    def work(job: Job) -> dict[str, Any]:
        try:
            return restore(session, file.path, job)
        finally:
            session.uploads.drop(file.id)

    return session.jobs.start("reopen", work)


def _kept(asked: Asked, make: Callable[[Job], tuple[str, bytes]]) -> Job:
    """Make a file, its name and content, in the background; the page fetches it by its id."""
    session = asked.session

    def work(job: Job) -> dict[str, Any]:
        kept = session.uploads.keep(*make(job))
        return {"file": kept.id, "name": kept.path.name}

    return session.jobs.start("sheet", work)
