"""The folder for what visitors send: for this user only, and deleted when its process ends, however that happens."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

_PATIENCE = 10.0  # seconds that the watcher has to end
# Its input ends with us. Windows deletes no file that another process, about to end too, has open: so it tries again.
_WATCH = """
import os, shutil, sys, time
folder = os.fsdecode(sys.stdin.buffer.readline()[:-1])
sys.stdin.buffer.read()
end = time.monotonic() + 60.0
while os.path.exists(folder) and time.monotonic() < end:
    shutil.rmtree(folder, ignore_errors=True)
    time.sleep(0.05)
"""
_NAME = re.compile(r"breastmorph-(\d+)-\w+")


class PrivateFolder:
    """A new folder that only this user can read; what is left of processes that were killed is deleted first.

    Attributes
    ----------
    path : Path
    """

    def __init__(self) -> None:
        delete_left_over()
        self.path = Path(tempfile.mkdtemp(prefix=f"breastmorph-{os.getpid()}-"))
        # Neither Ctrl-C nor the end of the terminal nor a signal for our whole group shall reach it.
        apart = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0) | getattr(
            subprocess, "CREATE_NO_WINDOW", 0
        )
        self._watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WATCH],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.path.parent,
            start_new_session=True,
            creationflags=apart,
        )
        self._end = self._watcher.stdin
        assert self._end is not None  # noqa: S101 - it is a pipe
        self._end.write(os.fsencode(self.path) + b"\n")
        self._end.flush()

    def delete(self) -> None:
        """Delete the folder and all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._end is not None:
            self._end.close()
        with suppress(subprocess.TimeoutExpired):
            self._watcher.wait(_PATIENCE)


def without_name(path: Path, file: BinaryIO) -> int | None:
    """Take the name from a new file before anything is written, where the system has a second path to it.

    Returns
    -------
    holder : int, optional
        A descriptor: the path leads to the content until it is closed. Remove the path first, numbers come again. None
        where the file is as it was.
    """
    holder = os.dup(file.fileno())
    second = Path(f"/proc/{os.getpid()}/fd/{holder}")
    if not second.exists():  # not Linux
        os.close(holder)
        return None
    path.unlink()
    path.symlink_to(second)
    return holder


def delete_left_over() -> None:
    """Delete folders of this user whose process is no more: a scan of a patient must not stay behind."""
    if os.name != "posix":  # elsewhere one cannot ask without harm whether a process lives
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
    except OSError:  # it is another user's
        return True
    return True
