"""The subject of a use case, brought into a model's correspondence: from a file, a scan, a registration or a mesh."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.clinical.patient import Patient
from breastmorph.cohort.reading import OTHER_TRIANGLES, mesh_in_correspondence, recorded_landmarks
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import FileProblem, LandmarkProblem, MeshProblem
from breastmorph.foundation.files import printable
from breastmorph.foundation.messages import Finding, note, warning
from breastmorph.foundation.text import name_of
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.registration.result import Registration
from breastmorph.scan.anatomy import SIZES_IN_MM, UNITS
from breastmorph.scan.check import CheckParameters, check_scan, find_scans
from breastmorph.scan.scan import Landmarks, Scan
from breastmorph.template import Template, default_template, template_from
from breastmorph.usecases.register import register_scan

_MOVED = 5.0  # mm between a landmark as annotated and as registered that is worth a warning
_UPRIGHT = 45.0  # degrees by which a mesh may be turned against the mean


@dataclass(frozen=True, eq=False)
class SubjectFile:
    """A subject on the disk: a mesh that is registered already, or a raw scan.

    Attributes
    ----------
    path : Path
    landmarks : Path, optional
        Of a raw scan; beside it when not given.
    check : CheckParameters
        How a raw scan is read.
    template : Template, optional
        What a raw scan is registered with; see :func:`template_of` when not given.
    is_registered : bool, optional
        Whether the mesh is registered already; when not given, one without ``landmarks`` that has the model's
        triangles is.
    """

    path: Path
    landmarks: Path | None = None
    check: CheckParameters = field(default_factory=CheckParameters)
    template: Template | None = None
    is_registered: bool | None = None


Subject = Patient | Registration | TriangleMesh | Scan | SubjectFile


def open_subject(model: ShapeModel, subject: Subject) -> Patient:
    """Bring a subject into the correspondence of a model.

    Parameters
    ----------
    model : ShapeModel
    subject : Patient, Registration, TriangleMesh, Scan or SubjectFile
        A scan is registered. A mesh has the model's triangles, upright and in mm.

    Returns
    -------
    Patient

    Raises
    ------
    BreastMorphError
        The file cannot be read, the scan cannot be registered, or the triangles are not the model's.
    """
    if isinstance(subject, Patient):
        return subject
    if isinstance(subject, SubjectFile):
        return _from_file(model, subject)
    if isinstance(subject, TriangleMesh):
        check_upright_in_mm(model.align(subject), "the model's mean")
        return Patient("mesh", subject.vertices, skin=subject.colors)
    found = register_scan(subject, template_of(model)) if isinstance(subject, Scan) else subject
    shape = model.shape_of(found.mesh)
    moved = _moved_landmarks(shape, found.template, found.landmarks)
    return Patient(
        found.id,
        shape,
        found.to_file,
        found.absent_side,
        (*found.warnings, *moved),
        found.landmarks,
        found.mesh.colors,
    )


def path_of(subject: Subject | None) -> Path | None:
    """The file that an error about a subject names; None where the subject is a value."""
    return subject.path if isinstance(subject, SubjectFile) else None


def template_of(model: ShapeModel) -> Template:
    """The template for a model's scans: the default one where its triangles are the model's, otherwise the mean."""
    default = default_template()
    if np.array_equal(default.mesh.faces, model.faces):
        return default
    try:
        return template_from(model.mean_mesh, model.landmarks)
    except LandmarkProblem as error:
        raise LandmarkProblem(
            "scans cannot be registered with this model ({why})",
            "Complete its landmarks with landmark_ids, or give a registered mesh (one with its "
            "triangles) instead",
            code="unusable-landmarks/of-model",
            why=error.finding,
        ) from error


def check_upright_in_mm(to_mean: Similarity, mean: str) -> None:
    """Refuse a mesh that is not upright or not in mm.

    Parameters
    ----------
    to_mean : Similarity
        From the mesh to a mean shape.
    mean : str
        What to call that mean shape.
    """
    size = 1.0 / to_mean.scale
    if not SIZES_IN_MM[0] <= size <= SIZES_IN_MM[1]:
        raise MeshProblem(
            "the mesh is {size:.3g} times as large as {mean}",
            "Give it in mm",
            code="wrong-unit",
            size=size,
            mean=mean,
        )
    turn = np.degrees(np.arccos(np.clip((np.trace(to_mean.rotation) - 1.0) / 2.0, -1.0, 1.0)))
    if turn > _UPRIGHT:
        raise MeshProblem(
            "the mesh is turned by {turn:.0f} degrees against {mean}",
            "Give it upright: x to the patient's left, y up, z forward; or register the scan",
            turn=turn,
            mean=mean,
        )


def registered_patient(model: ShapeModel, path: Path) -> Patient:
    """A patient from a mesh with the model's triangles.

    Parameters
    ----------
    model : ShapeModel
    path : Path
        ``OUT/registered/<id>.ply`` of ``breastmorph register``, or a mesh made elsewhere, in any pose; where no
        record lies beside it, its unit is the one in which it has an adult's size.
    """
    mesh = mesh_in_correspondence(
        path, model.faces, "Register the scan with the template that the model was built with"
    )
    record = _record(path.with_suffix(".json"))
    if record is not None:
        to_file, absent, own = record
        shape = to_file.inverse().apply(mesh.vertices)
        return Patient(name_of(path.stem), shape, to_file, absent, landmarks=own, skin=mesh.colors)
    aligned = model.align(mesh.vertices)
    for mm in UNITS.values():
        size = mm / aligned.scale  # of the mesh, were this its unit
        if SIZES_IN_MM[0] <= size <= SIZES_IN_MM[1]:
            upright = Similarity(scale=size).after(aligned)
            shape = upright.apply(mesh.vertices)
            return Patient(name_of(path.stem), shape, upright.inverse(), skin=mesh.colors)
    raise FileProblem("this mesh has no adult's size in mm, cm or m", "Check its unit", path)


def scanned_patient(model: ShapeModel, file: SubjectFile) -> Patient:
    """A patient from the file of a raw scan, which is checked and registered."""
    found = find_scans(file.path, file.landmarks)
    if len(found) > 1:
        raise FileProblem(
            "the folder has {n_found} scans", "Name the file of one scan", file.path, n_found=len(found)
        )
    template = file.template
    if template is None:
        template = template_of(model)
    elif not np.array_equal(template.mesh.faces, model.faces):
        raise FileProblem(
            "the template does not have the model's triangles",
            "Give the template that the model was built with",
        )
    scan = check_scan(found[0], file.check, template.as_reference).accepted()
    return open_subject(model, register_scan(scan, template))


def _from_file(model: ShapeModel, file: SubjectFile) -> Patient:
    """A patient from a file: a registered mesh, known by the model's triangles, or a scan that is registered."""
    is_registered = file.is_registered
    if is_registered or (is_registered is None and file.landmarks is None and file.path.is_file()):
        try:
            return registered_patient(model, file.path)
        except FileProblem as problem:
            if is_registered or problem.code != OTHER_TRIANGLES:
                raise
    return scanned_patient(model, file)


def _moved_landmarks(shape: Floats, template: Template, annotated: Landmarks) -> tuple[Finding, ...]:
    """A warning where the registered shape has landmarks elsewhere than the scan; none where they agree.

    Soft landmarks (the lower poles above all) only guide a registration, and a comparison of measures of both must
    know which points they run between.
    """
    off = {
        name: float(np.linalg.norm(shape[vertex] - annotated[name]))
        for name, vertex in template.landmark_ids.items()
        if name in annotated
    }
    far = [
        note("landmarks-moved/one", "{name:landmark} {distance:.0f} mm", name=name, distance=distance)
        for name, distance in sorted(off.items())
        if distance > _MOVED
    ]
    return (
        (
            warning(
                "landmarks-moved",
                "measures here run between points of the registered shape, which lie off those annotated "
                "on the scan ({far}); `measure` of the scan itself will differ",
                far=far,
            ),
        )
        if far
        else ()
    )


def _record(path: Path) -> tuple[Similarity, str, Landmarks | None] | None:
    """Frame, absent side and landmarks that `breastmorph register` wrote; None where another file lies there."""
    if not path.is_file():
        return None
    try:
        record: dict[str, Any] = json.loads(path.read_bytes())
        if isinstance(record, (dict, list)) and not {"to_file", "absent_side"} & set(map(str, record)):
            return None  # landmarks, or the record of a fit
        landmarks = recorded_landmarks(record)
        to_file = Similarity.from_dict(record["to_file"])
        return to_file, str(record["absent_side"]), landmarks if len(landmarks) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FileProblem(
            "this record cannot be read ({why})",
            "Register the scan again, or move it away",
            path,
            code="unreadable/record",
            why=printable(str(error), 160),
        ) from error
