"""What Python functions let the user know on the way: warnings, and how far they are."""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from breastmorph.foundation.errors import BreastMorphError, BreastMorphWarning


def warn(warnings: Iterable[object], depth: int = 3) -> None:
    """Say what the user should know; the warning points to her own line, ``depth`` calls up."""
    for warning in warnings:
        python_warnings.warn(str(warning), BreastMorphWarning, stacklevel=depth)


def those_that_worked(results: Sequence[tuple[str, Any]]) -> list[Any]:
    """The results; errors become warnings, and are raised where there is nothing else."""
    errors = [(name, found) for name, found in results if isinstance(found, BreastMorphError)]
    if errors and len(errors) == len(results):
        raise errors[0][1]
    warn((f"{name} is left out: {error}" for name, error in errors), depth=4)
    return [found for _, found in results if not isinstance(found, BreastMorphError)]


def bar(what: str, total: int, shown: bool) -> AbstractContextManager[Callable[[], None]]:
    """A progress bar on standard error, or nothing; its value is called once per finished item."""
    return _drawn_bar(what, total) if shown else nullcontext(lambda: None)


@contextmanager
def _drawn_bar(what: str, total: int) -> Iterator[Callable[[], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
