"""Random shapes of several models, coloured by their distance from the mean."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.figures.panels import (
    RELIEF,
    SPREAD,
    WIDE,
    PanelPage,
    cameras,
    height_of,
    printed,
    round_end,
)
from breastmorph.report.render import View, colormap, render

_VIEW = View(yaw=15.0)
_LEFT, _GAP, _TOP, _FOOT, _BAR = 0.25, 0.05, 0.05, 0.16, 0.68  # inches


def save_random_samples(path: Path, models: Mapping[str, ShapeModel], count: int = 5, seed: int = 0) -> None:
    """Draw one row of random shapes for every model; all rows share colours, scale and random numbers.

    Parameters
    ----------
    path : Path
        Without an ending.
    models : mapping from label to ShapeModel
    count : int
        Shapes of each.
    seed : int
    """
    if not models or count < 1:
        raise BreastMorphError("there is nothing to draw", "Give at least one model and one shape of each")
    rows = {}
    for label, model in models.items():
        rng = np.random.default_rng(seed)
        rows[label] = [model.drawn(rng) for _ in range(count)]
    away = {
        label: [np.linalg.norm(shape - models[label].mean, axis=1) for shape in shapes]
        for label, shapes in rows.items()
    }
    distances = np.concatenate([one for row in away.values() for one in row])
    # One shape far from the mean must not make all others pale: the typical ones fill the range.
    ends = [np.quantile(one, 0.95) for row in away.values() for one in row]
    most = round_end(np.quantile(ends, [0.75]))
    cell = min((WIDE - _LEFT - _BAR) / count - _GAP, 2.0)
    seen = cameras([(_VIEW, shapes) for shapes in rows.values()], cell)
    width = _LEFT + count * (cell + _GAP) + _BAR
    inside = sum(height_of(camera) + _GAP for camera in seen) - _GAP
    with printed(path, (width, _TOP + inside + _FOOT), free=True) as figure:
        page, top = PanelPage(figure), _TOP
        for (label, shapes), camera in zip(rows.items(), seen, strict=True):
            page.text(_LEFT / 2, top + height_of(camera) / 2, label, rotation=90, weight="bold")
            for k, shape in enumerate(shapes):
                colors = colormap(away[label][k], 0.0, most, SPREAD)
                mesh = models[label].mesh(shape)
                picture = render(mesh, camera=camera, colors=colors, relief=RELIEF)
                page.picture(picture, camera, _LEFT + k * (cell + _GAP), top)
            top += height_of(camera) + _GAP
        page.scale_bar(_LEFT + 0.05, _TOP + inside + 0.06, seen[0])
        page.colour_bar(
            width - _BAR + 0.05,
            _TOP + 0.1 * inside,
            0.8 * inside,
            (0.0, most),
            SPREAD,
            "distance from the mean (mm)",
            distances,
        )
