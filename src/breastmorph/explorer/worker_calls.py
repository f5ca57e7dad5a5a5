"""Calls into worker processes that can be cancelled; what comes back are results or errors for people."""

from __future__ import annotations

import threading
from collections import deque
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
    """Worker processes that are started when needed; one stays for the next call, the others end when they are done.

    Parameters
    ----------
    setup : callable
        See :func:`breastmorph.foundation.workers.run_each`.
    limits : Limits
        Of one call.
    most : int
        Processes at a time; further calls wait.
    """

    def __init__(self, setup: Callable[[], Callable[[Any], Any]], limits: Limits, most: int = 1) -> None:
        self._setup, self._limits, self._most = setup, limits, most
        self._places = threading.Semaphore(most)
        self._idle: deque[Worker[Any, Any]] = deque()
        self._closed = False

    def __enter__(self) -> WorkerCalls:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def prepare(self) -> None:
        """Start a process before it is needed."""
        with self._worker(_never):
            pass

    def call(self, item: Any, cancelled: Callable[[], bool] = _never) -> Any:
        """Run the function on one item.

        Raises
        ------
        BreastMorphError
            What the function raised, or why the process did not answer.
        Cancelled
        """
        answer: Any = None
        for _ in range(2):  # a process that waited may have died meanwhile
            with self._worker(cancelled) as worker:
                if worker.give(item):
                    while not worker.connection.poll(_LOOK) and worker.seconds_left() != 0.0:
                        self._stop_if(cancelled)
                    answer = worker.answer()
                    break
        if not isinstance(answer, Failure):
            return answer
        if isinstance(answer.error, BreastMorphError):
            raise answer.error
        if answer.error is not None:
            raise BreastMorphError(
                "it cannot be read or computed ({reason})",
                "The file may be damaged: export it again",
                code="unexpected-content",
                reason=answer.reason[:160],
            )
        raise BreastMorphError(answer.reason, _REMEDIES.get(answer.code, ""), code=answer.code)

    def close(self) -> None:
        """End all processes, also those that are at work."""
        self._closed = True
        for _ in range(self._most):
            self._places.acquire()
        while self._idle:
            self._idle.pop().end()
        for _ in range(self._most):  # calls that still come find it closed
            self._places.release()

    @contextmanager
    def _worker(self, cancelled: Callable[[], bool]) -> Iterator[Worker[Any, Any]]:
        """A process that is ready; it ends where what is done with it does not come to its end."""
        while not self._places.acquire(timeout=_LOOK):
            self._stop_if(cancelled)
        try:
            self._stop_if(_never)
            worker = self._waiting() or Worker(self._setup, self._limits)
            try:
                if not worker.idle:
                    while not worker.connection.poll(_LOOK):
                        self._stop_if(cancelled)
                    if not worker.ready():
                        raise worker.cannot_start()
                yield worker
            except BaseException:
                worker.end()
                raise
            if not worker.ended and (self._idle or self._closed):
                worker.end()
            elif not worker.ended:
                self._idle.append(worker)
        finally:
            self._places.release()

    def _waiting(self) -> Worker[Any, Any] | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _stop_if(self, cancelled: Callable[[], bool]) -> None:
        if cancelled() or self._closed:
            raise Cancelled
