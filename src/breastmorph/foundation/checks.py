"""Checks of what a Python function was given: anything else is refused before it is used.

Every check returns the value in the type that is wanted, or raises an error that names the argument.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

from breastmorph.foundation.errors import BreastMorphError, FileProblem

Wanted = TypeVar("Wanted")
AnyPath = str | os.PathLike[str]


def check_type(value: Any, kind: type[Wanted] | tuple[type[Wanted], ...], what: str, remedy: str) -> Wanted:
    """The value, where it is of a kind; ``what`` names it and ``remedy`` says what to give instead."""
    if not isinstance(value, kind):
        given = "nothing (None)" if value is None else f"of the kind {type(value).__name__}"
        example = remedy.replace("{", "{{").replace("}", "}}")  # a mapping in it is no place for a value
        raise BreastMorphError("{what} is {given}", example, code="wrong-argument", what=what, given=given)
    return value


def check_int(value: Any, what: str, least: int = 1, most: int | None = None) -> int:
    """A whole number within limits; ``what`` names it."""
    found = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else least - 1
    if found < least or (most is not None and found > most):
        upto = "on" if most is None else f"to {most}"
        raise BreastMorphError(
            "{what} cannot be {value!r}",
            "Give a whole number from {least} {upto}",
            code="wrong-argument",
            what=what,
            value=value,
            least=least,
            upto=upto,
        )
    return found


def check_float(value: Any, what: str, above: float = -math.inf, most: float = math.inf) -> float:
    """A finite number above one and at most another; ``what`` names it."""
    found = float(value) if isinstance(value, Real) else math.nan
    if not above < found <= most or not math.isfinite(found):
        limits = f" above {above:g}, at most {most:g}" if math.isfinite(above) else ""
        raise BreastMorphError(
            "{what} cannot be {value!r}",
            "Give a number{limits}",
            code="wrong-argument",
            what=what,
            value=value,
            limits=limits,
        )
    return found


def check_choice(value: Any, choices: Sequence[str], what: str) -> str:
    """One of a few words; ``what`` names it."""
    if not isinstance(value, str) or value not in choices:
        raise BreastMorphError(
            "{what} cannot be {value!r}",
            "Choose one of {choices}",
            code="wrong-argument",
            what=what,
            value=value,
            choices=", ".join(choices),
        )
    return value


def check_texts(value: Any, what: str) -> list[str]:
    """Several words, or a single one; ``what`` names them."""
    if isinstance(value, str):
        return [value]
    remedy = "Give a list of texts"
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise BreastMorphError(
            "{what} cannot be {value!r}", remedy, code="wrong-argument", what=what, value=value
        )
    return [check_type(text, str, f"one of {what}", remedy) for text in value]


def check_path(value: AnyPath, what: str = "the name of the file") -> Path:
    """A path from what a user gives as one."""
    given: Any = check_type(value, (str, os.PathLike), what, "Give a path as a text or a Path")
    if not isinstance(os.fspath(given), str) or "\0" in os.fspath(given):
        raise FileProblem(
            "{what} is no text that a path can have", "Give a path as a text or a Path", what=what
        )
    return Path(given)
