"""How a study goes: bars on a terminal, a line now and then in a log; always on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from breastmorph.paper.part import Part, PartState
from breastmorph.paper.running import Watch
from breastmorph.usecases import Steps

_STUDY_LINE_SECONDS = 20.0  # between two lines of a log about one part


class StudyProgress(Watch):
    """Shows how a study goes.

    Parameters
    ----------
    sentences : mapping from stage to text, optional
        Said when the first part of a stage starts.
    console : Console, optional
        Standard error when not given.
    """

    def __init__(self, sentences: Mapping[str, str] | None = None, console: Console | None = None) -> None:
        self._sentences = dict(sentences or {})
        self._console = console or Console(stderr=True, soft_wrap=True)
        self._bar: Progress | None = None
        self._said = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def planned(self, to_do: Sequence[Part], done: Sequence[Part]) -> None:
        """Say how much there is to do."""
        if not to_do:
            self._say(f"All {len(done)} parts are there already: nothing to do")
        elif done:
            self._say(f"{len(done)} parts are there already, {len(to_do)} to do")

    def started(self, parts: Sequence[Part]) -> None:
        """Introduce new stages, and show how many of several parts are done."""
        self._close()
        for stage in dict.fromkeys(part.stage for part in parts):
            sentence = self._sentences.pop(stage, "")
            if sentence:
                self._said += 1
                self._say(f"\n{self._said}. {sentence}")
        if len(parts) > 1 and self._console.is_terminal:
            self._open("parts done", len(parts))

    def steps(self, part: Part) -> Steps:
        """A bar for one part on a terminal, a line now and then in a log."""

        @contextmanager
        def show(what: str, total: int) -> Iterator[Callable[[], None]]:
            if self._console.is_terminal:
                yield self._open(what, total)
                self._close()
                return
            last, done = time.monotonic(), 0

            def advance() -> None:
                nonlocal last, done
                done += 1
                if time.monotonic() - last > _STUDY_LINE_SECONDS and done < total:
                    last = time.monotonic()
                    self._say(f"   {done} of {total} {what}")

            yield advance

        return show

    def ended(self, part: Part, state: PartState, seconds: float) -> None:
        """One line a part."""
        if state.note:
            self._say(f"   {state.note}")
        if state.status == "failed":
            self._say(f"   {part.title}: FAILED: {state.why}")
        elif state.status == "not possible":
            self._say(f"   {part.title}: not possible here: {state.why}")
        elif seconds >= 0.5:
            self._say(f"   {part.title}: {seconds:.{0 if seconds >= 10 else 1}f} s")
        if self._bar is not None:
            self._bar.advance(self._bar.tasks[0].id)

    def _open(self, what: str, total: int) -> Callable[[], None]:
        columns = (
            TextColumn("   {task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._bar = bar = Progress(*columns, console=self._console, transient=True)
        task = bar.add_task(what, total=total)
        bar.start()
        return lambda: bar.advance(task)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False)
