"""The one family of errors a user may meet; every message says what, where and what to do next."""

from __future__ import annotations

import codecs
import os
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

# --------------------------------------------------------------------------------------------------------------------
# Names that others gave to files and people, as text that every file, table, page and terminal can hold
# --------------------------------------------------------------------------------------------------------------------

_NO_TEXT = re.compile("[\ud800-\udfff]")  # how Python holds the bytes of a file's name that are no text
SHOWN = "breastmorph-shown"  # what a stream does with letters that it lacks: as below, others as \\u0142
_BYTES = range(0xDC80, 0xDD00)


def shown(text: str) -> str:
    """A text whose parts that are no text stand as in a web address: the byte FC of a Latin-1 name as ``%FC``."""
    return _NO_TEXT.sub(_percent, text)


def name_of(text: str) -> str:
    """The name by which a scan is known: shown, and composed, however its letters are put together.

    A Mac writes é as e and an accent where others write one letter; to people both are one name.
    """
    return unicodedata.normalize("NFC", shown(text))


def _printed(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = shown(error.object[error.start : error.end])
    return text.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error(SHOWN, _printed)


def _percent(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"%{code - 0xDC00:02X}" if code in _BYTES else f"%u{code:04X}"


# --------------------------------------------------------------------------------------------------------------------
# The one family of errors a user may meet; every message says what, where and what to do next
# --------------------------------------------------------------------------------------------------------------------


class BreastMorphError(ValueError):
    """Base of all errors this package raises for a user's input.

    Parameters
    ----------
    cause : str
        What is wrong, in one sentence without a closing full stop.
    remedy : str
        What the user can do about it.
    where : str or Path, optional
        The file, scan or landmark concerned.
    code : str, optional
        A short name of the problem for machines; each class has a general one.
    """

    code = "problem"

    def __init__(
        self, cause: str, remedy: str = "", where: str | Path | None = None, *, code: str = ""
    ) -> None:
        self.cause, self.remedy, self.where = shown(cause), shown(remedy), where
        self.code = code or self.code
        super().__init__(self.cause, self.remedy, where)

    def __str__(self) -> str:
        place = f"{shown(str(self.where))}: " if self.where is not None else ""
        return f"{place}{self.cause}" + (f". {self.remedy}" if self.remedy else "")


class FileProblem(BreastMorphError):
    """A file is missing, empty, truncated, of an unknown format or cannot be written."""

    code = "unreadable"


class MeshProblem(BreastMorphError):
    """A surface cannot be used: no faces, not finite, not a torso."""

    code = "unusable-surface"


class LandmarkProblem(BreastMorphError):
    """Landmarks are missing, misnamed or contradict the anatomy or the surface."""

    code = "unusable-landmarks"


@contextmanager
def about(where: Path | None, kind: type[BreastMorphError] = BreastMorphError) -> Iterator[None]:
    """Say where in errors of a kind that do not say it themselves."""
    try:
        yield
    except kind as error:
        if error.where is None:
            error.where = where
        raise


# --------------------------------------------------------------------------------------------------------------------
# What a Python function was given: something else than it takes is told before it is used
# --------------------------------------------------------------------------------------------------------------------

Wanted = TypeVar("Wanted")
AnyPath = str | os.PathLike[str]


class BreastMorphWarning(UserWarning):
    """What a Python user should know although the work went on: a scan left out, a subject in doubt."""


def require(value: Any, kind: type[Wanted] | tuple[type[Wanted], ...], what: str, remedy: str) -> Wanted:
    """The value, where it is of a kind; ``what`` names it and ``remedy`` says what to give instead."""
    if not isinstance(value, kind):
        given = "nothing (None)" if value is None else f"of the kind {type(value).__name__}"
        raise BreastMorphError(f"{what} is {given}", remedy, code="wrong-argument")
    return value


def as_path(value: AnyPath, what: str = "the name of the file") -> Path:
    """A path from what a user gives as one."""
    given: Any = require(value, (str, os.PathLike), what, "Give a path as a text or a Path")
    if not isinstance(os.fspath(given), str) or "\0" in os.fspath(given):
        raise FileProblem(f"{what} is no text that a path can have", "Give a path as a text or a Path")
    return Path(given)
