"""The one family of errors a user may meet; every message says what, where and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from breastmorph.names import shown


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
