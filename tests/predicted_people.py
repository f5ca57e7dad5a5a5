"""Whose breasts tests of prediction predict: people alike on both sides, a model of thirty, strangers to it."""

from __future__ import annotations

from functools import cache

import numpy as np

from breast_cohort import breast_model, breast_shapes, breast_template
from breastmorph.clinical.mirror_frame import mirror_frame
from breastmorph.clinical.predictor import BreastPredictor, fit_predictor
from breastmorph.cohort import Cohort
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.shape_model import ShapeModel
from torso import torso


def alike(k: int, seed: int) -> np.ndarray:
    """People whose breasts are alike: what one side has, the other has nearly too."""
    shapes = breast_shapes(k, seed=seed)
    twin = mirror_frame(breast_model()).twin
    other = np.stack([twin.at(shape) for shape in shapes]) * [-1.0, 1.0, 1.0]
    return 0.75 * shapes + 0.25 * other


@cache
def model(k: int = 30) -> ShapeModel:
    return build_model(Cohort.of(alike(k, 1), breast_template()), BuildParameters(keep_scores=True))


@cache
def predictor(evidence: str = "points", side: str = "right") -> BreastPredictor:
    return fit_predictor(model(), side, evidence)


@cache
def strangers() -> np.ndarray:
    return alike(12, 77)


def flattened(shape: np.ndarray, side: str) -> np.ndarray:
    """The shape without a breast on one side: the template's flat twin there."""
    flat, _ = torso(edge=10.0, size=0.0)
    sign = 1.0 if side == "left" else -1.0
    own = sign * breast_template().mesh.vertices[:, 0] > 0
    return np.where(own[:, None], shape + flat.vertices - breast_template().mesh.vertices, shape)
