"""Bugs that fuzzing found in the reader of templates."""

import io
import zipfile

import numpy as np
import pytest

from breastmorph.errors import FileProblem
from breastmorph.template.files import default_template, from_npz, to_npz


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
