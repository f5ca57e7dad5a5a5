"""A patient in a model's correspondence: the model's triangles in her shape, and where that stands in the model."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.messages import Finding
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import Landmarks


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
        Her own, set by hand or found by the program, on ``shape``; measures run between them.
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
            "a shape of {n_shape} vertices for a model of {n_vertices}",
            "Register the scan with the template that the model was built with",
            n_shape=len(shape),
            n_vertices=model.n_vertices,
        )
    if shape is model.mean or np.array_equal(shape, model.mean):
        return Place(Similarity(), np.zeros(model.n_components))
    to_model = model.align(shape, with_scale=not model.keeps_size)
    return Place(to_model, model.project(to_model.apply(shape)))
