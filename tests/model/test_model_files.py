"""Model files: round trips, other people's files, other people's readers."""

from __future__ import annotations

import json
import struct
import uuid
from dataclasses import replace

import h5py
import numpy as np
import pytest

from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.files import (
    load_landmark_ids,
    load_model,
    save_model,
    write_mode_sequence,
    write_morph_targets,
)
from breastmorph.model.shape_model import ShapeModel
from small_cohort import built, small_cohort


@pytest.fixture(scope="module")
def model():
    return built(small_cohort(), keep_scores=True).truncate(6)


def short_reader(path):
    """The published model's own reader, from its description: nothing but h5py and numpy."""
    with h5py.File(path) as file:
        mean = file["model/mean"][()].reshape(-1, 3)
        basis, variances = file["model/pcaBasis"][()], file["model/pcaVariance"][()]
        faces, points = file["representer/cells"][()].T, file["representer/points"][()].T
    return mean, basis, variances, faces, points


def statismo_tree(model, version=(0, 9)):
    """The tree of a foreign file: paths to arrays, and the representer's attributes."""
    scaled = version in (None, (0, 8))
    basis = model.basis * model.deviations.astype(np.float32) if scaled else model.basis
    arrays = {
        "/model/mean": model.mean.ravel().astype(np.float32),
        "/model/pcaBasis": np.asarray(basis),
        "/model/pcaVariance": model.variances.astype(np.float32),
        "/model/noiseVariance": np.array([0.0], np.float32),
        "/representer/points": model.mean.T.astype(np.float32),
        "/representer/cells": model.faces.T.astype(np.int32),
    }
    if version is not None:
        arrays["/version/majorVersion"], arrays["/version/minorVersion"] = np.int32(version)
    return arrays, {"name": "itkStandardMeshRepresenter", "datasetType": "POLYGON_MESH"}


def write_hdf5(path, arrays, attributes, root=""):
    with h5py.File(path, "w") as file:
        for name, value in arrays.items():
            file[(root if not name.startswith("/version") else "") + name] = value
        for name, value in attributes.items():
            file[f"{root}/representer"].attrs[name] = value


def write_hdf5_json(path, arrays, attributes):
    """As Scalismo writes it: groups and datasets by random ids, joined by links."""
    groups = {"root": {"alias": ["/"], "attributes": [], "links": []}}
    datasets = {}
    for name, value in arrays.items():
        _, group, title = name.split("/")
        group_id = f"g-{group}"
        if group_id not in groups:
            groups[group_id] = {"alias": [f"/{group}"], "attributes": [], "links": []}
            groups["root"]["links"].append(
                {"class": "H5L_TYPE_HARD", "title": group, "collection": "groups", "id": group_id}
            )
        key = str(uuid.uuid4())
        value = np.asarray(value)
        shape = {"class": "H5S_SIMPLE", "dims": list(value.shape)} if value.ndim else {"class": "H5S_SCALAR"}
        datasets[key] = {
            "shape": shape,
            "type": {"class": "H5T_FLOAT"},
            "value": value.tolist(),
            "alias": [name],
        }
        groups[group_id]["links"].append(
            {"class": "H5L_TYPE_HARD", "title": title, "collection": "datasets", "id": key}
        )
    for name, value in attributes.items():
        attribute = {"name": name, "shape": {"class": "H5S_SCALAR"}, "value": value}
        groups["g-representer"]["attributes"].append(attribute)
    content = {"root": "root", "groups": groups, "datasets": datasets, "apiVersion": "1.0.0"}
    path.write_text(json.dumps(content))


def same_shapes(a, b, atol=2e-4):
    """Whether two models describe the same Gaussian, whatever the signs of their components."""
    c = np.random.default_rng(2).standard_normal(a.n_components) * a.deviations
    signs = np.sign((a.basis * b.basis).sum(axis=0))
    return (
        np.allclose(a.mean, b.mean, atol=atol)
        and np.allclose(a.variances, b.variances, rtol=1e-5)
        and np.allclose(a.instance(c), b.instance(c * signs), atol=atol)
        and np.array_equal(a.faces, b.faces)
    )


def test_the_short_reader_gives_the_same_samples(model, tmp_path):
    save_model(model, tmp_path / "m.h5")
    mean, basis, variances, faces, points = short_reader(tmp_path / "m.h5")
    rng = np.random.default_rng(7)
    c = rng.standard_normal(len(variances)) * np.sqrt(variances)
    theirs = mean + (basis @ c.astype(np.float32)).reshape(-1, 3)
    assert np.abs(theirs - model.drawn(np.random.default_rng(7))).max() < 1e-3
    assert np.array_equal(faces, model.faces)
    assert np.allclose(points, model.mean, atol=1e-4)


def test_scores_follow_components_that_are_brought_into_order(model, tmp_path):
    arrays, attributes = statismo_tree(model)
    arrays["/modelinfo/scores"] = (model.training.scores / model.deviations).T.astype(np.float32)
    write_hdf5(tmp_path / "falling.h5", arrays, attributes)
    found = load_model(tmp_path / "falling.h5").training.scores
    assert np.allclose(found, model.training.scores, rtol=1e-4, atol=1e-4)
    for name, value in arrays.items():
        if name in ("/model/pcaVariance", "/modelinfo/scores"):
            arrays[name] = value[::-1]
    arrays["/model/pcaBasis"] = arrays["/model/pcaBasis"][:, ::-1]
    write_hdf5(tmp_path / "rising.h5", arrays, attributes)
    rising = load_model(tmp_path / "rising.h5")
    assert same_shapes(rising, model)
    assert np.allclose(rising.training.scores, found, rtol=1e-6, atol=1e-6)


def test_scores_of_a_component_without_variance_can_be_read_again(model, tmp_path):
    variances = model.variances.copy()
    variances[-1] = 0.0
    flat = replace(model, variances=variances)
    save_model(flat, tmp_path / "flat.h5")
    scores = load_model(tmp_path / "flat.h5").training.scores
    assert np.allclose(scores[:, :-1], model.training.scores[:, :-1], rtol=1e-5, atol=1e-4)
    assert not scores[:, -1].any()
    with h5py.File(tmp_path / "flat.h5", "r+") as file:
        file["modelinfo/scores"][-1] = np.nan  # what other builders make of 0 / 0
    assert np.array_equal(load_model(tmp_path / "flat.h5").training.scores, scores)


def test_types_and_shapes_are_those_of_the_format(model, tmp_path):
    save_model(model, tmp_path / "m.h5")
    n, q = model.n_vertices, model.n_components
    with h5py.File(tmp_path / "m.h5") as file:
        assert [int(file[f"version/{part}Version"][()]) for part in ("major", "minor")] == [0, 9]
        kinds = {name: (file[name].dtype, file[name].shape) for name in ("representer/points", "model/mean")}
        assert kinds == {"representer/points": (np.float32, (3, n)), "model/mean": (np.float32, (3 * n,))}
        assert (file["representer/cells"].dtype, file["representer/cells"].shape[0]) == (np.int32, 3)
        assert (file["model/pcaBasis"].dtype, file["model/pcaBasis"].shape) == (np.float32, (3 * n, q))
        assert (file["model/pcaVariance"].dtype, file["model/noiseVariance"].shape) == (np.float32, (1,))
        assert file["representer"].attrs["name"] == b"itkStandardMeshRepresenter"
        assert file["representer"].attrs["datasetType"] == b"POLYGON_MESH"
        # Statismo: a column a subject, in standard deviations.
        scores = file["modelinfo/scores"][()]
        assert scores.shape == (q, 9)
        assert np.allclose(scores.var(axis=1, ddof=1), 1.0, atol=1e-3)


@pytest.mark.parametrize("name", ["m.h5", "m.HDF5", "m.npz"])
def test_everything_survives_a_round_trip(model, tmp_path, name):
    save_model(model, tmp_path / name)
    back = load_model(tmp_path / name)
    assert same_shapes(model, back, atol=1e-4)
    assert dict(back.landmark_ids) == dict(model.landmark_ids)
    assert np.array_equal(back.mirror, model.mirror)
    assert back.noise_variance == pytest.approx(model.noise_variance, rel=1e-6)
    assert back.info["subjects"] == 9
    assert np.allclose(back.training.scores, model.training.scores, atol=1e-3)
    assert np.allclose(back.training.scales, model.training.scales)
    save_model(back.without_training(), tmp_path / name)
    assert load_model(tmp_path / name).training is None


@pytest.mark.parametrize("version", [None, (0, 8), (0, 9), (1, 0), (1, 2)])
def test_foreign_hdf5_of_every_version_loads(model, tmp_path, version):
    write_hdf5(tmp_path / "m.h5", *statismo_tree(model, version))
    found = load_model(tmp_path / "m.h5")
    assert same_shapes(model, found)
    assert not found.landmark_ids


@pytest.mark.parametrize("version", [(0, 8), (0, 9)])
def test_hdf5_json_loads_whatever_its_extension(model, tmp_path, version):
    write_hdf5_json(tmp_path / "m.h5", *statismo_tree(model, version))
    assert same_shapes(model, load_model(tmp_path / "m.h5"))


def test_a_catalog_points_to_the_model(model, tmp_path):
    path = tmp_path / "m.h5"
    write_hdf5(path, *statismo_tree(model), root="/models/first")
    with h5py.File(path, "a") as file:
        file["catalog/an image/modelPath"], file["catalog/an image/modelType"] = "/images", "IMAGE_MODEL"
        file["catalog/torso/modelPath"] = "/models/first"
        file["catalog/torso/modelType"] = "POLYGON_MESH_MODEL"
    assert same_shapes(model, load_model(path))


def test_an_old_file_may_hold_its_reference_as_a_whole_vtk_file(model, tmp_path):
    arrays, _ = statismo_tree(model, None)
    n, m = model.n_vertices, len(model.faces)
    lines = ["# vtk DataFile Version 3.0", "reference", "ASCII", "DATASET POLYDATA", f"POINTS {n} float"]
    lines += [" ".join(map(str, point)) for point in model.mean.tolist()]
    lines += [f"POLYGONS {m} {4 * m}"] + [f"3 {a} {b} {c}" for a, b, c in model.faces.tolist()]
    del arrays["/representer/points"], arrays["/representer/cells"]
    arrays["/representer/reference"] = np.frombuffer("\n".join(lines).encode(), np.int8)
    write_hdf5(tmp_path / "m.h5", arrays, {"name": "vtkPolyDataRepresenter"})
    assert same_shapes(model, load_model(tmp_path / "m.h5"))


@pytest.mark.parametrize("null", [False, True])
def test_a_basis_that_is_orthonormal_is_believed_whatever_the_version_says(model, tmp_path, caplog, null):
    arrays, attributes = statismo_tree(model, (0, 9))
    arrays["/version/minorVersion"] = np.int32(8)
    if null:
        arrays["/model/pcaBasis"] = np.c_[arrays["/model/pcaBasis"], np.zeros(3 * model.n_vertices)]
        arrays["/model/pcaVariance"] = np.r_[arrays["/model/pcaVariance"], 0.0]
    write_hdf5(tmp_path / "m.h5", arrays, attributes)
    assert same_shapes(model, load_model(tmp_path / "m.h5"))
    assert "the numbers are believed" in caplog.text


def test_a_little_drift_of_the_basis_is_repaired_with_the_covariance_kept(model, tmp_path):
    arrays, attributes = statismo_tree(model)
    rng = np.random.default_rng(0)
    turn = np.eye(model.n_components) + 0.01 * rng.uniform(-1, 1, (model.n_components,) * 2)
    drifted = model.basis.astype(float) @ turn
    arrays["/model/pcaBasis"] = drifted.astype(np.float32)
    write_hdf5(tmp_path / "m.h5", arrays, attributes)
    found = load_model(tmp_path / "m.h5")
    assert np.allclose(found.basis.T @ found.basis, np.eye(model.n_components), atol=1e-5)
    rows = drifted * model.deviations
    expected = np.sqrt((rows**2).sum(axis=1).reshape(-1, 3).sum(axis=1))
    assert np.allclose(found.vertex_deviations(), expected, rtol=1e-3)


def meant(arrays, version=(0, 9)):
    """The covariance that a file means, dense: 0.8 has the standard deviations in its basis."""
    basis, variances = (arrays[f"/model/{name}"].astype(float) for name in ("pcaBasis", "pcaVariance"))
    some = variances > 0.0
    weights = 1.0 if version in (None, (0, 8)) else variances[some]
    return (basis[:, some] * weights) @ basis[:, some].T


def null_component(model, basis, variances):
    return np.c_[basis, 0.1 * np.ones(len(basis))], np.r_[variances, 1e-11]


def null_component_not_finite(model, basis, variances):
    return np.c_[basis, np.full(len(basis), np.nan)], np.r_[variances, 0.0]


def column_of_zeros(model, basis, variances):
    return np.c_[basis[:, :2], np.zeros(len(basis)), basis[:, 2:]], np.insert(variances, 2, 3.0)


def variance_below_zero(model, basis, variances):
    return np.c_[basis, np.ones(len(basis))], np.r_[variances, -1e-8]


def gaussian_process(model, basis, variances):
    """Smooth functions sampled at the points: neither of unit length nor at right angles."""
    waves = np.sin(model.mean @ np.random.default_rng(0).normal(scale=0.02, size=(3, 10)))
    return np.einsum("nk,ij->nikj", waves, np.eye(3)).reshape(len(basis), 30), np.linspace(30.0, 0.2, 30)


def unit_variances(model, basis, variances):
    return basis * np.sqrt(variances), np.ones(len(variances))


def more_than_there_can_be(model, basis, variances):
    return np.random.default_rng(0).normal(size=(len(basis), len(basis) + 5)), np.ones(len(basis) + 5)


def as_scalismo_rounds(model, basis, variances):
    return basis + 1e-3 * np.random.default_rng(0).uniform(-1, 1, basis.shape), variances


KINDS = (
    null_component,
    null_component_not_finite,
    column_of_zeros,
    variance_below_zero,
    gaussian_process,
    unit_variances,
    more_than_there_can_be,
    as_scalismo_rounds,
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [(0, 9), (0, 8)], ids=["0.9", "0.8"])
def test_any_basis_gives_the_covariance_that_it_means(model, tmp_path, caplog, kind, version):
    small = model.marginal(np.arange(0, model.n_vertices, 40))
    basis, variances = kind(small, small.basis.astype(float), small.variances)
    arrays, attributes = statismo_tree(replace(small, faces=np.array([[0, 1, 2]])), version)
    scale = np.sqrt(np.abs(variances)) if version == (0, 8) else 1.0
    arrays["/model/pcaBasis"] = (basis * scale).astype(np.float32)
    arrays["/model/pcaVariance"] = variances.astype(np.float32)
    write_hdf5(tmp_path / "m.h5", arrays, attributes)
    found = load_model(tmp_path / "m.h5")
    assert "without variance" in caplog.text or "not orthonormal" in caplog.text
    save_model(found, tmp_path / "saved.h5")
    expected = meant(arrays, version)
    for one in (found, load_model(tmp_path / "saved.h5")):
        have = one.basis.astype(float)
        assert np.allclose(have.T @ have, np.eye(one.n_components), atol=1e-5)
        assert (np.diff(one.variances) <= 0.0).all()
        assert np.abs((have * one.variances) @ have.T - expected).max() < 1e-5 * np.abs(expected).max()
        assert np.isfinite(one.drawn(np.random.default_rng(0))).all()
    assert np.array_equal(load_model(tmp_path / "m.h5").basis, found.basis)


def test_scores_follow_components_that_are_made_orthonormal(model, tmp_path):
    arrays, attributes = statismo_tree(model)
    rng = np.random.default_rng(0)
    basis = model.basis.astype(float) @ rng.normal(size=(6, 6))
    scores = rng.normal(size=(6, 9))
    arrays |= {"/model/pcaBasis": basis.astype(np.float32), "/modelinfo/scores": scores.astype(np.float32)}
    write_hdf5(tmp_path / "m.h5", arrays, attributes)
    found = load_model(tmp_path / "m.h5")
    shapes = (basis * model.deviations) @ scores
    assert np.allclose(found.basis @ found.training.scores.T, shapes, atol=1e-5 * np.abs(shapes).max())
    arrays["/modelinfo/scores"][0, 0] = np.nan
    write_hdf5(tmp_path / "m.h5", arrays, attributes)
    assert load_model(tmp_path / "m.h5").training is None


def test_a_model_without_variance_is_its_mean(model, tmp_path, caplog):
    arrays, attributes = statismo_tree(model)
    arrays["/model/pcaBasis"] = np.full_like(arrays["/model/pcaBasis"], np.nan)
    arrays["/model/pcaVariance"] = np.zeros(6, np.float32)
    write_hdf5(tmp_path / "m.h5", arrays, attributes)
    found = load_model(tmp_path / "m.h5")
    assert "no variance" in caplog.text
    for name in ("saved.h5", "saved.npz", "saved.glb"):
        save_model(found, tmp_path / name)
    assert np.array_equal(load_model(tmp_path / "saved.h5").drawn(np.random.default_rng(0)), found.mean)


def test_a_basis_as_long_as_the_deviations_is_read_as_its_version_says(model, tmp_path, caplog):
    arrays, attributes = statismo_tree(model, (0, 8))
    arrays["/version/minorVersion"] = np.int32(9)
    write_hdf5(tmp_path / "m.h5", arrays, attributes)
    assert np.allclose(load_model(tmp_path / "m.h5").variances, model.variances**2, rtol=1e-4)
    assert "as if multiplied by them" in caplog.text


def test_of_several_models_in_a_file_the_first_is_read_and_named(model, tmp_path, caplog):
    path = tmp_path / "m.h5"
    write_hdf5(path, *statismo_tree(model), root="/a")
    with h5py.File(path, "a") as file:
        file["version"].move("majorVersion", "/a/version/majorVersion")
        file["version"].move("minorVersion", "/a/version/minorVersion")
        for name in ("face", "torso"):
            file[f"catalog/{name}/modelPath"], file[f"catalog/{name}/modelType"] = "/a", "POLYGON_MESH_MODEL"
    assert same_shapes(model, load_model(path))
    assert "2 models of a surface: face is read, and not torso" in caplog.text
    assert "multiplied" not in caplog.text  # its version is where it lies


@pytest.mark.parametrize("change", ["zero", "metres", "wide", "narrow", "bare"])
def test_a_model_that_can_hardly_be_a_torso_is_spoken_of(model, tmp_path, caplog, change):
    few = {name: model.landmark_ids[name] for name in ("xiphoid", "nipple_left", "nipple_right")}
    plain = replace(model, landmark_ids=few)
    save_model(plain, tmp_path / "plain.h5")
    load_model(tmp_path / "plain.h5")
    assert not caplog.text
    odd, says = {
        "zero": (replace(plain, mean=np.zeros_like(model.mean)), "mean is all zero"),
        "metres": (plain.transform(Similarity(scale=0.001)), "another unit"),
        "wide": (replace(plain, variances=1e4 * model.variances), "mm (standard deviation), which no body"),
        "narrow": (replace(plain, variances=1e-12 * model.variances), "which no body does"),
        "bare": (replace(model, landmark_ids={}), "no landmarks"),
    }[change]
    save_model(odd, tmp_path / "odd.h5")
    assert load_model(tmp_path / "odd.h5").n_components == model.n_components
    assert says in caplog.text


def test_unsorted_components_are_sorted(model, tmp_path):
    arrays, attributes = statismo_tree(model)
    order = [2, 0, 1, 5, 3, 4]
    arrays["/model/pcaBasis"] = arrays["/model/pcaBasis"][:, order]
    arrays["/model/pcaVariance"] = arrays["/model/pcaVariance"][order]
    write_hdf5(tmp_path / "m.h5", arrays, attributes)
    assert same_shapes(model, load_model(tmp_path / "m.h5"))


def test_the_published_model_gets_its_five_landmarks(tmp_path):
    n = 30_924
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.normal(size=(3 * n, 2)))
    published = ShapeModel(rng.normal(size=(n, 3)), basis, np.array([2.0, 1.0]), np.array([[0, 1, 2]]))
    save_model(published, tmp_path / "rbsm.h5")
    found = load_model(tmp_path / "rbsm.h5", {"xiphoid": 15000})
    assert found.landmark_ids["sternal_notch"] == 15505
    assert (found.landmark_ids["nipple_left"], found.landmark_ids["nipple_right"]) == (9356, 24934)
    assert (found.landmark_ids["lower_pole_left"], found.landmark_ids["lower_pole_right"]) == (8561, 24139)
    assert found.landmark_ids["xiphoid"] == 15000


def test_landmark_ids_come_from_a_json_file(model, tmp_path):
    path = tmp_path / "ids.json"
    path.write_text('{"XI": 12, "lateral pole left": 44}')
    save_model(model, tmp_path / "m.h5")
    found = load_model(tmp_path / "m.h5", load_landmark_ids(path))
    assert (found.landmark_ids["xiphoid"], found.landmark_ids["lateral_pole_left"]) == (12, 44)
    for text in ("[1, 2]", '{"xiphoid": "12"}', '{"xiphoid": true}', "{", '{"xiphoid": 1.5}'):
        path.write_text(text)
        with pytest.raises(FileProblem):
            load_landmark_ids(path)


def read_glb(path):
    """A small reader of binary glTF: the description, and the values of an accessor."""
    data = path.read_bytes()
    magic, version, length = struct.unpack_from("<4sII", data)
    assert (magic, version, length) == (b"glTF", 2, len(data))
    size, kind = struct.unpack_from("<I4s", data, 12)
    assert (kind, size % 4) == (b"JSON", 0)
    document = json.loads(data[20 : 20 + size])
    binary = data[28 + size :]

    def values(index):
        accessor = document["accessors"][index]
        view = document["bufferViews"][accessor["bufferView"]]
        dtype = {5126: "<f4", 5125: "<u4"}[accessor["componentType"]]
        width = {"VEC3": 3, "SCALAR": 1}[accessor["type"]]
        assert view["byteOffset"] % 4 == 0
        assert view["byteOffset"] + view["byteLength"] <= document["buffers"][0]["byteLength"] == len(binary)
        flat = np.frombuffer(binary, dtype, accessor["count"] * width, view["byteOffset"])
        found = flat.reshape(-1, width)
        if "min" in accessor:
            assert np.allclose(accessor["min"], found.min(axis=0))
            assert np.allclose(accessor["max"], found.max(axis=0))
        return found

    return document, values


def test_morph_targets_are_the_modes_in_metres(model, tmp_path):
    write_morph_targets(model, tmp_path / "m.glb", modes=3, deviations=2.0)
    document, values = read_glb(tmp_path / "m.glb")
    (mesh,) = document["meshes"]
    (primitive,) = mesh["primitives"]
    mean = values(primitive["attributes"]["POSITION"])
    assert np.allclose(1000 * mean, model.mean, atol=1e-3)
    assert np.array_equal(values(primitive["indices"]).reshape(-1, 3), model.faces)
    assert len(primitive["targets"]) == len(mesh["weights"]) == len(mesh["extras"]["targetNames"]) == 3
    assert mesh["extras"]["targetNames"][0] == "mode 1 (+2 sd)"
    for k, target in enumerate(primitive["targets"]):
        assert "min" in document["accessors"][target["POSITION"]]
        moved = values(target["POSITION"])
        expected = model.instance(np.eye(6)[k] * 2.0 * model.deviations) - model.mean
        assert np.allclose(1000 * moved, expected, atol=1e-3)
        normals = values(primitive["attributes"]["NORMAL"]) + values(target["NORMAL"])
        assert np.allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-4)
    assert len(load_mesh(tmp_path / "m.glb").faces) == len(model.faces)


def test_every_vertex_of_a_glb_has_a_normal_even_without_faces(model, tmp_path):
    """Khronos' validator refuses normals of length zero."""
    corner = model.faces[0, 0]
    without = replace(model, faces=model.faces[(model.faces != corner).all(axis=1)])
    write_morph_targets(without, tmp_path / "m.glb", modes=1)
    document, values = read_glb(tmp_path / "m.glb")
    (primitive,) = document["meshes"][0]["primitives"]
    normals = values(primitive["attributes"]["NORMAL"])
    assert np.allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-4)
    assert normals[corner].tolist() == [0.0, 0.0, 1.0]


def test_mode_sequences_run_through_the_mean(model, tmp_path):
    written = write_mode_sequence(model, tmp_path / "modes", modes=2, deviations=3.0, frames=3)
    assert [path.name for path in written] == [
        "mean.ply",
        *(f"mode{mode:02d}_{frame:02d}.ply" for mode in (1, 2) for frame in range(3)),
    ]
    middle, last = load_mesh(written[2]), load_mesh(written[3])
    assert np.allclose(middle.vertices, model.mean, atol=1e-4)
    assert np.allclose(last.vertices, model.instance([3 * model.deviations[0]]), atol=1e-4)
