"""Files in: every failure to open told apart, and the one place where a reader's failure becomes ours."""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from breastmorph.errors import BreastMorphError, FileProblem
from breastmorph.mesh.triangle_mesh import Floats, Ints

LARGEST_MESH_FILE = 2 * 1024**3  # bytes
LARGEST_PICTURE = 256 * 1024**2  # bytes

_EXPORT_AGAIN = "Copy or export the file again"


def truncated(missing: str) -> FileProblem:
    """The error for a file that ends too early; ``missing`` says which part is not all there."""
    return FileProblem(f"the file is cut off: {missing}", _EXPORT_AGAIN)


def damaged(what: str) -> FileProblem:
    """The error for a file whose content contradicts its format."""
    return FileProblem(f"the file is damaged: {what}", _EXPORT_AGAIN)


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
                f"the file has {size / 1024**2:,.0f} MB, more than the {largest / 1024**2:,.0f} MB allowed",
                "Export a smaller file",
                path,
            )
        return path.read_bytes()
    except BreastMorphError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL character in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise FileProblem(f"the file cannot be opened ({reason})", "Check its permissions", path) from error


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
        raise type(problem)(problem.cause, problem.remedy, path, code=problem.code) from problem
    except MemoryError as error:
        raise FileProblem(
            f"the {kind} file does not fit into memory", "Export a smaller file", path
        ) from error
    except RecursionError as error:
        raise FileProblem(f"the {kind} file is nested too deeply", _EXPORT_AGAIN, path) from error
    except Exception as error:
        detail = printable(" ".join(str(error).split()), 160) or type(error).__name__
        raise FileProblem(f"the {kind} file is damaged ({detail})", _EXPORT_AGAIN, path) from error


def printable(text: str, longest: int = 40) -> str:
    """What a file says, fit for a message: short, and free of characters that steer a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text[:longest])


def floats(tokens: Sequence[bytes], what: str) -> Floats:
    """Numbers from text, (k,)."""
    try:
        return np.fromiter(map(float, tokens), np.float64, len(tokens))
    except ValueError as error:
        raise damaged(f"{what}: {_shown(tokens, float)!r} is not a number") from error


def integers(tokens: Sequence[bytes], what: str) -> Ints:
    """Whole numbers from text, (k,)."""
    try:
        return np.fromiter(map(int, tokens), np.int64, len(tokens))
    except (ValueError, OverflowError) as error:
        raise damaged(f"{what}: {_shown(tokens, int)!r} is not a valid whole number") from error


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
