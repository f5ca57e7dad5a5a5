import struct

import meshio
import numpy as np
import pytest
import trimesh

from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.files import load_mesh, save_mesh


@pytest.mark.parametrize(("far", "declared"), [(0.0, b"float x"), (1e6, b"double x")])
def test_coordinates_take_32_bits_unless_that_would_be_seen(far, declared, bumpy, tmp_path):
    """Scalismo casts x, y and z to Float; a scan far from the origin of its file must not get rough."""
    moved = bumpy.with_vertices(bumpy.vertices + far)
    save_mesh(moved, tmp_path / "a.ply")
    assert b"property " + declared in (tmp_path / "a.ply").read_bytes()
    extent = np.ptp(bumpy.vertices, axis=0).max()
    assert np.abs(load_mesh(tmp_path / "a.ply").vertices - moved.vertices).max() <= 1e-6 * extent


@pytest.mark.parametrize(
    ("name", "declared"),
    [("smooth_texture", b"property float s\n"), ("seams", b"list uchar float texcoord\n")],
)
def test_texture_coordinates_are_of_the_type_that_meshlab_reads(name, declared, request, tmp_path):
    save_mesh(request.getfixturevalue(name), tmp_path / "a.ply")
    assert declared in (tmp_path / "a.ply").read_bytes()


def test_others_read_ours(coloured, tmp_path, pyvista):
    path = tmp_path / "a.ply"
    save_mesh(coloured, path)
    for vertices, faces in (
        (lambda m: (m.vertices, m.faces))(trimesh.load(path, process=False)),
        (lambda m: (m.points, m.cells_dict["triangle"]))(meshio.read(path)),
    ):
        np.testing.assert_allclose(vertices, coloured.vertices, rtol=1e-6)
        np.testing.assert_array_equal(faces, coloured.faces)
    np.testing.assert_array_equal(trimesh.load(path, process=False).visual.vertex_colors, coloured.colors)
    vtk = pyvista.read(path)
    np.testing.assert_allclose(vtk.points, coloured.vertices, rtol=1e-6)
    np.testing.assert_array_equal(vtk.regular_faces, coloured.faces)


def test_trimesh_reads_our_texture_coordinates(smooth_texture, tmp_path):
    save_mesh(smooth_texture, tmp_path / "a.ply")
    other = trimesh.load(tmp_path / "a.ply", process=False)
    np.testing.assert_allclose(other.visual.uv[other.faces], smooth_texture.texture.uv, atol=1e-6)


@pytest.mark.parametrize("encoding", ["ascii", "binary"])
def test_reads_trimesh(encoding, coloured, tmp_path, assert_same):
    other = trimesh.Trimesh(coloured.vertices, coloured.faces, vertex_colors=coloured.colors, process=False)
    (tmp_path / "a.ply").write_bytes(other.export(file_type="ply", encoding=encoding))
    assert_same(coloured, load_mesh(tmp_path / "a.ply"), exact=False)


@pytest.mark.parametrize("binary", [True, False])
def test_reads_meshio_triangles_and_quads(binary, bumpy, tmp_path):
    quads = [[0, 1, 2, 3], [4, 5, 6, 7]]
    meshio.Mesh(bumpy.vertices, [("triangle", bumpy.faces), ("quad", quads)]).write(
        tmp_path / "a.ply", binary=binary
    )
    mesh = load_mesh(tmp_path / "a.ply")
    np.testing.assert_allclose(mesh.vertices, bumpy.vertices, rtol=1e-12)
    np.testing.assert_array_equal(mesh.faces[:-4], bumpy.faces)
    assert mesh.faces[-4:].tolist() == [[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]]


@pytest.mark.parametrize("binary", [True, False])
def test_reads_vtk_with_colours(binary, coloured, tmp_path, assert_same, pyvista):
    sheet = pyvista.PolyData.from_regular_faces(coloured.vertices, coloured.faces)
    sheet["rgba"] = coloured.colors
    sheet.save(tmp_path / "a.ply", binary=binary, texture="rgba")
    assert_same(coloured, load_mesh(tmp_path / "a.ply"), exact=False)


def test_big_endian_with_other_elements(tmp_path):
    header = (
        b"ply\nformat binary_big_endian 1.0\ncomment made by hand\n"
        b"element camera 1\nproperty list uchar short tags\n"
        b"property float focal\nelement vertex 4\nproperty double x\nproperty double y\nproperty double z\n"
        b"property float nx\nproperty ushort red\nproperty ushort green\nproperty ushort blue\n"
        b"element face 1\nproperty uchar flags\nproperty list ushort uint vertex_index\nend_header\n"
    )
    body = struct.pack(">B2hf", 2, 5, 6, 1.5)
    for x, y in ((0, 0), (1, 0), (1, 1), (0, 1)):
        body += struct.pack(">3df3H", x, y, 0.1, 0, 65535, 0, 257 * 7)
    body += struct.pack(">BH4I", 9, 4, 0, 1, 2, 3)
    (tmp_path / "a.ply").write_bytes(header + body)
    mesh = load_mesh(tmp_path / "a.ply")
    assert mesh.vertices[2].tolist() == [1, 1, 0.1]
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert mesh.colors[0].tolist() == [255, 0, 7, 255]


def _meshlab(body, extra=""):
    return (
        "ply\r\nformat ascii 1.0\r\ncomment VCGLIB generated\r\ncomment TextureFile skin.png\r\n"
        "element vertex 4\r\nproperty float x\r\nproperty float y\r\nproperty float z\r\n"
        "element face 2\r\nproperty list uchar int vertex_indices\r\nproperty list uchar float texcoord\r\n"
        f"{extra}end_header\r\n{body}"
    )


def test_meshlab_texture_by_corner(tmp_path, picture):
    body = "0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2 6 0 0 .5 0 .5 1\n3 0 2 3 6 .5 0 1 1 .5 1\n"
    (tmp_path / "a.ply").write_bytes(_meshlab(body).encode())
    (tmp_path / "skin.png").write_bytes(picture())
    mesh = load_mesh(tmp_path / "a.ply")
    assert mesh.n_vertices == 4
    assert mesh.texture.uv.tolist() == [[[0, 0], [0.5, 0], [0.5, 1]], [[0.5, 0], [1, 1], [0.5, 1]]]
    assert mesh.texture.image == picture()


@pytest.mark.parametrize("name", ["Müller", "Żółć 2", "scan"])
@pytest.mark.parametrize("suffix", [".ply", ".obj"])
def test_a_texture_is_found_again_whatever_the_files_name(name, suffix, smooth_texture, tmp_path):
    save_mesh(smooth_texture, tmp_path / f"{name}{suffix}")
    assert load_mesh(tmp_path / f"{name}{suffix}").texture.image == smooth_texture.texture.image


@pytest.mark.parametrize(("u", "v"), [("s", "t"), ("u", "v"), ("texture_u", "texture_v")])
def test_texture_by_vertex(u, v, tmp_path):
    text = (
        "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
        f"property float {u}\nproperty float {v}\nelement face 1\nproperty list uchar int vertex_indices\n"
        "end_header\n0 0 0 .1 .2\n1 0 0 .3 .4\n0 1 0 .5 .6\n3 2 0 1\n"
    )
    (tmp_path / "a.ply").write_text(text)
    assert load_mesh(tmp_path / "a.ply").texture.uv.tolist() == [[[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]]]


@pytest.mark.parametrize("layout", ["ascii", "binary_little_endian"])
@pytest.mark.parametrize("count", [2**31, 2**62])
def test_absurd_counts_allocate_nothing(layout, count, tmp_path):
    for vertices, faces, part in ((count, 1, "vertex"), (3, count, "face")):
        text = (
            f"ply\nformat {layout} 1.0\nelement vertex {vertices}\nproperty float x\nproperty float y\n"
            f"property float z\nelement face {faces}\nproperty list uchar int vertex_indices\nend_header\n"
        )
        (tmp_path / "a.ply").write_bytes(text.encode() + b"1 1 1\n" * 6)
        with pytest.raises(FileProblem, match=f"cut off.*'{part}'"):
            load_mesh(tmp_path / "a.ply")


def test_words_for_damage(tmp_path):
    for body, words in (
        ("0 0 0\n1 0 0\n1 1 x\n0 1 0\n3 0 1 2 6 0 0 0 0 0 0\n3 0 2 3 6 0 0 0 0 0 0\n", "'x' is not a number"),
        (
            "0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2 6 0 0 0 0 0 0\n3 0 2 3 4 0 0 0 0\n",
            "texture coordinates per corner",
        ),
        ("0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2 6 0 0 0 0 0 0\n3 0 2\n", "cut off"),
    ):
        (tmp_path / "a.ply").write_text(_meshlab(body))
        with pytest.raises(FileProblem, match=words):
            load_mesh(tmp_path / "a.ply")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("count", ["char", "uchar", "short", "ushort", "int", "uint", "int64", "uint64"])
@pytest.mark.parametrize("flags", ["", "property uchar flags\n"], ids=["alone", "behind a number"])
def test_lengths_of_every_type_in_front_of_triangles_and_quads(order, count, flags, tmp_path):
    kinds = dict(char="i1", uchar="u1", short="i2", ushort="u2", int="i4", uint="u4", int64="i8", uint64="u8")
    polygons = [[0, 1, 2], [3, 2, 1, 0], [], [1, 2, 3], [0, 3]]
    layout = "little" if order == "<" else "big"
    header = (
        f"ply\nformat binary_{layout}_endian 1.0\nelement vertex 4\nproperty float x\nproperty float y\n"
        f"property float z\nelement face 5\n{flags}property list {count} int vertex_indices\nend_header\n"
    ).encode()
    points = np.arange(12, dtype=order + "f4").tobytes()
    rows = b"".join(
        (b"\7" if flags else b"")
        + np.array([len(ids)], order + kinds[count]).tobytes()
        + np.array(ids, order + "i4").tobytes()
        for ids in polygons
    )
    (tmp_path / "a.ply").write_bytes(header + points + rows)
    mesh = load_mesh(tmp_path / "a.ply")
    assert mesh.faces.tolist() == [[0, 1, 2], [3, 2, 1], [3, 1, 0], [1, 2, 3]]
    for cut in (1, 5, len(rows) - 1):
        (tmp_path / "a.ply").write_bytes(header + points + rows[:-cut])
        with pytest.raises(FileProblem, match="cut off: the header announces 5 of 'face', fewer are there"):
            load_mesh(tmp_path / "a.ply")
