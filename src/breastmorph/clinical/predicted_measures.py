"""Measures and nipples of a predicted breast with their standard deviations, and what a reconstruction would take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from breastmorph.clinical.distances import PAIRS, STRAIGHT
from breastmorph.clinical.examiner import PredictedSide, examiner_of
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.missing_region import BOTH
from breastmorph.clinical.prediction import Prediction, deviation_of
from breastmorph.clinical.skin_points import Reading
from breastmorph.foundation.arrays import Floats
from breastmorph.mesh.geometry import enclosed_volume, face_cross, solid_between
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, Landmarks


@dataclass(frozen=True, eq=False)
class PredictedNipple:
    """Where a predicted nipple lies, and how surely.

    Attributes
    ----------
    name : str
        Of the landmark.
    position : (3,) float
        mm, in the frame of the shape that was given.
    deviation : float
        Standard deviation of its place, mm, all directions together.
    across : float
        Of that, what lies along the skin's normal, mm.
    """

    name: str
    position: Floats
    deviation: float
    across: float

    @property
    def in_words(self) -> str:
        """For people."""
        side = self.name.rsplit("_", 1)[-1]
        return (
            f"The {side} nipple's predicted place: \N{PLUS-MINUS SIGN} {self.deviation / 10.0:.1f} cm in all "
            f"directions together, {self.across / 10.0:.1f} cm of it across the skin (one standard deviation)."
        )


def predicted_nipples(model: ShapeModel, prediction: Prediction) -> tuple[PredictedNipple, ...]:
    """The nipples in the missing region; none where the model does not know them."""
    return tuple(
        PredictedNipple(
            name, prediction.shape[vertex], float(prediction.sd[vertex]), float(prediction.sd_normal[vertex])
        )
        for name, vertex in sorted(model.landmark_ids.items())
        if name.startswith("nipple_") and prediction.region.missing[vertex]
    )


def predicted_side(prediction: Prediction) -> PredictedSide:
    """The predicted side, with the standard deviation of a measure of it."""
    return PredictedSide(prediction.region.sides, lambda reading: deviation_of(reading, prediction))


def known_landmarks(prediction: Prediction, landmarks: Landmarks | None) -> Landmarks | None:
    """Of a subject's own landmarks those that are not on a predicted side."""
    if landmarks is None:
        return None
    return landmarks.only(name for name in landmarks.names if not name.endswith(prediction.region.sides))


def predicted_measures(
    model: ShapeModel, prediction: Prediction, landmarks: Landmarks | None = None
) -> tuple[Measure, ...]:
    """Volume, straight distances, heights and areas of the predicted side; what cannot be determined is left out.

    ``landmarks`` are the subject's own. The numbers are those of
    :meth:`breastmorph.clinical.examiner.Examiner.measured`.
    """
    examiner, own = examiner_of(model), known_landmarks(prediction, landmarks)

    def measured(shape: Floats, predicted: PredictedSide | None) -> dict[str, Measure]:
        places = examiner.landmarks(shape, annotated=own)
        found = examiner.measured(shape, places, kinds=(STRAIGHT,), predicted=predicted)
        return {one.name: one for one in found if one.known}

    with_prediction = measured(prediction.shape, predicted_side(prediction))
    unknown, both = float("nan"), prediction.region.side == BOTH
    # Of both breasts there is nothing to compare with: neither another side nor a mirror image.
    with_mirror = {} if both else measured(prediction.mirrored, None)
    names = [(own, "" if both else PAIRS[pair][1 - k]) for pair, k, own in _of_sides(prediction.region.sides)]
    volumes = len(prediction.region.sides)
    found = []
    for name, beside in [*names[:volumes], ("NL-NR", ""), ("intermammary", ""), *names[volumes:]]:
        one = with_prediction.get(name)
        if one is None or not (both or name in with_mirror) or (beside and beside not in with_prediction):
            continue
        other = with_prediction[beside].value if beside else unknown
        mirrored = unknown if both else with_mirror[name].value
        found.append(
            replace(one, source="model", predicted=True, beside={"other side": other, "mirrored": mirrored})
        )
    return tuple(found)


def _of_sides(sides: Sequence[str]) -> list[tuple[str, int, str]]:
    """The pair, number of the side, and name of every measure that these sides have; volumes first."""
    pairs = ["volume", *(name for name in PAIRS if name != "volume")]
    return [(pair, k, PAIRS[pair][k]) for pair in pairs for k in map(SIDES.index, sides)]


DIFFERENCE = "difference"  # the name of its volume


@dataclass(frozen=True, eq=False)
class MissingVolume:
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


def missing_volume(shape: Floats, prediction: Prediction) -> MissingVolume:
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
    return MissingVolume(solid, volume, deviation_of(found, prediction))
