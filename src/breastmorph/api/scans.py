"""Scans and their registration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import overload

from breastmorph.api.arguments import Unit, as_template, landmarks_path, require_names, rules_of, several_of
from breastmorph.api.notices import bar, those_that_worked, warn
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.foundation.checks import AnyPath, check_int, check_path
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.parameters import preset as _preset
from breastmorph.registration.result import Registration
from breastmorph.scan.check import check_scan as _check_scan
from breastmorph.scan.check import landmarks_in
from breastmorph.scan.finder import FoundLandmarks
from breastmorph.scan.finder import find_landmarks as _find_landmarks
from breastmorph.scan.scan import Check, Scan
from breastmorph.template import Template
from breastmorph.usecases.check import CheckRequest, check_files, one_scan
from breastmorph.usecases.register import RegisterFolderRequest, RegisterRequest, register_scan
from breastmorph.usecases.register import register as _register
from breastmorph.usecases.register import register_folder as _register_folder


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

    Returns
    -------
    Scan
        Upright, in mm.

    Raises
    ------
    BreastMorphError
        The scan was refused; the message names file, cause and remedy.

    Examples
    --------
    >>> scan = bm.load_scan("scans/s0.ply", "landmarks/s0.json", unit="mm")
    >>> scan.id, "nipple_left" in scan.landmarks
    ('s0', True)
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

    Examples
    --------
    >>> found = bm.find_landmarks("scans/s0.ply")
    >>> "sternal_notch" in found.landmarks
    True
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

    Parameters
    ----------
    path, landmarks, unit, scale_by, landmark_order, template
        As for :func:`load_scan`.

    Returns
    -------
    Check
        What was found, and the scan, or why it is refused. What is wrong with the files is never raised.

    Examples
    --------
    >>> check = bm.check_scan("scans/s0.ply", "landmarks")
    >>> check.id, check.accepted().mesh.n_faces > 0
    ('s0', True)
    """
    rules = rules_of(unit, scale_by, landmark_order)
    place, marks = check_path(path, "the name of the scan"), landmarks_path(landmarks)
    files = one_scan(place, marks, "Name one file, or use load_scans")
    return _check_scan(files, rules, as_template(template).as_reference)


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

    Returns
    -------
    list of Scan
        In the order of their ids.

    Raises
    ------
    BreastMorphError
        There is no scan, or every one is refused.

    Examples
    --------
    >>> [scan.id for scan in bm.load_scans("scans", "landmarks")]
    ['s0', 's1']
    """
    request = CheckRequest(
        check_path(scans, "the name of the scan"),
        landmarks_path(landmarks),
        rules_of(unit, scale_by, landmark_order),
        as_template(template),
    )
    found = check_files(request, lambda total: bar("Reading", total, progress))
    warn(filter(None, [found.passed_over]))
    return those_that_worked([(check.id, check.outcome) for check in found.checks])


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
        Register several scans twice: what the first pass shows of how the others differ is given to the second pass of
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

    Examples
    --------
    >>> registered = bm.register(scan)
    >>> registered.mesh.n_vertices == bm.default_template().mesh.n_vertices
    True
    """
    template, parameters = as_template(template), _preset(preset, use_masks=use_masks)
    if isinstance(scans, Scan):
        return register_scan(scans, template, parameters)
    several = tuple(several_of(scans, Scan, "Give a scan (bm.load_scan) or several (bm.load_scans)"))
    require_names([scan.id for scan in several])
    jobs = check_int(jobs, "the number of worker processes")
    request = RegisterRequest(several, template, parameters, learn, jobs)
    found = _register(request, lambda total: bar("Registering", total, progress))
    if found.too_few:
        enough = parameters.cohort_prior.enough
        warn([f"Fewer than {enough} scans teach nothing of a cohort: they are registered once."])
    return those_that_worked(list(found.outcomes.items()))


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

    Returns
    -------
    Cohort
        The registered subjects of ``out``.

    Raises
    ------
    BreastMorphError
        There is no scan, or ``out`` is in use or was made with another template.

    Examples
    --------
    >>> cohort = bm.register_folder("scans", "landmarks", "registered-scans")
    >>> cohort.ids
    ('s0', 's1')
    """
    from breastmorph.batch.executors import InProcess, LocalProcesses
    from breastmorph.report.registration_pictures import ScanPictures
    from breastmorph.report.summary_page import write_summaries

    place = check_path(out, "the name of the folder for the results")
    jobs = check_int(jobs, "the number of worker processes")
    request = RegisterFolderRequest(
        check_path(scans, "the name of the scan"),
        landmarks_path(landmarks),
        place,
        as_template(template),
        _preset(preset, use_masks=use_masks),
        learn,
        check=rules_of(unit, "", None),
        executor=InProcess() if jobs == 1 else LocalProcesses(jobs),
    )
    with ExitStack() as shown:
        advance: list[Callable[[], None]] = []

        def started(total: int, unchanged: int) -> None:
            shown.close()
            advance[:] = [shown.enter_context(bar("Registering", total, progress))]

        outcomes = _register_folder(
            request,
            ScanPictures(False),
            on_start=started,
            on_done=lambda outcome: advance[0](),
            on_end=lambda known: write_summaries(known, place),
        )
    warn(f"{outcome.id} is left out: {outcome.message}" for outcome in outcomes if outcome.status == "failed")
    return load_cohort(place)
