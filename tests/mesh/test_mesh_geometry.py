from __future__ import annotations

import numpy as np
import pytest
import trimesh
from hypothesis import given
from hypothesis import strategies as st

from breastmorph.mesh import dense, geometry
from breastmorph.mesh.geometry import Similarity, rotation_about
from torso import torso


def test_areas_angles_and_normals_match_trimesh():
    mesh, _ = torso(edge=10)
    peer = trimesh.Trimesh(mesh.vertices, mesh.faces, process=False)
    assert np.allclose(geometry.face_areas(mesh.vertices, mesh.faces), peer.area_faces)
    assert np.allclose(geometry.face_angles(mesh.vertices, mesh.faces), peer.face_angles)
    assert np.allclose(geometry.face_normals(mesh.vertices, mesh.faces), peer.face_normals)
    assert np.isclose(geometry.vertex_areas(mesh.vertices, mesh.faces).sum(), peer.area)
    assert np.isclose(
        geometry.edge_lengths(mesh.vertices, mesh.faces).mean(), peer.edges_unique_length.mean()
    )


def test_vertex_normals_of_a_sphere_point_outwards():
    sphere = trimesh.creation.icosphere(4)
    normals = geometry.vertex_normals(np.asarray(sphere.vertices), np.asarray(sphere.faces))
    assert np.abs((normals * sphere.vertices).sum(axis=1) - 1).max() < 1e-3


def test_a_face_without_area_has_a_zero_normal():
    vertices, faces = np.zeros((3, 3)), np.array([[0, 1, 2]])
    assert np.array_equal(geometry.face_normals(vertices, faces), np.zeros((1, 3)))


angles = st.floats(-180, 180)
coordinate = st.floats(-500, 500)


@given(angles, st.floats(0.01, 100), st.lists(coordinate, min_size=3, max_size=3), st.booleans())
def test_a_known_similarity_is_recovered(degrees, scale, shift, weighted):
    rng = np.random.default_rng(0)
    source = rng.normal(size=(20, 3)) * 100
    truth = Similarity(rotation_about(np.array([1.0, 2.0, 3.0]), degrees), np.array(shift), scale)
    weights = rng.uniform(0.1, 1, 20) if weighted else None
    found = Similarity.fit(source, truth.apply(source), weights)
    assert np.allclose(found.apply(source), truth.apply(source), rtol=1e-9, atol=1e-7 * scale)
    assert np.isclose(np.linalg.det(found.rotation), 1.0)


def test_similarity_inverse_and_composition():
    rng = np.random.default_rng(1)
    a = Similarity(rotation_about(rng.normal(size=3), 70), rng.normal(size=3), 3.0)
    b = Similarity(rotation_about(rng.normal(size=3), -20), rng.normal(size=3), 0.2)
    points = rng.normal(size=(7, 3))
    assert np.allclose(a.inverse().apply(a.apply(points)), points)
    assert np.allclose(a.after(b).apply(points), a.apply(b.apply(points)))


def test_a_transform_comes_back_from_its_record_and_a_mirror_image_is_none():
    move = Similarity(rotation_about(np.array([1.0, 2.0, 3.0]), 70), np.array([5.0, 6.0, 7.0]), 3.0)
    back = Similarity.from_dict(move.as_dict())
    assert np.array_equal(back.apply(np.eye(3)), move.apply(np.eye(3)))
    with pytest.raises(ValueError, match="no similarity"):
        Similarity.from_dict(move.as_dict() | {"rotation": np.diag([-1.0, 1.0, 1.0]).tolist()})


def test_a_turned_over_face_is_seen():
    mesh, _ = torso(edge=15)
    faces = mesh.faces.copy()
    faces[40] = faces[40][::-1]
    assert geometry.normal_consistency(mesh.vertices, mesh.faces).min() > 0.5
    assert np.flatnonzero(geometry.normal_consistency(mesh.vertices, faces) < 0).tolist() == [40]


def test_a_reflection_is_never_returned():
    source = np.random.default_rng(2).normal(size=(10, 3))
    found = Similarity.fit(source, source * [-1, 1, 1])
    assert np.isclose(np.linalg.det(found.rotation), 1.0)


def test_without_scale_the_scale_stays_one():
    source = np.random.default_rng(3).normal(size=(10, 3))
    assert Similarity.fit(source, 5 * source, with_scale=False).scale == 1.0


def test_lengths_in_blocks_are_those_of_numpy(monkeypatch):
    monkeypatch.setattr(geometry, "_BLOCK", 7)
    rng = np.random.default_rng(0)
    vertices, edges, points = rng.normal(size=(50, 3)), rng.integers(0, 50, (61, 2)), rng.normal(size=(3, 3))
    exact = np.linalg.norm(vertices[edges[:, 0]] - vertices[edges[:, 1]], axis=1)
    np.testing.assert_array_equal(geometry.lengths(vertices, edges), exact)
    away = np.linalg.norm(vertices[:, None] - points, axis=2).min(axis=1)
    np.testing.assert_array_equal(geometry.distances_from(points, vertices), away)


def test_compiled_geometry_is_that_of_numpy_to_the_bit(monkeypatch):
    mesh, _ = torso(edge=15)
    faces = np.concatenate([mesh.faces, [[0, 0, 5], [3, 3, 3]]])
    vertices = np.concatenate([mesh.vertices, [[1e200, 0.0, 0.0], [0.0, 0.0, 0.0]]])  # in no face
    edges = np.random.default_rng(0).integers(0, len(vertices), (5000, 2))
    questions = (
        (geometry.face_cross, vertices, faces),
        (geometry.face_areas, vertices, faces),
        (geometry.vertex_normals, vertices, faces),
        (geometry.lengths, vertices, edges),
        (geometry.distances_from, mesh.vertices[:7] + 0.1, vertices),
        (geometry.distances_from, mesh.vertices[:1], np.asfortranarray(vertices)),
    )
    for ask, *given_ in questions:
        found = []
        for compiled in (False, True):
            monkeypatch.setattr(geometry, "pays_compiled", lambda _, compiled=compiled: compiled)
            found.append(ask(*given_))
        assert found[0].tobytes() == found[1].tobytes(), ask.__name__


def test_what_a_bent_mesh_has_become_is_what_its_angles_areas_and_normals_say():
    mesh, _ = torso(edge=10)
    rest, faces, rng = mesh.vertices, mesh.faces, np.random.default_rng(5)
    bent = rest + rng.normal(scale=3.0, size=rest.shape)
    angles = geometry.face_angles(bent, faces)
    np.testing.assert_allclose(
        dense.cotangents(bent, faces, 1e9), 1.0 / np.tan(angles), rtol=1e-9, atol=1e-12
    )
    assert dense.cotangents(bent, faces, 2.0).max() == 2.0
    change = np.abs(angles - geometry.face_angles(rest, faces)).mean()
    assert dense.angle_change(rest, bent, faces) == pytest.approx(change, rel=1e-12)
    ratio, over = dense.area_ratios(rest, bent, faces)
    np.testing.assert_allclose(ratio, geometry.face_areas(bent, faces) / geometry.face_areas(rest, faces))
    np.testing.assert_array_equal(over, geometry.normal_consistency(bent, faces) < 0.0)
    assert 0 < over.sum() < len(over) / 2
    flat = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    assert dense.cotangents(flat, np.array([[0, 1, 2]]), 7.0).max() == 7.0


def test_normals_within_faces_are_the_same_compiled():
    mesh, _ = torso(edge=10)
    rng = np.random.default_rng(6)
    given_ = rng.normal(size=mesh.vertices.shape), mesh.faces, rng.dirichlet(np.ones(3), mesh.n_faces)
    np.testing.assert_allclose(dense.normals_within(*given_), geometry.normals_within(*given_), atol=1e-15)
