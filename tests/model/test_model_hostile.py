"""Bugs that fuzzing found in the model readers, each with a short file; those that take memory: fuzz/hostile.py."""

import io
import json
import tracemalloc
import warnings
import zipfile

import h5py
import numpy as np
import pytest

from breastmorph.foundation.errors import FileProblem
from breastmorph.model.files import load_landmark_ids, load_model, save_model
from breastmorph.model.shape_model import ShapeModel, Training


@pytest.fixture
def model():
    """Two triangles, two components."""
    basis = np.eye(12, 2, dtype=np.float32)
    training = Training(np.ones((3, 2)), np.ones(3), {"age": np.ones(3)})
    faces = np.array([[0, 1, 2], [0, 2, 3]])
    return ShapeModel(
        np.arange(12.0).reshape(4, 3), basis, np.array([4.0, 1.0]), faces, {"xiphoid": 1}, training=training
    )


@pytest.fixture
def saved(model, tmp_path):
    save_model(model, tmp_path / "m.h5")
    save_model(model, tmp_path / "m.npz")
    return tmp_path


def refused(path):
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(FileProblem) as caught:
                load_model(path)
        assert tracemalloc.get_traced_memory()[1] < 100 * 1024**2
    finally:
        tracemalloc.stop()
    assert caught.value.where == path
    assert len(str(caught.value)) < 600 + len(str(path))
    return str(caught.value)


def with_parts(path, **changes):
    """The NPZ file with other arrays."""
    with np.load(path) as parts:
        arrays = dict(parts) | changes
    np.savez_compressed(path.with_name("other.npz"), **arrays)
    return path.with_name("other.npz")


def with_objects(path, change):
    with h5py.File(path, "a") as file:
        change(file)
    return path


def replaced(name, *args, **options):
    def change(file):
        del file[name]
        file.create_dataset(name, *args, **options)

    return change


def test_basis_beyond_the_range_is_no_basis(saved):
    # Its products are infinite of both signs, their sum NaN, and NaN was not larger than the limit.
    basis = np.zeros((12, 2))
    basis[:2, 0], basis[:2, 1] = 1e200, (1e200, -1e200)
    assert "beyond the range" in refused(with_parts(saved / "m.npz", basis=basis))


@pytest.mark.parametrize("part", ["scores", "scales", "columns"])
@pytest.mark.parametrize("kind", ["c16", "U5"])
def test_training_of_other_types(part, kind, saved):
    with np.load(saved / "m.npz") as parts:
        odd = parts[part].astype(kind)
    assert "not numbers" in refused(with_parts(saved / "m.npz", **{part: odd}))


@pytest.mark.parametrize("vertex", [4, -1, 2**31 - 1])
def test_landmarks_of_other_vertices(vertex, saved):
    odd = {"landmark_names": np.array(["A" * 3000]), "landmark_vertices": np.array([vertex])}
    assert "names no vertex" in refused(with_parts(saved / "m.npz", **odd))


def test_header_that_numpy_guesses_at(saved):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3L,), }"
    member = b"\x93NUMPY\1\0" + len(header + b"\n").to_bytes(2, "little") + header + b"\n" + bytes(24)
    with zipfile.ZipFile(saved / "n.npz", "w") as archive:
        archive.writestr("mean.npy", member)
    assert "damaged" in refused(saved / "n.npz")


def test_soft_links_within_the_file_are_followed(saved, model):
    def change(file):
        file.move("model/mean", "kept/mean")
        file["model/mean"] = h5py.SoftLink("also")  # from where it lies
        file["model/also"] = h5py.SoftLink("/kept/mean")

    found = load_model(with_objects(saved / "m.h5", change))
    np.testing.assert_array_equal(found.mean, model.mean)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shape": (10**12,), "dtype": "f8"}, "more than the file can hold"),
        ({"shape": (1,), "dtype": "S1000000000"}, "holds text"),
        ({"shape": (10**6,), "dtype": h5py.string_dtype()}, "holds text"),
        ({"shape": (3,), "dtype": h5py.vlen_dtype("i4")}, "not numbers"),
    ],
)
def test_arrays_that_announce_too_much(options, words, saved):
    assert words in refused(with_objects(saved / "m.h5", replaced("model/mean", **options)))


def test_compressed_arrays_are_read(saved, model):
    options = {"chunks": (5, 2), "compression": "gzip", "shuffle": True, "fletcher32": True}
    path = with_objects(saved / "m.h5", replaced("model/pcaBasis", data=model.basis, **options))
    np.testing.assert_array_equal(load_model(path).basis, model.basis)


def test_many_columns_that_were_never_written(saved):
    def change(file):
        for k in range(40):
            file.create_dataset(f"breastmorph/training/columns/c{k}", (10**6,), "f8")

    assert "more than the file can hold" in refused(with_objects(saved / "m.h5", change))


def test_reference_of_numbers_that_are_no_bytes(saved):
    def change(file):
        file["representer"].attrs["name"] = np.bytes_("vtkPolyDataRepresenter")
        file["representer/reference"] = np.array([np.nan, 300.0])
        del file["representer/cells"]

    assert "cells is missing" in refused(with_objects(saved / "m.h5", change))


def json_model(model, mean):
    values = {"mean": mean, "pcaBasis": model.basis.tolist(), "pcaVariance": model.variances.tolist()}
    groups = {
        "root": {"links": [{"title": name, "id": name} for name in ("model", "representer")]},
        "model": {"links": [{"title": name, "id": name} for name in values]},
        "representer": {"links": [{"title": "cells", "id": "cells"}]},
    }
    datasets = {name: {"value": value} for name, value in values.items()} | {
        "cells": {"value": model.faces.T.tolist()}
    }
    return json.dumps({"root": "root", "groups": groups, "datasets": datasets}).encode()


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        ([True] * 12, "does not hold numbers"),
        ([None] * 12, "does not hold numbers"),
        ([10**30] * 12, "beyond the range"),
        ([["a"] * 12], "not numbers"),
    ],
)
def test_json_arrays_that_are_no_numbers(mean, words, model, tmp_path):
    (tmp_path / "m.json").write_bytes(json_model(model, mean))
    assert words in refused(tmp_path / "m.json")


def test_json_arrays_of_numbers_are_read(model, tmp_path):
    (tmp_path / "m.json").write_bytes(json_model(model, model.mean.ravel().tolist()))
    np.testing.assert_array_equal(load_model(tmp_path / "m.json").mean, model.mean)


@pytest.mark.parametrize(
    "text", ['{"xiphoid": %s}' % ("9" * 4000), '{"%s": 1}' % ("x" * 5000), "[" * 100_000]
)
def test_landmark_ids_that_nobody_means(text, tmp_path):
    (tmp_path / "l.json").write_text(text)
    with pytest.raises(FileProblem) as caught:
        load_landmark_ids(tmp_path / "l.json")
    assert len(str(caught.value)) < 600


def test_nested_provenance_is_dropped(saved):
    buffer = io.StringIO("[" * 50_000 + "]" * 50_000)
    found = load_model(with_parts(saved / "m.npz", info=np.array(buffer.getvalue())))
    assert dict(found.info) == {}


def test_texts_whose_store_has_a_part_without_length(saved, model):
    # The HDF5 library walked through it without end.
    def change(file):
        del file["breastmorph/info"]
        file.create_dataset("breastmorph/info", data='{"subjects": 3}', dtype=h5py.string_dtype())

    path = with_objects(saved / "m.h5", change)
    assert load_model(path).info["subjects"] == 3
    data = bytearray(path.read_bytes())
    heap = data.index(b"GCOL\1")
    free = heap + 16 + 16 + 16  # behind the only text
    assert data[free : free + 2] == b"\0\0"
    data[free + 8 : free + 16] = bytes(8)
    path.write_bytes(data)
    assert "do not fit" in refused(path)


def test_landmark_vertices_that_are_truth_values(saved):
    with_parts(saved / "m.npz", landmark_vertices=np.array([True]))
    assert load_model(saved / "m.npz").landmark_ids == {"xiphoid": 1}


def test_a_name_in_a_store_of_texts_that_has_a_part_without_length(saved):
    with h5py.File(saved / "m.h5", "a") as file:
        del file["representer"].attrs["name"]
        file["representer"].attrs["name"] = "a text of any length"  # such texts lie in a store of their own
    data = bytearray((saved / "m.h5").read_bytes())
    at = data.find(b"GCOL\1")
    assert at >= 0
    data[at + 24 : at + 32] = bytes(8)  # the length of its first part
    (saved / "m.h5").write_bytes(data)
    assert "texts" in refused(saved / "m.h5")
