"""The one family of errors that a user may meet; every message says what is wrong, where, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from breastmorph.foundation.language import Plural
from breastmorph.foundation.messages import PYTHON, Audience, Finding, Message, Values
from breastmorph.foundation.text import shown


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
        stated, advice = (Message.of(text, values) for text in (cause, remedy))
        self.finding = Finding(code or self.code, stated, advice, "refusal")
        self.code, self.where = self.finding.code, where
        super().__init__(self.cause, self.remedy, where)

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

    def text(self, audience: Audience = PYTHON, *, folders: bool = True) -> str:
        """Where, cause and remedy as an audience reads them."""
        cause, remedy = self.finding.cause.text(audience), self.finding.advice.text(audience)
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
    """Name the place in errors of a kind that do not name it themselves."""
    try:
        yield
    except kind as error:
        if error.where is None:
            error.where = where
        raise


class BreastMorphWarning(UserWarning):
    """What a Python user should know although the work went on: a scan left out, a subject in doubt."""
