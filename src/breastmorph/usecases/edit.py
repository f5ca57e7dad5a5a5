"""Edit a shape by its measures: one edit, or each of some measures in steps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from breastmorph.clinical.distances import STRAIGHT, TAPE
from breastmorph.clinical.edit import Edit
from breastmorph.clinical.editing import Editor
from breastmorph.clinical.examiner import landmarks_of
from breastmorph.clinical.feature_requests import REGIONS, Request, named
from breastmorph.clinical.features import ModelFeatures
from breastmorph.clinical.patient import Patient, mean_patient
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.messages import Finding
from breastmorph.model.shape_model import ShapeModel
from breastmorph.usecases import Progress, no_progress
from breastmorph.usecases.subject import Subject, open_subject


@dataclass(frozen=True, eq=False)
class EditRequest:
    """Which measures of whom are to be changed, and how.

    Attributes
    ----------
    model : ShapeModel
    changes : tuple of Request
    subject : Patient, Registration, TriangleMesh, Scan or SubjectFile, optional
        The model's mean when not given.
    hold : tuple of str
        Measures that must stay, or regions: ``thorax``, ``left``, ``right``.
    kind : {"straight", "tape"}
        How distances are measured, where their names do not say it.
    linear : bool
        The paper's linear regression, which attains the measures only nearly.
    compare_linear : bool
        Whether that version is found too, beside the exact one.
    """

    model: ShapeModel
    changes: tuple[Request, ...]
    subject: Subject | None = None
    hold: tuple[str, ...] = ()
    kind: str = STRAIGHT
    linear: bool = False
    compare_linear: bool = False


@dataclass(frozen=True, eq=False)
class EditResult:
    """An edit, and what it was made of.

    Attributes
    ----------
    patient : Patient
        The subject in the model's correspondence.
    edit : Edit
        With the warnings of the patient and its own.
    linear : Edit, optional
        The linear version, where it was asked for beside the exact one.
    linear_refusal : BreastMorphError, optional
        Why there is no linear version. It is not tried for tape measures, which take it a minute.
    """

    patient: Patient
    edit: Edit
    linear: Edit | None = None
    linear_refusal: BreastMorphError | None = None

    @property
    def own_warnings(self) -> tuple[Finding, ...]:
        """Warnings of the edit without those of the patient."""
        return self.edit.warnings[len(self.patient.warnings) :]


def prepare_editor(model: ShapeModel, subject: Subject | None = None, kind: str = STRAIGHT) -> Editor:
    """What can be kept for several edits of one subject; the model's mean when none is given."""
    patient = mean_patient(model) if subject is None else open_subject(model, subject)
    landmarks = landmarks_of(model, patient)
    return Editor(model, patient, ModelFeatures(model, kind, patient.absent_side, landmarks))


def edit(request: EditRequest, editor: Editor | None = None) -> EditResult:
    """Change a shape by its measures, to the most likely one that has them.

    Parameters
    ----------
    request : EditRequest
    editor : Editor, optional
        Of the request's model, subject and kind, where :func:`prepare_editor` made it before.

    Returns
    -------
    EditResult

    Raises
    ------
    BreastMorphError
        The subject cannot be used, a measure does not exist, or no sensible shape has what is asked for.
    """
    if editor is None:
        editor = prepare_editor(request.model, request.subject, request.kind)
    patient = editor.patient
    found = (editor.linear if request.linear else editor.exact)(request.changes, request.hold)
    found = replace(found, warnings=(*patient.warnings, *found.warnings))
    linear, refusal = None, None
    of_tape = any(change.requested is not None and change.name.endswith(TAPE) for change in found.changes)
    if request.compare_linear and not request.linear and not of_tape:
        try:  # it knows no held regions
            held = [name for name in request.hold if named(name, REGIONS) is None]
            linear = editor.linear(request.changes, held)
        except BreastMorphError as error:
            refusal = error
    return EditResult(patient, found, linear, refusal)


@dataclass(frozen=True, eq=False)
class GridRequest:
    """Which measures of whom are to be changed in steps.

    Attributes
    ----------
    model : ShapeModel
    measures : tuple of str
    subject, hold, kind, linear
        See :class:`EditRequest`.
    steps : tuple of float
        Changes in standard deviations of the model.
    """

    model: ShapeModel
    measures: tuple[str, ...]
    subject: Subject | None = None
    hold: tuple[str, ...] = ()
    kind: str = STRAIGHT
    linear: bool = False
    steps: tuple[float, ...] = (-2.0, -1.0, 0.0, 1.0, 2.0)


@dataclass(frozen=True, eq=False)
class GridStep:
    """One measure changed by one step; ``refusal`` says why where no sensible shape has it.

    Attributes
    ----------
    measure : str
    deviations : float
    edit : Edit, optional
    refusal : BreastMorphError, optional
    """

    measure: str
    deviations: float
    edit: Edit | None = None
    refusal: BreastMorphError | None = None


def edit_grid(request: GridRequest, progress: Progress = no_progress) -> tuple[tuple[GridStep, ...], ...]:
    """Change each measure in steps, a row for each measure.

    Raises
    ------
    BreastMorphError
        A measure does not exist, or even the present value cannot be had.
    """
    editor = prepare_editor(request.model, request.subject, request.kind)
    change = editor.linear if request.linear else editor.exact
    features = [editor.usual(name) for name in request.measures]
    rows = []
    with progress(len(features) * len(request.steps)) as advance:
        for feature, _, sd in features:
            row = []
            for step in request.steps:
                wanted = Request(feature.name, step * sd, relative=True)
                try:
                    row.append(GridStep(feature.name, step, change([wanted], request.hold)))
                except BreastMorphError as error:
                    if not step:  # not this value, but something else is wrong
                        raise
                    row.append(GridStep(feature.name, step, refusal=error))
                advance()
            rows.append(tuple(row))
    return tuple(rows)
