"""Experiment 3: does a model of operated breasts explain breasts that were never operated on?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.evaluation.generalization import LeaveOneOut
from breastmorph.evaluation.training_set import whole
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.machine import one_thread
from breastmorph.model.building import as_number
from breastmorph.paper.modelled_cohort import (
    CohortExperiment,
    ModelledCohort,
    comparable,
    of_subjects,
    over_draws,
)
from breastmorph.paper.records import Recorded, rounded
from breastmorph.paper.significance import mean_band

_FEWEST_OPERATED = 3  # subjects in a model
_OPERATED_STREAM = 3  # of random numbers: that of this experiment


@dataclass(frozen=True)
class OperatedParameters(Recorded):
    """How much to compute.

    Attributes
    ----------
    training : int
        Most subjects in a model; the paper's 37. One more is tested.
    draws : int
        Random sets of training subjects.
    column : str
        Of the cohort's table: yes or no, 1 or 0.
    seed : int
    """

    training: int = 37
    draws: int = 3
    column: str = "operated"
    seed: int = 0


@dataclass(frozen=True, eq=False)
class OperatedDraw(Recorded):
    """One random set of subjects.

    Attributes
    ----------
    training : (m,) int
        Operated subjects of the model, as places in the experiment's ``ids``.
    tested : (t,) int
        Non-operated subjects.
    operated, not_operated : (t, c) float
        Generalization of every tested subject by the model of operated subjects, and by that of the other tested
        ones, with 0 to m - 1 components, mm.
    """

    training: Ints
    tested: Ints
    operated: Floats
    not_operated: Floats


@dataclass(frozen=True, eq=False)
class OperatedExperiment(CohortExperiment):
    """Operated against non-operated subjects.

    Attributes
    ----------
    available : tuple of int
        Operated and non-operated subjects.
    components : (c,) int
    draws : tuple of OperatedDraw
    parameters : OperatedParameters
    """

    available: tuple[int, ...]
    components: Ints
    draws: tuple[OperatedDraw, ...]
    parameters: OperatedParameters

    def curve(self, model: str) -> tuple[Floats, Floats]:
        """Mean and spread (standard deviation) over the draws of "operated" or "not_operated", (c,) each."""
        return over_draws([getattr(draw, model).mean(axis=0) for draw in self.draws])

    def band(self, model: str) -> tuple[Floats, Floats]:
        """95 % confidence interval (c,) of the mean over the subjects, drawn anew in every draw."""
        ends = [mean_band(getattr(draw, model)) for draw in self.draws]
        return over_draws([low for low, _ in ends])[0], over_draws([high for _, high in ends])[0]

    def of_subjects(self, model: str, components: int) -> Floats:
        """Error of every subject with so many components, mean over the draws, (k,); NaN where never tested."""
        values = ((draw.tested, getattr(draw, model)[:, components]) for draw in self.draws)
        return of_subjects(len(self.ids), values)


def compare_operated(cohort: Cohort, parameters: OperatedParameters | None = None) -> OperatedExperiment:
    """Run experiment 3; what a cohort does not allow is stated in the result.

    Parameters
    ----------
    cohort : Cohort
        With a table that has the column ``operated``; one-sided subjects and copies are left out.
    parameters : OperatedParameters, optional
    """
    p = parameters or OperatedParameters()
    used = comparable(cohort)
    stated = np.array([as_number(row.get(p.column) or "") for row in used.table])
    operated, others = np.flatnonzero(stated == 1), np.flatnonzero(stated == 0)
    available = (len(operated), len(others))
    size = min(len(operated), len(others) - 1, p.training)

    def result(reason: str, draws: tuple[OperatedDraw, ...] = ()) -> OperatedExperiment:
        components = np.arange(max(size, 0))
        return OperatedExperiment(reason, used.ids, available, components, draws, p)

    if not any(used.table):
        return result(
            "there is no cohort.csv, or it knows none of the subjects: who was operated on is not known"
        )
    if not any(p.column in row for row in used.table):
        return result(f"the cohort's table has no column {p.column!r}")
    if size < _FEWEST_OPERATED:
        return result(
            f"{available[0]} operated and {available[1]} non-operated subjects with both sides are too few "
            f"(at least {_FEWEST_OPERATED} and {_FEWEST_OPERATED + 1})"
        )
    with one_thread():
        shapes = ModelledCohort.of(used).training.shapes
        draws = []
        for draw in range(p.draws):
            rng = np.random.default_rng([p.seed, _OPERATED_STREAM, draw])
            training = np.sort(rng.choice(operated, size, replace=False))
            tested = np.sort(rng.choice(others, size + 1, replace=False))
            draws.append(_draw_operated(shapes, training, tested))
    return result("", tuple(draws))


def _draw_operated(shapes: Floats, training: Ints, tested: Ints) -> OperatedDraw:
    m, t = len(training), len(tested)
    region = whole(shapes.shape[1])
    components = np.arange(m)
    # All tested subjects are one group: the model of the others is that of the training subjects alone.
    groups = np.concatenate([np.arange(m), np.full(t, m)])
    both = shapes[np.concatenate([training, tested])]
    against = LeaveOneOut(both, groups, np.arange(m, m + t))
    among = LeaveOneOut(shapes[tested])
    return OperatedDraw(
        training,
        tested,
        rounded(against.point_distances(region, components)[:, :, 0]),
        rounded(among.point_distances(region, components)[:, :, 0]),
    )
