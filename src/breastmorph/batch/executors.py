"""Who does the work of a batch: this process, or processes of this machine (see ``cluster`` for other machines)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from breastmorph.batch.product import FailedScan, Hashes, ProductMaker, Recipe, input_hashes
from breastmorph.batch.registered_folder import Outcome, RegisteredFolder
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.language import N_
from breastmorph.foundation.locks import FolderLock
from breastmorph.foundation.machine import cores
from breastmorph.foundation.workers import Failure, Limits, run_each
from breastmorph.scan.check import ScanFiles

TIME_LIMIT = 600.0  # seconds; a usual scan takes about one, a very large one a minute
Outcomes = Generator[Outcome, None, None]
_FORESEEN = {
    "time-limit": N_("Look at the scan, or raise the time limit"),
    "memory-limit": N_("Decimate the scan, raise the memory limit or take fewer processes"),
    "crashed": N_("Try again; if it fails again, look at the scan"),
    "worker-lost": N_("Try again; if it fails again, look at the scan"),
}


class Executor(Protocol):
    """Turns scans into stored results: this process, processes of this machine, or a cluster (``cluster``)."""

    def run(
        self, recipe: Recipe, todo: Sequence[ScanFiles], folder: RegisteredFolder, lock: FolderLock
    ) -> Outcomes:
        """Register scans (there are some), store what comes of them, give the outcomes as they are finished."""


@dataclass(frozen=True)
class InProcess:
    """One scan after the other in this process, without limits."""

    def run(
        self, recipe: Recipe, todo: Sequence[ScanFiles], folder: RegisteredFolder, lock: FolderLock
    ) -> Outcomes:
        """See :class:`Executor`."""
        make = ProductMaker(recipe)
        for files in todo:
            try:
                product = make(files)
            except MemoryError:
                product = failed_scan(files, Failure("it needed more memory than there is", "memory-limit"))
            yield folder.store(product)


@dataclass(frozen=True)
class LocalProcesses:
    """Processes of this machine. A scan that crashes, hangs or asks for too much memory fails alone.

    Attributes
    ----------
    jobs : int
        How many; all cores when not given.
    limits : Limits
        Of one scan.
    """

    jobs: int = field(default_factory=cores)
    limits: Limits = field(default_factory=lambda: Limits(TIME_LIMIT))

    def run(
        self, recipe: Recipe, todo: Sequence[ScanFiles], folder: RegisteredFolder, lock: FolderLock
    ) -> Outcomes:
        """See :class:`Executor`."""
        setup = partial(_registers_and_stores, recipe, folder, lock)
        with closing(run_each(setup, todo, self.jobs, self.limits)) as results:
            for files, result in results:
                if isinstance(result, Outcome):
                    yield result
                elif result.error is not None:  # not the scan's fault: the folder cannot be written to
                    raise result.error
                else:
                    yield folder.store(failed_scan(files, result))


def failed_scan(files: ScanFiles, failure: Failure, inputs: Hashes | None = None) -> FailedScan:
    """A scan whose process ended without a result."""
    if inputs is None:
        with suppress(FileProblem):
            inputs = input_hashes(files)
    if failure.code in _FORESEEN:
        error = BreastMorphError(
            "{why}", _FORESEEN[failure.code], files.mesh, code=failure.code, why=failure.reason
        )
    else:
        error = BreastMorphError(
            failure.reason, "Look at the machine it ran on", files.mesh, code=failure.code
        )
    return FailedScan.of(files, error, inputs)


def _registers_and_stores(
    recipe: Recipe, folder: RegisteredFolder, lock: FolderLock
) -> Callable[[ScanFiles], Outcome]:
    make = ProductMaker(recipe)

    def work(files: ScanFiles, lock: FolderLock = lock) -> Outcome:  # the lock is kept as long as this is
        return folder.store(make(files))

    return work
