import base64
import re
import zlib

import numpy as np
import pytest

from breastmorph.foundation.errors import FileProblem
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh


def sheet(pyvista, mesh):
    data = pyvista.PolyData.from_regular_faces(mesh.vertices, mesh.faces)
    if mesh.colors is not None:
        data["RGBA"] = mesh.colors
    if mesh.texture is not None:
        uv = np.zeros((mesh.n_vertices, 2))
        uv[mesh.faces] = mesh.texture.uv
        data.active_texture_coordinates = uv
    return data


@pytest.mark.slow
def test_vtk_reads_our_vtp(coloured, smooth_texture, tmp_path, pyvista):
    save_mesh(coloured, tmp_path / "a.vtp")
    other = pyvista.read(tmp_path / "a.vtp")
    np.testing.assert_array_equal(other.points, coloured.vertices)
    np.testing.assert_array_equal(other.regular_faces, coloured.faces)
    np.testing.assert_array_equal(other["RGBA"], coloured.colors)
    save_mesh(
        TriangleMesh(coloured.vertices, coloured.faces, texture=smooth_texture.texture, space="LPS"),
        tmp_path / "b.vtp",
    )
    other = pyvista.read(tmp_path / "b.vtp")
    np.testing.assert_array_equal(
        other.active_texture_coordinates[other.regular_faces], smooth_texture.texture.uv
    )
    assert list(other.field_data["SPACE"]) == ["LPS"]


@pytest.mark.parametrize("name", ["bumpy", "coloured", "smooth_texture"])
@pytest.mark.parametrize("mode", ["ascii", "binary", "appended raw", "appended base64"])
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("wide", [False, True])
def test_reads_every_vtp_of_vtk(name, mode, compressed, wide, request, tmp_path, assert_same, pyvista, vtk):
    mesh = request.getfixturevalue(name)
    writer = vtk.vtkXMLPolyDataWriter()
    writer.SetFileName(str(tmp_path / "a.vtp"))
    writer.SetInputData(sheet(pyvista, mesh))
    {"ascii": writer.SetDataModeToAscii, "binary": writer.SetDataModeToBinary}.get(
        mode, writer.SetDataModeToAppended
    )()
    writer.SetEncodeAppendedData("base64" in mode)
    writer.SetCompressorTypeToZLib() if compressed else writer.SetCompressorTypeToNone()
    writer.SetHeaderTypeToUInt64() if wide else writer.SetHeaderTypeToUInt32()
    writer.SetBlockSize(64)  # several blocks even for a small mesh
    if mode == "binary":
        writer.SetByteOrderToBigEndian()
    assert writer.Write()
    assert_same(mesh, load_mesh(tmp_path / "a.vtp"), exact=mode != "ascii")


@pytest.mark.parametrize("name", ["bumpy", "coloured", "smooth_texture"])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("version", [42, 51])
def test_reads_every_legacy_vtk(name, binary, version, request, tmp_path, assert_same, pyvista, vtk):
    mesh = request.getfixturevalue(name)
    data = sheet(pyvista, mesh)
    data["curvature"] = np.arange(mesh.n_vertices, dtype=float)  # passed over
    data["pull"] = np.ones((mesh.n_vertices, 3))
    writer = vtk.vtkPolyDataWriter()
    writer.SetFileName(str(tmp_path / "a.vtk"))
    writer.SetFileVersion(version)
    writer.SetHeader("3D Slicer output. SPACE=LPS")
    writer.SetFileType(2 if binary else 1)
    writer.SetInputData(data)
    assert writer.Write()
    back = load_mesh(tmp_path / "a.vtk")
    assert_same(mesh, back, exact=binary)
    assert back.space == "LPS"


@pytest.mark.parametrize(("suffix", "binary"), [("vtk", True), ("vtk", False), ("vtp", True), ("vtp", False)])
def test_polygons_strips_lines_and_space_array(suffix, binary, tmp_path, pyvista, vtk):
    data = vtk.vtkPolyData()
    points = vtk.vtkPoints()
    for x, y in ((0, 0), (1, 0), (1, 1), (0, 1), (2, 0), (2, 1)):
        points.InsertNextPoint(x, y, 0)
    data.SetPoints(points)

    def cells(*rows):
        array = vtk.vtkCellArray()
        for row in rows:
            array.InsertNextCell(len(row), row)
        return array

    data.SetPolys(cells((0, 1, 2, 3), (1, 4, 2)))
    data.SetStrips(cells((1, 4, 2, 5)))
    data.SetLines(cells((0, 1), (1, 2, 3)))
    data.SetVerts(cells((0,)))
    data = pyvista.wrap(data)
    data.add_field_data(["RAS"], "SPACE")
    data.save(tmp_path / f"a.{suffix}", binary=binary)
    mesh = load_mesh(tmp_path / f"a.{suffix}")
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3], [1, 4, 2], [1, 4, 2], [5, 2, 4]]
    assert mesh.space == "RAS"


def test_several_pieces_are_one_mesh(bumpy, tmp_path, assert_same):
    save_mesh(bumpy, tmp_path / "a.vtp")
    text = (tmp_path / "a.vtp").read_text()
    piece = re.search(r"<Piece.*</Piece>", text, re.DOTALL).group()
    (tmp_path / "b.vtp").write_text(text.replace(piece, piece + piece))
    mesh = load_mesh(tmp_path / "b.vtp")
    np.testing.assert_array_equal(mesh.faces, np.vstack([bumpy.faces, bumpy.faces + bumpy.n_vertices]))


@pytest.mark.parametrize("binary", [True, False])
def test_other_datasets_have_their_own_words(binary, bumpy, tmp_path, pyvista):
    grid = sheet(pyvista, bumpy).cast_to_unstructured_grid()
    grid.save(tmp_path / "a.vtk", binary=binary)
    grid.save(tmp_path / "a.vtu", binary=binary)
    with pytest.raises(FileProblem, match="UNSTRUCTURED_GRID, not a surface"):
        load_mesh(tmp_path / "a.vtk")
    with pytest.raises(FileProblem, match="UnstructuredGrid, not a surface"):
        load_mesh(tmp_path / "a.vtu")


def test_entity_bombs_are_refused(bumpy, tmp_path):
    save_mesh(bumpy, tmp_path / "a.vtp")
    bomb = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    (tmp_path / "b.vtp").write_text((tmp_path / "a.vtp").read_text().replace("?>", "?>" + bomb, 1))
    with pytest.raises(FileProblem, match="DOCTYPE"):
        load_mesh(tmp_path / "b.vtp")


def compressed_vtp(points_header, blob, n_points=3):
    header = base64.b64encode(np.array(points_header, "<u4").tobytes()).decode()
    small = zlib.compress(np.array([0, 1, 2], "<i8").tobytes())
    ids = (
        base64.b64encode(np.array([1, 24, 24, len(small)], "<u4").tobytes()).decode()
        + base64.b64encode(small).decode()
    )
    end = zlib.compress(np.array([3], "<i8").tobytes())
    ends = (
        base64.b64encode(np.array([1, 8, 8, len(end)], "<u4").tobytes()).decode()
        + base64.b64encode(end).decode()
    )
    points = header + base64.b64encode(blob).decode()
    return f"""<?xml version="1.0"?>
<VTKFile type="PolyData" byte_order="LittleEndian" compressor="vtkZLibDataCompressor">
<PolyData><Piece NumberOfPoints="{n_points}" NumberOfPolys="1"><Points>
<DataArray type="Float64" NumberOfComponents="3" format="binary">{points}</DataArray></Points>
<Polys><DataArray type="Int64" Name="connectivity" format="binary">{ids}</DataArray>
<DataArray type="Int64" Name="offsets" format="binary">{ends}</DataArray></Polys>
</Piece></PolyData></VTKFile>"""


def test_zip_bombs_are_not_unpacked(tmp_path):
    good = zlib.compress(np.arange(9.0).tobytes())
    (tmp_path / "a.vtp").write_text(compressed_vtp([1, 72, 72, len(good)], good))
    assert load_mesh(tmp_path / "a.vtp").n_vertices == 3
    bomb = zlib.compress(b"\0" * 50_000_000)
    for header, n_points, words in (
        ([1, 72, 72, len(bomb)], 3, "wrong size|damaged"),  # more inside than announced
        ([1, 50_000_000, 50_000_000, len(bomb)], 3, "announces 50,000,000 bytes where 72"),
        ([2**31 - 1, 72, 72, len(bomb)], 3, "announces 2,147,483,647 blocks"),
        ([1, 2**31, 2**31, len(bomb)], 10**9, "announces 3,000,000,000 numbers"),
        ([1, 240_000_000, 240_000_000, len(good)], 10_000_000, "announces 240,000,000 bytes"),
    ):
        (tmp_path / "b.vtp").write_text(compressed_vtp(header, bomb, n_points))
        if words.startswith("wrong"):
            # Only what was announced is unpacked: a mesh of three points, not fifty megabytes.
            assert load_mesh(tmp_path / "b.vtp").n_vertices == 3
        else:
            with pytest.raises(FileProblem, match=words):
                load_mesh(tmp_path / "b.vtp")


def test_absurd_counts(tmp_path):
    for text in (
        "POINTS 2147483647 double\n0 0 0\n",
        "POINTS 1 double\n0 0 0\nPOLYGONS 999999999 4000000000\n3 0 0 0\n",
    ):
        (tmp_path / "a.vtk").write_text(f"# vtk DataFile Version 4.2\nx\nASCII\nDATASET POLYDATA\n{text}")
        with pytest.raises(FileProblem, match="cut off"):
            load_mesh(tmp_path / "a.vtk")


def test_other_compression_has_its_own_words(bumpy, tmp_path, pyvista, vtk):
    writer = vtk.vtkXMLPolyDataWriter()
    writer.SetFileName(str(tmp_path / "a.vtp"))
    writer.SetInputData(sheet(pyvista, bumpy))
    writer.SetCompressorTypeToLZ4()
    assert writer.Write()
    with pytest.raises(FileProblem, match=r"LZ4.*zlib"):
        load_mesh(tmp_path / "a.vtp")
