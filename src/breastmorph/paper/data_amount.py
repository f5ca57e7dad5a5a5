"""How a model's worth grows with the number and kind of its subjects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.evaluation.generalization import LeaveOneOut
from breastmorph.evaluation.specificity import specificity
from breastmorph.evaluation.training_set import compactness, counts_of, whole
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.machine import one_thread
from breastmorph.model.building import as_number
from breastmorph.paper.modelled_cohort import CohortExperiment, ModelledCohort, comparable
from breastmorph.paper.records import Recorded, rounded
from breastmorph.paper.significance import drawn_shares, mean_band, resamples

# --------------------------------------------------------------------------------------------------------------------
# Figures over repeated random draws of subjects
# --------------------------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------------------------
# Experiment 2: how many scans a model needs. Random subsets, each with a model and a leave-one-out of its own
# --------------------------------------------------------------------------------------------------------------------

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
        everybody = _draw(used, np.arange(len(used)), common, p)
    amounts.append(Amount(len(used), (everybody,)))
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


# --------------------------------------------------------------------------------------------------------------------
# Experiment 3: does a model of operated breasts explain breasts that were never operated on?
# --------------------------------------------------------------------------------------------------------------------

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
    """Run experiment 3; what a cohort does not allow is said in the result.

    Parameters
    ----------
    cohort : Cohort
        With a table that has the column ``operated``; one-sided subjects and copies are left out.
    parameters : OperatedParameters, optional
    """
    p = parameters or OperatedParameters()
    used = comparable(cohort)
    said = np.array([as_number(row.get(p.column) or "") for row in used.table])
    operated, others = np.flatnonzero(said == 1), np.flatnonzero(said == 0)
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
            f"(at least {_FEWEST} and {_FEWEST + 1})"
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
