"""Where shapes vary: the standard deviation of every vertex, drawn on the means of several models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mask import IN_BREAST, breast_mask
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.figures.panels import (
    RELIEF,
    SPREAD,
    WIDE,
    PanelPage,
    cameras,
    draw_levels,
    height_of,
    printed,
    round_end,
)
from breastmorph.report.render import View, colormap, render

_VIEWS = (View(), View(yaw=45.0))
_LEFT, _GAP, _TOP, _FOOT, _BAR = 0.05, 0.05, 0.22, 0.32, 0.68  # inches
_BETWEEN = 0.15  # inches more between two models


def save_variation_maps(path: Path, models: Mapping[str, ShapeModel]) -> None:
    """Draw every model's mean from two sides, coloured by the standard deviation of its vertices, in one range.

    Where a model has landmarks, the border of the breast (mask 0.2) is drawn too, and the variation inside and
    outside of it stands below.

    Parameters
    ----------
    path : Path
        Without an ending.
    models : mapping from label to ShapeModel
    """
    if not models:
        raise BreastMorphError("there is nothing to draw", "Give at least one model")
    spread = {label: model.vertex_deviations() for label, model in models.items()}
    deviations = np.concatenate(list(spread.values()))
    most = round_end(deviations, 0.995)
    columns = [(label, view) for label in models for view in _VIEWS]
    cell = min((WIDE - _LEFT - _BAR - _BETWEEN * (len(models) - 1)) / len(columns) - _GAP, 2.0)
    seen = cameras([(view, [models[label].mean]) for label, view in columns], cell, one_height=True)
    tall = height_of(seen[0])
    width = _LEFT + len(columns) * (cell + _GAP) + _BETWEEN * (len(models) - 1) + _BAR
    with printed(path, (width, _TOP + tall + _FOOT), free=True) as figure:
        page = PanelPage(figure)
        left = _LEFT
        for m, (label, model) in enumerate(models.items()):
            mask = _mask(model)
            colors = colormap(spread[label], 0.0, most, SPREAD)
            middle = left + cell + _GAP / 2
            page.text(middle, _TOP / 2, label, weight="bold")
            breast = np.zeros(model.n_vertices, bool) if mask is None else mask > IN_BREAST
            if breast.any() and not breast.all():
                page.text(middle, _TOP + tall + 0.22, _inside_and_outside(spread[label], breast))
            for v in range(len(_VIEWS)):
                camera = seen[m * len(_VIEWS) + v]
                picture = render(model.mean_mesh, camera=camera, colors=colors, relief=RELIEF)
                axes = page.picture(picture, camera, left, _TOP)
                if mask is not None:
                    draw_levels(axes, model.mean_mesh, camera, mask, [IN_BREAST])
                left += cell + _GAP
            left += _BETWEEN
        page.scale_bar(_LEFT + 0.05, _TOP + tall + 0.06, seen[0])
        page.colour_bar(
            width - _BAR + 0.05,
            _TOP + 0.05 * tall,
            0.9 * tall,
            (0.0, most),
            SPREAD,
            "standard deviation (mm)",
            deviations,
        )


def _mask(model: ShapeModel) -> Floats | None:
    """The breast mask of the mean, (n,); None for a model that lacks landmarks."""
    try:
        return breast_mask(model.mean_mesh, model.landmarks)
    except LandmarkProblem:
        return None


def _inside_and_outside(spread: Floats, breast: Bools) -> str:
    inside, outside = (float(np.sqrt((spread[part] ** 2).mean())) for part in (breast, ~breast))
    return f"breast {inside:.1f} mm, elsewhere {outside:.1f} mm"
