"""Locks on files that the system gives back when the last process that owns them has ended, in whatever way."""

from __future__ import annotations

import errno
import os
import platform
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import reduction
from pathlib import Path
from typing import Any

from breastmorph.foundation.errors import FileProblem

_NAME = ".lock"
_PATIENCE = 3.0  # seconds: processes of a run that was killed a moment ago are still ending
_LOCKED_BYTE = 4096  # where the locked byte lies on Windows, so that the text before it can be read


@dataclass(frozen=True)
class FolderLock:
    """Owned as long as its file is open; a starting worker process that it is sent to owns it too."""

    descriptor: int | None

    def __reduce__(self) -> tuple[Any, ...]:
        if os.name == "nt" or self.descriptor is None:
            return FolderLock, (None,)
        return _received, (reduction.DupFd(self.descriptor),)


@contextmanager
def locked_folder(folder: Path) -> Iterator[FolderLock]:
    """Be the only run in a folder.

    Raises
    ------
    FileProblem
        Another run works in it, or the folder cannot be written to.
    """
    path = folder / _NAME
    with ExitStack() as stack:
        try:
            descriptor = stack.enter_context(locked_file(path, _PATIENCE))
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on {platform.node()}".encode())
        except TimeoutError as error:
            who = path.read_text(errors="replace")[:200]
            raise FileProblem(
                "another run works in this folder ({who})",
                "Wait for it to end, or choose another folder",
                folder,
                code="busy",
                who=who,
            ) from error
        except OSError as error:
            raise FileProblem(
                "the folder cannot be written to ({why})",
                "Check its permissions and free space, or choose another folder",
                folder,
                code="unwritable/folder",
                why=error.strerror,
            ) from error
        yield FolderLock(descriptor)


@contextmanager
def locked_file(path: Path, patience: float = float("inf")) -> Iterator[int]:
    """Hold the lock of a file, made where it does not exist; the value is its descriptor.

    Raises
    ------
    TimeoutError
        Others kept it for longer than ``patience`` seconds.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        until = time.monotonic() + patience
        while not _try(descriptor):
            if time.monotonic() > until:
                raise TimeoutError
            time.sleep(0.05)
        yield descriptor
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
            os.lseek(descriptor, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Some network storage knows no locks at all; then there is nothing to wait for.
        return error.errno not in (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
    return True


def _received(duplicate: Any) -> FolderLock:
    return FolderLock(duplicate.detach())
