"""Tests behind the statements: two measurements of the same subjects, two sets of samples, resampled subjects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.evaluation.experiments.recorded import Recorded
from breastmorph.mesh.triangle_mesh import Floats

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
