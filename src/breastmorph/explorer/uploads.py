"""Files that visitors send, kept privately under harmless names."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from starlette.requests import ClientDisconnect, Request

from breastmorph.explorer.answers import RequestProblem, bad_request, unknown
from breastmorph.explorer.settings import MEGABYTE

_LONGEST_NAME = 100
_SPARE = 200 * MEGABYTE  # of disk that is never filled
_MOST_FILES = 3000
_WRITE = MEGABYTE  # bytes that are written at a time
_LONGEST_STEM = 160  # bytes: file systems count these, and results get longer names
# An OBJ file names its materials and pictures, so what does no harm (also accents of their own) is kept as it is.
_ALSO = set("._-() +,'&#@!~[]{}=;$^%`")
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


@dataclass(frozen=True)
class Upload:
    """A file that came.

    Attributes
    ----------
    id : str
    path : Path
        Its name is what the visitor called it, made harmless.
    size : int
    holder : int, optional
        See :func:`~breastmorph.explorer.uploads.without_name`.
    """

    id: str
    path: Path
    size: int
    holder: int | None = None

    def let_go(self) -> None:
        """After the path was deleted: end the content too."""
        if self.holder is not None:
            os.close(self.holder)


def harmless_name(name: str) -> str:
    """A file name without folders, control characters and hidden beginnings.

    Raises
    ------
    RequestProblem
        Nothing usable is left.
    """
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    kept = "".join(
        letter if letter.isalnum() or letter in _ALSO or unicodedata.combining(letter) else "_"
        for letter in last
    ).strip(" .")
    stem, dot, suffix = kept.rpartition(".")
    if not stem or not dot or not suffix.isalnum():
        raise bad_request("a file needs a name with an ending", "Name it for example torso.ply")
    short = stem[: _LONGEST_NAME - 12].encode()[:_LONGEST_STEM].decode(errors="ignore")
    return f"{short}.{suffix[:10]}"


async def body(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body of a request, piece by piece; refused as soon as it is known to be too large.

    Raises
    ------
    RequestProblem
        413 where it is larger than ``limit`` bytes.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise too_large(limit)
    seen = 0
    try:
        async for piece in request.stream():
            seen += len(piece)
            if seen > limit:
                raise too_large(limit)
            yield piece
    except ClientDisconnect:
        raise bad_request("the upload broke off", "Try again") from None


def too_large(limit: int) -> RequestProblem:
    """The refusal of a body that is too large."""
    return RequestProblem(
        413,
        "the file is larger than the {limit:,.0f} MB allowed",
        "Export a smaller file, for example one with fewer triangles",
        code="too-large",
        limit=limit / MEGABYTE,
    )


class UploadFolder:
    """The files of one session.

    Parameters
    ----------
    folder : Path
        A private one that exists.
    quota : int
        Bytes of all files together.
    """

    def __init__(self, folder: Path, quota: int) -> None:
        self.folder, self._quota = folder, quota
        self._files: dict[str, Upload] = {}

    async def receive(self, request: Request, name: str, limit: int) -> Upload:
        """Write a body to a new file; nothing is left of one that is refused."""
        from anyio import to_thread

        name = harmless_name(name)
        taken = sum(file.size for file in self._files.values())
        if len(self._files) >= _MOST_FILES or taken >= self._quota:
            raise RequestProblem(
                413, "this session holds too many files", "Close scans you no longer need", code="quota"
            )
        free = shutil.disk_usage(self.folder).free - _SPARE
        most = min(limit, self._quota - taken)
        if free < most // 8:
            raise RequestProblem(507, "the disk is nearly full", "Free some space", code="disk-full")
        path, size, waiting = self._place() / name, 0, bytearray()
        upload = Upload(secrets.token_urlsafe(12), path, 0)
        try:
            with open(path, "xb") as file:
                upload = replace(upload, holder=without_name(path, file))
                async for piece in body(request, min(most, max(free, 0))):
                    waiting += piece
                    size += len(piece)
                    if len(waiting) >= _WRITE:
                        await to_thread.run_sync(file.write, bytes(waiting))
                        waiting.clear()
                file.write(waiting)
            if not size:
                raise bad_request("the file is empty", "Choose another file")
        except BaseException:
            shutil.rmtree(path.parent, ignore_errors=True)
            upload.let_go()
            raise
        return self._listed(replace(upload, size=size))

    def keep(self, name: str, data: bytes) -> Upload:
        """A file that the server made, to be fetched later."""
        path = self._place() / harmless_name(name)
        with open(path, "xb") as file:
            holder = without_name(path, file)
            file.write(data)
        return self._listed(Upload(secrets.token_urlsafe(12), path, len(data), holder))

    def _place(self) -> Path:
        place = self.folder / f"u{secrets.token_hex(8)}"
        place.mkdir(mode=0o700)
        return place

    def _listed(self, upload: Upload) -> Upload:
        self._files[upload.id] = upload
        return upload

    def find(self, key: str) -> Upload:
        """A file of this session."""
        try:
            return self._files[key]
        except KeyError:
            raise unknown("file") from None

    def fetched(self, key: str) -> tuple[str, bytes]:
        """Name and content of a file, which goes: what has been fetched must not fill the session."""
        upload = self.find(key)
        content = upload.path.read_bytes()
        upload.path.unlink()
        self._files.pop(key).let_go()
        return upload.path.name, content

    def together(self, main: Upload, others: Sequence[str]) -> None:
        """Bring the files that one mesh needs (materials, pictures; by their ids) beside it."""
        for other in map(self.find, others):
            target = main.path.parent / other.path.name
            if target.exists():
                raise bad_request("two files are called {name}", "Rename one of them", name=target.name)
            self._files[other.id] = replace(other, path=other.path.rename(target))

    def drop(self, key: str) -> None:
        """Delete a file, and what was brought beside it."""
        upload = self._files.pop(key, None)
        if upload is None:
            return
        shutil.rmtree(upload.path.parent, ignore_errors=True)
        upload.let_go()
        for absent in [key for key, file in self._files.items() if not file.path.exists()]:
            self._files.pop(absent).let_go()

    def close(self) -> None:
        """Delete all files."""
        for key in list(self._files):
            self.drop(key)


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
