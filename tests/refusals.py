"""A refusal is asked for its code and the values of its sentence; how it is worded is the catalogue's affair."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from breastmorph.foundation.errors import BreastMorphError


@contextmanager
def refused(
    code: str = "", kind: type[BreastMorphError] = BreastMorphError, **values: object
) -> Iterator[pytest.ExceptionInfo[BreastMorphError]]:
    """The block must end in an error of a kind, with this code where it has its own, and these values among its own."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert error.code == (code or kind.code), error
    assert {name: error.values.get(name) for name in values} == values, error
