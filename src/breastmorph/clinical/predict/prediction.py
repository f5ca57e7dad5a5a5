"""Predicting a missing breast from the rest of the torso; how, is in :mod:`breastmorph.clinical.predict.predictor`."""

from __future__ import annotations

from breastmorph.clinical.measure.volume import BreastVolumes
from breastmorph.clinical.patient import model_landmarks
from breastmorph.clinical.predict.predicted_breast import Prediction
from breastmorph.clinical.predict.predictor import BreastPredictor, PredictionParameters
from breastmorph.clinical.predict.training_shapes import TrainingShapes
from breastmorph.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import Bools, Floats
from breastmorph.model.shape_model import ShapeModel
from breastmorph.registration.threads import in_one_thread
from breastmorph.scan.landmarks import other_side

__all__ = ["BreastPredictor", "Prediction", "PredictionParameters", "is_gone", "predict_breast"]

_GONE = 0.35  # of the other breast's volume: what a flat chest may seem to hold
_NO_BREAST = 40.0  # cc: less than any adult breast


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


def is_gone(model: ShapeModel, shape: Floats, side: str) -> bool:
    """Whether a side of a registered shape (n, 3), mm, has no breast, by its volume against the other side's.

    Raises
    ------
    BreastMorphError
        When neither side has one.
    """
    volumes = BreastVolumes(model.mean_mesh, model_landmarks(model))
    own, other = volumes.cc(shape, side), volumes.cc(shape, other_side(side))
    if other < _NO_BREAST:
        raise BreastMorphError(
            f"the {other_side(side)} side has no breast either ({max(other, 0.0):.0f} cc), so there is nothing to "
            "predict from",
            "A prediction needs one breast",
        )
    return own < max(_GONE * other, _NO_BREAST)
