"""What every command shares on the terminal: tables, progress, machine-readable output."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

Item = TypeVar("Item")
_LONG_WORD = 10  # letters

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON for machines.")
landmarks_option = click.option(
    "--landmarks",
    type=click.Path(path_type=Path),
    help="Landmark folder (or file, for one scan); beside the scans when not given.",
)


def scan_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of every command that reads scans; they reach the command as ``check``, a CheckParameters."""
    from breastmorph.scan.check import CheckParameters

    @click.option(
        "--unit",
        type=click.Choice(["auto", "mm", "cm", "m"]),
        default="auto",
        show_default=True,
        help="Unit of the files; auto decides from the length of the sternum.",
    )
    @click.option("--landmark-order", help="Names of a bare x,y,z list in its order, separated by commas.")
    @click.option(
        "--max-faces",
        type=click.IntRange(min=1),
        default=CheckParameters.max_faces,
        show_default=True,
        help="Refuse larger scans.",
    )
    @functools.wraps(command)
    def with_check(*args: Any, unit: str, landmark_order: str | None, max_faces: int, **others: Any) -> Any:
        order = tuple(name.strip() for name in landmark_order.split(",")) if landmark_order else None
        check = CheckParameters(unit=unit, landmark_order=order, max_faces=max_faces)
        return command(*args, check=check, **others)

    return with_check


def console() -> Console:
    """A console that does not squeeze tables when the output goes to a file."""
    return Console() if sys.stdout.isatty() else Console(width=160)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    click.echo(json.dumps(value, indent=1))


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
    console().print(table)


@contextmanager
def progress_with(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal only; the value is called once per finished item."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def progress(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Go through items with a progress bar."""
    with progress_with(what, len(items)) as advance:
        for item in items:
            yield item
            advance()
