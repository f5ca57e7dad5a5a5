"""The metrics of one model over its components as a figure for print: vector files and a PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from breastmorph.evaluation.model_evaluation import Evaluation
from breastmorph.evaluation.training_set import Curve
from breastmorph.foundation.phrases import plural
from breastmorph.report.printing import COLOURS, DASHES, count_components, house_style, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
