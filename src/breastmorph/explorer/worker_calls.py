"""Calls into worker processes that can be cancelled; what comes back are results or errors for people."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from breastmorph.explorer.jobs import Cancelled
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.workers import Failure, Limits, Worker

_LOOK = 0.1  # seconds between two looks at whether it was cancelled
_REMEDIES = {
    "time-limit": "Try a smaller file",
    "memory-limit": "Try a smaller file, for example one with fewer triangles",
    "crashed": "The file may be damaged: export it again",
}


def _never() -> bool:
    return False


class WorkerCalls:
    """A worker process that is started when needed and replaced when it died.

    Parameters
    ----------
    setup : callable
        See :func:`breastmorph.foundation.workers.run_each`.
    limits : Limits
        Of one call.
    """

    def __init__(self, setup: Callable[[], Callable[[Any], Any]], limits: Limits) -> None:
        self._setup, self._limits = setup, limits
        self._worker: Worker[Any, Any] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> WorkerCalls:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self) -> None:
        """Start the process before it is needed."""
        with self._lock:
            self._ready(_never)

    def call(self, item: Any, cancelled: Callable[[], bool] = _never) -> Any:
        """Run the function on one item.

        Raises
        ------
        BreastMorphError
            What the function raised, or why the process did not answer.
        Cancelled
        """
        with self._lock:
            worker = self._ready(cancelled)
            if not worker.give(item):
                worker = self._ready(cancelled)
                worker.give(item)
            while not worker.connection.poll(_LOOK) and worker.seconds_left() != 0.0:
                self._stop_if(cancelled)
            answer = worker.answer()
            if worker.gone:
                self._worker = None
        if not isinstance(answer, Failure):
            return answer
        if isinstance(answer.error, BreastMorphError):
            raise answer.error
        if answer.error is not None:
            raise BreastMorphError(
                f"it cannot be read or computed ({answer.reason[:160]})",
                "The file may be damaged: export it again",
                code="unexpected-content",
            )
        raise BreastMorphError(answer.reason, _REMEDIES.get(answer.code, ""), code=answer.code)

    def close(self) -> None:
        """End the process."""
        self._closed = True
        with self._lock:
            if self._worker is not None:
                self._worker.end()
                self._worker = None

    def _ready(self, cancelled: Callable[[], bool]) -> Worker[Any, Any]:
        if self._worker is not None and not self._worker.gone:
            return self._worker
        self._worker = worker = Worker(self._setup, self._limits)
        while not worker.connection.poll(_LOOK):
            self._stop_if(cancelled)
        if not worker.ready():
            self._worker = None
            raise worker.cannot_start()
        return worker

    def _stop_if(self, cancelled: Callable[[], bool]) -> None:
        if (cancelled() or self._closed) and self._worker is not None:
            self._worker.end()
            self._worker = None
            raise Cancelled


class SharedCalls:
    """Worker processes that all sessions share: while one is busy another is started, up to a limit.

    One process stays for the next call; the others end when they are done.

    Parameters
    ----------
    setup, limits
        See :class:`WorkerCalls`.
    most : int
        Processes at a time; further calls wait.
    """

    def __init__(self, setup: Callable[[], Callable[[Any], Any]], limits: Limits, most: int) -> None:
        self._setup, self._limits = setup, limits
        self._places = threading.Semaphore(most)
        self._lock = threading.Lock()
        self._idle: WorkerCalls | None = None
        self._busy: set[WorkerCalls] = set()
        self._closed = False

    def prepare(self) -> None:
        """Start a process before it is needed."""
        with self._borrowed(_never) as calls:
            calls.prepare()

    def call(self, item: Any, cancelled: Callable[[], bool] = _never) -> Any:
        """See :meth:`WorkerCalls.call`."""
        with self._borrowed(cancelled) as calls:
            return calls.call(item, cancelled)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            ending = [*self._busy, *([self._idle] if self._idle is not None else [])]
        for calls in ending:
            calls.close()

    @contextmanager
    def _borrowed(self, cancelled: Callable[[], bool]) -> Iterator[WorkerCalls]:
        while not self._places.acquire(timeout=_LOOK):
            if cancelled():
                raise Cancelled
        try:
            with self._lock:
                if self._closed:
                    raise Cancelled
                calls, self._idle = self._idle or WorkerCalls(self._setup, self._limits), None
                self._busy.add(calls)
            try:
                yield calls
            finally:
                with self._lock:
                    self._busy.discard(calls)
                    spare = self._idle is not None or self._closed
                    if not spare:
                        self._idle = calls
                if spare:
                    calls.close()
        finally:
            self._places.release()
