"""Check scans: judge each before any computing starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from breastmorph.foundation.errors import FileProblem
from breastmorph.scan.check import CheckParameters, ScanFiles, check_scan, find_scans, passed_over
from breastmorph.scan.scan import Check
from breastmorph.template import Template, default_template
from breastmorph.usecases import Progress, no_progress


@dataclass(frozen=True, eq=False)
class CheckRequest:
    """Which scans to judge, and how they are read.

    Attributes
    ----------
    scans : Path
        A mesh file or a folder of them.
    landmarks : Path, optional
        A folder of landmark files, or one file for one scan; beside the scans when not given.
    check : CheckParameters
    template : Template, optional
        An upright torso that settles the frame of scans turned out of the upright; the default one when not given.
    """

    scans: Path
    landmarks: Path | None = None
    check: CheckParameters = field(default_factory=CheckParameters)
    template: Template | None = None


@dataclass(frozen=True, eq=False)
class CheckedScans:
    """The judgements, and what was not looked at.

    Attributes
    ----------
    checks : tuple of Check
    passed_over : str
        What to say of scans in subfolders, which are not read; empty where there are none.
    """

    checks: tuple[Check, ...]
    passed_over: str


def check_files(request: CheckRequest, progress: Progress = no_progress) -> CheckedScans:
    """Judge the scans of a file or folder; what is wrong with one of them is never raised.

    Raises
    ------
    FileProblem
        There is no scan.
    """
    found = find_scans(request.scans, request.landmarks)
    upright = (request.template or default_template()).as_reference
    checks = []
    with progress(len(found)) as advance:
        for files in found:
            checks.append(check_scan(files, request.check, upright))
            advance()
    return CheckedScans(tuple(checks), passed_over(request.scans))


def one_scan(path: Path, landmarks: Path | None, remedy: str) -> ScanFiles:
    """The files of the one scan that a path stands for.

    Parameters
    ----------
    path, landmarks : Path
        As for :class:`CheckRequest`.
    remedy : str
        What to do where the path is a folder of several scans.
    """
    found = find_scans(path, landmarks)
    if len(found) > 1:
        raise FileProblem("the folder has {n_found} scans", remedy, path, n_found=len(found))
    return found[0]
