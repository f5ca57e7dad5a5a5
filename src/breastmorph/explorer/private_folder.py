"""The folder for what visitors send: for this user only, and gone when its process is."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_NAME = re.compile(r"breastmorph-(\d+)-\w+")


def private_folder() -> Path:
    """A new folder that only this user can read; what processes left behind that were killed is deleted first."""
    delete_left_over()
    return Path(tempfile.mkdtemp(prefix=f"breastmorph-{os.getpid()}-"))


def delete_left_over() -> None:
    """Delete folders of this user whose process is no more: a scan of a patient must not stay behind."""
    if os.name != "posix":  # elsewhere there is no harmless way to ask whether a process lives
        return
    for path in Path(tempfile.gettempdir()).glob("breastmorph-*"):
        found = _NAME.fullmatch(path.name)
        if found is None or _lives(int(found[1])):
            continue
        with suppress(OSError):  # another process may be faster
            if not path.is_symlink() and path.stat().st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is somebody else's
        return True
    return True
