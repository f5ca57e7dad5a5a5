"""Registrations of several kinds side by side: box plots with every subject as a point."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.report.printing import COLOURS, NARROW, printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BOXES_HEIGHT = 2.7  # inches
_BOX, _CLOUD = 0.34, 0.20  # widths, of the distance between two groups
_WORDS = 9  # letters of a label before it goes on in the next line
_BINS = 40  # along the axis: points of one bin lie side by side
_APART = 10.0  # times one median another may be; beyond, the smaller group would be a line at the axis' foot


def save_registration_boxes(
    path: Path, squared: Mapping[str, Floats], distortion: Mapping[str, Floats]
) -> None:
    """Draw mean squared distances and angle distortions of registrations, with and without masks for example.

    The box holds the middle half of the subjects and their median, the whiskers reach to the last subject within 1.5
    times its length, a white diamond is the mean. Groups that are far apart have a logarithmic axis.

    Parameters
    ----------
    path : Path
        Without an ending.
    squared : mapping from label to (k,) float
        Mean squared distance of every subject, mm squared.
    distortion : mapping from label to (k,) float
        Mean angle distortion of every subject, degrees.
    """
    with printed(path, (NARROW, _BOXES_HEIGHT)) as figure:
        panels = figure.subplots(1, 2)
        _boxes(panels[0], squared, "mean squared distance (mm²)")
        _boxes(panels[1], distortion, "angle distortion (degrees)")


def _boxes(panel: Axes, groups: Mapping[str, Floats], label: str) -> None:
    known = {name: np.asarray(values, dtype=float) for name, values in groups.items()}
    known = {name: values[np.isfinite(values)] for name, values in known.items()}
    every = np.concatenate([*known.values(), np.zeros(0)])
    if not len(every):
        raise BreastMorphError(
            "no subject has a value of the {label}", "Register at least one scan", label=label
        )
    middles = [float(np.median(values)) for values in known.values() if len(values)]
    by_powers = every.min() > 0.0 and max(middles) > _APART * min(middles)
    if by_powers:
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    height = np.log10 if by_powers else np.asarray
    step = float(np.ptp(height(every))) / _BINS or 1.0
    for k, values in enumerate(known.values()):
        colour = COLOURS[k % len(COLOURS)]
        if not len(values):
            continue
        panel.boxplot(
            [values], positions=[k - 0.18], widths=_BOX, showfliers=False, showmeans=True, patch_artist=True,
            manage_ticks=False, boxprops={"facecolor": "none", "edgecolor": colour, "linewidth": 1.2},
            whiskerprops={"color": colour}, capprops={"color": colour}, medianprops={"color": colour, "linewidth": 1.8},
            meanprops={"marker": "D", "mfc": "white", "mec": colour, "ms": 4},
        )  # fmt: skip
        panel.plot(
            k + 0.22 + side_by_side(height(values), step, _CLOUD),
            values,
            "o",
            ms=1.8,
            mew=0,
            color=colour,
            alpha=0.55,
        )
    words = [f"{fill(name, _WORDS)}\nn = {len(values)}" for name, values in known.items()]
    panel.set_xticks(range(len(known)), words)
    panel.set(xlim=(-0.55, len(known) - 0.45), ylabel=label)
    if not by_powers and every.min() < 0.35 * every.max():  # near enough to show zero
        panel.set_ylim(bottom=0.0)
    panel.grid(False, axis="x")
    panel.tick_params(axis="x", length=0, labelsize=7)


def side_by_side(values: Floats, step: float, width: float) -> Floats:
    """Sideways places (k,) for points, so that those within ``step`` do not hide each other; none beyond ``width``."""
    places = np.zeros(len(values))
    bins = np.floor(values / step).astype(np.int64)
    counts = np.bincount(bins - bins.min())
    gap = min(0.05, 2.0 * width / max(int(counts.max()) - 1, 1))
    for one in np.unique(bins):
        inside = np.flatnonzero(bins == one)
        inside = inside[np.argsort(values[inside], kind="stable")]
        rank = np.arange(len(inside))
        # From the middle outwards, by turns to the right and to the left.
        places[inside] = gap * np.where(rank % 2, (rank + 1) // 2, -(rank // 2))
    return places
