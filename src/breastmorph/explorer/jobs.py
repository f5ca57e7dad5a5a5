"""Work that takes longer than a request: started, watched, cancelled."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from breastmorph.explorer.answers import error_record, not_now, unknown
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.messages import Message
from breastmorph.foundation.workers import Failure, Limits, Worker

_KEPT = 20  # finished jobs that can still be asked about
_log = logging.getLogger(__name__)
_LOOK = 0.1  # seconds between two looks at whether it was cancelled
_REMEDIES = {
    "time-limit": "Try a smaller file",
    "memory-limit": "Try a smaller file, for example one with fewer triangles",
    "crashed": "The file may be damaged: export it again",
}


class Cancelled(Exception):
    """Raised inside work that was cancelled."""


class Job:
    """One piece of work and how far it is.

    Parameters
    ----------
    kind : str
    scan : str
        Key of the scan that it is about; empty where it is about none.
    """

    def __init__(self, kind: str, scan: str = "") -> None:
        self.id, self.kind, self.scan = secrets.token_urlsafe(12), kind, scan
        self.state, self.step = "running", ""
        self.progress: float | None = None
        self.result: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self._cancelled = threading.Event()
        self._settled = False
        self._lock = threading.Lock()

    @property
    def is_over(self) -> bool:
        """Whether nothing will change any more."""
        return self.state in ("done", "failed", "cancelled")

    @property
    def is_cancelled(self) -> bool:
        """Whether it shall stop."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ask it to stop; too late once its result is kept."""
        with self._lock:
            if not self._settled:
                self._cancelled.set()

    def settle(self) -> None:
        """Its result is kept now and it cannot be cancelled any more; raises where it was cancelled before."""
        with self._lock:
            if self.is_cancelled:
                raise Cancelled
            self._settled = True

    def at(self, step: str, progress: float | None = None) -> None:
        """Say how far it is; raises where it was cancelled meanwhile."""
        if self.is_cancelled:
            raise Cancelled
        self.step, self.progress = step, progress

    def run(self, work: Callable[[Job], dict[str, Any]]) -> None:
        """Do the work; never raises."""
        try:
            result = work(self)
            if self.is_cancelled:
                raise Cancelled
            self.result, self.progress = result, 1.0
            state = "done"
        except Cancelled:
            state = "cancelled"
        except Exception as error:
            self.error = error_record(error)
            if self.error["code"] == "unexpected":
                _log.exception("%s failed", self.kind)
            state = "failed"
        self.state = state  # last: by then the result is there

    def as_record(self) -> dict[str, Any]:
        """For the page."""
        return {
            "job": self.id,
            "kind": self.kind,
            "state": self.state,
            "progress": self.progress,
            "step": Message(self.step),
            "result": self.result,
            "error": self.error,
        }


class Jobs:
    """The jobs of one session, one at a time."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def start(self, kind: str, work: Callable[[Job], dict[str, Any]], scan: str = "") -> Job:
        """Start work in a thread of its own."""
        with self._lock:
            if self.running is not None:
                raise not_now(
                    "something else is still being computed", "Wait for it, or cancel it first", code="busy"
                )
            for old in [job.id for job in self._jobs.values() if job.is_over][:-_KEPT]:
                del self._jobs[old]
            job = Job(kind, scan)
            self._jobs[job.id] = job
        threading.Thread(target=job.run, args=(work,), name=f"job {kind}", daemon=True).start()
        return job

    def find(self, job_id: str) -> Job:
        """A job of this session."""
        try:
            return self._jobs[job_id]
        except KeyError:
            raise unknown("job") from None

    @property
    def running(self) -> Job | None:
        """The one that is not over yet."""
        return next((job for job in list(self._jobs.values()) if not job.is_over), None)

    def cancel_all(self, scan: str = "") -> None:
        """Ask all to stop, or all that are about one scan."""
        for job in list(self._jobs.values()):
            if not scan or job.scan == scan:
                job.cancel()

    def wait(self, seconds: float) -> None:
        """Wait until all are over, at most so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not all(job.is_over for job in self._jobs.values()):
            time.sleep(0.02)


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
