"""Messages: sentences in English with values, in the words of an audience and in any language.

A sentence stands where it is raised, as a template of :meth:`str.format`. Beside Python's own formats it knows
``{x:landmark}``, ``{x:measure}``, ``{x:pair}``, ``{x:side}`` and ``{x:word}``, which are words on pages and codes
elsewhere; ``{x:length}``, a length in mm with its unit, which pages give in cm, and ``{x:cm}``, the number alone;
``{x:remedy}``, the advice of a finding (``{x}`` is what it finds). What stands behind ``|`` joins the parts of a list.
A message without values is given as it is written, whatever braces it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from string import Formatter
from typing import Any, Literal, Self

from breastmorph.foundation.language import ENGLISH, Language, Plural
from breastmorph.foundation.terms import (
    landmark_in_words,
    measure_in_words,
    pair_in_words,
    side_in_words,
    word_in_words,
)
from breastmorph.foundation.text import shown

Level = Literal["note", "repair", "warning", "refusal"]
Values = Mapping[str, Any]  # numbers, texts, messages, findings, and lists of them


@dataclass(frozen=True)
class Audience:
    """Who reads a message.

    Attributes
    ----------
    language : Language
    in_words : bool
        Whether measures and landmarks are called by words and lengths are in cm; else they are codes, and in mm.
    wording : mapping from str to str
        Sentences that this audience is given in other words, by the English one of the code.
    """

    language: Language = ENGLISH
    in_words: bool = False
    wording: Mapping[str, str] = field(default_factory=dict, hash=False)

    def speaking(self, language: Language) -> Audience:
        """The same audience in another language."""
        return replace(self, language=language)


PYTHON = Audience()  # and records: codes and mm, parameters instead of options
READERS = Audience(in_words=True)  # of documents


@dataclass(frozen=True)
class Message:
    """A sentence with values.

    Attributes
    ----------
    template : str or Plural
        In English, without a closing full stop where it is part of an error or a finding.
    values : mapping from name to value
    """

    template: str | Plural
    values: Values = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, text: Message | Plural | str, values: Values) -> Message:
        """A template with its values; a message has its own."""
        return text if isinstance(text, Message) else cls(text, values)

    def __bool__(self) -> bool:
        return bool(self.template)

    def __str__(self) -> str:
        return self.text()

    def text(self, audience: Audience = PYTHON) -> str:
        """The sentence as an audience reads it."""
        english = self.template
        if isinstance(english, str):
            english = audience.wording.get(english, english)
        template = audience.language.template(english, self.values.get("n"))
        return shown(_Phrase(audience).vformat(template, (), self.values) if self.values else template)

    def as_dict(self) -> dict[str, Any]:
        """Plain values from which :meth:`from_dict` makes it again."""
        return {"template": self.template, "values": _plain(self.values)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """From what :meth:`as_dict` made of it."""
        return cls(_template(record["template"]), _found(record["values"]))


@dataclass(frozen=True)
class Finding:
    """What was found, with a code for machines, and what can be done about it.

    Attributes
    ----------
    name : str
        Its code, or ``code/which`` where one code has several sentences.
    cause : Message
        What was found, and what was done about it.
    advice : Message
        What can be done about it; warnings and refusals have one.
    level : {"note", "repair", "warning", "refusal"}
        A warning tells of something that can be used and may yet be wrong.
    """

    name: str
    cause: Message
    advice: Message = Message("")
    level: Level = "note"

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """From what :meth:`as_dict` made of it."""
        values = _found(record["values"])
        cause, advice = (Message(_template(record[part]), values) for part in ("cause", "remedy"))
        return cls(str(record["name"]), cause, advice, record["level"])

    @property
    def code(self) -> str:
        """Stable name for machines, for example "non-finite-vertices"."""
        return self.name.partition("/")[0]

    @property
    def values(self) -> Values:
        """What its sentences speak of: numbers (lengths in mm), names, other findings, and lists of these."""
        return self.cause.values

    @property
    def message(self) -> str:
        """What was found, for those who write Python."""
        return self.cause.text()

    @property
    def remedy(self) -> str:
        """What can be done about it, for those who write Python."""
        return self.advice.text()

    def __str__(self) -> str:
        return self.message

    def described(self, audience: Audience = PYTHON) -> dict[str, str]:
        """Code, level and words for an audience, for JSON."""
        message, remedy = self.cause.text(audience), self.advice.text(audience)
        return {"code": self.code, "message": message, "level": self.level, "remedy": remedy}

    def as_dict(self) -> dict[str, Any]:
        """Plain values from which :meth:`from_dict` makes it again."""
        return {
            "name": self.name,
            "values": _plain({**self.advice.values, **self.cause.values}),
            "level": self.level,
            "cause": self.cause.template,
            "remedy": self.advice.template,
        }


def note(name: str, cause: str | Plural, remedy: str = "", /, **values: Any) -> Finding:
    """A finding that is good to know."""
    return Finding(name, Message(cause, values), Message(remedy, values), "note")


def repair(name: str, cause: str | Plural, remedy: str = "", /, **values: Any) -> Finding:
    """A finding about what has been repaired."""
    return Finding(name, Message(cause, values), Message(remedy, values), "repair")


def warning(name: str, cause: str | Plural, remedy: str = "", /, **values: Any) -> Finding:
    """A finding that speaks against what can be used all the same."""
    return Finding(name, Message(cause, values), Message(remedy, values), "warning")


def recorded(record: object, text: str, code: str = "recorded") -> Finding:
    """A finding from a record of any version; where it keeps no template, with the text that it keeps."""
    try:
        found = Finding.from_dict(record)  # type: ignore[arg-type]
        found.message, found.remedy  # noqa: B018 - which fill in the values
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return Finding(code, Message(text), level="warning")
    return found


def sentences(findings: Iterable[Finding], audience: Audience = PYTHON) -> list[str]:
    """What findings say, without their remedies."""
    return [finding.cause.text(audience) for finding in findings]


class _Phrase(Formatter):
    """Fills in the values as an audience reads them."""

    def __init__(self, audience: Audience) -> None:
        self._audience = audience

    def format_field(self, value: Any, format_spec: str) -> str:
        audience, language = self._audience, self._audience.language
        if isinstance(value, (list, tuple)):
            spec, mark, joint = format_spec.partition("|")
            return (joint if mark else ", ").join(self.format_field(part, spec) for part in value)
        if isinstance(value, Finding):
            return (value.advice if format_spec == "remedy" else value.cause).text(audience)
        if isinstance(value, Message):
            return value.text(audience)
        if format_spec in _NAMED:
            return _NAMED[format_spec](value, language) if audience.in_words else str(value)
        if format_spec == "length":
            written = f"{value / 10:.1f} cm" if audience.in_words else f"{value:.1f} mm"
        else:
            written = f"{value / 10:.1f}" if format_spec == "cm" else str(format(value, format_spec))
        return language.number(written) if isinstance(value, (int, float)) else written


_NAMED = {
    "landmark": landmark_in_words,
    "measure": measure_in_words,
    "pair": pair_in_words,
    "side": side_in_words,
    "word": word_in_words,
}


def _plain(value: Any) -> Any:
    if isinstance(value, (Message, Finding)):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):  # numbers and arrays of numpy
        return value.tolist()
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _found(value: Any) -> Any:
    if isinstance(value, list):
        return [_found(part) for part in value]
    if isinstance(value, dict):
        kind = Finding if "name" in value and "level" in value else Message if "template" in value else None
        return kind.from_dict(value) if kind else {key: _found(part) for key, part in value.items()}
    return value


def _template(text: Any) -> str | Plural:
    return Plural(*text) if isinstance(text, (list, tuple)) else str(text)
