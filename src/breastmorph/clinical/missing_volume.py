"""What a reconstruction would take: the solid between the chest as it is and the predicted one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.prediction import Prediction, deviation_of
from breastmorph.clinical.skin_points import Reading
from breastmorph.foundation.arrays import Floats
from breastmorph.mesh.geometry import enclosed_volume, face_cross, solid_between
from breastmorph.mesh.triangle_mesh import TriangleMesh

DIFFERENCE = "difference"  # the name of its volume


@dataclass(frozen=True, eq=False)
class Lacking:
    """What lies between a chest and its prediction.

    Attributes
    ----------
    solid : TriangleMesh
        Closed; its volume is the one below.
    volume, deviation : float
        cc, and its standard deviation by the prediction's; what lies above the prediction counts as negative.
    """

    solid: TriangleMesh
    volume: float
    deviation: float

    @property
    def measure(self) -> Measure:
        """The volume as tables and files have it, among the measures of the prediction."""
        return Measure(DIFFERENCE, "volume", self.volume, "cc", None, self.deviation, "model", predicted=True)


def lacking(shape: Floats, prediction: Prediction) -> Lacking:
    """What a flap, an implant or a prosthesis would have to fill.

    Parameters
    ----------
    shape : (n, 3) float
        The chest as it is: what the prediction was made of.
    prediction : Prediction
    """
    missing, faces = prediction.region.missing, prediction.faces
    changed = faces[missing[faces].any(axis=1)]
    solid = solid_between(shape, prediction.shape, faces, missing)
    volume = enclosed_volume(solid) / 1000.0
    gradient = np.zeros_like(shape)
    outwards = face_cross(prediction.shape, changed) / 6000.0
    for corner in range(3):
        np.add.at(gradient, changed[:, corner], outwards)
    found = Reading(volume, np.arange(len(shape)), gradient)
    return Lacking(solid, volume, deviation_of(found, prediction))
