import meshio
import numpy as np
import pytest
import trimesh

from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh


def first_met(mesh):
    """The mesh with its vertices in the order its faces meet them: all that STL can keep."""
    _, first = np.unique(mesh.faces.ravel(), return_index=True)
    order = mesh.faces.ravel()[np.sort(first)]
    new_id = np.empty(mesh.n_vertices, np.int64)
    new_id[order] = np.arange(len(order))
    return TriangleMesh(mesh.vertices[order], new_id[mesh.faces])


def test_stl_round_trip(bumpy, tmp_path, assert_same):
    save_mesh(bumpy, tmp_path / "a.stl")
    back = load_mesh(tmp_path / "a.stl")
    assert_same(first_met(bumpy), back, exact=False)
    save_mesh(back, tmp_path / "b.stl")
    assert_same(back, load_mesh(tmp_path / "b.stl"))


def test_others_read_our_stl(bumpy, tmp_path, pyvista):
    save_mesh(bumpy, tmp_path / "a.stl")
    corners = bumpy.vertices[bumpy.faces].astype(np.float32)
    np.testing.assert_array_equal(trimesh.load(tmp_path / "a.stl", process=False).triangles, corners)
    other = meshio.read(tmp_path / "a.stl")
    np.testing.assert_array_equal(other.points[other.cells_dict["triangle"]], corners)
    vtk = pyvista.read(tmp_path / "a.stl")
    np.testing.assert_array_equal(vtk.points[vtk.regular_faces], corners)


@pytest.mark.parametrize("writer", ["trimesh", "trimesh ascii", "meshio", "vtk", "vtk ascii"])
def test_reads_stl_of_others(writer, bumpy, tmp_path, assert_same, pyvista):
    path = tmp_path / "a.stl"
    if writer.startswith("trimesh"):
        kind = "stl_ascii" if "ascii" in writer else "stl"
        trimesh.Trimesh(bumpy.vertices, bumpy.faces, process=False).export(path, file_type=kind)
    elif writer == "meshio":
        meshio.Mesh(bumpy.vertices, [("triangle", bumpy.faces)]).write(path)
    else:
        pyvista.PolyData.from_regular_faces(bumpy.vertices, bumpy.faces).save(
            path, binary="ascii" not in writer
        )
    assert_same(first_met(bumpy), load_mesh(path), exact=False)


def test_binary_stl_may_begin_with_solid(bumpy, tmp_path, assert_same):
    save_mesh(bumpy, tmp_path / "a.stl")
    data = (tmp_path / "a.stl").read_bytes()
    (tmp_path / "b.stl").write_bytes(b"solid exported".ljust(80) + data[80:])
    assert_same(load_mesh(tmp_path / "a.stl"), load_mesh(tmp_path / "b.stl"))
    (tmp_path / "c.stl").write_bytes(b"solid exported".ljust(80, b"\0") + data[80:-70])
    with pytest.raises(FileProblem, match="announces 40 triangles, 38 are there"):
        load_mesh(tmp_path / "c.stl")


def test_axes_in_the_first_line_and_zeros_of_both_signs_in_stl_text(tmp_path):
    facet = "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n"
    other = facet.replace("vertex 0 0 0", "vertex -0 0 -0.0")
    (tmp_path / "a.stl").write_text(f"solid 3D Slicer output. SPACE=RAS\n{facet}{other}endsolid\n")
    mesh = load_mesh(tmp_path / "a.stl")
    assert (mesh.space, mesh.n_vertices) == ("RAS", 3)


def test_absurd_stl_count(tmp_path):
    (tmp_path / "a.stl").write_bytes(b"x" * 80 + b"\xff\xff\xff\xff" + b"\0" * 100)
    with pytest.raises(FileProblem, match="announces 4,294,967,295 triangles, 2 are there"):
        load_mesh(tmp_path / "a.stl")


@pytest.mark.parametrize("writer", ["trimesh", "meshio"])
def test_reads_off_of_others(writer, bumpy, tmp_path, assert_same):
    path = tmp_path / "a.off"
    if writer == "trimesh":
        trimesh.Trimesh(bumpy.vertices, bumpy.faces, process=False).export(path)
    else:
        meshio.Mesh(bumpy.vertices, [("triangle", bumpy.faces)]).write(path)
    assert_same(bumpy, load_mesh(path), exact=False)


@pytest.mark.parametrize(("colors", "expected"), [
    (("255 0 10", "0 0 0", "1 2 3", "9 9 9"), [255, 0, 10, 255]),
    (("1.0 0.0 0.2 0.4",) * 4, [255, 0, 51, 102]),
])  # fmt: skip
def test_coff(colors, expected, tmp_path):
    corners = ("0 0 0", "1 0 0", "1 1 0", "0 1 0")
    rows = "\n".join(f"{corner} {color}" for corner, color in zip(corners, colors, strict=True))
    (tmp_path / "a.off").write_text(f"COFF\n# a square\n4 1 0\n{rows}\n4 0 1 2 3  0.5 0.5 0.5\n")
    mesh = load_mesh(tmp_path / "a.off")
    assert mesh.colors[0].tolist() == expected
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3]]


@pytest.mark.parametrize(("prefix", "row"), [
    ("CN", "{place} 0 0 1 10 20 30"),  # as the format says
    ("NC", "{place} 10 20 30 255 0 0 1"),  # as MeshLab writes it
    ("NCST", "{place} 10 20 30 255 0 0 1 0.5 0.5"),
    ("STCN", "{place} 0 0 1 10 20 30 255 0.5 0.5"),
])  # fmt: skip
def test_colours_and_normals_in_both_orders(prefix, row, tmp_path):
    rows = "\n".join(row.format(place=place) for place in ("0 0 0", "1 0 0", "0 1 0"))
    (tmp_path / "a.off").write_text(f"{prefix}OFF\n3 1 0\n{rows}\n3 0 1 2\n")
    mesh = load_mesh(tmp_path / "a.off")
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert mesh.colors.tolist() == [[10, 20, 30, 255]] * 3
    assert (mesh.texture is not None) == ("ST" in prefix)


@pytest.mark.parametrize(("text", "words"), [
    ("OFF\n", "numbers of vertices and faces is missing"),
    ("OFF\n3 2 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", "5 vertices and faces are announced, 4"),
    ("OFF 2147483647 2147483647 0\n0 0 0\n", "are announced, 1 are there"),
    ("OFF\n3 1 0\n0 0 0\n1 0\n0 1 0\n3 0 1 2\n", "vertex lines"),
    ("OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n4 0 1 2\n", "fewer corners"),
    ("OFF\n3 -1 0\n0 0 0\n1 0 0\n0 1 0\n", "negative"),
    ("OFF BINARY\n\0\0\0\3", "variant of OFF"),
])  # fmt: skip
def test_off_words_for_damage(text, words, tmp_path):
    (tmp_path / "a.off").write_text(text)
    with pytest.raises(FileProblem, match=words):
        load_mesh(tmp_path / "a.off")
