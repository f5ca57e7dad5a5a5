"""Features, numbers of a shape that can be asked for, and how people write a request for one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from breastmorph.clinical.skin_points import Reading
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError

REGIONS = ("thorax", "left", "right")  # what can stay fixed beside features: the breasts, and all the rest
_UNITS = {
    "mm": {"": 1.0, "mm": 1.0, "cm": 10.0},
    "cc": {"": 1.0, "cc": 1.0, "ml": 1.0, "ccm": 1.0, "cm3": 1.0},
    "": {"": 1.0},  # a column of the cohort's table
}
_REQUEST = re.compile(
    r"(?P<name>[^=]+)=\s*(?P<sign>[+-]?)\s*(?P<number>\d+(?:[.,]\d*)?|[.,]\d+)\s*(?P<unit>[a-z]*3?)",
    re.IGNORECASE,
)


class Feature(Protocol):
    """A number of a shape (n, 3), which is in mm, upright and at the subject's own size."""

    @property
    def name(self) -> str:
        """As users write it."""

    @property
    def unit(self) -> str:
        """``mm`` or ``cc``."""

    def value(self, shape: Floats) -> float:
        """The number."""

    def read(self, shape: Floats) -> Reading:
        """The number with its gradient."""


@dataclass(frozen=True)
class Request:
    """A requested value as ``--set`` takes it.

    Attributes
    ----------
    name : str
        Of a feature or of a column of the cohort's table.
    amount : float
        In the unit given.
    unit : str
        As written; empty for the feature's own (mm or cc).
    relative : bool
        Whether the amount is to be added to the present value.
    """

    name: str
    amount: float
    unit: str = ""
    relative: bool = False

    def in_unit(self, unit: str) -> float:
        """The amount in the unit of its feature."""
        factors = _UNITS[unit]
        if self.unit.lower() not in factors:
            known = ", ".join(name for name in factors if name) or "no unit"
            raise BreastMorphError(
                "{name} is not measured in {unit}",
                "Write it with {known}",
                name=self.name,
                unit=self.unit,
                known=known,
            )
        return self.amount * factors[self.unit.lower()]


def parse_request(text: str) -> Request:
    """A request such as ``SN-NL=21.5cm``, ``volume-left=400cc`` or, added to the present value, ``NL-NR=+8mm``."""
    found = _REQUEST.fullmatch(text.strip())
    if not found or not found["name"].strip():
        raise BreastMorphError(
            "{text!r} is no request",
            "Write for example SN-NL=21.5cm, volume-left=400cc or NL-NR=+8mm",
            text=text,
        )
    amount = float(found["number"].replace(",", "."))
    return Request(
        found["name"].strip(),
        -amount if found["sign"] == "-" else amount,
        found["unit"],
        bool(found["sign"]),
    )


def same_name(first: str, second: str) -> bool:
    """Whether two names differ only in capitals, hyphens, underscores or blanks."""
    return _plain(first) == _plain(second)


def named(name: str, known: Iterable[str]) -> str | None:
    """The known name that a text means, or None."""
    return next((one for one in known if same_name(one, name)), None)


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()
