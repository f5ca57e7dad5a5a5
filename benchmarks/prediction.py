"""Predicting a missing breast: leave-one-out over a phantom cohort, and on subjects after a mastectomy.

    python benchmarks/prediction.py                                        # a cohort of its own, some 10 minutes
    python benchmarks/prediction.py --registered REG --one-registered REG1 --one-phantom PH1 --figure predicted.png
    python benchmarks/prediction.py --registered REG --evidence none --torsos T --torsos-registered REGT \
        --earlier-registered REGV --unchanged 000,002 --pictures looked-at

Each left-out subject is predicted twice, each side once, by a model and an uncertainty that do not know her. Beside the
model stand mirroring (the other breast across the thorax's plane of symmetry) and the mean shape, all joined to the
scan in the same way. Errors are means over the breast in mm: point to point, and point to surface. Volumes in cc:
against the subject's own registered breast, and for subjects after a mastectomy against the phantom's true one.
Over the lost skin, distances and the volume between run from the true skin to the nearest predicted one. That volume is
too small on average wherever two shapes differ, also between the two breasts of women who have both; how much, is
printed. Calibration: the share of a subject's points whose normal error is within 1.96 standard deviations. "perfect"
is what a normal distribution with exactly these correlations would give, since errors within one breast go together.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from breastmorph.batch.engine import register_batch
from breastmorph.batch.product import Recipe
from breastmorph.clinical.feature_requests import Request
from breastmorph.clinical.features import measured_features
from breastmorph.clinical.mirror_frame import mirror_frame
from breastmorph.clinical.missing_region import OperatedSkin, missing_region
from breastmorph.clinical.predicted_measures import missing_volume, predicted_measures
from breastmorph.clinical.predicting import is_absent, predicted_by, with_measures
from breastmorph.clinical.prediction import Prediction, deviation_of
from breastmorph.clinical.predictor import BreastPredictor, PredictionParameters, fit_predictor
from breastmorph.clinical.torso_view import Evidence, TorsoView
from breastmorph.clinical.training_shapes import TrainingShapes, training_shapes
from breastmorph.clinical.volume import BreastVolumes
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.evaluation.truth import Tie
from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mask import Footprint, RegionParameters
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import vertex_areas, vertex_normals
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.model.building import build_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.phantom import mean_torso, write_cohort
from breastmorph.phantom.body import smooth_step
from breastmorph.phantom.cohort import Mastectomy
from breastmorph.registration.pipeline import Registrar
from breastmorph.report.prediction_sheet import Example, save_prediction_figure
from breastmorph.report.render import View, box_around, render, save_picture_grid
from breastmorph.scan.check import find_scans
from breastmorph.scan.scan import SIDES, SIGN, Scan
from breastmorph.template import default_template
from measuring import compare, cpu_seconds

METHODS = ("model", "mirror", "mean shape")
_GOOD = (0.90, 0.98)
_LOOKED_AT = {"front": View(), "right side": View(yaw=-80.0), "below": View(yaw=-15.0, pitch=-55.0)}
_CLASSES = ((0.0, 30.0), (30.0, 80.0), (80.0, np.inf))


@dataclass(frozen=True)
class Row:
    """Errors of one prediction, by method."""

    points: tuple[float, ...]
    surface: tuple[float, ...]
    volume: tuple[float, ...]  # signed
    difference: float  # between the subject's breasts, cc
    covered: float
    perfect: float
    volume_sd: float = np.nan
    told: float = np.nan  # distance to the true surface, mm, once the volume was stated within 10 %
    lost: tuple[tuple[float, float], ...] = ()  # see lost_skin; of the prediction and of the mirror image


@dataclass(frozen=True, eq=False)
class LostSkin:
    """The skin that an operation took, as ``score/prediction.py`` of the torso sets compares it.

    Distances run from the true skin to a predicted surface; the volume between them is signed, + = too large.
    """

    points: Floats
    normals: Floats
    areas: Floats

    @classmethod
    def of(cls, whole: TriangleMesh, scanned: Floats) -> LostSkin:
        """Skin that the operation moved by more than 3 mm."""
        moved = np.linalg.norm(whole.vertices - scanned, axis=1) > 3.0
        normals = vertex_normals(whole.vertices, whole.faces)
        areas = vertex_areas(whole.vertices, whole.faces)
        return cls(whole.vertices[moved], normals[moved], areas[moved])

    def errors(self, shape: Floats, faces: Ints) -> tuple[float, float]:
        """Mean distance in mm and signed volume in cc."""
        near = Surface(TriangleMesh(shape, faces)).closest(self.points)
        along = ((near.points - self.points) * self.normals).sum(axis=1)
        return float(near.distances.mean()), float((along * self.areas).sum() / 1000.0)


def judge(
    found: Prediction,
    shape: Floats,
    true: Floats,
    true_volume: float,
    difference: float,
    predictor: BreastPredictor,
    volumes: BreastVolumes,
    normal_by_point: bool,
    rng: np.random.Generator,
) -> Row:
    """Compare a prediction, mirroring and the mean shape with the truth."""
    breast, faces, side = found.region.breast, predictor.frame.faces, found.region.side
    surface = Surface(TriangleMesh(true, faces))
    points, off, cc = [], [], []
    for candidate in (found.shape, found.mirrored, predictor.mean_shape(shape)):
        points.append(float(np.linalg.norm(candidate - true, axis=1)[breast].mean()))
        off.append(float(surface.closest(candidate[breast]).distances.mean()))
        cc.append(volumes.cc(candidate, side) - true_volume)
    normals = vertex_normals(found.shape, faces)[breast]
    error = true[breast] - found.shape[breast]
    if not normal_by_point:
        # Truth and registration put the points elsewhere on the skin: the nearest true skin instead.
        error = surface.closest(found.shape[breast]).points - found.shape[breast]
        along = np.sign((error * normals).sum(axis=1)) * np.linalg.norm(error, axis=1)
    else:
        along = (error * normals).sum(axis=1)
    limit = 1.96 * found.sd_normal[breast]
    inside = breast[found.region.missing]
    missed = predictor.missed[:, inside]
    draw = rng.standard_normal(len(missed)) / np.sqrt(len(missed))
    drawn = (
        np.tensordot(draw.astype(np.float32), missed, (0, 0)) * predictor_normals(predictor)[inside]
    ).sum(1)
    spread = np.sqrt(
        (np.einsum("nmd,md->nm", missed, predictor_normals(predictor)[inside]) ** 2).mean(axis=0)
    )
    return Row(
        tuple(points),
        tuple(off),
        tuple(cc),
        difference,
        float((np.abs(along) <= limit).mean()),
        float((np.abs(drawn) <= 1.96 * spread).mean()),
    )


def predictor_normals(predictor: BreastPredictor) -> Floats:
    """Normals of the mean over the missing region, (m, 3)."""
    return vertex_normals(predictor.frame.mean, predictor.frame.faces)[predictor.region.missing]


def leave_one_out(model: ShapeModel, cohort: Cohort, evidence: Evidence, most: int) -> list[Row]:
    """Of the subjects so many, evenly chosen, each side predicted by all others."""
    whole = fit_predictor(model, "right", evidence, None, training_shapes(model, cohort))
    rows = []
    for i in evenly(len(cohort), most):
        rows += both_sides(model, cohort.shape(i), whole.without(i), np.random.default_rng(i))
        if sys.stderr.isatty():
            print(f"\r{evidence}: {i + 1} of {len(cohort)}", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return rows


def evenly(count: int, most: int) -> list[int]:
    """At most so many of the numbers below a count, evenly chosen."""
    return [int(i) for i in np.unique(np.linspace(0, count - 1, min(most, count)).round())]


def in_fifths(cohort: Cohort, evidence: Evidence) -> list[Row]:
    """Every subject, each side, by a model of the other four fifths that keeps nobody's data: subjects are drawn."""
    rows = []
    for fifth in range(5):
        out = np.arange(len(cohort)) % 5 == fifth
        model = build_model(cohort.chosen(~out))
        predictor = fit_predictor(model, "right", evidence)
        for i in np.flatnonzero(out):
            rows += both_sides(model, cohort.shape(int(i)), predictor, np.random.default_rng(i))
    return rows


def both_sides(
    model: ShapeModel, own: Floats, predictor: BreastPredictor, rng: np.random.Generator
) -> list[Row]:
    """A subject's right side predicted, and the right side of her mirror image, which is the left."""
    volumes = volumes_of(model)
    rows = []
    for shape in (own, mirrored(own, model)):
        cc = {side: volumes.cc(shape, side) for side in SIDES}
        gap = abs(cc["left"] - cc["right"])
        found = predictor.predict(shape)
        rows.append(judge(found, shape, shape, cc["right"], gap, predictor, volumes, True, rng))
    return rows


@lru_cache(maxsize=2)
def volumes_of(model: ShapeModel) -> BreastVolumes:
    """Volumes prepared for a model."""
    return BreastVolumes.of_model(model)


def after_mastectomy(
    model: ShapeModel, cohort: Cohort, phantom: Path, subjects: TrainingShapes, figure: Path | None
) -> tuple[list[Row], int]:
    """One-sided subjects, predicted by the model of the others; how many the volumes alone recognise."""
    rng = np.random.default_rng(0)
    volumes = volumes_of(model)
    volume = next(one for one in measured_features(model) if one.name == "volume-right")
    mean = mean_torso()
    tie = Tie.of(cohort.template, mean.mesh, mean.landmarks)
    predictor = fit_predictor(model, "right", "surface", None, subjects)
    rows, recognised = [], 0
    examples: list[Example] = []
    for i, (name, side) in enumerate(zip(cohort.ids, cohort.absent, strict=True)):
        if not side:
            continue
        with np.load(phantom / "truth" / f"{name}.npz") as truth:
            back = cohort.to_file[i].inverse()
            whole, points = (back.apply(truth[part].astype(float)) for part in ("whole", "points"))
            true = tie.at(whole)
            cc = {one: float(truth[f"volume_{one}"]) for one in SIDES}
        shape = cohort.shape(i)
        recognised += is_absent(model, shape, side)
        faces = mean.mesh.faces
        if side == "left":
            shape, true = mirrored(shape, model), mirrored(true, model)
            whole, points, faces = whole * MIRROR, points * MIRROR, faces[:, ::-1]
        gap = abs(cc["left"] - cc["right"])
        found = predictor.predict(shape)
        lost = LostSkin.of(TriangleMesh(whole, faces), points)
        row = judge(found, shape, true, cc[side], gap, predictor, volumes, False, rng)
        told = np.nan
        if gap > _CLASSES[-1][0]:
            stated = Request("volume-right", cc[side] * rng.uniform(0.9, 1.1), "cc")
            told = lost.errors(with_measures(model, found, [stated]).shape, model.faces)[0]
        rows.append(
            replace(
                row,
                volume_sd=deviation_of(volume.read(found.shape), found),
                told=told,
                lost=tuple(lost.errors(one, model.faces) for one in (found.shape, found.mirrored)),
            )
        )
        if side == "right":
            examples.append(Example(name, shape, found, true))
    if figure is not None:
        save_prediction_figure(examples[:3], figure)
    return rows, recognised


def show_lost(title: str, rows: list[Row]) -> None:
    """Print what is compared over the lost skin alone."""
    lost = np.array([row.lost for row in rows])  # (k, 2, 2)
    print(f"\n{title}, over the lost skin: {len(rows)} predictions")
    for low, high in ((0.0, np.inf), *_CLASSES):
        part = np.array([low <= row.difference < high for row in rows])
        if not part.any():
            continue
        (ours, theirs), cc = lost[part, :, 0].mean(axis=0), np.abs(lost[part, :, 1])
        print(
            f"breasts that differed by {low:g} to {high:g} cc ({part.sum()}): surface {ours:.2f} and mirror "
            f"{theirs:.2f} mm ({ours / theirs:.3f}), volume {np.median(cc[:, 0]):.0f} and "
            f"{np.median(cc[:, 1]):.0f} cc (mean {cc[:, 0].mean():.0f} and {cc[:, 1].mean():.0f}), "
            f"signed {lost[part, 0, 1].mean():+.0f} and {lost[part, 1, 1].mean():+.0f} cc"
        )
    near = (lost[:, 0, 0] <= lost[:, 1, 0] + 0.1).mean()
    print(f"nearer than the mirror image or within 0.1 mm of it: {near:.0%}")
    sds = np.array([row.volume_sd for row in rows])
    if np.isfinite(sds).all():
        within = np.abs([row.volume[0] for row in rows]) < sds
        print(f"volume within one standard deviation: {within.mean():.0%}")
    told = np.array([row.told for row in rows])
    if np.isfinite(told).any():
        was = lost[np.isfinite(told), 0, 0].mean()
        now = float(np.nanmean(told))
        print(
            f"with the volume stated within 10 %: surface {was:.2f} to {now:.2f} mm ({now / was - 1.0:+.0%})"
        )


def torsos(
    model: ShapeModel, cohort: Cohort, folder: Path, subjects: TrainingShapes, pictures: Path | None
) -> list[Row]:
    """One-sided torsos of another family, whose truth has ``points`` before and ``points_scanned`` after."""
    predictor = fit_predictor(model, "right", "surface", None, subjects)
    rows = []
    for i, (name, side) in enumerate(zip(cohort.ids, cohort.absent, strict=True)):
        with np.load(folder / "truth" / f"{name}.npz") as truth:
            back, faces = cohort.to_file[i].inverse(), truth["faces"].astype(int)
            whole, points = (back.apply(truth[part].astype(float)) for part in ("points", "points_scanned"))
            gap = abs(float(truth["volume_left"]) - float(truth["volume_right"]))
        shape = cohort.shape(i)
        if side == "left":
            shape, whole, points, faces = (
                mirrored(shape, model),
                whole * MIRROR,
                points * MIRROR,
                faces[:, ::-1],
            )
        lost = LostSkin.of(TriangleMesh(whole, faces), points)
        found = predictor.predict(shape)
        scores = tuple(lost.errors(one, model.faces) for one in (found.shape, found.mirrored))
        print(
            f"{name}: {scores[0][0]:.2f} mm {scores[0][1]:+.0f} cc, "
            f"mirror {scores[1][0]:.2f} mm {scores[1][1]:+.0f} cc"
        )
        if pictures is not None:
            save_pictures(pictures / f"{name}.png", shape, found, TriangleMesh(whole, faces))
        rows.append(Row((), (), (scores[0][1],), gap, np.nan, np.nan, lost=scores))
    return rows


def registered_otherwise(model: ShapeModel, one: Cohort, whole: Cohort) -> None:
    """Print how far evidence moves once a breast is gone: scans of the same people in the same pose, with one and both.

    What is counted as known of a woman with one breast, less the same of her with two, along the mean's normals.
    """
    p = PredictionParameters()
    view = TorsoView.of(model, "right", "surface", p.region, p.blend)
    off = []
    for i, (name, side) in enumerate(zip(one.ids, one.absent, strict=True)):
        k = whole.ids.index(name)
        back = one.to_file[i].inverse().after(whole.to_file[k])
        shapes = (one.shape(i), back.apply(whole.shape(k)))
        pair = [view.align(mirrored(shape, model) if side == "left" else shape)[1] for shape in shapes]
        off.append(((pair[0] - pair[1]) * view.normals).sum(axis=1))
    moved = np.array(off)
    for what, part in parts_of(view):
        print(
            f"registered with one breast instead of two, {what}: {np.sqrt((moved[:, part] ** 2).mean()):.1f} mm"
        )
    some = np.flatnonzero(view.seen)[::12]
    x, at = moved[:, some], view.frame.mean[some]
    size = np.sqrt((x**2).mean(axis=0))
    alike = x.T @ x / len(x) / np.outer(size, size)
    apart = np.linalg.norm(at[:, None] - at, axis=2)
    steps = np.arange(0.0, 120.0, 10.0)
    fall = [alike[(apart >= low) & (apart < low + 10.0)].mean() for low in steps]
    half = next((low + 5.0 for low, value in zip(steps, fall, strict=True) if value < 0.5), np.inf)
    print(f"these go together over {half:.0f} mm (correlation one half)")


def operated(shape: Floats, side: str, model: ShapeModel, rng: np.random.Generator) -> Floats:
    """A registered subject with a breast removed as the phantom's operations do it, on the chest wall behind it."""
    wall, done = volumes_of(model).walls[side], Mastectomy.drawn(rng)
    ids, behind = wall.ids, wall.points(shape)
    flat = wall.shape(shape)
    normals = vertex_normals(flat, model.faces)[ids]
    inside = footprint_of(model).inside(side, RegionParameters())[ids]
    gone = smooth_step(inside, -done.blend, 0.0) * smooth_step(np.abs(behind[:, 0]), 0.0, 20.0)
    # Places on the wall, mm lateral to and above the skin behind the nipple.
    at = behind - behind[np.searchsorted(ids, model.landmark_ids[f"nipple_{side}"])]
    turn, across, up = np.radians(done.scar_angle), SIGN[side] * at[:, 0], at[:, 1] - done.scar_up
    along, away = np.cos(turn) * across + np.sin(turn) * up, np.cos(turn) * up - np.sin(turn) * across
    half = 0.5 * done.scar_length
    scar = np.exp(-0.5 * (away / done.scar_width) ** 2) * smooth_step(np.abs(along), half, half - 15.0)
    pad = smooth_step(inside, -0.3 * done.blend, 20.0 + done.blend)
    areas = vertex_areas(flat, model.faces)[ids]
    cc = done.pad_volume(volumes_of(model).cc(shape, side))
    pad *= 1000.0 * cc / (pad * areas).sum()
    hollow = done.hollow * gone * smooth_step(inside, 2.0 * done.blend, 0.0)
    height = pad + gone * done.scar * scar - hollow
    out = np.array(shape)
    out[ids] += gone[:, None] * (behind + height[:, None] * normals - shape[ids])
    return out


@lru_cache(maxsize=2)
def footprint_of(model: ShapeModel) -> Footprint:
    """Where the breasts of a model's mean are."""
    return Footprint.of(model.mean_mesh, model.landmarks)


def registered_again(model: ShapeModel, cohort: Cohort, subjects: TrainingShapes, most: int) -> None:
    """Print how subjects who were operated here and registered again as one-sided scans are predicted by the others.

    Beside them the same subjects with the operated skin that noise and uncertainty are chosen on, which nobody
    registers, and the prediction with half and twice the chosen noise.
    """
    whole = fit_predictor(model, "right", "surface", None, subjects)
    view, registrar = whole.view, Registrar(cohort.template)
    region, skin = view.region, OperatedSkin(view.frame, view.region)
    rows, moved, covered = [], [], []
    for k, i in enumerate(evenly(len(cohort), most)):
        own, side = cohort.shape(i), SIDES[k % 2]
        left = cohort.landmarks[i].only(one for one in cohort.landmarks[i].names if not one.endswith(side))
        scan = operated(own, side, model, np.random.default_rng(i))
        after = registrar.register(Scan(cohort.ids[i], TriangleMesh(scan, model.faces), left)).mesh.vertices
        if side == "left":
            own, after = mirrored(own, model), mirrored(after, model)
        lay = view.align(own)[0]
        simulated = lay.inverse().apply(skin.of(lay.apply(own), i))
        normals, areas = vertex_normals(own, model.faces), vertex_areas(own, model.faces)
        lost = LostSkin(own[region.missing], normals[region.missing], areas[region.missing])
        one, surface = whole.without(i), Surface(TriangleMesh(own, model.faces))
        row: list[float] = []
        for shape, factors in ((simulated, (1.0,)), (after, (1.0, 0.5, 2.0))):
            for factor in factors:
                choice = replace(one.choice, noise=factor * one.choice.noise)
                found = replace(one, fitted=replace(one.fitted, choice=choice)).predict(shape)
                row.append(lost.errors(found.shape, model.faces)[0])
                if factor == 1.0:
                    row.append(lost.errors(found.mirrored, model.faces)[0])
                    off = surface.closest(found.shape[region.breast]).distances
                    covered.append((off <= 1.96 * found.sd_normal[region.breast]).mean())
            to_mean = view.align(shape)[0]
            moved.append(((to_mean.apply(shape) - to_mean.apply(own)) * view.normals).sum(axis=1))
        rows.append(row)
    assumed, its_mirror, again, mirror, half, double = np.mean(rows, axis=0)
    for at, (title, ours, theirs) in enumerate(
        (("with simulated skin", assumed, its_mirror), ("operated and registered again", again, mirror))
    ):
        print(
            f"{len(rows)} subjects {title}: surface {ours:.2f} and mirror {theirs:.2f} mm ({ours / theirs:.3f}), "
            f"normal error within 1.96 sd {np.mean(covered[at::2]):.1%}"
        )
        for what, part in parts_of(view):
            print(f"  {what}: {np.sqrt((np.array(moved[at::2])[:, part] ** 2).mean()):.1f} mm elsewhere")
    print(
        f"registered again, with half the noise {half / mirror:.3f}, with twice the noise {double / mirror:.3f}"
    )


def parts_of(view: TorsoView) -> tuple[tuple[str, Bools], ...]:
    """Skin that is told apart when asking how far it moved."""
    region = view.region
    return (
        ("the other breast", view.frame.twins(region.breast)),
        ("the thorax, healthy half", region.thorax & region.untouched),
        ("the thorax, operated half", region.thorax & ~region.untouched),
        ("skin beside the lost breast", region.around & ~region.untouched & ~region.thorax),
    )


def save_pictures(path: Path, scan: Floats, found: Prediction, truth: TriangleMesh) -> None:
    """The chest as it is, its prediction, the truth and the mirror image, each from front, side and below."""
    shown = {
        "as it is": TriangleMesh(scan, found.faces),
        "predicted": TriangleMesh(found.shape, found.faces),
        "truth": truth,
        "mirror image": TriangleMesh(found.mirrored, found.faces),
    }
    box = box_around([scan, found.shape])
    cells = [
        render(mesh, view, size=(420, 420), box=box)
        for view in _LOOKED_AT.values()
        for mesh in shown.values()
    ]
    save_picture_grid(
        cells, [f"{what}, {where}" for where in _LOOKED_AT for what in shown], path, columns=len(shown)
    )


def nearest_point_bias(model: ShapeModel, cohort: Cohort) -> float:
    """Mean signed volume, cc, between both breasts of everybody and their mirror images, as LostSkin measures it.

    Whichever is larger counts once with each sign: of the volumes themselves it would be zero.
    """
    frame = mirror_frame(model)
    region = missing_region(model, frame, "right")
    found = []
    for i in range(len(cohort)):
        shape = cohort.shape(i)
        image = frame.own_mirror_image(shape, region.around)
        normals, areas = vertex_normals(shape, model.faces), vertex_areas(shape, model.faces)
        for part in (region.missing, region.healthy):
            skin = LostSkin(shape[part], normals[part], areas[part])
            found.append(skin.errors(image, model.faces)[1])
    return float(np.mean(found))


def by_earlier_scans(
    model: ShapeModel,
    now: Cohort,
    before: Cohort,
    folder: Path,
    names: Sequence[str],
    subjects: TrainingShapes,
) -> list[tuple[float, float]]:
    """Errors over the lost skin, with an earlier scan of the same woman in another posture, and by the mirror image."""
    rows = []
    for name in names:
        i, k = now.ids.index(name), before.ids.index(name)
        side = now.absent[i]
        with np.load(folder / "truth" / f"{name}.npz") as truth:
            back, faces = now.to_file[i].inverse(), truth["faces"].astype(int)
            whole, points = (back.apply(truth[part].astype(float)) for part in ("points", "points_scanned"))
        predictor = fit_predictor(model, side, "surface", None, subjects)
        found = predicted_by(predictor, model, now.shape(i), before.shape(k))
        lost = LostSkin.of(TriangleMesh(whole, faces), points)
        ours, theirs = (lost.errors(one, model.faces)[0] for one in (found.shape, found.mirrored))
        print(f"{name}: with an earlier scan {ours:.2f} mm, mirror image {theirs:.2f} mm")
        rows.append((ours, theirs))
    return rows


def show_times(model: ShapeModel, cohort: Cohort, subjects: TrainingShapes) -> None:
    """Print how long the first prediction learns, and what every later one takes with its measures and its solid."""
    once, predictor = cpu_seconds(lambda: fit_predictor(model, "right", "surface", None, subjects))

    def predicted() -> None:
        found = predictor.predict(cohort.shape(0))
        predicted_measures(model, found)
        missing_volume(cohort.shape(0), found)

    predicted()  # what is prepared for the model's measures is kept
    later, _ = cpu_seconds(predicted, 5)
    print(
        f"learning from {subjects.count} subjects: {once:.1f} CPU s; every later prediction: {later:.2f} CPU s"
    )


def mirrored(shape: Floats, model: ShapeModel) -> Floats:
    """The mirror image in the same correspondence."""
    if model.mirror is None:
        raise SystemExit("this study needs a symmetric template")
    return shape[model.mirror] * MIRROR


def show(title: str, rows: list[Row]) -> None:
    """Print one table."""
    print(f"\n{title}: {len(rows)} predictions")
    print("method     | points mm | surface mm | volume cc median | mean | signed mean")
    for k, method in enumerate(METHODS):
        cc = np.array([row.volume[k] for row in rows])
        print(
            f"{method:10s} | {np.mean([r.points[k] for r in rows]):9.2f} | "
            f"{np.mean([r.surface[k] for r in rows]):10.2f} | {np.median(np.abs(cc)):16.0f} | "
            f"{np.abs(cc).mean():4.0f} | {cc.mean():+.0f}"
        )
    for k, name in enumerate(METHODS[1:], 1):
        for what, unit, values in (
            ("distance to the true surface", "mm", [row.surface for row in rows]),
            ("median error of volume", "cc", np.abs([row.volume for row in rows])),
        ):
            middle = np.median if unit == "cc" else np.mean
            ours, theirs = middle(np.asarray(values)[:, [0, k]], axis=0)
            compare(f"{title.split(',')[0]}: {what}", unit, ours, name, theirs)
    covered, perfect = (np.array([getattr(row, name) for row in rows]) for name in ("covered", "perfect"))
    for name, shares in (("normal error within 1.96 sd", covered), ("the same, perfect", perfect)):
        good = ((shares >= _GOOD[0]) & (shares <= _GOOD[1])).mean()
        low = np.percentile(shares, [5, 25, 50])
        print(
            f"{name}: mean {shares.mean():.1%}; {good:.0%} of predictions in 90-98 %, {(shares > 0.98).mean():.0%} "
            f"above, {(shares < 0.9).mean():.0%} below; 5th, 25th, 50th percentile "
            + ", ".join(f"{v:.0%}" for v in low)
        )
    print(
        "difference of the breasts | predictions | volume median: model, mirror | mirroring is nearer: volume, surface"
    )
    for low, high in _CLASSES:
        part = [row for row in rows if low <= row.difference < high]
        if not part:
            continue
        cc = np.abs([row.volume for row in part])
        surface = np.array([row.surface for row in part])
        label = f"{low:g} to {high:g} cc" if np.isfinite(high) else f"above {low:g} cc"
        compare(
            f"{title.split(',')[0]}: volume, difference of the breasts {label} ({len(part)} predictions)",
            "cc",
            float(np.median(cc[:, 0])),
            "mirror",
            float(np.median(cc[:, 1])),
        )
        print(
            f"{label:25s} | {len(part):11d} | {np.median(cc[:, 0]):13.0f}, {np.median(cc[:, 1]):.0f} | "
            f"{(cc[:, 1] < cc[:, 0]).mean():.0%}, {(surface[:, 1] < surface[:, 0]).mean():.0%}"
        )


def registered(folder: Path, n: int, seed: int, one_sided: int) -> tuple[Path, Path]:
    """Make and register a phantom cohort."""
    phantom, out = folder / "phantom", folder / "registered"
    write_cohort(phantom, n, seed, jobs=os.cpu_count() or 1, one_sided=one_sided)
    found = find_scans(phantom / "scans", phantom / "landmarks")
    register_batch(found, Recipe(default_template()), out)
    return out, phantom


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=40, help="subjects with two breasts of the own cohort")
    parser.add_argument("--one-sided", type=int, default=12, help="subjects after a mastectomy")
    parser.add_argument("--seed", type=int, default=2024)
    parser.add_argument("--registered", type=Path, help="registered folder of subjects with two breasts")
    parser.add_argument(
        "--one-registered",
        type=Path,
        nargs="+",
        default=[],
        help="registered folders of one-sided subjects",
    )
    parser.add_argument(
        "--one-phantom", type=Path, nargs="+", default=[], help="their phantom folders, for the truth"
    )
    parser.add_argument("--torsos", type=Path, help="folder of one-sided torsos with truth/")
    parser.add_argument("--torsos-registered", type=Path, help="their registered folder")
    parser.add_argument(
        "--earlier-registered", type=Path, help="registered folder of an earlier visit of these torsos"
    )
    parser.add_argument(
        "--whole-registered",
        type=Path,
        help="registered folder of these torsos with both breasts in the same pose: how far evidence moves",
    )
    parser.add_argument(
        "--unchanged", default="", help="ids of torsos with an earlier visit, with commas between"
    )
    parser.add_argument(
        "--left-out", type=int, default=40, help="subjects with two breasts to leave out, evenly chosen"
    )
    parser.add_argument("--evidence", choices=["points", "surface", "both", "none"], default="both")
    parser.add_argument(
        "--again",
        type=int,
        default=0,
        help="so many subjects with two breasts are operated here and registered again as one-sided scans",
    )
    parser.add_argument(
        "--figure", type=Path, help="PNG of three subjects after a mastectomy, with the truth"
    )
    parser.add_argument(
        "--pictures",
        type=Path,
        help="folder for a PNG of every torso, its prediction, truth and mirror image, from front, side and below",
    )
    parser.add_argument(
        "--drawn",
        action="store_true",
        help="as with a model that keeps nobody's data: calibrate on subjects drawn from it",
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        if arguments.registered:
            two, one, phantom = arguments.registered, arguments.one_registered, arguments.one_phantom
        else:
            two, made = registered(
                Path(temporary), arguments.n + arguments.one_sided, arguments.seed, arguments.one_sided
            )
            one, phantom = [two], [made]
        everybody = load_cohort(two)
        cohort = everybody.chosen(np.array([not side for side in everybody.absent]))
        model = build_model(cohort)
        subjects = training_shapes(model, None if arguments.drawn else cohort)
        print(
            f"model of {len(cohort)} subjects, {model.n_vertices:,} vertices; uncertainty from {subjects.source}"
        )
        show_times(model, cohort, subjects)
        kinds: list[Evidence] = ["points", "surface"]
        for evidence in kinds:
            if arguments.evidence not in (evidence, "both"):
                continue
            if arguments.drawn:
                show(f"Each fifth by the others, evidence: {evidence}", in_fifths(cohort, evidence))
                continue
            choice = fit_predictor(model, "right", evidence, None, subjects).choice
            title = f"Leave-one-out, evidence: {evidence} (noise {choice.noise:.1f} mm, mirror share "
            show(
                f"{title}{choice.mirror_share:g})",
                leave_one_out(model, cohort, evidence, arguments.left_out),
            )
        if arguments.again:
            registered_again(model, cohort, subjects, arguments.again)
        rows: list[Row] = []
        recognised = 0
        for folder, whole in zip(one, phantom, strict=True):
            some, flat = after_mastectomy(model, load_cohort(folder), whole, subjects, arguments.figure)
            rows, recognised = rows + some, recognised + flat
        if rows:
            show("After a mastectomy, evidence: surface", rows)
            show_lost("After a mastectomy", rows)
            print(f"recognised as flat by volume alone: {recognised} of {len(rows)}")
        if arguments.torsos is not None:
            found = torsos(
                model,
                load_cohort(arguments.torsos_registered),
                arguments.torsos,
                subjects,
                arguments.pictures,
            )
            show_lost("Torsos", found)
            if arguments.earlier_registered is not None:
                ours, theirs = np.mean(
                    by_earlier_scans(
                        model,
                        load_cohort(arguments.torsos_registered),
                        load_cohort(arguments.earlier_registered),
                        arguments.torsos,
                        [name for name in arguments.unchanged.split(",") if name],
                        subjects,
                    ),
                    axis=0,
                )
                compare("With an earlier scan: distance to the lost skin", "mm", ours, "mirror", theirs)
            if arguments.whole_registered is not None:
                registered_otherwise(
                    model, load_cohort(arguments.torsos_registered), load_cohort(arguments.whole_registered)
                )
        if rows or arguments.torsos is not None:
            print(
                "both breasts of the model's subjects and their mirror images, signed volume to the nearest skin: "
                f"{nearest_point_bias(model, cohort):+.0f} cc"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
