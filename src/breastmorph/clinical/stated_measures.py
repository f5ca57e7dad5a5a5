"""What is known of the lost breast beside the scan: a prediction conditioned on stated measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from breastmorph.clinical.feature_requests import Feature, Request, named
from breastmorph.clinical.features import measured_features
from breastmorph.clinical.prediction import Prediction
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.messages import warning
from breastmorph.model.shape_model import ShapeModel

_EXACT = 0.02  # of a value: how exactly a stated one is taken
_OWN = 0.1  # of a measure's squared slope lies in missing skin: otherwise it is none of the lost breast
_ROUNDS = 8  # measures are not linear in the shape
_WORTH_A_WORD = 3.0  # standard deviations from the prediction that are worth a word


def with_measures(model: ShapeModel, prediction: Prediction, stated: Sequence[Request]) -> Prediction:
    """A prediction that agrees with what is known of the lost breast.

    Parameters
    ----------
    model : ShapeModel
    prediction : Prediction
    stated : sequence of Request
        Measures of the predicted side, such as ``volume-right=420cc`` or ``SN-NR=24cm``; a value with a sign is added
        to the predicted one.

    Raises
    ------
    BreastMorphError
        A measure is unknown to the model, or the missing skin does not change it.
    """
    if not stated:
        return prediction
    known = {feature.name: feature for feature in measured_features(model)}
    features = [_found(known, request) for request in stated]
    region, modes = prediction.region.missing, prediction.modes.astype(np.float64)
    flat = modes.reshape(len(modes), -1)

    def read(shape: Floats) -> tuple[Floats, Floats]:
        """Values (r,) and their derivatives by the missing points (r, 3m)."""
        values, slopes = [], []
        for feature in features:
            reading = feature.read(shape)
            inside = (reading.gradient[region[reading.vertices]] ** 2).sum()
            if inside < _OWN * (reading.gradient**2).sum():
                raise BreastMorphError(
                    "{name} tells nothing of the {what}",
                    "State measures of the side that is predicted",
                    code="not-of-missing",
                    name=feature.name,
                    what=prediction.region.called,
                )
            gradient = np.zeros_like(shape)
            gradient[reading.vertices] = reading.gradient
            values.append(reading.value)
            slopes.append(gradient[region].ravel())
        return np.array(values), np.array(slopes)

    values, slopes = read(prediction.shape)
    wanted = np.array(
        [
            request.in_unit(feature.unit) + (value if request.relative else 0.0)
            for request, feature, value in zip(stated, features, values, strict=True)
        ]
    )
    doubt = np.sqrt(((slopes @ flat.T) ** 2).sum(axis=1) + prediction.rest_variance * (slopes**2).sum(axis=1))
    exactness = np.diag((_EXACT * np.maximum(np.abs(wanted), 1.0)) ** 2)
    score = np.zeros(len(flat))
    shape = prediction.shape
    for _ in range(_ROUNDS):
        now, slopes = read(shape)
        by_mode = slopes @ flat.T  # (r, N)
        spread = by_mode @ by_mode.T + exactness
        score = by_mode.T @ np.linalg.solve(spread, wanted - now + by_mode @ score)
        shape = prediction.shape.copy()
        shape[region] += (score @ flat).reshape(-1, 3)
    told = by_mode.T @ np.linalg.solve(spread, by_mode)
    values_left, vectors = np.linalg.eigh(np.eye(len(flat)) - told)
    root = (vectors * np.sqrt(np.maximum(values_left, 0.0))) @ vectors.T
    far = [
        warning(
            "stated-far",
            "the stated {name} is {deviations:.1f} standard deviations from what was predicted",
            name=request.name,
            deviations=abs(want - value) / sd,
        )
        for request, want, value, sd in zip(stated, wanted, values, doubt, strict=True)
        if abs(want - value) > _WORTH_A_WORD * sd
    ]
    words = tuple(
        f"{feature.name} {want:.0f} {feature.unit}" for feature, want in zip(features, wanted, strict=True)
    )
    return replace(
        prediction,
        shape=shape,
        modes=(root @ flat).reshape(modes.shape).astype(np.float32),
        warnings=(*prediction.warnings, *far),
        given=(*prediction.given, *words),
    )


def _found(known: Mapping[str, Feature], request: Request) -> Feature:
    name = named(request.name, known)
    if name is None:
        raise BreastMorphError(
            "this model does not know {name!r}",
            "Choose of {known}",
            name=request.name,
            known=", ".join(known),
        )
    return known[name]
