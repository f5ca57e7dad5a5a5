"""What a person sees of a command, and how it is stopped."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

# --------------------------------------------------------------------------------------------------------------------
# What every command shares on the terminal: tables, progress, warnings, machine-readable output
# --------------------------------------------------------------------------------------------------------------------

Item = TypeVar("Item")
_LONG_WORD = 10  # letters


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    from breastmorph.foundation.files import (
        json_text,  # brings NumPy along, which `breastmorph --help` does not need
    )

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


# --------------------------------------------------------------------------------------------------------------------
# Commands that can be stopped at any time: how they end, and what is said then
# --------------------------------------------------------------------------------------------------------------------

STOPPED = "Stopped. What is done is kept: run the same command again to go on."


@contextmanager
def silent_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end the process at once while modules are loaded: nothing is done yet that has to be put away.

    As an exception it would come up in the middle of an import, and Python prints it with a traceback.
    """
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def ended_like_ctrl_c() -> Iterator[None]:
    """Let a polite request to end (SIGTERM, a closed terminal) stop a run as Ctrl-C does: in order.

    What whoever started the run wants to be ignored stays ignored: under ``nohup`` a closed terminal stops nothing.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
