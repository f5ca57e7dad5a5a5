"""Predict a missing breast from the rest of the torso."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from breastmorph.clinical.feature_requests import Request
from breastmorph.clinical.measure_table import MeasureTable
from breastmorph.clinical.patient import Patient
from breastmorph.clinical.predicted_measures import (
    MissingVolume,
    PredictedNipple,
    missing_volume,
    predicted_measures,
    predicted_nipples,
)
from breastmorph.clinical.predicting import counts_as_absent, predicted_by, with_skin
from breastmorph.clinical.prediction import Prediction
from breastmorph.clinical.predictor import BreastPredictor, fit_predictor
from breastmorph.clinical.torso_view import Evidence
from breastmorph.clinical.training_shapes import training_shapes
from breastmorph.cohort import Cohort
from breastmorph.foundation.arrays import Bools
from breastmorph.foundation.errors import error_context
from breastmorph.foundation.machine import in_one_thread
from breastmorph.foundation.messages import Finding
from breastmorph.model.shape_model import ShapeModel
from breastmorph.usecases.subject import Subject, open_subject, path_of


@dataclass(frozen=True, eq=False)
class PredictRequest:
    """What is to be predicted, from what.

    Attributes
    ----------
    model : ShapeModel
    subject : Patient, Registration, TriangleMesh, Scan or SubjectFile
    missing : {"left", "right", "both"} or (n,) bool
        The patient's side, or painted vertices of the model.
    replace : bool, optional
        Whether a breast that is there is predicted nevertheless; when not given, it is unless the scan came without
        landmarks of a side.
    operated : bool
        What is predicted was operated on (an expander, an implant, a reconstruction, a part removed): it is replaced,
        and nothing of its half is evidence.
    earlier : Patient, Registration, TriangleMesh, Scan or SubjectFile, optional
        The same patient before the operation, in any pose.
    known : tuple of Request
        Measures that the lost breast is known to have had.
    cohort : Cohort, optional
        The subjects that the model was built from: they choose noise and uncertainty.
    """

    model: ShapeModel
    subject: Subject
    missing: str | Bools
    replace: bool | None = False
    operated: bool = False
    earlier: Subject | None = None
    known: tuple[Request, ...] = ()
    cohort: Cohort | None = None


@dataclass(frozen=True, eq=False)
class PredictResult:
    """A prediction, and what it was made of.

    Attributes
    ----------
    patient : Patient
        The subject in the model's correspondence.
    prediction : Prediction
        With its measures, the patient's skin, and the warnings of the patient and its own.
    was_absent : bool
        Whether there was no breast where one is predicted.
    nipples : tuple of PredictedNipple
    difference : MissingVolume
        What lies between the chest as it is and the prediction.
    """

    patient: Patient
    prediction: Prediction
    was_absent: bool
    nipples: tuple[PredictedNipple, ...]
    difference: MissingVolume

    @property
    def own_warnings(self) -> tuple[Finding, ...]:
        """Warnings of the prediction without those of the patient."""
        return self.prediction.warnings[len(self.patient.warnings) :]


class PredictorCache:
    """Predictors of whole sides by a model's own subjects, kept for the next patient; of the model used last.

    Parameters
    ----------
    most : int
        Predictors to keep: each holds what the model's subjects look like.
    """

    def __init__(self, most: int = 2) -> None:
        self._most = most
        self._model: ShapeModel | None = None
        self._kept: OrderedDict[tuple[str, Evidence], BreastPredictor] = OrderedDict()

    def fitted(self, model: ShapeModel, side: str, evidence: Evidence) -> BreastPredictor:
        """The predictor of a side, fitted where it is not kept."""
        if model is not self._model:
            self._model = model
            self._kept.clear()
        key = (side, evidence)
        if key not in self._kept:
            self._kept[key] = fit_predictor(model, side, evidence)
        self._kept.move_to_end(key)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return self._kept[key]


@in_one_thread
def predict(request: PredictRequest, cache: PredictorCache | None = None) -> PredictResult:
    """Predict a missing breast.

    Parameters
    ----------
    request : PredictRequest
    cache : PredictorCache, optional
        Where fitted predictors are kept, for several patients of one model.

    Returns
    -------
    PredictResult

    Raises
    ------
    BreastMorphError
        The subject cannot be used, the breast is there and not to be replaced, neither side has one, or what is
        known does not belong to the missing breast.
    """
    model, missing = request.model, request.missing
    patient = open_subject(model, request.subject)
    replaced = not patient.absent_side if request.replace is None else request.replace
    with error_context(path_of(request.subject)):
        was_absent = counts_as_absent(
            model, patient.shape, missing, patient.absent_side, replace=replaced or request.operated
        )
    evidence: Evidence = "surface" if was_absent or request.operated else "points"
    subjects = training_shapes(model, request.cohort) if request.cohort is not None else None
    earlier = open_subject(model, request.earlier).shape if request.earlier is not None else None
    if cache is not None and subjects is None and isinstance(missing, str):
        predictor = cache.fitted(model, missing, evidence)
    else:
        predictor = fit_predictor(model, missing, evidence, subjects=subjects)
    with error_context(path_of(request.subject)):
        found = predicted_by(predictor, model, patient.shape, earlier, request.known)
    found = with_skin(model, found, patient.skin)
    difference = missing_volume(patient.shape, found)
    rows = (*predicted_measures(model, found, patient.landmarks), difference.measure)
    prediction = replace(
        found,
        warnings=(*patient.warnings, *found.warnings),
        measures=MeasureTable(f"{patient.id}: predicted {found.region.called}", rows),
    )
    return PredictResult(patient, prediction, was_absent, predicted_nipples(model, prediction), difference)
