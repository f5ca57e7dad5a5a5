"""Register scans: the template in the shape of one scan, of several scans in memory, or of a folder of files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path

from breastmorph.batch.cohort_prior import CohortPrior, fit_cohort_prior
from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import Executor
from breastmorph.batch.product import Pictures, Recipe
from breastmorph.batch.registered_folder import Outcome
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.workers import Failure, Limits, run_each
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.registration.pipeline import Registrar
from breastmorph.registration.result import Registration
from breastmorph.scan.check import CheckParameters, ScanFiles, find_scans
from breastmorph.scan.scan import Scan
from breastmorph.template import Template, default_template
from breastmorph.usecases import Progress, no_progress

_SECONDS = 600.0  # of one scan in a worker process


@dataclass(frozen=True, eq=False)
class RegisterRequest:
    """Which scans to register, and how.

    Attributes
    ----------
    scans : tuple of Scan
        Of different ids.
    template : Template, optional
        The default one when not given.
    parameters : RegistrationParameters
    learn : bool
        Register twice: what the first pass shows of how the others differ is given to the second pass of each.
    jobs : int
        Worker processes; 1 works in this process. The result does not depend on it.
    """

    scans: tuple[Scan, ...]
    template: Template | None = None
    parameters: RegistrationParameters = field(default_factory=RegistrationParameters)
    learn: bool = False
    jobs: int = 1


@dataclass(frozen=True, eq=False)
class RegisteredScans:
    """What became of scans.

    Attributes
    ----------
    outcomes : mapping from id to Registration or BreastMorphError
        In the order of the request.
    too_few : bool
        Whether there were too few of them to learn from, so that they were registered once.
    """

    outcomes: Mapping[str, Registration | BreastMorphError]
    too_few: bool = False


@dataclass(frozen=True, eq=False)
class RegisterFolderRequest:
    """Which files to register into which folder, and how.

    Attributes
    ----------
    scans : Path or tuple of ScanFiles
        A mesh file, a folder of them, or the files themselves.
    landmarks : Path, optional
        A folder of landmark files, or one file for one scan; beside the scans when not given.
    out : Path
        The folder of the results.
    template : Template, optional
        The default one when not given.
    parameters : RegistrationParameters
    learn : bool
        As for :class:`RegisterRequest`; kept for scans that are added later.
    force : bool
        Do again what is already done, and learn again.
    retry_failed : bool
        Do only what failed before.
    check : CheckParameters
        How files are read.
    executor : Executor, optional
        What does the work; processes of this machine when not given.
    """

    scans: Path | tuple[ScanFiles, ...]
    landmarks: Path | None
    out: Path
    template: Template | None = None
    parameters: RegistrationParameters = field(default_factory=RegistrationParameters)
    learn: bool = False
    force: bool = False
    retry_failed: bool = False
    check: CheckParameters = field(default_factory=CheckParameters)
    executor: Executor | None = None


def register_scan(
    scan: Scan, template: Template | None = None, parameters: RegistrationParameters | None = None
) -> Registration:
    """Bend the template onto one scan.

    Raises
    ------
    BreastMorphError
        The scan cannot be this template's.
    """
    return _registered(scan, template or default_template(), parameters or RegistrationParameters(), None)


def register(request: RegisterRequest, progress: Progress = no_progress) -> RegisteredScans:
    """Bend the template onto scans; one that cannot be registered does not stop the rest."""
    template = request.template or default_template()
    work = _here if request.jobs == 1 else partial(_in_processes, jobs=request.jobs)

    def outcomes(prior: CohortPrior | None) -> Mapping[str, Registration | BreastMorphError]:
        found = {}
        with progress(len(request.scans)) as advance:
            for scan_id, outcome in work(request.scans, template, request.parameters, prior):
                found[scan_id] = outcome
                advance()
        return {scan.id: found[scan.id] for scan in request.scans}

    first = outcomes(None)
    if not request.learn:
        return RegisteredScans(first)
    known = (outcome for outcome in first.values() if isinstance(outcome, Registration))
    prior = fit_cohort_prior(known, template, request.parameters)
    return RegisteredScans(first, too_few=True) if prior is None else RegisteredScans(outcomes(prior))


def register_folder(
    request: RegisterFolderRequest,
    pictures: Pictures | None = None,
    on_start: Callable[[int, int], None] | None = None,
    on_done: Callable[[Outcome], None] | None = None,
    on_end: Callable[[Sequence[Outcome]], object] | None = None,
) -> list[Outcome]:
    """Register files into a folder; see :func:`breastmorph.batch.engine.register_batch`.

    Parameters
    ----------
    request : RegisterFolderRequest
    pictures : Pictures, optional
        Draws what belongs to every result.
    on_start, on_done, on_end : callable, optional
        Are called with how much there is to do, every outcome as it comes, and all outcomes of the folder at the end.

    Returns
    -------
    list of Outcome
        Of the scans asked for that this run did or found done, in their order.
    """
    found = find_scans(request.scans, request.landmarks) if isinstance(request.scans, Path) else request.scans
    template = request.template or default_template()
    return register_batch(
        found,
        Recipe(template, request.parameters, request.check, pictures),
        request.out,
        request.executor,
        learn=request.learn,
        force=request.force,
        retry_failed=request.retry_failed,
        on_start=on_start,
        on_done=on_done,
        on_end=on_end,
    )


_lock = threading.Lock()  # a prepared template holds a factorisation that two threads must not use at once


@lru_cache(maxsize=2)
def _registrar(template: Template, parameters: RegistrationParameters) -> Registrar:
    return Registrar(template, parameters)


def _registered(
    scan: Scan, template: Template, parameters: RegistrationParameters, prior: CohortPrior | None
) -> Registration:
    with _lock:
        return _registrar(template, parameters).register(scan, prior.for_scan(scan.id) if prior else ())


_Found = Iterator[tuple[str, Registration | BreastMorphError]]


def _here(
    scans: Sequence[Scan], template: Template, parameters: RegistrationParameters, prior: CohortPrior | None
) -> _Found:
    for scan in scans:
        try:
            yield scan.id, _registered(scan, template, parameters, prior)
        except BreastMorphError as error:
            yield scan.id, error


def _in_processes(
    scans: Sequence[Scan],
    template: Template,
    parameters: RegistrationParameters,
    prior: CohortPrior | None,
    jobs: int,
) -> _Found:
    setup = partial(_worker, template, parameters, prior)
    with closing(run_each(setup, scans, jobs, Limits(_SECONDS))) as results:
        for scan, found in results:
            if isinstance(found, Failure):
                error = found.error
                known = error if isinstance(error, BreastMorphError) else BreastMorphError(found.reason)
                yield scan.id, known
            else:
                yield scan.id, replace(found, template=template)  # all of them share one


def _worker(
    template: Template, parameters: RegistrationParameters, prior: CohortPrior | None
) -> Callable[[Scan], Registration]:
    registrar = Registrar(template, parameters)
    return lambda scan: registrar.register(scan, prior.for_scan(scan.id) if prior else ())
