import json
import struct
from io import BytesIO

import numpy as np
import pytest
import trimesh
from PIL import Image

from breastmorph.errors import FileProblem, MeshProblem
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh


def document_of(path):
    data = path.read_bytes()
    size = struct.unpack_from("<I", data, 12)[0]
    return json.loads(data[20 : 20 + size]), data[20 + size :]


def rewritten(path, change):
    document, rest = document_of(path)
    change(document)
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    body = struct.pack("<II", len(text), 0x4E4F534A) + text + rest
    path.write_bytes(b"glTF" + struct.pack("<II", 2, 12 + len(body)) + body)
    return path


@pytest.mark.parametrize("name", ["bumpy", "coloured", "smooth_texture", "seams"])
def test_round_trip_keeps_the_order(name, request, tmp_path, assert_same):
    mesh = request.getfixturevalue(name)
    save_mesh(mesh, tmp_path / "a.glb")
    back = load_mesh(tmp_path / "a.glb")
    assert_same(mesh, back, exact=False)
    if mesh.texture:
        assert back.texture.image == mesh.texture.image


def test_doubles_lie_behind_the_original_vertices(seams, tmp_path):
    save_mesh(seams, tmp_path / "a.glb")
    other = trimesh.load(tmp_path / "a.glb", process=False, force="mesh")
    n = seams.n_vertices
    assert len(other.vertices) > n
    np.testing.assert_allclose(other.vertices[:n], seams.vertices, rtol=1e-6)
    np.testing.assert_allclose(other.vertices[other.faces], seams.vertices[seams.faces], rtol=1e-6)
    np.testing.assert_allclose(other.visual.uv[other.faces], seams.texture.uv, atol=1e-6)
    assert other.visual.material.baseColorTexture.size == (4, 4)


def test_trimesh_reads_our_colours(coloured, tmp_path):
    save_mesh(coloured, tmp_path / "a.glb")
    other = trimesh.load(tmp_path / "a.glb", process=False, force="mesh")
    np.testing.assert_array_equal(other.visual.vertex_colors, coloured.colors)
    np.testing.assert_array_equal(other.faces, coloured.faces)


def test_reads_trimesh(coloured, smooth_texture, of_trimesh, tmp_path, assert_same):
    other = trimesh.Trimesh(coloured.vertices, coloured.faces, vertex_colors=coloured.colors, process=False)
    other.export(tmp_path / "a.glb")
    assert_same(coloured, load_mesh(tmp_path / "a.glb"), exact=False)
    of_trimesh.export(tmp_path / "b.glb")
    mesh = load_mesh(tmp_path / "b.glb")
    assert_same(smooth_texture, mesh, exact=False)
    assert Image.open(BytesIO(mesh.texture.image)).size == (4, 4)


def test_scene_of_placed_parts(bumpy, tmp_path):
    part = trimesh.Trimesh(bumpy.vertices, bumpy.faces, process=False)
    turn = trimesh.transformations.rotation_matrix(0.7, [1, 2, 3], [4, 5, 6]) @ np.diag([2.0, 2, 2, 1])
    mirror = np.diag([-1.0, 1, 1, 1])
    mirror[0, 3] = -50
    scene = trimesh.Scene()
    scene.add_geometry(part, transform=turn)
    scene.add_geometry(part, transform=mirror)
    scene.export(tmp_path / "a.glb")
    mesh = load_mesh(tmp_path / "a.glb")
    assert mesh.n_vertices == 2 * bumpy.n_vertices
    expected = np.concatenate([trimesh.transform_points(bumpy.vertices, m) for m in (turn, mirror)])
    np.testing.assert_allclose(mesh.vertices, expected, rtol=1e-5, atol=1e-4)
    # A mirroring node must not turn the surface inside out: normals still point to the same side.
    mirrored = mesh.vertices[mesh.faces][mesh.vertices[mesh.faces][:, 0, 0] < -40]
    normal = np.cross(mirrored[:, 1] - mirrored[:, 0], mirrored[:, 2] - mirrored[:, 0])
    corners = bumpy.vertices[bumpy.faces]
    original = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    np.testing.assert_array_equal(np.sign(normal[:, 2]), np.sign(original[:, 2]))


def test_space(bumpy, tmp_path):
    save_mesh(TriangleMesh(bumpy.vertices, bumpy.faces, space="LPS"), tmp_path / "a.glb")
    assert load_mesh(tmp_path / "a.glb").space == "LPS"


def _endless(document):
    document["nodes"][0]["children"] = [0]


def _wide(document):
    document["nodes"] = (
        [{"children": [1] * 50}] + [{"children": [k + 1] * 50} for k in range(1, 40)] + [{"mesh": 0}]
    )


@pytest.mark.parametrize(("change", "words"), [
    (lambda d: d["accessors"][0].update(count=2**31), "announces 2,147,483,648 rows"),
    (lambda d: d["bufferViews"][0].update(byteLength=2**40), "binary data"),
    (lambda d: d["accessors"][0].update(bufferView=99), "number 99 of 'bufferViews'"),
    (lambda d: d["accessors"][0].update(componentType=1), "damaged"),
    (lambda d: d["meshes"][0]["primitives"][0].update(mode=5), "strips or fans"),
    (lambda d: d["meshes"][0]["primitives"][0].update(mode=0), "no faces"),
    (lambda d: d.update(extensionsRequired=["KHR_draco_mesh_compression"]), "KHR_draco"),
    (lambda d: d["buffers"][0].update(uri="../secret.bin"), "another file"),
    (lambda d: d.update(scene=-1), "number -1 of 'scenes'"),
    (_endless, "without end"),
    (_wide, "shows more than"),
])  # fmt: skip
def test_words_for_damage(change, words, bumpy, tmp_path):
    save_mesh(bumpy, tmp_path / "a.glb")
    with pytest.raises((FileProblem, MeshProblem), match=words):
        load_mesh(rewritten(tmp_path / "a.glb", change))
