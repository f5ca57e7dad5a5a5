"""Cohorts: one loader, flat memory, packed once, meshes from elsewhere."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys

import numpy as np
import pytest

from breastmorph.batch.drift import folder_drift
from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.cohort.reading import read_table
from breastmorph.foundation.errors import BreastMorphError, FileProblem, LandmarkProblem
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.landmark_files import save_landmarks
from refusals import refused
from small_cohort import random_shapes, small_cohort, write_registered


@pytest.fixture
def registered(tmp_path):
    """Five registered subjects, and their shapes."""
    shapes = random_shapes(5)
    write_registered(tmp_path / "out", shapes, absent={"003": "left"})
    return tmp_path / "out", shapes


def packed_rows(folder) -> list[int]:
    """What a reading reports while it packs."""
    calls: list[int] = []
    load_cohort(folder, on_packed=lambda done, total: calls.append(done))
    return calls


def test_what_was_registered_is_read_back_to_32_bits(registered):
    folder, shapes = registered
    cohort = load_cohort(folder)
    assert cohort.ids == ("000", "001", "002", "003", "004")
    assert cohort.absent == ("", "", "", "left", "")
    assert np.abs(cohort.array() - shapes).max() < 1e-4
    assert isinstance(cohort.packed, np.memmap)
    assert cohort.packed.dtype == np.float32
    assert not cohort.packed.flags.writeable
    for one, other in zip(cohort.shapes(), shapes, strict=True):
        assert np.abs(one - other).max() < 1e-4


def test_shapes_stand_upright_whatever_the_frame_of_the_file(registered, small_template):
    folder, shapes = registered
    to_file = Similarity(rotation_about(np.array([1.0, 1.0, 0.0]), 70.0), np.array([5.0, 6.0, 7.0]), 0.001)
    path = folder / "registered" / "002.ply"
    save_mesh(small_template.mesh.with_vertices(to_file.apply(shapes[2])), path)
    record = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(record | {"to_file": to_file.as_dict()}))
    cohort = load_cohort(folder)
    assert np.abs(cohort.shape(2) - shapes[2]).max() < 1e-3
    assert np.abs(cohort.to_file[2].apply(shapes[2]) - load_mesh(path).vertices).max() < 1e-6
    again = load_cohort(folder)  # from the cohort file
    assert np.array_equal(again.shape(2), cohort.shape(2))
    assert np.array_equal(again.to_file[2].rotation, cohort.to_file[2].rotation)


def test_what_a_mac_leaves_beside_files_is_not_read(registered):
    folder, _ = registered
    for name in ("._002.json", "._002.ply", ".DS_Store"):
        (folder / "registered" / name).write_bytes(bytes([0, 5, 22, 7]))
    assert load_cohort(folder).ids == ("000", "001", "002", "003", "004")
    assert RegisteredFolder(folder).ids() == ["000", "001", "002", "003", "004"]
    assert not [problem for problem in folder_drift(folder) if "._" in str(problem)]


def test_the_second_reading_maps_the_cohort_file(registered):
    folder, _ = registered
    assert packed_rows(folder) == [1, 2, 3, 4, 5]
    assert packed_rows(folder) == []


def test_only_what_changed_is_read_again(registered, monkeypatch, small_template):
    folder, shapes = registered
    load_cohort(folder)
    changed = shapes[1] + [0.0, 0.0, 9.0]
    save_mesh(small_template.mesh.with_vertices(changed), folder / "registered" / "001.ply")
    (folder / "registered" / "004.json").unlink()
    read = []

    def watched(path):
        read.append(path.stem)
        return load_mesh(path)

    monkeypatch.setattr("breastmorph.cohort.reading.load_mesh", watched)
    cohort = load_cohort(folder)
    assert read == ["001"]
    assert cohort.ids == ("000", "001", "002", "003")
    assert np.abs(cohort.shape(1) - changed).max() < 1e-4
    assert np.abs(cohort.shape(3) - shapes[3]).max() < 1e-4
    assert len(list((folder / "cohort").glob("shapes-*.npy"))) == 1  # the old file is gone


@pytest.mark.parametrize("damage", ["cut", "no index", "nonsense"])
def test_a_damaged_cohort_file_is_made_again(registered, damage):
    folder, shapes = registered
    load_cohort(folder)
    (path,) = (folder / "cohort").glob("shapes-*.npy")
    if damage == "cut":
        os.truncate(path, 5000)
    elif damage == "no index":
        path.with_suffix(".json").unlink()
    else:
        path.write_bytes(b"nonsense")
    assert np.abs(load_cohort(folder).array() - shapes).max() < 1e-4


def test_what_a_killed_packing_left_is_cleared_away_and_one_at_work_is_not_disturbed(registered):
    folder, _ = registered
    (folder / "cohort").mkdir()
    left, at_work = (folder / "cohort" / f".shapes.{name}.part" for name in ("left", "at-work"))
    for part in (left, at_work):
        part.write_bytes(b"half")
    os.utime(left, (0, 0))
    load_cohort(folder)
    assert not left.exists()
    assert at_work.exists()


def test_a_failed_packing_leaves_nothing_half_done(registered, small_template):
    folder, shapes = registered
    path = folder / "registered" / "003.ply"
    whole = path.read_bytes()
    save_mesh(TriangleMesh(shapes[3], small_template.mesh.faces[:-1]), path)
    with refused("other-triangles", FileProblem):
        load_cohort(folder)
    assert list((folder / "cohort").iterdir()) == []
    path.write_bytes(whole)
    assert len(load_cohort(folder)) == 5


def test_coordinates_that_are_no_numbers_are_refused(registered):
    folder, _ = registered
    path = folder / "registered" / "000.ply"
    broken = bytearray(path.read_bytes())
    start = broken.index(b"end_header\n") + len(b"end_header\n")
    broken[start : start + 8] = np.array([np.nan], dtype="<f8").tobytes()
    path.write_bytes(bytes(broken))
    with pytest.raises(BreastMorphError, match=r"000\.ply"):
        load_cohort(folder)


def test_a_place_that_cannot_be_written_to_says_so(registered, monkeypatch):
    folder, _ = registered
    (folder / "cohort").write_text("a file where the folder should be")
    with refused("unwritable", FileProblem):
        load_cohort(folder)
    (folder / "cohort").unlink()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("breastmorph.cohort.packed.os.fsync", full)
    with refused("unwritable", FileProblem, reason="No space left on device") as caught:
        load_cohort(folder)
    assert caught.value.code == "unwritable"
    assert list((folder / "cohort").iterdir()) == []


def test_the_cohort_file_may_lie_elsewhere(registered, tmp_path):
    folder, shapes = registered
    cohort = load_cohort(folder, packed_in=tmp_path / "fast-disk")
    assert np.abs(cohort.array() - shapes).max() < 1e-4
    assert not (folder / "cohort").exists()
    assert len(list((tmp_path / "fast-disk").glob("shapes-*.npy"))) == 1


def test_folders_that_are_no_cohort_are_refused_with_a_remedy(registered, tmp_path):
    folder, _ = registered
    with refused("not-registered", FileProblem):
        load_cohort(tmp_path / "nothing")
    (tmp_path / "empty" / "registered").mkdir(parents=True)
    with pytest.raises(FileProblem, match="no registered scan"):
        load_cohort(tmp_path / "empty")
    shutil.copytree(folder, tmp_path / "mixed")
    path = tmp_path / "mixed" / "registered" / "001.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"template": "another"}))
    with pytest.raises(FileProblem, match="different templates"):
        load_cohort(tmp_path / "mixed")
    path.write_text(json.dumps(record | {"id": "000"}))
    with pytest.raises(FileProblem, match=r"001\.json.*another scan"):
        load_cohort(tmp_path / "mixed")
    path.write_text("[1, 2")
    with pytest.raises(FileProblem, match=r"001\.json"):
        load_cohort(tmp_path / "mixed")
    path.write_text(json.dumps(record))
    path.with_suffix(".ply").unlink()
    with pytest.raises(FileProblem, match="mesh is missing"):
        load_cohort(tmp_path / "mixed")
    (folder / "template.npz").unlink()
    with pytest.raises(FileProblem, match="template is missing"):
        load_cohort(folder)


def test_a_table_is_joined_by_id(registered, tmp_path):
    folder, _ = registered
    table = tmp_path / "table.csv"
    table.write_text("﻿id,bmi,operated\n002,24.5,yes\n000,19,no\nnobody,30,no\n")
    cohort = load_cohort(folder, table)
    assert cohort.table[2]["bmi"] == "24.5"
    assert cohort.table[1] == {}
    for text, message in (
        ("name,bmi\n000,1\n", "no column `id`"),
        ("id,bmi\nx,1\n", "none of the cohort's scans"),
        ("id,bmi\n000,1\n000,2\n", "two rows"),
    ):
        table.write_text(text)
        with pytest.raises(FileProblem, match=message):
            load_cohort(folder, table)
    with pytest.raises(FileProblem, match="no such file"):
        load_cohort(folder, tmp_path / "missing.csv")


def test_some_subjects_make_a_cohort_of_their_own(small_template):
    cohort = small_cohort(6)
    some = cohort.chosen(np.array([True, False, True, False, False, True])).chosen([2, 0])
    assert some.ids == ("005", "000")
    assert np.array_equal(some.shape(0), cohort.shape(5))
    assert some.array().shape == (2, small_template.mesh.n_vertices, 3)
    assert len(cohort.chosen([])) == 0


# -- meshes made elsewhere -----------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(tmp_path, small_template):
    """A plain folder of meshes in metres, turned, in three formats; and the landmarks' vertices."""
    template = small_template
    shapes = random_shapes(4, size=3.0)
    folder = tmp_path / "meshes"
    folder.mkdir()
    turn = Similarity(rotation_about(np.array([1.0, 0.0, 0.0]), 90.0), np.full(3, 0.2), 0.001)
    for name, shape in zip(("a.ply", "b.obj", "c.vtp", "d.ply"), shapes, strict=True):
        save_mesh(template.mesh.with_vertices(turn.apply(shape)), folder / name)
    ids = tmp_path / "vertices.json"
    ids.write_text(json.dumps(dict(template.landmark_ids)))
    return folder, ids, shapes, turn


def test_meshes_in_correspondence_made_elsewhere_are_a_cohort(elsewhere, small_template):
    folder, ids, shapes, turn = elsewhere
    cohort = load_cohort(folder, landmarks=ids)
    assert cohort.ids == ("a", "b", "c", "d")
    assert dict(cohort.template.landmark_ids) == dict(small_template.landmark_ids)
    for k, shape in enumerate(shapes):
        back = Similarity.fit(cohort.shape(k), shape)
        assert back.scale == pytest.approx(1.0, abs=1e-4)  # in mm
        assert np.abs(back.apply(cohort.shape(k)) - shape).max() < 1e-2
        tilt = np.degrees(np.arccos(np.clip(back.rotation[1, 1], -1, 1)))
        assert tilt < 5.0  # upright
        assert np.abs(cohort.to_file[k].apply(cohort.shape(k)) - turn.apply(shape)).max() < 1e-5
    again = load_cohort(folder, landmarks=ids)
    assert np.array_equal(again.packed, cohort.packed)
    assert np.array_equal(again.to_file[3].rotation, cohort.to_file[3].rotation)


def test_landmarks_of_meshes_from_elsewhere_may_be_a_table_or_points(elsewhere, tmp_path, small_template):
    folder, _, _, _ = elsewhere
    expected = dict(small_template.landmark_ids)
    table = tmp_path / "vertices.csv"
    table.write_text("name,vertex\n" + "".join(f"{name},{vertex}\n" for name, vertex in expected.items()))
    assert dict(load_cohort(folder, landmarks=table).template.landmark_ids) == expected
    first = load_mesh(folder / "a.ply")
    points = small_template.landmarks
    on_first = type(points)(points.names, first.vertices[list(expected.values())])
    save_landmarks(on_first, tmp_path / "scalismo.json", format="scalismo")
    assert dict(load_cohort(folder, landmarks=tmp_path / "scalismo.json").template.landmark_ids) == expected


def test_bad_landmarks_of_meshes_from_elsewhere_are_refused(elsewhere, tmp_path, small_template):
    folder, ids, _, _ = elsewhere
    good = json.loads(ids.read_text())
    for change, message in (
        ({"xiphoid": 10**6}, "names vertex 1000000"),
        ({"N-L": 5}, "given twice"),
    ):
        ids.write_text(json.dumps(good | change))
        with pytest.raises(LandmarkProblem, match=message):
            load_cohort(folder, landmarks=ids)
    ids.write_text(json.dumps({"xiphoid": 3}))
    with pytest.raises(LandmarkProblem, match="sternal_notch"):
        load_cohort(folder, landmarks=ids)
    far = small_template.landmarks  # in mm, the meshes are in metres
    save_landmarks(far, tmp_path / "far.json")
    with refused(kind=LandmarkProblem, name="sternal_notch"):
        load_cohort(folder, landmarks=tmp_path / "far.json")
    with pytest.raises(FileProblem):
        load_cohort(folder, landmarks=tmp_path / "missing.json")


def test_meshes_with_other_triangles_are_no_cohort(elsewhere):
    folder, ids, _, _ = elsewhere
    mesh = load_mesh(folder / "d.ply")
    save_mesh(TriangleMesh(mesh.vertices, np.roll(mesh.faces, 1, axis=0)), folder / "d.ply")
    with pytest.raises(FileProblem, match=r"d\.ply.*same triangles"):
        load_cohort(folder, landmarks=ids)


def test_a_mesh_of_no_adult_size_is_named_while_the_cohort_file_is_written(elsewhere):
    folder, ids, _, _ = elsewhere
    mesh = load_mesh(folder / "d.ply")
    save_mesh(mesh.with_vertices(3.0 * mesh.vertices), folder / "d.ply")
    with pytest.raises(LandmarkProblem, match=r"d\.ply: sternal notch to xiphoid"):
        load_cohort(folder, landmarks=ids)


def test_a_cohort_from_arrays_has_ids_of_its_own(small_template):
    cohort = Cohort.of(random_shapes(3), small_template)
    assert cohort.ids == ("000", "001", "002")
    assert Cohort.of(random_shapes(2), small_template, ids=("x", "y")).ids == ("x", "y")


def test_a_table_with_semicolons_and_decimal_commas_is_understood(registered, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("id;bmi;note\n000;22,6;a,b\n001;31,05;x\n")
    cohort = load_cohort(registered[0], table)
    assert cohort.table[0] == {"id": "000", "bmi": "22.6", "note": "a,b"}
    assert cohort.table[1]["bmi"] == "31.05"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every name is text")
@pytest.mark.parametrize("name", [os.fsdecode(b"M\xfcller"), "Zoe\u0301"])
def test_results_under_names_that_are_no_text_or_not_composed_are_read(registered, tmp_path, name):
    folder, _ = registered
    record = json.loads((folder / "registered" / "000.json").read_text())
    record |= {"id": name, "outputs": {f"{name}.ply": next(iter(record["outputs"].values()))}}
    (folder / "registered" / f"{name}.json").write_text(json.dumps(record))
    (folder / "registered" / "000.json").unlink()
    (folder / "registered" / "000.ply").rename(folder / "registered" / f"{name}.ply")
    table = tmp_path / "table.csv"
    table.write_text("id,bmi\nM%FCller,20\nZo\u00e9,20\n", encoding="utf-16")
    cohort = load_cohort(folder, table)
    assert cohort.ids[-1] in ("M%FCller", "Zo\u00e9")
    assert cohort.ids[-1] == RegisteredFolder(folder).ids()[-1]
    assert cohort.table[-1]["bmi"] == "20"
    for suffix in (".json", ".ply"):
        shutil.copy(
            folder / "registered" / f"{name}{suffix}", folder / "registered" / f"{cohort.ids[-1]}{suffix}"
        )
    with pytest.raises(FileProblem, match="two results have the same name"):
        load_cohort(folder)


def test_a_table_may_protect_names_from_being_formulas(tmp_path):
    (tmp_path / "table.csv").write_text("id,bmi\n'=1+1,20\n'q,21\n")
    assert set(read_table(tmp_path / "table.csv")) == {"=1+1", "'q"}
