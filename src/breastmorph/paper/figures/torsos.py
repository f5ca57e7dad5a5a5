"""Figures of torsos: masks, modes and variation of models, random samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from breastmorph.clinical.distances import STRAIGHT
from breastmorph.clinical.examination import UNKNOWN, both_sides
from breastmorph.clinical.examiner import examiner_of
from breastmorph.evaluation.training_set import compactness
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mask import IN_BREAST, BreastEllipsoids, BreastMask, breast_mask, measure_breasts
from breastmorph.mesh.geometry import normal_consistency, vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.plausibility import Plausibility, model_population
from breastmorph.model.shape_model import ShapeModel
from breastmorph.paper.figures.panels import RELIEF, PanelPage, cameras, draw_levels, height_of, width_of
from breastmorph.report.printing import COLOURS, WIDE, printed, save_rows
from breastmorph.report.render import (
    AMOUNT,
    SIGNED,
    SKIN,
    View,
    as_picture,
    colormap,
    render,
    round_end,
    visible_surface,
)
from breastmorph.scan.scan import SIDES, Landmarks


class Margins(NamedTuple):
    """The space of a figure around and between its pictures, in inches."""

    left: float
    gap: float  # between columns
    top: float
    foot: float
    bar: float = 0.0  # for the bar of colours
    between: float = 0.0  # more between two groups
    line: float = 0.0  # of text
    below: float = 0.0  # a row of pictures


_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
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
    seen = visible_surface(mesh, camera.finer(_FINE))
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
            AMOUNT,
            "probability of the breast",
        )
        bar.images[0].set_data(_bands(np.linspace(ends[1], 1e-6, 512))[:, None])
        bar.set_yticks([0.0, *_LEVELS], [f"{level:g}" for level in (0.0, *_LEVELS)])
    everywhere = {label: mask.at(mesh.vertices) for label, mask in masks.items()}
    _save_of_vertices(path, [("template", mesh.vertices, everywhere)])


def _save_of_vertices(path: Path, models: Sequence[tuple[str, Floats, Mapping[str, Floats]]]) -> None:
    """Write numbers of vertices as ``<path>.csv``: model, vertex, place in mm, and what is shown there."""
    names = list(models[0][2])
    rows = (
        {"model": label, "vertex": k, **dict(zip("xyz", np.round(place, 3).tolist(), strict=True))}
        | {name: round(float(values[name][k]), 5) for name in names}
        for label, places, values in models
        for k, place in enumerate(places)
    )
    save_rows(path, ("model", "vertex", "x", "y", "z", *names), rows)


def _bands(values: Floats) -> Floats:
    """One colour between two levels, skin below the first, (k, 3)."""
    band = np.searchsorted(_LEVELS, values, side="right").astype(np.float64)
    return np.where((band > 0)[:, None], colormap(band + 1.0, 0.0, len(_LEVELS), AMOUNT), SKIN)


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


_MODE_VIEWS = {"front": View(), "oblique": View(yaw=40.0), "side": View(yaw=90.0)}
_MODES = Margins(left=0.20, gap=0.02, top=0.36, foot=0.16, bar=0.76, between=0.06)
_MEANING = 1.68  # inches of text beside a mode
# What a mode is described by: measures of both sides, their unit on paper, its size in the measures' own, and how much
# the sides must come to differ to be named.
_MEANT = {
    "SN-N": (("SN-NL", "SN-NR"), "cm", 10.0, 0.5),
    "volume": (("volume-left", "volume-right"), "cc", 1.0, 50.0),
    "nipple above fold": (("nipple-above-fold-left", "nipple-above-fold-right"), "mm", 1.0, 5.0),
}
_SLIDERS_END = 3.0  # standard deviations: where sliders end, and where skin may turn inside out


@dataclass(frozen=True)
class ModeMeaning:
    """What one mode does.

    Attributes
    ----------
    mode : int
        From 1.
    share : float
        Of the variance.
    deviations : float
        How far the measures are taken, in standard deviations.
    measures : mapping from name to ((left, right), (left, right))
        Of the breasts at minus and at plus so many deviations; NaN where not determinable.
    ptosis : ((left, right), (left, right))
        Regnault's grades there.
    inside_out : (int, int)
        Triangles that face inwards at minus and at plus 3 standard deviations and do not in the mean.
    """

    mode: int
    share: float
    deviations: float
    measures: Mapping[str, tuple[tuple[float, float], tuple[float, float]]]
    ptosis: tuple[tuple[str, str], tuple[str, str]]
    inside_out: tuple[int, int]

    def lines(self) -> list[str]:
        """In words: means of both sides, and how the sides come to differ where they do."""
        words = []
        for name, (_, unit, size, least) in _MEANT.items():
            if name not in self.measures or not np.isfinite(self.measures[name]).all():
                continue
            ends = np.array(self.measures[name]) / size
            digits = 1 if unit == "cm" else 0
            low, high = (_signed(float(one), digits, unit == "mm") for one in ends.mean(axis=1))
            words.append(f"{name} {low} to {high} {unit}")
            apart = ends[:, 0] - ends[:, 1]
            if abs(apart[1] - apart[0]) > max(least, 0.5 * abs(np.ptp(ends.mean(axis=1)))):
                low, high = (_signed(float(one), digits, True) for one in apart)
                words.append(f"  left minus right {low} to {high}")
        return words


def _signed(value: float, digits: int, sign: bool) -> str:
    value = round(value, digits) + 0.0  # no negative zero
    text = f"{value:+.{digits}f}" if sign and value else f"{value:.{digits}f}"
    return text.replace("-", "\N{MINUS SIGN}")


def mode_meanings(model: ShapeModel, modes: int = 8, deviations: float = 2.0) -> list[ModeMeaning]:
    """Measure what the first modes do; a model without the landmarks for it has no measures."""
    shares = np.diff(compactness(model).share, prepend=0.0)
    usual = _inside_out(model, model.mean)
    found = []
    for k in range(min(modes, model.n_components)):
        ends = [_measured(model, _moved(model, k, sign * deviations)) for sign in (-1.0, 1.0)]
        far = [
            int((_inside_out(model, _moved(model, k, sign * _SLIDERS_END)) & ~usual).sum())
            for sign in (-1.0, 1.0)
        ]
        both = {
            name: (_sides(ends[0][0], sides), _sides(ends[1][0], sides))
            for name, (sides, *_) in _MEANT.items()
        }
        grades = (ends[0][1], ends[1][1])
        found.append(ModeMeaning(k + 1, float(shares[k]), deviations, both, grades, (far[0], far[1])))
    return found


def _measured(model: ShapeModel, shape: Floats) -> tuple[dict[str, float], tuple[str, str]]:
    """Straight measures by name, and the grades of ptosis; nothing where the model does not allow it."""
    try:
        examiner = examiner_of(model)
        landmarks = examiner.landmarks(shape)
        found = examiner.measured(shape, landmarks, kinds=(STRAIGHT,))
        grades = {one.side: one.grade for one in both_sides(landmarks.at(shape))}
    except BreastMorphError:
        return {}, (UNKNOWN, UNKNOWN)
    left, right = (grades.get(side, UNKNOWN) for side in SIDES)
    return {one.name: one.value for one in found}, (left, right)


def _sides(measures: Mapping[str, float], names: Sequence[str]) -> tuple[float, float]:
    left, right = (measures.get(name, float("nan")) for name in names)
    return left, right


def _inside_out(model: ShapeModel, shape: Floats) -> Bools:
    """Triangles that face against their surroundings, (m,)."""
    turned: Bools = normal_consistency(shape, model.faces) < 0.0
    return turned


def save_modes(path: Path, model: ShapeModel, meanings: Sequence[ModeMeaning]) -> None:
    """Draw modes, a row each: taken away and added, from three sides, and what they mean in measures.

    Colours are the movement along the mean's normal: red outwards, blue inwards, one range for all.

    Parameters
    ----------
    path : Path
        Without an ending.
    model : ShapeModel
    meanings : sequence of ModeMeaning
        Of the modes to draw, see :func:`mode_meanings`.
    """
    if not meanings:
        raise BreastMorphError("the model has no components to draw", "Build it from at least two subjects")
    far = meanings[0].deviations
    shapes = [[_moved(model, one.mode - 1, sign * far) for sign in (-1.0, 1.0)] for one in meanings]
    normals = vertex_normals(model.mean, model.faces)
    outwards = np.array([[((shape - model.mean) * normals).sum(axis=1) for shape in row] for row in shapes])
    most = round_end(outwards, 0.98)
    every = np.concatenate([shape for row in shapes for shape in row])
    reach = [float(np.ptp(every @ view.axes()[0])) for view in _MODE_VIEWS.values()]
    shares = np.array(reach) / max(reach)  # of the widest picture: from the side a body is narrow
    columns = 2 * len(_MODE_VIEWS)
    free = WIDE - _MODES.left - _MEANING - _MODES.bar - _MODES.between - columns * _MODES.gap
    seen = [
        camera.narrowed(float(share))
        for camera, share in zip(
            cameras(
                [(view, [every]) for view in _MODE_VIEWS.values()], free / (2 * shares.sum()), one_height=True
            ),
            shares,
            strict=True,
        )
    ]
    tall = height_of(seen[0])
    height = _MODES.top + len(meanings) * (tall + _MODES.gap) + _MODES.foot
    wide = [width_of(camera) for camera in seen] * 2
    lefts = [
        _MODES.left + sum(wide[:k]) + k * _MODES.gap + (_MODES.between if k >= columns // 2 else 0.0)
        for k in range(columns)
    ]
    text = lefts[-1] + wide[-1] + 0.06
    with printed(path, (WIDE, height), free=True) as figure:
        page = PanelPage(figure)
        for k, sign in enumerate(("\N{MINUS SIGN}", "+")):
            middle = lefts[k * len(_MODE_VIEWS) + 1] + wide[1] / 2
            page.text(middle, 0.10, f"{sign}{far:g} sd", weight="bold")
            for v, name in enumerate(_MODE_VIEWS):
                page.text(lefts[k * len(_MODE_VIEWS) + v] + wide[v] / 2, 0.26, name)
        page.text(text, 0.10, "meaning", weight="bold", ha="left")
        page.text(text, 0.26, f"\N{MINUS SIGN}{far:g} sd to +{far:g} sd", ha="left")
        for r, one in enumerate(meanings):
            top = _MODES.top + r * (tall + _MODES.gap)
            page.text(_MODES.left / 2, top + tall / 2, f"mode {one.mode}", rotation=90, weight="bold")
            for k in range(columns):
                end, camera = k // len(_MODE_VIEWS), seen[k % len(_MODE_VIEWS)]
                colors = colormap(outwards[r, end], -most, most, SIGNED)
                picture = render(model.mesh(shapes[r][end]), camera=camera, colors=colors, relief=RELIEF)
                page.picture(picture, camera, lefts[k], top)
            lines = [f"{100 * one.share:.1f} % of the variance", *one.lines()]
            if any(one.inside_out):
                lines.append(f"inside out at \N{PLUS-MINUS SIGN}{_SLIDERS_END:g} sd")
            page.text(text, top + tall / 2, "\n".join(lines), ha="left", linespacing=1.25)
        page.scale_bar(_MODES.left + 0.05, height - _MODES.foot / 2, seen[0])
        bar = len(meanings) * tall
        page.colour_bar(
            WIDE - _MODES.bar + 0.06,
            _MODES.top + (bar - min(bar, 2.2)) / 2,
            min(bar, 2.2),
            (-most, most),
            SIGNED,
            "movement outwards (mm)",
            outwards,
        )
    columns_of = ("mode", "share", "deviations", "measure", "left", "right")
    rows = [
        dict(zip(columns_of, (one.mode, one.share, sign * one.deviations, name, *ends[k]), strict=True))
        for one in meanings
        for k, sign in enumerate((-1.0, 1.0))
        for name, ends in {**one.measures, "Regnault": one.ptosis}.items()
    ]
    save_rows(path, columns_of, rows)


def _moved(model: ShapeModel, mode: int, deviations: float) -> Floats:
    coefficients = np.zeros(mode + 1)
    coefficients[mode] = deviations * model.deviations[mode]
    return model.instance(coefficients)


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
            colors = colormap(spread[label], 0.0, most, AMOUNT)
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
            AMOUNT,
            "standard deviation (mm)",
            deviations,
        )
    _save_of_vertices(
        path, [(label, model.mean, {"sd_mm": spread[label]}) for label, model in models.items()]
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


_SAMPLES_VIEW = View(yaw=15.0)
_SAMPLES = Margins(left=0.25, gap=0.05, top=0.05, foot=0.16, bar=0.68, below=0.17)
_UNLIKE = {"unusual": "unusual", "implausible": "unlike people"}  # by level; the usual ones are not marked


def save_random_samples(path: Path, models: Mapping[str, ShapeModel], count: int = 5, seed: int = 0) -> None:
    """Draw one row of random shapes for every model; all rows share colours, scale and random numbers.

    Below a shape that is unlike the model's subjects, or whose skin is inside out somewhere, stands so.

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
    inside = sum(height_of(camera) + _SAMPLES.below for camera in seen)
    judged = {label: [_sample(models[label], shape) for shape in shapes] for label, shapes in rows.items()}
    with printed(path, (width, _SAMPLES.top + inside + _SAMPLES.foot), free=True) as figure:
        page, top = PanelPage(figure), _SAMPLES.top
        for (label, shapes), camera in zip(rows.items(), seen, strict=True):
            page.text(_SAMPLES.left / 2, top + height_of(camera) / 2, label, rotation=90, weight="bold")
            for k, shape in enumerate(shapes):
                colors = colormap(away[label][k], 0.0, most, AMOUNT)
                mesh = models[label].mesh(shape)
                picture = render(mesh, camera=camera, colors=colors, relief=RELIEF)
                left = _SAMPLES.left + k * (cell + _SAMPLES.gap)
                page.picture(picture, camera, left, top)
                page.text(
                    left + cell / 2, top + height_of(camera) + 0.07, judged[label][k].words, color=COLOURS[1]
                )
            top += height_of(camera) + _SAMPLES.below
        page.scale_bar(_SAMPLES.left + 0.05, _SAMPLES.top + inside + 0.06, seen[0])
        page.colour_bar(
            width - _SAMPLES.bar + 0.05,
            _SAMPLES.top + 0.1 * inside,
            0.8 * inside,
            (0.0, most),
            AMOUNT,
            "distance from the mean (mm)",
            distances,
        )
    columns = ("model", "sample", "mean_distance_mm", "share_of_subjects_less_unusual", "level", "inside_out")
    save_rows(
        path,
        columns,
        (
            dict(zip(columns, (label, k + 1, *away_and_judged), strict=True))
            for label, several in judged.items()
            for k, one in enumerate(several)
            for away_and_judged in [
                (float(away[label][k].mean()), one.plausibility.share, one.plausibility.level, one.inside_out)
            ]
        ),
    )


class _Sample(NamedTuple):
    """How a random shape stands among a model's subjects."""

    plausibility: Plausibility
    inside_out: int  # triangles that face inwards, and do not in the mean

    @property
    def words(self) -> str:
        """What is written below it; empty for a usual one."""
        words = [_UNLIKE.get(self.plausibility.level, ""), "inside out" if self.inside_out else ""]
        return ", ".join(word for word in words if word)


def _sample(model: ShapeModel, shape: Floats) -> _Sample:
    turned = _inside_out(model, shape) & ~_inside_out(model, model.mean)
    return _Sample(model_population(model).judge(model.project(shape)), int(turned.sum()))
