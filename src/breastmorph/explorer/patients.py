"""A patient on the page: a scan registered or fitted, with how far the result lies from the scan."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.batch.executors import Executor, LocalProcesses
from breastmorph.batch.product import FailedScan, Product, ProductMaker, Recipe
from breastmorph.batch.registered_folder import Outcome, RegisteredFolder
from breastmorph.clinical.patient import Patient
from breastmorph.explorer.answers import sentences
from breastmorph.explorer.jobs import Job, WorkerCalls
from breastmorph.explorer.model_view import ModelOrigin, ModelView
from breastmorph.explorer.open_scans import landmark_json, scan_files
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.locks import FolderLock
from breastmorph.foundation.messages import Finding
from breastmorph.foundation.workers import Limits
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, vertex_normals
from breastmorph.mesh.skin import share_seen
from breastmorph.model.fitting import surface_residuals
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.check import ScanFiles
from breastmorph.template import Template
from breastmorph.usecases.register import RegisterFolderRequest, register_folder
from breastmorph.usecases.subject import registered_patient

if TYPE_CHECKING:
    from breastmorph.explorer.session import Session
    from breastmorph.explorer.workspace import Case


@dataclass(frozen=True, eq=False)
class ShownPatient:
    """A patient in the model's triangles, ready to be shown, edited and predicted for.

    Attributes
    ----------
    patient : Patient
    scan : str
        Key of her scan; empty where there is none.
    how : {"registered", "fitted"}
    residual : (n,) float
        Signed distance of every vertex from the scan, mm; NaN where the scan shows nothing.
    to_shown : Similarity
        From her upright frame to where the page shows her: on the model's mean, at her own size.
    landmarks : bytes
        Those that were used, as a JSON file of ours; empty where there were none.
    """

    patient: Patient
    scan: str
    how: str
    residual: Floats
    to_shown: Similarity
    landmarks: bytes = b""

    def as_record(self, name: str) -> dict[str, Any]:
        """For the page, by the name of her case."""
        seen = np.abs(self.residual[np.isfinite(self.residual)])
        return {
            "scan": self.scan,
            "name": name,
            "how": self.how,
            "absent_side": self.patient.absent_side,
            "residual": {
                "mean_mm": float(seen.mean()) if len(seen) else None,
                "p95_mm": float(np.quantile(seen, 0.95)) if len(seen) else None,
                "seen": len(seen) / max(len(self.residual), 1),
            },
            "warnings": sentences(self.patient.warnings),
            "skin_seen": None if self.patient.skin is None else share_seen(self.patient.skin),
        }


def shown_patient(model: ShapeModel, patient: Patient, scan: str, how: str, residual: Floats) -> ShownPatient:
    """Align a patient with the model's mean without changing her size."""
    to_shown = Similarity.fit(patient.shape, model.mean, with_scale=False)
    return ShownPatient(patient, scan, how, residual, to_shown)


def residual(surface: Surface, shape: Floats, faces: Ints) -> Floats:
    """Signed distance of a shape's vertices from a scan as it was read; see :func:`surface_residuals`."""
    return surface_residuals(surface, shape, vertex_normals(shape, faces), may_be_turned=True)


def computed_patient(session: Session, case: Case, how: str, job: Job) -> ShownPatient:
    """Register (or, ``how`` is "fitted", fit) a scan; of an upload nothing stays on the disk.

    Raises
    ------
    BreastMorphError
        Why it cannot be done.
    """
    view, queue, limits = session.view, session.queue, session.explorer.settings.computing
    scan, picks = case.required_scan, case.picks
    marks = landmark_json(picks, scan.read.to_file) if picks.points else b""
    with tempfile.TemporaryDirectory(dir=session.folder, ignore_cleanup_errors=True) as place:
        folder = Path(place)
        if how == "fitted":
            files = scan_files(case, folder) if picks.points else None
            return replace(fit_patient(view, case, files, limits, job), landmarks=marks)
        out = queue.registration if scan.source == "queue" and queue else folder / "registration"
        found = register_patient(session, case, scan_files(case, folder), out, job)
        return replace(found, landmarks=marks)


def comparer() -> Callable[[tuple[Template, Sequence[ScanFiles], Path]], bytes]:
    """Setup of a process that compares visits of one person, the first one first, and writes the page of that."""

    def compare(task: tuple[Template, Sequence[ScanFiles], Path]) -> bytes:
        from breastmorph.report.comparison_page import write_comparison_page
        from breastmorph.usecases.compare import CompareRequest
        from breastmorph.usecases.compare import compare as compare_visits

        template, visits, folder = task
        found = compare_visits(CompareRequest(visits, template))
        return write_comparison_page(found, folder).read_bytes()

    return compare


def register_scans(
    session: Session, found: Sequence[ScanFiles], out: Path, job: Job, jobs: int = 1
) -> list[Outcome]:
    """Register scans into a folder in processes of their own, with progress."""
    job.at("preparing the template", 0.0)
    explorer = session.explorer
    done = 0

    def start(todo: int, current: int) -> None:
        nonlocal done
        done = current
        # How far a single scan is cannot be known.
        job.at("registering", None if len(found) == 1 else 0.05 + 0.9 * current / len(found))

    def advance(outcome: Outcome) -> None:
        nonlocal done
        done += 1
        job.at(outcome.id, 0.05 + 0.9 * done / len(found))

    several = LocalProcesses(jobs, explorer.settings.computing)
    executor: Executor = _Stoppable(explorer.registering, job) if jobs == 1 else several
    request = RegisterFolderRequest(tuple(found), None, out, session.view.template, executor=executor)
    return register_folder(request, on_start=start, on_done=advance)


def registrar() -> Callable[[tuple[Recipe, ScanFiles]], Product | FailedScan]:
    """Setup of a registering process; a template that was made ready for one scan serves the next."""
    made: dict[tuple[object, ...], ProductMaker] = {}

    def register(task: tuple[Recipe, ScanFiles]) -> Product | FailedScan:
        rules, files = task
        key = (rules.common["template"], rules.parameters, rules.check, rules.prior)
        if key not in made:
            made.clear()
            made[key] = ProductMaker(rules)
        return made[key](files)

    return register


@dataclass(frozen=True, eq=False)
class _Stoppable:
    """A process that ends as soon as its job is cancelled, in the middle of a scan too."""

    calls: WorkerCalls
    job: Job

    def run(
        self, recipe: Recipe, todo: Sequence[ScanFiles], folder: RegisteredFolder, lock: FolderLock
    ) -> Generator[Outcome, None, None]:
        """See :class:`breastmorph.batch.engine.Executor`."""
        for files in todo:
            try:
                product = self.calls.call((recipe, files), lambda: self.job.is_cancelled)
            except BreastMorphError as error:  # its process died
                product = FailedScan.of(files, error)
            yield folder.store(product)


def registered(model: ShapeModel, case: Case, folder: Path) -> ShownPatient:
    """The patient of a scan that has been registered into a folder."""
    scan = case.required_scan
    patient = registered_patient(model, folder / "registered" / f"{scan.required_file.stem}.ply")
    shape = scan.read.to_file.inverse().apply(patient.to_file.apply(patient.shape))
    return shown_patient(model, patient, scan.key, "registered", residual(scan.surface, shape, model.faces))


def register_patient(session: Session, case: Case, files: ScanFiles, out: Path, job: Job) -> ShownPatient:
    """Register one scan.

    Raises
    ------
    BreastMorphError
        Why it cannot be registered.
    """
    outcome = register_scans(session, [files], out, job)[0]
    if outcome.status == "failed":
        raise failure(outcome)
    job.at("measuring the distance to the scan", 0.96)
    found = registered(session.view.model, case, out)
    patient = replace(found.patient, id=case.name, warnings=tuple(outcome.findings))
    return replace(found, patient=patient)


def failure(outcome: Outcome) -> BreastMorphError:
    """Why a scan was not registered."""
    why = outcome.why
    return BreastMorphError(why.cause, why.advice, outcome.id, code=why.name)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a worker process sends back of a fit.

    Attributes
    ----------
    vertices : (n, 3) float
        In the coordinates of the scan's file.
    residuals : (n,) float
    warnings : tuple of Finding
    skin : (n, 4) uint8, optional
    """

    vertices: Floats
    residuals: Floats
    warnings: tuple[Finding, ...]
    skin: NDArray[np.uint8] | None = None


def fit_patient(
    view: ModelView, case: Case, files: ScanFiles | None, limits: Limits, job: Job
) -> ShownPatient:
    """Fit the model to one scan: its shape upright as the model is, at the scan's size in mm.

    ``files`` are the scan's where its landmarks shall be used.
    """
    scan = case.required_scan
    job.at("fitting pose and shape", 0.1)
    asked = (scan.mesh_file, files.landmarks[0] if files is not None else None)
    with WorkerCalls(partial(fitter, view.origin), limits) as calls:
        found: Fitted = calls.call(asked, lambda: job.is_cancelled)
    job.at("aligning it with the model", 0.95)
    in_mm = scan.read.to_file.inverse().apply(found.vertices)
    to_model = view.model.align(in_mm)
    upright = Similarity(scale=1.0 / to_model.scale).after(to_model)
    to_file = scan.read.to_file.after(upright.inverse())
    patient = Patient(
        case.name, upright.apply(in_mm), to_file, case.picks.absent_side, found.warnings, skin=found.skin
    )
    return shown_patient(view.model, patient, scan.key, "fitted", found.residuals)


def fitter(origin: ModelOrigin) -> Callable[[tuple[Path, Path | None]], Fitted]:
    """Setup of a fitting process: of files, because it reads them itself."""
    from breastmorph.usecases.fit import FitRequest
    from breastmorph.usecases.fit import fit as fitted

    model = origin.load()

    def fit(files: tuple[Path, Path | None]) -> Fitted:
        mesh, landmarks = files
        result = fitted(FitRequest(model, mesh, landmarks))
        warnings = tuple(finding for finding in result.findings if finding.level != "note")
        return Fitted(result.mesh_in_file.vertices, result.fit.residuals, warnings, result.fit.mesh.colors)

    return fit
