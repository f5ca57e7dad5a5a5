"""Skin: carried by correspondence, made up where nobody saw it, mirrored where a breast is predicted."""

import json
import shutil
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from breastmorph.cli import main
from breastmorph.evaluation.truth import load_tie, load_truth
from breastmorph.mesh.closest import Surface, SurfacePoints
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.skin import MADE_UP, SEEN, baked, borrowed, carried, filled, rgb_at, skin_of, to_lab
from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh
from breastmorph.model.demo_model import demo_model
from breastmorph.model.files import save_model
from breastmorph.phantom import write_cohort
from breastmorph.template import default_template


def sheet(n, size=100.0):
    """A flat square that faces +z, with its corner at the origin."""
    x, y = np.meshgrid(np.linspace(0, size, n), np.linspace(0, size, n), indexing="ij")
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = np.concatenate(
        [np.stack([corner, corner + n, corner + 1], 1), np.stack([corner + 1, corner + n, corner + n + 1], 1)]
    )
    return TriangleMesh(np.stack([x, y, 0 * x], axis=-1).reshape(-1, 3), faces)


def ramp(points):
    """Colours that change evenly: red with x, green with y."""
    return np.column_stack([40 + points[:, 0], 60 + points[:, 1], np.full(len(points), 90.0)])


def painted(mesh):
    """The same ramp as a picture of the sheet, its middles of pixels where they belong."""
    middle = (np.arange(200) + 0.5) / 2
    levels = np.zeros((200, 200, 3), np.uint8)
    levels[..., 0], levels[..., 1], levels[..., 2] = 40 + middle[None, :], 60 + middle[::-1, None], 90
    file = BytesIO()
    Image.fromarray(levels).save(file, "PNG")
    return replace(mesh, texture=Texture(mesh.vertices[:, :2][mesh.faces] / 100.0, file.getvalue()))


@pytest.mark.parametrize("how", ["vertices", "picture", "white vertices and a picture"])
def test_a_shape_takes_the_colour_of_the_scan_under_it(how):
    scan, shape = sheet(21), sheet(33)
    shape = shape.with_vertices(0.9 * shape.vertices + [5, 5, 1.5])
    if how == "vertices":
        scan = replace(scan, colors=skin_of(ramp(scan.vertices), np.ones(scan.n_vertices, bool)))
    else:
        scan = painted(scan)
    if how.startswith("white"):
        scan = replace(scan, colors=np.full((scan.n_vertices, 4), 255, np.uint8))
    found = carried(shape, Surface(scan))
    assert np.abs(found[:, :3] - ramp(shape.vertices)).max() <= 1.0
    assert (found[:, 3] == SEEN).all()


def test_a_scan_without_colour_has_none_to_give():
    assert carried(sheet(9), Surface(sheet(21))) is None
    broken = replace(sheet(21), texture=Texture(np.zeros((800, 3, 2)), b"no picture"))
    assert carried(sheet(9), Surface(broken)) is None


def test_what_the_scan_does_not_show_is_made_up_smoothly_and_marked():
    scan, shape = sheet(41), sheet(41)
    scan = replace(scan, colors=skin_of(ramp(scan.vertices), np.ones(scan.n_vertices, bool)))
    x, y = scan.vertices[:, 0], scan.vertices[:, 1]
    hole = (np.abs(x - 50) < 15) & (np.abs(y - 50) < 15)
    inner = (x > 0) & (x < 100) & (y > 0) & (y < 100)
    found = carried(shape, Surface(scan.kept(~hole[scan.faces].any(axis=1))))
    made_up = found[:, 3] == MADE_UP
    assert made_up[hole].all()
    assert not made_up[inner & ~((np.abs(x - 50) < 20) & (np.abs(y - 50) < 20))].any()
    assert (
        np.abs(found[hole, :3] - ramp(shape.vertices)[hole]).max() < 3.0
    )  # a ramp is its own smooth filling
    turned = carried(shape.flipped(), Surface(scan))
    assert turned is None  # the back of the skin shows nothing


def test_a_piece_that_nobody_saw_gets_the_mean():
    two = np.concatenate([sheet(5).faces, sheet(5).faces + 25])
    known = np.arange(50) < 25
    values = np.where(known[:, None], np.linspace(0, 10, 50)[:, None], 99.0)
    assert np.allclose(filled(two, values, known)[25:], values[:25].mean())


def test_borrowed_skin_has_no_seam_and_keeps_its_marks():
    mesh = sheet(41)
    x, y = mesh.vertices[:, 0], mesh.vertices[:, 1]
    region = (np.abs(x - 50) < 30) & (np.abs(y - 50) < 30)
    spot = (np.hypot(x - 50, y - 50) < 8)[:, None] * np.array([-40.0, -50.0, -30.0])
    skin = skin_of(np.full((len(x), 3), 200.0) - 0.3 * x[:, None], np.ones(len(x), bool))
    found = borrowed(mesh.faces, skin, np.full((len(x), 3), 150.0) + spot, region)
    assert np.array_equal(found[~region], skin[~region])
    assert (found[region, 3] == MADE_UP).all()
    plain = skin[:, :3] + spot  # the mark, on her own tone
    assert np.abs(found[region, :3] - plain[region]).max() < 2.5


@pytest.mark.slow
def test_colour_through_register_edit_and_predict(tmp_path):
    """By truth: every vertex has the colour that the scan has where this skin truly is."""
    write_cohort(tmp_path / "ph", 1, seed=12, colour=True)
    shutil.copytree(tmp_path / "ph", tmp_path / "bare")
    grey = tmp_path / "bare" / "scans" / "000.ply"
    save_mesh(replace(load_mesh(grey), colors=None), grey)
    run = CliRunner()

    def ran(*words):
        done = run.invoke(main, [str(one) for one in words], catch_exceptions=False)
        assert done.exit_code == 0, done.output

    for name in ("ph", "bare"):
        ran("register", tmp_path / name / "scans", "--landmarks", tmp_path / name / "landmarks",
            "--out", tmp_path / f"{name}-out", "--jobs", 1)  # fmt: skip
    whole = tmp_path / "ph-out" / "registered" / "000.ply"
    skin, plain = load_mesh(whole), load_mesh(tmp_path / "bare-out" / "registered" / "000.ply")
    assert plain.colors is None
    assert np.array_equal(plain.vertices, skin.vertices)  # colour does not move anything
    record = json.loads(whole.with_suffix(".json").read_text())
    assert record["skin_seen"] == pytest.approx((skin.colors[:, 3] == SEEN).mean(), abs=1e-3)

    scan = load_mesh(tmp_path / "ph" / "scans" / "000.ply")
    tie = load_tie(tmp_path / "ph" / "truth", default_template())
    truth = load_truth(tmp_path / "ph" / "truth" / "000.npz", tie)
    true = np.rint(rgb_at(scan, Surface(scan).closest(truth.points))).astype(np.uint8)
    off = np.linalg.norm(to_lab(skin.colors[:, :3]) - to_lab(true), axis=1)
    seen = truth.visible & (skin.colors[:, 3] == SEEN)
    assert (skin.colors[truth.visible, 3] == SEEN).mean() > 0.97
    assert (skin.colors[~truth.visible, 3] == MADE_UP).mean() > 0.5
    tone = np.linalg.norm(
        to_lab(true) - to_lab(true)[seen].mean(axis=0), axis=1
    )  # what one even colour would miss
    for part in (seen, seen & truth.breast):
        assert np.median(off[part]) < min(2.0, 0.7 * np.median(tone[part]))
    nipple = truth.points[default_template().landmark_ids["nipple_left"]]
    areola = np.linalg.norm(truth.points - nipple, axis=1) < 15.0
    assert np.median(off[areola]) < 1.2

    save_model(demo_model(), tmp_path / "model.h5")
    model = tmp_path / "model.h5"
    ran(
        "edit",
        model,
        "--registered",
        whole,
        "--set",
        "volume-left=+60cc",
        "--out",
        tmp_path / "edited",
        "--no-sheet",
    )
    for name in ("edited.ply", "edited.obj"):
        assert np.array_equal(load_mesh(tmp_path / "edited" / name).colors[:, :3], skin.colors[:, :3])
    ran("predict", model, whole, "--missing", "left", "--replace", "--out", tmp_path / "predicted", "--no-sheet",
        "--samples", 1)  # fmt: skip
    with np.load(tmp_path / "predicted" / "uncertainty.npz") as parts:
        missing = parts["missing"]
    predicted = load_mesh(tmp_path / "predicted" / "prediction.ply").colors
    assert np.array_equal(predicted[~missing], skin.colors[~missing])
    assert (predicted[missing, 3] == MADE_UP).all()
    twin = skin.colors[default_template().mirror]
    # Her own left breast, which the prediction did not look at, has the tone and the areola of the right one.
    errors = [
        np.linalg.norm(to_lab(one[missing, :3]) - to_lab(skin.colors[missing, :3]), axis=1)
        for one in (predicted, twin)
    ]
    assert np.median(errors[0]) < min(4.0, np.median(errors[1]) + 0.5)
    for name in ("mirrored.ply", "samples/sample_1.ply", "prediction.obj"):
        assert np.array_equal(load_mesh(tmp_path / "predicted" / name).colors[:, :3], predicted[:, :3])


def test_a_baked_picture_shows_the_scans_skin_and_mixes_no_neighbours_in(tmp_path):
    scan, shape = painted(sheet(21)), sheet(12)
    shape = shape.with_vertices(0.9 * shape.vertices + [5, 5, 1.5])
    foreign = shape.vertices[:, 0] > 80  # of another side: the scan is not asked there
    skin = skin_of(np.where(foreign[:, None], 200.0, ramp(shape.vertices)), ~foreign)
    done: list[float] = []
    texture = baked(shape, skin, Surface(scan), ~foreign, done.append)
    assert done == [0.0]
    save_mesh(replace(shape, texture=texture), tmp_path / "skin.obj")
    found = load_mesh(tmp_path / "skin.obj")
    assert np.array_equal(found.faces, shape.faces)
    rng = np.random.default_rng(3)
    face = rng.integers(len(shape.faces), size=4000)
    weights = rng.dirichlet(np.ones(3), len(face))
    points = np.einsum("kc,kcd->kd", weights, shape.vertices[shape.faces[face]])
    seen = rgb_at(found, SurfacePoints(points, np.zeros(len(face)), face, weights, np.zeros(len(face), bool)))
    own = ~foreign[shape.faces[face]].any(axis=1)
    assert np.abs(seen[own] - ramp(points[own])).max() <= 2.0  # levels, also at the edges of triangles
    whole = foreign[shape.faces[face]].all(axis=1)
    assert whole.any()
    assert np.abs(seen[whole] - 200.0).max() <= 0.5
    with Image.open(BytesIO(found.texture.image)) as picture:
        assert max(picture.size) < 200
