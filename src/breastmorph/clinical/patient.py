"""A patient in a model's correspondence: the model's triangles in her shape, and where that stands in the model."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.cohort.reading import mesh_in_correspondence, recorded_landmarks
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import (
    BreastMorphError,
    FileProblem,
    Finding,
    LandmarkProblem,
    name_of,
    warning,
)
from breastmorph.foundation.files import printable
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.shape_model import ShapeModel
from breastmorph.registration.pipeline import register
from breastmorph.scan.anatomy import SIZES_IN_MM, UNITS
from breastmorph.scan.check import CheckParameters, check_scan, find_scans
from breastmorph.scan.scan import Landmarks
from breastmorph.template import Template, default_template, template_from

_MOVED = 5.0  # mm between a landmark as annotated and as registered that is worth a word


@dataclass(frozen=True, eq=False)
class Patient:
    """A shape with a model's triangles, at its own size.

    Attributes
    ----------
    id : str
    shape : (n, 3) float
        In mm, upright.
    to_file : Similarity
        From there to the frame and unit of the patient's file.
    absent_side : str
        The side without a breast, or empty.
    warnings : tuple of Finding
    landmarks : Landmarks, optional
        Her own, which somebody set or the program found, on ``shape``; measures run between them.
    skin : (n, 4) uint8, optional
        Her skin's colour as the scan shows it; see :mod:`breastmorph.mesh.skin`.
    """

    id: str
    shape: Floats
    to_file: Similarity = field(default_factory=Similarity)
    absent_side: str = ""
    warnings: tuple[Finding, ...] = ()
    landmarks: Landmarks | None = None
    skin: NDArray[np.uint8] | None = None


@dataclass(frozen=True, eq=False)
class Place:
    """Where a shape stands in a model.

    Attributes
    ----------
    to_model : Similarity
        From the patient's frame into the model's.
    coefficients : (q,) float
    """

    to_model: Similarity
    coefficients: Floats

    @property
    def size(self) -> float:
        """Size of the patient relative to her aligned shape."""
        return 1.0 / self.to_model.scale


def mean_patient(model: ShapeModel) -> Patient:
    """The model's mean, at the mean size of its subjects."""
    return Patient("mean", model.mean)


def scanned_patient(
    model: ShapeModel,
    path: Path,
    landmarks: Path | None,
    check: CheckParameters,
    template: Template | None = None,
) -> Patient:
    """Check and register a scan.

    Parameters
    ----------
    model : ShapeModel
    path : Path
        The scan's file.
    landmarks : Path, optional
        Its landmarks; beside it when not given.
    check : CheckParameters
    template : Template, optional
        One with the model's triangles; see :func:`template_of` when not given.
    """
    found = find_scans(path, landmarks)
    if len(found) > 1:
        raise FileProblem(f"the folder has {len(found)} scans", "Name the file of one scan", path)
    if template is None:
        template = template_of(model)
    elif not np.array_equal(template.mesh.faces, model.faces):
        raise FileProblem(
            "the template does not have the model's triangles",
            "Give the template that the model was built with",
        )
    scan = check_scan(found[0], check, template.as_reference).accepted()
    result = register(template, scan)
    moved = _moved_landmarks(result.vertices, template, scan.landmarks)
    return Patient(
        scan.id,
        result.vertices,
        scan.to_file,
        result.absent_side,
        (*result.warnings, *moved),
        result.landmarks,
        result.mesh.colors,
    )


def _moved_landmarks(shape: Floats, template: Template, annotated: Landmarks) -> tuple[Finding, ...]:
    """A warning where the registered shape has landmarks elsewhere than the scan; none where they agree.

    Soft landmarks (the lower poles above all) only guide a registration, and whoever compares measures of both must
    know which points they run between.
    """
    off = {
        name: float(np.linalg.norm(shape[vertex] - annotated[name]))
        for name, vertex in template.landmark_ids.items()
        if name in annotated
    }
    far = [
        Finding("landmarks-moved/one", {"name": name, "distance": distance})
        for name, distance in sorted(off.items())
        if distance > _MOVED
    ]
    return (warning("landmarks-moved", far=far),) if far else ()


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
        raise FileProblem.of("unreadable/record", path, why=printable(str(error), 160)) from error


def template_of(model: ShapeModel) -> Template:
    """The template for a model's scans: the default one where its triangles are the model's, otherwise the mean."""
    default = default_template()
    if np.array_equal(default.mesh.faces, model.faces):
        return default
    try:
        return template_from(model.mean_mesh, model.landmarks)
    except LandmarkProblem as error:
        raise LandmarkProblem.of("unusable-landmarks/of-model", why=Finding.of(error)) from error


def place(model: ShapeModel, shape: Floats) -> Place:
    """Find a shape's pose, size and coefficients.

    Parameters
    ----------
    model : ShapeModel
    shape : (n, 3) float
        In mm; in any pose.
    """
    if shape.shape != model.mean.shape:
        raise BreastMorphError(
            f"a shape of {len(shape)} vertices for a model of {model.n_vertices}",
            "Register the scan with the template that the model was built with",
        )
    if shape is model.mean or np.array_equal(shape, model.mean):
        return Place(Similarity(), np.zeros(model.n_components))
    to_model = model.align(shape, with_scale=not model.keeps_size)
    return Place(to_model, model.project(to_model.apply(shape)))
