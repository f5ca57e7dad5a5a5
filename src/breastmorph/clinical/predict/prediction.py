"""Predicting a missing breast from the rest of the torso; how, is in :mod:`breastmorph.clinical.predict.predictor`."""

from __future__ import annotations

from breastmorph.clinical.measure.volume import BreastVolumes
from breastmorph.clinical.predict.predicted_breast import Prediction
from breastmorph.clinical.predict.predictor import BreastPredictor, PredictionParameters
from breastmorph.clinical.predict.training_shapes import TrainingShapes
from breastmorph.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import Bools, Floats
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.landmarks import other_side
from breastmorph.threads import in_one_thread

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
