"""Results that can be written as JSON and read back: dataclasses of numbers, texts, arrays and each other."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain


class Recorded:
    """A frozen dataclass with a record of plain values."""

    def record(self) -> dict[str, Any]:
        """Plain values for a JSON file; numbers that are not finite become None."""
        return {
            field.name: _written(getattr(self, field.name))
            for field in dataclasses.fields(typing.cast(Any, self))
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value whose record this is.

        Raises
        ------
        BreastMorphError
            The record is of something else.
        """
        kinds = typing.get_type_hints(cls)
        names = [field.name for field in dataclasses.fields(typing.cast(Any, cls))]
        try:
            return cls(**{name: _read(kinds[name], record[name]) for name in names})
        except (KeyError, TypeError, ValueError) as error:
            raise BreastMorphError(
                "this is not a record of {name} ({why!r})",
                "Compute this part again",
                name=cls.__name__,
                why=str(error),
            ) from error


def rounded(values: Any, decimals: int = 6) -> Any:
    """Numbers as records keep them, to a nanometre: files stay small."""
    return np.round(np.asarray(values, dtype=np.float64), decimals) + 0.0  # no negative zero


def _written(value: Any) -> Any:
    if isinstance(value, Recorded):
        return value.record()
    if isinstance(value, Mapping):
        return {str(key): _written(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_written(part) for part in value]
    return plain(value)


def _read(kind: Any, value: Any) -> Any:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        wanted = next(part for part in parts if part is not types.NoneType)
        return None if value is None else _read(wanted, value)
    if origin is np.ndarray:
        number = typing.get_args(parts[1])[0]
        return np.array(value, dtype=np.float64 if number is np.float64 else number)  # None becomes NaN
    if origin is tuple:
        return tuple(_read(parts[0], part) for part in value)
    if origin is not None and issubclass(origin, Mapping):
        return {str(key): _read(parts[1], part) for key, part in value.items()}
    if isinstance(kind, type) and issubclass(kind, Recorded):
        return kind.from_record(value)
    if kind is float:
        return float("nan") if value is None else float(value)
    return value if origin is not None or not isinstance(kind, type) else kind(value)
