from __future__ import annotations

import numpy as np
import pytest

from breastmorph.foundation.errors import MeshProblem
from breastmorph.mesh.closest import Geodesics, insert_points, near_lines
from breastmorph.mesh.topology import is_manifold
from breastmorph.mesh.triangle_mesh import TriangleMesh
from torso import torso


def cylinder(radius=100.0, length=300.0):
    """An open cylinder: it unrolls, so its geodesics are known."""
    angles = np.linspace(0, np.pi, 160)
    heights = np.linspace(0, length, 80)
    a, h = (g.ravel() for g in np.meshgrid(angles, heights))
    k = (np.arange(79)[:, None] * 160 + np.arange(159)).ravel()
    faces = np.concatenate([np.column_stack([k, k + 1, k + 161]), np.column_stack([k, k + 161, k + 160])])
    return TriangleMesh(np.column_stack([radius * np.cos(a), h, radius * np.sin(a)]), faces)


def on_cylinder(angle, height, radius=100.0):
    return np.array([radius * np.cos(angle), height, radius * np.sin(angle)])


def test_distance_on_a_cylinder_is_that_of_the_unrolled_sheet():
    rng = np.random.default_rng(0)
    angles, heights = rng.uniform(0.1, 3.0, 12), rng.uniform(5, 295, 12)
    geodesics = Geodesics(
        cylinder(), np.array([on_cylinder(*at) for at in zip(angles, heights, strict=True)])
    )
    for i, j in ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9), (10, 11)):
        expected = np.hypot(100 * (angles[i] - angles[j]), heights[i] - heights[j])
        assert geodesics.distance(i, j) == pytest.approx(expected, rel=2e-4)


def test_points_need_not_be_vertices_and_may_share_a_face():
    mesh = cylinder()
    corner = mesh.vertices[mesh.faces[5000]]
    points = np.array([w @ corner for w in ([0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.31, 0.35, 0.34])])
    refined, ids = insert_points(mesh, np.concatenate([points, corner[:1]]))
    assert np.abs(refined.vertices[ids[:3]] - points).max() < 1e-6
    assert ids[3] == mesh.faces[5000][0]
    assert is_manifold(refined.faces)
    geodesics = Geodesics(mesh, points)
    assert geodesics.distance(0, 1) == pytest.approx(np.linalg.norm(points[0] - points[1]), rel=1e-3)


def test_it_goes_around_a_hole():
    mesh, landmarks = torso()
    across = ("nipple_left", "nipple_right")
    whole = Geodesics(mesh, landmarks.array(across)).distance(0, 1)
    centre = mesh.vertices[mesh.faces].mean(axis=1)
    holed = mesh.kept(np.linalg.norm(centre - landmarks["xiphoid"] - [0, 15, 0], axis=1) > 30)
    assert Geodesics(holed, landmarks.array(across)).distance(0, 1) > whole + 1.0


def test_a_line_is_found_in_the_part_of_the_mesh_near_it():
    mesh, landmarks = torso()
    ends = landmarks.array(("nipple_left", "lower_pole_left"))
    length = Geodesics(mesh, ends).distance(0, 1)
    part = near_lines(mesh, ends[:1], ends[1:], np.array([1.2 * length]))
    assert part.n_faces < mesh.n_faces / 4
    assert Geodesics(part, ends).distance(0, 1) == pytest.approx(length, rel=1e-9)
    assert near_lines(mesh, ends[:1], ends[1:], np.zeros(1)).n_faces == mesh.n_faces


def test_corners_that_only_touch_are_no_way_and_no_obstacle():
    sheet = np.array([[0, 0, 0], [2, 0, 0], [2, 2, 0], [0, 2, 0], [4, 2, 0], [4, 4, 0], [2, 4, 0]], float)
    faces = np.array([[0, 1, 2], [0, 2, 3], [2, 4, 5], [2, 5, 6]])
    geodesics = Geodesics(TriangleMesh(sheet, faces), np.array([[0.0, 1, 0], [1.5, 0.5, 0], [3.5, 3, 0]]))
    assert geodesics.distance(0, 1) == pytest.approx(np.hypot(1.5, 0.5))
    with pytest.raises(MeshProblem, match="not joined"):
        geodesics.distance(1, 2)


def test_same_point_twice_is_distance_zero():
    geodesics = Geodesics(cylinder(), np.array([on_cylinder(1.0, 50.0)] * 2))
    assert geodesics.distance(0, 1) == 0.0
