"""Scans and their registration."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace as changed
from functools import lru_cache, partial
from typing import overload

from breastmorph.api import (
    Unit,
    after,
    as_template,
    bar,
    found_scans,
    require_names,
    rules_of,
    several_of,
    those_that_worked,
    warn,
)
from breastmorph.batch.cohort_prior import ENOUGH, CohortPrior, fit_cohort_prior
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.foundation.checks import AnyPath, check_int, check_path
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.workers import Failure, Limits, run_each
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.registration.parameters import preset as _preset
from breastmorph.registration.pipeline import Registrar
from breastmorph.registration.result import Registration
from breastmorph.scan.check import check_scan as _check_scan
from breastmorph.scan.check import landmarks_in, passed_over
from breastmorph.scan.finder import FoundLandmarks
from breastmorph.scan.finder import find_landmarks as _find_landmarks
from breastmorph.scan.scan import Check, Scan
from breastmorph.template import Template

_SECONDS = 600.0  # of one scan in a worker process


# --------------------------------------------------------------------------------------------------------------------
# Scans
# --------------------------------------------------------------------------------------------------------------------


def load_scan(
    path: AnyPath,
    landmarks: AnyPath | None = None,
    *,
    unit: Unit = "auto",
    scale_by: str = "",
    landmark_order: Sequence[str] | None = None,
    template: Template | None = None,
) -> Scan:
    """Read one scan, check it, repair it where that is safe and turn it upright.

    Parameters
    ----------
    path : path
        PLY, OBJ, STL, OFF, VTK, VTP, GLB or glTF, in any pose.
    landmarks : path, optional
        Its landmark file, or a folder that holds it; beside the scan when not given. Landmarks that are not set are
        found; ``scan.landmarks.found`` says which, and how sure they are.
    unit : {"auto", "mm", "cm", "m"}
        Of the files; by default the length of the sternum tells.
    scale_by : str
        For files in no known unit: a distance between two landmarks, measured, as ``NL-NR=21cm``.
    landmark_order : sequence of str, optional
        The names of points without names, in the file's order.
    template : Template, optional
        An upright torso that settles the frame of scans turned out of the upright; the default one when not given.

    Raises
    ------
    BreastMorphError
        The scan was refused; the message names file, cause and remedy.
    """
    return check_scan(
        path, landmarks, unit=unit, scale_by=scale_by, landmark_order=landmark_order, template=template
    ).accepted()


def find_landmarks(scan: AnyPath | TriangleMesh, *, unit: Unit = "auto") -> FoundLandmarks:
    """Find the landmarks of a raw scan in any pose, by its shape and, where it has any, its colour.

    Parameters
    ----------
    scan : path or TriangleMesh
        A mesh file, or a surface as it was read.
    unit : {"auto", "mm", "cm", "m"}
        Of the file; by default the size of an adult torso tells.

    Returns
    -------
    FoundLandmarks
        ``landmarks`` in the scan's own coordinates, ready for :func:`save_landmarks`; ``uncertainty`` (mm, standard
        deviation along the skin), ``doubtful`` names that a person should look at, ``absent`` side, and what was
        ``left_out``, with the reason.

    Raises
    ------
    BreastMorphError
        It is no adult torso, several people, or its size fits none of mm, cm and m.
    """
    rules = rules_of(unit, "", None)
    if isinstance(scan, TriangleMesh):
        return _find_landmarks(scan, rules.unit)
    return landmarks_in(check_path(scan), rules)[1]


def check_scan(
    path: AnyPath,
    landmarks: AnyPath | None = None,
    *,
    unit: Unit = "auto",
    scale_by: str = "",
    landmark_order: Sequence[str] | None = None,
    template: Template | None = None,
) -> Check:
    """Judge one scan as `breastmorph check` does; see :func:`load_scan`.

    Returns
    -------
    Check
        What was found, and the scan, or why it is refused. What is wrong with the files is never raised.
    """
    rules, found = rules_of(unit, scale_by, landmark_order), found_scans(path, landmarks)
    if len(found) > 1:
        raise FileProblem(
            f"the folder has {len(found)} scans", "Name one file, or use load_scans", check_path(path)
        )
    return _check_scan(found[0], rules, as_template(template).as_reference)


def load_scans(
    scans: AnyPath,
    landmarks: AnyPath | None = None,
    *,
    unit: Unit = "auto",
    scale_by: str = "",
    landmark_order: Sequence[str] | None = None,
    template: Template | None = None,
    progress: bool = False,
) -> list[Scan]:
    """Read the scans of a folder; see :func:`load_scan`.

    A scan that is refused is left out, with a BreastMorphWarning that names it and says why.

    Parameters
    ----------
    scans : path
        A folder of mesh files, or one file.
    landmarks : path, optional
        The folder of landmark files, each with its scan's name; beside the scans when not given.
    unit, scale_by, landmark_order, template
        As for :func:`load_scan`.
    progress : bool
        Whether to show on standard error how far it is.
    """
    found = found_scans(scans, landmarks)
    warn(filter(None, [passed_over(check_path(scans))]))
    rules, reference = rules_of(unit, scale_by, landmark_order), as_template(template).as_reference
    with bar("Reading", len(found), progress) as advance:
        checks = [after(_check_scan(files, rules, reference), advance) for files in found]
    return those_that_worked([(check.id, check.outcome) for check in checks])


# --------------------------------------------------------------------------------------------------------------------
# Registration
# --------------------------------------------------------------------------------------------------------------------


@overload
def register(
    scans: Scan,
    *,
    template: Template | None = None,
    preset: str = "default",
    use_masks: bool = True,
    learn: bool = False,
    jobs: int = 1,
    progress: bool = False,
) -> Registration: ...
@overload
def register(
    scans: Sequence[Scan],
    *,
    template: Template | None = None,
    preset: str = "default",
    use_masks: bool = True,
    learn: bool = False,
    jobs: int = 1,
    progress: bool = False,
) -> list[Registration]: ...
def register(
    scans: Scan | Sequence[Scan],
    *,
    template: Template | None = None,
    preset: str = "default",
    use_masks: bool = True,
    learn: bool = False,
    jobs: int = 1,
    progress: bool = False,
) -> Registration | list[Registration]:
    """Bend the template onto scans.

    Parameters
    ----------
    scans : Scan or sequence of Scan
    template : Template, optional
        The default one when not given.
    preset : {"default", "paper", "paper-stacked", "rigid"}
        ``paper`` is the printed method, for comparison.
    use_masks : bool
        False fits the whole torso alike.
    learn : bool
        Register several scans twice: what the first pass shows of how the others differ is told to the second pass of
        each. Fewer than 20 are registered once, with a BreastMorphWarning.
    jobs : int
        Worker processes; 1 works in this process. The result does not depend on it.
    progress : bool
        Whether to show on standard error how far it is.

    Returns
    -------
    Registration, or list of Registration
        One for one scan, a list for several. Of several, one that cannot be registered is left out, with a
        BreastMorphWarning that names it and says why.

    Raises
    ------
    BreastMorphError
        The one scan cannot be this template's, or none of several can.
    """
    template, parameters = as_template(template), _preset(preset, use_masks=use_masks)
    if isinstance(scans, Scan):
        return _registered(scans, template, parameters)
    several = several_of(scans, Scan, "Give a scan (bm.load_scan) or several (bm.load_scans)")
    require_names([scan.id for scan in several])
    jobs = check_int(jobs, "the number of worker processes")
    work = _here if jobs == 1 else partial(_in_processes, jobs=jobs)

    def results(learnt: CohortPrior | None) -> dict[str, Registration | BreastMorphError]:
        with bar("Registering", len(several), progress) as advance:
            found = work(several, template, parameters, learnt)
            return {scan_id: after(one, advance) for scan_id, one in found}

    found = results(None)
    if learn:
        sound = (one for one in found.values() if isinstance(one, Registration))
        learnt = fit_cohort_prior(sound, template, parameters)
        if learnt is None:
            warn([f"Fewer than {ENOUGH} scans teach nothing of a cohort: they are registered once."])
        else:
            found = results(learnt)
    return those_that_worked([(scan.id, found[scan.id]) for scan in several])


def register_folder(
    scans: AnyPath,
    landmarks: AnyPath | None,
    out: AnyPath,
    *,
    template: Template | None = None,
    preset: str = "default",
    use_masks: bool = True,
    learn: bool = False,
    jobs: int = 1,
    unit: Unit = "auto",
    progress: bool = False,
) -> Cohort:
    """Register a folder of scans into another, as `breastmorph register` does.

    It can be stopped at any moment: the same call goes on where it was, and does only what is missing, failed or
    changed. A scan that fails does not stop the rest; a BreastMorphWarning names it.

    Parameters
    ----------
    scans, landmarks : path
        As for :func:`load_scans`.
    out : path
        Folder of the results: meshes, records, ``summary.csv`` and ``summary.html``.
    template, preset, use_masks, learn, jobs, unit, progress
        As for :func:`register` and :func:`load_scan`.
    """
    from breastmorph.batch.engine import InProcess, LocalProcesses, register_batch
    from breastmorph.batch.registered_folder import recipe
    from breastmorph.report.summary_page import ScanPictures, write_summaries

    found, place = found_scans(scans, landmarks), check_path(out, "the name of the folder for the results")
    jobs, parameters = check_int(jobs, "the number of worker processes"), _preset(preset, use_masks=use_masks)
    rules = recipe(as_template(template), parameters, rules_of(unit, "", None), ScanPictures(False))
    with bar("Registering", len(found), progress) as advance:
        outcomes = register_batch(
            found,
            rules,
            place,
            InProcess() if jobs == 1 else LocalProcesses(jobs),
            learn=learn,
            on_done=lambda outcome: advance(),
            on_end=lambda known: write_summaries(known, place),
        )
    warn(f"{one.id} is left out: {one.message}" for one in outcomes if one.status == "failed")
    return load_cohort(place)


_lock = threading.Lock()  # a prepared template holds a factorisation that two threads must not use at once


@lru_cache(maxsize=2)
def _registrar(template: Template, parameters: RegistrationParameters) -> Registrar:
    return Registrar(template, parameters)


def _registered(
    scan: Scan, template: Template, parameters: RegistrationParameters, learnt: CohortPrior | None = None
) -> Registration:
    with _lock:
        return _told(_registrar(template, parameters), learnt)(scan)


def _told(registrar: Registrar, learnt: CohortPrior | None) -> Callable[[Scan], Registration]:
    if learnt is None:
        return registrar.register
    return lambda scan: registrar.register(scan, learnt.for_scan(scan.id))


_Found = Iterator[tuple[str, Registration | BreastMorphError]]


def _here(
    scans: Sequence[Scan], template: Template, parameters: RegistrationParameters, learnt: CohortPrior | None
) -> _Found:
    for scan in scans:
        try:
            yield scan.id, _registered(scan, template, parameters, learnt)
        except BreastMorphError as error:
            yield scan.id, error


def _in_processes(
    scans: Sequence[Scan],
    template: Template,
    parameters: RegistrationParameters,
    learnt: CohortPrior | None,
    jobs: int,
) -> _Found:
    setup = partial(_worker, template, parameters, learnt)
    with closing(run_each(setup, scans, jobs, Limits(_SECONDS))) as results:
        for scan, found in results:
            if isinstance(found, Failure):
                error = found.error
                yield (
                    scan.id,
                    error if isinstance(error, BreastMorphError) else BreastMorphError(found.reason),
                )
            else:
                yield scan.id, changed(found, template=template)  # all of them share one


def _worker(
    template: Template, parameters: RegistrationParameters, learnt: CohortPrior | None
) -> Callable[[Scan], Registration]:
    return _told(Registrar(template, parameters), learnt)
