"""The FAQ quotes messages that the program has."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "faq.md"


def quoted_messages() -> list[str]:
    """First column of every table, without the dots that stand for what varies."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    cells = [row.split(" | ")[0] for row in rows]
    return [part for cell in cells for part in re.findall(r"`([^`]+)`", cell)]


def texts_of_the_program() -> str:
    """All texts in the sources, with a mark where something is filled in."""
    found = []
    for path in (ROOT / "src" / "breastmorph").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return "\n".join(found)


@pytest.mark.slow
def test_every_message_of_the_faq_is_one_of_the_programs():
    program = texts_of_the_program()
    messages = quoted_messages()
    assert len(messages) > 40
    assert [message for message in messages if message not in program] == []
