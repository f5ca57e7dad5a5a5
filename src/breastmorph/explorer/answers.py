"""What the page gets for an answer: arrays, and problems in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from breastmorph.foundation.errors import BreastMorphError, Finding, measure_in_words, phrased
from breastmorph.foundation.files import plain
from breastmorph.foundation.words import ENGLISH
from breastmorph.foundation.words_de import GERMAN

# --------------------------------------------------------------------------------------------------------------------
# Arrays for the page: one container of named 32-bit and 8-bit arrays, which a browser maps without copying
# --------------------------------------------------------------------------------------------------------------------

T = TypeVar("T")

_MAGIC = b"BMA1"
_KINDS = {"f": "<f4", "i": "<u4", "u": "<u4", "b": "u1"}
_NAMES = {"<f4": "float32", "<u4": "uint32", "u1": "uint8"}
_ALIGNED = 8


def packed(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as bytes; floats become float32, whole numbers uint32, truth values and bytes uint8."""
    listed, parts, offset = [], [], 0
    for name, array in arrays.items():
        kind = "u1" if array.dtype == np.uint8 else _KINDS[array.dtype.kind]
        data = np.ascontiguousarray(array, dtype=kind)
        listed.append({"name": name, "dtype": _NAMES[kind], "shape": list(data.shape), "offset": offset})
        gap = -data.nbytes % _ALIGNED
        parts += [data.tobytes(), b"\0" * gap]
        offset += data.nbytes + gap
    header = json.dumps(listed).encode()
    header += b" " * (-len(header) % _ALIGNED)
    return b"".join([_MAGIC, len(header).to_bytes(4, "little"), header, *parts])


# --------------------------------------------------------------------------------------------------------------------
# What goes wrong in a request, as the page gets it: cause, remedy, where, and an HTTP status
# --------------------------------------------------------------------------------------------------------------------

_REFUSED = 422  # input that was understood but cannot be used


class RequestProblem(BreastMorphError):
    """A request that cannot be answered.

    Parameters
    ----------
    status : int
        Of HTTP.
    cause, remedy, code : str
    """

    def __init__(self, status: int, cause: str, remedy: str = "", *, code: str = "") -> None:
        super().__init__(cause, remedy, code=code or "bad-request")
        self.status = status


def bad_request(cause: str, remedy: str = "Reload the page and try again") -> RequestProblem:
    """For what the page would never send."""
    return RequestProblem(400, cause, remedy)


def unknown(what: str, remedy: str = "Reload the page", code: str = "unknown") -> RequestProblem:
    """For an id that is not in this session's table."""
    return RequestProblem(404, f"there is no such {what}", remedy, code=code)


def not_now(cause: str, remedy: str, code: str = "not-now") -> RequestProblem:
    """For what needs another step first."""
    return RequestProblem(409, cause, remedy, code=code)


def there(found: T | None, cause: str, remedy: str, *, code: str) -> T:
    """What is there by now; for what is not, another step is needed first."""
    if found is None:
        raise not_now(cause, remedy, code=code)
    return found


def preparing(what: str) -> RequestProblem:
    """For what is still being made ready."""
    return RequestProblem(503, f"{what} is still being prepared", "Wait a moment", code="preparing")


# --------------------------------------------------------------------------------------------------------------------
# Words of findings and errors are chosen when the page asks, in its language: it may be another one by then
# --------------------------------------------------------------------------------------------------------------------

_LANGUAGES = {"en": ENGLISH, "de": GERMAN}


@dataclass(frozen=True)
class Spoken:
    """A sentence in any language: what a finding says, or (``remedy``) what can be done about it."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    remedy: bool = False

    def said(self, language: str = "en") -> str:
        """Its words; English where a language is not known."""
        return phrased(self.name, self.values, "page", _LANGUAGES.get(language, ENGLISH))[int(self.remedy)]


@dataclass(frozen=True)
class Name:
    """The name of a measure, or of a pair of them, in any language."""

    code: str
    pair: bool = False

    def said(self, language: str = "en") -> str:
        """Its words."""
        spoken = _LANGUAGES.get(language, ENGLISH)
        return spoken.pairs[self.code] if self.pair else measure_in_words(self.code, spoken)


def sentences(findings: Iterable[Finding]) -> list[Spoken]:
    """What findings say, without their remedies."""
    return [Spoken(one.name, one.values) for one in findings]


def told(finding: Finding) -> dict[str, Any]:
    """Code, level and words of a finding."""
    return {
        "code": finding.code,
        "message": Spoken(finding.name, finding.values),
        "level": finding.level,
        "remedy": Spoken(finding.name, finding.values, remedy=True),
    }


def spoken(value: Any, language: str) -> Any:
    """A record as JSON will give it back, with its sentences in one language."""
    if isinstance(value, (Spoken, Name)):
        return value.said(language)
    if isinstance(value, Mapping):
        return {str(key): spoken(part, language) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [spoken(part, language) for part in value]
    return plain(value)


def status_of(error: Exception) -> int:
    """The HTTP status of an error."""
    if isinstance(error, RequestProblem):
        return error.status
    return _REFUSED if isinstance(error, BreastMorphError) else 500


def as_record(error: Exception) -> dict[str, Any]:
    """An error for the page; folders of this computer are not told, only names of files."""
    if not isinstance(error, BreastMorphError):
        return {
            "cause": f"unexpected error ({type(error).__name__})",
            "remedy": "Try again; if it happens again, please report it",
            "where": "",
            "code": "unexpected",
        }
    return {
        "cause": Spoken(error.name, error.values),
        "remedy": Spoken(error.name, error.values, remedy=True),
        "where": error.place,
        "code": error.code,
    }
