"""How registrations of several kinds compare: box plots with every subject as a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.evaluation.experiments.evidence import plural
from breastmorph.evaluation.model_evaluation import Evaluation
from breastmorph.evaluation.training_set import Curve
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.report.render import (
    COLOURS,
    DASHES,
    NARROW,
    WIDE,
    count_components,
    house_style,
    printed,
    save_figure,
    save_png,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --------------------------------------------------------------------------------------------------------------------
# Compactness, generalization and specificity as one figure for print: vector files and a PNG
# --------------------------------------------------------------------------------------------------------------------

_COLOURS = {"whole": COLOURS[0], "breast": COLOURS[1]}
_DASHES = {"whole": DASHES[0], "breast": DASHES[1]}
_NAMES = {"whole": "whole torso", "breast": "breast"}
_DISTANCES = {"point": "point to point (mean ± sd)", "surface": "to the closest point of the surface"}
_SCAN = COLOURS[2]
_PANEL = (2.6, 2.9)  # inches


def save_curves(evaluation: Evaluation, folder: Path) -> list[Path]:
    """Write ``curves.svg``, ``.pdf`` and ``.png``; returns the files."""
    with house_style():
        return save_figure(_figure(evaluation), folder / "curves", ("svg", "pdf", "png"), dpi=300)


def _figure(evaluation: Evaluation) -> Figure:
    """One panel a metric that is known: compactness, generalization, specificity."""
    from matplotlib.figure import Figure

    panels = 1 + bool(evaluation.generalization) + bool(evaluation.specificity)
    figure = Figure(figsize=(_PANEL[0] * panels, _PANEL[1]), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(1, panels)))
    _compactness(axes.pop(0), evaluation)
    if evaluation.generalization:
        panel = axes.pop(0)
        _curves(panel, evaluation.generalization)
        if evaluation.raw_scans is not None:
            raw = evaluation.raw_scans.to_scan
            panel.plot(
                raw.components, raw.mean, "^:", color=_SCAN, ms=3, lw=1.0, label="breast, to the raw scan"
            )
        panel.set(title="Generalization", ylabel="leave-one-out distance (mm)", ylim=(0, None))
        figure.legend(*panel.get_legend_handles_labels(), loc="outside lower right", ncols=3)
    if evaluation.specificity:
        panel = axes.pop(0)
        _curves(panel, evaluation.specificity)
        panel.set(title="Specificity", ylabel="distance to nearest subject (mm)", ylim=(0, None))
    for panel in figure.axes:
        count_components(panel)
    return figure


def _compactness(panel: Axes, evaluation: Evaluation) -> None:
    found = evaluation.compactness
    panel.plot(found.components, 100.0 * found.share, color=_COLOURS["whole"])
    needed = {share: count for share in (0.9, 0.95, 0.98) if (count := found.needed(share)) is not None}
    panel.plot(list(needed.values()), [100.0 * found.share[n - 1] for n in needed.values()], "o", ms=3.5,
               color=_COLOURS["whole"])  # fmt: skip
    lines = [f"{share:.0%} with {plural(count, 'component')}" for share, count in needed.items()]
    panel.text(0.97, 0.06, "\n".join(lines), ha="right", va="bottom", fontsize=7, transform=panel.transAxes)
    panel.set(title="Compactness", ylabel="share of the variance (%)", ylim=(0, 103))


def _curves(panel: Axes, curves: Sequence[Curve]) -> None:
    """Distances of corresponding points as lines with a band of one sd, surface distances as open marks."""
    for curve in curves:
        colour, name = _COLOURS[curve.region], f"{_NAMES[curve.region]}, {_DISTANCES[curve.distance]}"
        if curve.distance == "point":
            panel.plot(curve.components, curve.mean, color=colour, ls=_DASHES[curve.region], label=name)
            low, high = curve.mean - curve.sd, curve.mean + curve.sd
            panel.fill_between(curve.components, np.maximum(low, 0.0), high, color=colour, alpha=0.15, lw=0)
        else:
            mark = "o" if curve.region == "whole" else "s"
            panel.plot(curve.components, curve.mean, mark, color=colour, mfc="white", ms=4.5, label=name)


# --------------------------------------------------------------------------------------------------------------------
# Bland-Altman plots: how a measured quantity agrees with the truth, and whether the error depends on the size
# --------------------------------------------------------------------------------------------------------------------

_COLOUR, _LINE = COLOURS[:2]


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
    left.scatter(truth, measured, s=12, color=_COLOUR, alpha=0.7, lw=0)
    left.set(xlabel="true volume, cc", ylabel="measured volume, cc", xlim=ends, ylim=ends)
    left.set_title(f"r = {found.correlation:.3f}, mean error {found.error_percent:.1f} %", fontsize=10)
    mean, difference = (measured + truth) / 2.0, measured - truth
    right.scatter(mean, difference, s=12, color=_COLOUR, alpha=0.7, lw=0)
    right.axhline(0.0, color="0.6", lw=1)
    right.axhline(found.bias, color=_LINE, lw=1.2)
    for limit in found.limits:
        right.axhline(limit, color=_LINE, lw=1.0, ls="--")
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
    save_png(figure, path, dpi=130)
    return found


# --------------------------------------------------------------------------------------------------------------------
# Metrics over the number of components: several models side by side
# --------------------------------------------------------------------------------------------------------------------

_HEIGHT = 2.75  # inches
_TINY = 6.5  # points
_NUMBER, _APART = 0.14, 0.07  # room of a number at a line's end, as a share of the panel's width and height
_OVER_DRAWS = "1 sd over the draws"  # what a band around a line is
_ORDERED = (0.78, 0.0)  # ends of viridis for lines that have an order: its yellow is too pale for paper


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
    spread : (c,) float, optional
        Half the width of the band around the line, for example one standard deviation.
    """

    label: str
    components: Ints
    values: Floats
    spread: Floats | None = None

    def __post_init__(self) -> None:
        shapes = {np.shape(part) for part in (self.components, self.values, self.spread) if part is not None}
        if len(shapes) != 1 or len(next(iter(shapes))) != 1:
            raise BreastMorphError(f"{self.label}: components, values and spread differ in length: {shapes}")


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
    _three_panels(path, models, "1 sd over subjects or samples", _styles(len(models)))


def save_data_amount(path: Path, models: Sequence[ModelCurves]) -> None:
    """Draw the same for models of more and more subjects, the fewest first; colours follow that order."""
    _three_panels(path, models, _OVER_DRAWS, _ordered_styles(len(models)))


def save_operated(path: Path, series: Sequence[Series]) -> None:
    """Draw the generalization (mm) of models of operated and of other breasts, both to breasts without operation."""
    with printed(path, (NARROW, _HEIGHT)) as figure:
        panel = figure.subplots()
        _draw(panel, series, _styles(len(series)))
        _finish(panel, "generalization error (mm)")
        _write_ends(panel, series, _styles(len(series)))
        _legend(figure, panel, _band_note(series, _OVER_DRAWS), columns=1)


def save_clinical(
    path: Path, straight: Mapping[str, Series], tape: Mapping[str, Series] | None = None
) -> None:
    """Draw how well clinical distances are kept, each and on average, over the number of components.

    Parameters
    ----------
    path : Path
        Without an ending.
    straight : mapping from measure to Series
        Absolute differences of straight distances, mm, drawn without bands; their average is added.
    tape : mapping from measure to Series, optional
        The same of distances along the skin, drawn as open marks.
    """
    along = tape or {}
    lines = _with_average(straight)
    marks = _with_average(along) if set(along) >= set(straight) else dict(along)
    styles = dict(zip([name for name in lines if name != "average"], _styles(len(lines)), strict=False))
    styles["average"] = {"color": "black", "lw": 2.0}
    symbols = dict(zip(styles, "o^sDv", strict=False))
    with printed(path, (NARROW, _HEIGHT)) as figure:
        panel = figure.subplots()
        looks = [styles[name] for name in lines]
        _draw(panel, [replace(one, spread=None) for one in lines.values()], looks)
        for name, one in marks.items():
            look = {"color": styles.get(name, {}).get("color", "black"), "marker": symbols.get(name, "o")}
            every = max(1, len(one.components) // 10)
            panel.plot(
                one.components[::every], one.values[::every], ls="", clip_on=False, mfc="white", ms=4, mew=0.8,
                label=f"{one.label}, along the skin", **look,
            )  # fmt: skip
        _finish(panel, "absolute difference (mm)")
        _write_ends(panel, list(lines.values()), looks)
        _legend(figure, panel, "", columns=2)


def _with_average(measures: Mapping[str, Series]) -> dict[str, Series]:
    """The measures with their average over the components they share."""
    named = dict(measures)
    if len(named) < 2:
        return named
    shared = set.intersection(*(set(one.components.tolist()) for one in named.values()))
    if shared:
        counts = np.array(sorted(shared))
        rows = [one.values[[one.components.tolist().index(c) for c in counts]] for one in named.values()]
        named["average"] = Series("average", counts, np.mean(rows, axis=0))
    return named


def _three_panels(
    path: Path, models: Sequence[ModelCurves], band: str, styles: Sequence[dict[str, Any]]
) -> None:
    if not models:
        raise BreastMorphError("there is nothing to draw", "Give the curves of at least one model")
    in_percent = [
        replace(
            one.compactness,
            values=100.0 * one.compactness.values,
            spread=None if one.compactness.spread is None else 100.0 * one.compactness.spread,
        )
        for one in models
    ]
    with printed(path, (WIDE, _HEIGHT)) as figure:
        panels = figure.subplots(1, 3)
        names = ("compactness", "generalization", "specificity")
        words = ("share of the variance (%)", "generalization error (mm)", "specificity error (mm)")
        shown: list[Series] = []
        for panel, name, label, letter in zip(panels, names, words, "abc", strict=True):
            series = in_percent if name == "compactness" else [getattr(one, name) for one in models]
            _draw(panel, series, styles)
            _finish(panel, label)
            if name != "compactness":
                _write_ends(panel, series, styles)
            panel.set_title(f"{letter}  {name.capitalize()}")
            shown += series
        panels[0].set_ylim(0.0, 103.0)
        _legend(figure, panels[0], _band_note(shown, band), columns=len(models))


def _draw(panel: Axes, series: Sequence[Series], styles: Sequence[dict[str, Any]]) -> None:
    for one, style in zip(series, styles, strict=True):
        order = np.argsort(one.components, kind="stable")
        x, y = one.components[order], np.asarray(one.values, dtype=float)[order]
        known = np.isfinite(y)
        label = one.label if known.any() else f"{one.label} (no values)"
        # A value between two gaps would be a line without length.
        beside = np.pad(known, 1)
        alone = known & ~beside[:-2] & ~beside[2:]
        panel.plot(x, y, label=label, **style)
        panel.plot(x[alone], y[alone], "o", ms=3, color=style["color"])
        if one.spread is not None:
            half = np.asarray(one.spread, dtype=float)[order]
            panel.fill_between(x, np.maximum(y - half, 0.0), y + half, color=style["color"], alpha=0.15, lw=0)


def _finish(panel: Axes, label: str) -> None:
    from matplotlib.ticker import MaxNLocator

    count_components(panel)
    panel.yaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 5, 10]))
    panel.set_ylabel(label)
    panel.set_ylim(bottom=0.0)


def _write_ends(panel: Axes, series: Sequence[Series], styles: Sequence[dict[str, Any]]) -> None:
    """Write every line's last value beside its end; numbers that would touch move apart."""
    ends = []
    for one, style in zip(series, styles, strict=True):
        known = np.flatnonzero(np.isfinite(one.values))
        if len(known):
            last = known[np.argmax(one.components[known])]
            ends.append((float(one.values[last]), float(one.components[last]), style["color"]))
    least, most = panel.get_xlim()
    height, longest = panel.get_ylim()[1], max((count for _, count, _ in ends), default=0.0)
    taken: list[tuple[float, float]] = []
    for value, count, color in sorted(ends, key=lambda end: end[:2]):
        # Beside the end; above it where longer lines go on.
        above = count < longest - 0.5 * _NUMBER * (most - least)
        place = value + 0.6 * _APART * height if above else max(value, 0.5 * _APART * height)
        for other, at in taken:
            if abs(at - count) < _NUMBER * (most - least):
                place = max(place, other + _APART * height)
        taken.append((place, count))
        text = f"{value:.2f}" if value < 9.995 else f"{value:.1f}"
        panel.annotate(
            text, (count, place), (1 if above else 5, 0), textcoords="offset points", va="center",
            fontsize=_TINY, color=color, annotation_clip=False,
        )  # fmt: skip
    panel.set_xticks([tick for tick in panel.get_xticks() if least <= tick <= most])
    panel.set_xlim(least, most + _NUMBER * (most - least))


def _legend(figure: Figure, panel: Axes, note: str, columns: int) -> None:
    from matplotlib.patches import Patch

    handles, labels = panel.get_legend_handles_labels()
    if note:
        handles.append(Patch(color="#777777", alpha=0.3, lw=0))
        labels.append(note)
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns + bool(note) if columns > 1 else 1
    )


def _band_note(series: Sequence[Series], band: str) -> str:
    return band if any(one.spread is not None for one in series) else ""


def _styles(count: int) -> list[dict[str, Any]]:
    return [{"color": COLOURS[k % len(COLOURS)], "ls": DASHES[k % len(DASHES)]} for k in range(count)]


def _ordered_styles(count: int) -> list[dict[str, Any]]:
    from matplotlib import colormaps

    tones = np.linspace(*_ORDERED, max(count, 2))[-count:]
    dashes = [DASHES[k % len(DASHES)] for k in range(count)][::-1]  # the last one, of all subjects, is solid
    return [
        {"color": colormaps["viridis"](tone), "ls": dash} for tone, dash in zip(tones, dashes, strict=True)
    ]


# --------------------------------------------------------------------------------------------------------------------
# How registrations of several kinds compare: box plots with every subject as a point
# --------------------------------------------------------------------------------------------------------------------

_BOXES_HEIGHT = 2.7  # inches
_BOX, _CLOUD = 0.34, 0.20  # widths, of the distance between two groups
_WORDS = 9  # letters of a label before it goes on in the next line
_BINS = 40  # along the axis: points of one bin lie side by side


def save_registration_boxes(
    path: Path, squared: Mapping[str, Floats], distortion: Mapping[str, Floats]
) -> None:
    """Draw mean squared distances and angle distortions of registrations, with and without masks for example.

    The box holds the middle half of the subjects and their median, the whiskers reach to the last subject within 1.5
    times its length, a white diamond is the mean.

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
        raise BreastMorphError(f"no subject has a value of the {label}", "Register at least one scan")
    step = float(np.ptp(every)) / _BINS or 1.0
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
            k + 0.22 + side_by_side(values, step, _CLOUD),
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
    if every.min() < 0.35 * every.max():  # near enough to show zero
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
