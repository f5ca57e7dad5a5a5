"""Values on their way to JSON, and objects on their way back."""

from __future__ import annotations

import csv
import io
import json
import os

import numpy as np
import pytest

from breastmorph.foundation.files import csv_text, json_text, plain, read_object, without_quote


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


def test_names_that_are_no_text_make_json_that_every_reader_takes():
    name, words = (
        os.fsdecode(b"M\xfcller"),
        "\U0001f480 \\ud83d \\\\udcfc \u00e9",
    )  # pairs and backslashes stay
    text = json_text({name: [words, name]})
    assert text.isascii()
    assert json.loads(text) == {"M%FCller": [words, "M%FCller"]}
    assert json.loads(text)["M%FCller"][0].encode()


def test_no_cell_of_a_table_is_a_formula():
    names = ["=1+1", "+1", "-1.5", "-x", "@sum", "\tx", "\rx", "a=1", "'q", "-inf", os.fsdecode(b"\xfc"), ""]
    rows = [{"id": name, "value": -1.5} for name in names]
    cells = list(csv.DictReader(io.StringIO(csv_text(["id", "value"], rows), newline="")))
    assert [row["id"] for row in cells] == [
        "'=1+1", "+1", "-1.5", "'-x", "'@sum", "'\tx", "'\rx", "a=1", "'q", "-inf", "%FC", "",
    ]  # fmt: skip
    assert {row["value"] for row in cells} == {"-1.5"}
    assert [without_quote(row["id"]) for row in cells][:10] == names[:10]
