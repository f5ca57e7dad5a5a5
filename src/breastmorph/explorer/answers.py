"""What goes wrong in a request and what was found, as the page gets it: cause, remedy, where, and an HTTP status.

The language is chosen when the page asks: it may be another one than when an error was raised.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from breastmorph.explorer.wording import PAGE
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.foundation.language import N_
from breastmorph.foundation.language import language as language_of
from breastmorph.foundation.messages import Finding, Message

T = TypeVar("T")
_REFUSED = 422  # input that was understood but cannot be used
_MAGIC = b"BMA1"
_KINDS = {"f": "<f4", "i": "<u4", "u": "<u4", "b": "u1"}
_NAMES = {"<f4": "float32", "<u4": "uint32", "u1": "uint8"}
_ALIGNED = 8


class RequestProblem(BreastMorphError):
    """A request that cannot be answered.

    Parameters
    ----------
    status : int
        Of HTTP.
    cause, remedy, code : str
    **values
        What the sentences speak of.
    """

    def __init__(self, status: int, cause: str, remedy: str = "", *, code: str = "", **values: Any) -> None:
        super().__init__(cause, remedy, code=code or "bad-request", **values)
        self.status = status


def bad_request(
    cause: str, remedy: str = N_("Reload the page and try again"), **values: Any
) -> RequestProblem:
    """For what the page would never send."""
    return RequestProblem(400, cause, remedy, **values)


def unknown(what: str, remedy: str = N_("Reload the page"), code: str = "unknown") -> RequestProblem:
    """For an id that is not in this session's table."""
    return RequestProblem(404, "there is no such {what}", remedy, code=code, what=Message(what))


def not_now(cause: str, remedy: str, code: str = "not-now", **values: Any) -> RequestProblem:
    """For what needs another step first."""
    return RequestProblem(409, cause, remedy, code=code, **values)


def there(found: T | None, cause: str, remedy: str, *, code: str) -> T:
    """What is there by now; for what is not, another step is needed first."""
    if found is None:
        raise not_now(cause, remedy, code=code)
    return found


def preparing(what: str) -> RequestProblem:
    """For what is still being made ready."""
    return RequestProblem(
        503, "{what} is still being prepared", "Wait a moment", code="preparing", what=Message(what)
    )


def sentences(findings: Iterable[Finding]) -> list[Message]:
    """What findings say, without their remedies."""
    return [finding.cause for finding in findings]


def finding_record(finding: Finding) -> dict[str, Any]:
    """Code, level and words of a finding."""
    return {
        "code": finding.code,
        "message": finding.cause,
        "level": finding.level,
        "remedy": finding.advice,
    }


def spoken(value: Any, language: str) -> Any:
    """A record as JSON will give it back, with its sentences in one language."""
    if isinstance(value, Message):
        return value.text(PAGE.speaking(language_of(language)))
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


def error_record(error: Exception) -> dict[str, Any]:
    """An error for the page; it holds names of files, never folders of this computer."""
    if not isinstance(error, BreastMorphError):
        return {
            "cause": Message("unexpected error ({kind})", {"kind": type(error).__name__}),
            "remedy": Message("Try again; if it happens again, please report it"),
            "where": "",
            "code": "unexpected",
        }
    return {
        "cause": error.finding.cause,
        "remedy": error.finding.advice,
        "where": error.place,
        "code": error.code,
    }


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
