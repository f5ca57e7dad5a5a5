"""What values are made of: arrays, and mappings that nobody can change."""

from __future__ import annotations

import copyreg
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def _read_only(content: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(content)


# Python does not know how to send one to another process; without this no result could come back from a worker.
copyreg.pickle(MappingProxyType, lambda mapping: (_read_only, (dict(mapping),)))
