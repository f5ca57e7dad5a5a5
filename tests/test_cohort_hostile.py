"""Bugs that fuzzing found in the readers of registered folders, tables and lists."""

import json
import warnings

import numpy as np
import pytest

from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.clinical.missing_region import load_painted
from breastmorph.cohort import load_cohort
from breastmorph.cohort.reading import landmark_vertices, read_table
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.mesh.geometry import Similarity
from breastmorph.scan.landmark_files import load_landmarks
from breastmorph.scan.raw_target import load_points
from breastmorph.usecases.subject import registered_patient
from small_cohort import built, random_shapes, small_cohort, write_registered


@pytest.fixture
def folder(tmp_path):
    write_registered(tmp_path / "r", random_shapes(2))
    return tmp_path / "r"


FRAME = Similarity().as_dict()
RECORDS = {
    "rotation of texts": {"to_file": FRAME | {"rotation": [["a"] * 3] * 3}},
    "rotation of another shape": {"to_file": FRAME | {"rotation": [[1, 0], [0, 1]]}},
    "no rotation": {"to_file": FRAME | {"rotation": [[2, 0, 0], [0, 1, 0], [0, 0, 1]]}},
    "rotation beyond the range": {"to_file": FRAME | {"rotation": [[1e200] * 3] * 3}},
    "translation not finite": {"to_file": FRAME | {"translation": [0, float("nan"), 0]}},
    "translation of 400 digits": {"to_file": FRAME | {"translation": [0, 10**400, 0]}},
    "scale zero": {"to_file": FRAME | {"scale": 0}},
    "frame a list": {"to_file": [1]},
    "landmark not a point": {"landmarks": {"xiphoid": 5}},
    "landmark not finite": {"landmarks": {"xiphoid": [0, 0, float("inf")]}},
    "landmark of 400 digits": {"landmarks": {"xiphoid": [0, 0, 10**400]}},
    "landmarks a text": {"landmarks": "none"},
    "outputs a number": {"outputs": 5},
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_that_do_not_fit(name, folder):
    path = folder / "registered" / "000.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | RECORDS[name]))
    with pytest.raises(FileProblem, match="record cannot be read") as caught:
        load_cohort(folder)
    assert caught.value.where == path
    if "to_file" in RECORDS[name]:
        with pytest.raises(FileProblem, match="record cannot be read"):
            registered_patient(built(small_cohort(3)), path.with_suffix(".ply"))


def test_nested_record(folder):
    path = folder / "registered" / "000.json"
    path.write_text("[" * 100_000)
    with pytest.raises(FileProblem, match="record cannot be read"):
        load_cohort(folder)
    assert RegisteredFolder(folder).record("000") == {}


@pytest.mark.parametrize("damage", ["nested", "shorter", "texts", "archive", "header"])
def test_a_damaged_cohort_file_is_made_again(damage, folder):
    before = np.array(load_cohort(folder).packed)
    packed = next((folder / "cohort").glob("shapes-*.npy"))
    index = packed.with_suffix(".json")
    content = json.loads(index.read_text())
    if damage == "nested":
        index.write_text("[" * 100_000)
    elif damage == "shorter":
        index.write_text(json.dumps(content | {"to_file": content["to_file"][:1]}))
    elif damage == "texts":
        index.write_text(json.dumps(content | {"states": [["a"], ["b"]]}))
    elif damage == "archive":
        with open(packed, "wb") as file:
            np.savez(file, a=np.zeros(3))
    else:
        packed.write_bytes(packed.read_bytes().replace(b"(2,", b"(2 ", 1))
    np.testing.assert_array_equal(load_cohort(folder).packed, before)


def test_tables_with_more_fields_than_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id;bmi\na;22,5;7;8\nb\n")  # a list among the texts raised TypeError
    assert read_table(path) == {"a": {"id": "a", "bmi": "22.5"}, "b": {"id": "b", "bmi": ""}}
    path.write_text("id,bmi\na,22.5,7\n")
    assert read_table(path) == {"a": {"id": "a", "bmi": "22.5"}}


@pytest.mark.parametrize(
    "text", ["id,a\nx," + "9" * 200_000, "id,a\nx,1\n" * 2 + 3000 * "x" + ",1\n" + 3000 * "x" + ",1"]
)
def test_tables_with_huge_fields(text, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(FileProblem) as caught:
        read_table(tmp_path / "t.csv")
    assert len(caught.value.cause) < 300


@pytest.mark.parametrize("word", ["9" * 5000, "9" * 30, "1_0", "²", "1.5", "x"])
def test_painted_words_that_are_no_vertices(word, tmp_path):
    # The first raised StopIteration, the second OverflowError, the third passed for ten.
    (tmp_path / "p.txt").write_text(f"1 2 {word}")
    with pytest.raises(FileProblem, match="no vertex number"):
        load_painted(tmp_path / "p.txt", 20)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "a\rb,1", "xiphoid," + "9" * 5000, '{"xiphoid": ' + "9" * 4000 + "}"]
)
def test_landmark_vertices_that_cannot_be_read(text, tmp_path, small_template):
    (tmp_path / "l.csv").write_bytes(text.encode())
    with pytest.raises(BreastMorphError) as caught:
        landmark_vertices(tmp_path / "l.csv", small_template.mesh)
    assert len(caught.value.cause) < 300


def test_points_with_a_huge_field(tmp_path):
    (tmp_path / "p.xyz").write_text("1;" + "9" * 200_000)
    with pytest.raises(FileProblem, match="no table of points"):
        load_points(tmp_path / "p.xyz")


def test_a_landmark_given_twice_under_a_long_name(tmp_path):
    (tmp_path / "l.csv").write_text(f"xiphoid,0,0,0\nxiphoid{'.' * 5000},1,1,1\n")
    with pytest.raises(BreastMorphError, match="given twice") as caught:
        load_landmarks(tmp_path / "l.csv")
    assert len(caught.value.cause) < 300


def test_a_packed_file_with_a_strange_header_is_made_again_without_a_warning(tmp_path):
    # NumPy parses the header as Python, and only warned of an escape that Python does not know.
    write_registered(tmp_path, random_shapes(3))
    expected = load_cohort(tmp_path).array()
    (packed,) = (tmp_path / "cohort").glob("shapes-*.npy")
    packed.write_bytes(packed.read_bytes().replace(b"'descr'", b"'de\\Er'", 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(load_cohort(tmp_path).array(), expected)


def test_a_table_in_another_encoding_says_how_to_save_it(tmp_path):
    path = tmp_path / "cohort.csv"
    text = "id;place;bmi\n000;Köln;22,6\n"
    path.write_bytes(text.encode("utf-16"))  # with its mark: "Unicode text" of a spreadsheet program
    assert read_table(path)["000"] == {"id": "000", "place": "Köln", "bmi": "22.6"}
    path.write_bytes(text.encode("cp1252"))
    with pytest.raises(FileProblem, match="CSV UTF-8"):
        read_table(path)
