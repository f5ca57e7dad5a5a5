"""Bugs that fuzzing found in the mesh readers, each with a short file."""

import json
import struct
import tracemalloc
import warnings
import zlib
from base64 import b64encode

import numpy as np
import pytest

from breastmorph.errors import BreastMorphError, FileProblem, MeshProblem
from breastmorph.mesh.files import load_mesh, load_mesh_or_points, obj, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh

SIGNALLING = np.frombuffer(b"\1\0\xa0\x7f", "<f4")  # a NaN that raises a flag when it is converted


def read(path, data):
    """Read quietly, with the most memory taken (MB)."""
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            mesh = load_mesh_or_points(path)
    finally:
        peak = tracemalloc.get_traced_memory()[1] / 1024**2
        tracemalloc.stop()
    return mesh, peak


def refused(path, data):
    """The error's words; none takes memory for what is not there."""
    tracemalloc.start()
    try:
        path.write_bytes(data)
        with pytest.raises(BreastMorphError) as caught:
            load_mesh_or_points(path)
        assert tracemalloc.get_traced_memory()[1] < 160 * 1024**2
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 600 + len(str(path))
    return str(caught.value)


def glb(document, binary=bytes(96)):
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    body = (
        struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(binary), 0x4E4942) + binary
    )
    return b"glTF" + struct.pack("<II", 2, 12 + len(body)) + body


def scene(rows=3, **changes):
    return {
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "type": "VEC3", "count": rows}],
        "bufferViews": [{"buffer": 0, "byteLength": 12 * rows}],
        "buffers": [{"byteLength": 12 * rows}],
    } | changes


def vtp(pieces, compressor=""):
    said = f' compressor="{compressor}"' if compressor else ""
    return f'<VTKFile type="PolyData"{said}><PolyData>{pieces}</PolyData></VTKFile>'.encode()


WRAPPING = [2**62, 2**63 - 1, -(2**63) + 2**62, 0, 3]  # the counts, differences of these, sum up to 3 again


def test_offsets_that_wrap_around_in_vtk(tmp_path):
    # They gave counts of 2^62 corners, and NumPy wrote behind the end of an array: a segmentation fault.
    data = (
        b"# vtk DataFile Version 5.1\nx\nBINARY\nDATASET POLYDATA\nPOINTS 3 float\n" + bytes(36)
        + b"\nPOLYGONS 6 3\nOFFSETS vtktypeint64\n" + np.array([0, *WRAPPING], ">i8").tobytes()
        + b"\nCONNECTIVITY vtktypeint64\n" + np.arange(3).astype(">i8").tobytes() + b"\n"
    )  # fmt: skip
    assert "do not fit the list of their corners" in refused(tmp_path / "a.vtk", data)


def test_offsets_that_wrap_around_in_vtp(tmp_path):
    piece = (
        '<Piece NumberOfPoints="3" NumberOfPolys="5">'
        '<Points><DataArray type="Int8">0 0 0 1 0 0 0 1 0</DataArray></Points>'
        '<Polys><DataArray type="Int64" Name="connectivity">0 1 2</DataArray><DataArray type="Int64" Name="offsets">'
        f"{' '.join(map(str, WRAPPING))}</DataArray></Polys></Piece>"
    )
    assert "do not fit the list of their corners" in refused(tmp_path / "a.vtp", vtp(piece))


def test_signalling_nan_gives_no_warning(tmp_path):
    corners = np.zeros((3, 3), "<f4")
    corners[0, 0] = SIGNALLING[0]
    raw = corners.tobytes().replace(np.float32("nan").tobytes(), SIGNALLING.tobytes())
    stl = bytes(80) + b"\1\0\0\0" + bytes(12) + raw + bytes(2)
    mesh, _ = read(tmp_path / "a.stl", stl)
    assert np.isnan(mesh.vertices).any()
    mesh, _ = read(tmp_path / "a.glb", glb(scene(), raw))
    assert np.isnan(mesh.vertices).any()


def test_a_scene_moved_beyond_the_range_gives_no_warning(tmp_path):
    nodes = [{"mesh": 0, "matrix": [1e308] * 16, "children": [1]}, {"mesh": 0, "matrix": [1e308] * 16}]
    mesh, _ = read(tmp_path / "a.glb", glb(scene(nodes=nodes), np.eye(3, dtype="<f4").tobytes()))
    assert not np.isfinite(mesh.vertices).all()


def test_off_colours_beyond_the_range(tmp_path):
    text = b"COFF\n3 1 0\n0 0 0 9e300 0 -1\n1 0 0 0 0 0\n0 1 0 0 nan 0\n3 0 1 2\n"
    mesh, _ = read(tmp_path / "a.off", text)
    np.testing.assert_array_equal(mesh.colors[0], [255, 0, 0, 255])


def test_ply_corners_that_are_no_numbers(tmp_path):
    header = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
    face = (
        "element face 1\nproperty list uchar float vertex_indices\nend_header\n0 0 0 1 0 0 0 1 0 3 0 1 nan\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "names vertex" in refused(tmp_path / "a.ply", (header + face).encode())


def test_ply_with_thousands_of_lists_per_face(tmp_path):
    # The row's layout was built anew for every list: minutes for a header of 1 MB.
    lists = "".join(f"property list uchar int p{k}\n" for k in range(1001))
    data = f"ply\nformat binary_little_endian 1.0\nelement face 1\n{lists}end_header\n".encode() + bytes(2000)
    assert "more than 1,000 properties" in refused(tmp_path / "a.ply", data)


def test_ply_element_without_properties_is_passed_over(tmp_path, bumpy, assert_same):
    save_mesh(bumpy, tmp_path / "a.ply")
    data = (
        (tmp_path / "a.ply")
        .read_bytes()
        .replace(b"element vertex", b"element nothing 2147483648\nelement vertex")
    )
    mesh, _ = read(tmp_path / "b.ply", data)
    assert_same(mesh, bumpy)


def test_obj_reads_few_of_many_material_files(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(obj, "read_beside", lambda path, name, largest: asked.append(name) or b"")
    text = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1\n" + b"".join(
        b"mtllib %d.mtl\n" % k for k in range(500)
    )
    mesh, _ = read(tmp_path / "a.obj", text)
    assert mesh.n_faces == 1
    assert 0 < len(asked) <= 16


def test_vtk_texts_take_no_more_than_they_are(tmp_path):
    # As one array of equal lengths these took 4 GB.
    text = b"# vtk DataFile Version 3.0\nx\nASCII\nDATASET POLYDATA\nPOINTS 1 float\n0 0 0\n"
    text += b"FIELD f 1\nSPACE 1 30000 string\n"
    mesh, peak = read(tmp_path / "a.vtk", text + b"LPS" + b"A" * 30_000 + b"\n" * 30_000)
    assert mesh.space == "LPS"
    assert peak < 20


def test_vtk_text_of_many_arrays_and_blanks(tmp_path, bumpy):
    """Only a part of the file is split at a time: numbers and blanks longer than that must not get lost."""
    rows = "\n".join(f"{x!r}{' ' * 3000}{y!r} {z!r}" for x, y, z in bumpy.vertices.tolist())
    faces = "\n".join(f"3 {a} {b} {c}" for a, b, c in bumpy.faces.tolist())
    text = (
        f"# vtk DataFile Version 3.0\nx\nASCII\nDATASET POLYDATA\nPOINTS 30 float\n{rows}\nPOLYGONS 40 160\n{faces}\n"
        "POINT_DATA 30\nFIELD f 2000\n" + f"a 1 1 int\n{'0' * 600}1\n" * 2000
    )
    mesh, _ = read(tmp_path / "a.vtk", text.encode())
    np.testing.assert_array_equal(mesh.vertices, bumpy.vertices)
    np.testing.assert_array_equal(mesh.faces, bumpy.faces)


def test_vtp_block_that_announces_nothing_is_not_unpacked(tmp_path):
    # A limit of 0 bytes means no limit to zlib.
    packed = zlib.compress(bytes(200 * 1024**2), 1)
    head = np.array([2, 0, 3, len(packed), len(packed)], "<u4").tobytes()
    text = b64encode(head).decode() + b64encode(packed * 2).decode()
    array = f'<DataArray type="Int8" format="binary">{text}</DataArray>'
    piece = f'<Piece NumberOfPoints="1"><Points>{array}</Points></Piece>'
    assert "wrong size" in refused(tmp_path / "a.vtp", vtp(piece, "vtkZLibDataCompressor"))


def test_vtp_pieces_that_show_the_same_data_again(tmp_path):
    array = '<DataArray type="Int8" format="appended" offset="0"/>'
    piece = f'<Piece NumberOfPoints="33000"><Points>{array}</Points></Piece>'
    data = np.uint32(99_000).tobytes() + bytes(99_000)
    tail = b'<AppendedData encoding="raw">_' + data + b"</AppendedData></VTKFile>"
    text = vtp(piece * 2000).replace(b"</VTKFile>", tail)
    assert "where" in refused(tmp_path / "a.vtp", text)


@pytest.mark.parametrize("kind", ["Float32", "Int8", "A" * 3000])
def test_vtp_types_that_are_not_known_are_quoted_shortly(kind, tmp_path, bumpy):
    save_mesh(bumpy, tmp_path / "a.vtp")
    data = (tmp_path / "a.vtp").read_bytes()
    odd = data.replace(b'header_type="UInt64"', f'header_type="{kind}"'.encode())
    assert "header_type" in refused(tmp_path / "b.vtp", odd)
    odd = data.replace(b'type="Float64"', f'type="x{kind}"'.encode())
    assert "unknown type" in refused(tmp_path / "b.vtp", odd)


def test_vtp_that_begins_its_data_again_and_again(tmp_path):
    # Each beginning was searched to the end of the file.
    assert "cut off" in refused(tmp_path / "a.vtp", b"<VTKFile " + b"<AppendedData " * 20_000)


def test_glb_node_with_itself_as_child_many_times(tmp_path):
    nodes = [{"children": [0] * 60_000}]
    assert "without end" in refused(tmp_path / "a.glb", glb(scene(nodes=nodes, scenes=[{"nodes": [0]}])))


def test_glb_mesh_that_many_nodes_show(tmp_path):
    document = scene(30_000, nodes=[{"mesh": 0}] * 2000, scenes=[{"nodes": list(range(2000))}])
    assert "shows more than" in refused(tmp_path / "a.glb", glb(document, bytes(360_000)))


@pytest.mark.parametrize("index", ["A" * 5000, [[[0]]] * 2000, 10**4000])
def test_glb_odd_numbers_are_quoted_shortly(index, tmp_path):
    assert "of 'meshes' is named" in refused(tmp_path / "a.glb", glb(scene(nodes=[{"mesh": index}])))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.vtk", b"# vtk DataFile Version 3.0\nx\nASCII\nDATASET \x1b[2JX\n"),
        ("a.ply", b"ply\nformat ascii 1.0\nelement \x1b[2J 7\nproperty float x\nend_header\n"),
        ("a.vtp", '<VTKFile type="\u202ex"></VTKFile>'.encode()),
        ("a.off", b"OFF\n\x1b[2J 0 0\n"),
    ],
)
def test_no_file_steers_the_terminal_through_a_message(name, data, tmp_path):
    assert refused(tmp_path / name, data).isprintable()


def test_numbers_of_hundreds_of_digits_are_named(tmp_path):
    assert "is not a valid whole number" in refused(
        tmp_path / "a.off", b"OFF\n" + b"9" * 400 + b" 1 0\n0 0 0\n"
    )


def test_kinds_of_errors_are_kept(tmp_path):
    (tmp_path / "a.off").write_bytes(b"OFF\n1 0 0\n0 0 0\n")
    with pytest.raises(MeshProblem, match="no faces"):
        load_mesh(tmp_path / "a.off")
    with pytest.raises(FileProblem, match="no such file"):
        load_mesh(tmp_path / "b.off")
    assert TriangleMesh(np.zeros((0, 3)), np.zeros((0, 3), int)).n_faces == 0
