"""Find landmarks: of one raw scan, or of the scans of a folder in several processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.machine import cores
from breastmorph.foundation.workers import Failure, Limits, run_each
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.check import CheckParameters, ScanFiles, find_scans, landmarks_in, passed_over
from breastmorph.scan.finder import FoundLandmarks
from breastmorph.usecases import Progress, no_progress

_SECONDS = 300.0  # of one scan in a worker process

# Is called in the worker process with every scan whose landmarks were found; has to be picklable.
Keep = Callable[[ScanFiles, TriangleMesh, FoundLandmarks], None]


@dataclass(frozen=True)
class LandmarksRequest:
    """In which scans to find landmarks.

    Attributes
    ----------
    scans : Path
        A mesh file or a folder of them; landmark files beside them are not read.
    check : CheckParameters
        How the scans are read and mended.
    jobs : int, optional
        Worker processes; all cores when not given. The result does not depend on it.
    """

    scans: Path
    check: CheckParameters = field(default_factory=CheckParameters)
    jobs: int | None = None


@dataclass(frozen=True, eq=False)
class LandmarksOfScan:
    """The landmarks of one scan, or why there are none: an error, or how its process failed."""

    id: str
    outcome: FoundLandmarks | BreastMorphError | Failure


@dataclass(frozen=True, eq=False)
class LandmarksOfScans:
    """What was found, and what was not looked at.

    Attributes
    ----------
    scans : tuple of LandmarksOfScan
    passed_over : str
        What to say of scans in subfolders, which are not read; empty where there are none.
    """

    scans: tuple[LandmarksOfScan, ...]
    passed_over: str


def find_landmarks(
    request: LandmarksRequest, keep: Keep, progress: Progress = no_progress
) -> LandmarksOfScans:
    """Find the landmarks of every scan; one that is refused or fails does not stop the rest.

    Parameters
    ----------
    request : LandmarksRequest
    keep : callable
        What is done with what was found in a scan, where it was found.
    progress : callable, optional
    """
    found = find_scans(request.scans)
    jobs = min(request.jobs or cores(), len(found))
    outcomes: dict[str, FoundLandmarks | BreastMorphError | Failure] = {}
    with progress(len(found)) as advance:
        if jobs == 1:
            for files in found:
                try:
                    outcomes[files.id] = _found(request.check, keep, files)
                except Exception as error:  # one scan is not worth the batch
                    outcomes[files.id] = Failure(f"{type(error).__name__}: {error}", "error", error)
                advance()
        else:
            work = partial(_worker, request.check, keep)
            for files, outcome in run_each(work, found, jobs, Limits(_SECONDS)):
                outcomes[files.id] = outcome
                advance()
    return LandmarksOfScans(
        tuple(LandmarksOfScan(files.id, outcomes[files.id]) for files in found), passed_over(request.scans)
    )


def _worker(check: CheckParameters, keep: Keep) -> Callable[[ScanFiles], FoundLandmarks | BreastMorphError]:
    return partial(_found, check, keep)


def _found(check: CheckParameters, keep: Keep, files: ScanFiles) -> FoundLandmarks | BreastMorphError:
    try:
        mesh, found = landmarks_in(files.mesh, check)
    except BreastMorphError as error:
        return error
    keep(files, mesh, found)
    return found
