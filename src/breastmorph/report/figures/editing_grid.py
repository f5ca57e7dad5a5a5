"""Edited breasts beside the original: one row a subject, the edited distances drawn and written in cm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from breastmorph.clinical.distances import DISTANCES, PAPER
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.figures.panels import (
    COLOURS,
    GREY,
    WIDE,
    PanelPage,
    cameras,
    height_of,
    levelled,
    printed,
)
from breastmorph.report.render import Camera, View, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENDS = {name: DISTANCES[name].landmarks for name in PAPER}
_VIEW = View()
_LEFT, _GAP, _TOP, _LINE, _BETWEEN, _FOOT = 0.78, 0.05, 0.22, 0.13, 0.08, 0.14  # inches
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
        raise LandmarkProblem.of("unusable-landmarks/model-lacks", names=missing)
    rows = [_row(subject, upright) for subject in subjects]
    cell = min((WIDE - _LEFT) / len(rows[0]) - _GAP, 1.8)
    groups = [[version.shape for version in row if version.shape is not None] for row in rows]
    seen = cameras([(_VIEW, shapes) for shapes in groups], cell)
    below = _LINE * (len(_ENDS) + 0.5) + _BETWEEN
    width = _LEFT + len(rows[0]) * (cell + _GAP)
    height = _TOP + sum(height_of(camera) + below for camera in seen) + _FOOT
    with printed(path, (width, height), free=True) as figure:
        page, top = PanelPage(figure), _TOP
        for k, version in enumerate(rows[0]):
            page.text(_LEFT + k * (cell + _GAP) + cell / 2, _TOP - 0.11, version.title, weight="bold")
        for subject, row, camera in zip(subjects, rows, seen, strict=True):
            under = top + height_of(camera)
            page.text(0.10, (top + under) / 2, subject.label, rotation=90, weight="bold")
            for n, name in enumerate(_ENDS, 1):
                page.text(_LEFT - 0.02, under + n * _LINE, f"{name} (cm)", ha="right")
            for k, version in enumerate(row):
                left = _LEFT + k * (cell + _GAP)
                if version.shape is None:
                    page.text(left + cell / 2, (top + under) / 2, "not attainable", color=GREY)
                    continue
                picture = render(TriangleMesh(version.shape, faces), camera=camera)
                axes = page.picture(picture, camera, left, top)
                lengths = _draw_distances(axes, camera, version.shape, version.changed, landmark_ids)
                for n, (name, length) in enumerate(lengths.items(), 1):
                    strong = name in version.changed
                    style = {"weight": "bold", "color": _STRONG} if strong else {}
                    page.text(left + cell / 2, under + n * _LINE, f"{length / 10.0:.1f}", **style)
            top = under + below
        page.scale_bar(_LEFT + 0.05, height - _FOOT / 2, seen[0])


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
