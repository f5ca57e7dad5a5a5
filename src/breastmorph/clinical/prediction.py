"""Predicting a missing breast from the rest of the torso; how, is in :mod:`breastmorph.clinical.predict.predictor`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from breastmorph.clinical.distances import PAIRS
from breastmorph.clinical.measures import measured_features
from breastmorph.clinical.predictor import (
    BreastPredictor,
    Prediction,
    PredictionParameters,
    TrainingShapes,
    deviation_of,
)
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.machine import in_one_thread
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.landmarks import SIDES, other_side

# --------------------------------------------------------------------------------------------------------------------
# Clinical measures of a predicted breast, each with its standard deviation, beside the scan and the mirror image
# --------------------------------------------------------------------------------------------------------------------


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
            deviation = deviation_of(reading, prediction)
            name = "volume" if feature.unit == "cc" else own
            found.append(PredictedMeasure(name, feature.unit, other, reading.value, deviation, mirrored))
    return tuple(found)


# --------------------------------------------------------------------------------------------------------------------
# Predicting a missing breast from the rest of the torso; how, is in :mod:`breastmorph.clinical.predictor`
# --------------------------------------------------------------------------------------------------------------------

__all__ = ["BreastPredictor", "Prediction", "PredictionParameters", "is_gone", "predict_breast"]

_GONE = 0.35  # of the other breast's volume: what a flat chest may seem to hold
_STATED_GONE = 0.7  # the same without landmarks of that side: only a clear breast contradicts
_NO_BREAST = 40.0  # cc: less than any adult breast
_FLAT = 100.0  # cc that a volume may be wrong by on a flat chest


@in_one_thread
def predict_breast(
    model: ShapeModel,
    shape: Floats,
    missing: str | Bools,
    parameters: PredictionParameters | None = None,
    *,
    absent: bool | None = None,
    subjects: TrainingShapes | None = None,
) -> Prediction:
    """Predict a missing breast.

    Parameters
    ----------
    model : ShapeModel
    shape : (n, 3) float
        A registered scan in its own frame and size, mm.
    missing : {"left", "right"} or (n,) bool
        The side, or painted vertices.
    parameters : PredictionParameters, optional
    absent : bool, optional
        Whether the breast is gone (then the evidence is the surface) or there and to be replaced (then all known
        points are). Judged by the volumes of both sides when not given.
    subjects : TrainingShapes, optional

    See Also
    --------
    BreastPredictor : the same for many scans.
    """
    if absent is None:
        absent = isinstance(missing, str) and is_gone(model, shape, missing)
    predictor = BreastPredictor(model, missing, "surface" if absent else "points", parameters, subjects)
    return predictor.predict(shape)


def is_gone(model: ShapeModel, shape: Floats, side: str, *, stated: bool = False) -> bool:
    """Whether a side of a registered shape (n, 3), mm, has no breast, by its volume against the other side's.

    Parameters
    ----------
    model : ShapeModel
    shape : (n, 3) float
    side : str
    stated : bool
        Whether the scan came without landmarks of that side.

    Raises
    ------
    BreastMorphError
        When neither side has one.
    """
    volumes = BreastVolumes(model.mean_mesh, model.landmarks)
    own, other = volumes.cc(shape, side), volumes.cc(shape, other_side(side))
    if other < _NO_BREAST:
        raise BreastMorphError(
            f"the {other_side(side)} side has no breast either ({max(other, 0.0):.0f} cc), so there is nothing to "
            "predict from",
            "A prediction needs one breast",
        )
    return own < (max(_STATED_GONE * other, _FLAT) if stated else max(_GONE * other, _NO_BREAST))
