"""Long work that the page can watch and cancel, and what runs in worker processes."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import Any

from breastmorph.explorer.answers import as_record, not_now, told, unknown
from breastmorph.foundation.errors import BreastMorphError, Finding
from breastmorph.foundation.workers import Failure, Limits, Worker
from breastmorph.scan.check import ScanFiles
from breastmorph.scan.scan import Verdict

# --------------------------------------------------------------------------------------------------------------------
# Work that takes longer than a request: started, watched, cancelled
# --------------------------------------------------------------------------------------------------------------------

_KEPT = 20  # finished jobs that can still be asked about
_log = logging.getLogger(__name__)


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
        """Whether somebody wants it to stop."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ask it to stop; too late once its result is kept."""
        with self._lock:
            if not self._settled:
                self._cancelled.set()

    def settle(self) -> None:
        """Its result is kept now and nobody can cancel it any more; raises where somebody was faster."""
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
            self.error = as_record(error)
            if self.error["code"] == "unexpected":
                _log.exception("%s failed", self.kind)
            state = "failed"
        self.state = state  # last: whoever sees it finds the result

    def as_record(self) -> dict[str, Any]:
        """For the page."""
        return {
            "job": self.id,
            "kind": self.kind,
            "state": self.state,
            "progress": self.progress,
            "step": self.step,
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
        # It is about the same scan as the request, also when the tab has gone on to another one.
        run = partial(copy_context().run, job.run, work)
        threading.Thread(target=run, name=f"job {kind}", daemon=True).start()
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


# --------------------------------------------------------------------------------------------------------------------
# Calls into a worker process that can be cancelled; what comes back are results or errors for people
# --------------------------------------------------------------------------------------------------------------------

_LOOK = 0.1  # seconds between two looks at whether somebody cancelled
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


# --------------------------------------------------------------------------------------------------------------------
# The check of scans, in a worker process, with progress
# --------------------------------------------------------------------------------------------------------------------


def checker() -> Callable[[ScanFiles], tuple[Verdict, tuple[Finding, ...]]]:
    """Setup of a checking process."""
    from breastmorph.scan.check import check_scan
    from breastmorph.template import default_template

    upright = default_template().as_reference

    def judge(files: ScanFiles) -> tuple[Verdict, tuple[Finding, ...]]:
        found = check_scan(files, None, upright)
        return found.verdict, found.findings

    return judge


def check_scans(chosen: Mapping[str, ScanFiles], limits: Limits, job: Job) -> dict[str, Any]:
    """Judge scans by key; one that crashes its process is refused, the others go on."""
    checks = []
    with WorkerCalls(checker, limits) as calls:
        for k, (key, files) in enumerate(chosen.items()):
            job.at(files.id, k / len(chosen))
            verdict: str
            findings: tuple[Finding, ...]
            try:
                verdict, findings = calls.call(files, lambda: job.is_cancelled)
            except BreastMorphError as error:
                verdict, findings = "refused", (Finding.of(error),)
            said = [told(one) for one in findings]
            checks.append({"scan": key, "name": files.id, "verdict": verdict, "findings": said})
    return {"checks": checks}
