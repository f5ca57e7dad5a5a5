"""What is told to people: findings and the one family of errors, as values that each door phrases in its own words."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import Any, Literal, NamedTuple, Self, cast

from breastmorph.foundation.words import AUDIENCES, ENGLISH, Audience, Language
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

    def said(self, audience: Audience = "python") -> Said:
        """Its words at a door."""
        return phrased(self.name, self.values, audience)

    def told(self, audience: Audience) -> dict[str, str]:
        """Code, level and words at a door, for JSON."""
        said = self.said(audience)
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
        for audience in AUDIENCES:
            found.said(audience)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return Finding(f"{code}/{AS_RAISED}", {"cause": text, "remedy": ""}, "warning")
    return found


def sentences(findings: Iterable[Finding], audience: Audience = "command") -> list[str]:
    """Findings in words, without their remedies; records keep them as commands say them."""
    return [finding.said(audience).cause for finding in findings]


def phrased(name: str, values: Values, audience: Audience, language: Language = ENGLISH) -> Said:
    """The catalogue's words for a finding at one door; the page's in any language.

    In a sentence ``{x:landmark}`` and ``{x:measure}`` are names, which a page says in words, ``{x:cm}`` is a length
    in mm that is to be told in cm, ``{x:remedy}`` what can be done about another finding (``{x}`` is its cause); what
    stands behind ``|`` joins the parts of a list. All else is Python's.
    """
    if name.endswith(f"/{AS_RAISED}"):
        said = (str(values[part]) for part in ("cause", "remedy"))
        return Said(*(shown(language.raised(one) if audience == "page" else one) for one in said))
    words = CATALOGUE[name]
    if audience == "page":
        words = language.sentences.get(name, words)
    sentence = _Sentence(audience, language)
    texts = (text if isinstance(text, str) else text[audience] for text in words)
    return Said(*(shown(sentence.vformat(text, (), values)) for text in texts))


class _Sentence(Formatter):
    """Fills in the values as one door says them."""

    def __init__(self, audience: Audience, language: Language) -> None:
        self._door, self._language = audience, language

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

    def said(self, audience: Audience = "python") -> Said:
        """Its words at a door."""
        return phrased(self.name, self.values, audience)

    @property
    def place(self) -> str:
        """Where, without folders: what is passed on tells nobody where on this computer a file lies."""
        if isinstance(self.where, Path):
            return shown(self.where.name)
        return shown(str(self.where or "").replace("\\", "/").rpartition("/")[2])

    def text(self, audience: Audience = "python", *, folders: bool = True) -> str:
        """Where, cause and remedy at a door."""
        said = self.said(audience)
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
