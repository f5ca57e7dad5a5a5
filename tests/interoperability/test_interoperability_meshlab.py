"""MeshLab itself opens our meshes, and we what it saves; run where pymeshlab is installed."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.skin import to_light
from breastmorph.mesh.triangle_mesh import Texture

pymeshlab = pytest.importorskip("pymeshlab")


def opened(path):
    program = pymeshlab.MeshSet()
    program.load_new_mesh(str(path))
    return program


@pytest.mark.parametrize("suffix", ["ply", "obj", "stl", "glb"])
def test_meshes_and_colours(suffix, kit, mesh, assert_near):
    program = opened(kit / f"mesh.{suffix}")
    found = program.current_mesh()
    assert_near(found.vertex_matrix(), mesh.vertices, suffix)
    assert found.face_number() == mesh.n_faces
    if suffix != "stl":
        assert np.array_equal(found.face_matrix(), mesh.faces)
        light = np.column_stack([255 * to_light(mesh.colors[:, :3]), mesh.colors[:, 3]])
        expected = (
            light if suffix == "glb" else mesh.colors
        )  # MeshLab shows the light of a GLB as if it were levels
        assert np.abs(255 * found.vertex_color_matrix() - expected).max() <= (1.0 if suffix == "glb" else 0.5)


@pytest.mark.parametrize("suffix", ["ply", "obj", "off", "stl"])
def test_what_meshlab_saves(suffix, kit, mesh, tmp_path, assert_near):
    opened(kit / "mesh.ply").save_current_mesh(str(tmp_path / f"a.{suffix}"))
    back = load_mesh(tmp_path / f"a.{suffix}")
    assert_near(back.vertices, mesh.vertices, suffix)
    if suffix != "stl":
        assert np.array_equal(back.faces, mesh.faces)
        assert np.array_equal(back.colors, mesh.colors)


@pytest.mark.parametrize("suffix", ["ply", "obj"])
@pytest.mark.parametrize("seams", [False, True])
def test_textures_there_and_back(suffix, seams, mesh, tmp_path):
    picture = BytesIO()
    Image.new("RGB", (8, 8), "brown").save(picture, "PNG")
    uv = (mesh.vertices[:, :2] / 1000 + 0.4)[mesh.faces]
    if seams:
        uv[::2] += 0.1  # every second triangle is cut out elsewhere
    save_mesh(replace(mesh, colors=None, texture=Texture(uv, picture.getvalue())), tmp_path / f"a.{suffix}")
    program = opened(tmp_path / f"a.{suffix}")
    found = program.current_mesh()
    assert found.texture_number() == 1
    if found.has_wedge_tex_coord():
        corners = found.wedge_tex_coord_matrix().reshape(-1, 3, 2)
    else:
        corners = found.vertex_tex_coord_matrix()[found.face_matrix()]
    np.testing.assert_allclose(corners, uv, atol=1e-6)
    program.save_current_mesh(str(tmp_path / f"b.{suffix}"))
    np.testing.assert_allclose(load_mesh(tmp_path / f"b.{suffix}").texture.uv, uv, atol=1e-6)
