"""Values on their way to JSON, and objects on their way back."""

from __future__ import annotations

import json

import numpy as np
import pytest

from breastmorph.plain import plain, read_object


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (np.arange(3), [0, 1, 2]),
        (np.array([[1.5, np.nan], [np.inf, -2.0]]), [[1.5, None], [None, -2.0]]),
        (np.array(["a", "b"]), ["a", "b"]),
        ({1: np.int64(4), "b": (np.bool_(True), np.float32(0.5), -np.inf)}, {"1": 4, "b": [True, 0.5, None]}),
        (None, None),
    ],
)
def test_numbers_of_every_kind_become_those_of_json(value, kept):
    assert plain(value) == kept
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == kept


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_object_reads_as_an_empty_one(content, tmp_path):
    path = tmp_path / "record.json"
    assert read_object(path) == {}
    path.write_bytes(content)
    assert read_object(path) == {}
    path.write_bytes(b'{"a": 1}')
    assert read_object(path) == {"a": 1}
