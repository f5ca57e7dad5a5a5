import meshio
import numpy as np
import pytest
import trimesh

from breastmorph.foundation.errors import FileProblem, MeshProblem
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh

CUBE_FACE = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"


def obj(tmp_path, text, name="a.obj"):
    (tmp_path / name).write_text(text)
    return load_mesh(tmp_path / name)


def test_jpeg_keeps_its_name_and_bytes(seams, picture, tmp_path):
    from dataclasses import replace

    jpeg = picture("JPEG")
    save_mesh(replace(seams, texture=replace(seams.texture, image=jpeg)), tmp_path / "a.obj")
    assert (tmp_path / "a.jpg").read_bytes() == jpeg
    assert load_mesh(tmp_path / "a.obj").texture.image == jpeg


def test_others_read_ours(bumpy, tmp_path, pyvista):
    path = tmp_path / "a.obj"
    save_mesh(bumpy, path)
    other = trimesh.load(path, process=False, maintain_order=True)
    np.testing.assert_array_equal(other.vertices, bumpy.vertices)
    np.testing.assert_array_equal(other.faces, bumpy.faces)
    other = meshio.read(path)
    np.testing.assert_array_equal(other.points, bumpy.vertices)
    np.testing.assert_array_equal(other.cells_dict["triangle"], bumpy.faces)
    np.testing.assert_allclose(pyvista.read(path).points, bumpy.vertices, rtol=1e-6)


def test_colours_survive_readers_that_cut_off(tmp_path):
    """MeshLab multiplies by 255 and drops the fraction."""
    levels = np.arange(256)
    grey = np.stack([levels, levels, levels, np.full(256, 255)], axis=1).astype(np.uint8)
    places = np.column_stack([levels, levels % 7, levels % 3]).astype(float)
    save_mesh(TriangleMesh(places, np.array([[0, 1, 2]]), grey), tmp_path / "a.obj")
    lines = [line.split() for line in (tmp_path / "a.obj").read_text().splitlines() if line.startswith("v ")]
    assert [int(255 * float(words[4])) for words in lines] == levels.tolist()


def test_trimesh_reads_our_texture(seams, tmp_path):
    save_mesh(seams, tmp_path / "a.obj")
    other = trimesh.load(tmp_path / "a.obj", process=False)
    assert len(other.vertices) > seams.n_vertices  # why it is not our reader: it doubles vertices at seams
    np.testing.assert_array_equal(other.vertices[other.faces], seams.vertices[seams.faces])
    np.testing.assert_allclose(other.visual.uv[other.faces], seams.texture.uv, atol=1e-7)
    assert other.visual.material.image.size == (4, 4)


def test_reads_trimesh_with_texture(smooth_texture, of_trimesh, tmp_path, assert_same):
    from io import BytesIO

    from PIL import Image

    of_trimesh.export(tmp_path / "a.obj")
    mesh = load_mesh(tmp_path / "a.obj")
    assert_same(smooth_texture, mesh, exact=False)
    assert Image.open(BytesIO(mesh.texture.image)).size == (4, 4)


def test_reads_meshio_and_vtk(bumpy, tmp_path, assert_same, pyvista):
    meshio.Mesh(bumpy.vertices, [("triangle", bumpy.faces)]).write(tmp_path / "a.obj")
    assert_same(bumpy, load_mesh(tmp_path / "a.obj"), exact=False)
    pyvista.PolyData.from_regular_faces(bumpy.vertices, bumpy.faces).save(tmp_path / "b.obj")
    mesh = load_mesh(tmp_path / "b.obj")
    np.testing.assert_allclose(mesh.vertices[mesh.faces], bumpy.vertices[bumpy.faces], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "face", ["1 2 3 4", "1/1 2/2 3/3 4/4", "1//1 2//1 3//1 4//1", "1/1/1 2/2/1 3/3/1 4/4/1", "-4 -3 -2 -1"]
)
def test_all_forms_of_a_corner(face, tmp_path):
    mesh = obj(
        tmp_path, f"# by hand\n{CUBE_FACE}vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nvn 0 0 1\ng skin\ns 1\nf {face}\n"
    )
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]
    if "/1 " in face and "//" not in face:
        assert mesh.texture.uv[1].tolist() == [[0, 0], [1, 1], [0, 1]]


def test_negative_indices_count_from_the_line(tmp_path):
    mesh = obj(tmp_path, "v 0 0 0\nv 1 0 0\nv 1 1 0\nf -3 -2 -1\nv 5 5 5\nf 1 2 -1\n")
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 1, 3]]


def test_continued_lines_and_windows_ends(tmp_path):
    mesh = obj(tmp_path, CUBE_FACE.replace("\n", "\r\n") + "f 1 2 \\\r\n3 4\r\n")
    assert mesh.n_faces == 2


@pytest.mark.parametrize("scale", [1, 255])
def test_vertex_colours(scale, tmp_path):
    rows = "".join(
        f"v {x} {y} 0 {scale * r} {scale * g} 0\n"
        for x, y, r, g in ((0, 0, 1, 0), (1, 0, 0, 1), (1, 1, 1, 1))
    )
    assert obj(tmp_path, rows + "f 1 2 3\n").colors.tolist() == [
        [255, 0, 0, 255],
        [0, 255, 0, 255],
        [255, 255, 0, 255],
    ]


def test_slicer_space(tmp_path):
    assert obj(tmp_path, f"# 3D Slicer output. SPACE=LPS\n{CUBE_FACE}f 1 2 3\n").space == "LPS"


@pytest.mark.parametrize(
    "name", ["../secret.png", "/etc/../secret.png", "..\\secret.png", "sub/../../secret.png"]
)
def test_pictures_elsewhere_are_not_read(name, tmp_path, picture):
    (tmp_path / "secret.png").write_bytes(picture())
    folder = tmp_path / "scans"
    folder.mkdir()
    (folder / "a.mtl").write_text(f"newmtl skin\nmap_Kd {name}\n")
    mesh = obj(folder, f"mtllib a.mtl\n{CUBE_FACE}vt 0 0\nusemtl skin\nf 1/1 2/1 3/1\n")
    assert mesh.texture.image == b""
    (tmp_path / "evil.mtl").write_text("newmtl skin\nmap_Kd skin.png\n")
    (folder / "skin.png").write_bytes(picture())
    assert (
        obj(folder, f"mtllib ../evil.mtl\n{CUBE_FACE}vt 0 0\nusemtl skin\nf 1/1 2/1 3/1\n").texture.image
        == b""
    )


def test_only_pictures_pass_for_textures(tmp_path):
    (tmp_path / "a.mtl").write_text("newmtl skin\nmap_Kd -s 1 1 1 notes.txt\n")
    (tmp_path / "notes.txt").write_text("private")
    mesh = obj(tmp_path, f"mtllib a.mtl\n{CUBE_FACE}vt 0 0\nusemtl skin\nf 1/1 2/1 3/1\n")
    assert mesh.texture.image == b""


@pytest.mark.parametrize(("tail", "words"), [
    ("f 1 2\n", "a face has 2 corners"),
    ("f 1 2 0\n", "'0', which is no vertex"),
    ("f 1 2 -9\n", "'-9', which is no vertex"),
    ("f 1 2 x\n", "'x', which is no vertex"),
    ("f 1 2 99\n", "only 4 vertices"),
    ("vt 0 0\nf 1/1 2/1 3/7\n", "texture coordinate 7 of 1"),
    ("v 1 2\nf 1 2 3\n", "fewer than three coordinates"),
    ("v 1 2 oops\nf 1 2 3\n", "'oops' is not a number"),
])  # fmt: skip
def test_words_for_damage(tail, words, tmp_path):
    with pytest.raises((FileProblem, MeshProblem), match=words) as caught:
        obj(tmp_path, CUBE_FACE + tail)
    assert caught.value.where == tmp_path / "a.obj"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("suffix", ["obj", "off", "ply", "stl"])
def test_text_may_be_in_utf_16_or_bear_a_mark(encoding, suffix, bumpy, tmp_path, assert_same):
    other = trimesh.Trimesh(bumpy.vertices, bumpy.faces, process=False)
    ascii_kind = {"ply": {"encoding": "ascii"}, "stl": {"file_type": "stl_ascii"}}.get(suffix, {})
    other.export(tmp_path / f"a.{suffix}", **ascii_kind)
    before = load_mesh(tmp_path / f"a.{suffix}")
    text = (tmp_path / f"a.{suffix}").read_text()
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    (tmp_path / f"a.{suffix}").write_bytes((mark + text).encode(encoding))
    assert_same(before, load_mesh(tmp_path / f"a.{suffix}"))


def test_a_mark_costs_no_vertex_and_half_a_letter_is_damage(tmp_path):
    text = CUBE_FACE + "f 1 2 3\n"
    (tmp_path / "a.obj").write_bytes(text.encode("utf-8-sig"))
    assert load_mesh(tmp_path / "a.obj").n_vertices == 4
    (tmp_path / "a.obj").write_bytes(text.encode("utf-16")[:-1])
    with pytest.raises(FileProblem, match="damaged"):
        load_mesh(tmp_path / "a.obj")
