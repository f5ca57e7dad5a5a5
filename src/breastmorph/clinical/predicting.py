"""Predicting a missing breast for one patient: whether it is absent, the prediction, and what else is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.absent_breast import is_gone
from breastmorph.clinical.feature_requests import Request
from breastmorph.clinical.mirror_frame import mirror_frame
from breastmorph.clinical.missing_region import BOTH
from breastmorph.clinical.prediction import Prediction
from breastmorph.clinical.predictor import BreastPredictor
from breastmorph.clinical.stated_measures import with_measures
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.skin import borrowed
from breastmorph.model.shape_model import ShapeModel


def predicted_by(
    predictor: BreastPredictor,
    model: ShapeModel,
    shape: Floats,
    earlier: Floats | None = None,
    stated: Sequence[Request] = (),
) -> Prediction:
    """Predict a missing breast of one patient.

    Parameters
    ----------
    predictor : BreastPredictor
        Fitted to the model's subjects, for the missing side and what counts as evidence.
    model : ShapeModel
    shape : (n, 3) float
        A registered scan in its own frame and size, mm.
    earlier : (n, 3) float, optional
        The same patient before the operation, registered, in any pose; mm.
    stated : sequence of Request
        Measures that the lost breast is known to have had; or numbers of the patient that the model's subjects have
        too (age, weight), where it keeps them.

    Raises
    ------
    BreastMorphError
        The earlier scan has no breast there either, or a measure does not belong to the missing skin.
    """
    for side in predictor.region.sides:
        if earlier is not None and is_gone(model, earlier, side):
            raise BreastMorphError(
                "the earlier scan has no {side} breast either",
                "Give a scan from before the operation",
                code="earlier-without-breast",
                side=side,
            )
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
