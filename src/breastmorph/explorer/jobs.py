"""Work that takes longer than a request: started, watched, cancelled."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from breastmorph.explorer.answers import error_record, not_now, unknown
from breastmorph.foundation.messages import Message

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
