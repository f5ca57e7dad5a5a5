"""A cohort with its model and its aligned shapes, what experiments start from; and figures over random draws."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.cohort.review import without_copies
from breastmorph.evaluation.generalization import LeaveOneOut
from breastmorph.evaluation.training_set import TrainingSet, training_set
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.model.building import build_model, usable
from breastmorph.model.shape_model import ShapeModel
from breastmorph.paper.records import Recorded


@dataclass(frozen=True, eq=False)
class ModelledCohort:
    """Comparable subjects, their model with all components, and their shapes in its frame.

    Attributes
    ----------
    model : ShapeModel
    training : TrainingSet
    """

    model: ShapeModel
    training: TrainingSet

    @classmethod
    def of(cls, cohort: Cohort) -> ModelledCohort:
        """Build the model of a cohort's comparable subjects, as ``breastmorph build`` does."""
        used = comparable(cohort)
        model = build_model(used)
        return cls(model, training_set(model, used))

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the subjects."""
        return self.training.cohort.ids

    @cached_property
    def folds(self) -> LeaveOneOut:
        """Every subject against the model of the others."""
        return LeaveOneOut(self.training.shapes)

    @property
    def breast(self) -> Bools:
        """Vertices whose template mask is above 0.2, (n,)."""
        return self.training.breast


@dataclass(frozen=True, eq=False)
class CohortExperiment(Recorded):
    """The result of an experiment on one cohort.

    Attributes
    ----------
    impossible : str
        Why there is no result; empty when there is one.
    ids : tuple of str
        The comparable subjects.
    """

    impossible: str
    ids: tuple[str, ...]


def comparable(cohort: Cohort) -> Cohort:
    """The subjects with both sides, every one once: a left-out subject must not have a twin among the others."""
    return without_copies(usable(cohort))


def of_both(first: Cohort, second: Cohort) -> tuple[Cohort, Cohort]:
    """The same subjects of two cohorts, comparable in both, in the first one's order."""
    used = [comparable(cohort) for cohort in (first, second)]
    places = [{name: place for place, name in enumerate(cohort.ids)} for cohort in used]
    shared = [name for name in used[0].ids if name in places[1]]
    one, other = (
        cohort.chosen([place[name] for name in shared]) for cohort, place in zip(used, places, strict=True)
    )
    return one, other


def over_draws(curves: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Mean and spread (standard deviation) of curves (c,) over draws; as long as the shortest of them."""
    fewest = min(len(curve) for curve in curves)
    values = np.stack([curve[:fewest] for curve in curves])
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(fewest)
    return values.mean(axis=0), spread


def of_subjects(subjects: int, draws: Iterable[tuple[Ints, Floats]]) -> Floats:
    """Mean of every subject over the draws it is in, (subjects,); NaN where it is in none.

    Each draw has the places of its subjects (t,) and their values (t,).
    """
    total, times = np.zeros(subjects), np.zeros(subjects)
    for places, values in draws:
        total[places] += values
        times[places] += 1
    return np.where(times > 0, total / np.maximum(times, 1), np.nan)
