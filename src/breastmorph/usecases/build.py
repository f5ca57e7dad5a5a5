"""Build a shape model from the registered subjects of a folder or a cohort."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from breastmorph.cohort import Cohort, load_cohort
from breastmorph.cohort.review import CohortReview, review_cohort
from breastmorph.foundation.arrays import Bools
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import without_quote
from breastmorph.foundation.text import name_of
from breastmorph.model.building import BuildParameters, build_model, chosen_rows
from breastmorph.model.shape_model import ShapeModel
from breastmorph.usecases import Progress, no_progress

Reason = Literal["excluded", "not in the table", "not chosen", "absent breast"]


@dataclass(frozen=True, eq=False)
class Subjects:
    """Registered subjects, and which of them are wanted.

    Attributes
    ----------
    of : Cohort or Path
        The path is that of a registered folder.
    table : Path, optional
        CSV file about the subjects, with a column id.
    where : str, optional
        Only the subjects of whom this is true in the table, as "bmi > 25 and not operated".
    exclude : sequence of str
        Ids of subjects to leave out.
    reasons : mapping from Reason to str
        How results and model files name the reasons for leaving subjects out, where not by the reason itself.
    """

    of: Cohort | Path
    table: Path | None = None
    where: str | None = None
    exclude: Sequence[str] = ()
    reasons: Mapping[Reason, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ChosenSubjects:
    """The subjects chosen, and those left out by reason."""

    cohort: Cohort
    left_out: Mapping[str, Sequence[str]]


@dataclass(frozen=True, eq=False)
class BuildRequest:
    """Of whom to build which kind of model.

    Attributes
    ----------
    subjects : Subjects
    parameters : BuildParameters
    """

    subjects: Subjects
    parameters: BuildParameters = field(default_factory=BuildParameters)


@dataclass(frozen=True, eq=False)
class BuiltModel:
    """A model, and what there is to say of its subjects.

    Attributes
    ----------
    model : ShapeModel
    left_out : mapping from reason to ids
    review : CohortReview
        Copies, mirror images and shapes unlike all others among its subjects.
    flags : mapping from id to str
        What the registration of a folder found unusual about its subjects.
    """

    model: ShapeModel
    left_out: Mapping[str, Sequence[str]]
    review: CohortReview
    flags: Mapping[str, str]


def build(request: BuildRequest, progress: Progress = no_progress) -> BuiltModel:
    """Build a shape model; subjects with an absent breast are left out unless ``with_absent`` asks for them.

    Raises
    ------
    BreastMorphError
        A subject to leave out is not there, no or too few subjects are left, or they do not differ.
    """
    asked, parameters = request.subjects, request.parameters
    chosen = choose_subjects(asked, parameters.with_absent, progress)
    review = review_cohort(chosen.cohort)
    notes: dict[str, Any] = {"left_out": {reason: len(ids) for reason, ids in chosen.left_out.items()}}
    if asked.where:
        notes["where"] = asked.where
    if review.n_copies:
        notes["copies"] = review.n_copies
    model = build_model(chosen.cohort, parameters, notes)
    flags = {} if isinstance(asked.of, Cohort) else _flags(asked.of / "summary.csv", chosen.cohort.ids)
    return BuiltModel(model, chosen.left_out, review, flags)


def choose_subjects(
    subjects: Subjects, with_absent: bool, progress: Progress = no_progress
) -> ChosenSubjects:
    """The subjects that are wanted.

    Parameters
    ----------
    subjects : Subjects
    with_absent : bool
        Also those with an absent breast.
    progress : callable, optional
        Of reading a folder whose subjects have to be read one by one.

    Raises
    ------
    BreastMorphError
        A subject to leave out is not there, or none is left.
    """
    cohort = subjects.of if isinstance(subjects.of, Cohort) else _read(subjects.of, subjects.table, progress)
    keep: Bools = np.ones(len(cohort), bool)
    left_out: dict[str, list[str]] = {}

    def leave_out(which: Bools, reason: Reason) -> None:
        new = keep & which
        if new.any():
            left_out[subjects.reasons.get(reason, reason)] = [cohort.ids[i] for i in np.flatnonzero(new)]
        keep[new] = False

    unknown = [name for name in subjects.exclude if name not in cohort.ids]
    if unknown:
        raise BreastMorphError(
            "there is no subject {unknown!r} to leave out",
            "The subjects are {ids}",
            unknown=unknown[0],
            ids=", ".join(cohort.ids[:12]),
        )
    leave_out(np.isin(cohort.ids, list(subjects.exclude)), "excluded")
    if subjects.where is not None:
        leave_out(
            np.array([not row for row in cohort.table]) & (subjects.table is not None), "not in the table"
        )
        leave_out(~chosen_rows(cohort.table, subjects.where), "not chosen")
    if not with_absent:
        leave_out(np.array([bool(side) for side in cohort.absent]), "absent breast")
    if not keep.any():
        reasons = "; ".join(f"{len(ids)} {reason}" for reason, ids in left_out.items())
        remedy = (
            "Take those with an absent breast too" if "absent breast" in left_out else "Choose more subjects"
        )
        raise BreastMorphError("no subject is left ({reasons})", remedy, reasons=reasons)
    return ChosenSubjects(cohort.chosen(keep), left_out)


def _read(folder: Path, table: Path | None, progress: Progress) -> Cohort:
    with progress(sum(1 for _ in (folder / "registered").glob("*.json"))) as advance:
        return load_cohort(folder, table, on_packed=lambda done, total: advance())


def _flags(summary: Path, ids: Sequence[str]) -> dict[str, str]:
    try:
        with open(summary, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error):
        return {}
    flags = {name_of(without_quote(row.get("id") or "")): (row.get("flags") or "").strip() for row in rows}
    return {name: flag for name, flag in flags.items() if name in ids and flag}
