"""Predicted breasts beside the truth, their uncertainty and the mirror image: one row an example."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from breastmorph.clinical.predictor import Prediction
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.clinical_sheet import (
    COLORS,
    MIRRORED,
    PREDICTED,
    Example,
    example_columns,
    scale_of,
    towards,
)
from breastmorph.report.figures.panels import GREY, WIDE, PanelPage, cameras, height_of, levelled, printed
from breastmorph.report.render import render

_LEFT, _GAP, _TOP, _BELOW, _FOOT, _BAR = 0.25, 0.06, 0.24, 0.18, 0.12, 0.62  # inches
_RELIEF = 0.85


def save_prediction_pairs(path: Path, examples: Sequence[Example], upright: Floats | None = None) -> None:
    """Draw scans with the missing breast marked, the prediction, the truth, the uncertainty and the mirror image.

    Where the truth is known, the mean distance of the breast's points from the true surface stands below the
    prediction and the mirror image. The uncertainty is the standard deviation along the skin's normal.

    Parameters
    ----------
    path : Path
        Without an ending.
    examples : sequence of Example
    upright : (n, 3) float, optional
        A shape that stands upright, for example the model's mean; subjects are turned to stand as it does.
    """
    if not examples:
        raise BreastMorphError("there is nothing to draw", "Give at least one prediction")
    most = scale_of([one.prediction for one in examples])
    with_truth = all(one.truth is not None for one in examples)
    rows = [example_columns(one, most, with_truth) for one in examples]
    shapes = [levelled([shape for _, shape, _ in row], upright) for row in rows]
    cell = (WIDE - _LEFT - _BAR) / len(rows[0]) - _GAP
    seen = cameras([(towards(o.prediction), row) for o, row in zip(examples, shapes, strict=True)], cell)
    inside = sum(height_of(camera) + _BELOW for camera in seen)
    with printed(path, (WIDE, _TOP + inside + _FOOT), free=True) as figure:
        page, top = PanelPage(figure), _TOP
        for k, (title, _, _) in enumerate(rows[0]):
            page.text(_LEFT + k * (cell + _GAP) + cell / 2, _TOP - 0.11, title, weight="bold")
        for one, row, turned, camera in zip(examples, rows, shapes, seen, strict=True):
            page.text(_LEFT / 2, top + height_of(camera) / 2, one.label, rotation=90, weight="bold")
            under = top + height_of(camera) + 0.07
            for k, (title, shape, colors) in enumerate(row):
                left = _LEFT + k * (cell + _GAP)
                mesh = TriangleMesh(turned[k], one.prediction.faces)
                page.picture(render(mesh, camera=camera, colors=colors, relief=_RELIEF), camera, left, top)
                if with_truth and one.truth is not None and title in (PREDICTED, MIRRORED):
                    off = _off(shape, one.truth, one.prediction)
                    page.text(left + cell / 2, under, f"{off:.1f} mm off the truth", color=GREY)
            top += height_of(camera) + _BELOW
        page.scale_bar(_LEFT + 0.05, _TOP + inside + _FOOT / 2, seen[0])
        page.colour_bar(
            WIDE - _BAR + 0.05,
            _TOP + 0.1 * inside,
            0.8 * inside,
            (0.0, most),
            COLORS,
            "uncertainty: 1 sd (mm)",
            np.concatenate([one.prediction.sd_normal for one in examples]),
        )


def _off(shape: Floats, truth: Floats, prediction: Prediction) -> float:
    """Mean distance of a breast's points from the true surface, mm."""
    surface = Surface(TriangleMesh(truth, prediction.faces))
    return float(surface.closest(shape[prediction.region.breast]).distances.mean())
