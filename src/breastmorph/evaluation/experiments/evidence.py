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
    """

    first: float
    second: float
    difference: float
    low: float
    high: float
    p: float
    test: str
    n: int

    @property
    def ratio(self) -> float:
        """First over second."""
        return self.first / self.second if self.second else float("nan")

    def clear(self) -> bool:
        """Whether the two differ by more than chance: p < 0.05."""
        return bool(self.p < _LEVEL)


def paired(first: Floats, second: Floats) -> Comparison:
    """Two measurements (k,) of the same subjects, by signed ranks; unknown values are left out in pairs."""
    from scipy.stats import wilcoxon

    known = np.isfinite(first) & np.isfinite(second)
    a, b = np.asarray(first)[known], np.asarray(second)[known]
    n, nan = len(a), float("nan")
    if not n:
        return Comparison(nan, nan, nan, nan, nan, nan, SIGNED_RANKS, 0)
    difference = a - b
    half = 1.96 * float(difference.std(ddof=1)) / np.sqrt(n) if n > 1 else nan
    middle = float(difference.mean())
    p = nan
    if n >= _FEWEST:
        p = float(wilcoxon(difference).pvalue) if np.abs(difference).max() > 0.0 else 1.0
    return Comparison(
        float(a.mean()), float(b.mean()), middle, middle - half, middle + half, p, SIGNED_RANKS, n
    )


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
    half = 1.96 * float(np.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))) if n > 1 else nan
    difference = means[0] - means[1]
    p = float(mannwhitneyu(a, b).pvalue)
    return Comparison(*means, difference, difference - half, difference + half, p, RANK_SUM, n)


def resampled(first: float, second: float, differences: Floats, subjects: int) -> Comparison:
    """Two figures of a cohort, with their difference in resampled cohorts (b,)."""
    low, high = np.quantile(differences, [0.025, 0.975])
    # Twice the share on the lesser side of 0, with the usual 1 added so that no p is 0.
    side = min(int((differences <= 0).sum()), int((differences >= 0).sum()))
    p = min(1.0, 2.0 * (side + 1) / (len(differences) + 1))
    return Comparison(first, second, first - second, float(low), float(high), p, BOOTSTRAP, subjects)


def resamples(subjects: int, times: int, seed: int) -> Floats:
    """How often every subject is drawn in each resampled cohort, (times, subjects)."""
    rng = np.random.default_rng([seed, 1])
    drawn = rng.integers(subjects, size=(times, subjects))
    return np.stack([np.bincount(row, minlength=subjects) for row in drawn]).astype(np.float64)


# --------------------------------------------------------------------------------------------------------------------
# A statement of the paper beside what was measured: does it hold, by which test, and does the truth agree?
# --------------------------------------------------------------------------------------------------------------------

YES, NO, NOT_TESTABLE = "yes", "no", "not testable"
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
    holds : {"yes", "no", "not testable"}
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

    @property
    def p_text(self) -> str:
        """The p-value for a table."""
        return p_text(self.p)


def verdict(holds: bool) -> str:
    """Yes or no."""
    return YES if holds else NO


def tested(comparison: Comparison) -> dict[str, Any]:
    """The fields of a statement that a test fills."""
    return {
        "effect": comparison.difference,
        "low": comparison.low,
        "high": comparison.high,
        "p": comparison.p,
        "test": comparison.test,
        "n": comparison.n,
    }


def p_text(p: float) -> str:
    """A p-value as people read it."""
    if not np.isfinite(p):
        return ""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def plural(count: int, noun: str) -> str:
    """A number with its noun: "1 component", "2 components"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def not_testable(experiment: int, text: str, paper: str, reason: str, preset: str = "") -> Statement:
    """A statement that the data do not allow to test."""
    return Statement(experiment, preset, text, paper, f"not possible: {reason}", NOT_TESTABLE, "", test="")
