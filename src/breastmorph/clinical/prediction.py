"""Predicting a missing breast from the rest of the torso: whether it is gone, and what its measures would be.

How the shape is predicted, is in :mod:`breastmorph.clinical.predictor`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.distances import PAIRS, STRAIGHT, Feature, Reading, Request, named
from breastmorph.clinical.examination import PredictedSide, examiner_of
from breastmorph.clinical.left_out import TrainingShapes
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.measures import measured_features
from breastmorph.clinical.missing_region import BOTH, mirror_frame, painted_side
from breastmorph.clinical.predictor import (
    BreastPredictor,
    Prediction,
    PredictionParameters,
    deviation_of,
    learnt_predictor,
)
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError, warning
from breastmorph.foundation.machine import in_one_thread
from breastmorph.mesh.geometry import enclosed_volume, face_cross, solid_between
from breastmorph.mesh.skin import borrowed
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, Landmarks, other_side

# --------------------------------------------------------------------------------------------------------------------
# Clinical measures of a predicted breast, each with its standard deviation, beside the scan and the mirror image
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PredictedNipple:
    """Where a predicted nipple lies, and how surely.

    Attributes
    ----------
    name : str
        Of the landmark.
    position : (3,) float
        mm, in the frame of the shape that was given.
    deviation : float
        Standard deviation of its place, mm, all directions together.
    across : float
        Of that, what lies along the skin's normal, mm.
    """

    name: str
    position: Floats
    deviation: float
    across: float

    @property
    def in_words(self) -> str:
        """For people."""
        side = self.name.rsplit("_", 1)[-1]
        return (
            f"The {side} nipple's predicted place: \N{PLUS-MINUS SIGN} {self.deviation / 10.0:.1f} cm in all "
            f"directions together, {self.across / 10.0:.1f} cm of it across the skin (one standard deviation)."
        )


def predicted_nipples(model: ShapeModel, prediction: Prediction) -> tuple[PredictedNipple, ...]:
    """The nipples in the missing region; none where the model does not know them."""
    return tuple(
        PredictedNipple(
            name,
            prediction.shape[vertex],
            float(prediction.sd[vertex]),
            float(prediction.sd_normal[vertex]),
        )
        for name, vertex in sorted(model.landmark_ids.items())
        if name.startswith("nipple_") and prediction.region.missing[vertex]
    )


def predicted_side(prediction: Prediction) -> PredictedSide:
    """What measures of a predicted shape are told of the side that is predicted."""
    return PredictedSide(prediction.region.sides, lambda reading: deviation_of(reading, prediction))


def known_landmarks(prediction: Prediction, landmarks: Landmarks | None) -> Landmarks | None:
    """Of a subject's own landmarks those that are not on a predicted side."""
    if landmarks is None:
        return None
    return landmarks.only(name for name in landmarks.names if not name.endswith(prediction.region.sides))


def predicted_measures(
    model: ShapeModel, prediction: Prediction, landmarks: Landmarks | None = None
) -> tuple[Measure, ...]:
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
    unknown, both = float("nan"), prediction.region.side == BOTH
    # Of both breasts there is nothing to compare with: neither another side nor a mirror image.
    with_mirror = {} if both else measured(prediction.mirrored, None)
    names = [(own, "" if both else PAIRS[pair][1 - k]) for pair, k, own in _of_sides(prediction.region.sides)]
    volumes = len(prediction.region.sides)
    found = []
    for name, beside in [*names[:volumes], ("NL-NR", ""), ("intermammary", ""), *names[volumes:]]:
        one = with_prediction.get(name)
        if one is None or not (both or name in with_mirror) or (beside and beside not in with_prediction):
            continue
        other = with_prediction[beside].value if beside else unknown
        mirrored = unknown if both else with_mirror[name].value
        found.append(
            replace(one, source="model", predicted=True, beside={"other side": other, "mirrored": mirrored})
        )
    return tuple(found)


def _of_sides(sides: Sequence[str]) -> list[tuple[str, int, str]]:
    """The pair, number of the side, and name of every measure that these sides have; volumes first."""
    pairs = ["volume", *(name for name in PAIRS if name != "volume")]
    return [(pair, k, PAIRS[pair][k]) for pair in pairs for k in map(SIDES.index, sides)]


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
    missing : {"left", "right", "both"} or (n,) bool
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
    if side in SIDES and absent_side == other_side(side):
        raise BreastMorphError.of("other-side-absent", absent=absent_side, side=side)
    if not isinstance(missing, str):
        return bool(absent_side)
    if missing == BOTH:
        volumes = BreastVolumes.of_model(model)
        there = [one for one in SIDES if volumes.cc(shape, one) > _NO_BREAST + _FLAT]
        if there and not replace:
            raise BreastMorphError.of("breast-there", side=there[0])
        return not there
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
    volumes = BreastVolumes.of_model(model)
    own, other = volumes.cc(shape, side), volumes.cc(shape, other_side(side))
    if other < _NO_BREAST:
        raise BreastMorphError(
            f"the {other_side(side)} side has no breast either ({max(other, 0.0):.0f} cc), so there is nothing to "
            "predict from",
            "A prediction needs one breast",
            code="no-breast",
        )
    return own < (max(_STATED_GONE * other, _FLAT) if stated else max(_GONE * other, _NO_BREAST))


# --------------------------------------------------------------------------------------------------------------------
# What is known of the lost breast beside the scan: a prediction moves in the directions that it was unsure in
# --------------------------------------------------------------------------------------------------------------------

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
                raise BreastMorphError.of("not-of-missing", name=feature.name, what=prediction.region.called)
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
        warning("stated-far", name=request.name, deviations=abs(want - value) / sd)
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
        raise BreastMorphError(f"this model does not know {request.name!r}", f"Choose of {', '.join(known)}")
    return known[name]


# --------------------------------------------------------------------------------------------------------------------
# What it would take: the solid between the chest as it is and the predicted one
# --------------------------------------------------------------------------------------------------------------------

DIFFERENCE = "difference"  # the name of its volume


@dataclass(frozen=True, eq=False)
class Lacking:
    """What lies between a chest and its prediction.

    Attributes
    ----------
    solid : TriangleMesh
        Closed; its volume is the one below.
    volume, deviation : float
        cc, and its standard deviation by the prediction's; what lies above the prediction counts as negative.
    """

    solid: TriangleMesh
    volume: float
    deviation: float

    @property
    def measure(self) -> Measure:
        """The volume as tables and files have it, among the measures of the prediction."""
        return Measure(DIFFERENCE, "volume", self.volume, "cc", None, self.deviation, "model", predicted=True)


def lacking(shape: Floats, prediction: Prediction) -> Lacking:
    """What a flap, an implant or a prosthesis would have to fill.

    Parameters
    ----------
    shape : (n, 3) float
        The chest as it is: what the prediction was made of.
    prediction : Prediction
    """
    missing, faces = prediction.region.missing, prediction.faces
    changed = faces[missing[faces].any(axis=1)]
    solid = solid_between(shape, prediction.shape, faces, missing)
    volume = enclosed_volume(solid) / 1000.0
    gradient = np.zeros_like(shape)
    outwards = face_cross(prediction.shape, changed) / 6000.0
    for corner in range(3):
        np.add.at(gradient, changed[:, corner], outwards)
    found = Reading(volume, np.arange(len(shape)), gradient)
    return Lacking(solid, volume, deviation_of(found, prediction))
