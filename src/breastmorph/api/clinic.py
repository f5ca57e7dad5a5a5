"""Clinical use: measures, editing by them, prediction of a missing breast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from breastmorph.api.arguments import (
    GIVE_MODEL,
    GIVE_SUBJECT,
    Subject,
    Subjects,
    as_cohort,
    as_template,
    several_of,
)
from breastmorph.api.notices import warn
from breastmorph.clinical.comparison import Comparison
from breastmorph.clinical.distances import KINDS, STRAIGHT
from breastmorph.clinical.edit import Edit
from breastmorph.clinical.examination import Examination
from breastmorph.clinical.feature_requests import Request, parse_request
from breastmorph.clinical.patient import Patient, mean_patient
from breastmorph.clinical.repeatability import Repeatability, RepeatStudy, load_repeatability
from breastmorph.foundation.arrays import Bools, Ints
from breastmorph.foundation.checks import AnyPath, check_choice, check_path, check_texts, check_type
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.registration.result import Registration
from breastmorph.scan.scan import SIDES, Scan
from breastmorph.template import Template
from breastmorph.usecases.compare import CompareRepeatedRequest, CompareRequest
from breastmorph.usecases.compare import compare as _compare
from breastmorph.usecases.compare import compare_repeated as _compare_repeated
from breastmorph.usecases.measure import MeasureRequest
from breastmorph.usecases.measure import measure as _measure
from breastmorph.usecases.subject import open_subject

if TYPE_CHECKING:
    from breastmorph.clinical.planning import Plan
    from breastmorph.clinical.prediction import Prediction

_SAME = 0.1  # mm: what two files of one shape may differ by


def measure(subject: Subject | ShapeModel, *, model: ShapeModel | None = None) -> Examination:
    """Clinical distances, volumes and symmetry; print the result to see the table.

    Parameters
    ----------
    subject : Registration, Scan, ShapeModel or TriangleMesh
        A scan is registered and measured between its own landmarks. Of a model, its mean.
        A mesh has the default template's triangles, or those of ``model``.
    model : ShapeModel, optional

    Returns
    -------
    Examination
        ``found["volume-left"]`` is one measure, ``found.measures`` all of them; lengths in mm, volumes in cc.

    Raises
    ------
    BreastMorphError
        The scan cannot be registered, the mesh has other triangles, or the model no landmarks.

    Examples
    --------
    >>> bm.measure(model)["SN-NL"].unit
    'mm'
    >>> found = bm.measure(scan)
    >>> found["volume-left"].value > 0.0
    True
    """
    if model is not None:
        check_type(model, ShapeModel, "the model", GIVE_MODEL)
    if not isinstance(subject, (ShapeModel, Registration, Scan)):
        check_type(subject, TriangleMesh, "what shall be measured", GIVE_SUBJECT)
    return _measure(MeasureRequest(subject, model))


def compare(
    scans: Sequence[Scan],
    *,
    template: Template | None = None,
    repeatability: Repeatability | AnyPath | None = None,
) -> Comparison:
    """Say what changed between scans of one person, and whether it is more than noise; print the result to see it.

    Parameters
    ----------
    scans : sequence of Scan
        Two or more, in the order of the visits.
    template : Template, optional
        The default one when not given.
    repeatability : Repeatability or path, optional
        Where the +- come from: what :func:`compare_repeated` found, or its file; that of phantoms when not given.

    Returns
    -------
    Comparison
        ``changes`` has what changed from the first visit to each other one.

    Raises
    ------
    BreastMorphError
        A scan cannot be registered, or the scans are not of one person.

    Examples
    --------
    >>> change = bm.compare([scan, bm.load_scan("scans/s0.ply", "landmarks")])
    >>> any(measure.exceeds for measure in change.changes[0].measures)
    False
    """
    visits = several_of(scans, Scan, _GIVE_VISITS)
    return _compare(CompareRequest(visits, as_template(template), _repeatability(repeatability)))


def compare_repeated(
    people: Mapping[str, Sequence[Scan]], *, template: Template | None = None, source: str = ""
) -> RepeatStudy:
    """Say how well repeated scans of unchanged people agree.

    Parameters
    ----------
    people : mapping from name to sequence of Scan
        The scans of each person, two or more.
    template : Template, optional
        The default one when not given.
    source : str
        Who they were, in a few words; for the pages of later comparisons.

    Returns
    -------
    RepeatStudy
        ``study.repeatability`` can be given to :func:`compare`, and saved.

    Raises
    ------
    BreastMorphError
        None of the people can be compared.

    Examples
    --------
    >>> twice = [scan, bm.load_scan("scans/s0.ply", "landmarks")]
    >>> study = bm.compare_repeated({"A": twice}, source="one volunteer")
    >>> study.repeatability.save("repeatability.json")
    """
    check_type(people, Mapping, "the people", 'Give their scans by name: {"A": [first, second]}')
    visits = {str(name): several_of(scans, Scan, _GIVE_VISITS) for name, scans in people.items()}
    found = _compare_repeated(CompareRepeatedRequest(visits, source, template=as_template(template)))
    warn(f"{name} is left out: {error}" for name, error in found.failed.items())
    return found.study


_GIVE_VISITS = "Give two or more scans of one person (bm.load_scan)"


def _repeatability(given: Repeatability | AnyPath | None) -> Repeatability | None:
    return (
        given if given is None or isinstance(given, Repeatability) else load_repeatability(check_path(given))
    )


def edit(
    model: ShapeModel,
    subject: Subject | None,
    changes: Mapping[str, str | float],
    *,
    hold: Iterable[str] = (),
    kind: str = STRAIGHT,
    linear: bool = False,
) -> Edit:
    """Change a shape by its measures, to the most likely one that has them.

    Parameters
    ----------
    model : ShapeModel
    subject : Registration, TriangleMesh, Scan or None
        None: the model's mean. A mesh has the model's triangles, upright and in mm.
    changes : mapping from measure to value
        ``{"SN-NL": "21.5 cm", "volume-left": "+80 cc"}``: a text with a sign is added to the present value; numbers
        are mm or cc.
    hold : iterable of str
        Measures that must stay, or regions: ``thorax``, ``left``, ``right``.
    kind : {"straight", "tape"}
        How distances are measured, where their names do not say it.
    linear : bool
        The paper's linear regression, which attains the measures only nearly.

    Returns
    -------
    Edit
        The new shape in mm, and each measure before and after.

    Raises
    ------
    BreastMorphError
        A measure does not exist, or no sensible shape has the values asked for.

    Examples
    --------
    >>> edited = bm.edit(model, None, {"SN-NL": "+1 cm"}, hold=["thorax"])
    >>> change = edited.changes[0]
    >>> round(change.after - change.before)
    10
    """
    from breastmorph.usecases.edit import EditRequest
    from breastmorph.usecases.edit import edit as edited

    patient = _patient(model, subject)
    if not isinstance(changes, Mapping) or not changes:
        raise BreastMorphError("there is no change to make", 'Give for example {"SN-NL": "+1 cm"}')
    request = EditRequest(
        model,
        tuple(_request(name, value) for name, value in changes.items()),
        patient,
        tuple(check_texts(hold, "what is held")),
        check_choice(kind, KINDS, "the kind of distances"),
        linear,
    )
    return edited(request).edit


def predict(
    model: ShapeModel,
    subject: Subject,
    missing: str | Bools | Ints,
    *,
    replace: bool = False,
    operated: bool = False,
    subjects: Subjects | None = None,
    earlier: Subject | None = None,
    known: Mapping[str, str | float] | None = None,
) -> Prediction:
    """Predict a missing breast from the rest of the torso.

    Parameters
    ----------
    model : ShapeModel
    subject : Registration, TriangleMesh or Scan
        A mesh has the model's triangles, upright and in mm.
    missing : {"left", "right", "both"}, (n,) bool or (k,) int
        The patient's side, or the missing vertices.
    replace : bool
        Predict a breast although it is there, as if it were missing.
    operated : bool
        What is predicted was operated on (an expander, an implant, a reconstruction, a part removed): it is replaced,
        and nothing of its half is evidence.
    subjects : sequence of Registration, Cohort, or path, optional
        Those the model was built from: they choose noise and uncertainty.
    earlier : Registration, TriangleMesh or Scan, optional
        The same woman before the operation, in any pose.
    known : mapping, optional
        Measures that the lost breast had, as in ``edit``: ``{"volume-right": "420cc"}``.

    Returns
    -------
    Prediction
        The whole torso in mm with its uncertainty (standard deviations), measures and warnings.

    Raises
    ------
    BreastMorphError
        The breast is there and not to be replaced, neither side has one, or what is known is not of the missing breast.

    Examples
    --------
    >>> found = bm.predict(model, registered, "right", replace=True)
    >>> found.region.side, found.sd.shape == (model.n_vertices,)
    ('right', True)
    """
    from breastmorph.usecases.predict import PredictRequest
    from breastmorph.usecases.predict import predict as predicted

    if subject is None:
        raise BreastMorphError("there is no subject to predict for", GIVE_SUBJECT, code="wrong-argument")
    patient = _patient(model, subject)
    stated = check_type(known or {}, Mapping, "what is known", 'Give for example {"volume-right": "420cc"}')
    request = PredictRequest(
        model,
        patient,
        _side(missing) if isinstance(missing, str) else _vertices(model, missing),
        replace,
        operated,
        None if earlier is None else _patient(model, earlier),
        tuple(_request(name, value) for name, value in stated.items()),
        None if subjects is None else as_cohort(subjects),
    )
    return predicted(request).prediction


def plan(model: ShapeModel, subject: Subject, target: Prediction | Edit, *, mirrored: bool = False) -> Plan:
    """Say what is to be added or taken away to get from a torso to its prediction or to an edit of it.

    It is the difference of two computed surfaces, not the outcome of an operation; of a synthetic model no advice.

    Parameters
    ----------
    model : ShapeModel
    subject : Registration, TriangleMesh or Scan
        What the prediction or the edit was made of.
    target : Prediction or Edit
        What :func:`predict` or :func:`edit` found.
    mirrored : bool
        Of a prediction, take the mirror image of the other breast instead.

    Returns
    -------
    Plan
        Of each side what is added and what is removed, in cc and as closed solids in mm.

    Raises
    ------
    BreastMorphError
        The target is of another model or another shape.

    Examples
    --------
    >>> edited = bm.edit(model, registered, {"volume-left": "+30 cc"})
    >>> [side.side for side in bm.plan(model, registered, edited).sides]
    ['left', 'right']
    """
    from breastmorph.clinical.prediction import Prediction
    from breastmorph.usecases.plan import PlanRequest
    from breastmorph.usecases.plan import plan as planned

    check_type(target, (Prediction, Edit), "the target", "Give what bm.predict or bm.edit found")
    return planned(PlanRequest(model, _patient(model, subject), target, mirrored)).plan


def _side(missing: str) -> str:
    if missing not in (*SIDES, "both"):
        raise BreastMorphError(
            "there is no side {missing!r}",
            'Say missing="left" or "right", the patient\'s side, or "both"',
            missing=missing,
        )
    return missing


def _vertices(model: ShapeModel, missing: Bools | Ints) -> Bools:
    given: np.ndarray = np.asarray(missing)
    if given.dtype == bool and given.shape == (model.n_vertices,):
        return given.astype(bool)
    if (
        given.ndim != 1
        or given.dtype.kind not in "iu"
        or not given.size
        or not 0 <= given.min() <= given.max() < model.n_vertices
    ):
        raise BreastMorphError(
            "the missing skin is neither a side nor vertices of a model of {n_vertices}",
            'Say "left" or "right", or give vertex numbers or one truth value a vertex',
            n_vertices=model.n_vertices,
        )
    painted = np.zeros(model.n_vertices, bool)
    painted[given] = True
    return painted


def _request(name: str, value: str | float) -> Request:
    if isinstance(value, (int, float, np.integer, np.floating)) and np.isfinite(value):
        return Request(name, float(value))
    return parse_request(
        f"{name}={check_type(value, str, f'the value of {name}', 'Give a number or a text as +1 cm')}"
    )


def _patient(model: ShapeModel, subject: Subject | None) -> Patient:
    """The subject in the model's correspondence; refuses what is not."""
    check_type(model, ShapeModel, "the model", GIVE_MODEL)
    if subject is None:
        return mean_patient(model)
    if not isinstance(subject, (Registration, Scan)):
        subject = check_type(subject, TriangleMesh, "the subject", GIVE_SUBJECT)
    return open_subject(model, subject)
