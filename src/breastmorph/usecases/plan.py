"""Plan: what is to be added or taken away to get from a torso to its prediction or to an edit of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from breastmorph.clinical.edit import Edit
from breastmorph.clinical.examination import Examination
from breastmorph.clinical.examiner import examiner_of, landmarks_of
from breastmorph.clinical.patient import Patient
from breastmorph.clinical.planning import Plan, Section, plan_of, sections
from breastmorph.clinical.predicted_measures import known_landmarks, predicted_side
from breastmorph.clinical.prediction import Prediction
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.usecases.subject import Subject, open_subject

_SAME = 0.1  # mm: what two files of one shape may differ by


@dataclass(frozen=True, eq=False)
class PlanRequest:
    """From which torso to which target.

    Attributes
    ----------
    model : ShapeModel
    subject : Patient, Registration, TriangleMesh, Scan or SubjectFile
        What the prediction or the edit was made of.
    target : Prediction or Edit
    mirrored : bool
        Of a prediction, take the mirror image of the other breast instead.
    """

    model: ShapeModel
    subject: Subject
    target: Prediction | Edit
    mirrored: bool = False


@dataclass(frozen=True, eq=False)
class PlanResult:
    """A plan, and what is read beside it.

    Attributes
    ----------
    request : PlanRequest
    patient : Patient
        The subject in the model's correspondence.
    plan : Plan
    """

    request: PlanRequest
    patient: Patient
    plan: Plan

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The level and the upright cut through each planned breast, before and after."""
        shapes = {"scanned": self.plan.before, self.plan.target: self.plan.after}
        model = self.request.model
        return tuple(cut for side in self.plan.sides for cut in sections(model, shapes, side.side))

    @cached_property
    def examinations(self) -> tuple[Examination, Examination]:
        """The torso as it is, and the target."""
        model, target, patient = self.request.model, self.request.target, self.patient
        examiner, landmarks = examiner_of(model), landmarks_of(model, patient)
        own = examiner.shape(patient.id, patient.shape, patient.absent_side, landmarks=landmarks)
        after = self.plan.after
        if isinstance(target, Edit):
            return own, examiner.shape(patient.id, after, patient.absent_side, landmarks=landmarks)
        predicted = None if self.request.mirrored else predicted_side(target)
        known = known_landmarks(target, patient.landmarks)
        return own, examiner.shape(patient.id, after, annotated=known, predicted=predicted)


def plan(request: PlanRequest) -> PlanResult:
    """Say what is to be added or taken away.

    Returns
    -------
    PlanResult

    Raises
    ------
    BreastMorphError
        The target is of another model or of another shape, or there is no mirror image because both breasts are
        missing.
    """
    model, target = request.model, request.target
    patient = open_subject(model, request.subject)
    model.shape_of(TriangleMesh(target.shape, target.faces))  # refuses another model's
    if isinstance(target, Edit):
        off = np.abs(target.before - patient.shape)
    else:
        off = np.abs(target.shape - patient.shape)[~target.region.missing]
    if off.max(initial=0.0) > _SAME:
        raise BreastMorphError(
            "the target was made of another shape", "Give the subject that was predicted for or edited"
        )
    return PlanResult(request, patient, plan_of(model, patient.shape, target, mirrored=request.mirrored))
