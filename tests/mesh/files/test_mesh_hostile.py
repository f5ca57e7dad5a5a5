"""Bugs that fuzzing found in the mesh readers, each with a short file; more of them stand in fuzz/hostile.py."""

import json
import struct
import warnings

import numpy as np
import pytest

from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.files import load_mesh_or_points, obj, save_mesh

SIGNALLING = np.frombuffer(b"\1\0\xa0\x7f", "<f4")  # a NaN that raises a flag when it is converted


def read(path, data):
    """Read without a warning."""
    path.write_bytes(data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return load_mesh_or_points(path)


def refused(path, data):
    """The error's words, without a warning."""
    with pytest.raises(BreastMorphError) as caught:
        read(path, data)
    assert len(str(caught.value)) < 600 + len(str(path))
    return str(caught.value)


def glb(document, binary=bytes(96)):
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    body = (
        struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(binary), 0x4E4942) + binary
    )
    return b"glTF" + struct.pack("<II", 2, 12 + len(body)) + body


def scene(**changes):
    return {
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "type": "VEC3", "count": 3}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}],
        "buffers": [{"byteLength": 36}],
    } | changes


def test_offsets_that_wrap_around_in_vtp(tmp_path):
    ends = [2**62, 2**63 - 1, -(2**63) + 2**62, 0, 3]  # the counts, differences of these, sum up to 3 again
    piece = (
        '<Piece NumberOfPoints="3" NumberOfPolys="5">'
        '<Points><DataArray type="Int8">0 0 0 1 0 0 0 1 0</DataArray></Points>'
        '<Polys><DataArray type="Int64" Name="connectivity">0 1 2</DataArray><DataArray type="Int64" Name="offsets">'
        f"{' '.join(map(str, ends))}</DataArray></Polys></Piece>"
    )
    data = f'<VTKFile type="PolyData"><PolyData>{piece}</PolyData></VTKFile>'.encode()
    assert "do not fit the list of their corners" in refused(tmp_path / "a.vtp", data)


def test_signalling_nan_gives_no_warning(tmp_path):
    corners = np.zeros((3, 3), "<f4")
    corners[0, 0] = SIGNALLING[0]
    raw = corners.tobytes().replace(np.float32("nan").tobytes(), SIGNALLING.tobytes())
    stl = bytes(80) + b"\1\0\0\0" + bytes(12) + raw + bytes(2)
    mesh = read(tmp_path / "a.stl", stl)
    assert np.isnan(mesh.vertices).any()
    mesh = read(tmp_path / "a.glb", glb(scene(), raw))
    assert np.isnan(mesh.vertices).any()


def test_a_scene_moved_beyond_the_range_gives_no_warning(tmp_path):
    nodes = [{"mesh": 0, "matrix": [1e308] * 16, "children": [1]}, {"mesh": 0, "matrix": [1e308] * 16}]
    mesh = read(tmp_path / "a.glb", glb(scene(nodes=nodes), np.eye(3, dtype="<f4").tobytes()))
    assert not np.isfinite(mesh.vertices).all()


def test_off_colours_beyond_the_range(tmp_path):
    text = b"COFF\n3 1 0\n0 0 0 9e300 0 -1\n1 0 0 0 0 0\n0 1 0 0 nan 0\n3 0 1 2\n"
    mesh = read(tmp_path / "a.off", text)
    np.testing.assert_array_equal(mesh.colors[0], [255, 0, 0, 255])


def test_ply_corners_that_are_no_numbers(tmp_path):
    header = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
    face = (
        "element face 1\nproperty list uchar float vertex_indices\nend_header\n0 0 0 1 0 0 0 1 0 3 0 1 nan\n"
    )
    assert "names vertex" in refused(tmp_path / "a.ply", (header + face).encode())


def test_ply_element_without_properties_is_passed_over(tmp_path, bumpy, assert_same):
    save_mesh(bumpy, tmp_path / "a.ply")
    data = (
        (tmp_path / "a.ply")
        .read_bytes()
        .replace(b"element vertex", b"element nothing 2147483648\nelement vertex")
    )
    mesh = read(tmp_path / "b.ply", data)
    assert_same(mesh, bumpy, exact=False)


def test_obj_reads_few_of_many_material_files(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(obj, "read_beside", lambda path, name, largest: asked.append(name) or b"")
    text = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1\n" + b"".join(
        b"mtllib %d.mtl\n" % k for k in range(500)
    )
    mesh = read(tmp_path / "a.obj", text)
    assert mesh.n_faces == 1
    assert 0 < len(asked) <= 16


def test_vtk_text_of_many_arrays_and_blanks(tmp_path, bumpy):
    """Only a part of the file is split at a time: numbers and blanks longer than that must not get lost."""
    rows = "\n".join(f"{x!r}{' ' * 3000}{y!r} {z!r}" for x, y, z in bumpy.vertices.tolist())
    faces = "\n".join(f"3 {a} {b} {c}" for a, b, c in bumpy.faces.tolist())
    text = (
        f"# vtk DataFile Version 3.0\nx\nASCII\nDATASET POLYDATA\nPOINTS 30 float\n{rows}\nPOLYGONS 40 160\n{faces}\n"
        "POINT_DATA 30\nFIELD f 2000\n" + f"a 1 1 int\n{'0' * 600}1\n" * 2000
    )
    mesh = read(tmp_path / "a.vtk", text.encode())
    np.testing.assert_array_equal(mesh.vertices, bumpy.vertices)
    np.testing.assert_array_equal(mesh.faces, bumpy.faces)


@pytest.mark.parametrize("kind", ["Float32", "Int8", "A" * 3000])
def test_vtp_types_that_are_not_known_are_quoted_shortly(kind, tmp_path, bumpy):
    save_mesh(bumpy, tmp_path / "a.vtp")
    data = (tmp_path / "a.vtp").read_bytes()
    odd = data.replace(b'header_type="UInt64"', f'header_type="{kind}"'.encode())
    assert "header_type" in refused(tmp_path / "b.vtp", odd)
    odd = data.replace(b'type="Float64"', f'type="x{kind}"'.encode())
    assert "unknown type" in refused(tmp_path / "b.vtp", odd)


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
