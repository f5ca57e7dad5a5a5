"""Files to take home, and the session file."""

from __future__ import annotations

import json
from typing import Any

from breastmorph.explorer.answering import Asked, Download
from breastmorph.explorer.answers import bad_request
from breastmorph.explorer.downloads import landmark_file, measures_file, mesh_file, sheet
from breastmorph.explorer.jobs import Job
from breastmorph.explorer.session_file import restore, saved

_LARGEST_PAGE = 64 * 1024  # bytes of the page's own notes


def mesh(asked: Asked) -> Download:
    """A shape as a mesh file."""
    return Download(*mesh_file(asked.session, asked.values.get("shape"), asked.values.get("format")))


def measures(asked: Asked) -> Download:
    """A table of measures."""
    return Download(*measures_file(asked.session, asked.values.get("shapes")))


def landmarks(asked: Asked) -> Download:
    """The landmarks of a scan."""
    key = asked.values.get("scan")
    if not isinstance(key, str):
        raise bad_request("say which scan")
    return Download(
        *landmark_file(asked.session, asked.session.scan(key), asked.values.get("format", ".json"))
    )


def page(asked: Asked) -> Job:
    """A page for the clinic; drawn in the background."""
    session, values = asked.session, asked.values

    def work(job: Job) -> dict[str, Any]:
        job.at("drawing", 0.2)
        name, content = sheet(session, values.get("kind"), values.get("shape"))
        kept = session.uploads.keep(name, content)
        return {"file": kept.id, "name": kept.path.name}

    return session.jobs.start("sheet", work)


def session(asked: Asked) -> Download:
    """The session file."""
    notes = asked.values.get("page")
    if len(json.dumps(notes)) > _LARGEST_PAGE:
        raise bad_request("the page's notes are too long")
    return Download("session.zip", "application/zip", saved(asked.session, notes))


def reopen(asked: Asked) -> Job:
    """A session file; opened in the background."""
    session, file = asked.session, asked.file

    def work(job: Job) -> dict[str, Any]:
        try:
            return restore(session, file.path, job)
        finally:
            session.uploads.drop(file.id)

    return session.jobs.start("reopen", work)
