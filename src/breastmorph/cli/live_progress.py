"""Live progress of a batch: a moving line on a terminal, a line now and then in a log; always on standard error."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Column

from breastmorph.batch.registered_folder import Outcome
from breastmorph.registration.parameters import AcceptanceParameters

_LINE_SECONDS = 15.0  # between two lines of a log at least ...
_LINE_SHARE = 0.05  # ... and this share of the scans ...
_SILENT_SECONDS = 300.0  # ... but never a longer silence
_RECENT = 64  # scans the speed is measured over: long enough to be calm, short enough to follow the machine
_NAMED_FAILURES = 10  # more would fill the log; all of them are in the summary
_ACCEPTED = AcceptanceParameters()
_WARNING_AT = (  # figure, value that deserves a warning, unit
    ("distance_inside", _ACCEPTED.breast_off, "mm from the breast"),
    ("angle_distortion", _ACCEPTED.distorted, "° change of angles"),
    ("flipped_percent", _ACCEPTED.folded, "% flipped triangles"),
)


class LiveProgress:
    """Shows how a batch goes; its methods are the batch's callbacks.

    Parameters
    ----------
    what : str
        What is being done, for example "Registering".
    console : Console, optional
        Standard error when not given.
    clock : callable, optional
        Seconds.
    """

    def __init__(
        self, what: str, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._console = console or Console(stderr=True, soft_wrap=True)
        self._clock = clock
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._total = self._done = self._failed = self._printed = 0
        self._begin = self._last_line = clock()
        self._times: deque[float] = deque(maxlen=_RECENT)
        self._worst, self._worst_text = 0.0, ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
        if self._total:
            took = _duration(self._clock() - self._begin)
            done = f"{self._done} of {self._total} scans, {self._failed} failed, in {took}"
            self._say(f"{self._what}: {done}{self._tail()}")

    def start(self, total: int, unchanged: int) -> None:
        """The number of scans to do, and of those that are already done."""
        if self._total:  # a second pass
            self.__exit__()
        self._total = total
        self._done = self._failed = self._printed = 0
        self._worst, self._worst_text = 0.0, ""
        self._begin = self._last_line = self._clock()
        self._times.clear()
        self._times.append(self._begin)
        already = f" ({unchanged} already done)" if unchanged else ""
        if not total:
            self._say(f"{self._what}: nothing to do{already}")
            return
        if not self._console.is_terminal:
            self._say(f"{self._what} {total} scans{already}")
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn(
                "{task.fields[state]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")
            ),
        )
        self._bar = Progress(*columns, console=self._console, refresh_per_second=4, expand=True)
        self._task = self._bar.add_task(self._what, total=total, state="")
        self._bar.start()

    def done(self, outcome: Outcome) -> None:
        """One scan is finished."""
        self._done += 1
        self._times.append(self._clock())
        if outcome.status == "failed":
            self._failed += 1
            if self._failed <= _NAMED_FAILURES:
                self._say(f"failed {outcome.id}: {outcome.message}")
            if self._failed == _NAMED_FAILURES:
                self._say("further failures are in summary.csv")
        self._judge(outcome)
        if self._bar is not None:
            self._bar.update(self._task, advance=1, state=self._state())
        elif self._line_is_due():
            self._say(f"{self._done}/{self._total}, {self._state()}")

    def _say(self, text: str) -> None:
        self._last_line, self._printed = self._clock(), self._done
        self._console.print(text, markup=False, highlight=False)

    def _line_is_due(self) -> bool:
        silent = self._clock() - self._last_line
        more = self._done - self._printed >= _LINE_SHARE * self._total
        return self._done < self._total and silent >= (_LINE_SECONDS if more else _SILENT_SECONDS)

    def _state(self) -> str:
        parts = [f"{self._failed} failed"] if self._failed else []
        seconds = self._times[-1] - self._times[0]
        if seconds > 0:
            speed = (len(self._times) - 1) / seconds
            parts += [f"{60 * speed:.0f}/min", f"{_duration((self._total - self._done) / speed)} left"]
        return ", ".join(parts) + self._tail()

    def _tail(self) -> str:
        return f"; worst {self._worst_text}" if self._worst_text else ""

    def _judge(self, outcome: Outcome) -> None:
        metrics = outcome.record.get("metrics", {})
        for name, warning, unit in _WARNING_AT:
            value = metrics.get(name)
            if value is not None and value / warning > self._worst:
                self._worst, self._worst_text = value / warning, f"{outcome.id}: {value:.2g} {unit}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
