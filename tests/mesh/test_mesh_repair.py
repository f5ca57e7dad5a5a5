from __future__ import annotations

from dataclasses import replace

import numpy as np

from breastmorph.mesh import geometry
from breastmorph.mesh.topology import is_manifold, orientation_conflicts
from breastmorph.mesh.triangle_mesh import TriangleMesh
from torso import torso


def test_a_sound_mesh_is_left_alone():
    mesh, _ = torso(edge=15)
    for mend in (
        geometry.without_non_finite,
        geometry.welded,
        geometry.without_degenerate_faces,
        geometry.without_duplicate_faces,
        geometry.without_unreferenced,
        geometry.without_non_manifold_edges,
        geometry.without_pinches,
        geometry.consistently_oriented,
    ):
        mended, touched = mend(mesh)
        assert mended is mesh
        assert touched == 0


def test_non_finite_vertices_go_with_their_faces():
    mesh, _ = torso(edge=15)
    vertices = mesh.vertices.copy()
    vertices[100] = np.nan
    mended, touched = geometry.without_non_finite(mesh.with_vertices(vertices))
    assert touched == 1
    assert np.isfinite(mended.vertices).all()
    assert mended.n_faces == mesh.n_faces - (mesh.faces == 100).any(axis=1).sum()


def test_a_soup_of_triangles_welds_into_the_same_surface():
    mesh, _ = torso(edge=15)
    soup = TriangleMesh(mesh.vertices[mesh.faces].reshape(-1, 3), np.arange(3 * mesh.n_faces).reshape(-1, 3))
    welded, _ = geometry.welded(soup)
    welded, _ = geometry.without_unreferenced(welded)
    assert welded.n_vertices == mesh.n_vertices
    assert is_manifold(welded.faces)


def test_degenerate_and_duplicate_faces_go():
    mesh, _ = torso(edge=15)
    faces = np.concatenate([mesh.faces, [[5, 5, 6]], mesh.faces[:3, ::-1]])
    mended, degenerate = geometry.without_degenerate_faces(replace(mesh, faces=faces))
    mended, duplicate = geometry.without_duplicate_faces(mended)
    assert (degenerate, duplicate) == (1, 3)
    assert np.array_equal(mended.faces, mesh.faces)


def test_a_fin_on_the_surface_is_cut_off():
    mesh, _ = torso(edge=15)
    vertices = np.concatenate([mesh.vertices, [[0.0, 0.0, 300.0]]])
    a, b, _ = mesh.faces[500]
    finned = TriangleMesh(vertices, np.concatenate([mesh.faces, [[a, b, len(vertices) - 1]]]))
    mended, touched = geometry.without_non_manifold_edges(finned)
    assert touched == 1
    assert is_manifold(geometry.without_pinches(mended)[0].faces)


def test_turned_faces_turn_back_and_the_majority_wins():
    mesh, _ = torso(edge=15)
    faces = mesh.faces.copy()
    some = np.random.default_rng(0).choice(len(faces), 100, replace=False)
    faces[some] = faces[some][:, ::-1]
    mended, touched = geometry.consistently_oriented(replace(mesh, faces=faces))
    assert touched == 100
    assert orientation_conflicts(mended.faces) == 0
    assert np.array_equal(mended.faces, mesh.faces)
