"""Figures of the two applications: edited breasts, and predicted ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from breastmorph.clinical.distances import DISTANCES, PAPER
from breastmorph.clinical.prediction import Prediction
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.paper.figures.panels import PanelPage, cameras, height_of, levelled
from breastmorph.paper.figures.torsos import Margins
from breastmorph.report.prediction_sheet import (
    MIRRORED,
    PREDICTED,
    Example,
    example_columns,
    scale_of,
    towards,
)
from breastmorph.report.printing import COLOURS, GREY, WIDE, printed
from breastmorph.report.render import AMOUNT, Camera, View, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENDS = {name: DISTANCES[name].landmarks for name in PAPER}
_EDITS_VIEW = View()
_EDITS = Margins(left=0.78, gap=0.05, top=0.22, line=0.13, between=0.08, foot=0.14)
_STRONG = COLOURS[1]


@dataclass(frozen=True, eq=False)
class EditedShape:
    """One edited version.

    Attributes
    ----------
    title : str
        Above the column.
    shape : (n, 3) float or None
        None where the edit was not possible; its place stays empty.
    changed : tuple of str
        Which of "SN-NL", "SN-NR" and "NL-NR" were asked for.
    """

    title: str
    shape: Floats | None
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class EditedSubject:
    """One row of the figure.

    Attributes
    ----------
    label : str
    before : (n, 3) float
        Upright, mm.
    edited : sequence of EditedShape
        As many for every subject.
    """

    label: str
    before: Floats
    edited: Sequence[EditedShape]


def save_editing_grid(
    path: Path,
    subjects: Sequence[EditedSubject],
    faces: Ints,
    landmark_ids: Mapping[str, int],
    upright: Floats | None = None,
) -> None:
    """Draw every subject as it is and as it was edited, with the three distances; those asked for stand out.

    Parameters
    ----------
    path : Path
        Without an ending.
    subjects : sequence of EditedSubject
    faces : (m, 3) int
    landmark_ids : mapping from landmark to vertex
        With sternal_notch, nipple_left and nipple_right.
    upright : (n, 3) float, optional
        A shape that stands upright, for example the model's mean; subjects are turned to stand as it does.
    """
    if not subjects or len({len(one.edited) for one in subjects}) != 1:
        raise BreastMorphError(
            "subjects have no or different numbers of edits", "Edit all of them in the same way"
        )
    missing = sorted({end for ends in _ENDS.values() for end in ends} - set(landmark_ids))
    if missing:
        raise LandmarkProblem(
            "the model lacks {names:landmark}",
            "Give the vertices of these landmarks (landmark_ids)",
            code="unusable-landmarks/model-lacks",
            names=missing,
        )
    rows = [_row(subject, upright) for subject in subjects]
    cell = min((WIDE - _EDITS.left) / len(rows[0]) - _EDITS.gap, 1.8)
    groups = [[version.shape for version in row if version.shape is not None] for row in rows]
    seen = cameras([(_EDITS_VIEW, shapes) for shapes in groups], cell)
    below = _EDITS.line * (len(_ENDS) + 0.5) + _EDITS.between
    width = _EDITS.left + len(rows[0]) * (cell + _EDITS.gap)
    height = _EDITS.top + sum(height_of(camera) + below for camera in seen) + _EDITS.foot
    with printed(path, (width, height), free=True) as figure:
        page, top = PanelPage(figure), _EDITS.top
        for k, version in enumerate(rows[0]):
            page.text(
                _EDITS.left + k * (cell + _EDITS.gap) + cell / 2,
                _EDITS.top - 0.11,
                version.title,
                weight="bold",
            )
        for subject, row, camera in zip(subjects, rows, seen, strict=True):
            under = top + height_of(camera)
            page.text(0.10, (top + under) / 2, subject.label, rotation=90, weight="bold")
            for n, name in enumerate(_ENDS, 1):
                page.text(_EDITS.left - 0.02, under + n * _EDITS.line, f"{name} (cm)", ha="right")
            for k, version in enumerate(row):
                left = _EDITS.left + k * (cell + _EDITS.gap)
                if version.shape is None:
                    page.text(left + cell / 2, (top + under) / 2, "not attainable", color=GREY)
                    continue
                picture = render(TriangleMesh(version.shape, faces), camera=camera)
                axes = page.picture(picture, camera, left, top)
                lengths = _draw_distances(axes, camera, version.shape, version.changed, landmark_ids)
                for n, (name, length) in enumerate(lengths.items(), 1):
                    strong = name in version.changed
                    style = {"weight": "bold", "color": _STRONG} if strong else {}
                    page.text(left + cell / 2, under + n * _EDITS.line, f"{length / 10.0:.1f}", **style)
            top = under + below
        page.scale_bar(_EDITS.left + 0.05, height - _EDITS.foot / 2, seen[0])


def _row(subject: EditedSubject, upright: Floats | None) -> list[EditedShape]:
    versions = [EditedShape("original", subject.before), *subject.edited]
    turned = iter(levelled([one.shape for one in versions if one.shape is not None], upright))
    return [one if one.shape is None else replace(one, shape=next(turned)) for one in versions]


def _draw_distances(
    axes: Axes, camera: Camera, shape: Floats, changed: Sequence[str], landmark_ids: Mapping[str, int]
) -> dict[str, float]:
    """Draw the three distances over a picture; returns their lengths in mm."""
    lengths = {}
    for name, ends in _ENDS.items():
        points = shape[[landmark_ids[end] for end in ends]]
        lengths[name] = float(np.linalg.norm(points[0] - points[1]))
        places, strong = camera.project(points), name in changed
        axes.plot(
            places[:, 0], places[:, 1], "-o", ms=2, lw=1.4 if strong else 0.6,
            color=_STRONG if strong else "#333333", zorder=3 if strong else 2,
        )  # fmt: skip
    axes.set(xlim=(0, camera.size[0]), ylim=(camera.size[1], 0))
    return lengths


_PAIRS = Margins(left=0.25, gap=0.06, top=0.24, below=0.18, foot=0.12, bar=0.62)
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
    cell = (WIDE - _PAIRS.left - _PAIRS.bar) / len(rows[0]) - _PAIRS.gap
    seen = cameras([(towards(o.prediction), row) for o, row in zip(examples, shapes, strict=True)], cell)
    inside = sum(height_of(camera) + _PAIRS.below for camera in seen)
    with printed(path, (WIDE, _PAIRS.top + inside + _PAIRS.foot), free=True) as figure:
        page, top = PanelPage(figure), _PAIRS.top
        for k, (title, _, _) in enumerate(rows[0]):
            page.text(
                _PAIRS.left + k * (cell + _PAIRS.gap) + cell / 2, _PAIRS.top - 0.11, title, weight="bold"
            )
        for one, row, turned, camera in zip(examples, rows, shapes, seen, strict=True):
            page.text(_PAIRS.left / 2, top + height_of(camera) / 2, one.label, rotation=90, weight="bold")
            under = top + height_of(camera) + 0.07
            for k, (title, shape, colors) in enumerate(row):
                left = _PAIRS.left + k * (cell + _PAIRS.gap)
                mesh = TriangleMesh(turned[k], one.prediction.faces)
                page.picture(render(mesh, camera=camera, colors=colors, relief=_RELIEF), camera, left, top)
                if with_truth and one.truth is not None and title in (PREDICTED, MIRRORED):
                    off = _off(shape, one.truth, one.prediction)
                    page.text(left + cell / 2, under, f"{off:.1f} mm off the truth", color=GREY)
            top += height_of(camera) + _PAIRS.below
        page.scale_bar(_PAIRS.left + 0.05, _PAIRS.top + inside + _PAIRS.foot / 2, seen[0])
        page.colour_bar(
            WIDE - _PAIRS.bar + 0.05,
            _PAIRS.top + 0.1 * inside,
            0.8 * inside,
            (0.0, most),
            AMOUNT,
            "uncertainty: 1 sd (mm)",
            np.concatenate([one.prediction.sd_normal for one in examples]),
        )


def _off(shape: Floats, truth: Floats, prediction: Prediction) -> float:
    """Mean distance of a breast's points from the true surface, mm."""
    surface = Surface(TriangleMesh(truth, prediction.faces))
    return float(surface.closest(shape[prediction.region.breast]).distances.mean())
