"""What experiments share: models made for them, paired comparisons, statements and their records."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.cohort.cohort import without_copies
from breastmorph.evaluation.generalization import LeaveOneOut
from breastmorph.evaluation.training_set import TrainingSet, training_set
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.model.building import build_model, usable
from breastmorph.model.shape_model import ShapeModel

# --------------------------------------------------------------------------------------------------------------------
# Results that can be written as JSON and read back: dataclasses of numbers, texts, arrays and each other
# --------------------------------------------------------------------------------------------------------------------


class Recorded:
    """A frozen dataclass with a record of plain values."""

    def record(self) -> dict[str, Any]:
        """Plain values for a JSON file; numbers that are not finite become None."""
        return {
            field.name: _written(getattr(self, field.name))
            for field in dataclasses.fields(typing.cast(Any, self))
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """The value whose record this is.

        Raises
        ------
        BreastMorphError
            The record is of something else.
        """
        kinds = typing.get_type_hints(cls)
        names = [field.name for field in dataclasses.fields(typing.cast(Any, cls))]
        try:
            return cls(**{name: _read(kinds[name], record[name]) for name in names})
        except (KeyError, TypeError, ValueError) as error:
            raise BreastMorphError(
                f"this is no record of {cls.__name__} ({error!r})", "Compute this part again"
            ) from error


def rounded(values: Any, decimals: int = 6) -> Any:
    """Numbers as records keep them: nobody measures below a nanometre, and files stay small."""
    return np.round(np.asarray(values, dtype=np.float64), decimals) + 0.0  # no negative zero


def _written(value: Any) -> Any:
    if isinstance(value, Recorded):
        return value.record()
    if isinstance(value, Mapping):
        return {str(key): _written(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_written(part) for part in value]
    return plain(value)


def _read(kind: Any, value: Any) -> Any:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        wanted = next(part for part in parts if part is not types.NoneType)
        return None if value is None else _read(wanted, value)
    if origin is np.ndarray:
        number = typing.get_args(parts[1])[0]
        return np.array(value, dtype=np.float64 if number is np.float64 else number)  # None becomes NaN
    if origin is tuple:
        return tuple(_read(parts[0], part) for part in value)
    if origin is not None and issubclass(origin, Mapping):
        return {str(key): _read(parts[1], part) for key, part in value.items()}
    if isinstance(kind, type) and issubclass(kind, Recorded):
        return kind.from_record(value)
    if kind is float:
        return float("nan") if value is None else float(value)
    return value if origin is not None or not isinstance(kind, type) else kind(value)


# --------------------------------------------------------------------------------------------------------------------
# A cohort with its model and its aligned shapes: what every experiment starts from
# --------------------------------------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------------------------------------
# Tests behind the statements: two measurements of the same subjects, two sets of samples, resampled subjects
# --------------------------------------------------------------------------------------------------------------------

SIGNED_RANKS = "Wilcoxon signed-rank over subjects"
RANK_SUM = "Mann-Whitney over samples"
BOOTSTRAP = "bootstrap over subjects"
_LEVEL = 0.05
RELEVANT = 0.05  # of the figure compared with: nobody would choose a method for a smaller difference
_TIMES, _TAILS = 2000, (2.5, 97.5)  # drawings of subjects behind an interval, and where it ends, percent
_FEWEST = 6  # pairs: with fewer no signed-rank test can reach 0.05


@dataclass(frozen=True)
class Comparison(Recorded):
    """Two sets of numbers, and whether they differ.

    Attributes
    ----------
    first, second : float
        Means (of a bootstrap: the figures themselves).
    difference : float
        First minus second: its mean.
    low, high : float
        95 % interval of the difference; NaN where none is computed.
    p : float
        Two-sided; NaN where too few numbers are known.
    test : str
    n : int
        Subjects, or samples of the smaller set.
    standardised : float
        The difference in standard deviations: of the differences for pairs, of one number for two sets (Cohen's d);
        NaN where there is none.
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    p: float
    test: str
    n: int
    standardised: float = float("nan")

    @property
    def ratio(self) -> float:
        """First over second."""
        return self.first / self.second if self.second else float("nan")

    @property
    def relative(self) -> float:
        """The difference as a share of the second."""
        return self.difference / abs(self.second) if self.second else float("nan")

    def clear(self) -> bool:
        """Whether the two differ by more than chance: p < 0.05."""
        return bool(self.p < _LEVEL)

    def matters(self) -> bool:
        """Whether they differ by more than chance and by enough to matter: 5 % of the second."""
        return self.clear() and bool(abs(self.difference) >= RELEVANT * abs(self.second))

    def effect_text(self, unit: str) -> str:
        """The difference as people read it, see :func:`effect_text`."""
        return effect_text(self.difference, self.low, self.high, unit, self.relative, self.standardised)

    @property
    def verdict(self) -> str:
        """In words that follow the effect, not p alone."""
        if self.matters():
            return "differ"
        return "too small to matter" if self.clear() else "no difference shown"


def paired(first: Floats, second: Floats) -> Comparison:
    """Two measurements (k,) of the same subjects, by signed ranks; unknown values are left out in pairs."""
    from scipy.stats import t, wilcoxon

    known = np.isfinite(first) & np.isfinite(second)
    a, b = np.asarray(first)[known], np.asarray(second)[known]
    n, nan = len(a), float("nan")
    if not n:
        return Comparison(nan, nan, nan, nan, nan, nan, SIGNED_RANKS, 0)
    difference = a - b
    deviation = float(difference.std(ddof=1)) if n > 1 else nan
    half = float(t.ppf(0.975, n - 1)) * deviation / np.sqrt(n) if n > 1 else nan
    middle = float(difference.mean())
    p = nan
    if n >= _FEWEST:
        p = float(wilcoxon(difference).pvalue) if np.abs(difference).max() > 0.0 else 1.0
    means, size = (float(a.mean()), float(b.mean())), _in_deviations(middle, deviation)
    return Comparison(*means, middle, middle - half, middle + half, p, SIGNED_RANKS, n, size)


def smallest_p(subjects: int) -> float:
    """The smallest two-sided p-value that a signed-rank test over so many subjects can give."""
    return float(min(1.0, 2.0 ** (1 - subjects)))


def unpaired(first: Floats, second: Floats) -> Comparison:
    """Two sets of samples (a,) and (b,), by ranks."""
    from scipy.stats import mannwhitneyu

    a, b = first[np.isfinite(first)], second[np.isfinite(second)]
    nan = float("nan")
    if not len(a) or not len(b):
        return Comparison(nan, nan, nan, nan, nan, nan, RANK_SUM, 0)
    means = float(a.mean()), float(b.mean())
    n = min(len(a), len(b))
    both = [float(one.var(ddof=1)) for one in (a, b)] if n > 1 else [nan, nan]
    half = 1.96 * float(np.sqrt(both[0] / len(a) + both[1] / len(b)))
    difference = means[0] - means[1]
    p = float(mannwhitneyu(a, b).pvalue)
    size = _in_deviations(difference, float(np.sqrt(np.mean(both))))
    return Comparison(*means, difference, difference - half, difference + half, p, RANK_SUM, n, size)


def _in_deviations(difference: float, deviation: float) -> float:
    return difference / deviation if deviation > 0.0 else float("nan")


def resampled(first: float, second: float, differences: Floats, subjects: int) -> Comparison:
    """Two figures of a cohort, with their difference in resampled cohorts (b,)."""
    low, high = np.quantile(differences, [0.025, 0.975])
    # Twice the share on the lesser side of 0, with the usual 1 added so that no p is 0.
    side = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    p = min(1.0, 2.0 * (side + 1) / (len(differences) + 1))
    return Comparison(first, second, first - second, float(low), float(high), p, BOOTSTRAP, subjects)


def mean_band(values: Floats, seed: int = 0) -> tuple[Floats, Floats]:
    """95 % confidence interval of the mean over subjects of (k, c) values, (c,) each: subjects drawn anew many times.

    Unknown values are left out; NaN where fewer than two subjects are known.
    """
    drawn = resamples(len(values), _TIMES, seed)
    known = np.isfinite(values)
    counts = drawn @ known
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (drawn @ np.where(known, values, 0.0)) / counts
    low, high = np.full((2, values.shape[1]), np.nan)
    enough = known.sum(axis=0) >= 2
    found = np.where(counts > 0, means, np.nan)[:, enough]
    low[enough], high[enough] = np.nanpercentile(found, _TAILS, axis=0)
    return low, high


def drawn_shares(gram: Floats, drawn: Floats) -> tuple[Floats, Floats, Floats]:
    """Compactness of cohorts drawn anew, and its 95 % confidence interval.

    Parameters
    ----------
    gram : (k, k) float
        Inner products of the centred shapes.
    drawn : (b, k) float
        How often each subject is in every cohort.

    Returns
    -------
    shares : (b, k - 1) float
        Of the variance in 1 to k - 1 components. Subjects drawn twice make them a little too large.
    low, high : (k - 1,) float
        About the share of the cohort itself: only how the shares spread is taken from the drawn ones.
    """
    shares = np.array([_shares(gram, counts) for counts in drawn])
    ends = np.percentile(shares, _TAILS, axis=0) - shares.mean(axis=0)
    ends = np.stack([np.minimum(ends[0], 0.0), np.maximum(ends[1], 0.0)])
    low, high = np.clip(_shares(gram, np.ones(len(gram))) + ends, 0.0, 1.0)
    return shares, low, high


def _shares(gram: Floats, counts: Floats) -> Floats:
    """Share of the variance in 1 to k - 1 components where every subject is drawn so many times (k,)."""
    # A subject drawn w times is one row scaled by sqrt(w): the same eigenvalues from a smaller matrix.
    there = np.flatnonzero(counts)
    weights = counts[there]
    part = gram[np.ix_(there, there)]
    row = part @ weights / weights.sum()
    centred = part - row - row[:, None] + weights @ row / weights.sum()
    root = np.sqrt(weights)
    values = np.maximum(np.linalg.eigvalsh(root * centred * root[:, None])[::-1], 0.0)
    total = values.sum()
    held: Floats = np.cumsum(values)[np.minimum(np.arange(1, len(counts)), len(values)) - 1]
    return held / total if total > 0.0 else np.ones(len(held))


def resamples(subjects: int, times: int, seed: int) -> Floats:
    """How often every subject is drawn in each resampled cohort, (times, subjects)."""
    rng = np.random.default_rng([seed, 1])
    drawn = rng.integers(subjects, size=(times, subjects))
    return np.stack([np.bincount(row, minlength=subjects) for row in drawn]).astype(np.float64)


# --------------------------------------------------------------------------------------------------------------------
# A statement of the paper beside what was measured: does it hold, by which test, and does the truth agree?
# --------------------------------------------------------------------------------------------------------------------

YES, NO, SMALL, NOT_TESTABLE = "yes", "no", "too small", "not testable"
AGREES, CONTRADICTS, MIXED = "agrees", "contradicts", "mixed"
INDIFFERENT, NO_PREFERENCE, NO_TRUTH = "no difference", "no preference", "not known"
FEW_SUBJECTS = 20  # below it a cohort is too small for conclusions
NO_TEST = "one figure, no test"


@dataclass(frozen=True)
class Statement(Recorded):
    """One statement.

    Attributes
    ----------
    experiment : int
        1 to 4.
    preset : str
        Of the registration; empty where it does not matter.
    text : str
        What is claimed.
    paper : str
        The paper's words or numbers for it.
    measured : str
        Ours.
    holds : {"yes", "no", "too small", "not testable"}
        "too small": so it is, by more than chance, but the difference is too small to matter.
    criterion : str
        What counts as yes.
    effect : float
        Size of what the claim is about, in ``unit``; NaN where there is none.
    unit : str
    low, high : float
        95 % interval of the effect; NaN where none is computed.
    p : float
        Two-sided; NaN without a test.
    test : str
    n : int
        Subjects or samples behind the test.
    relative, standardised : float
        The effect as a share of the figure compared with, and in standard deviations; NaN where there is none.
    by_truth : {"agrees", "contradicts", "mixed", "no difference", "no preference", "not known", ""}
        Whether the variant that this measure prefers is also the better one by truth. "contradicts" means that the
        measure rewards what is wrong; "mixed", better by one figure of truth and worse by another; "no difference",
        truth sees none; "no preference", the measure itself sees none. Empty where the question does not arise.
    truth : str
        The figures behind ``by_truth``, or why there are none.
    """

    experiment: int
    preset: str
    text: str
    paper: str
    measured: str
    holds: str
    criterion: str
    effect: float = float("nan")
    unit: str = "mm"
    low: float = float("nan")
    high: float = float("nan")
    p: float = float("nan")
    test: str = NO_TEST
    n: int = 0
    by_truth: str = ""
    truth: str = ""
    relative: float = float("nan")
    standardised: float = float("nan")

    @property
    def p_text(self) -> str:
        """The p-value for a table."""
        return p_text(self.p)

    @property
    def effect_text(self) -> str:
        """The effect with its interval, as a share of what it is compared with, and in standard deviations."""
        return effect_text(self.effect, self.low, self.high, self.unit, self.relative, self.standardised)


def verdict(holds: bool) -> str:
    """Yes or no."""
    return YES if holds else NO


def verdict_of(comparison: Comparison, sign: int, also: bool = True) -> str:
    """Whether the first is larger (``sign`` 1) or smaller (-1), by more than chance and by enough to matter."""
    if not (comparison.clear() and sign * comparison.difference > 0 and also):
        return NO
    return YES if comparison.matters() else SMALL


def tested(comparison: Comparison) -> dict[str, Any]:
    """The fields of a statement that a test fills."""
    return {
        "effect": comparison.difference,
        "low": comparison.low,
        "high": comparison.high,
        "p": comparison.p,
        "test": comparison.test,
        "n": comparison.n,
        "relative": comparison.relative,
        "standardised": comparison.standardised,
    }


def effect_text(
    effect: float, low: float, high: float, unit: str, relative: float, standardised: float
) -> str:
    """An effect as people read it, for example ``-0.48 mm (-0.52 to -0.44), -74 %, d = -2.1``; empty without one.

    Numbers keep their units, and intervals their ends, on one line.
    """
    if not (np.isfinite(effect) and np.isfinite(low)):
        return ""
    size = max(abs(effect), high - low, 1e-3)  # an interval's last digits mean nothing
    digits = int(np.clip(2 - np.floor(np.log10(size)), 0, 3))
    of_unit = f"~{unit}" if unit else ""
    words = [f"{effect:+.{digits}f}{of_unit} ({low:+.{digits}f}~to~{high:+.{digits}f})"]
    words += [f"{100 * relative:+.{0 if abs(relative) >= 0.095 else 1}f}~%"] if np.isfinite(relative) else []
    words += [f"d~=~{standardised:+.1f}"] if np.isfinite(standardised) else []
    return ", ".join(words).replace("-", "\N{MINUS SIGN}").replace("~", "\N{NO-BREAK SPACE}")


def p_text(p: float) -> str:
    """A p-value as people read it."""
    if not np.isfinite(p):
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def not_testable(experiment: int, text: str, paper: str, reason: str, preset: str = "") -> Statement:
    """A statement that the data do not allow to test."""
    return Statement(experiment, preset, text, paper, f"not possible: {reason}", NOT_TESTABLE, "", test="")
