"""Damaged, foreign and hostile model files: every one ends in a named error that says where."""

from __future__ import annotations

import io
import json
import zipfile

import h5py
import numpy as np
import pytest

from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.model.files import load_model, save_model
from small_cohort import built, small_cohort


@pytest.fixture(scope="module")
def model():
    return built(small_cohort(k=5))


@pytest.fixture
def saved(model, tmp_path):
    save_model(model, tmp_path / "m.h5")
    return tmp_path / "m.h5"


def replaced(path, name, value):
    with h5py.File(path, "a") as file:
        del file[name]
        if value is not None:
            file[name] = value


def refused(path):
    with pytest.raises(FileProblem) as caught:
        load_model(path)
    assert str(path) in str(caught.value)
    assert caught.value.remedy
    return str(caught.value)


DAMAGE = {
    "no mean": ("model/mean", lambda m: None, "no statistical shape model"),
    "no basis": ("model/pcaBasis", lambda m: None, "pcaBasis is missing"),
    "no triangles": ("representer/cells", lambda m: None, "cells is missing"),
    "mean not finite": ("model/mean", lambda m: np.full(m.mean.size, np.nan, "f4"), "not finite"),
    "mean too short": ("model/mean", lambda m: np.zeros(m.mean.size - 3, "f4"), "does not fit"),
    "mean not in space": ("model/mean", lambda m: np.zeros(m.mean.size - 1, "f4"), "no shape of points"),
    "basis not finite": ("model/pcaBasis", lambda m: np.full(m.basis.shape, np.inf, "f4"), "not finite"),
    "basis transposed": ("model/pcaBasis", lambda m: m.basis.T, "does not fit"),
    "basis beyond the range": ("model/pcaBasis", lambda m: np.full(m.basis.shape, 1e200), "beyond the range"),
    "variance beyond the range": ("model/pcaVariance", lambda m: 1e60 * m.variances, "beyond the range"),
    "basis of text": ("model/pcaBasis", lambda m: np.full(m.basis.shape, b"x"), "not numbers"),
    "negative variance": ("model/pcaVariance", lambda m: -m.variances, "negative"),
    "fewer variances": ("model/pcaVariance", lambda m: m.variances[:2], "does not fit"),
    "negative noise": ("model/noiseVariance", lambda m: np.array([-1.0]), "noise"),
    "vertex out of range": ("representer/cells", lambda m: m.faces.T + 1, "does not have|do not have"),
    "negative vertex": ("representer/cells", lambda m: m.faces.T - 1, "do not have"),
    "tetrahedra": ("representer/cells", lambda m: np.zeros((4, 9), "i4"), "tetrahedra"),
    "lines": ("representer/cells", lambda m: np.zeros((2, 9), "i4"), "no triangles"),
    "mirror nonsense": ("breastmorph/mirror", lambda m: np.zeros(m.n_vertices, "i4"), "permutation"),
    "version": ("version/minorVersion", lambda m: np.int32(3), "version 0.3"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_contradictions_are_refused(model, saved, name):
    import re

    place, value, says = DAMAGE[name]
    replaced(saved, place, value(model))
    assert re.search(says, refused(saved))


def test_landmarks_outside_the_model_are_refused(model, saved):
    replaced(saved, "breastmorph/landmark_vertices", np.full(len(model.landmark_ids), model.n_vertices))
    with pytest.raises(BreastMorphError, match="landmark"):
        load_model(saved)


def test_models_of_tetrahedra_are_refused_for_what_they_are(saved):
    with h5py.File(saved, "a") as file:
        file["representer"].attrs["datasetType"] = "VOLUME_MESH"
    assert "tetrahedra" in refused(saved)
    with h5py.File(saved, "a") as file:
        file.move("model", "volume/model")
        file["catalog/v/modelPath"], file["catalog/v/modelType"] = "/volume", "VOLUME_MESH_MODEL"
    assert "outer surface" in refused(saved)


def test_models_of_images_are_refused(saved):
    with h5py.File(saved, "a") as file:
        file["representer"].attrs["datasetType"] = "IMAGE"
    assert "IMAGE" in refused(saved)


def test_missing_empty_and_foreign_files(tmp_path):
    for name, content in {
        "empty.h5": b"",
        "text.h5": b"Hello, this is no model at all.\n" * 20,
        "picture.h5": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "array.json": b"[1, 2, 3]",
        "other.json": b'{"points": [1, 2, 3]}',
        "broken.json": b'{"groups": {',
        "rootless.json": b'{"groups": {}, "root": "x"}',
        "half.npz": b"PK\x03\x04" + bytes(50),
    }.items():
        (tmp_path / name).write_bytes(content)
        assert refused(tmp_path / name)
    assert refused(tmp_path / "missing.h5")
    assert refused(tmp_path)
    with h5py.File(tmp_path / "foreign.h5", "w") as file:
        file["images"] = np.zeros((5, 5))
    assert "no statistical shape model" in refused(tmp_path / "foreign.h5")


def test_json_with_crooked_values_is_refused(tmp_path):
    link = {"title": "model", "id": "g"}
    base = {"root": "r", "groups": {"r": {"links": [link]}, "g": {"links": [{"title": "mean", "id": "d"}]}}}
    for value in ([[1.0, 2.0], [3.0]], "text", {"a": 1}, None, [None, 1.0]):
        content = base | {"datasets": {"d": {"value": value}}}
        (tmp_path / "m.json").write_text(json.dumps(content))
        assert refused(tmp_path / "m.json")
    (tmp_path / "m.json").write_text(json.dumps(base | {"groups": {"r": {"links": [3]}}}))
    assert refused(tmp_path / "m.json")


def test_cut_off_files_are_refused(model, tmp_path):
    for name in ("m.h5", "m.npz"):
        path = tmp_path / name
        save_model(model, path)
        whole = path.read_bytes()
        for share in (0.1, 0.5, 0.9, 0.99):
            path.write_bytes(whole[: int(share * len(whole))])
            assert refused(path)


def test_random_damage_is_refused_or_harmless(model, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("m.h5", "m.npz"):
        save_model(model, tmp_path / name)
        whole = (tmp_path / name).read_bytes()
        for trial in range(60):
            # The first bytes hold the structure, the rest mostly numbers.
            places = rng.integers(0, 3000 if trial % 2 else len(whole), 12)
            damaged = bytearray(whole)
            for place in places:
                damaged[place] = rng.integers(256)
            (tmp_path / name).write_bytes(damaged)
            try:
                found = load_model(tmp_path / name)
            except BreastMorphError:
                continue
            assert np.isfinite(found.instance(found.deviations)).all()


def test_announced_sizes_are_not_believed(saved, model, tmp_path):
    with h5py.File(saved, "a") as file:
        del file["model/pcaBasis"]
        # Never written, so the file stays small: 40 TB of zeros.
        file.create_dataset("model/pcaBasis", shape=(10**9, 10**4), dtype="f4", chunks=(1000, 1000))
    assert "announces" in refused(saved)


def test_data_in_other_files_are_not_followed(saved, tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["mean"] = np.zeros(9, "f4")
    with h5py.File(saved, "a") as file:
        del file["model/mean"]
        file["model/mean"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/mean")
    assert "another file" in refused(saved)


def test_npz_with_pickles_or_false_sizes_is_refused(model, tmp_path):
    path = tmp_path / "m.npz"
    np.savez(path, kind=np.array([{"a": 1}], dtype=object))
    assert refused(path)
    np.savez(path, kind=np.array("something else"))
    assert "not a model" in refused(path)
    save_model(model, path)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 3)}
    )
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "n.npz", "w") as new:
        for name in old.namelist():
            new.writestr(name, header.getvalue() if name == "mean.npy" else old.read(name))
    assert "announces" in refused(tmp_path / "n.npz")
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as new:
        new.writestr("mean.npy", bytes(200 * 1024**2))
    assert "announces" in refused(tmp_path / "bomb.npz")


def test_only_known_endings_are_written(model, tmp_path):
    with pytest.raises(FileProblem, match=r"\.h5"):
        save_model(model, tmp_path / "model.xyz")
    with pytest.raises(FileProblem, match="does not exist"):
        save_model(model, tmp_path / "nowhere" / "model.h5")
    assert not list(tmp_path.iterdir())
