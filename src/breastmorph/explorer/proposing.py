"""Landmarks that the program proposes: for a scan that is open, and in the background for all scans of a folder."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.explorer.answers import finding_record
from breastmorph.explorer.jobs import Cancelled, Job, WorkerCalls
from breastmorph.foundation.errors import BreastMorphError, FileProblem, MeshProblem
from breastmorph.foundation.messages import Finding
from breastmorph.foundation.workers import Limits
from breastmorph.mesh.geometry import Similarity
from breastmorph.scan.check import landmarks_in
from breastmorph.scan.finder import FoundLandmarks
from breastmorph.scan.scan import REQUIRED, Landmarks

if TYPE_CHECKING:
    from breastmorph.explorer.folders import ScanQueue
    from breastmorph.explorer.session import Session
    from breastmorph.explorer.workspace import Case

_TURNED = 20.0  # degrees: a scan that stands more upright than that stays as it is shown
_KINDER = 10  # how much other work comes first, as for the command nice
_PATIENCE = 5.0  # seconds that the background has to end


@dataclass(frozen=True, eq=False)
class Proposal:
    """What the program found on a scan, in the coordinates of its file, or why it found nothing."""

    found: FoundLandmarks = field(default_factory=lambda: FoundLandmarks(Landmarks.of({})))
    refused: Finding | None = None

    @property
    def doubt(self) -> int:
        """How many landmarks need a person: doubtful ones, and those that were not found."""
        if self.refused is not None:
            return len(REQUIRED)
        return len(self.found.doubtful) + len(self.found.left_out)

    def turn(self, to_file: Similarity) -> list[float] | None:
        """What turns a scan upright that is shown in other axes, row by row; None where it stands well enough."""
        rotation = self.found.axes @ to_file.rotation
        angle = np.degrees(np.arccos(np.clip((np.trace(rotation) - 1.0) / 2.0, -1.0, 1.0)))
        return None if self.refused is not None or angle < _TURNED else rotation.ravel().tolist()

    def as_record(self) -> dict[str, Any]:
        """What was not found, for the page."""
        return {
            "refused": finding_record(self.refused) if self.refused is not None else None,
            "left_out": [finding_record(finding) for finding in self.found.left_out.values()],
            "absent": self.found.absent,
        }


def propose(path: Path) -> Proposal:
    """Find landmarks on the scan in a file; for a worker process.

    Raises
    ------
    FileProblem
        It cannot be read.
    """
    try:
        return Proposal(landmarks_in(path)[1])
    except MeshProblem as error:
        return Proposal(refused=error.finding)


def proposer() -> Callable[[Path], Proposal]:
    """Setup of the process that works in the background: whatever else the computer does comes first."""
    if hasattr(os, "nice"):
        with suppress(OSError):
            os.nice(_KINDER)
    return propose


def found_on(session: Session, case: Case, job: Job) -> Proposal | None:
    """Find landmarks on an open scan; None where its file cannot be read any more."""
    explorer, path, queue = session.explorer, case.required_scan.required_file, session.queue
    job.at("looking for the landmarks")

    def find(file: Path) -> Proposal:
        found: Proposal = explorer.reading.call((propose, file), lambda: job.is_cancelled)
        return found

    if queue is None or case.key not in queue.scans:
        return settled(find, path)
    return queue.proposal(case.key) or queue.take_proposal(case.key, find)


class Background:
    """Proposes landmarks for the scans of a folder that have none, one after the other.

    Parameters
    ----------
    queue : ScanQueue
        Where proposals are kept.
    limits : Limits
        Of one scan.
    """

    def __init__(self, queue: ScanQueue, limits: Limits) -> None:
        self._queue, self._limits = queue, limits
        self._wanted = True
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    @property
    def state(self) -> str:
        """running (or about to), stopped by a person, or done."""
        if not self._todo():
            return "done"
        works = self._wanted and (self._thread is None or self._thread.is_alive())
        return "running" if works else "stopped"

    def begin(self) -> None:
        """Begin, unless it was stopped already."""
        if self._wanted:
            self.go_on()

    def go_on(self) -> None:
        """Begin, or begin again where it was stopped."""
        self.stop()
        with self._lock:
            self._wanted, self._stop = True, threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._stop,), name="proposing", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Stop, in the middle of a scan too; what was proposed stays."""
        with self._lock:
            self._wanted = False
            self._stop.set()
            if self._thread is not None:
                self._thread.join(_PATIENCE)

    def as_record(self) -> dict[str, Any]:
        """How far it is, for the page."""
        return {"state": self.state, "left": len(self._todo())}

    def _todo(self) -> list[str]:
        return [key for key in self._queue.scans if self._queue.lacks_proposal(key)]

    def _run(self, stop: threading.Event) -> None:
        with WorkerCalls(proposer, self._limits) as calls, suppress(Cancelled):
            for key in self._todo():
                if stop.is_set():
                    return
                if self._queue.lacks_proposal(key):  # no person was faster
                    self._queue.take_proposal(key, lambda path: calls.call(path, stop.is_set))


def settled(find: Callable[[Path], Proposal], path: Path) -> Proposal:
    """A proposal, or why there can be none; what cannot be read is the caller's business.

    Raises
    ------
    FileProblem
    """
    try:
        return find(path)
    except FileProblem:
        raise
    except BreastMorphError as error:  # its process died or took too long
        return Proposal(refused=error.finding)
