"""Predicting a missing breast from the rest of the torso: whether it is gone, and what its measures would be.

How the shape is predicted, is in :mod:`breastmorph.clinical.predictor`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from breastmorph.clinical.distances import PAIRS
from breastmorph.clinical.features import Reading, Request
from breastmorph.clinical.knowledge import with_measures
from breastmorph.clinical.measures import measured_features
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
from breastmorph.mesh.geometry import face_cross
from breastmorph.mesh.topology import edge_table
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, other_side

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
    missing : {"left", "right"} or (n,) bool
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
        Measures that the lost breast is known to have had.

    See Also
    --------
    learnt_predictor : the same for many scans.
    """
    if not isinstance(absent, bool):
        absent = counts_as_gone(model, shape, missing, absent or "", replace=not absent)
    predictor = learnt_predictor(model, missing, "surface" if absent else "points", parameters, subjects)
    side = predictor.region.side
    if earlier is not None and is_gone(model, earlier, side):
        raise BreastMorphError.of("earlier-without-breast", side=side)
    return with_measures(model, predictor.predict(shape, earlier), stated)


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


# --------------------------------------------------------------------------------------------------------------------
# What it would take: the solid between the chest as it is and the predicted one
# --------------------------------------------------------------------------------------------------------------------


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
    # Skin of the prediction outside, the chest inside; a vertex that stays is the same one in both.
    inner = np.arange(len(shape))
    inner[missing] += len(shape)
    walls = []
    for a, b in edge_table(changed).boundary:
        # At the rim of the scan nothing joins the two: a wall does.
        walls += [[b, a, inner[a]]] if inner[a] != a else []
        walls += [[b, inner[a], inner[b]]] if inner[b] != b else []
    closed = np.vstack([changed, inner[changed][:, ::-1], np.array(walls, dtype=int).reshape(-1, 3)])
    points = np.vstack([prediction.shape, shape])
    used, numbered = np.unique(closed, return_inverse=True)
    solid = TriangleMesh(points[used], numbered.reshape(closed.shape))
    middle = solid.vertices.mean(axis=0)
    corners = (solid.vertices - middle)[solid.faces]
    volume = float(np.einsum("ij,ij->", corners[:, 0], np.cross(corners[:, 1], corners[:, 2]))) / 6000.0
    gradient = np.zeros_like(shape)
    outwards = face_cross(prediction.shape, changed) / 6000.0
    for corner in range(3):
        np.add.at(gradient, changed[:, corner], outwards)
    found = Reading(volume, np.arange(len(shape)), gradient)
    return Lacking(solid, volume, deviation_of(found, prediction))
