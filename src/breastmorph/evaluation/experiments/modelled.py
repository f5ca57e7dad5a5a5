"""A cohort with its model and its aligned shapes: what every experiment starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.evaluation.generalization import LeaveOneOut
from breastmorph.evaluation.training_set import TrainingSet, training_set
from breastmorph.mesh.triangle_mesh import Bools, Ints
from breastmorph.model.building import BuildParameters, build_model, usable
from breastmorph.model.shape_model import ShapeModel


@dataclass(frozen=True, eq=False)
class ModelledCohort:
    """Subjects with both sides, their model with all components, and their shapes in its frame.

    Attributes
    ----------
    model : ShapeModel
    training : TrainingSet
    """

    model: ShapeModel
    training: TrainingSet

    @classmethod
    def of(cls, cohort: Cohort) -> ModelledCohort:
        """Build the model of a cohort, as ``breastmorph build`` does; one-sided subjects are left out."""
        used = usable(cohort, BuildParameters())
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


def of_both(first: Cohort, second: Cohort) -> tuple[Cohort, Cohort]:
    """The same subjects of two cohorts, with both sides in both, in the first one's order."""
    used = [usable(cohort, BuildParameters()) for cohort in (first, second)]
    places = [{name: place for place, name in enumerate(cohort.ids)} for cohort in used]
    shared = [name for name in used[0].ids if name in places[1]]
    one, other = (
        cohort.chosen([place[name] for name in shared]) for cohort, place in zip(used, places, strict=True)
    )
    return one, other


def counts_of(wanted: Sequence[int], most: int) -> Ints:
    """The wanted numbers of components that exist, and the most, (c,)."""
    return np.array(sorted({count for count in wanted if count < most} | {most}), dtype=np.int64)
