from __future__ import annotations

import numpy as np
import pytest
import trimesh
from PIL import Image

from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.report.render import INSIDE, Marker, View, colormap, render, save_picture_grid

RED = (1.0, 0.0, 0.0)


@pytest.fixture(scope="module")
def ball():
    sphere = trimesh.creation.icosphere(4, 100)
    return TriangleMesh(sphere.vertices, sphere.faces)


def covered(picture):
    return (picture < 250).any(axis=2)


def reddish(picture):
    return (picture[..., 0] > 200) & (picture[..., 1] < 60)


def test_a_ball_is_a_disc_of_the_right_area(ball):
    picture = render(ball, size=(200, 200))
    radius = 100 / (200 * 1.04 / 200)  # pixels
    assert covered(picture).sum() == pytest.approx(np.pi * radius**2, rel=0.02)


def test_the_patients_left_is_on_the_right_of_the_picture(ball):
    picture = render(ball, size=(200, 200), markers=[Marker(np.array([60.0, 0.0, 80.0]), RED)])
    _, columns = np.nonzero(reddish(picture))
    assert columns.mean() > 120


def test_yaw_45_shows_the_patients_left_side(ball):
    marker = Marker(np.array([100 * np.sin(np.radians(45)), 0.0, 100 * np.cos(np.radians(45))]), RED)
    rows, columns = np.nonzero(reddish(render(ball, View(yaw=45), size=(200, 200), markers=[marker])))
    assert abs(columns.mean() - 99.5) < 2
    assert abs(rows.mean() - 99.5) < 2


def test_positive_pitch_looks_from_above(ball):
    marker = Marker(np.array([0.0, 100.0, 0.0]), RED)
    rows, _ = np.nonzero(reddish(render(ball, View(pitch=80), size=(200, 200), markers=[marker])))
    assert abs(rows.mean() - 100) < 25


def test_a_marker_behind_the_surface_is_hidden(ball):
    assert not reddish(
        render(ball, size=(200, 200), markers=[Marker(np.array([0.0, 0.0, -100.0]), RED)])
    ).any()


def test_the_inside_has_its_own_colour(ball):
    front = render(ball, size=(60, 60))
    inside = render(ball.flipped(), size=(60, 60))
    assert front[30, 30, 0] > front[30, 30, 2] + 20
    assert inside[30, 30, 2] >= inside[30, 30, 0]
    assert max(INSIDE) < 0.6


def test_colours_follow_the_map():
    colours = colormap(np.array([-1.0, 0.0, 1.0, 9.0]), -1.0, 1.0)
    assert colours[0][2] > colours[0][0]
    assert colours[2][0] > colours[2][2]
    assert np.array_equal(colours[2], colours[3])


def test_a_grid_shows_every_picture_with_its_caption(ball, tmp_path):
    pictures = [render(ball, size=(60, 50)) for _ in range(3)]
    save_picture_grid(pictures, ["a", "b", "c"], tmp_path / "new" / "grid.png", columns=2)
    grid = np.asarray(Image.open(tmp_path / "new" / "grid.png"))
    assert grid.shape == (2 * (50 + 22), 2 * 60, 3)
    cells = grid.reshape(2, 72, 2, 60, 3).swapaxes(1, 2).reshape(4, 72, 60, 3)
    for cell in cells[:3]:
        assert covered(cell[:50]).mean() > 0.3
        assert covered(cell[50:]).any()
    assert not covered(cells[3]).any()
