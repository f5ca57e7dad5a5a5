"""Files of a model in every format, and the numbers that belong to them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import cKDTree

from breastmorph.mesh.files import save_mesh
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import Landmarks


@pytest.fixture(scope="session")
def model(breast_model):
    return breast_model


@pytest.fixture(scope="session")
def mesh(model):
    """The mean with a colour that tells every vertex from its neighbours."""
    place = (model.mean - model.mean.min(axis=0)) / np.ptp(model.mean, axis=0)
    colors = np.column_stack([255 * place, np.full(len(place), 255)]).astype(np.uint8)
    return replace(model.mean_mesh, colors=colors)


@pytest.fixture(scope="session")
def points(model):
    return {name: tuple(model.mean[vertex].tolist()) for name, vertex in model.landmark_ids.items()}


@pytest.fixture(scope="session")
def kit(mesh, points, tmp_path_factory):
    """A folder with ``mesh``, ``meshLPS`` and ``meshRAS`` in all formats, and landmarks for 3D Slicer."""
    folder = tmp_path_factory.mktemp("kit")
    for suffix in ("ply", "obj", "stl", "vtp", "glb"):
        for space in ("", "LPS", "RAS"):
            save_mesh(replace(mesh, space=space), folder / f"mesh{space}.{suffix}")
    for suffix in ("mrk.json", "fcsv"):
        for space in ("LPS", "RAS"):
            save_landmarks(Landmarks.of(points), folder / f"points{space}.{suffix}", space=space)
    return folder


@pytest.fixture(scope="session")
def assert_near():
    """Assert that vertices are where they should be; of STL, which has no order, as a set."""

    def check(found, expected, suffix="", atol=1e-4):  # mm; 32-bit floats of a torso hold 1e-5
        found, expected = np.asarray(found, float), np.asarray(expected, float)
        if suffix == "stl":
            _, nearest = cKDTree(found).query(expected)
            assert len(np.unique(nearest)) == len(expected)
            found = found[nearest]
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)

    return check
