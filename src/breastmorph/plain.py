"""Values as JSON and tables hold them."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.names import shown

_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how a cell begins that a table program would compute
_ESCAPES = re.compile(r"\\(?:ud[89ab]..\\ud[c-f]..|(ud[89a-f]..)|.)")  # in JSON: pairs, lone halves, others


def plain(value: Any) -> Any:
    """A value as JSON will give it back: lists, texts and numbers, None for numbers that are not finite."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, (np.ndarray, np.generic)):
        # Whole arrays at once: one value at a time takes seconds.
        whole = value.tolist()
        return whole if value.dtype.kind != "f" or np.isfinite(value).all() else plain(whole)
    return value


def json_text(value: Any) -> str:
    """A value as JSON in ASCII; names in it that are no text are :func:`shown`, as strict readers want it."""
    return _ESCAPES.sub(_whole, json.dumps(value, indent=1))


def _whole(escape: re.Match[str]) -> str:
    return shown(chr(int(escape[1][1:], 16))) if escape[1] else escape[0]


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV below a line of the columns' names, without a cell that a table program takes for a formula.

    Names come from files of others: ``=1+1`` is written as ``'=1+1``, numbers stay as they are.
    """
    cells = ([_cell(row.get(column, "")) for column in columns] for row in rows)
    return "".join(map(_line, [columns, *cells]))


def _line(cells: Sequence[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(
        cells
    )  # only so it quotes every kind of line end in a cell
    return text.getvalue().removesuffix("\r\n") + "\n"


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    is_formula = value.startswith(_FORMULA) and not _is_number(value)
    return shown(f"'{value}" if is_formula else value)


def without_quote(cell: str) -> str:
    """The text of a cell as it was before :func:`csv_text` kept table programs from computing it."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_object(path: Path) -> dict[str, Any]:
    """The object in a JSON file; empty where there is none that can be read."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
