"""The one family of errors that a user may meet; every message says what is wrong, where, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from breastmorph.foundation.language import Plural
from breastmorph.foundation.messages import (
    Audience,
    AudienceName,
    Finding,
    Message,
    Said,
    Values,
    recorded,
    sentences,
    warning,
)
from breastmorph.foundation.terms import landmark_in_words, measure_in_words
from breastmorph.foundation.text import SHOWN, name_of, shown
from breastmorph.foundation.words_of_models import CATALOGUE

__all__ = [
    "SHOWN",
    "BreastMorphError",
    "BreastMorphWarning",
    "FileProblem",
    "Finding",
    "LandmarkProblem",
    "MeshProblem",
    "Said",
    "error_context",
    "landmark_in_words",
    "measure_in_words",
    "name_of",
    "recorded",
    "sentences",
    "shown",
    "warning",
]


class BreastMorphError(ValueError):
    """Base of all errors this package raises for a user's input.

    Parameters
    ----------
    cause : str, Plural or Message
        What is wrong, in one sentence without a closing full stop: a template for the values.
    remedy : str or Message
        What the user can do about it.
    where : str or Path, optional
        The file, scan or landmark concerned.
    code : str, optional
        A short name of the problem for machines, or ``code/which`` where one code has several sentences; each class
        has a general one.
    **values
        What the sentences speak of, see :mod:`breastmorph.foundation.messages`.

    Attributes
    ----------
    finding : Finding
        The same as a value.
    """

    code = "problem"

    def __init__(
        self,
        cause: str | Plural | Message,
        remedy: str | Message = "",
        where: str | Path | None = None,
        *,
        code: str = "",
        **values: Any,
    ) -> None:
        said, advice = (Message.of(text, values) for text in (cause, remedy))
        self.finding = Finding(code or self.code, said, advice, "refusal")
        self.code, self.where = self.finding.code, where
        super().__init__(self.cause, self.remedy, where)

    @classmethod
    def of(cls, name: str, where: str | Path | None = None, /, **values: Any) -> Self:
        """An error with the catalogue's words; the name is its code, or ``code/which``."""
        cause, remedy = (text if isinstance(text, str) else text["python"] for text in CATALOGUE[name])
        error = cls(Message(cause, values), Message(remedy, values), where)
        error.finding = replace(error.finding, name=name)
        error.code = error.finding.code
        return error

    def said(self, audience: AudienceName | Audience = "python") -> Said:
        """Its words for an audience."""
        return self.finding.said(audience)

    @property
    def cause(self) -> str:
        """What is wrong, for those who write Python."""
        return self.finding.message

    @property
    def remedy(self) -> str:
        """What can be done about it, for those who write Python."""
        return self.finding.remedy

    @property
    def name(self) -> str:
        """Its code, or ``code/which``."""
        return self.finding.name

    @property
    def values(self) -> Values:
        """What its sentences speak of."""
        return self.finding.values

    @property
    def place(self) -> str:
        """Where, without folders: what is passed on does not give away where on this computer a file lies."""
        if isinstance(self.where, Path):
            return shown(self.where.name)
        return shown(str(self.where or "").replace("\\", "/").rpartition("/")[2])

    def text(self, audience: AudienceName | Audience = "python", *, folders: bool = True) -> str:
        """Where, cause and remedy as an audience reads them."""
        cause, remedy = self.said(audience)
        where = "" if self.where is None else shown(str(self.where)) if folders else self.place
        return (f"{where}: " if where else "") + cause + (f". {remedy}" if remedy else "")

    def __str__(self) -> str:
        return self.text()


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
def error_context(where: Path | None, kind: type[BreastMorphError] = BreastMorphError) -> Iterator[None]:
    """Say where in errors of a kind that do not say it themselves."""
    try:
        yield
    except kind as error:
        if error.where is None:
            error.where = where
        raise


class BreastMorphWarning(UserWarning):
    """What a Python user should know although the work went on: a scan left out, a subject in doubt."""
