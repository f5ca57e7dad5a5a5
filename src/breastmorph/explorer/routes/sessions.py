"""Sessions, jobs and files."""

from __future__ import annotations

from typing import Any

from breastmorph.explorer.answering import Asked, Created, Download


def create(asked: Asked) -> Created:
    """A new session with its state."""
    return Created({"session": asked.session.id, **asked.session.as_record()})


def state(asked: Asked) -> dict[str, Any]:
    """The whole state."""
    return asked.session.as_record()


def left(asked: Asked) -> None:
    """Its page is gone; a reload comes back at once."""
    asked.session.leave()


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
