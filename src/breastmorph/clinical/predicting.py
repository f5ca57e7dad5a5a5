"""Predicting a missing breast for one patient: whether it is absent, the prediction, and what else is known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.feature_requests import Feature, Request, named
from breastmorph.clinical.features import measured_features
from breastmorph.clinical.mirror_frame import mirror_frame
from breastmorph.clinical.missing_region import BOTH, painted_side
from breastmorph.clinical.prediction import Prediction
from breastmorph.clinical.predictor import BreastPredictor
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.messages import warning
from breastmorph.mesh.skin import borrowed
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, other_side

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
                    "{name} says nothing about the {what}",
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
    sds = np.sqrt(((slopes @ flat.T) ** 2).sum(axis=1) + prediction.rest_variance * (slopes**2).sum(axis=1))
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
    explained = by_mode.T @ np.linalg.solve(spread, by_mode)
    values_left, vectors = np.linalg.eigh(np.eye(len(flat)) - explained)
    root = (vectors * np.sqrt(np.maximum(values_left, 0.0))) @ vectors.T
    far = [
        warning(
            "stated-far",
            "the stated {name} is {deviations:.1f} standard deviations from what was predicted",
            name=request.name,
            deviations=abs(want - value) / sd,
        )
        for request, want, value, sd in zip(stated, wanted, values, sds, strict=True)
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
            "Choose from {known}",
            name=request.name,
            known=", ".join(known),
        )
    return known[name]


_ABSENT = 0.35  # of the other breast's volume: what a flat chest may seem to hold
_STATED_ABSENT = 0.7  # the same without landmarks of that side: only a clear breast contradicts
_NO_BREAST = 40.0  # cc: less than any adult breast
_FLAT = 100.0  # cc that a volume may be wrong by on a flat chest


def counts_as_absent(
    model: ShapeModel, shape: Floats, missing: str | Bools, absent_side: str = "", *, replace: bool = False
) -> bool:
    """Whether there is no breast where one is to be predicted; what contradicts the scan is refused.

    The registration asks another question of a side without landmarks: from which template it starts.

    Parameters
    ----------
    model : ShapeModel
    shape : (n, 3) float
        A registered scan, mm.
    missing : {"left", "right", "both"} or (n,) bool
        The side, or painted vertices. Painted ones may be part of a breast: of them only ``absent_side`` tells.
    absent_side : str
        The side that the scan has no landmarks of, or empty. Points there are worth nothing, so it counts as absent.
    replace : bool
        A breast that is there is predicted nevertheless.

    Raises
    ------
    BreastMorphError
        The other side is the one without a breast, neither side has one, or it is there and not to be replaced.
    """
    side = missing if isinstance(missing, str) else (absent_side and painted_side(model, missing))
    if side in SIDES and absent_side == other_side(side):
        raise BreastMorphError(
            "the {absent} side is the one without a breast, not the {side}",
            "Predict the {absent} side",
            code="other-side-absent",
            absent=absent_side,
            side=side,
        )
    if not isinstance(missing, str):
        return bool(absent_side)
    if missing == BOTH:
        volumes = BreastVolumes.of_model(model)
        there = [one for one in SIDES if volumes.cc(shape, one) > _NO_BREAST + _FLAT]
        if there and not replace:
            raise BreastMorphError(
                "the {side} breast is there",
                "Give replace=True to predict it nevertheless, as if it were missing",
                code="breast-there",
                side=there[0],
            )
        return not there
    absent = is_absent(model, shape, missing, stated=bool(absent_side))
    if not absent and not replace:
        raise BreastMorphError(
            "the {side} breast is there: it has no landmarks, but its skin shows it"
            if absent_side
            else "the {side} breast is there",
            "Give replace=True to predict it nevertheless, as if it were missing",
            code="breast-there/without-landmarks" if absent_side else "breast-there",
            side=missing,
        )
    return absent or bool(absent_side)


def is_absent(model: ShapeModel, shape: Floats, side: str, *, stated: bool = False) -> bool:
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
    volumes = BreastVolumes.of_model(model)
    own, other = volumes.cc(shape, side), volumes.cc(shape, other_side(side))
    if other < _NO_BREAST:
        raise BreastMorphError(
            "the {side} side has no breast either ({other:.0f} cc), so there is nothing to predict from",
            "A prediction needs one breast",
            code="no-breast",
            side=other_side(side),
            other=max(other, 0.0),
        )
    return own < (max(_STATED_ABSENT * other, _FLAT) if stated else max(_ABSENT * other, _NO_BREAST))


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
        if earlier is not None and is_absent(model, earlier, side):
            raise BreastMorphError(
                "the earlier scan has no {side} breast either",
                "Give a scan from before the operation",
                code="earlier-without-breast",
                side=side,
            )
    columns = [one for one in stated if one.name in predictor.columns and not one.relative]
    columns_given = {one.name: one.in_unit("") for one in columns}
    found = predictor.predict(shape, earlier, columns_given)
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
