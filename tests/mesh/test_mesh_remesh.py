"""Remeshing: even triangles, the same surface, borders and chosen vertices where they were."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from breastmorph.foundation.errors import MeshProblem
from breastmorph.mesh.closest import Surface, clip, closest_on_segments, insert_points
from breastmorph.mesh.geometry import (
    Plane,
    Similarity,
    decimate,
    edge_lengths,
    face_angles,
    face_areas,
    face_normals,
    rotation_about,
    vertex_normals,
)
from breastmorph.mesh.halves import fill_holes, half_with_count, smoothed, symmetry_plane, whole_of_half
from breastmorph.mesh.remeshing import isotropic, thinned
from breastmorph.mesh.topology import boundary_loops, edge_table, face_components, is_manifold
from breastmorph.mesh.triangle_mesh import TriangleMesh
from torso import torso


def rectangle(width: float = 40.0, height: float = 30.0, n: int = 13, noise: float = 0.3) -> TriangleMesh:
    """A flat sheet (x 0..width, y 0..height, facing +z) of irregular triangles."""
    u, v = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    inside = (u > 0) & (u < 1) & (v > 0) & (v < 1)
    shake = np.random.default_rng(3).uniform(-noise, noise, (2, n, n)) / (n - 1) * inside
    points = np.column_stack(
        [(u + shake[0]).ravel() * width, (v + shake[1]).ravel() * height, np.zeros(n * n)]
    )
    a = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = [np.column_stack([a, a + 1, a + n + 1]), np.column_stack([a, a + n + 1, a + n])]
    return TriangleMesh(points, np.concatenate(faces))


def area(mesh: TriangleMesh) -> float:
    return float(face_areas(mesh.vertices, mesh.faces).sum())


def border_gap(one: TriangleMesh, other: TriangleMesh) -> float:
    def gap(a: TriangleMesh, b: TriangleMesh) -> float:
        points = a.vertices[edge_table(a.faces).boundary[:, 0]]
        found = closest_on_segments(points, b.vertices[edge_table(b.faces).boundary])
        return float(np.linalg.norm(points - found, axis=1).max())

    return max(gap(one, other), gap(other, one))


@pytest.mark.parametrize("edge", [pytest.param(1.2, marks=pytest.mark.slow), 2.5, 6.0])
def test_isotropic_flat_sheet_keeps_its_shape(edge):
    mesh = rectangle()
    made, _ = isotropic(mesh, edge)
    assert is_manifold(made.faces)
    assert (face_normals(made.vertices, made.faces)[:, 2] > 0.999).all()
    # All four corners and straight sides kept: the area can only agree to rounding if the border does.
    assert area(made) == pytest.approx(40.0 * 30.0, rel=1e-9)
    assert edge_lengths(made.vertices, made.faces).mean() == pytest.approx(edge, rel=0.12)
    assert np.degrees(face_angles(made.vertices, made.faces)).min() > 20


@pytest.mark.slow
@pytest.mark.parametrize("edge", [8.0, 20.0])
def test_isotropic_stays_on_a_curved_surface_and_its_border(edge):
    mesh, _ = torso(edge=12.0)
    made, _ = isotropic(mesh, edge)
    assert is_manifold(made.faces)
    assert face_components(made.faces).max() == 0
    assert len(boundary_loops(made.faces)) == 1
    assert Surface(mesh).closest(made.vertices).distances.max() < 1e-6
    assert border_gap(made, mesh) < 0.15 * edge
    angles = np.degrees(face_angles(made.vertices, made.faces)).min(axis=1)
    assert (angles > 25).mean() > 0.99


@pytest.mark.slow
def test_isotropic_scales_with_the_unit():
    mesh, _ = torso(edge=30.0)
    here, _ = isotropic(mesh, 30.0)
    there, _ = isotropic(mesh.with_vertices(mesh.vertices * 0.001), 0.03)
    assert there.n_vertices == pytest.approx(here.n_vertices, rel=0.02)
    assert edge_lengths(there.vertices, there.faces).mean() * 1000 == pytest.approx(
        edge_lengths(here.vertices, here.faces).mean(), rel=0.01
    )


def test_isotropic_keeps_fixed_vertices():
    mesh, landmarks = torso(edge=24.0)
    mesh, ids = insert_points(mesh, landmarks.points)
    made, places = isotropic(mesh, 22.0, fixed=ids)
    np.testing.assert_array_equal(made.vertices[places], landmarks.points)


def test_isotropic_refuses_what_is_not_a_surface():
    mesh = rectangle(n=4)
    with pytest.raises(MeshProblem, match="manifold"):
        isotropic(TriangleMesh(mesh.vertices, np.concatenate([mesh.faces, mesh.faces[:1]])), 5.0)


def test_decimate_reaches_the_number_and_holds_the_border():
    mesh, _ = torso(edge=6.0)
    made = decimate(mesh, 500)
    assert abs(made.n_vertices - 500) <= 3
    assert border_gap(made, mesh) < 2.0
    assert decimate(mesh, mesh.n_vertices) is mesh


def test_clip_divides_a_surface_without_loss():
    mesh, _ = torso(edge=9.0)
    values = mesh.vertices[:, 0] + 0.3 * mesh.vertices[:, 1] - 7.0
    one, other = clip(mesh, values), clip(mesh, -values)
    assert area(one) + area(other) == pytest.approx(area(mesh), rel=1e-12)
    assert (one.vertices @ [1.0, 0.3, 0.0] - 7.0).min() > -1e-9
    assert is_manifold(one.faces)
    through_vertices = clip(rectangle(noise=0.0), rectangle(noise=0.0).vertices[:, 0] - 20.0)
    assert area(through_vertices) == pytest.approx(600.0)


def test_inserted_points_are_vertices_wherever_they_fall():
    mesh = rectangle(noise=0.0)
    points = np.array(
        [[0.0, 11.3, 0.0], mesh.vertices[40], [7.7, 8.1, 0.0], [7.71, 8.1, 0.0], [20.0, 1.0, 0.0]]
    )
    made, ids = insert_points(mesh, points)
    np.testing.assert_array_equal(made.vertices[ids], points)
    assert is_manifold(made.faces)
    assert area(made) == pytest.approx(area(mesh))
    assert face_areas(made.vertices, made.faces).min() > 1e-9


def test_holes_are_filled_and_the_outer_border_is_not():
    mesh = rectangle()
    centre = mesh.vertices[mesh.faces].mean(axis=1)
    holes = (np.hypot(centre[:, 0] - 12, centre[:, 1] - 14) < 6) | (
        np.hypot(*(centre[:, :2] - [30, 20]).T) < 4
    )
    made, n_old = fill_holes(mesh.kept(~holes))
    assert n_old == (~holes).sum()
    assert len(boundary_loops(made.faces)) == 1
    assert is_manifold(made.faces)
    assert area(made) == pytest.approx(area(mesh))  # flat holes have flat fillings
    assert (face_normals(made.vertices, made.faces)[:, 2] > 0.99).all()


def test_smoothing_takes_noise_but_not_size():
    mesh, _ = torso(edge=7.0)
    ones = np.ones(mesh.n_vertices)
    calm = smoothed(mesh.vertices, mesh.faces, ones, 45.0)
    noise = np.random.default_rng(1).normal(0, 0.5, (mesh.n_vertices, 1))
    noisy = mesh.vertices + noise * vertex_normals(mesh.vertices, mesh.faces)
    made = smoothed(noisy, mesh.faces, ones, 45.0)
    surface = Surface(mesh.with_vertices(calm))
    assert np.linalg.norm(calm - mesh.vertices, axis=1).mean() < 0.3
    assert surface.closest(made).distances.mean() < 0.4 * np.abs(noise).mean()
    assert area(mesh.with_vertices(calm)) == pytest.approx(area(mesh), rel=0.005)
    flat = rectangle()
    np.testing.assert_allclose(
        smoothed(flat.vertices, flat.faces, np.ones(169), 50.0), flat.vertices, atol=1e-6
    )


def test_fairing_continues_the_surroundings():
    # A bowl with a dent; where the dent has no weight the bowl comes back.
    sheet, _ = isotropic(rectangle(40, 40), 2.0)
    x, y = sheet.vertices[:, 0] - 20, sheet.vertices[:, 1] - 20
    bowl = np.column_stack([x, y, (x**2 + y**2) / 80.0])
    dent = np.hypot(x, y) < 8
    dented = bowl + np.outer(dent * 3.0, [0, 0, 1])
    made = smoothed(dented, sheet.faces, (~dent).astype(float), 3.0)
    assert np.abs(made - bowl)[:, 2].max() < 0.5


def test_symmetry_plane_is_found_in_spite_of_one_larger_breast():
    small, landmarks = torso(edge=8.0)
    large, _ = torso(edge=8.0, size=1.4)
    left = small.vertices[:, :1] > 0
    pose = Similarity(rotation_about(np.array([0.2, 1.0, 0.4]), 9.0), np.array([12.0, -5.0, 3.0]))
    mesh = small.with_vertices(pose.apply(np.where(left, large.vertices, small.vertices)))
    anchors = pose.apply(landmarks.array(["sternal_notch", "xiphoid"]))
    off = rotation_about(np.array([0.3, 1.0, 0.0]), 5.0) @ pose.rotation[:, 0]
    start = Plane(off, float(anchors.mean(axis=0) @ off))
    plane, residual = symmetry_plane(Surface(mesh), mesh.vertices[::3], start, anchors)
    assert np.degrees(np.arccos(min(1.0, plane.normal @ pose.rotation[:, 0]))) < 0.7
    assert abs(plane.distance(pose.translation[None])[0]) < 1.0
    assert residual < 1.0
    moved = plane.to_sagittal().apply(mesh.vertices)
    np.testing.assert_allclose(moved[:, 0], plane.distance(mesh.vertices), atol=1e-9)


@pytest.mark.slow
def test_whole_of_half_is_symmetric_by_construction():
    mesh, landmarks = torso(edge=9.0)
    half = clip(mesh, mesh.vertices[:, 0])
    vertices = half.vertices.copy()
    vertices[np.abs(vertices[:, 0]) < 1e-9, 0] = 0.0
    half, ids = insert_points(half.with_vertices(vertices), landmarks.only(["xiphoid", "nipple_left"]).points)
    coarse, kept = half_with_count(half, ids, 301)
    whole, mirror = whole_of_half(coarse)
    assert whole.n_vertices == 301
    np.testing.assert_array_equal(whole.vertices[mirror] * [-1, 1, 1], whole.vertices)
    np.testing.assert_array_equal(mirror[mirror], np.arange(301))
    np.testing.assert_array_equal(whole.vertices[kept[1]], landmarks["nipple_left"])
    assert mirror[kept[0]] == kept[0]
    faces = {tuple(sorted(face)) for face in whole.faces.tolist()}
    assert {tuple(sorted(face)) for face in mirror[whole.faces].tolist()} == faces
    assert border_gap(whole, whole_of_half(half)[0]) < 4.0
    with pytest.raises(MeshProblem, match="x = 0"):
        whole_of_half(half.with_vertices(half.vertices + np.array([1.0, 0.0, 0.0])))


def test_thinning_keeps_the_surface_its_pieces_and_its_holes():
    mesh = torso(3.0)[0]
    centre = mesh.vertices[mesh.faces].mean(axis=1)
    mesh = mesh.kept(np.linalg.norm(centre - [0, -150, 100], axis=1) > 25)
    behind = mesh.with_vertices(mesh.vertices - [0, 0, 0.5]).flipped()  # skin that touches skin
    both = TriangleMesh(
        np.concatenate([mesh.vertices, behind.vertices]),
        np.concatenate([mesh.faces, behind.faces + mesh.n_vertices]),
        np.full((2 * mesh.n_vertices, 4), 77, np.uint8),
    )
    thin = thinned(both, 8.0)
    assert thin.n_faces < 0.4 * both.n_faces
    assert is_manifold(thin.faces)
    assert face_components(thin.faces).max() == 1
    assert len(boundary_loops(thin.faces)) == len(boundary_loops(both.faces)) == 4
    assert (thin.colors == 77).all()
    assert Surface(both).closest(thin.vertices).distances.max() < 1.5
    assert face_areas(thin.vertices, thin.faces).sum() == pytest.approx(
        face_areas(both.vertices, both.faces).sum(), rel=0.05
    )


def test_thinning_gives_back_what_it_cannot_join():
    tube = trimesh.creation.cylinder(radius=2.0, height=200.0, sections=24)
    tube = tube.subdivide_to_size(3.0)
    mesh = TriangleMesh(tube.vertices, tube.faces)
    for cell in (1.5, 2.5, 3.5):  # two or three cubes around: many joins would pinch the tube
        thin = thinned(mesh, cell)
        assert is_manifold(thin.faces)
        assert 0 < thin.n_faces < mesh.n_faces
    assert thinned(mesh, 500.0) is mesh  # all in one cube: there would be no surface left
