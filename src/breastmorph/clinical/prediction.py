"""Predicting a missing breast from the rest of the torso: whether it is gone, and what its measures would be.

How the shape is predicted, is in :mod:`breastmorph.clinical.predictor`.
"""

from __future__ import annotations

from dataclasses import dataclass

from breastmorph.clinical.distances import PAIRS, STRAIGHT
from breastmorph.clinical.examination import PredictedSide, examiner_of
from breastmorph.clinical.measures import Measure
from breastmorph.clinical.missing_region import painted_side
from breastmorph.clinical.predictor import (
    Prediction,
    PredictionParameters,
    TrainingShapes,
    deviation_of,
    learnt_predictor,
)
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.machine import in_one_thread
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, Landmarks, other_side

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
        Standard deviation of the prediction; NaN where nobody knows it.
    mirrored : float
        With the mirror image instead.
    kind : str
        Of :class:`~breastmorph.clinical.measures.Measure`.
    """

    name: str
    unit: str
    other: float
    predicted: float
    deviation: float
    mirrored: float
    kind: str = STRAIGHT

    @property
    def measure(self) -> Measure:
        """As every table has it."""
        return Measure(
            self.name, self.kind, self.predicted, self.unit, None, self.deviation, "model", predicted=True
        )


def predicted_side(prediction: Prediction) -> PredictedSide:
    """What measures of a predicted shape are told of the side that is predicted."""
    return PredictedSide(prediction.region.side, lambda reading: deviation_of(reading, prediction))


def known_landmarks(prediction: Prediction, landmarks: Landmarks | None) -> Landmarks | None:
    """Of a subject's own landmarks those that are not on the predicted side."""
    if landmarks is None:
        return None
    return landmarks.only(name for name in landmarks.names if not name.endswith(prediction.region.side))


def predicted_measures(
    model: ShapeModel, prediction: Prediction, landmarks: Landmarks | None = None
) -> tuple[PredictedMeasure, ...]:
    """Volume, straight distances, heights and areas of the predicted side; what cannot be determined is left out.

    ``landmarks`` are the subject's own. The numbers are those of
    :meth:`breastmorph.clinical.examination.Examiner.measured`.
    """
    examiner, own = examiner_of(model), known_landmarks(prediction, landmarks)

    def measured(shape: Floats, predicted: PredictedSide | None) -> dict[str, Measure]:
        places = examiner.landmarks(shape, annotated=own)
        found = examiner.measured(shape, places, kinds=(STRAIGHT,), predicted=predicted)
        return {one.name: one for one in found if one.known}

    with_prediction = measured(prediction.shape, predicted_side(prediction))
    with_mirror = measured(prediction.mirrored, None)
    side = SIDES.index(prediction.region.side)
    pairs = {name: (pair[side], pair[1 - side]) for name, pair in PAIRS.items()}
    found = []
    for own_name, beside in [pairs.pop("volume"), ("NL-NR", ""), ("intermammary", ""), *pairs.values()]:
        one, mirrored = with_prediction.get(own_name), with_mirror.get(own_name)
        if one is None or mirrored is None or (beside and beside not in with_prediction):
            continue
        other = with_prediction[beside].value if beside else float("nan")
        found.append(PredictedMeasure(own_name, one.unit, other, one.value, one.sd, mirrored.value, one.kind))
    return tuple(found)


# --------------------------------------------------------------------------------------------------------------------
# Whether a breast is gone: decided here for commands, page and Python alike
# --------------------------------------------------------------------------------------------------------------------

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
    absent: bool | str | None = None,
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
    absent : bool or str, optional
        Whether the breast is gone (then the evidence is the surface) or there and to be replaced (then all known
        points are). Judged by :func:`counts_as_gone` when not given, or from ``Registration.absent_side``: the side
        without landmarks, or empty.
    subjects : TrainingShapes, optional

    See Also
    --------
    learnt_predictor : the same for many scans.
    """
    if not isinstance(absent, bool):
        absent = counts_as_gone(model, shape, missing, absent or "", replace=not absent)
    predictor = learnt_predictor(model, missing, "surface" if absent else "points", parameters, subjects)
    return predictor.predict(shape)


def counts_as_gone(
    model: ShapeModel, shape: Floats, missing: str | Bools, absent_side: str = "", *, replace: bool = False
) -> bool:
    """Whether there is no breast where one is to be predicted; what contradicts the scan is refused.

    The registration asks another question of a side without landmarks: from which template it starts.

    Parameters
    ----------
    model : ShapeModel
    shape : (n, 3) float
        A registered scan, mm.
    missing : {"left", "right"} or (n,) bool
        The side, or painted vertices. Painted ones may be part of a breast: of them only ``absent_side`` tells.
    absent_side : str
        The side that the scan has no landmarks of, or empty. Points there are worth nothing, so it counts as gone.
    replace : bool
        A breast that is there is predicted nevertheless.

    Raises
    ------
    BreastMorphError
        The other side is the one without a breast, neither side has one, or it is there and not to be replaced.
    """
    side = missing if isinstance(missing, str) else (absent_side and painted_side(model, missing))
    if side and absent_side == other_side(side):
        raise BreastMorphError.of("other-side-absent", absent=absent_side, side=side)
    if not isinstance(missing, str):
        return bool(absent_side)
    gone = is_gone(model, shape, missing, stated=bool(absent_side))
    if not gone and not replace:
        raise BreastMorphError.of(f"breast-there{'/without-landmarks' if absent_side else ''}", side=missing)
    return gone or bool(absent_side)


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
            code="no-breast",
        )
    return own < (max(_STATED_GONE * other, _FLAT) if stated else max(_GONE * other, _NO_BREAST))
