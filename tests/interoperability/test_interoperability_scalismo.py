"""What Scalismo's readers demand of our files, as strictly as they do.

Scalismo reads HDF5 with jHDF, which hands out Java arrays of the type that is stored, and casts them: 64-bit floats
where it expects 32 are an error there, not a conversion. Its names and types are those of its sources (StatismoIO,
HDF5Reader, PLYMeshReaderBinary, LandmarkIO).
"""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest

from breastmorph.model.files import save_model
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import Landmarks

FLOAT, INT = np.dtype("<f4"), np.dtype("<i4")
JAVA_ARRAYS = 2**31 - 1  # bytes that jHDF maps at once


def dataset(file, path, dtype, dimensions):
    found = file[path]
    assert isinstance(found, h5py.Dataset), path
    assert (found.dtype, found.ndim) == (dtype, dimensions), path
    assert found.chunks is None, path
    assert found.nbytes < JAVA_ARRAYS, path
    return found[()]


def text_attribute(file, path, name):
    """A text, or a list of which the first counts; never numbers or opaque bytes."""
    kind = file[path].attrs.get_id(name)
    assert h5py.check_string_dtype(kind.dtype) is not None, name
    assert kind.shape == (), name
    value = file[path].attrs[name]
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


def scalismo_model(path):
    """Reference, mean, variances, basis and triangles, read in the order of ``readStatismoPDM``."""
    assert path.name.endswith(".h5")  # any other ending but .json is refused
    with h5py.File(path) as file:
        assert text_attribute(file, "/representer", "datasetType") == "POLYGON_MESH"
        points = dataset(file, "/representer/points", FLOAT, 2)
        assert points.shape[0] == 3
        cells = dataset(file, "/representer/cells", INT, 2)
        assert cells.shape[0] == 3
        mean = dataset(file, "/model/mean", FLOAT, 1)
        assert text_attribute(file, "/representer", "name") == "itkStandardMeshRepresenter"
        basis = dataset(file, "/model/pcaBasis", FLOAT, 2)
        version = tuple(dataset(file, f"/version/{part}Version", INT, 0) for part in ("major", "minor"))
        assert version == (0, 9)  # of this version the basis is orthonormal
        variances = dataset(file, "/model/pcaVariance", FLOAT, 1)
    return points.T.astype(float), mean.astype(float), variances.astype(float), basis.astype(float), cells.T


@pytest.mark.parametrize("components", [1, 12])
def test_models(components, model, tmp_path):
    model = model.truncate(components)
    save_model(model, tmp_path / "model.h5")
    reference, mean, variances, basis, cells = scalismo_model(tmp_path / "model.h5")
    assert len(mean) == reference.size == len(basis)
    assert len(variances) == basis.shape[1] == components
    assert np.array_equal(cells, model.faces)
    assert np.allclose(basis.T @ basis, np.eye(components), atol=1e-5)
    coefficients = np.random.default_rng(3).standard_normal(components)  # Scalismo's are in deviations
    deformation = (mean - reference.ravel()) + basis @ (coefficients * np.sqrt(variances))
    expected = model.instance(coefficients * model.deviations)
    assert np.allclose(reference + deformation.reshape(-1, 3), expected, atol=1e-3)


def ply_coordinates(data):
    """The types of x, y and z, and the names of a PLY header that Scalismo's own reader knows."""
    lines = data[: data.index(b"end_header")].decode("ascii").split("\n")
    assert lines[:2] == ["ply", "format binary_little_endian 1.0"]
    types = dict(line.split()[:0:-1] for line in lines if line.startswith("property") and "list" not in line)
    assert set(types) <= {"x", "y", "z", "nx", "ny", "nz", "red", "green", "blue", "alpha", "s", "t"}
    assert "property list uchar int vertex_indices" in lines
    return {types[axis] for axis in "xyz"}


def test_meshes_have_the_types_that_it_casts(kit):
    assert ply_coordinates((kit / "mesh.ply").read_bytes()) == {"float"}
    assert not (kit / "mesh.stl").read_bytes().startswith(b"solid")  # it would be read as text


def test_landmarks(points, tmp_path):
    save_landmarks(Landmarks.of(points), tmp_path / "a.json", format="scalismo")
    found = json.loads((tmp_path / "a.json").read_text())
    assert [(item["id"], tuple(item["coordinates"])) for item in found] == list(points.items())
