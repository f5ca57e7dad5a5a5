"""How an explorer was started, and the folder that only its user may read."""

from __future__ import annotations

import ipaddress
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from breastmorph.foundation.machine import memory_share
from breastmorph.foundation.workers import Limits

# --------------------------------------------------------------------------------------------------------------------
# How an explorer is run: where it listens, and what visitors may use
# --------------------------------------------------------------------------------------------------------------------

MEGABYTE = 1024**2
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - all addresses, and which of them is this computer
READERS = 2  # files that are read at a time: a slow one must not hold up another tab
_MOST_MEMORY = 6 * 1024**3  # bytes


@dataclass(frozen=True)
class Settings:
    """All that can be set.

    Attributes
    ----------
    model : Path, optional
        A model file; the demo model when not given.
    folder : Path, optional
        Scans to pick landmarks on.
    propose : bool
        Whether the program looks for landmarks before a person sets them.
    host, port
        The address to listen on; port 0 takes a free one.
    patience : float
        Seconds in which a client must send ``slowest`` bytes for each of them, or the whole request.
    max_connections : int
        Beyond these, the one that has been silent longest is closed.
    """

    model: Path | None = None
    folder: Path | None = None
    propose: bool = True
    host: str = "127.0.0.1"
    port: int = 0
    max_upload: int = 500 * MEGABYTE
    max_json: int = 4 * MEGABYTE
    max_landmarks: int = 16 * MEGABYTE
    max_sessions: int = 16  # tabs
    max_scans: int = 100  # open in one session
    max_shown_faces: int = 220_000  # a finer scan is shown with fewer triangles
    idle: float = 3600.0  # seconds after which a session whose page asks nothing ends
    patience: float = 20.0
    slowest: int = 1000  # bytes in a second
    max_connections: int = 100
    modes: int = 12  # sent to the page
    reading: Limits = field(default_factory=lambda: Limits(seconds=120.0, memory=_reading_memory()))
    computing: Limits = field(default_factory=lambda: Limits(seconds=600.0))


def _reading_memory() -> int:
    """Bytes that reading one file may take, so that two can be read at a time beside everything else."""
    share = memory_share(READERS + 1)
    return _MOST_MEMORY if share is None else min(_MOST_MEMORY, share)


def is_loopback(host: str) -> bool:
    """Whether only this computer can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


# --------------------------------------------------------------------------------------------------------------------
# The folder for what visitors send: for this user only, and gone when its process is, however that ends
# --------------------------------------------------------------------------------------------------------------------

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
    """Take the name from a new file before anything is written, where the system has a second way to it.

    Returns
    -------
    holder : int, optional
        A descriptor: the path leads to the content until it is closed. Remove the path first, numbers come again. None
        where the file is as it was.
    """
    holder = os.dup(file.fileno())
    way = Path(f"/proc/{os.getpid()}/fd/{holder}")
    if not way.exists():  # not Linux
        os.close(holder)
        return None
    path.unlink()
    path.symlink_to(way)
    return holder


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
