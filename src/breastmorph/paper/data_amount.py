"""Experiment 2: how many scans a model needs. Random subsets, each with a model and a leave-one-out of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.evaluation.specificity import specificity
from breastmorph.evaluation.training_set import compactness, counts_of, whole
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.machine import one_thread
from breastmorph.paper.modelled_cohort import (
    CohortExperiment,
    ModelledCohort,
    comparable,
    of_subjects,
    over_draws,
)
from breastmorph.paper.records import Recorded, rounded
from breastmorph.paper.significance import drawn_shares, mean_band, resamples

_PAPER_SIZES = (30, 60, 90)
_PAPER_COHORT = 110
_LARGE = 100  # subjects from which on the paper's sizes are taken as they are
_FEWEST = 5  # subjects of a subset: a left-out model of three components
_FEWEST_OF_ALL = 12  # subjects of a cohort: below, all subsets that have enough are nearly the whole cohort
_STREAM = 2  # of random numbers: that of this experiment
_RESAMPLES = 300  # of every subset's subjects, for the intervals of compactness


@dataclass(frozen=True)
class DataAmountParameters(Recorded):
    """How much to compute.

    Attributes
    ----------
    sizes : tuple of int
        Of the subsets; empty for the paper's 30, 60 and 90, in proportion for cohorts of fewer than 100 subjects.
    draws : int
        Random subsets of every size.
    samples : int
        Random shapes for specificity.
    seed : int
    """

    sizes: tuple[int, ...] = ()
    draws: int = 3
    samples: int = 1000
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Draw(Recorded):
    """One subset of the cohort and its model.

    Attributes
    ----------
    subjects : (s,) int
        Their places in the experiment's ``ids``, rising.
    variance : (s - 1,) float
        Cumulative, square mm.
    share : (s - 1,) float
        The same as a share of the total.
    generalization : (s, s - 1) float
        Of every left-out subject with 0 to s - 2 components, mm.
    share_low, share_high : (s - 1,) float
        95 % confidence interval of the share, subjects drawn anew.
    specificity, specificity_half : (s - 1,) float
        Mean over the samples with 1 to s - 1 components, mm, and half its 95 % confidence interval over the samples.
    sampled : (samples,) float
        Specificity of every sample at the experiment's common number of components.
    """

    subjects: Ints
    variance: Floats
    share: Floats
    generalization: Floats
    specificity: Floats
    sampled: Floats
    share_low: Floats
    share_high: Floats
    specificity_half: Floats


@dataclass(frozen=True, eq=False)
class Amount(Recorded):
    """All draws of one size.

    Attributes
    ----------
    size : int
    draws : tuple of Draw
        One where the subset is the whole cohort.
    """

    size: int
    draws: tuple[Draw, ...]

    @property
    def name(self) -> str:
        """For tables and legends."""
        return f"{self.size} scans"

    def curve(self, figure: str) -> tuple[Ints, Floats, Floats]:
        """Numbers of components (c,), and mean and spread (standard deviation) of a figure over the draws, (c,).

        ``figure`` is "variance", "share", "generalization" or "specificity".
        """
        if figure == "generalization":
            mean, spread = over_draws([draw.generalization.mean(axis=0) for draw in self.draws])
            return np.arange(len(mean)), mean, spread
        mean, spread = over_draws([getattr(draw, figure) for draw in self.draws])
        return np.arange(1, len(mean) + 1), mean, spread

    def band(self, figure: str) -> tuple[Floats, Floats]:
        """95 % confidence interval (c,) of "share", "generalization" or "specificity", mean over the draws.

        Over subjects drawn anew; that of specificity over the samples of each model.
        """
        if figure == "generalization":
            ends = [mean_band(draw.generalization) for draw in self.draws]
        elif figure == "share":
            ends = [(draw.share_low, draw.share_high) for draw in self.draws]
        else:
            halves = [(draw.specificity, draw.specificity_half) for draw in self.draws]
            ends = [(mean - half, mean + half) for mean, half in halves]
        return over_draws([low for low, _ in ends])[0], over_draws([high for _, high in ends])[0]

    def of_subjects(self, cohort: int, components: int) -> Floats:
        """Generalization of every subject of the cohort with so many components, (cohort,).

        Mean over the draws it is in; NaN where it is in none.
        """
        return of_subjects(
            cohort, ((draw.subjects, draw.generalization[:, components]) for draw in self.draws)
        )


@dataclass(frozen=True, eq=False)
class DataAmountExperiment(CohortExperiment):
    """Models of few and of many scans.

    Attributes
    ----------
    amounts : tuple of Amount
        Rising; the last is the whole cohort.
    common : int
        Components that a left-out model of the smallest subset has: its size - 2. (The paper compares at 29, which
        30 scans give only to the model of all of them.)
    parameters : DataAmountParameters
    """

    amounts: tuple[Amount, ...]
    common: int
    parameters: DataAmountParameters


def subset_sizes(subjects: int, wanted: Sequence[int] = ()) -> tuple[int, ...]:
    """Sizes of the subsets for a cohort, without the cohort's own."""
    if not wanted and subjects >= _LARGE:
        wanted = _PAPER_SIZES
    elif not wanted and subjects < _FEWEST_OF_ALL:
        return ()
    elif not wanted:
        wanted = [round(size * subjects / _PAPER_COHORT) for size in _PAPER_SIZES]
    return tuple(sorted({size for size in wanted if _FEWEST <= size < subjects}))


def compare_amounts(cohort: Cohort, parameters: DataAmountParameters | None = None) -> DataAmountExperiment:
    """Run experiment 2.

    Parameters
    ----------
    cohort : Cohort
        One-sided subjects and copies are left out.
    parameters : DataAmountParameters, optional
    """
    p = parameters or DataAmountParameters()
    used = comparable(cohort)
    sizes = subset_sizes(len(used), p.sizes)
    if not sizes:
        reason = (
            f"{len(used)} subjects with both sides are too few to take subsets of (at least {_FEWEST_OF_ALL})"
        )
        return DataAmountExperiment(reason, used.ids, (), 0, p)
    common = sizes[0] - 2
    amounts = []
    with one_thread():
        for size in sizes:
            draws = []
            for draw in range(p.draws):
                rng = np.random.default_rng([p.seed, _STREAM, size, draw])
                chosen = np.sort(rng.choice(len(used), size, replace=False))
                draws.append(_draw(used, chosen, common, p))
            amounts.append(Amount(size, tuple(draws)))
        all_subjects = _draw(used, np.arange(len(used)), common, p)
    amounts.append(Amount(len(used), (all_subjects,)))
    return DataAmountExperiment("", used.ids, tuple(amounts), common, p)


def _draw(cohort: Cohort, chosen: Ints, common: int, p: DataAmountParameters) -> Draw:
    one = ModelledCohort.of(cohort.chosen(chosen))
    region = whole(len(one.breast))
    counts = np.arange(one.folds.most_components + 1)
    left_out = one.folds.point_distances(region, counts)[:, :, 0]
    near = specificity(one.model, one.training.shapes, region, p.samples, p.seed)["whole"]
    compact = compactness(one.model)
    at = int(counts_of([common], one.model.n_components)[0])
    drawn = resamples(len(chosen), _RESAMPLES, p.seed)
    _, low, high = drawn_shares(one.folds.gram, drawn[(drawn > 0).sum(axis=1) > 1])
    return Draw(
        chosen,
        rounded(compact.variance, 3),
        rounded(compact.share),
        rounded(left_out),
        rounded(near.mean),
        rounded(near.values[:, at - 1]),
        rounded(low),
        rounded(high),
        rounded(1.96 * near.sd / np.sqrt(len(near.values))),
    )
