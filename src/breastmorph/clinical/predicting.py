"""Predicting a missing breast for one patient: whether it is absent, the prediction, and what else is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.absent_breast import counts_as_gone, is_gone
from breastmorph.clinical.feature_requests import Request
from breastmorph.clinical.mirror_frame import mirror_frame
from breastmorph.clinical.missing_region import BOTH
from breastmorph.clinical.prediction import Prediction
from breastmorph.clinical.predictor import BreastPredictor, PredictionParameters, learnt_predictor
from breastmorph.clinical.stated_measures import with_measures
from breastmorph.clinical.training_shapes import TrainingShapes
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.machine import in_one_thread
from breastmorph.mesh.skin import borrowed
from breastmorph.model.shape_model import ShapeModel


@in_one_thread
def predict_breast(
    model: ShapeModel,
    shape: Floats,
    missing: str | Bools,
    parameters: PredictionParameters | None = None,
    *,
    absent: bool | str | None = None,
    subjects: TrainingShapes | None = None,
    earlier: Floats | None = None,
    stated: Sequence[Request] = (),
) -> Prediction:
    """Predict a missing breast.

    Parameters
    ----------
    model : ShapeModel
    shape : (n, 3) float
        A registered scan in its own frame and size, mm.
    missing : {"left", "right", "both"} or (n,) bool
        The side, or painted vertices.
    parameters : PredictionParameters, optional
    absent : bool or str, optional
        Whether the breast is gone (then the evidence is the surface) or there and to be replaced (then all known
        points are). Judged by :func:`counts_as_gone` when not given, or from ``Registration.absent_side``: the side
        without landmarks, or empty.
    subjects : TrainingShapes, optional
    earlier : (n, 3) float, optional
        The same woman before the operation, registered, in any pose; mm.
    stated : sequence of Request
        Measures that the lost breast is known to have had; or numbers of the patient that the model's subjects have
        too (age, weight), where it keeps them.

    See Also
    --------
    learnt_predictor : the same for many scans.
    """
    if not isinstance(absent, bool):
        absent = counts_as_gone(model, shape, missing, absent or "", replace=not absent)
    predictor = learnt_predictor(model, missing, "surface" if absent else "points", parameters, subjects)
    return predicted_by(predictor, model, shape, earlier, stated)


def predicted_by(
    predictor: BreastPredictor,
    model: ShapeModel,
    shape: Floats,
    earlier: Floats | None = None,
    stated: Sequence[Request] = (),
) -> Prediction:
    """The same by what a model's subjects have taught already, for many scans."""
    for side in predictor.region.sides:
        if earlier is not None and is_gone(model, earlier, side):
            raise BreastMorphError.of("earlier-without-breast", side=side)
    columns = [one for one in stated if one.name in predictor.columns and not one.relative]
    told = {one.name: one.in_unit("") for one in columns}
    found = predictor.predict(shape, earlier, told)
    return with_measures(model, found, [one for one in stated if one not in columns])


def with_skin(model: ShapeModel, prediction: Prediction, skin: NDArray[np.uint8] | None) -> Prediction:
    """A prediction with the patient's skin (n, 4); a predicted breast takes the mirrored skin of the other one.

    Where both are missing, the skin around runs smoothly over them.
    """
    if skin is None:
        return prediction
    missing, faces = prediction.region.missing, prediction.faces
    other = np.zeros((len(skin), 3))
    if prediction.region.side != BOTH:
        other = mirror_frame(model).twin.at(skin[:, :3].astype(np.float64))
    return replace(prediction, skin=borrowed(faces, skin, other, missing))
