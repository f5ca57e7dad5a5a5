"""What is written comes back: order, colours, texture and declared axes, in every format that has them."""

import numpy as np
import pytest

from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh


@pytest.mark.parametrize("name", ["bumpy", "coloured", "smooth_texture", "seams"])
@pytest.mark.parametrize("suffix", ["ply", "obj", "vtp", "glb"])
def test_a_mesh_comes_back_in_its_order(name, suffix, request, tmp_path, assert_same):
    mesh, path = request.getfixturevalue(name), tmp_path / f"my scan.{suffix}"
    save_mesh(mesh, path)
    back = load_mesh(path)
    assert_same(mesh, back, exact=suffix in ("obj", "vtp"), colors="rgb" if suffix == "obj" else "rgba")
    if suffix == "ply":  # rounded once, not again and again
        save_mesh(back, tmp_path / "b.ply")
        assert_same(back, load_mesh(tmp_path / "b.ply"))
    if mesh.texture and suffix != "vtp":
        assert back.texture.image == mesh.texture.image


@pytest.mark.parametrize("suffix", ["ply", "obj", "stl", "vtp", "glb"])
@pytest.mark.parametrize("space", ["LPS", "RAS"])
def test_declared_axes_come_back(suffix, space, bumpy, tmp_path):
    save_mesh(TriangleMesh(bumpy.vertices, bumpy.faces, space=space), tmp_path / f"a.{suffix}")
    assert load_mesh(tmp_path / f"a.{suffix}").space == space
    if suffix == "ply":  # as 3D Slicer writes it
        assert f"comment SPACE={space}".encode() in (tmp_path / "a.ply").read_bytes()


def test_a_mesh_may_have_no_faces():
    assert TriangleMesh(np.zeros((0, 3)), np.zeros((0, 3), int)).n_faces == 0
