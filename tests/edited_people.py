"""Whom tests of editing edit: the mean of the small cohort's model, and a stranger to it."""

from __future__ import annotations

from functools import cache

import numpy as np

from breast_cohort import breast_model, breast_shapes
from breastmorph.clinical.edit import Edit
from breastmorph.clinical.editing import Editor
from breastmorph.clinical.features import ModelFeatures
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.patient import Patient, mean_patient

FIVE = ("sternal_notch", "nipple_left", "nipple_right", "lower_pole_left", "lower_pole_right")


@cache
def features(kind: str = "straight") -> ModelFeatures:
    return ModelFeatures(breast_model(), kind)


@cache
def stranger() -> Patient:
    """Somebody outside the cohort, with a bump that the model cannot express, in a pose and size of her own."""
    shape = breast_shapes(1, seed=5)[0]
    shape = shape + 4.0 * np.cos(shape[:, [1, 2, 0]] / 9.0)
    return Patient("stranger", shape * 1.1 + [30.0, -40.0, 25.0])


@cache
def editor(who: str = "mean", kind: str = "straight") -> Editor:
    patient = mean_patient(breast_model()) if who == "mean" else stranger()
    return Editor(breast_model(), patient, features(kind))


def change(edit: Edit, name: str) -> Measure:
    return next(one for one in edit.changes if one.name == name)
