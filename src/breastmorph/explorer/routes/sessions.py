"""Sessions, jobs and files."""

from __future__ import annotations

from typing import Any

from breastmorph.explorer.answering import Asked, Created, Download
from breastmorph.explorer.jobs import Job

_MEDIA = {".png": "image/png", ".csv": "text/csv; charset=utf-8", ".zip": "application/zip"}


def create(asked: Asked) -> Created:
    """A new session with its state."""
    return Created({"session": asked.session.id, **asked.session.as_record()})


def state(asked: Asked) -> dict[str, Any]:
    """The whole state."""
    return asked.session.as_record()


def delete(asked: Asked) -> None:
    """End the session."""
    asked.session.explorer.close(asked.session)


def job(asked: Asked) -> dict[str, Any]:
    """How far a job is."""
    return asked.session.jobs.find(asked.ids["job"]).as_record()


def cancel(asked: Asked) -> dict[str, Any]:
    """Stop a job."""
    found: Job = asked.session.jobs.find(asked.ids["job"])
    found.cancel()
    return found.as_record()


def add_file(asked: Asked) -> Created:
    """A companion of a mesh that comes next."""
    return Created({"file": asked.file.id, "name": asked.file.name})


def fetch_file(asked: Asked) -> Download:
    """A file that the server made."""
    found = asked.session.uploads.find(asked.ids["file"])
    media = _MEDIA.get(found.path.suffix, "application/octet-stream")
    return Download(found.name, media, found.path.read_bytes())
