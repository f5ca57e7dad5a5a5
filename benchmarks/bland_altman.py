"""Bland-Altman plots: how a measured quantity agrees with the truth, and whether the error depends on the size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.report.printing import COLOURS, save_figure


@dataclass(frozen=True)
class Agreement:
    """Agreement of measured values with the truth.

    Attributes
    ----------
    correlation : float
    error_percent : float
        Mean absolute error, in percent of each true value.
    bias, deviation : float
        Mean and standard deviation of measured minus true.
    slope, slope_error : float
        Of the difference against the mean of both, with its standard error: 0 when the bias does not depend on size.
    """

    correlation: float
    error_percent: float
    bias: float
    deviation: float
    slope: float
    slope_error: float

    @property
    def limits(self) -> tuple[float, float]:
        """Limits of agreement: 95 % of the differences lie between them."""
        return self.bias - 1.96 * self.deviation, self.bias + 1.96 * self.deviation

    @property
    def size_dependent(self) -> bool:
        """Whether the slope differs from 0 by more than chance allows (95 %)."""
        return abs(self.slope) > 1.96 * self.slope_error


def agreement(measured: Floats, truth: Floats) -> Agreement:
    """Compare measured values with the truth, both (k,)."""
    from scipy.stats import linregress

    difference = measured - truth
    line = linregress((measured + truth) / 2.0, difference)
    return Agreement(
        float(np.corrcoef(measured, truth)[0, 1]),
        float(100.0 * np.mean(np.abs(difference) / truth)),
        float(difference.mean()),
        float(difference.std(ddof=1)),
        float(line.slope),
        float(line.stderr),
    )


def save_bland_altman(measured: Floats, truth: Floats, path: Path) -> Agreement:
    """Write the plot of volumes (k,), cc, as PNG, beside one of measured against true; returns its figures."""
    from matplotlib.figure import Figure

    found = agreement(measured, truth)
    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    ends = np.array([0.0, 1.05 * max(measured.max(), truth.max())])
    left.plot(ends, ends, color="0.6", lw=1)
    left.scatter(truth, measured, s=12, color=COLOURS[0], alpha=0.7, lw=0)
    left.set(xlabel="true volume, cc", ylabel="measured volume, cc", xlim=ends, ylim=ends)
    left.set_title(f"r = {found.correlation:.3f}, mean error {found.error_percent:.1f} %", fontsize=10)
    mean, difference = (measured + truth) / 2.0, measured - truth
    right.scatter(mean, difference, s=12, color=COLOURS[0], alpha=0.7, lw=0)
    right.axhline(0.0, color="0.6", lw=1)
    right.axhline(found.bias, color=COLOURS[1], lw=1.2)
    for limit in found.limits:
        right.axhline(limit, color=COLOURS[1], lw=1.0, ls="--")
    right.plot(ends, found.bias + found.slope * (ends - mean.mean()), color="black", lw=1.0, ls=":")
    reach = 1.3 * max(np.abs(difference).max(), *np.abs(found.limits))
    right.set(
        xlabel="mean of measured and true volume, cc",
        ylabel="measured minus true, cc",
        xlim=ends,
        ylim=(-reach, reach),
    )
    right.set_title(
        f"bias {found.bias:+.0f} cc, limits {found.limits[0]:+.0f} to {found.limits[1]:+.0f}, "
        f"slope {found.slope:+.3f} $\\pm$ {found.slope_error:.3f}",
        fontsize=10,
    )
    save_figure(figure, path.with_suffix(""), ("png",), dpi=130)
    return found
