"""BreastMorph: statistical shape models of the female breast from 3D torso scans.

The names below load on first use, so that ``import breastmorph`` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "BreastMorphError": "breastmorph.foundation.errors",
    "BreastMorphWarning": "breastmorph.foundation.errors",
    "FileProblem": "breastmorph.foundation.errors",
    "LandmarkProblem": "breastmorph.foundation.errors",
    "MeshProblem": "breastmorph.foundation.errors",
    # meshes, landmarks, scans
    "TriangleMesh": "breastmorph.mesh.triangle_mesh",
    "Texture": "breastmorph.mesh.triangle_mesh",
    "Similarity": "breastmorph.mesh.geometry",
    "load_mesh": "breastmorph.mesh.files",
    "save_mesh": "breastmorph.mesh.files",
    "Landmarks": "breastmorph.scan.scan",
    "Found": "breastmorph.scan.scan",
    "FoundLandmarks": "breastmorph.scan.finder",
    "find_landmarks": "breastmorph.api.scans",
    "load_landmarks": "breastmorph.scan.landmark_files",
    "save_landmarks": "breastmorph.scan.landmark_files",
    "Scan": "breastmorph.scan.scan",
    "Check": "breastmorph.scan.scan",
    "Finding": "breastmorph.foundation.messages",
    "Message": "breastmorph.foundation.messages",
    "Audience": "breastmorph.foundation.messages",
    "Plural": "breastmorph.foundation.language",
    "Language": "breastmorph.foundation.language",
    "language": "breastmorph.foundation.language",
    "load_scan": "breastmorph.api.scans",
    "load_scans": "breastmorph.api.scans",
    "check_scan": "breastmorph.api.scans",
    "breast_mask": "breastmorph.mask",
    # registration
    "Template": "breastmorph.template",
    "default_template": "breastmorph.template",
    "load_template": "breastmorph.template",
    "register": "breastmorph.api.scans",
    "register_folder": "breastmorph.api.scans",
    "Registration": "breastmorph.registration.result",
    "RegistrationParameters": "breastmorph.registration.parameters",
    "StageMetrics": "breastmorph.registration.result",
    "Trace": "breastmorph.registration.result",
    "Cohort": "breastmorph.cohort",
    "load_cohort": "breastmorph.cohort",
    # models
    "build_model": "breastmorph.api.models",
    "ShapeModel": "breastmorph.model.shape_model",
    "Training": "breastmorph.model.shape_model",
    "load_model": "breastmorph.model.files",
    "fit": "breastmorph.api.models",
    "Fit": "breastmorph.model.fitting",
    "evaluate": "breastmorph.api.models",
    "Evaluation": "breastmorph.evaluation.model_evaluation",
    "EvaluationParameters": "breastmorph.evaluation.model_evaluation",
    "Compactness": "breastmorph.evaluation.training_set",
    "Curve": "breastmorph.evaluation.training_set",
    "Decoupling": "breastmorph.evaluation.training_set",
    "RawScans": "breastmorph.evaluation.model_evaluation",
    "TruthFigures": "breastmorph.evaluation.truth",
    "CohortTruth": "breastmorph.evaluation.truth",
    # clinical use
    "measure": "breastmorph.api.clinic",
    "Examination": "breastmorph.clinical.examination",
    "Measure": "breastmorph.clinical.measure_table",
    "MeasureTable": "breastmorph.clinical.measure_table",
    "Ptosis": "breastmorph.clinical.examination",
    "Symmetry": "breastmorph.clinical.examination",
    "compare": "breastmorph.api.clinic",
    "compare_repeated": "breastmorph.api.clinic",
    "load_repeatability": "breastmorph.clinical.repeatability",
    "Comparison": "breastmorph.clinical.comparison",
    "GradeChange": "breastmorph.clinical.comparison",
    "VisitChange": "breastmorph.clinical.comparison",
    "MeasureChange": "breastmorph.clinical.measure_table",
    "SkinChange": "breastmorph.clinical.comparison",
    "Stance": "breastmorph.clinical.comparison",
    "Repeatability": "breastmorph.clinical.repeatability",
    "VolumeNoise": "breastmorph.clinical.repeatability",
    "RepeatStudy": "breastmorph.clinical.repeatability",
    "RepeatedMeasure": "breastmorph.clinical.repeatability",
    "edit": "breastmorph.api.clinic",
    "Edit": "breastmorph.clinical.edit",
    "Change": "breastmorph.clinical.measure_table",
    "Plausibility": "breastmorph.model.plausibility",
    "predict": "breastmorph.api.clinic",
    "plan": "breastmorph.api.clinic",
    "Prediction": "breastmorph.clinical.prediction",
    "Plan": "breastmorph.clinical.planning",
    "SidePlan": "breastmorph.clinical.planning",
    "PlannedPart": "breastmorph.clinical.planning",
    "MissingRegion": "breastmorph.clinical.missing_region",
    "Choice": "breastmorph.clinical.left_out",
    # to look at, and to try with
    "picture": "breastmorph.api.pictures",
    "demo_model": "breastmorph.api.synthetic",
    "make_phantoms": "breastmorph.api.synthetic",
}
_NOW = {  # what earlier versions called it
    "Registrar": "register",
    "Examiner": "measure",
    "Editor": "edit",
    "predict_breast": "predict",
    "fit_model": "fit",
    "evaluate_model": "evaluate",
    "save_model": "ShapeModel.save",
    "Standing": "Plausibility",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from breastmorph.api.clinic import compare, compare_repeated, edit, measure, plan, predict
    from breastmorph.api.models import build_model, evaluate, fit
    from breastmorph.api.pictures import picture
    from breastmorph.api.scans import (
        check_scan,
        find_landmarks,
        load_scan,
        load_scans,
        register,
        register_folder,
    )
    from breastmorph.api.synthetic import demo_model, make_phantoms
    from breastmorph.clinical.comparison import (
        Comparison,
        GradeChange,
        SkinChange,
        Stance,
        VisitChange,
    )
    from breastmorph.clinical.edit import Edit
    from breastmorph.clinical.examination import Examination, Ptosis, Symmetry
    from breastmorph.clinical.left_out import Choice
    from breastmorph.clinical.measure_table import Change, Measure, MeasureChange, MeasureTable
    from breastmorph.clinical.missing_region import MissingRegion
    from breastmorph.clinical.planning import Plan, PlannedPart, SidePlan
    from breastmorph.clinical.prediction import Prediction
    from breastmorph.clinical.repeatability import (
        Repeatability,
        RepeatedMeasure,
        RepeatStudy,
        VolumeNoise,
        load_repeatability,
    )
    from breastmorph.cohort import Cohort, load_cohort
    from breastmorph.evaluation.model_evaluation import Evaluation, EvaluationParameters, RawScans
    from breastmorph.evaluation.training_set import Compactness, Curve, Decoupling
    from breastmorph.evaluation.truth import CohortTruth, TruthFigures
    from breastmorph.foundation.errors import (
        BreastMorphError,
        BreastMorphWarning,
        FileProblem,
        LandmarkProblem,
        MeshProblem,
    )
    from breastmorph.foundation.language import Language, Plural, language
    from breastmorph.foundation.messages import Audience, Finding, Message
    from breastmorph.mask import breast_mask
    from breastmorph.mesh.files import load_mesh, save_mesh
    from breastmorph.mesh.geometry import Similarity
    from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh
    from breastmorph.model.files import load_model
    from breastmorph.model.fitting import Fit
    from breastmorph.model.plausibility import Plausibility
    from breastmorph.model.shape_model import ShapeModel, Training
    from breastmorph.registration.parameters import RegistrationParameters
    from breastmorph.registration.result import Registration, StageMetrics, Trace
    from breastmorph.scan.finder import FoundLandmarks
    from breastmorph.scan.landmark_files import load_landmarks, save_landmarks
    from breastmorph.scan.scan import Check, Found, Landmarks, Scan
    from breastmorph.template import Template, default_template, load_template


def __getattr__(name: str) -> Any:
    if name in _NOW:
        raise AttributeError(f"'breastmorph' has no {name!r} any more: it is breastmorph.{_NOW[name]} now")
    if name not in _HOME:
        raise AttributeError(f"module 'breastmorph' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


def _shown(value: Any, how: str) -> Any:
    """How a notebook shows a value: by what stands above all values, which no layer below may import."""
    return getattr(import_module("breastmorph.report.notebook"), how)(value)
