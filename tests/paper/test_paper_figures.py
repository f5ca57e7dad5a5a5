"""Figures made of pictures of meshes: masks, variation, samples, modes, edits and predictions."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import trimesh
from matplotlib.figure import Figure
from PIL import Image

from breastmorph.clinical.predictor import fit_predictor
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.paper.figures.applications import (
    EditedShape,
    EditedSubject,
    save_editing_grid,
    save_prediction_pairs,
)
from breastmorph.paper.figures.panels import cameras, levelled, mark_sides
from breastmorph.paper.figures.torsos import (
    mode_meanings,
    save_mask_contours,
    save_modes,
    save_random_samples,
    save_variation_maps,
)
from breastmorph.report.prediction_sheet import Example
from breastmorph.report.printing import house_style, save_figure
from breastmorph.report.render import Camera, View, round_end, visible_surface
from breastmorph.scan.scan import Landmarks
from drawn_figures import drawn_figures, require_legible

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_pdf")]

SVG = "{http://www.w3.org/2000/svg}"


def words(path):
    """Texts of a figure with their places, from left to right; the file is XML and its text is text."""
    root = ElementTree.fromstring(path.with_suffix(".svg").read_text())
    return sorted(
        (float(re.findall(r"-?[\d.]+", text.get("transform", ""))[-2] if text.get("x") is None else text.get("x")),
         "".join(text.itertext()))
        for text in root.iter(f"{SVG}text")
    )  # fmt: skip


def texts(path):
    return [text for _, text in words(path)]


def pixels(path):
    return np.asarray(Image.open(path.with_suffix(".png")).convert("RGB")).astype(float)


def pictures(path):
    root = ElementTree.fromstring(path.with_suffix(".svg").read_text())
    return len(list(root.iter(f"{SVG}image")))


def require_drawn(path, least=0.05):
    """Both files are there, and the PNG is neither blank nor full."""
    assert path.with_suffix(".svg").stat().st_size < 2_000_000
    share = (pixels(path) < 250).any(axis=2).mean()
    assert least < share < 0.95
    return share


@pytest.fixture(scope="module")
def model(breast_model):
    return breast_model.truncate(components=10)


@pytest.fixture(scope="module")
def example(model):
    shape = model.drawn(np.random.default_rng(4))
    return Example("subject", shape, fit_predictor(model, "left", "points").predict(shape), shape)


def left_only(model):
    """A model that varies on the patient's left breast only."""
    away = np.linalg.norm(model.mean - model.mean[model.landmark_ids["nipple_left"]], axis=1)
    field = np.zeros((model.n_vertices, 3))
    field[:, 2] = np.exp(-0.5 * (away / 30.0) ** 2)
    basis = field.reshape(-1, 1) / np.linalg.norm(field)
    return replace(
        model, basis=basis, variances=np.array([4e4]), noise_variance=0.0, training=None
    )  # some 10 mm at the nipple


def test_what_is_seen_is_what_rays_hit():
    sphere = trimesh.creation.icosphere(3, 100)
    ball = TriangleMesh(sphere.vertices, sphere.faces)
    camera = Camera.around(ball.vertices, View(yaw=30.0, pitch=20.0), (61, 47))
    seen = visible_surface(ball, camera)
    columns, rows = np.meshgrid(np.arange(61) + 0.5 - 30.5, 23.5 - np.arange(47) - 0.5)
    across = (columns.ravel() * camera.pixel + camera.centre[0])[:, None] * camera.axes[0]
    up = (rows.ravel() * camera.pixel + camera.centre[1])[:, None] * camera.axes[1]
    starts = across + up + 500.0 * camera.axes[2]
    faces, distance, _ = Surface(ball).first_hit(starts, np.broadcast_to(-camera.axes[2], starts.shape))
    hit = (faces >= 0).reshape(seen.hit.shape)
    assert (hit != seen.hit).sum() <= 4  # on the outline
    both = hit & seen.hit
    np.testing.assert_allclose(seen.depth[both], 500.0 - distance.reshape(hit.shape)[both], atol=1e-3)
    heights = seen.as_image(ball.vertices @ camera.axes[2])
    np.testing.assert_allclose(heights[both], seen.depth[both], atol=1e-6)
    assert np.isnan(heights[~seen.hit]).all()


@pytest.mark.parametrize(("yaw", "left_to_right"), [(0.0, "RL"), (45.0, "RL"), (-45.0, "RL"), (180.0, "LR")])
def test_sides_are_the_patients(yaw, left_to_right):
    axes = Figure().subplots()
    mark_sides(axes, View(yaw=yaw).axes())
    assert (
        "".join(t.get_text() for t in sorted(axes.texts, key=lambda t: t.get_position()[0])) == left_to_right
    )


def test_from_the_side_no_sides_are_marked():
    axes = Figure().subplots()
    mark_sides(axes, View(yaw=90.0).axes())
    assert not axes.texts


def test_cameras_share_their_scale_and_hold_all_shapes(model):
    small, large = 0.8 * model.mean, 1.1 * model.mean + 50.0
    found = cameras([(View(), [small]), (View(yaw=45.0), [large])], 1.0)
    assert found[0].pixel == found[1].pixel
    assert found[0].size[1] < found[1].size[1]
    for camera, shape in zip(found, (small, large), strict=True):
        places = camera.project(shape)[:, :2]
        assert (places > 0).all()
        assert (places < camera.size).all()
    level = cameras([(View(), [small]), (View(yaw=45.0), [large])], 1.0, one_height=True)
    assert level[0].size == level[1].size == found[1].size


def test_a_tilted_shape_is_levelled_without_changing_its_size(model):
    turn = View(yaw=20.0, pitch=15.0).axes()
    tilted = model.mean @ turn.T + 30.0
    (upright,) = levelled([tilted], model.mean)
    np.testing.assert_allclose(upright, model.mean, atol=1e-6)
    assert levelled([tilted], None)[0] is tilted


@pytest.mark.parametrize(
    ("most", "end"), [(0.0, 1.0), (0.9, 1.0), (11.0, 15.0), (25.0, 30.0), (100.0, 100.0)]
)
def test_colours_end_at_round_numbers(most, end):
    assert round_end(np.array([0.0, -most, np.nan, most]), 1.0) == pytest.approx(end)


def test_masks_of_three_kinds(tmp_path, breast_template):
    template = breast_template
    save_mask_contours(tmp_path / "masks", template.mesh, template.landmarks)
    require_drawn(tmp_path / "masks")
    found = texts(tmp_path / "masks")
    assert sum("function" in text or "ellipsoid" in text for text in found) == 3
    sides = [text for text in found if text in "LR"]
    assert sides == ["R", "L"] * 3  # the patient's left is on the viewer's right
    assert "50 mm" in found


def test_masks_need_landmarks(tmp_path, breast_template):
    mesh = breast_template.mesh
    with pytest.raises(LandmarkProblem, match="sternal_notch"):
        save_mask_contours(tmp_path / "masks", mesh, Landmarks((), np.zeros((0, 3))))
    assert not list(tmp_path.iterdir())


def test_variation_lies_where_it_is_and_says_so(tmp_path, model):
    save_variation_maps(tmp_path / "map", {"one side": left_only(model)})
    require_drawn(tmp_path / "map")
    rgb = pixels(tmp_path / "map")
    front = rgb[:, : int(rgb.shape[1] * 0.40)]
    strong = (front[..., 2] > front[..., 0] + 60) & (front.sum(axis=2) < 380)  # dark blue: far
    covered = (front < 250).any(axis=2)
    assert strong.sum() > 50
    assert np.nonzero(strong)[1].mean() > np.nonzero(covered)[1].mean() + 20
    (caption,) = [text for text in texts(tmp_path / "map") if text.startswith("breast ")]
    inside, outside = map(float, re.findall(r"[\d.]+(?= mm)", caption))
    assert inside > 3 * outside


def test_variation_of_part_of_a_model_without_landmarks_has_no_border(tmp_path, model):
    part = model.marginal(np.flatnonzero(model.mean[:, 1] > np.median(model.mean[:, 1])))
    save_variation_maps(
        tmp_path / "map",
        {"foreign": replace(part, landmark_ids={}), "whole": replace(model, landmark_ids={})},
    )
    require_drawn(tmp_path / "map")
    assert not any(text.startswith("breast ") for text in texts(tmp_path / "map"))


def test_models_that_are_compared_share_their_colours(tmp_path, model):
    wild = replace(model, variances=9.0 * model.variances)
    save_random_samples(tmp_path / "one", {"calm": model, "wild": wild}, count=3)
    save_random_samples(tmp_path / "other", {"wild": wild, "calm": model}, count=3)
    numbers = [
        {text for text in texts(tmp_path / name) if re.fullmatch(r"[≥ ]*\d+", text)}
        for name in ("one", "other")
    ]
    assert numbers[0] == numbers[1]
    assert sum("(mm)" in text for text in texts(tmp_path / "one")) == 1
    green = pixels(tmp_path / "one")[:, :-220, 0]  # little red where the distance is large
    covered = green < 250
    middle = len(green) // 2
    calm, wild_rows = (green[rows][covered[rows]].mean() for rows in (slice(middle), slice(middle, None)))
    assert wild_rows < calm - 12


def test_samples_unlike_people_are_marked(tmp_path, model, monkeypatch):
    seen = drawn_figures(monkeypatch)
    wild = replace(model, variances=100.0 * model.variances, training=model.training)
    save_random_samples(tmp_path / "samples", {"calm": model, "wild": wild}, count=5)
    rows = list(csv.DictReader((tmp_path / "samples.csv").open()))
    levels = {name: [row["level"] for row in rows if row["model"] == name] for name in ("calm", "wild")}
    assert levels["wild"].count("implausible") >= 4
    assert levels["calm"].count("implausible") == 0
    told = [text for text in texts(tmp_path / "samples") if "unlike people" in text]
    assert len(told) == levels["wild"].count("implausible")
    require_legible(seen[0])


def test_modes_from_three_sides_with_what_they_mean(tmp_path, model, monkeypatch):
    seen = drawn_figures(monkeypatch)
    meanings = mode_meanings(model, 4)
    save_modes(tmp_path / "modes", model, meanings)
    require_drawn(tmp_path / "modes")
    require_legible(seen[0])
    found = texts(tmp_path / "modes")
    assert pictures(tmp_path / "modes") == 2 * 3 * 4 + 1
    assert found.count("front") == found.count("oblique") == found.count("side") == 2
    assert [one.share for one in meanings] == sorted((one.share for one in meanings), reverse=True)
    assert [text for text in found if text in "LR"].count("L") == 2 * 2 * 4  # not from the side


def test_a_mode_that_lengthens_one_side_says_so(model):
    (one,) = mode_meanings(left_only(model), 1)
    low, high = one.measures["SN-N"]
    assert abs(high[0] - low[0]) > 2.0
    assert high[1] == pytest.approx(low[1], abs=0.3)  # the right side stays
    assert any("left minus right" in line for line in one.lines())


def test_skin_that_turns_inside_out_is_counted(model):
    wild = left_only(model)
    away = np.linalg.norm(model.mean - model.mean[model.landmark_ids["nipple_left"]], axis=1)
    field = np.zeros((model.n_vertices, 3))
    field[away < 25.0, 0] = 1.0  # skin slides over its own neighbours
    basis = field.reshape(-1, 1) / np.linalg.norm(field)
    wild = replace(wild, basis=basis, variances=np.array([4e5]))
    assert sum(mode_meanings(left_only(model), 1)[0].inside_out) == 0
    assert sum(mode_meanings(wild, 1)[0].inside_out) > 0


def test_a_model_with_one_mode_or_without_landmarks(tmp_path, model):
    bare = replace(model.truncate(components=1), landmark_ids={}, variances=np.zeros(1))
    save_modes(tmp_path / "modes", bare, mode_meanings(bare))
    require_drawn(tmp_path / "modes")
    assert [text for text in texts(tmp_path / "modes") if text.startswith("mode ")] == ["mode 1"]
    assert not any("SN-N" in text for text in texts(tmp_path / "modes"))


def test_a_model_without_modes_is_refused(tmp_path, model):
    with pytest.raises(BreastMorphError, match="no components"):
        save_modes(tmp_path / "modes", model, [])
    with pytest.raises(BreastMorphError, match="nothing"):
        save_random_samples(tmp_path / "samples", {})


def test_edits_with_their_distances_in_cm(tmp_path, model):
    before = model.mean
    longer = before.copy()
    nipple = model.landmark_ids["nipple_left"]
    notch = before[model.landmark_ids["sternal_notch"]]
    way = before[nipple] - notch
    longer[nipple] += 20.0 * way / np.linalg.norm(way)
    edited = [EditedShape("SN-NL +2 cm", longer, ("SN-NL",)), EditedShape("SN-NR", None, ("SN-NR",))]
    subjects = [EditedSubject(label, before, edited) for label in ("subject A", "subject B")]
    save_editing_grid(tmp_path / "edits", subjects, model.faces, model.landmark_ids)
    require_drawn(tmp_path / "edits")
    found = texts(tmp_path / "edits")
    length = np.linalg.norm(way) / 10.0
    assert found.count(f"{length + 2.0:.1f}") >= 2
    assert found.count("not attainable") == 2
    assert found.count("SN-NL (cm)") == 2


def test_edits_need_the_ends_of_their_distances(tmp_path, model):
    subject = EditedSubject("subject", model.mean, [])
    with pytest.raises(LandmarkProblem, match="nipple_left, nipple_right, sternal_notch"):
        save_editing_grid(tmp_path / "edits", [subject], model.faces, {})
    uneven = EditedSubject("other", model.mean, [EditedShape("x", model.mean)])
    with pytest.raises(BreastMorphError, match="numbers of edits"):
        save_editing_grid(tmp_path / "edits", [subject, uneven], model.faces, model.landmark_ids)


def test_predictions_beside_the_truth(tmp_path, model, example):
    save_prediction_pairs(tmp_path / "pairs", [example, replace(example, label="other")], model.mean)
    require_drawn(tmp_path / "pairs")
    found = texts(tmp_path / "pairs")
    assert pictures(tmp_path / "pairs") == 2 * 5 + 1
    for title in ("missing", "predicted", "truth", "standard deviation", "mirrored"):
        assert title in found
    assert sum("off the truth" in text for text in found) == 4
    rgb = pixels(tmp_path / "pairs")
    first = rgb[: len(rgb) // 2, : rgb.shape[1] // 5]
    red = (first[..., 0] > first[..., 1] + 90) & (first[..., 0] > first[..., 2] + 90)
    covered = (first < 250).any(axis=2)
    assert np.nonzero(red)[1].mean() > np.nonzero(covered)[1].mean() + 10  # the left breast, on the right


def test_predictions_without_truth(tmp_path, example):
    save_prediction_pairs(tmp_path / "pairs", [replace(example, truth=None)])
    assert pictures(tmp_path / "pairs") == 4 + 1
    assert "truth" not in texts(tmp_path / "pairs")


def test_the_same_values_give_the_same_pdf_and_other_files(tmp_path, model):
    for folder in ("first", "second"):
        save_modes(tmp_path / folder / "modes", model, mode_meanings(model, 2))
        save_variation_maps(tmp_path / folder / "map", {"model": model})
    for file in ("modes.svg", "modes.png", "modes.csv", "map.svg", "map.pdf", "map.csv"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


def test_dollar_signs_in_a_name_make_no_formula(tmp_path):
    name = r"P$1 \b{$ x_y"
    figure = Figure(figsize=(4, 1))
    figure.text(0.1, 0.5, name)
    with house_style():
        save_figure(figure, tmp_path / "named", ("svg",))
    save_figure(figure, tmp_path / "named", ("png",), dpi=50)
    assert name in texts(tmp_path / "named")
    assert Image.open(tmp_path / "named.png").size == (200, 50)
