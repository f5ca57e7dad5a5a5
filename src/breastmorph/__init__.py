"""BreastMorph: statistical shape models of the female breast from 3D torso scans.

The names below load on first use, so that ``import breastmorph`` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "BreastMorphError": "breastmorph.foundation.errors",
    "TriangleMesh": "breastmorph.mesh.triangle_mesh",
    "load_mesh": "breastmorph.mesh.files",
    "save_mesh": "breastmorph.mesh.files",
    "Landmarks": "breastmorph.scan.landmarks",
    "load_landmarks": "breastmorph.scan.landmark_files",
    "save_landmarks": "breastmorph.scan.landmark_files",
    "Scan": "breastmorph.scan.scan",
    "load_scan": "breastmorph.scan.check",
    "check_scan": "breastmorph.scan.check",
    "breast_mask": "breastmorph.mask",
    "Template": "breastmorph.template",
    "default_template": "breastmorph.template",
    "load_template": "breastmorph.template",
    "Registrar": "breastmorph.registration.pipeline",
    "Cohort": "breastmorph.cohort",
    "load_cohort": "breastmorph.cohort",
    "ShapeModel": "breastmorph.model.shape_model",
    "build_model": "breastmorph.model.building",
    "load_model": "breastmorph.model.files",
    "save_model": "breastmorph.model.files",
    "fit_model": "breastmorph.model.fitting",
    "Examiner": "breastmorph.clinical.examination",
    "Editor": "breastmorph.clinical.editing",
    "predict_breast": "breastmorph.clinical.prediction",
    "evaluate_model": "breastmorph.evaluation.model_evaluation",
}

__all__ = ["__version__", *_HOME]

if TYPE_CHECKING:
    from breastmorph.clinical.editing import Editor
    from breastmorph.clinical.examination import Examiner
    from breastmorph.clinical.prediction import predict_breast
    from breastmorph.cohort import Cohort, load_cohort
    from breastmorph.evaluation.model_evaluation import evaluate_model
    from breastmorph.foundation.errors import BreastMorphError
    from breastmorph.mask import breast_mask
    from breastmorph.mesh.files import load_mesh, save_mesh
    from breastmorph.mesh.triangle_mesh import TriangleMesh
    from breastmorph.model.building import build_model
    from breastmorph.model.files import load_model, save_model
    from breastmorph.model.fitting import fit_model
    from breastmorph.model.shape_model import ShapeModel
    from breastmorph.registration.pipeline import Registrar
    from breastmorph.scan.check import check_scan, load_scan
    from breastmorph.scan.landmark_files import load_landmarks, save_landmarks
    from breastmorph.scan.landmarks import Landmarks
    from breastmorph.scan.scan import Scan
    from breastmorph.template import Template, default_template, load_template


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'breastmorph' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
