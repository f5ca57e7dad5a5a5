"""Choosing subjects by what the cohort's table says of them: ``bmi > 25 and not operated``.

A small language of its own: column names, numbers, quoted texts, comparisons, ``in``, ``and``, ``or``, ``not`` and
brackets. Python only parses it; nothing of it is ever executed.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from breastmorph.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import Bools
from breastmorph.names import name_of

_TRUTH = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_LONGEST = 2000  # characters
_REMEDY = 'Write for example "bmi > 25 and not operated"'
_OTHERS = (  # pattern, how it is written elsewhere, how it is written here
    (r"\bAND\b", "AND", "and"),
    (r"\bOR\b", "OR", "or"),
    (r"\bNOT\b", "NOT", "not"),
    (r"&", "&", "and"),
    (r"\|", "|", "or"),
    (r"<>", "<>", "!="),
    (r"!(?!=)", "!", "not"),
    (r"(?<![<>=!])=(?!=)", "=", "=="),
)

Row = Mapping[str, str]


def as_number(text: str) -> float:
    """A cell as a number, yes and no as 1 and 0; NaN where it is neither."""
    word = text.strip()
    try:
        value = float(word)
    except ValueError:
        return _TRUTH.get(word.lower(), math.nan)
    return value if math.isfinite(value) else math.nan


def choose(table: Sequence[Row], expression: str) -> Bools:
    """Which rows of a table fulfil an expression, (k,).

    Parameters
    ----------
    table : sequence of mappings from column to text
    expression : str
        A cell that is empty fulfils no comparison, and a subject without it is not chosen by one (nor by its
        ``not``): nothing is assumed about what is not known.

    Raises
    ------
    BreastMorphError
        The expression cannot be understood, names a column that the table does not have, or compares text with a
        number.
    """
    try:
        if len(expression) > _LONGEST:
            raise ValueError(f"more than {_LONGEST} characters")
        tree = ast.parse(name_of(expression.strip()), mode="eval").body
        return np.array([_truth(tree, row) is True for row in _complete(table)], dtype=bool)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, BreastMorphError):
            raise
        raise _misunderstood(expression, _REMEDY + _other_language(expression)) from error


def _complete(table: Sequence[Row]) -> list[Row]:
    """Rows with the same columns each, named as they can be written: BMI (kg/m2) is bmi_kg_m2."""
    columns = list(dict.fromkeys(name for row in table for name in row))
    if not columns:
        raise BreastMorphError("there is no table to choose subjects by", "Give it with --table cohort.csv")
    written = {name: re.sub(r"\W+", "_", name).strip("_").lower() for name in columns}
    return [{written[name]: (row.get(name) or "").strip() for name in columns} for row in table]


def _misunderstood(part: str | ast.AST, remedy: str = _REMEDY) -> BreastMorphError:
    text = part if isinstance(part, str) else ast.unparse(part)
    return BreastMorphError(f"the condition {text!r} is not understood", remedy, code="condition")


def _other_language(expression: str) -> str:
    """What is written otherwise here than in SQL or C, as the end of a remedy."""
    found = [
        f"{ours} instead of {theirs}" for pattern, theirs, ours in _OTHERS if re.search(pattern, expression)
    ]
    return f"; here it is {', '.join(found)}" if found else ""


def _truth(node: ast.expr, row: Row) -> bool | None:
    """True, False, or None where the table does not say."""
    if isinstance(node, ast.BoolOp):
        parts = [_truth(value, row) for value in node.values]
        decisive = isinstance(node.op, ast.Or)
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _truth(node.operand, row)
        return None if inner is None else not inner
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        results = [
            _compared(left, op, right, row)
            for left, op, right in zip(sides[:-1], node.ops, sides[1:], strict=True)
        ]
        return False if False in results else None if None in results else True
    if isinstance(node, ast.Name):
        value = _value(node, row)
        if value == "":
            return None
        number = as_number(str(value))
        if math.isnan(number):
            raise BreastMorphError(
                f"column {node.id!r} holds text ({value!r}), not yes or no",
                f"Compare it with a text: {node.id} == {value!r}",
                code="condition",
            )
        return number != 0.0
    raise _misunderstood(node)


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr, row: Row) -> bool | None:
    first = _value(left, row)
    if isinstance(op, (ast.In, ast.NotIn)):
        if not isinstance(right, (ast.Tuple, ast.List, ast.Set)):
            raise _misunderstood(right)
        found = [_pair(first, ast.Eq(), _value(part, row), left) for part in right.elts]
        if True in found:
            return isinstance(op, ast.In)
        return None if None in found else isinstance(op, ast.NotIn)
    if type(op) not in _COMPARE:
        raise _misunderstood(ast.Compare(left, [op], [right]))
    second = _value(right, row)
    if any(isinstance(side, ast.Constant) and side.value == "" for side in (left, right)):
        return _COMPARE[type(op)](str(first), str(second))  # asked whether a cell is empty
    return _pair(first, op, second, left if isinstance(left, ast.Name) else right)


def _pair(first: float | str, op: ast.cmpop, second: float | str, column: ast.expr) -> bool | None:
    """Compare two values: as numbers where one is a number, else as texts, in which case does not count."""
    if "" in (first, second):
        return None
    compare = _COMPARE[type(op)]
    numbers = [value if isinstance(value, float) else as_number(value) for value in (first, second)]
    if not any(math.isnan(number) for number in numbers):
        return compare(*numbers)
    if float in (type(first), type(second)):
        text = first if isinstance(first, str) else second
        raise BreastMorphError(
            f"column {ast.unparse(column)!r} holds text ({text!r}) where a number is needed",
            "Compare it with a text in quotes",
            code="condition",
        )
    return compare(str(first).lower(), str(second).lower())


def _value(node: ast.expr, row: Row) -> float | str:
    if isinstance(node, ast.Name):
        name = node.id.lower()
        if name not in row:
            if name in _TRUTH:  # operated == yes
                return name
            raise BreastMorphError(
                f"the table has no column {node.id!r}", f"Its columns are {', '.join(row)}", code="condition"
            )
        return row[name]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand, row)
        if isinstance(value, float):
            return -value
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            return "yes" if node.value else "no"
        if isinstance(node.value, (int, float)):
            return float(node.value)
        if isinstance(node.value, str):
            return node.value
    raise _misunderstood(node)
