"""Templates that must not be taken: damaged archives that fuzzing found, and users' files that cannot be bent."""

import io
import zipfile
from functools import cache

import numpy as np
import pytest

from breastmorph.foundation.errors import FileProblem, LandmarkProblem, MeshProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.template import default_template, from_npz, load_template, template_from, to_npz


@pytest.fixture(scope="module")
def data():
    return to_npz(default_template())


def changed(data, **changes):
    with np.load(io.BytesIO(data)) as parts:
        arrays = dict(parts) | changes
    buffer = io.BytesIO()
    np.savez(buffer, **{name: array for name, array in arrays.items() if array is not None})
    return buffer.getvalue()


def refused(data, tmp_path):
    with pytest.raises(FileProblem) as caught:
        from_npz(data, tmp_path / "template.npz")
    assert caught.value.where == tmp_path / "template.npz"
    return str(caught.value)


def test_damaged_archives_give_our_error(data, tmp_path):
    # zipfile, zlib, ast and tokenize each raised errors of their own.
    for at in range(40, len(data), len(data) // 60):
        odd = data[:at] + bytes(30) + data[at + 30 :]
        try:
            assert from_npz(odd).mesh.n_faces > 0
        except FileProblem as problem:
            assert problem.remedy  # noqa: PT017 - either way is right, nothing else
    assert "damaged" in refused(data[:-30], tmp_path)
    assert "damaged" in refused(b"not an archive", tmp_path)


def test_zip_bomb(tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("fine_vertices.npy", bytes(100 * 1024**2))
    assert "more than the file can hold" in refused(buffer.getvalue(), tmp_path)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("fine_vertices", np.full((4, 3), "1.5")),
        ("fine_faces", np.array([[0.5, 1.0, 2.0]])),
        ("fine_landmark_ids", np.full(13, 10**6)),
        ("coarse_landmark_ids", np.full(13, -1)),
        ("fine_landmarks", np.arange(13)),
        ("fine_mirror", np.zeros(5, int)),
        ("coarse_mirror", np.zeros(646, int)),
        ("coarse_vertices", None),
    ],
)
def test_parts_that_do_not_fit(part, value, data, tmp_path):
    assert "damaged" in refused(changed(data, **{part: value}), tmp_path)


def test_vertices_that_are_not_finite(data, tmp_path):
    with np.load(io.BytesIO(data)) as parts:
        vertices = parts["coarse_vertices"].copy()
    vertices[3, 1] = np.nan
    assert "out of range" in refused(changed(data, coarse_vertices=vertices), tmp_path)


def written(folder, mesh=None, landmarks=None, coarse=None):
    """A user's template in files, with some parts changed, read again."""
    template = small()
    save_mesh(mesh or template.mesh, folder / "t.ply")
    save_landmarks(landmarks or template.landmarks, folder / "t.json")
    save_mesh(coarse or template.coarse, folder / "c.ply")
    return load_template(folder / "t.ply", folder / "t.json", folder / "c.ply")


@cache
def small():
    template = default_template()
    return template_from(template.coarse, template.coarse_landmarks)


def moved(transform):
    template = small()
    return {
        "mesh": template.mesh.with_vertices(transform.apply(template.mesh.vertices)),
        "landmarks": template.landmarks.transformed(transform),
        "coarse": template.coarse.with_vertices(transform.apply(template.coarse.vertices)),
    }


def test_a_sound_template_of_a_user_is_read_as_it_is_wherever_it_stands(tmp_path):
    assert np.allclose(written(tmp_path).mesh.vertices, small().mesh.vertices)
    there = Similarity(rotation_about(np.array([1.0, 0.0, 0.0]), 10.0), np.array([300.0, 1200.0, -50.0]))
    assert dict(written(tmp_path, **moved(there)).landmark_ids) == dict(small().landmark_ids)


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (Similarity(scale=0.001), "apart"),  # in metres it was bent with every length of the method wrong
        (Similarity(scale=0.1), "apart"),
        (Similarity(rotation_about(np.array([1.0, 0.0, 0.0]), 90.0)), "upright"),
        (Similarity(rotation_about(np.array([0.0, 1.0, 0.0]), 180.0)), "upright"),
    ],
)
def test_a_template_in_another_unit_or_frame_is_refused(transform, message, tmp_path):
    with pytest.raises(LandmarkProblem, match=message) as caught:
        written(tmp_path, **moved(transform))
    assert caught.value.where == tmp_path / "t.json"


def test_a_template_that_cannot_be_bent_is_refused_by_name(tmp_path):
    mesh = small().mesh
    not_finite = mesh.vertices.copy()
    not_finite[7] = np.nan
    broken = {
        "not finite": mesh.with_vertices(not_finite),
        "without faces": TriangleMesh(np.vstack([mesh.vertices, [[900.0, 0.0, 0.0]]]), mesh.faces),
        "doubled faces": TriangleMesh(mesh.vertices, np.vstack([mesh.faces, mesh.faces[:1]])),
        "several pieces": TriangleMesh(
            np.vstack([mesh.vertices, mesh.vertices[mesh.faces[0]] + 30.0]),
            np.vstack([mesh.faces, mesh.n_vertices + np.arange(3)]),
        ),
        "inside out": mesh.flipped(),
    }
    for message, odd in broken.items():
        with pytest.raises(MeshProblem, match=message) as caught:
            written(tmp_path, mesh=odd)
        assert caught.value.where == tmp_path / "t.ply"


def test_a_twin_of_another_surface_is_refused(tmp_path):
    twin = small().coarse
    turned = Similarity(rotation_about(np.array([1.0, 0.0, 0.0]), 90.0))
    for odd in (
        twin.with_vertices(0.001 * twin.vertices),
        twin.with_vertices(turned.apply(twin.vertices)),
        twin.flipped(),
    ):
        with pytest.raises(MeshProblem, match="coarse twin") as caught:
            written(tmp_path, coarse=odd)
        assert caught.value.where == tmp_path / "c.ply"
