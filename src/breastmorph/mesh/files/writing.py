"""Files and folders out: a file is either there in full or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from breastmorph.errors import FileProblem


def write_file(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` in one step.

    The data go to a new file in the same folder that then takes the name, so that an interrupted run leaves
    the old file or none, never half a file.
    """
    target = Path(os.path.realpath(path))  # through a link, not over it
    part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        if target.is_dir():
            raise FileProblem("this is a folder, not a file", "Give the name of a file", path)
        if not target.parent.is_dir():
            raise FileProblem("the folder for this file does not exist", "Create it first", path)
        try:
            with open(part, "xb") as file:
                file.write(data)
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
    except FileProblem:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileProblem(
            f"the file cannot be written ({reason})", "Check the folder's permissions and free space", path
        ) from error


def make_folder(path: Path) -> None:
    """Make a folder and its parents where they do not exist yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or "unknown reason"
        raise FileProblem(f"the folder cannot be made ({reason})", "Choose another folder", path) from error
