"""Figures of numbers: curves by components, intervals and distances, and box plots of registrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.report.printing import (
    COLOURS,
    DASHES,
    NARROW,
    SMALL,
    WIDE,
    count_components,
    printed,
    save_rows,
)
from breastmorph.report.render import AMOUNT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 2.75  # inches
_BAND = "95 % confidence interval"  # what a band around a line is; captions say over what
_ORDERED = (0.45, 1.0)  # part of the map for lines that have an order: its yellow is too pale for paper
_THIN = 0.9  # points: a line must not hide its own band


@dataclass(frozen=True, eq=False)
class Series:
    """One line of a figure.

    Attributes
    ----------
    label : str
        In the legend.
    components : (c,) int
    values : (c,) float
        Where NaN, the line has a gap.
    low, high : (c,) float, optional
        95 % confidence interval: the band around the line.
    """

    label: str
    components: Ints
    values: Floats
    low: Floats | None = None
    high: Floats | None = None

    def __post_init__(self) -> None:
        parts = (self.components, self.values, self.low, self.high)
        shapes = {np.shape(part) for part in parts if part is not None}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise BreastMorphError(
                "{label}: components, values and band differ in length: {shapes}",
                label=self.label,
                shapes=shapes,
            )

    def times(self, factor: float) -> Series:
        """In another unit."""
        low, high = (None if end is None else factor * end for end in (self.low, self.high))
        return replace(self, values=factor * self.values, low=low, high=high)


@dataclass(frozen=True, eq=False)
class ModelCurves:
    """The three metrics of one model.

    Attributes
    ----------
    compactness : Series
        Share of the variance, 0 to 1.
    generalization, specificity : Series
        mm.
    """

    compactness: Series
    generalization: Series
    specificity: Series


def save_model_curves(path: Path, models: Sequence[ModelCurves]) -> None:
    """Draw compactness, generalization and specificity of several models, a panel each.

    Parameters
    ----------
    path : Path
        Without an ending.
    models : sequence of ModelCurves
        Their labels are those of ``compactness``.
    """
    _three_panels(path, models, _styles(len(models)))


def save_data_amount(path: Path, models: Sequence[ModelCurves]) -> None:
    """Draw the same for models of more and more subjects, the fewest first; colours follow that order."""
    _three_panels(path, models, _ordered_styles(len(models)))


def save_operated(path: Path, series: Sequence[Series]) -> None:
    """Draw the generalization (mm) of models of operated and of other breasts, both to breasts without operation."""
    _one_panel(path, "generalization error (mm)", series, _styles(len(series)))


def save_clinical(
    path: Path, straight: Mapping[str, Series], tape: Mapping[str, Series] | None = None
) -> None:
    """Draw how well clinical distances are kept, each and on average, over the number of components.

    Parameters
    ----------
    path : Path
        Without an ending.
    straight : mapping from measure to Series
        Absolute differences of straight distances, mm; "average" is drawn thick and with its band, the others without.
    tape : mapping from measure to Series, optional
        The same of distances along the skin, drawn as open marks.
    """
    lines, marks = dict(straight), dict(tape or {})
    styles = dict(zip([name for name in lines if name != "average"], _styles(len(lines)), strict=False))
    styles["average"] = {"color": "black", "lw": 1.5 * _THIN}
    symbols = dict(zip(styles, "o^sDv", strict=False))
    shown = [one if name == "average" else replace(one, low=None, high=None) for name, one in lines.items()]
    looks = [styles[name] for name in lines]
    dots = [
        (one, {"color": styles.get(name, {}).get("color", "black"), "marker": symbols.get(name, "o")})
        for name, one in marks.items()
    ]
    _one_panel(path, "absolute difference (mm)", shown, looks, dots)


def save_series(path: Path, panels: Mapping[str, Mapping[str, Series]], unit: str = "mm") -> None:
    """Write the numbers behind a figure of lines as ``<path>.csv``: a row a point, with its band.

    Parameters
    ----------
    path : Path
        Without an ending.
    panels : mapping from what is drawn to its series by label
    unit : str
        Of all but shares.
    """
    columns = ("figure", "line", "components", "value", "low_95", "high_95", "unit")
    rows = [
        dict(zip(columns, (what, label, int(c), *_numbers(one, k), _unit(what, unit)), strict=True))
        for what, series in panels.items()
        for label, one in series.items()
        for k, c in enumerate(one.components)
    ]  # fmt: skip
    save_rows(path, columns, rows)


def _unit(what: str, unit: str) -> str:
    return "share" if what == "compactness" else unit


def _numbers(one: Series, k: int) -> list[float | None]:
    return [None if values is None else float(values[k]) for values in (one.values, one.low, one.high)]


def _one_panel(
    path: Path,
    label: str,
    series: Sequence[Series],
    styles: Sequence[dict[str, Any]],
    dots: Sequence[tuple[Series, dict[str, Any]]] = (),
) -> None:
    """A figure of one column with one panel; ``dots`` are series drawn as open marks."""
    with printed(path, (NARROW, _HEIGHT)) as figure:
        panel = figure.subplots()
        _draw(panel, series, styles)
        for one, look in dots:
            every = max(1, len(one.components) // 10)
            panel.plot(
                one.components[::every], one.values[::every], ls="", clip_on=False, mfc="white", ms=4, mew=0.8,
                label=f"{one.label}, along the skin", **look,
            )  # fmt: skip
        _finish(panel, label)
        _legend(figure, panel, series, columns=2 if dots else 1)
        _write_ends(figure, [(panel, series, styles)], gap=7.0 if dots else 4.0)  # clear of the marks


def _three_panels(path: Path, models: Sequence[ModelCurves], styles: Sequence[dict[str, Any]]) -> None:
    if not models:
        raise BreastMorphError("there is nothing to draw", "Give the curves of at least one model")
    with printed(path, (WIDE, _HEIGHT)) as figure:
        panels = figure.subplots(1, 3)
        names = ("compactness", "generalization", "specificity")
        words = ("share of the variance (%)", "generalization error (mm)", "specificity error (mm)")
        drawn: list[_Panel] = []
        for panel, name, label, letter in zip(panels, names, words, "abc", strict=True):
            series = [getattr(one, name) for one in models]
            series = [one.times(100.0) for one in series] if name == "compactness" else series
            _draw(panel, series, styles)
            _finish(panel, label)
            panel.set_title(f"{letter}  {name.capitalize()}")
            drawn.append((panel, series, styles))
        least = min(float(np.nanmin(one.values if one.low is None else one.low)) for one in drawn[0][1])
        panels[0].set_ylim(20.0 * np.floor(max(least, 0.0) / 20.0), 103.0)
        _legend(figure, panels[0], [one for _, series, _ in drawn for one in series], columns=len(models))
        _write_ends(figure, drawn[1:])


_Panel = tuple["Axes", Sequence[Series], Sequence[dict[str, Any]]]


def _draw(panel: Axes, series: Sequence[Series], styles: Sequence[dict[str, Any]]) -> None:
    for one, style in zip(series, styles, strict=True):
        order = np.argsort(one.components, kind="stable")
        x, y = one.components[order], np.asarray(one.values, dtype=float)[order]
        known = np.isfinite(y)
        label = one.label if known.any() else f"{one.label} (no values)"
        # A value between two gaps would be a line without length.
        beside = np.pad(known, 1)
        alone = known & ~beside[:-2] & ~beside[2:]
        panel.plot(x, y, label=label, **{"lw": _THIN, **style})
        panel.plot(x[alone], y[alone], "o", ms=3, color=style["color"])
        if one.low is not None and one.high is not None:
            low, high = (np.asarray(end, dtype=float)[order] for end in (one.low, one.high))
            panel.fill_between(x, np.maximum(low, 0.0), high, color=style["color"], alpha=0.3, lw=0)


def _finish(panel: Axes, label: str) -> None:
    from matplotlib.ticker import MaxNLocator

    count_components(panel)
    panel.yaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10]))
    panel.set_ylabel(label)
    panel.set_ylim(bottom=0.0)


def _write_ends(figure: Figure, panels: Sequence[_Panel], gap: float = 4.0) -> None:
    """Write every line's last value ``gap`` points beside its end, where no two of them touch and no line goes on."""
    from matplotlib.patheffects import withStroke

    wide, high = 3.1 * SMALL, 1.25 * SMALL  # points that a number takes
    for panel, _, _ in panels:
        least, most = panel.get_xlim()
        space = (wide + gap + 1.0) / (72.0 * figure.get_size_inches()[0] / max(len(panels), 1))
        panel.set_xticks([tick for tick in panel.get_xticks() if least <= tick <= most])
        panel.set_xlim(least, most + 1.25 * space * (most - least))
    figure.draw_without_rendering()  # now the panels have their place
    for panel, series, styles in panels:
        points = 72.0 / figure.dpi
        floor = panel.get_window_extent().y0 * points + 0.6 * high
        ends = _ends(series, styles)
        lines = [
            panel.transData.transform(np.column_stack([one.components, one.values])[np.isfinite(one.values)])
            * points
            for one in series
        ]
        taken: list[tuple[float, float]] = []  # left end and middle of numbers, in points
        for count in sorted({end[1] for end in ends}, reverse=True):
            some = sorted((end for end in ends if end[1] == count), key=lambda end: end[0])
            wanted = panel.transData.transform([(count, value) for value, _, _ in some]) * points
            for (value, _, color), up in zip(some, _spread(wanted[:, 1], high, floor), strict=True):
                place = _free_place(wanted[0, 0] + gap, up, taken, lines, wide, high, floor)
                taken.append(place)
                text = f"{value:.2f}" if value < 9.995 else f"{value:.1f}"
                x, y = panel.transData.inverted().transform((place[0] / points, place[1] / points))
                words = panel.text(x, y, text, va="center", ha="left", fontsize=SMALL, color=color)
                words.set_path_effects(
                    [withStroke(linewidth=2.0, foreground="white")]
                )  # where other lines go on
                words.set_in_layout(False)


def _spread(wanted: Floats, apart: float, floor: float) -> Floats:
    """Rising heights moved as little as possible so that neighbours are ``apart`` and none is below the floor."""
    groups: list[tuple[float, int]] = []  # middle and number of those that touch
    for one in wanted:
        groups.append((float(one), 1))
        while len(groups) > 1 and groups[-1][0] - groups[-2][0] < apart * (groups[-1][1] + groups[-2][1]) / 2:
            (b, m), (a, n) = groups.pop(), groups.pop()
            groups.append(((a * n + b * m) / (n + m), n + m))
    found = np.concatenate([middle + apart * (np.arange(n) - (n - 1) / 2) for middle, n in groups])
    lifted: Floats = np.maximum(found, floor + apart * np.arange(len(found)))
    return lifted


def _ends(series: Sequence[Series], styles: Sequence[dict[str, Any]]) -> list[tuple[float, float, Any]]:
    """Last value of every line that has one, its number of components and its colour."""
    ends = []
    for one, style in zip(series, styles, strict=True):
        known = np.flatnonzero(np.isfinite(one.values))
        if len(known):
            last = known[np.argmax(one.components[known])]
            ends.append((float(one.values[last]), float(one.components[last]), style["color"]))
    return ends


def _free_place(
    across: float,
    up: float,
    taken: Sequence[tuple[float, float]],
    lines: Sequence[Floats],
    wide: float,
    high: float,
    floor: float,
) -> tuple[float, float]:
    """The height nearest to ``up`` at which a number touches none that is there already, and no line (k, 2)."""
    closed = [(other - high, other + high) for left, other in taken if abs(left - across) < wide]
    for line in lines:
        x = np.linspace(across, across + wide, 9)
        met = np.interp(x, *line[np.argsort(line[:, 0])].T)[(x >= line[:, 0].min()) & (x <= line[:, 0].max())]
        if len(met):
            closed.append((float(met.min()) - 0.6 * high, float(met.max()) + 0.6 * high))
    steps = sorted({up, *(end for ends in closed for end in ends)}, key=lambda h: abs(h - up))
    free = (h for h in steps if h >= floor and not any(a + 1e-3 < h < b - 1e-3 for a, b in closed))
    return across, next(free, up)


def _legend(figure: Figure, panel: Axes, series: Sequence[Series], columns: int) -> None:
    from matplotlib.patches import Patch

    handles, labels = panel.get_legend_handles_labels()
    banded = any(one.low is not None for one in series)
    if banded:
        handles.append(Patch(color="#777777", alpha=0.3, lw=0))
        labels.append(_BAND)
    columns = columns + banded if columns > 1 else 1
    space = figure.get_size_inches()[0] * 72.0 / (0.62 * SMALL)  # letters
    fits = 1 + int(space / (max(map(len, labels)) + 8))
    if sum(len(label) + 8 for label in labels) <= space:  # in one row
        fits = len(labels)
    figure.legend(handles, labels, loc="outside lower center", ncols=min(columns, fits))


def _styles(count: int) -> list[dict[str, Any]]:
    return [{"color": COLOURS[k % len(COLOURS)], "ls": DASHES[k % len(DASHES)]} for k in range(count)]


def _ordered_styles(count: int) -> list[dict[str, Any]]:
    from matplotlib import colormaps

    tones = np.linspace(*_ORDERED, max(count, 2))[-count:]
    dashes = [DASHES[k % len(DASHES)] for k in range(count)][::-1]  # the last one, of all subjects, is solid
    return [{"color": colormaps[AMOUNT](tone), "ls": dash} for tone, dash in zip(tones, dashes, strict=True)]


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
