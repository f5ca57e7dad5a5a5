"""What Python functions are given: checked, and turned into what the use cases take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from breastmorph.cohort import Cohort, load_cohort
from breastmorph.foundation.checks import AnyPath, check_path, check_type
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.result import Registration
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.scan import Scan
from breastmorph.template import Template, default_template

# Can be measured, edited or predicted: registered already, or a scan that is registered on the way.
Subject = Registration | TriangleMesh | Scan
Subjects = Cohort | Sequence[Registration] | AnyPath
Unit = Literal["auto", "mm", "cm", "m"]

GIVE_SUBJECT = "Give a registration, a scan, or a mesh with the model's triangles"
GIVE_SUBJECTS = (
    "Give registrations (bm.register), a cohort (bm.load_cohort), or the folder of `breastmorph register`"
)
GIVE_MODEL = "Give a model: bm.load_model or bm.build_model"


def as_template(template: Template | None) -> Template:
    """The template given, or the default one."""
    if template is None:
        return default_template()
    return check_type(
        template, Template, "the template", "Give bm.load_template(...) or bm.default_template()"
    )


def landmarks_path(landmarks: AnyPath | None) -> Path | None:
    """The landmark file or folder that was given, if any."""
    return None if landmarks is None else check_path(landmarks, "the name of the landmark file or folder")


def rules_of(unit: str, scale_by: str, landmark_order: Sequence[str] | None) -> CheckParameters:
    """How files are read."""
    known = ("auto", "mm", "cm", "m")
    if unit not in known:
        raise BreastMorphError(
            "the unit {unit!r} is not known", "Choose one of {known}", unit=unit, known=", ".join(known)
        )
    if scale_by and unit != "auto":
        raise BreastMorphError("a unit and a measured distance contradict each other", "Give one of the two")
    order = None if landmark_order is None else tuple(landmark_order)
    return CheckParameters(unit=unit, scale_by=scale_by, landmark_order=order)


def several_of(given: Any, kind: type[Any], remedy: str) -> list[Any]:
    """Several values of one kind; refuses anything else, also a single one and none at all."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        what = f"of the kind {type(given).__name__}"
        raise BreastMorphError(
            "what was given is {what}, not a list", remedy, code="wrong-argument", what=what
        )
    found = [check_type(one, kind, "one of those given", remedy) for one in given]
    if not found:
        raise BreastMorphError("the list is empty", remedy, code="wrong-argument")
    return found


def require_names(ids: Sequence[str]) -> None:
    """Refuse subjects of the same name."""
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        raise BreastMorphError(
            "two of them are called {twice!r}", "Give every subject once, under her own name", twice=twice[0]
        )


def as_cohort(subjects: Subjects) -> Cohort:
    """Subjects as one cohort."""
    if isinstance(subjects, Cohort):
        return subjects
    if isinstance(subjects, (str, Path)) or hasattr(subjects, "__fspath__"):
        return load_cohort(subjects)
    fits: list[Registration] = several_of(subjects, Registration, GIVE_SUBJECTS)
    require_names([one.id for one in fits])
    template = fits[0].template
    strange = [one.id for one in fits if not np.array_equal(one.mesh.faces, template.mesh.faces)]
    if strange:
        raise BreastMorphError(
            "{strange} and {id} were registered with different templates",
            "Register all with one",
            strange=strange[0],
            id=fits[0].id,
        )
    return Cohort(
        tuple(one.id for one in fits),
        template,
        np.array([one.vertices for one in fits], dtype=np.float32),
        np.arange(len(fits)),
        tuple(one.to_file for one in fits),
        tuple(one.absent_side for one in fits),
        ({},) * len(fits),
        tuple(one.landmarks for one in fits),
    )
