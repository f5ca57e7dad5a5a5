"""Whatever the coordinates are, a file holds them or is refused: none comes back changed, and nothing warns."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from breastmorph.foundation.errors import MeshProblem
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh

ENDLESS = np.outer(
    [1e308, -1e308, 0.0], np.ones(3)
)  # finite, but its extent is not, nor any of its 32-bit floats
ONE_FACE = np.array([[0, 1, 2]])


@pytest.mark.parametrize("suffix", ["ply", "obj", "vtp"])
@given(vertices=arrays(np.float64, (6, 3)), faces=arrays(np.int64, (5, 3), elements=st.integers(0, 5)))
@example(vertices=ENDLESS, faces=ONE_FACE)
@example(vertices=np.full((3, 3), np.nan), faces=ONE_FACE)
@example(vertices=np.full((3, 3), -np.inf), faces=ONE_FACE)
def test_any_coordinates_survive(suffix, vertices, faces, tmp_path_factory):
    path = tmp_path_factory.mktemp("mesh") / f"a.{suffix}"
    save_mesh(TriangleMesh(vertices, faces), path)
    back = load_mesh(path)
    with np.errstate(over="ignore", invalid="ignore"):
        extent = np.ptp(vertices, axis=0).max()
    seen = 1e-6 * extent if suffix == "ply" and np.isfinite(extent) else 0.0
    np.testing.assert_allclose(back.vertices, vertices, rtol=0.0, atol=seen)
    np.testing.assert_array_equal(back.faces, faces)


@pytest.mark.parametrize("vertices", [ENDLESS, np.full((3, 3), np.nan)])
def test_glb_refuses_what_its_numbers_cannot_hold(vertices, tmp_path):
    with pytest.raises(MeshProblem, match="not finite"):
        save_mesh(TriangleMesh(vertices, ONE_FACE), tmp_path / "a.glb")
    assert not list(tmp_path.iterdir())
