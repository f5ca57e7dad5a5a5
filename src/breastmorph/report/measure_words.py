"""Measures as people read them on sheets and pages: names in words, lengths in cm, volumes in whole cc.

Commands, JSON and CSV files keep the short names and mm, which are typed and computed with; figures for print have the
paper's short names. How far skin moves or misses is no measure of the body and stays in mm everywhere.
"""

from __future__ import annotations

import math

NAMES = {
    "SN-NL": "Sternal notch to left nipple",
    "SN-NR": "Sternal notch to right nipple",
    "NL-NR": "Nipple to nipple",
    "SN-XI": "Sternal notch to xiphoid",
    "NL-LPL": "Left nipple to lower pole",
    "NR-LPR": "Right nipple to lower pole",
    "NL-IMFL": "Left nipple to fold",
    "NR-IMFR": "Right nipple to fold",
    "NL-M": "Left nipple to midline",
    "NR-M": "Right nipple to midline",
    "base-width-left": "Base width, left",
    "base-width-right": "Base width, right",
    "projection-left": "Projection, left",
    "projection-right": "Projection, right",
    "volume-left": "Left breast volume",
    "volume-right": "Right breast volume",
    "volume": "Breast volume",
}


def in_words(name: str) -> str:
    """A measure's name, which may say its kind: ``SN-NL tape`` is "Sternal notch to left nipple, tape"."""
    code, _, kind = name.partition(" ")
    words = NAMES.get(code, code)
    return f"{words}, {kind}" if kind else words


def in_cm(value: float, unit: str, digits: int = 1, sign: str = "") -> str:
    """A measure for people: lengths, which come in mm, with so many digits of cm; volumes in whole cc."""
    if unit == "mm":
        return with_unit(value / 10.0, "cm", digits, sign)
    return with_unit(value, unit, 0 if unit == "cc" else digits, sign)


def with_unit(value: float, unit: str, digits: int, sign: str = "") -> str:
    """A number with its unit, empty where it is not known; with ``sign`` "+", positive ones have their sign too."""
    if not math.isfinite(value):
        return ""
    return f"{round(value, digits) + 0.0:{sign}.{digits}f} {unit}".rstrip()  # + 0.0: no negative zero
