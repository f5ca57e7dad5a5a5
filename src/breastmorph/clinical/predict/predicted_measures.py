"""Clinical measures of a predicted breast, each with its standard deviation, beside the scan and the mirror image."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from breastmorph.clinical.measure.distances import PAIRS
from breastmorph.clinical.measure.measured_features import measured_features
from breastmorph.clinical.predict.predicted_breast import Prediction
from breastmorph.errors import BreastMorphError
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.landmarks import SIDES


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
    features = {feature.name: feature for feature in measured_features(model)}
    side = SIDES.index(prediction.region.side)
    pairs = {name: (pair[side], pair[1 - side]) for name, pair in PAIRS.items()}
    own_and_other = [pairs.pop("volume"), ("NL-NR", ""), *pairs.values()]
    found = []
    for own, beside in own_and_other:
        if own not in features or (beside and beside not in features):
            continue
        feature = features[own]
        with suppress(BreastMorphError):  # on this shape it cannot be determined
            reading = feature.read(prediction.shape)
            other = features[beside].read(prediction.shape).value if beside else float("nan")
            mirrored = feature.read(prediction.mirrored).value
            deviation = prediction.deviation_of(reading)
            name = "volume" if feature.unit == "cc" else own
            found.append(PredictedMeasure(name, feature.unit, other, reading.value, deviation, mirrored))
    return tuple(found)
