"""Metrics over the number of components: several models side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.errors import BreastMorphError
from breastmorph.mesh.triangle_mesh import Floats, Ints
from breastmorph.report.figures.printing import COLOURS, DASHES, NARROW, WIDE, count_components, printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
