from __future__ import annotations

import numpy as np
import pytest
import trimesh

from breastmorph.mesh import box_tree, closest
from breastmorph.mesh.box_tree import BoxTree
from breastmorph.mesh.closest import Surface, closest_to_few
from breastmorph.mesh.triangle_mesh import TriangleMesh
from torso import torso

both = pytest.mark.usefixtures("search_tree")


@pytest.fixture(params=["few faces", "many faces"])
def search_tree(request, monkeypatch):
    """Whoever uses it asks both search trees."""
    monkeypatch.setattr(closest, "MANY", 0 if request.param == "many faces" else 10**9)


@both
def test_closest_points_match_trimesh():
    mesh, _ = torso(edge=15)
    queries = np.random.default_rng(0).normal(size=(200, 3)) * 120
    found = Surface(mesh).closest(queries)
    peer = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    _, distance, _ = trimesh.proximity.closest_point(peer, queries)
    assert np.allclose(found.distances, distance)


@both
def test_weights_rebuild_the_points():
    mesh, _ = torso(edge=10)
    queries = np.random.default_rng(1).normal(size=(300, 3)) * 150
    found = Surface(mesh).closest(queries)
    rebuilt = (mesh.vertices[mesh.faces[found.faces]] * found.weights[:, :, None]).sum(axis=1)
    assert np.abs(rebuilt - found.points).max() < 1e-9
    assert found.weights.min() >= 0


@both
def test_the_border_flag_is_exact_on_a_square():
    vertices = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    surface = Surface(TriangleMesh(vertices, np.array([[0, 1, 2], [0, 2, 3]])))
    queries = {
        (0.3, 0.2, 1.0): False,  # inside a face
        (0.5, 0.5, 1.0): False,  # on the diagonal, an inner edge
        (0.5, -1.0, 0.0): True,  # beyond an edge
        (0.5, 0.0, 2.0): True,  # exactly on the border
        (-1.0, -1.0, 0.0): True,  # beyond a corner
    }
    found = surface.closest(np.array(list(queries)))
    assert found.on_boundary.tolist() == list(queries.values())


@both
def test_no_border_on_a_closed_surface():
    sphere = trimesh.creation.icosphere(2)
    surface = Surface(TriangleMesh(sphere.vertices, sphere.faces))
    queries = np.random.default_rng(2).normal(size=(100, 3)) * 3
    assert not surface.closest(np.concatenate([queries, sphere.vertices * 2])).on_boundary.any()


@both
def test_rays_hit_where_expected():
    mesh, _ = torso(edge=10)
    face, distance, weights = Surface(mesh).first_hit(
        np.array([[10.0, -150.0, 500.0], [900.0, 0.0, 0.0]]), np.array([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
    )
    point = (mesh.vertices[mesh.faces[face[0]]] * weights[0][:, None]).sum(axis=0)
    assert np.allclose(point, [10.0, -150.0, 500.0 - distance[0]], atol=1e-5)
    assert face[1] == -1


@both
def test_few_points_find_what_the_whole_surface_finds():
    mesh, landmarks = torso(10.0)
    points = np.concatenate([landmarks.points, landmarks.points * 1.5, [[0.0, 0.0, 0.0]]])
    whole = Surface(mesh).closest(points)
    near, distances, faces = closest_to_few(mesh, points)
    np.testing.assert_allclose(distances, whole.distances, atol=1e-9)
    of_face = Surface(mesh.kept(np.isin(np.arange(mesh.n_faces), faces))).closest(near)
    np.testing.assert_allclose(of_face.distances, 0.0, atol=1e-9)


@pytest.mark.parametrize("halved", [True, False], ids=["halved", "along a curve"])
def test_both_search_trees_agree(halved, monkeypatch):
    mesh, _ = torso(edge=10)
    broken = [[0, 0, 5], [7, 8, 7], [3, 3, 3]]  # faces without area are surface, too
    faces = np.concatenate([mesh.faces, broken])
    found = []
    monkeypatch.setattr(box_tree, "MANY", 10**9 if halved else 0)
    for compiled in (True, False):
        found.append(Surface(TriangleMesh(mesh.vertices, faces), compiled=compiled))
    assert [type(surface._tree) is BoxTree for surface in found] == [True, False]
    rng = np.random.default_rng(3)
    queries = np.concatenate([rng.normal(size=(2000, 3)) * 150, mesh.vertices, mesh.vertices * 1.02])
    one, other = (surface.closest(queries) for surface in found)
    np.testing.assert_allclose(one.distances, other.distances, atol=1e-10)
    np.testing.assert_allclose(one.points, other.points, atol=1e-9)
    same = one.faces == other.faces  # on an edge either face will do
    assert same.mean() > 0.6
    np.testing.assert_allclose(one.weights[same], other.weights[same], atol=1e-9)
    np.testing.assert_array_equal(one.on_boundary[same], other.on_boundary[same])
    directions = rng.normal(size=queries.shape)
    directions[:200, 0] = 0.0  # along the sides of boxes
    one, other = (surface.first_hit(queries[:2000], directions[:2000]) for surface in found)
    np.testing.assert_array_equal(one[0], other[0])
    hit = one[0] >= 0
    assert 0.1 < hit.mean() < 0.9
    np.testing.assert_allclose(one[1][hit], other[1][hit], rtol=1e-5, atol=1e-5)  # igl counts in 32 bits
    np.testing.assert_allclose(one[2][hit], other[2][hit], atol=1e-5)


@pytest.mark.parametrize("n_faces", [1, 2, 3, 4, 5, 8, 9])
def test_a_tree_of_boxes_of_few_faces_is_whole(n_faces):
    mesh, _ = torso(edge=15)
    faces = mesh.faces[:: mesh.n_faces // n_faces][:n_faces]
    tree = BoxTree.of(mesh.vertices, faces)
    centres = np.ascontiguousarray(mesh.vertices[faces].mean(axis=1))
    squared, found, _ = tree.closest(centres)
    assert found.tolist() == list(range(n_faces))
    assert squared.max() < 1e-20


def test_the_boxes_of_a_small_tree_overlap_less(monkeypatch):
    mesh, _ = torso(edge=10)
    sizes = []
    for few in (10**9, 0):
        monkeypatch.setattr(box_tree, "MANY", few)
        tree = BoxTree.of(mesh.vertices, mesh.faces)
        np.testing.assert_array_equal(np.sort(tree.order), np.arange(mesh.n_faces))
        np.testing.assert_array_equal(tree.corners, mesh.faces[tree.order])
        sizes.append(np.linalg.norm(tree.boxes[:, 1] - tree.boxes[:, 0], axis=1).mean())
    assert sizes[0] < 0.9 * sizes[1]
    one_place = BoxTree.of(np.zeros((3, 3)), np.array([[0, 1, 2], [2, 1, 0]]))
    assert one_place.order.tolist() == [0, 1]


@both
def test_distances_alone_are_those_of_the_closest_points():
    mesh, _ = torso(edge=10)
    queries = np.random.default_rng(1).normal(size=(300, 3)) * 150
    surface = Surface(mesh)
    np.testing.assert_array_equal(surface.distances(queries), surface.closest(queries).distances)
