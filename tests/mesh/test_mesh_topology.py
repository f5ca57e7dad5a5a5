from __future__ import annotations

import numpy as np
import pytest
import trimesh

from breastmorph.mesh import topology
from breastmorph.mesh.triangle_mesh import TriangleMesh
from torso import torso

SQUARE = np.array([[0, 1, 2], [0, 2, 3]])


def test_edges_of_a_square_with_a_diagonal():
    table = topology.edge_table(SQUARE)
    assert table.edges.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [2, 3]]
    assert table.face_count.tolist() == [1, 2, 1, 1, 1]
    assert table.ids_of(np.array([[2, 0], [0, 2], [3, 1], [4, 9], [2, 3]])).tolist() == [1, 1, -1, -1, 4]


def test_euler_characteristic_and_no_border_of_a_sphere():
    sphere = trimesh.creation.icosphere(3)
    faces = np.asarray(sphere.faces)
    n_edges = len(topology.edge_table(faces).edges)
    assert len(sphere.vertices) - n_edges + len(faces) == 2
    assert topology.boundary_loops(faces) == []
    assert topology.is_manifold(faces)


def test_boundary_loops_of_a_torso_with_a_hole():
    mesh, _ = torso()
    centre = mesh.vertices[mesh.faces].mean(axis=1)
    mesh = mesh.kept(np.linalg.norm(centre - [0, -150, 100], axis=1) > 25)
    loops = topology.boundary_loops(mesh.faces)
    assert len(loops) == 2
    assert len(loops[0]) > len(loops[1]) > 10
    flag = topology.boundary_vertices(mesh.faces, mesh.n_vertices)
    assert flag.sum() == sum(map(len, loops))
    # each consecutive pair is an edge of the mesh
    edges = set(map(tuple, topology.edge_table(mesh.faces).edges.tolist()))
    for loop in loops:
        assert all(tuple(sorted(pair)) in edges for pair in zip(loop, np.roll(loop, -1), strict=True))


def test_components_join_faces_across_edges_not_corners():
    bow_tie = np.array([[0, 1, 2], [2, 3, 4]])
    assert topology.face_components(bow_tie).tolist() == [0, 1]
    assert topology.face_components(SQUARE).tolist() == [0, 0]


def test_non_manifold_edge_and_orientation_conflict_are_seen():
    fin = np.array([[0, 1, 2], [1, 0, 3], [0, 1, 4]])
    assert not topology.is_manifold(fin)
    disagree = np.array([[0, 1, 2], [0, 3, 2]])
    assert topology.orientation_conflicts(disagree) == 1
    assert topology.orientation_conflicts(SQUARE) == 0


def test_neighbours_match_trimesh():
    sphere = trimesh.creation.icosphere(2)
    ids, start = topology.vertex_neighbours(np.asarray(sphere.faces), len(sphere.vertices))
    for k, expected in enumerate(sphere.vertex_neighbors):
        assert set(ids[start[k] : start[k + 1]].tolist()) == set(expected)


def test_mesh_is_immutable_and_mirror_twice_is_the_same():
    mesh, _ = torso(edge=20)
    assert not mesh.vertices.flags.writeable
    assert not mesh.faces.flags.writeable
    twice = mesh.mirrored().mirrored()
    assert np.array_equal(twice.vertices, mesh.vertices)
    assert np.array_equal(twice.faces, mesh.faces)


def test_the_callers_array_stays_writeable():
    vertices = np.eye(3)
    TriangleMesh(vertices, np.array([[0, 1, 2]]))
    vertices[0, 0] = 5.0
    assert vertices.flags.writeable


def test_edges_of_a_mesh_are_found_once_and_those_of_a_changing_array_each_time():
    faces = np.array([[0, 1, 2], [2, 1, 3]])
    mesh = TriangleMesh(np.zeros((5, 3)), faces.copy())
    table = topology.edge_table(mesh.faces)
    assert topology.edge_table(mesh.with_vertices(np.ones((5, 3))).faces) is table
    before = topology.edge_table(faces).edges.tolist()
    faces[1, 2] = 4
    assert topology.edge_table(faces).edges.tolist() != before
    assert topology.edge_table(mesh.faces).edges.tolist() == before


def test_a_mesh_made_again_of_a_changed_array_has_its_own_edges():
    faces = np.array([[0, 1, 2], [2, 1, 3]])
    vertices = np.random.default_rng(0).normal(size=(5, 3))
    assert topology.orientation_conflicts(TriangleMesh(vertices, faces).faces) == 0
    faces[1] = [1, 2, 4]  # the caller goes on working with the array
    again = TriangleMesh(vertices, faces).faces
    assert topology.orientation_conflicts(again) == 1
    assert 4 in topology.edge_table(again).edges


def test_a_pinch_between_two_closed_fans_and_between_open_ones_is_found():
    sphere = trimesh.creation.icosphere(1)
    faces, n = np.asarray(sphere.faces), len(sphere.vertices)
    assert not len(topology.pinched_vertices(faces))
    second = np.where(faces == 5, 7, faces + n)  # another sphere that hangs on vertex 7
    assert topology.pinched_vertices(np.concatenate([faces, second])).tolist() == [7]
    bow = np.array([[0, 1, 2], [0, 3, 4]])
    assert topology.pinched_vertices(bow).tolist() == [0]
    mended, source = topology.split_pinched(bow, 5)
    assert source.tolist() == [0]
    assert topology.is_manifold(mended)


def test_pieces_are_numbered_by_their_first_face():
    faces = np.array([[0, 1, 2], [7, 8, 9], [2, 1, 3], [4, 5, 6], [9, 8, 10], [5, 4, 11]])
    assert topology.face_components(faces).tolist() == [0, 1, 0, 2, 1, 2]


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("all_alike", [False, True])
def test_equal_rows_are_joined_in_the_order_of_their_first(kind, all_alike, monkeypatch):
    if all_alike:  # as in a file that somebody made for it: no two rows can be told apart by their keys
        monkeypatch.setattr(topology, "_mixed", lambda words: np.zeros(len(words), np.uint64))
    rng = np.random.default_rng(5)
    for size, span in ((0, 1), (1, 1), (7, 1), (500, 3), (500, 1000), (5000, 12)):
        rows = rng.integers(-span, span + 1, (size, 3)).astype(kind)
        rows[::2] *= -1  # also -0, which is 0
        numbers: dict[tuple[float, ...], int] = {}
        expected = [numbers.setdefault(tuple(row), len(numbers)) for row in rows.tolist()]
        kept, new_id = topology.joined(rows)
        assert new_id.tolist() == expected
        assert [tuple(row) for row in rows[kept].tolist()] == list(numbers)
        assert kept.tolist() == sorted(kept)
        assert all(expected.index(number) == place for number, place in enumerate(kept))


def test_edges_of_any_faces_are_those_that_sorting_finds():
    rng = np.random.default_rng(0)
    for n_vertices, n_faces in ((4, 200), (300, 200), (1, 3)):
        faces = rng.integers(0, n_vertices, (n_faces, 3))
        table = topology.edge_table(faces)
        edges, which, count = np.unique(
            np.sort(table.directed, axis=1), axis=0, return_inverse=True, return_counts=True
        )
        np.testing.assert_array_equal(table.edges, edges)
        np.testing.assert_array_equal(table.of_half_edge, which.ravel())
        np.testing.assert_array_equal(table.face_count, count)
        alone = table.partner < 0
        np.testing.assert_array_equal(alone, (count == 1)[which.ravel()])
        np.testing.assert_array_equal(table.of_half_edge[table.partner][~alone], which.ravel()[~alone])


def test_faces_with_the_same_corners_are_noticed():
    mesh, _ = torso(edge=25)
    assert not topology.has_twin_faces(mesh.faces)
    for turned in ([0, 1, 2], [1, 2, 0], [2, 1, 0]):
        assert topology.has_twin_faces(np.vstack([mesh.faces, mesh.faces[7:8, turned]]))
        assert topology.has_twin_faces(mesh.faces[7:8][:, [*turned, *turned]].reshape(2, 3))


def test_edges_that_are_asked_for_again_outlive_newer_ones():
    first, *others = (
        TriangleMesh(np.zeros((6, 3)), np.array([[0, 1, 2], [0, 2, k]])) for k in (3, 4, 5, 4, 5, 3)
    )
    table = topology.edge_table(first.faces)
    for other in others:
        topology.edge_table(other.faces)
        assert topology.edge_table(first.faces) is table


def _both_ways(monkeypatch, ask):
    """The answers of numpy and of the compiled code, which must be the same to the byte."""
    found = []
    for many in (10**9, 0):
        monkeypatch.setattr(topology, "MANY", many)
        monkeypatch.setattr(topology, "pays_compiled", lambda _, many=many: many == 0)
        monkeypatch.setattr(topology, "_recent", ())
        found.append(ask())
    return found


def _soups():
    rng = np.random.default_rng(2)
    for n_vertices, n_faces in ((4, 200), (300, 200), (1, 3), (5000, 2000)):
        yield rng.integers(0, n_vertices, (n_faces, 3))  # pieces, pinches, twins, crowded edges, no area
    mesh, _ = torso(edge=15)
    yield mesh.faces
    yield mesh.faces[rng.random(mesh.n_faces) < 0.6]
    yield np.where(rng.random(mesh.n_faces)[:, None] < 0.1, mesh.faces[:, ::-1], mesh.faces)
    sphere = np.asarray(trimesh.creation.icosphere(2).faces)
    yield np.concatenate([sphere, np.where(sphere == 5, 7, sphere + sphere.max() + 1)])
    yield np.array(
        [[0, k, k + 1] for k in range(1, 600)]
    )  # more edges in a vertex than are sorted one by one


def test_compiled_topology_is_that_of_numpy(monkeypatch):
    plain = 0
    for faces in _soups():
        one, other = _both_ways(monkeypatch, lambda faces=faces: topology.edge_table(faces))
        for name in ("edges", "face_count", "of_half_edge", "partner", "corners"):
            assert getattr(one, name).dtype == getattr(other, name).dtype
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        assert one.is_plain == (one.face_count.max() <= 2 and not one.conflicts.any())
        plain += one.is_plain
        for ask in (topology.face_components, topology.is_manifold, topology.pinched_vertices):
            one, other = _both_ways(monkeypatch, lambda faces=faces, ask=ask: ask(faces))
            np.testing.assert_array_equal(one, other)
    assert 3 <= plain <= 6
