import json
import shutil
import struct
from base64 import b64encode
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
import trimesh
from PIL import Image
from scipy.spatial.transform import Rotation

from breastmorph.foundation.errors import FileProblem, MeshProblem
from breastmorph.mesh.files import gltf, load_mesh, needed_beside, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.check import find_scans


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


def test_doubles_lie_behind_the_original_vertices(seams, tmp_path):
    save_mesh(seams, tmp_path / "a.glb")
    other = trimesh.load(tmp_path / "a.glb", process=False, force="mesh")
    n = seams.n_vertices
    assert len(other.vertices) > n
    np.testing.assert_allclose(other.vertices[:n], seams.vertices, rtol=1e-6)
    np.testing.assert_allclose(other.vertices[other.faces], seams.vertices[seams.faces], rtol=1e-6)
    np.testing.assert_allclose(other.visual.uv[other.faces], seams.texture.uv, atol=1e-6)
    assert other.visual.material.baseColorTexture.size == (4, 4)


def test_colours_are_light_as_the_format_says(coloured, seams, tmp_path):
    """Strict viewers take COLOR_0 for linear light, multiply it with a picture, and see metal without a material."""
    save_mesh(coloured, tmp_path / "a.glb")
    document, rest = document_of(tmp_path / "a.glb")
    primitive = document["meshes"][0]["primitives"][0]
    accessor = document["accessors"][primitive["attributes"]["COLOR_0"]]
    assert (accessor["componentType"], accessor["type"], accessor["normalized"]) == (5123, "VEC4", True)
    view = document["bufferViews"][accessor["bufferView"]]
    light = np.frombuffer(rest[8:], "<u2", 4 * accessor["count"], view["byteOffset"]).reshape(-1, 4) / 65535
    level = coloured.colors / 255.0
    expected = np.where(level > 0.04045, ((level + 0.055) / 1.055) ** 2.4, level / 12.92)
    np.testing.assert_allclose(light[:, :3], expected[:, :3], atol=1e-5)
    np.testing.assert_allclose(light[:, 3], level[:, 3], atol=1e-5)
    assert document["materials"][primitive["material"]]["pbrMetallicRoughness"]["metallicFactor"] == 0
    for one in document["bufferViews"]:
        assert one["byteOffset"] % 4 == 0
        assert one["byteOffset"] + one["byteLength"] <= document["buffers"][0]["byteLength"]
    place = document["accessors"][primitive["attributes"]["POSITION"]]
    np.testing.assert_array_equal(place["min"], coloured.vertices.astype("<f4").min(axis=0))
    np.testing.assert_array_equal(place["max"], coloured.vertices.astype("<f4").max(axis=0))
    assert all(
        document["accessors"][k]["count"] == coloured.n_vertices for k in primitive["attributes"].values()
    )
    scene = trimesh.load(tmp_path / "a.glb", process=False)
    there = next(iter(scene.geometry.values())).visual.vertex_attributes["color"]
    np.testing.assert_allclose(there[:, :3] / np.iinfo(there.dtype).max, expected[:, :3], atol=1 / 255)
    np.testing.assert_array_equal(next(iter(scene.geometry.values())).faces, coloured.faces)
    both = replace(seams, colors=np.full((seams.n_vertices, 4), 128, np.uint8))
    save_mesh(both, tmp_path / "b.glb")
    assert "COLOR_0" not in document_of(tmp_path / "b.glb")[0]["meshes"][0]["primitives"][0]["attributes"]


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


def as_text(mesh, folder, buffer):
    """A .gltf file whose arrays lie in a file beside it or, without a name for one, in itself."""
    save_mesh(mesh, folder / "whole.glb")
    document, rest = document_of(folder / "whole.glb")
    (folder / "whole.glb").unlink()
    data = rest[8:]
    if buffer is None:
        uri = "data:application/octet-stream;base64," + b64encode(data).decode()
    else:
        uri = buffer.replace(" ", "%20")
        (folder / buffer).write_bytes(data)
    document["buffers"] = [{"byteLength": len(data), "uri": uri}]
    (folder / "a.gltf").write_text(json.dumps(document))
    return folder / "a.gltf"


@pytest.mark.parametrize("name", ["coloured", "seams"])
@pytest.mark.parametrize("buffer", [None, "a scan.bin"])
def test_gltf_as_text(name, buffer, request, tmp_path, assert_same):
    mesh = request.getfixturevalue(name)
    path = as_text(mesh, tmp_path, buffer)
    back = load_mesh(path)
    assert_same(mesh, back, exact=False)
    if mesh.texture:
        assert back.texture.image == mesh.texture.image
    if not buffer:  # trimesh looks for a%20scan.bin
        other = trimesh.load(path, process=False, force="mesh")
        np.testing.assert_allclose(back.vertices[back.faces], other.vertices[other.faces], atol=1e-6)
    assert needed_beside(path) == ((tmp_path / buffer,) if buffer else ())
    (files,) = find_scans(tmp_path)
    assert [path.name for path in files.paths] == ["a.gltf", *([buffer] if buffer else [])]


@pytest.mark.parametrize("uri", [
    "../a.bin", "/etc/passwd", "..%2Fa.bin", "sub/a.bin", "..\\a.bin", "file:///etc/passwd", "https://host/a.bin", "..",
])  # fmt: skip
def test_arrays_elsewhere_are_not_read(uri, bumpy, tmp_path):
    (tmp_path / "scans" / "sub").mkdir(parents=True)
    path = as_text(bumpy, tmp_path / "scans", "a.bin")
    for place in (tmp_path, path.parent / "sub"):
        shutil.copy(path.with_name("a.bin"), place)
    path.write_text(path.read_text().replace('"a.bin"', json.dumps(uri)))
    with pytest.raises(FileProblem, match="not in the scan's folder"):
        load_mesh(path)
    assert needed_beside(path) == ()


def test_missing_arrays_of_a_gltf_are_named(bumpy, tmp_path):
    path = as_text(bumpy, tmp_path, "a.bin")
    (tmp_path / "a.bin").write_bytes((tmp_path / "a.bin").read_bytes()[:-40])
    with pytest.raises(FileProblem, match="cut off"):
        load_mesh(path)
    (tmp_path / "a.bin").unlink()
    with pytest.raises(FileProblem, match=r"a\.bin: there is no such file"):
        load_mesh(path)
    path.write_text(path.read_text().replace('"a.bin"', '"data:;base64,####"'))
    with pytest.raises(FileProblem, match="not in base64"):
        load_mesh(path)


def test_a_rotation_of_any_length_keeps_the_size(bumpy, tmp_path):
    save_mesh(bumpy, tmp_path / "a.glb")
    turned = rewritten(tmp_path / "a.glb", lambda d: d["nodes"][0].update(rotation=[0.3, 0.6, 0.0, 0.9]))
    expected = Rotation.from_quat([0.3, 0.6, 0.0, 0.9]).apply(np.array(bumpy.vertices))
    np.testing.assert_allclose(load_mesh(turned).vertices, expected, atol=1e-5)
    nothing = rewritten(turned, lambda d: d["nodes"][0].update(rotation=[0, 0, 0, 0]))
    with pytest.raises(FileProblem, match="rotation has no direction"):
        load_mesh(nothing)


def test_a_mesh_may_be_shown_again_and_again(bumpy, tmp_path):
    places = np.outer(np.arange(100), [100.0, 0, 0])
    many = np.concatenate([bumpy.faces + bumpy.n_vertices * k for k in range(100)])
    sheets = TriangleMesh((bumpy.vertices + places[:, None]).reshape(-1, 3), many)
    save_mesh(sheets, tmp_path / "a.glb")

    def repeat(document):
        document["nodes"] = [{"mesh": 0, "translation": [0, 100.0 * k, 0]} for k in range(100)]
        document["scenes"] = [{"nodes": list(range(100))}]

    mesh = load_mesh(
        rewritten(tmp_path / "a.glb", repeat)
    )  # 1.5 million vertices and corners of a small file
    assert mesh.n_faces == 100 * sheets.n_faces
    np.testing.assert_allclose(mesh.vertices[-1], sheets.vertices[-1] + [0, 9_900, 0], atol=0.01)


def test_a_node_may_list_the_places_of_its_mesh(bumpy, tmp_path):
    blob = gltf.Blob()
    corner = blob.array(bumpy.vertices.astype("<f4"), "VEC3")
    indices = blob.array(bumpy.faces.reshape(-1, 1).astype("<u4"), "SCALAR")
    places = np.array([[0, 0, 0], [0, 0, 200]], "<f4")
    turns = np.array([[0, 0, 0, 127], [0, 127, 0, 0]], "<i1")  # in bytes; the second is a half turn
    attributes = {
        "TRANSLATION": blob.array(places, "VEC3"),
        "ROTATION": blob.array(turns, "VEC4", normalized=True),
    }
    node = {"mesh": 0, "extensions": {"EXT_mesh_gpu_instancing": {"attributes": attributes}}}
    document = {
        "asset": {"version": "2.0"},
        "extensionsRequired": ["EXT_mesh_gpu_instancing"],
        "meshes": [{"primitives": [{"attributes": {"POSITION": corner}, "indices": indices}]}],
        "nodes": [node],
        "scenes": [{"nodes": [0]}],
    }
    (tmp_path / "a.glb").write_bytes(gltf.packed(document, blob))
    expected = np.concatenate([bumpy.vertices, bumpy.vertices * [-1, 1, -1] + [0, 0, 200]])
    np.testing.assert_allclose(load_mesh(tmp_path / "a.glb").vertices, expected, atol=1e-5)
    del attributes["TRANSLATION"], attributes["ROTATION"]
    (tmp_path / "a.glb").write_bytes(gltf.packed(document, blob))
    with pytest.raises(FileProblem, match="places of a repeated mesh"):
        load_mesh(tmp_path / "a.glb")
