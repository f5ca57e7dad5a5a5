"""Evaluate a model: what it is worth, by its subjects, their raw scans and the truth, and what it reveals of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from breastmorph.evaluation.model_evaluation import Evaluation, EvaluationParameters, evaluate_model
from breastmorph.evaluation.privacy import Privacy, PrivacyParameters, measure_privacy
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.check import CheckParameters, find_scans
from breastmorph.usecases import Steps, no_steps
from breastmorph.usecases.build import Subjects, choose_subjects

_SHAPES = 500  # random shapes are enough for what a model reveals


@dataclass(frozen=True, eq=False)
class EvaluateRequest:
    """Which model to evaluate, and what to compare it with.

    Attributes
    ----------
    model : ShapeModel
    subjects : Subjects, optional
        Those it was built from; without them only compactness is known. Where they do not say ``where``, those that
        the model says it was built with.
    parameters : EvaluationParameters
    scans, landmarks : Path, optional
        Raw scans of the subjects: also compare with them.
    truth : Path, optional
        The ``truth/`` folder of a phantom cohort.
    privacy : bool
        Also measure what the model reveals about its subjects.
    check : CheckParameters
        How raw scans are read.
    """

    model: ShapeModel
    subjects: Subjects | None = None
    parameters: EvaluationParameters = field(default_factory=EvaluationParameters)
    scans: Path | None = None
    landmarks: Path | None = None
    truth: Path | None = None
    privacy: bool = False
    check: CheckParameters = field(default_factory=CheckParameters)


@dataclass(frozen=True, eq=False)
class EvaluatedModel:
    """What a model is worth, and where it was asked for, what it reveals."""

    evaluation: Evaluation
    privacy: Privacy | None


def evaluate(request: EvaluateRequest, progress: Steps = no_steps) -> EvaluatedModel:
    """Evaluate a model.

    Raises
    ------
    BreastMorphError
        Subjects, scans or truth are not the model's.
    """
    model, cohort = request.model, None
    found = None if request.scans is None else find_scans(request.scans, request.landmarks)
    if request.subjects is not None:
        stated = model.info.get("where")
        where = request.subjects.where or (stated if isinstance(stated, str) else None)
        if where and request.subjects.table is None and isinstance(request.subjects.of, Path):
            raise BreastMorphError(
                'the subjects are chosen by "{wheres}", which needs a table',
                "Give the table too",
                wheres=where,
            )
        subjects = replace(request.subjects, where=where if isinstance(request.subjects.of, Path) else None)
        # An absent side does not matter here: the training set leaves out what the model left out.
        cohort = choose_subjects(subjects, True, lambda total: progress("Reading", total)).cohort
    evaluation = evaluate_model(
        model,
        cohort,
        request.parameters,
        scans=found,
        check=request.check,
        truth=request.truth,
        progress=progress,
    )
    privacy = None
    if request.privacy and cohort is not None:
        p = request.parameters
        privacy = measure_privacy(model, cohort, PrivacyParameters(min(p.samples, _SHAPES), p.seed))
    return EvaluatedModel(evaluation, privacy)
