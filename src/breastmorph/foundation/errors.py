"""What is told to people: findings and the one family of errors, as values that each door phrases in its own words."""

from __future__ import annotations

import codecs
import math
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from string import Formatter
from typing import Any, Literal, NamedTuple, Self, TypeVar, cast

from breastmorph.foundation.words import DOORS, ENGLISH, Door, Language
from breastmorph.foundation.words_of_models import CATALOGUE

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
# Findings: a code and values, which the catalogue turns into words
# --------------------------------------------------------------------------------------------------------------------

Level = Literal["note", "repair", "warning", "refusal"]
Values = Mapping[str, Any]  # numbers, texts, findings, and lists of them
AS_RAISED = "as-raised"  # of an error whose words are the same for everybody and stand where it is raised


class Said(NamedTuple):
    """What is the matter, and what can be done about it; neither ends with a full stop."""

    cause: str
    remedy: str = ""


@dataclass(frozen=True)
class Finding:
    """One thing to be told.

    Attributes
    ----------
    name : str
        In :data:`breastmorph.foundation.words_of_models.CATALOGUE`: its code, or ``code/which`` where one code has
        several sentences.
    values : mapping from name to value
        What the sentence speaks of: numbers (lengths in mm), names, other findings, and lists of these.
    level : {"note", "repair", "warning", "refusal"}
        A warning tells of something that can be used and may yet be wrong.
    """

    name: str
    values: Values = field(default_factory=dict, hash=False)
    level: Level = "note"

    @classmethod
    def of(cls, error: BreastMorphError, level: Level = "refusal") -> Self:
        """What an error says."""
        return cls(error.name, error.values, level)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """From what :meth:`as_dict` made of it."""
        values = {key: _found(value) for key, value in record["values"].items()}
        return cls(str(record["name"]), values, record["level"])

    @property
    def code(self) -> str:
        """Stable name for machines, for example "non-finite-vertices"."""
        return self.name.partition("/")[0]

    @property
    def message(self) -> str:
        """What was found, and what was done about it, for those who write Python."""
        return self.said().cause

    @property
    def remedy(self) -> str:
        """What can be done about it, for those who write Python; warnings and refusals have one."""
        return self.said().remedy

    def __str__(self) -> str:
        return self.message

    def said(self, door: Door = "python") -> Said:
        """Its words at a door."""
        return phrased(self.name, self.values, door)

    def told(self, door: Door) -> dict[str, str]:
        """Code, level and words at a door, for JSON."""
        said = self.said(door)
        return {"code": self.code, "message": said.cause, "level": self.level, "remedy": said.remedy}

    def as_dict(self) -> dict[str, Any]:
        """Plain values from which :meth:`from_dict` makes it again."""
        values = {key: _plain(value) for key, value in self.values.items()}
        return {"name": self.name, "values": values, "level": self.level}


def warning(name: str, /, **values: Any) -> Finding:
    """A finding that speaks against what can be used all the same."""
    return Finding(name, values, "warning")


def recorded(record: object, text: str, code: str = "recorded") -> Finding:
    """A finding from a record of any version; one that is not known here says the words that the record keeps."""
    try:
        found = Finding.from_dict(cast(Mapping[str, Any], record))
        for door in DOORS:
            found.said(door)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return Finding(f"{code}/{AS_RAISED}", {"cause": text, "remedy": ""}, "warning")
    return found


def sentences(findings: Iterable[Finding], door: Door = "command") -> list[str]:
    """Findings in words, without their remedies; records keep them as commands say them."""
    return [finding.said(door).cause for finding in findings]


def phrased(name: str, values: Values, door: Door, language: Language = ENGLISH) -> Said:
    """The catalogue's words for a finding at one door; the page's in any language.

    In a sentence ``{x:landmark}`` and ``{x:measure}`` are names, which a page says in words, ``{x:cm}`` is a length
    in mm that is to be told in cm, ``{x:remedy}`` what can be done about another finding (``{x}`` is its cause); what
    stands behind ``|`` joins the parts of a list. All else is Python's.
    """
    if name.endswith(f"/{AS_RAISED}"):
        said = (str(values[part]) for part in ("cause", "remedy"))
        return Said(*(shown(language.raised(one) if door == "page" else one) for one in said))
    words = CATALOGUE[name]
    if door == "page":
        words = language.sentences.get(name, words)
    sentence = _Sentence(door, language)
    texts = (text if isinstance(text, str) else text[door] for text in words)
    return Said(*(shown(sentence.vformat(text, (), values)) for text in texts))


class _Sentence(Formatter):
    """Fills in the values as one door says them."""

    def __init__(self, door: Door, language: Language) -> None:
        self._door, self._language = door, language

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, (list, tuple)):
            spec, mark, joint = format_spec.partition("|")
            return (joint if mark else ", ").join(self.format_field(one, spec) for one in value)
        if isinstance(value, Finding):
            said = phrased(value.name, value.values, self._door, self._language)
            return said.remedy if format_spec == "remedy" else said.cause
        if format_spec == "cm":
            return self._number(f"{value / 10.0:.1f}")
        if format_spec in _NAMED:
            return _NAMED[format_spec](value, self._language) if self._door == "page" else str(value)
        written = str(format(value, format_spec))
        return self._number(written) if isinstance(value, (int, float)) else written

    def _number(self, written: str) -> str:
        return written.translate(self._language.numbers) if self._door == "page" else written


def measure_in_words(name: str, language: Language = ENGLISH) -> str:
    """A measure's name, which may say its kind: ``SN-NL tape`` is "Sternal notch to left nipple, tape"."""
    if name in language.measures or name in language.words:  # what is held is no measure
        return language.measures.get(name, _word(name, language))
    code, _, kind = name.partition(" ")
    words = language.measures.get(code, code)
    return f"{words}, {_word(kind, language)}" if kind else words


def landmark_in_words(name: str, language: Language = ENGLISH) -> str:
    """``lower_pole_left`` is "left lower pole"."""
    known, (part, _, side) = language.landmarks, name.rpartition("_")
    words = known[part].format(side=_side(side, language)) if part in known else known.get(name, name)
    return words[:1].upper() + words[1:] if language.capital else words


def _side(name: str, language: Language) -> str:
    return language.sides.get(name, name)


def _word(name: str, language: Language) -> str:
    return language.words.get(name, name)


_NAMED = {"landmark": landmark_in_words, "measure": measure_in_words, "side": _side, "word": _word}


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    return value.as_dict() if isinstance(value, Finding) else value


def _found(value: Any) -> Any:
    if isinstance(value, list):
        return [_found(one) for one in value]
    return Finding.from_dict(value) if isinstance(value, dict) else value


# --------------------------------------------------------------------------------------------------------------------
# The one family of errors a user may meet; every message says what, where and what to do next
# --------------------------------------------------------------------------------------------------------------------


class BreastMorphError(ValueError):
    """Base of all errors this package raises for a user's input.

    Its words are those given here where they are the same for whoever uses a command, a page or Python; all others
    are in the catalogue, see :meth:`of`.

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

    Attributes
    ----------
    name : str
    values : mapping
        See :class:`Finding`.
    """

    code = "problem"

    def __init__(
        self, cause: str, remedy: str = "", where: str | Path | None = None, *, code: str = ""
    ) -> None:
        self.cause, self.remedy, self.where = shown(cause), shown(remedy), where
        self.code = code or self.code
        self.name = f"{self.code}/{AS_RAISED}"
        self.values: Values = {"cause": self.cause, "remedy": self.remedy}
        super().__init__(self.cause, self.remedy, where)

    @classmethod
    def of(cls, name: str, where: str | Path | None = None, /, **values: Any) -> Self:
        """An error with the catalogue's words; the name is its code, or ``code/which``."""
        error = cls(*phrased(name, values, "python"), where, code=name.partition("/")[0])
        error.name, error.values = name, values
        return error

    def said(self, door: Door = "python") -> Said:
        """Its words at a door."""
        return phrased(self.name, self.values, door)

    @property
    def place(self) -> str:
        """Where, without folders: what is passed on tells nobody where on this computer a file lies."""
        if isinstance(self.where, Path):
            return shown(self.where.name)
        return shown(str(self.where or "").replace("\\", "/").rpartition("/")[2])

    def text(self, door: Door = "python", *, folders: bool = True) -> str:
        """Where, cause and remedy at a door."""
        said = self.said(door)
        where = "" if self.where is None else shown(str(self.where)) if folders else self.place
        return (f"{where}: " if where else "") + said.cause + (f". {said.remedy}" if said.remedy else "")

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


def whole(value: Any, what: str, least: int = 1, most: int | None = None) -> int:
    """A whole number within limits; ``what`` names it."""
    found = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else least - 1
    if found < least or (most is not None and found > most):
        upto = "on" if most is None else f"to {most}"
        raise BreastMorphError(
            f"{what} cannot be {value!r}", f"Give a whole number from {least} {upto}", code="wrong-argument"
        )
    return found


def number(value: Any, what: str, above: float = -math.inf, most: float = math.inf) -> float:
    """A finite number above one and at most another; ``what`` names it."""
    found = float(value) if isinstance(value, Real) else math.nan
    if not above < found <= most or not math.isfinite(found):
        limits = f" above {above:g}, at most {most:g}" if math.isfinite(above) else ""
        raise BreastMorphError(f"{what} cannot be {value!r}", f"Give a number{limits}", code="wrong-argument")
    return found


def one_of(value: Any, choices: Sequence[str], what: str) -> str:
    """One of a few words; ``what`` names it."""
    if not isinstance(value, str) or value not in choices:
        raise BreastMorphError(
            f"{what} cannot be {value!r}", f"Choose one of {', '.join(choices)}", code="wrong-argument"
        )
    return value


def words_in(value: Any, what: str) -> list[str]:
    """Several words, or a single one; ``what`` names them."""
    if isinstance(value, str):
        return [value]
    remedy = "Give a list of texts"
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise BreastMorphError(f"{what} cannot be {value!r}", remedy, code="wrong-argument")
    return [require(one, str, f"one of {what}", remedy) for one in value]


def as_path(value: AnyPath, what: str = "the name of the file") -> Path:
    """A path from what a user gives as one."""
    given: Any = require(value, (str, os.PathLike), what, "Give a path as a text or a Path")
    if not isinstance(os.fspath(given), str) or "\0" in os.fspath(given):
        raise FileProblem(f"{what} is no text that a path can have", "Give a path as a text or a Path")
    return Path(given)
