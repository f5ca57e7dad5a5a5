"""Arrays for the page: one container of named 32-bit and 8-bit arrays, which a browser maps without copying."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np

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
