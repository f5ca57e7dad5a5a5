"""Figures of torsos: masks, modes and variation of models, random samples, edits and predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from breastmorph.clinical.distances import DISTANCES, PAPER
from breastmorph.clinical.predictor import Prediction
from breastmorph.evaluation.training_set import compactness
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mask import IN_BREAST, BreastEllipsoids, BreastMask, breast_mask, measure_breasts
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.clinical_sheet import (
    COLORS,
    MIRRORED,
    PREDICTED,
    Example,
    example_columns,
    scale_of,
    towards,
)
from breastmorph.report.render import (
    COLOURS,
    GREY,
    RELIEF,
    SIGNED,
    SKIN,
    SPREAD,
    WIDE,
    Camera,
    PanelPage,
    View,
    as_picture,
    cameras,
    colormap,
    draw_levels,
    height_of,
    levelled,
    look,
    printed,
    render,
    round_end,
)
from breastmorph.scan.scan import Landmarks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Margins(NamedTuple):
    """The room of a figure around and between its pictures, in inches."""

    left: float
    gap: float  # between columns
    top: float
    foot: float
    bar: float = 0.0  # for the bar of colours
    between: float = 0.0  # more between two groups
    line: float = 0.0  # of text
    below: float = 0.0  # a row of pictures


# --------------------------------------------------------------------------------------------------------------------
# Three ways to say where the breast is: a radial function, an ellipsoid, and two ellipsoids (the mask itself)
# --------------------------------------------------------------------------------------------------------------------

_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
_MAP = "Blues"
_FINE = 2  # points looked at per pixel along each side
_MASKS = Margins(left=0.05, gap=0.10, top=0.22, foot=0.16, bar=0.55)


def save_mask_contours(path: Path, mesh: TriangleMesh, landmarks: Landmarks) -> None:
    """Draw the levels of the three masks on a torso seen from the front.

    The radial function has the volume of the ellipsoid around the nipple; both are halved, so that all three
    masks have about the same height.

    Parameters
    ----------
    path : Path
        Without an ending.
    mesh : TriangleMesh
        Upright.
    landmarks : Landmarks
        Of the torso; one side may be absent.
    """
    masks = _masks(measure_breasts(mesh, landmarks).mask(landmarks))
    cell = (WIDE - _MASKS.left - _MASKS.bar) / len(masks) - _MASKS.gap
    (camera,) = cameras([(View(), [mesh.vertices])], cell)
    tall = height_of(camera)
    seen = look(mesh, camera.finer(_FINE))
    with printed(path, (WIDE, _MASKS.top + tall + _MASKS.foot), free=True) as figure:
        page = PanelPage(figure)
        for k, (label, mask) in enumerate(masks.items()):
            left = _MASKS.left + k * (cell + _MASKS.gap)
            values = mask.at(mesh.vertices)
            base = _bands(seen.at_pixels(values))
            axes = page.picture(as_picture(seen.shaded(base, RELIEF), _FINE), camera, left, _MASKS.top)
            draw_levels(axes, mesh, camera, values, _LEVELS)
            page.text(left + cell / 2, _MASKS.top / 2, label, weight="bold")
        page.scale_bar(_MASKS.left + 0.05, _MASKS.top + tall + 0.06, camera)
        ends = (0.0, float(_LEVELS[-1]))
        bar = page.colour_bar(
            WIDE - _MASKS.bar + 0.05,
            _MASKS.top + 0.08 * tall,
            0.84 * tall,
            ends,
            _MAP,
            "probability of the breast",
        )
        bar.images[0].set_data(_bands(np.linspace(ends[1], 1e-6, 512))[:, None])
        bar.set_yticks([0.0, *_LEVELS], [f"{level:g}" for level in (0.0, *_LEVELS)])


def _bands(values: Floats) -> Floats:
    """One colour between two levels, skin below the first, (k, 3)."""
    band = np.searchsorted(_LEVELS, values, side="right").astype(np.float64)
    return np.where((band > 0)[:, None], colormap(band + 1.0, 0.0, len(_LEVELS), _MAP), SKIN)


def _masks(mask: BreastMask) -> Mapping[str, BreastMask]:
    radial, elliptic = {}, {}
    for side, both in mask.sides.items():
        nipple = np.stack([both.centres[0]] * 2)  # the same function twice: a half instead of two quarters
        axes = both.semi_axes[0]
        elliptic[side] = BreastEllipsoids(nipple, np.stack([axes] * 2))
        radial[side] = BreastEllipsoids(nipple, np.full((2, 3), np.prod(axes) ** (1.0 / 3.0)))
    return {
        "radial function (RBF)": BreastMask(radial),
        "one ellipsoid (EBF)": BreastMask(elliptic),
        "two ellipsoids: the mask": mask,
    }


# --------------------------------------------------------------------------------------------------------------------
# The mean and the first modes of a model, each added and taken away
# --------------------------------------------------------------------------------------------------------------------

_MODES_VIEW = View(yaw=20.0)
_MODES = Margins(left=0.05, gap=0.04, top=0.20, foot=0.26, bar=0.74)
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
    cell = min((WIDE - _MODES.left - _MEAN - _MODES.bar) / (count + 1) - _MODES.gap, 1.3)
    (camera,) = cameras([(_MODES_VIEW, [model.mean, *shapes[0], *shapes[1]])], cell)
    tall = height_of(camera)
    shares = 100.0 * np.diff(compactness(model).share[:count], prepend=0.0)
    width = _MODES.left + _MEAN + (count + 1) * (cell + _MODES.gap) + _MODES.bar
    with printed(path, (width, _MODES.top + 2 * tall + _MODES.gap + _MODES.foot), free=True) as figure:
        page = PanelPage(figure)
        middle = _MODES.top + (tall + _MODES.gap) / 2
        page.picture(render(model.mean_mesh, camera=camera), camera, _MODES.left, middle)
        page.scale_bar(_MODES.left + 0.05, middle + tall + 0.06, camera)
        page.text(_MODES.left + cell / 2, middle - 0.09, "mean", weight="bold")
        for r, sign in enumerate(("+", "\N{MINUS SIGN}")):
            top = _MODES.top + r * (tall + _MODES.gap)
            page.text(
                _MODES.left + cell + _MEAN - 0.07, top + tall / 2, f"{sign}{deviations:g} sd", rotation=90
            )
            for k in range(count):
                left = _MODES.left + _MEAN + (k + 1) * (cell + _MODES.gap)
                colors = colormap(outwards[r][k], -most, most, SIGNED)
                picture = render(model.mesh(shapes[r][k]), camera=camera, colors=colors, relief=RELIEF)
                page.picture(picture, camera, left, top)
                if r == 0:
                    page.text(left + cell / 2, _MODES.top - 0.09, f"mode {k + 1}", weight="bold")
                else:
                    page.text(left + cell / 2, top + tall + 0.12, f"{shares[k]:.1f} %")
        foot, bar = _MODES.top + 2 * tall + _MODES.gap + 0.12, width - _MODES.bar + 0.04
        page.text(_MODES.left + cell / 2, foot, "variance:")
        page.text(width - 0.02, foot, f"together {shares.sum():.1f} %", ha="right")
        page.colour_bar(
            bar,
            _MODES.top + 0.10 * tall,
            1.75 * tall + _MODES.gap,
            (-most, most),
            SIGNED,
            "movement outwards (mm)",
            np.array(outwards),
        )


def _moved(model: ShapeModel, mode: int, deviations: float) -> Floats:
    coefficients = np.zeros(mode + 1)
    coefficients[mode] = deviations * model.deviations[mode]
    return model.instance(coefficients)


# --------------------------------------------------------------------------------------------------------------------
# Where shapes vary: the standard deviation of every vertex, drawn on the means of several models
# --------------------------------------------------------------------------------------------------------------------

_VIEWS = (View(), View(yaw=45.0))
_VARIATION = Margins(left=0.05, gap=0.05, top=0.22, foot=0.32, bar=0.68, between=0.15)


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
    cell = min(
        (WIDE - _VARIATION.left - _VARIATION.bar - _VARIATION.between * (len(models) - 1)) / len(columns)
        - _VARIATION.gap,
        2.0,
    )
    seen = cameras([(view, [models[label].mean]) for label, view in columns], cell, one_height=True)
    tall = height_of(seen[0])
    width = (
        _VARIATION.left
        + len(columns) * (cell + _VARIATION.gap)
        + _VARIATION.between * (len(models) - 1)
        + _VARIATION.bar
    )
    with printed(path, (width, _VARIATION.top + tall + _VARIATION.foot), free=True) as figure:
        page = PanelPage(figure)
        left = _VARIATION.left
        for m, (label, model) in enumerate(models.items()):
            mask = _mask(model)
            colors = colormap(spread[label], 0.0, most, SPREAD)
            middle = left + cell + _VARIATION.gap / 2
            page.text(middle, _VARIATION.top / 2, label, weight="bold")
            breast = np.zeros(model.n_vertices, bool) if mask is None else mask > IN_BREAST
            if breast.any() and not breast.all():
                page.text(middle, _VARIATION.top + tall + 0.22, _inside_and_outside(spread[label], breast))
            for v in range(len(_VIEWS)):
                camera = seen[m * len(_VIEWS) + v]
                picture = render(model.mean_mesh, camera=camera, colors=colors, relief=RELIEF)
                axes = page.picture(picture, camera, left, _VARIATION.top)
                if mask is not None:
                    draw_levels(axes, model.mean_mesh, camera, mask, [IN_BREAST])
                left += cell + _VARIATION.gap
            left += _VARIATION.between
        page.scale_bar(_VARIATION.left + 0.05, _VARIATION.top + tall + 0.06, seen[0])
        page.colour_bar(
            width - _VARIATION.bar + 0.05,
            _VARIATION.top + 0.05 * tall,
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


# --------------------------------------------------------------------------------------------------------------------
# Random shapes of several models, coloured by their distance from the mean
# --------------------------------------------------------------------------------------------------------------------

_SAMPLES_VIEW = View(yaw=15.0)
_SAMPLES = Margins(left=0.25, gap=0.05, top=0.05, foot=0.16, bar=0.68)


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
    cell = min((WIDE - _SAMPLES.left - _SAMPLES.bar) / count - _SAMPLES.gap, 2.0)
    seen = cameras([(_SAMPLES_VIEW, shapes) for shapes in rows.values()], cell)
    width = _SAMPLES.left + count * (cell + _SAMPLES.gap) + _SAMPLES.bar
    inside = sum(height_of(camera) + _SAMPLES.gap for camera in seen) - _SAMPLES.gap
    with printed(path, (width, _SAMPLES.top + inside + _SAMPLES.foot), free=True) as figure:
        page, top = PanelPage(figure), _SAMPLES.top
        for (label, shapes), camera in zip(rows.items(), seen, strict=True):
            page.text(_SAMPLES.left / 2, top + height_of(camera) / 2, label, rotation=90, weight="bold")
            for k, shape in enumerate(shapes):
                colors = colormap(away[label][k], 0.0, most, SPREAD)
                mesh = models[label].mesh(shape)
                picture = render(mesh, camera=camera, colors=colors, relief=RELIEF)
                page.picture(picture, camera, _SAMPLES.left + k * (cell + _SAMPLES.gap), top)
            top += height_of(camera) + _SAMPLES.gap
        page.scale_bar(_SAMPLES.left + 0.05, _SAMPLES.top + inside + 0.06, seen[0])
        page.colour_bar(
            width - _SAMPLES.bar + 0.05,
            _SAMPLES.top + 0.1 * inside,
            0.8 * inside,
            (0.0, most),
            SPREAD,
            "distance from the mean (mm)",
            distances,
        )


# --------------------------------------------------------------------------------------------------------------------
# Edited breasts beside the original: one row a subject, the edited distances drawn and written in cm
# --------------------------------------------------------------------------------------------------------------------

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
        raise LandmarkProblem.of("unusable-landmarks/model-lacks", names=missing)
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


# --------------------------------------------------------------------------------------------------------------------
# Predicted breasts beside the truth, their uncertainty and the mirror image: one row an example
# --------------------------------------------------------------------------------------------------------------------

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
            COLORS,
            "uncertainty: 1 sd (mm)",
            np.concatenate([one.prediction.sd_normal for one in examples]),
        )


def _off(shape: Floats, truth: Floats, prediction: Prediction) -> float:
    """Mean distance of a breast's points from the true surface, mm."""
    surface = Surface(TriangleMesh(truth, prediction.faces))
    return float(surface.closest(shape[prediction.region.breast]).distances.mean())
