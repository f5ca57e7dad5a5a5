"""Files and folders out: a file is either there in full or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from breastmorph.errors import BreastMorphError, FileProblem

PART_FILES = ".*.part"  # what a killed process may leave behind


def write_file(path: Path, data: bytes, like: Path | None = None) -> None:
    """Write ``data`` to ``path`` in one step.

    The data go to a new file in the same folder that then takes the name, so that an interrupted run leaves
    the old file or none, never half a file. Who may read it stays as it was; where there was none, as with the file
    ``like``, or as this process makes files.
    """
    write_files({path: data}, like=like)


def write_if_new(path: Path, data: bytes) -> None:
    """Write ``data`` where the file does not hold them already: its date then tells when it changed."""
    with suppress(OSError):  # not there yet, or not to be read
        if path.read_bytes() == data:
            return
    write_file(path, data)


def write_files(
    files: Mapping[Path, bytes], instead_of: Iterable[Path] = (), like: Path | None = None
) -> None:
    """Write several files that belong together.

    All data are safely on the disk before anything changes: with a full disk the old files stay as they were.
    Then the files in ``instead_of`` are removed, and the new ones take their names in the order given.
    """
    parts: dict[Path, tuple[Path, Path]] = {}
    try:
        for path, data in files.items():
            with problems_at(path):
                target = Path(os.path.realpath(path))  # through a link, not over it
                if target.is_dir():
                    raise FileProblem("this is a folder, not a file", "Give the name of a file", path)
                if not target.parent.is_dir():
                    raise FileProblem("the folder for this file does not exist", "Create it first", path)
                part = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
                parts[path] = part, target
                old = target if target.exists() else like
                with open(part, "xb", opener=_private if old else None) as file:
                    if old is not None:
                        _share_like(part, old.stat())
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())  # or a power failure could leave the name without the data
        for path in instead_of:
            with problems_at(path):
                path.unlink(missing_ok=True)
        for path, (part, target) in parts.items():
            with problems_at(path):
                os.replace(part, target)
    finally:
        for part, _ in parts.values():
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _share_like(part: Path, old: os.stat_result) -> None:
    """Let those read a new file who might read the old one."""
    if os.name != "posix":  # elsewhere these rights come with the folder
        return
    for owner in (old.st_uid, -1):  # only the administrator can make files of others
        with suppress(OSError):
            os.chown(part, owner, old.st_gid)
            break
    is_same_group = part.stat().st_gid == old.st_gid
    with suppress(OSError):  # a disk that knows no rights
        part.chmod(stat.S_IMODE(old.st_mode) & (0o777 if is_same_group else 0o707))


def make_folder(path: Path) -> None:
    """Make a folder and its parents where they do not exist yet."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or "unknown reason"
        raise FileProblem(
            f"the folder cannot be made ({reason})", "Choose another folder", path, code="unwritable"
        ) from error


@contextmanager
def problems_at(path: Path) -> Iterator[None]:
    """Turn what the system says against writing a file into an error of ours that names it."""
    try:
        yield
    except BreastMorphError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise FileProblem(
            f"the file cannot be written ({reason})",
            "Check the folder's permissions and free space",
            path,
            code="unwritable",
        ) from error
