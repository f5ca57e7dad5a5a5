"""Files below every format: reading with limits, writing whole or not at all, locks, JSON and CSV."""

from __future__ import annotations

import codecs
import csv
import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.language import N_
from breastmorph.foundation.messages import Message
from breastmorph.foundation.text import shown

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a table program would compute
_ESCAPES = re.compile(r"\\(?:ud[89ab]..\\ud[c-f]..|(ud[89a-f]..)|.)")  # in JSON: pairs, lone halves, others


def plain(value: Any) -> Any:
    """A value as JSON will give it back: lists, texts and numbers, None for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (np.ndarray, np.generic)):
        # Whole arrays at once: one value at a time takes seconds.
        whole = value.tolist()
        return whole if value.dtype.kind != "f" or np.isfinite(value).all() else plain(whole)
    return value


def json_text(value: Any) -> str:
    """A value as JSON in ASCII; names in it that are no text are :func:`shown`, as strict readers want it."""
    return _ESCAPES.sub(_whole, json.dumps(value, indent=1))


def _whole(escape: re.Match[str]) -> str:
    return shown(chr(int(escape[1][1:], 16))) if escape[1] else escape[0]


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV below a line of the columns' names, without a cell that a table program takes for a formula.

    Names come from files of others: ``=1+1`` is written as ``'=1+1``, numbers stay as they are.
    """
    cells = ([_cell(row.get(column, "")) for column in columns] for row in rows)
    return "".join(map(_line, [columns, *cells]))


def _line(cells: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(
        cells
    )  # only so it quotes every kind of line end in a cell
    return text.getvalue().removesuffix("\r\n") + "\n"


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    is_formula = value.startswith(_FORMULA) and not _is_number(value)
    return shown(f"'{value}" if is_formula else value)


def without_quote(cell: str) -> str:
    """The text of a cell as it was before :func:`csv_text` kept table programs from computing it."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty where there is none that can be read."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


LARGEST_MESH_FILE = 2 * 1024**3  # bytes
LARGEST_PICTURE = 256 * 1024**2  # bytes

_EXPORT_AGAIN = N_("Copy or export the file again")


def truncated(missing: str, /, **values: Any) -> FileProblem:
    """The error for a file that ends too early; ``missing`` says which part is not all there."""
    return FileProblem("the file is cut off: {missing}", _EXPORT_AGAIN, missing=Message(missing, values))


def damaged(what: str, /, **values: Any) -> FileProblem:
    """The error for a file whose content contradicts its format."""
    return FileProblem("the file is damaged: {what}", _EXPORT_AGAIN, what=Message(what, values))


def no_such_file(path: Path) -> FileProblem:
    """The error for a file that is not there, perhaps behind a link that is."""
    if path.is_symlink():
        return FileProblem("this link leads to a file that is not there", "Bring the file back", path)
    return FileProblem("there is no such file", "Check the name and the folder", path)


def read_bytes(path: Path, largest: int = LARGEST_MESH_FILE) -> bytes:
    """The whole content of a regular file of at most ``largest`` bytes."""
    try:
        if not path.exists():
            raise no_such_file(path)
        if path.is_dir():
            raise FileProblem("this is a folder, not a file", "Name one file in it", path)
        if not path.is_file():
            raise FileProblem("this is not a regular file", "Copy its content to a file first", path)
        size = path.stat().st_size
        if size == 0:
            raise FileProblem("the file is empty", _EXPORT_AGAIN, path)
        if size > largest:
            raise FileProblem(
                "the file has {size:,.0f} MB, more than the {largest:,.0f} MB allowed",
                "Export a smaller file",
                path,
                size=size / 1024**2,
                largest=largest / 1024**2,
            )
        return path.read_bytes()
    except BreastMorphError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise FileProblem(
            "the file cannot be opened ({reason})", "Check its permissions", path, reason=reason
        ) from error


def in_utf8(data: bytes) -> bytes:
    """A file's bytes, in UTF-8 where a mark at the beginning says that they are text in UTF-16; without such marks."""
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding).encode()
    return data.removeprefix(codecs.BOM_UTF8)


def read_beside(path: Path, name: str, largest: int) -> bytes:
    """A file that ``path`` refers to, or nothing.

    Only the last part of the name counts and only the folder of ``path`` is looked into: a scan must not be
    able to name files elsewhere on the machine.
    """
    plain = name.strip().strip('"').replace("\\", "/").rsplit("/", 1)[-1]
    if plain in ("", ".", "..") or ":" in plain or "\0" in plain:
        return b""
    try:
        return read_bytes(path.parent / plain, largest)
    except FileProblem:
        return b""


def picture_beside(path: Path, name: str) -> bytes:
    """The PNG or JPEG that ``path`` refers to, or nothing where it is not there or no such picture."""
    return picture_or_nothing(read_beside(path, name, LARGEST_PICTURE))


def picture_or_nothing(data: bytes) -> bytes:
    """The data where they are a PNG or JPEG, else nothing: no other file may pass for a texture."""
    return data if data.startswith((b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")) else b""


@contextmanager
def problems_of(path: Path | None, kind: str) -> Iterator[None]:
    """Turn whatever a reader raises into an error of ours that names the file.

    Damaged input reaches the readers in more ways than they can foresee (numbers that do not parse, offsets
    beyond the end, sizes beyond the memory), so this is deliberately broad. Numbers that are not finite give
    no warning: readers keep or refuse them.
    """
    try:
        with np.errstate(all="ignore"):
            yield
    except BreastMorphError as problem:
        if problem.where is not None or path is None:
            raise
        problem.where = path
        raise
    except MemoryError as error:
        raise FileProblem(
            "the {kind} file does not fit into memory", "Export a smaller file", path, kind=kind
        ) from error
    except RecursionError as error:
        raise FileProblem("the {kind} file is nested too deeply", _EXPORT_AGAIN, path, kind=kind) from error
    except Exception as error:
        detail = printable(" ".join(str(error).split()), 160) or type(error).__name__
        raise FileProblem(
            "the {kind} file is damaged ({detail})", _EXPORT_AGAIN, path, kind=kind, detail=detail
        ) from error


def printable(text: str, longest: int = 40) -> str:
    """What a file says, fit for a message: short, and free of characters that steer a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:longest])


def floats(tokens: Sequence[bytes], what: str) -> Floats:
    """Numbers from text, (k,)."""
    try:
        return np.fromiter(map(float, tokens), np.float64, len(tokens))
    except ValueError as error:
        raise damaged(
            "{what}: {tokens!r} is not a number", what=what, tokens=_shown(tokens, float)
        ) from error


def integers(tokens: Sequence[bytes], what: str) -> Ints:
    """Whole numbers from text, (k,)."""
    try:
        return np.fromiter(map(int, tokens), np.int64, len(tokens))
    except (ValueError, OverflowError) as error:
        raise damaged(
            "{what}: {tokens!r} is not a valid whole number", what=what, tokens=_shown(tokens, int)
        ) from error


def _shown(tokens: Sequence[bytes], kind: type) -> str:
    # Only now, when it is known that one of them does not parse, look for which.
    for token in tokens:
        try:
            number = kind(token)
        except ValueError:
            return token[:40].decode("latin-1")
        if abs(number) >= 2**63 or not math.isfinite(number):
            return token[:40].decode("latin-1")
    return ""


def space_in(text: str) -> str:
    """The anatomical axes ("LPS" or "RAS") that 3D Slicer notes as ``SPACE=...``, or nothing."""
    upper = text.upper()
    return next((space for space in ("LPS", "RAS") if f"SPACE={space}" in upper), "")


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
            "the folder cannot be made ({reason})",
            "Choose another folder",
            path,
            code="unwritable",
            reason=reason,
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
            "the file cannot be written ({reason})",
            "Check the folder's permissions and free space",
            path,
            code="unwritable",
            reason=reason,
        ) from error


def file_hash(path: Path) -> str:
    """SHA-256 of a file's content."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise no_such_file(path) from error
    except OSError as error:
        raise FileProblem(
            "the file cannot be read ({why})", "Check its permissions", path, why=error.strerror
        ) from error
