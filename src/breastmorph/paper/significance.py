"""Do two sets of numbers differ: the same subjects measured twice, two sets of samples, resampled subjects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.paper.records import Recorded

SIGNED_RANKS = "Wilcoxon signed-rank over subjects"
RANK_SUM = "Mann-Whitney over samples"
BOOTSTRAP = "bootstrap over subjects"
_LEVEL = 0.05
RELEVANT = 0.05  # of the figure compared with: no reason to choose a method where the difference is smaller
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

    @property
    def p_text(self) -> str:
        """The p-value as people read it; empty without one."""
        if not np.isfinite(self.p):
            return ""
        return "p < 0.001" if self.p < 0.001 else f"p = {self.p:.{3 if self.p < 0.1 else 2}f}"

    def effect_text(self, unit: str) -> str:
        """The difference as people read it, for example ``-0.48 mm (-0.52 to -0.44), -74 %, d = -2.1``.

        Numbers keep their units, and intervals their ends, on one line. Empty where there is no interval.
        """
        if not (np.isfinite(self.difference) and np.isfinite(self.low)):
            return ""
        size = max(abs(self.difference), self.high - self.low, 1e-3)  # an interval's last digits mean nothing
        digits = int(np.clip(2 - np.floor(np.log10(size)), 0, 3))
        of_unit = f"~{unit}" if unit else ""
        words = [
            f"{self.difference:+.{digits}f}{of_unit} ({self.low:+.{digits}f}~to~{self.high:+.{digits}f})"
        ]
        if np.isfinite(self.relative):
            words.append(f"{100 * self.relative:+.{0 if abs(self.relative) >= 0.095 else 1}f}~%")
        if np.isfinite(self.standardised):
            words.append(f"d~=~{self.standardised:+.1f}")
        return ", ".join(words).replace("-", "\N{MINUS SIGN}").replace("~", "\N{NO-BREAK SPACE}")

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
