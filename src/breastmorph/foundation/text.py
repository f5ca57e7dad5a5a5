"""Names that others gave to files and people, as text that every file, table, page and terminal can hold."""

from __future__ import annotations

import codecs
import re
import unicodedata

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
