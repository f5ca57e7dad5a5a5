"""A cohort with its model and its aligned shapes: what every experiment starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from breastmorph.cohort import Cohort
from breastmorph.cohort.review import without_copies
from breastmorph.evaluation.generalization import LeaveOneOut
from breastmorph.evaluation.training_set import TrainingSet, training_set
from breastmorph.foundation.arrays import Bools
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
