"""What the page gets for an answer: arrays, and problems in words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.report.clinical_sheet import NAMES

# --------------------------------------------------------------------------------------------------------------------
# Arrays for the page: one container of named 32-bit and 8-bit arrays, which a browser maps without copying
# --------------------------------------------------------------------------------------------------------------------

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
# Messages in the page's words: other modules speak to people who type commands, and in names of measures
# --------------------------------------------------------------------------------------------------------------------

_NAME = re.compile(r"(?<![\w-])(" + "|".join(name for name in NAMES if "-" in name) + r")(?![\w-])")
_LENGTH = r"(\d+(?:\.\d+)?)"
_USUAL = re.compile(rf"{_LENGTH} ± {_LENGTH} mm")
_ASKED = re.compile(rf"(nipple) {_LENGTH} mm")
_LANDMARK = re.compile(r"\b(lower_pole|lateral_pole|nipple|coracoid|imf)_(left|right)\b")
_PARTS = {"imf": "fold under the {} breast", "coracoid": "{} coracoid"}
# What other modules say, and what the page says instead; in this order.
_PHRASES: tuple[tuple[str, str], ...] = (
    (
        r"in this model nothing else changes that way without the held regions, so its modes were made local: "
        r"they fade out from [\d.]+ mm before to [\d.]+ mm beyond the border",
        "to keep the held parts in place, the change fades out around their border; look at the border",
    ),
    (
        r"(left|right) side absent: its mask is mirrored from the other side, its landmark pairs are void",
        r"the \1 breast is missing: that side follows the skin of the scan only",
    ),
    (r"Name the folder with --landmarks, and put \S+ \(or [^)]*\) into it", "Set its points on this page"),
    (r", or give the unit with --unit", ", and the unit in which the file was exported"),
    (
        r"measure one distance between two landmarks on the patient and give it \(--scale-by [^)]*\)",
        "scale it to millimetres by a distance measured on the patient before it is opened here",
    ),
    (r"Leave the unit to --unit auto, or check", "Check"),
    (r"with --unit (\w+) ", r"read in \1, "),
    (r"Check the unit \(--unit\)", "Check the unit in which the file was exported"),
    (r"Check its unit \(--unit\): mm are expected", "Check the unit in which the file was exported"),
    (r", or raise --max-faces", ""),
    (r"Give the order of the names \(--landmark-order\), or write", "Write"),
    (r"; landmarks \(--landmarks\) give a surer start", "; a few landmarks give a surer start"),
    (r"Give landmarks \(--landmarks\); three are enough", "Set landmarks on this page; three are enough"),
    (r"; landmarks \(--landmarks\) tell which it is", "; landmarks tell which it is"),
    (r"\(complete them with --landmark-ids\)", "(place them on the Model tab)"),
    (
        r"Complete its landmarks with --landmark-ids, or give .* with --registered",
        "Place them on the Model tab",
    ),
    (r"; --landmark-ids adds more", "; more can be placed on the Model tab"),
    (r"Look at the scan, or raise --time-limit", "Look at the scan; it may be too large"),
    (r", raise --memory-limit or take fewer --jobs", ""),
    (r"Try --retry-failed; if it fails again, look", "Try again; if it fails again, look"),
    (r", or choose another --out", ""),
    (
        r"Choose another --out: one folder, one template",
        "Move the old results away: they were made for another model",
    ),
    (
        r"Give --replace to predict it nevertheless, as if it were missing",
        "Set its landmarks (Patient's scan); it can then be predicted as if it were missing",
    ),
    (r"Run `breastmorph register` again", "Register the scan again"),
    (r"Run `breastmorph check`( on it| to see[^,.]*)?", "Check the scan"),
    (r" \(--[a-z-]+\)", ""),
)
_COMPILED = tuple((re.compile(pattern), said) for pattern, said in _PHRASES)


def in_page_words(text: str) -> str:
    """A message with measures by their labels, lengths of measures in cm, and controls instead of options."""
    for pattern, said in _COMPILED:
        text = pattern.sub(said, text)
    text = _NAME.sub(lambda found: NAMES[found[1]], text)
    text = _USUAL.sub(lambda found: f"{float(found[1]) / 10:.1f} ± {float(found[2]) / 10:.1f} cm", text)
    text = _ASKED.sub(lambda found: f"{found[1]} {float(found[2]) / 10:.1f} cm", text)
    text = _LANDMARK.sub(lambda found: _PARTS.get(found[1], "{} " + found[1]).format(found[2]), text)
    return text.replace("sternal_notch", "sternal notch").replace("_pole", " pole")


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


def preparing(what: str) -> RequestProblem:
    """For what is still being made ready."""
    return RequestProblem(503, f"{what} is still being prepared", "Wait a moment", code="preparing")


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
    place = error.where
    name = place.name if isinstance(place, Path) else str(place or "").replace("\\", "/").rsplit("/", 1)[-1]
    return {
        "cause": in_page_words(error.cause),
        "remedy": in_page_words(error.remedy),
        "where": name,
        "code": error.code,
    }
