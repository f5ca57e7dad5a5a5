"""The mean and the first modes of a model, each added and taken away."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from breastmorph.evaluation.training_set import compactness
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.figures.panels import (
    RELIEF,
    SIGNED,
    WIDE,
    PanelPage,
    cameras,
    height_of,
    printed,
    round_end,
)
from breastmorph.report.render import View, colormap, render

_VIEW = View(yaw=20.0)
_LEFT, _GAP, _TOP, _FOOT, _BAR = 0.05, 0.04, 0.20, 0.26, 0.74  # inches
_MEAN = 0.30  # inches between the mean and the first mode, for the words + and - sd


def save_modes(path: Path, model: ShapeModel, modes: int = 8, deviations: float = 3.0) -> None:
    """Draw the mean at the left, then the modes: added above, taken away below, with their share of the variance.

    Colours are the movement along the mean's normal: red outwards, blue inwards, one range for all.

    Parameters
    ----------
    path : Path
        Without an ending.
    model : ShapeModel
    modes : int
        As many as the model has, at most.
    deviations : float
        How far, in standard deviations of a mode.
    """
    count = min(modes, model.n_components)
    if count < 1:
        raise BreastMorphError("the model has no components to draw", "Build it from at least two subjects")
    shapes = [[_moved(model, k, sign * deviations) for k in range(count)] for sign in (1.0, -1.0)]
    normals = vertex_normals(model.mean, model.faces)
    outwards = [[((shape - model.mean) * normals).sum(axis=1) for shape in row] for row in shapes]
    most = round_end(np.array(outwards), 0.98)
    cell = min((WIDE - _LEFT - _MEAN - _BAR) / (count + 1) - _GAP, 1.3)
    (camera,) = cameras([(_VIEW, [model.mean, *shapes[0], *shapes[1]])], cell)
    tall = height_of(camera)
    shares = 100.0 * np.diff(compactness(model).share[:count], prepend=0.0)
    width = _LEFT + _MEAN + (count + 1) * (cell + _GAP) + _BAR
    with printed(path, (width, _TOP + 2 * tall + _GAP + _FOOT), free=True) as figure:
        page = PanelPage(figure)
        middle = _TOP + (tall + _GAP) / 2
        page.picture(render(model.mean_mesh, camera=camera), camera, _LEFT, middle)
        page.scale_bar(_LEFT + 0.05, middle + tall + 0.06, camera)
        page.text(_LEFT + cell / 2, middle - 0.09, "mean", weight="bold")
        for r, sign in enumerate(("+", "\N{MINUS SIGN}")):
            top = _TOP + r * (tall + _GAP)
            page.text(_LEFT + cell + _MEAN - 0.07, top + tall / 2, f"{sign}{deviations:g} sd", rotation=90)
            for k in range(count):
                left = _LEFT + _MEAN + (k + 1) * (cell + _GAP)
                colors = colormap(outwards[r][k], -most, most, SIGNED)
                picture = render(model.mesh(shapes[r][k]), camera=camera, colors=colors, relief=RELIEF)
                page.picture(picture, camera, left, top)
                if r == 0:
                    page.text(left + cell / 2, _TOP - 0.09, f"mode {k + 1}", weight="bold")
                else:
                    page.text(left + cell / 2, top + tall + 0.12, f"{shares[k]:.1f} %")
        foot, bar = _TOP + 2 * tall + _GAP + 0.12, width - _BAR + 0.04
        page.text(_LEFT + cell / 2, foot, "variance:")
        page.text(width - 0.02, foot, f"together {shares.sum():.1f} %", ha="right")
        page.colour_bar(
            bar,
            _TOP + 0.10 * tall,
            1.75 * tall + _GAP,
            (-most, most),
            SIGNED,
            "movement outwards (mm)",
            np.array(outwards),
        )


def _moved(model: ShapeModel, mode: int, deviations: float) -> Floats:
    coefficients = np.zeros(mode + 1)
    coefficients[mode] = deviations * model.deviations[mode]
    return model.instance(coefficients)
