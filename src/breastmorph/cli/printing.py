"""What commands print: tables, JSON, warnings, progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from breastmorph.api.notices import bar
from breastmorph.foundation.files import json_text

Item = TypeVar("Item")
_LONG_WORD = 10  # letters


def print_json(value: Any) -> None:
    """Print a value as JSON."""

    click.echo(json_text(value))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table with plain text cells; rich markup is allowed in them."""
    table = Table(title=title, title_justify="left", show_lines=False)
    lines = [list(row) for row in rows]
    for column, cells in zip(
        columns, zip(*lines, strict=True) if lines else [()] * len(columns), strict=True
    ):
        words = (word for cell in (column, *cells) for word in Text.from_markup(cell).plain.split())
        # On a narrow terminal long remarks may wrap, but not a word like "registered".
        table.add_column(column, overflow="fold", min_width=min(max(map(len, words), default=0), _LONG_WORD))
    for row in lines:
        table.add_row(*row)
    # Tables are not squeezed when the output goes to a file.
    (Console() if sys.stdout.isatty() else Console(width=160)).print(table)


def warn(warnings: Iterable[str]) -> None:
    """Say warnings, beside whatever is printed."""
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)


def progress_with(what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
    """A progress bar on a terminal only; the value is called once per finished item."""
    return bar(what, total, sys.stderr.isatty())


def progress(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Go through items with a progress bar."""
    with progress_with(what, len(items)) as advance:
        for item in items:
            yield item
            advance()
