"""What is asked of a tab as a whole: its state, steps, cases, jobs and files."""

from __future__ import annotations

from typing import Any

from breastmorph.explorer.app import Asked, Created, Download


def new_session(asked: Asked) -> Created:
    """A new session with its state."""
    return Created({"session": asked.session.id, **asked.session.as_record()})


def session_state(asked: Asked) -> dict[str, Any]:
    """The whole state; a page that is loaded again asks for it first."""
    return asked.session.as_record()


def left(asked: Asked) -> None:
    """Its page was closed; a reload asks again at once."""
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
    asked.session.rename(asked.ids["scan"], dict(asked.values))
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
