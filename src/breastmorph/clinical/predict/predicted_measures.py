"""Clinical measures of a predicted breast, each with its standard deviation, beside the scan and the mirror image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from breastmorph.clinical.features import Reading
from breastmorph.clinical.measure.distances import PAIRS, STRAIGHT
from breastmorph.clinical.measure.measures import Gauge
from breastmorph.clinical.measure.volume import BreastVolumes
from breastmorph.clinical.patient import model_landmarks
from breastmorph.clinical.predict.predicted_breast import Prediction
from breastmorph.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.landmarks import SIDES, other_side


@dataclass(frozen=True)
class PredictedMeasure:
    """A measure of the predicted side.

    Attributes
    ----------
    name, unit : str
        Distances are straight, in mm; volumes in cc.
    other : float
        Of the other side, as scanned; NaN where the measure belongs to both.
    predicted : float
    deviation : float
        Standard deviation of the prediction.
    mirrored : float
        With the mirror image instead.
    """

    name: str
    unit: str
    other: float
    predicted: float
    deviation: float
    mirrored: float


def predicted_measures(model: ShapeModel, prediction: Prediction) -> tuple[PredictedMeasure, ...]:
    """Volume and distances of the predicted side; those that the model's landmarks do not tell are left out."""
    side = prediction.region.side
    found = []
    try:
        volumes = BreastVolumes(model.mean_mesh, model_landmarks(model))
    except BreastMorphError:
        pass
    else:
        other = volumes.cc(prediction.shape, other_side(side))
        found.append(_measure("volume", "cc", other, prediction, lambda shape: volumes.read(shape, side)))
    gauge = Gauge.of_vertices(model.faces, model.landmark_ids)
    which = SIDES.index(side)
    named = [("NL-NR", "")] + [
        (pair[which], pair[1 - which]) for key, pair in PAIRS.items() if key != "volume"
    ]
    for name, beside in named:
        try:
            other = gauge.read(prediction.shape, beside, STRAIGHT).value if beside else float("nan")
            found.append(_measure(name, "mm", other, prediction, partial(_straight, gauge, name)))
        except BreastMorphError:  # a landmark that the model lacks
            continue
    return tuple(found)


def _measure(
    name: str, unit: str, other: float, prediction: Prediction, read: Callable[[Floats], Reading]
) -> PredictedMeasure:
    reading = read(prediction.shape)
    return PredictedMeasure(
        name, unit, other, reading.value, prediction.deviation_of(reading), read(prediction.mirrored).value
    )


def _straight(gauge: Gauge, name: str, shape: Floats) -> Reading:
    return gauge.read(shape, name, STRAIGHT)
