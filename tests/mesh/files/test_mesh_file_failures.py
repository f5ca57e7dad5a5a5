"""Whatever is wrong with a file, the user gets our error with the file's name, and the right one."""

import os

import numpy as np
import pytest

from breastmorph.foundation.errors import BreastMorphError, FileProblem, MeshProblem
from breastmorph.foundation.files import LARGEST_MESH_FILE, _share_like, write_file
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh


@pytest.fixture(scope="module")
def files(bumpy, coloured, seams, tmp_path_factory, pyvista):
    """One small file of every kind that is read."""
    folder = tmp_path_factory.mktemp("every")
    for suffix in ("ply", "obj", "stl", "vtp", "glb"):
        save_mesh(coloured if suffix in ("vtp", "stl") else seams, folder / f"ours.{suffix}")
    sheet = pyvista.PolyData.from_regular_faces(coloured.vertices, coloured.faces)
    sheet["RGB"] = coloured.colors[:, :3]
    sheet.save(folder / "vtk_ascii.ply", binary=False)
    sheet.save(folder / "vtk_ascii.stl", binary=False)
    sheet.save(folder / "ascii.vtk", binary=False)
    sheet.save(folder / "binary.vtk")
    sheet.save(folder / "ascii.vtp", binary=False)
    sheet.save(folder / "zlib.vtp")
    rows = "\n".join(" ".join(map(repr, row)) for row in coloured.vertices.tolist())
    corners = "\n".join(f"3 {a} {b} {c}" for a, b, c in coloured.faces.tolist())
    (folder / "text.off").write_text(f"OFF\n{coloured.n_vertices} {coloured.n_faces} 0\n{rows}\n{corners}\n")
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix not in (".mtl", ".png")}


NAMES = ["ours.ply", "ours.obj", "ours.stl", "ours.vtp", "ours.glb", "vtk_ascii.ply", "vtk_ascii.stl",
         "ascii.vtk", "binary.vtk", "ascii.vtp", "zlib.vtp", "text.off"]  # fmt: skip
# These say how much they hold, so that no cut can go unnoticed (a line end at the very end aside).
COUNTED = {"ours.ply", "ours.stl", "ours.vtp", "ours.glb", "ascii.vtp", "zlib.vtp", "vtk_ascii.stl"}
# These can lose their end between two attributes, or within the last number, but never a face.
COMPLETE = {"binary.vtk", "ascii.vtk", "vtk_ascii.ply", "text.off"}


@pytest.mark.parametrize("name", NAMES)
def test_cut_off_anywhere(name, files, tmp_path):
    data = files[name]
    path = tmp_path / name
    for cut in np.unique(np.linspace(1, len(data) - 1, 150).astype(int)):
        path.write_bytes(data[:cut])
        try:
            mesh = load_mesh(path)
        except BreastMorphError as problem:
            told = (problem.where, bool(problem.remedy))
        else:
            told = (path, True)
            assert name not in COUNTED or not data[cut:].strip(), (
                f"{cut} of {len(data)} bytes passed for a whole file"
            )
            assert mesh.n_faces == 40 if name in COMPLETE else mesh.n_faces > 0

        assert told == (path, True), cut


@pytest.mark.parametrize("name", NAMES)
def test_any_changed_byte_gives_a_mesh_or_our_error(name, files, tmp_path):
    rng = np.random.default_rng(len(name))
    path = tmp_path / name
    for trial in range(150):
        data = bytearray(files[name])
        # Half of the changes hit the first bytes: headers, counts and types.
        for _ in range(rng.integers(1, 4)):
            at = rng.integers(0, min(len(data), 400) if trial % 2 else len(data))
            data[at] = rng.choice([0, 0xFF, ord("9"), ord("-"), ord(" "), rng.integers(256)])
        path.write_bytes(data)
        try:
            load_mesh(path)
            where = path
        except BreastMorphError as problem:
            where = problem.where
        assert where == path


@pytest.mark.parametrize("name", NAMES)
def test_content_decides_not_the_name(name, files, tmp_path):
    for wrong in ("scan.obj", "scan.ply", "scan.stl", "scan.dat", "scan"):
        (tmp_path / wrong).write_bytes(files[name])
        assert load_mesh(tmp_path / wrong).n_faces == 40


def test_each_kind_of_failure_has_its_words(tmp_path, bumpy, picture):
    def of(name, content):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(BreastMorphError) as caught:
            load_mesh(path)
        assert caught.value.where == path
        assert caught.value.remedy
        return type(caught.value), str(caught.value)

    assert of("empty.ply", b"")[0] is FileProblem
    assert "the file is empty" in of("empty.ply", b"")[1]
    assert "does not begin as that of a PLY" in of("a.ply", b"hello there\n")[1]
    assert "format of this file is not known" in of("a.docx", b"\x01\x02\x03" * 50)[1]
    assert "PLY, OBJ, STL, OFF, VTK/VTP" in of("a.docx", b"\x01\x02\x03" * 50)[1]
    assert "a picture" in of("a.obj", picture())[1]
    assert "zip archive" in of("a.ply", b"PK\x03\x04" + b"x" * 99)[1]
    assert "a JSON text, but not glTF's" in of("a.ply", b'{"sternal_notch": [0, 0, 0]}')[1]
    assert "this is glTF version 1.0; version 2 is read" in of("a.gltf", b'{"asset": {"version": "1.0"}}')[1]
    assert "not VTK's" in of("a.dae", b"<?xml version='1.0'?><COLLADA/>")[1]
    assert "binary STL header has 84 bytes, the file has 12" in of("a.stl", b"\0" * 12)[1]
    assert "glTF version 1" in of("a.glb", b"glTF" + b"\1\0\0\0" + b"\0" * 50)[1]
    axes = b"property float x\nproperty float y\nproperty float z\n"
    cloud = b"ply\nformat ascii 1.0\nelement vertex 1\n" + axes + b"end_header\n1 2 3\n"
    assert of("cloud.ply", cloud)[0] is MeshProblem
    assert "1 points but no faces" in of("cloud.ply", cloud)[1]
    assert "30 points but no faces" in of("cloud.obj", b"v 1 2 3\n" * 30)[1]
    assert "no faces" in of("cloud.off", b"OFF\n1 0 0\n1 2 3\n")[1]
    wrong = b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n"
    assert of("wrong.off", wrong)[0] is MeshProblem
    assert "only 3 vertices" in of("wrong.off", wrong)[1]


def test_missing_and_folder(tmp_path):
    with pytest.raises(FileProblem, match="no such file"):
        load_mesh(tmp_path / "missing.ply")
    with pytest.raises(FileProblem, match="a folder"):
        load_mesh(tmp_path)
    with pytest.raises(FileProblem):
        load_mesh("a\0b.ply")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "a.ply")
    with pytest.raises(FileProblem, match="not a regular file"):
        load_mesh(tmp_path / "a.ply")


def test_too_large(tmp_path):
    path = tmp_path / "a.ply"
    with open(path, "wb") as file:
        file.truncate(LARGEST_MESH_FILE + 1)  # takes no room on the disk
    with pytest.raises(FileProblem, match="more than the 2,048 MB allowed"):
        load_mesh(path)


def test_not_finite_is_left_to_the_check(bumpy, tmp_path):
    vertices = bumpy.vertices.copy()
    vertices[3] = [np.nan, np.inf, -np.inf]
    for suffix in ("ply", "obj", "stl", "vtp"):
        save_mesh(bumpy.with_vertices(vertices), tmp_path / f"a.{suffix}")
        back = load_mesh(tmp_path / f"a.{suffix}")
        assert np.count_nonzero(~np.isfinite(back.vertices)) == 3


def test_writing_is_all_or_nothing(bumpy, tmp_path, monkeypatch):
    path = tmp_path / "a.ply"
    path.write_bytes(b"old")

    def fails(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fails)
        with pytest.raises(FileProblem, match="No space left"):
            save_mesh(bumpy, path)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.ply"]


@pytest.mark.skipif(os.name != "posix", reason="elsewhere rights come with the folder")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o444])
def test_who_may_read_a_file_stays_as_it_was(tmp_path, mode):
    path, other = tmp_path / "a.json", tmp_path / "b.json"
    path.write_bytes(b"old")
    path.chmod(mode)
    before = path.stat()
    write_file(path, b"new")
    write_file(other, b"a copy", like=path)
    assert path.read_bytes() == b"new"
    for file in (path, other):
        after = file.stat()
        assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only the administrator can")
def test_the_administrator_does_not_take_files_away(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    os.chown(path, 65534, 65534)
    path.chmod(0o640)
    write_file(path, b"new")
    after = path.stat()
    assert (after.st_uid, after.st_gid, after.st_mode & 0o777) == (65534, 65534, 0o640)


@pytest.mark.skipif(os.name != "posix", reason="elsewhere rights come with the folder")
def test_another_group_does_not_get_in_with_the_rights_of_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    path.chmod(0o660)

    def refused(*_: object) -> None:
        raise PermissionError

    state = path.stat()
    foreign = os.stat_result((*state[:5], state.st_gid + 1, *state[6:10]))
    monkeypatch.setattr(os, "chown", refused)
    _share_like(path, foreign)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.name != "posix", reason="elsewhere rights come with the folder")
def test_a_new_file_follows_the_umask(tmp_path):
    mask = os.umask(0o027)
    try:
        write_file(tmp_path / "a.json", b"new")
    finally:
        os.umask(mask)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o640


def test_where_not_to_write(bumpy, tmp_path):
    for path, words in (
        (tmp_path / "a.xyz", "not written to .xyz"),
        (tmp_path / "a", "without extension"),
        (tmp_path / "missing" / "a.ply", "folder for this file does not exist"),
    ):
        with pytest.raises(FileProblem, match=words):
            save_mesh(bumpy, path)
    (tmp_path / "a.ply").mkdir()
    with pytest.raises(FileProblem, match="a folder"):
        save_mesh(bumpy, tmp_path / "a.ply")


def test_unused_vertices_stay(tmp_path):
    mesh = TriangleMesh(np.arange(15.0).reshape(5, 3), [[4, 0, 2]])
    for suffix in ("ply", "obj", "vtp", "glb"):
        save_mesh(mesh, tmp_path / f"a.{suffix}")
        back = load_mesh(tmp_path / f"a.{suffix}")
        np.testing.assert_array_equal(back.vertices, mesh.vertices)
        assert back.faces.tolist() == [[4, 0, 2]]
