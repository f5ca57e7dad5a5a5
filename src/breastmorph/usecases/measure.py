"""Measure: clinical distances, volumes and symmetry of scans, registered subjects, meshes and a model's mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from breastmorph.clinical.examination import Examination
from breastmorph.clinical.examiner import examiner_of
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.foundation.errors import BreastMorphError, FileProblem, MeshProblem
from breastmorph.foundation.text import name_of
from breastmorph.mesh.files import READABLE
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.registration.result import Registration
from breastmorph.scan.check import CheckParameters, ScanFiles, check_scan, find_scans
from breastmorph.scan.scan import Scan
from breastmorph.template import default_template
from breastmorph.usecases.register import register_scan
from breastmorph.usecases.subject import check_upright_in_mm, template_of

_MODEL_SUFFIXES = (".h5", ".hdf5", ".npz", ".json")

Kind = Literal["scans", "registered", "model"]


@dataclass(frozen=True, eq=False)
class MeasureRequest:
    """Whom to measure.

    Attributes
    ----------
    subject : Registration, Scan, ShapeModel or TriangleMesh
        A scan is registered and measured between its own landmarks. Of a model, its mean.
    model : ShapeModel, optional
        Whose triangles a mesh has, and whose template a scan is registered with; the default template's when not
        given.
    distances_only : bool
        Of a scan: no volume and symmetry, which need a registration.
    """

    subject: Registration | Scan | ShapeModel | TriangleMesh
    model: ShapeModel | None = None
    distances_only: bool = False


@dataclass(frozen=True)
class MeasureFilesRequest:
    """Which files to measure.

    Attributes
    ----------
    path : Path
        A scan, a folder of scans, a registered folder or a mesh of it.
    landmarks : Path, optional
        Of scans: a folder of landmark files, or one file for one scan; beside the scans when not given.
    distances_only : bool
        Of scans: no volume and symmetry, which need a registration.
    check : CheckParameters
        How scans are read.
    """

    path: Path
    landmarks: Path | None = None
    distances_only: bool = False
    check: CheckParameters = field(default_factory=CheckParameters)


@dataclass(frozen=True, eq=False)
class MeasuredFiles:
    """Subjects that are measured one by one, because thousands of meshes would fill the memory.

    Attributes
    ----------
    total : int
        How many subjects there are.
    results : iterator of (id, Examination or BreastMorphError)
    """

    total: int
    results: Iterator[tuple[str, Examination | BreastMorphError]]


def kind_of(path: Path) -> Kind:
    """What a file or folder to be measured is.

    Raises
    ------
    FileProblem
        There is nothing, or nothing that can be measured.
    """
    if not path.exists():
        raise FileProblem("there is no such file or folder", "Check the path", path)
    if path.is_file() and path.suffix.lower() in _MODEL_SUFFIXES:
        return "model"
    if (path / "registered").is_dir() or _is_registered(path):
        return "registered"
    if path.is_file() and path.suffix.lower() not in READABLE:
        known = f"Give a scan ({' '.join(READABLE)}), a folder or a model (.h5)"
        raise FileProblem("this is neither a scan nor a model", known, path)
    return "scans"


def measure(request: MeasureRequest) -> Examination:
    """Measure one subject.

    Raises
    ------
    BreastMorphError
        The scan cannot be registered, the mesh has other triangles, or the model no landmarks.
    """
    subject, model = request.subject, request.model
    if isinstance(subject, ShapeModel):
        return examiner_of(_with_landmarks(subject)).shape("mean", subject.mean, source="model")
    if isinstance(subject, Registration):
        return examiner_of(subject.template).shape(
            subject.id, subject.vertices, subject.absent_side, annotated=subject.landmarks
        )
    if isinstance(subject, TriangleMesh):
        return _of_mesh(subject, model)
    template = default_template() if model is None else template_of(model)
    if request.distances_only:
        return examiner_of(template).distances(subject)
    found = register_scan(subject, template)
    return examiner_of(template).scan(subject, found.vertices, found.absent_side, found.warnings)


def measure_files(request: MeasureFilesRequest) -> MeasuredFiles:
    """Measure the subjects of files one by one; one that cannot be measured does not stop the rest."""
    path = request.path
    # A mesh of a registered folder with landmarks of its own is a scan like any other.
    if kind_of(path) == "registered" and (path.is_dir() or request.landmarks is None):
        cohort = load_cohort(path if path.is_dir() else path.parent.parent)
        if path.is_file():
            cohort = cohort.chosen([cohort.ids.index(name_of(path.stem))])
        return MeasuredFiles(len(cohort), _of_cohort(cohort))
    found = find_scans(path, request.landmarks)
    return MeasuredFiles(len(found), _of_scans(found, request))


def _is_registered(path: Path) -> bool:
    return path.is_file() and path.parent.name == "registered" and path.with_suffix(".json").is_file()


def _of_cohort(cohort: Cohort) -> Iterator[tuple[str, Examination | BreastMorphError]]:
    examiner = examiner_of(cohort.template)
    annotated = cohort.landmarks or (None,) * len(cohort)
    for name, shape, absent, own in zip(cohort.ids, cohort.shapes(), cohort.absent, annotated, strict=True):
        try:
            yield name, examiner.shape(name, shape, absent, annotated=own)
        except BreastMorphError as error:
            yield name, error


def _of_scans(
    found: Sequence[ScanFiles], request: MeasureFilesRequest
) -> Iterator[tuple[str, Examination | BreastMorphError]]:
    upright = default_template().as_reference
    for files in found:
        try:
            scan = check_scan(files, request.check, upright).accepted()
            yield files.id, measure(MeasureRequest(scan, distances_only=request.distances_only))
        except BreastMorphError as error:
            yield files.id, error


def _of_mesh(mesh: TriangleMesh, model: ShapeModel | None) -> Examination:
    known = default_template() if model is None else model
    reference = known.mean_mesh if isinstance(known, ShapeModel) else known.mesh
    if not np.array_equal(mesh.faces, reference.faces):
        whose = "the default template's" if model is None else "the model's"
        raise MeshProblem(
            "the mesh does not have {whose} triangles, so the places of its landmarks are not known",
            "Give the model that it belongs to as model=, or a scan with its landmarks",
            whose=whose,
        )
    if isinstance(known, ShapeModel):
        _with_landmarks(known)
    to_mean = Similarity.fit(reference.vertices, mesh.vertices).inverse()
    check_upright_in_mm(to_mean, "the mean shape")
    return examiner_of(known).shape("mesh", mesh.vertices)


def _with_landmarks(model: ShapeModel) -> ShapeModel:
    if not model.landmark_ids:
        raise BreastMorphError(
            "this model has no landmarks", "Name their vertices: model.with_landmark_ids({...})"
        )
    return model
