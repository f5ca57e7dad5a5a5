"""Landmark files as the other programs write them, and ours back again."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breastmorph.foundation.errors import FileProblem, LandmarkProblem
from breastmorph.scan.landmark_files import load_landmarks, read_landmarks, save_landmarks
from breastmorph.scan.scan import NAMES, REQUIRED, Landmarks

POINTS = {name: [1.5 + k, -20.25 * k, 3e-3 + k / 7] for k, name in enumerate(REQUIRED)}


def loaded(tmp_path, name, text, **options):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_landmarks(tmp_path / name, **options)


@pytest.mark.parametrize("name", ["a.json", "a.csv", "a.pp", "a.mrk.json", "a.fcsv"])
@given(data=st.data())
def test_round_trip_is_exact(name, data, tmp_path_factory):
    names = data.draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    number = st.floats(allow_nan=False, allow_infinity=False)
    points = data.draw(st.lists(st.tuples(number, number, number), min_size=len(names), max_size=len(names)))
    path = tmp_path_factory.mktemp("landmarks") / name
    save_landmarks(Landmarks(tuple(names), np.array(points)), path)
    back = read_landmarks(path)
    assert back.landmarks.names == tuple(names)
    np.testing.assert_array_equal(back.landmarks.points, points)
    assert back.unknown == ()
    assert back.space == ("LPS" if name in ("a.mrk.json", "a.fcsv") else "")


def test_scalismo_round_trip_under_any_name(tmp_path):
    save_landmarks(Landmarks.of(POINTS), tmp_path / "a.json", format="scalismo")
    content = json.loads((tmp_path / "a.json").read_text())
    assert content[0] == {"id": "sternal_notch", "coordinates": POINTS["sternal_notch"]}
    np.testing.assert_array_equal(load_landmarks(tmp_path / "a.json").points, list(POINTS.values()))


def test_our_json(tmp_path):
    text = '{"sternal_notch": [1, 2.5, -3], "N-L": [4, 5, 6], "nipple_right": null, "mole": [0, 0, 0]}'
    file = loaded(tmp_path, "a.json", text)
    assert file.landmarks.names == ("sternal_notch", "nipple_left")
    assert file.landmarks["sternal_notch"].tolist() == [1, 2.5, -3]
    assert file.unknown == ("mole",)
    assert file.space == file.unit == ""
    assert load_landmarks_keys(tmp_path) == list(POINTS)


def load_landmarks_keys(tmp_path):
    save_landmarks(Landmarks.of(POINTS), tmp_path / "b.json")
    return list(json.loads((tmp_path / "b.json").read_text()))


CSV_ROWS = [("SN", "1.5", "-2.25", "3"), ("left nipple", "4", "5", "6e1"), ("mole", "7", "8", "9")]


@pytest.mark.parametrize("mark", [",", ";", "\t", ", "])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("start", ["", "\ufeff", "# made by hand\n"])
def test_csv(mark, header, start, tmp_path):
    rows = [("name", "x", "y", "z"), *CSV_ROWS] if header else CSV_ROWS
    file = loaded(tmp_path, "a.txt", start + "\r\n".join(mark.join(row) for row in rows) + "\r\n")
    assert file.landmarks.names == ("sternal_notch", "nipple_left")
    assert file.landmarks.points.tolist() == [[1.5, -2.25, 3], [4, 5, 60]]
    assert file.unknown == ("mole",)


def test_csv_with_decimal_commas(tmp_path):
    file = loaded(tmp_path, "a.csv", "Name;X;Y;Z\nSN;1,5;-2,25;3\nXI;,5;1,5e2;0\n")
    assert file.landmarks.points.tolist() == [[1.5, -2.25, 3], [0.5, 150, 0]]


def test_csv_columns_in_another_order_and_absent_points(tmp_path):
    file = loaded(
        tmp_path, "a.csv", 'z,y,x,label,note\n3,2,1,"SN","first, at rest"\n,,,"N-L",absent\n6,5,4,XI,\n'
    )
    assert file.landmarks.names == ("sternal_notch", "xiphoid")
    assert file.landmarks["xiphoid"].tolist() == [4, 5, 6]


@pytest.mark.parametrize(("axes", "space"), [("r,a,s", "RAS"), ("l,p,s", "LPS")])
def test_slicer_control_point_table(axes, space, tmp_path):
    text = (
        f"label,{axes},defined,selected,visible,locked,description\nSN,1,2,3,1,1,1,0,\nN-L,0,0,0,0,1,1,0,\n"
    )
    file = loaded(tmp_path, "a.csv", text)
    assert file.landmarks.names == ("sternal_notch",)
    assert file.space == space


def test_meshlab_picked_points(tmp_path):
    text = """<!DOCTYPE PickedPoints>
<PickedPoints>
 <DocumentData>
  <DateTime date="2024-03-01" time="12:00:00"/>
  <User name="me"/>
  <DataFileName name="torso.ply"/>
  <templateName name="breast"/>
 </DocumentData>
 <point x="1.5" y="-2" active="1" z="3e1" name="SN"/>
 <point active="0" name="N-L" x="0" y="0" z="0"/>
 <point z="6" y="5" x="4" name="XI"/>
 <point x="1" y="1" z="1" active="1" name="3"/>
</PickedPoints>
"""
    file = loaded(tmp_path, "a.pp", text)
    assert file.landmarks.names == ("sternal_notch", "xiphoid")
    assert file.landmarks["sternal_notch"].tolist() == [1.5, -2, 30]
    assert file.unknown == ("3",)


def markups(points, **more):
    markup = {"type": "Fiducial", "coordinateSystem": "LPS", "controlPoints": points, **more}
    schema = (
        "https://raw.githubusercontent.com/slicer/slicer/master/Modules/Loadable/Markups/Resources/Schema"
    )
    return {"@schema": f"{schema}/markups-schema-v1.0.3.json#", "markups": [markup]}


SLICER_POINT = {
    "id": "1", "label": "SN", "description": "", "associatedNodeID": "", "position": [-53.4, -73.3, 0.5],
    "orientation": [-1.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0], "selected": True, "locked": False,
    "visibility": True, "positionStatus": "defined",
}  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "space"), [("LPS", "LPS"), ("RAS", "RAS"), ("0", "RAS"), ("1", "LPS"), (0, "RAS")]
)
@pytest.mark.parametrize("units", ["mm", ["mm", "UCUM", "millimeter"]])
def test_slicer_markups(declared, space, units, tmp_path):
    unset = {"label": "N-L", "position": [0, 0, 0], "positionStatus": "undefined"}
    content = markups(
        [SLICER_POINT, unset], coordinateSystem=declared, coordinateUnits=units, display={"opacity": 1}
    )
    file = loaded(tmp_path, "a.json", json.dumps(content))
    assert file.landmarks.names == ("sternal_notch",)
    assert file.landmarks.points.tolist() == [[-53.4, -73.3, 0.5]]  # as written: nothing is flipped
    assert (file.space, file.unit) == (space, "mm")


def test_slicer_markups_in_several_lists(tmp_path):
    content = markups([SLICER_POINT])
    other = {
        "type": "Fiducial",
        "coordinateSystem": "LPS",
        "controlPoints": [{"label": "XI", "position": [1, 2, 3]}],
    }
    content["markups"] += [other, {"type": "Line", "coordinateSystem": "RAS", "controlPoints": []}]
    file = loaded(tmp_path, "a.mrk.json", json.dumps(content))
    assert file.landmarks.names == ("sternal_notch", "xiphoid")
    other["coordinateSystem"] = "RAS"
    with pytest.raises(LandmarkProblem, match="different coordinate systems"):
        loaded(tmp_path, "a.mrk.json", json.dumps(content))


def test_what_we_write_for_slicer(tmp_path):
    save_landmarks(Landmarks.of(POINTS), tmp_path / "a.mrk.json", space="RAS")
    content = json.loads((tmp_path / "a.mrk.json").read_text())
    markup = content["markups"][0]
    assert "markups-schema-v1" in content["@schema"]
    assert (markup["type"], markup["coordinateSystem"], markup["coordinateUnits"]) == (
        "Fiducial",
        "RAS",
        "mm",
    )
    assert [point["label"] for point in markup["controlPoints"]] == list(POINTS)
    assert all(point["positionStatus"] == "defined" for point in markup["controlPoints"])
    save_landmarks(Landmarks.of(POINTS), tmp_path / "a.fcsv")
    lines = (tmp_path / "a.fcsv").read_text().splitlines()
    assert lines[0].startswith("# Markups fiducial file version = ")
    assert lines[1] == "# CoordinateSystem = LPS"
    assert all(line.count(",") == lines[2].count(",") for line in lines[3:])


FCSV_COLUMNS = "# columns = id,x,y,z,ow,ox,oy,oz,vis,sel,lock,label,desc,associatedNodeID\n"


@pytest.mark.parametrize(("declared", "space"), [("LPS", "LPS"), ("RAS", "RAS"), ("0", "RAS"), ("1", "LPS")])
def test_slicer_fcsv(declared, space, tmp_path):
    text = (
        f"# Markups fiducial file version = 4.11\n# CoordinateSystem = {declared}\n{FCSV_COLUMNS}"
        "vtkMRMLMarkupsFiducialNode_0,-19.9,13.9347,29.44,0,0,0,1,1,1,0,SN,,vtkMRMLScalarVolumeNode1\n"
        '1,81.7,-42.9,9.6,0,0,0,1,1,1,0,"N-L","left, seen from the patient",,2,0\n'
        "2,0,0,0,0,0,0,1,1,1,0,XI,,,0,0\n"
    )
    file = loaded(tmp_path, "a.csv", text)
    assert file.landmarks.names == ("sternal_notch", "nipple_left")  # the third was never placed
    assert file.landmarks["nipple_left"].tolist() == [81.7, -42.9, 9.6]
    assert file.space == space


def test_fcsv_of_slicer_3_has_other_columns(tmp_path):
    text = "# Fiducial List file /x/L.fcsv\n# name = L\n# columns = label,x,y,z,sel,vis\nSN,1,2,3,1,1\n"
    file = loaded(tmp_path, "L.fcsv", text)
    assert file.landmarks["sternal_notch"].tolist() == [1, 2, 3]
    assert file.space == "RAS"


def test_scalismo(tmp_path):
    text = """[{"id":"SN","coordinates":[1.5,2,3]},{"id":"mole","description":"x","coordinates":[4,5,6],
    "uncertainty":{"stddevs":[1,1,1],"pcvectors":[[1,0,0],[0,1,0],[0,0,1]]}}]"""
    file = loaded(tmp_path, "a.json", text)
    assert file.landmarks["sternal_notch"].tolist() == [1.5, 2, 3]
    assert file.unknown == ("mole",)


@pytest.mark.parametrize(
    "text",
    ["1 2 3\n4 5 6\n", "1,2,3\n4,5,6", "1;2;3\n4;5;6\n", "x,y,z\n1,2,3\n4,5,6\n", "1\t2\t3\r\n4\t5\t6\r\n"],
)
def test_bare_list_needs_an_order(text, tmp_path):
    with pytest.raises(LandmarkProblem, match="Give the order of the names"):
        loaded(tmp_path, "a.xyz", text)
    file = loaded(tmp_path, "a.xyz", text, order=["SN", "nipple_left"])
    assert file.landmarks.names == ("sternal_notch", "nipple_left")
    assert file.landmarks.points.tolist() == [[1, 2, 3], [4, 5, 6]]
    with pytest.raises(LandmarkProblem, match="order names 1 landmarks, the file has 2 points"):
        loaded(tmp_path, "a.xyz", text, order=["SN"])
    with pytest.raises(LandmarkProblem, match="'elbow', which is no landmark"):
        loaded(tmp_path, "a.xyz", text, order=["SN", "elbow"])


def test_order_helps_where_no_label_is_known_and_only_there(tmp_path):
    text = (
        "<PickedPoints><point x='1' y='2' z='3' name='0'/><point x='4' y='5' z='6' name='1'/></PickedPoints>"
    )
    assert loaded(tmp_path, "a.pp", text, order=["XI", "SN"]).landmarks["xiphoid"].tolist() == [1, 2, 3]
    file = loaded(tmp_path, "a.csv", "SN,1,2,3\nXI,4,5,6\n", order=["XI", "SN"])
    assert file.landmarks["sternal_notch"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(("name", "text"), [
    ("a.json", '{"SN": [1,2,3], "sternal notch": [4,5,6]}'),
    ("a.json", '[{"id":"SN","coordinates":[1,2,3]},{"id":"SN","coordinates":[1,2,3]}]'),
    ("a.csv", "SN,1,2,3\nSN,4,5,6\n"),
    ("a.pp", "<PickedPoints>" + 2 * "<point x='1' y='2' z='3' name='SN'/>" + "</PickedPoints>"),
    ("a.mrk.json", json.dumps(markups([SLICER_POINT, SLICER_POINT]))),
    ("a.fcsv", FCSV_COLUMNS + "0,1,2,3,0,0,0,1,1,1,0,SN,,\n1,1,2,3,0,0,0,1,1,1,0,SN,,\n"),
])  # fmt: skip
def test_given_twice(name, text, tmp_path):
    with pytest.raises(LandmarkProblem, match="sternal_notch is given twice") as caught:
        loaded(tmp_path, name, text)
    assert caught.value.where == tmp_path / name


def test_given_twice_under_one_json_key(tmp_path):
    with pytest.raises(LandmarkProblem, match="'SN' is given twice"):
        loaded(tmp_path, "a.json", '{"SN": [1,2,3], "SN": [4,5,6]}')


@pytest.mark.parametrize(("name", "text", "words"), [
    ("a.json", '{"SN": [1,2,"x"]}', "'SN' has the coordinate 'x', which is not a number"),
    ("a.json", '{"SN": [1,2,NaN]}', "'SN' has a coordinate that is not finite"),
    ("a.json", '{"SN": [1,2,1e999]}', "not finite"),
    ("a.json", '{"SN": [1,2,true]}', "not a number"),
    ("a.json", '{"SN": [1,2,null]}', "not a number"),
    ("a.json", '{"SN": [1,2]}', "'SN' does not have three coordinates"),
    ("a.json", '{"SN": {"x": 1}}', "does not have three coordinates"),
    ("a.json", '{"SN": [1,2,' + "9" * 400 + "]}", "not a number"),
    ("a.csv", "name,x,y,z\nSN,1,2,nan\n", "not finite"),
    ("a.csv", "name,x,y,z\nSN,1,2,abc\n", "'SN' has the coordinate 'abc'"),
    ("a.csv", "name,x,y,z\nSN,1,2\n", "'SN'.* has 3 fields"),
    ("a.pp", "<PickedPoints><point x='1' y='2' name='SN'/></PickedPoints>", "'SN' has the coordinate 'None'"),
    ("a.pp", "<PickedPoints><point x='1' y='2' z='-inf' name='SN'/></PickedPoints>", "not finite"),
    ("a.mrk.json", json.dumps(markups([{"label": "SN", "position": [1, 2]}])), "does not have three"),
    ("a.mrk.json", json.dumps(markups([SLICER_POINT], coordinateSystem="XYZ")), "coordinate system 'XYZ'"),
    ("a.fcsv", FCSV_COLUMNS + "0,1,2,inf,0,0,0,1,1,1,0,SN,,\n", "not finite"),
    ("a.fcsv", f"# CoordinateSystem = 7\n{FCSV_COLUMNS}0,1,2,3,0,0,0,1,1,1,0,SN,,\n", "system '7'"),
])  # fmt: skip
def test_bad_coordinates_name_landmark_and_file(name, text, words, tmp_path):
    with pytest.raises(LandmarkProblem, match=words) as caught:
        loaded(tmp_path, name, text)
    assert caught.value.where == tmp_path / name
    assert caught.value.remedy


@pytest.mark.parametrize(("name", "text", "words"), [
    ("a.json", "", "the file is empty"),
    ("a.json", " \n ", "only blanks"),
    ("a.json", '{"SN": [1,2', "line 1"),
    ("a.json", "[" * 200_000, "nested too deeply"),
    ("a.json", '{"a":' * 200_000, "nested too deeply"),
    ("a.json", "[1, 2, 3]", "holds no landmarks"),
    ("a.json", '[{"name": "SN"}]', "no 'id'"),
    ("a.mrk.json", '{"markups": 3}', "not a list of markups"),
    ("a.mrk.json", '{"markups": [{"controlPoints": [7]}]}', "control point 1"),
    ("a.csv", b"SN,1,2,3\n\xff\xfe\xfa,1,2,3\n", "not UTF-8"),
    ("a.csv", b"\0\0\0\1\0\0", "not text"),
    ("a.csv", "colour,size\nred,1\n", "not the columns name, x, y, z"),
    ("a.csv", "# nothing\n", "no landmarks"),
    ("a.pp", "<PickedPoints><point x='1'", "breaks off"),
    ("a.pp", "<html></html>", "'html', not MeshLab's"),
    ("a.pp", "<a>" * 5000, "nested too deeply"),
    ("a.pp", '<!DOCTYPE a [<!ENTITY b "ha">]><PickedPoints/>', "DOCTYPE"),
    ("a.pp", '<!DOCTYPE a SYSTEM "http://example.org/a.dtd"><PickedPoints/>', "DOCTYPE"),
    ("a.fcsv", "# columns = id,label\n0,SN\n", "x, y and z are missing"),
])  # fmt: skip
def test_each_kind_of_failure_has_its_words(name, text, words, tmp_path):
    with pytest.raises(FileProblem, match=words) as caught:
        loaded(tmp_path, name, text)
    assert caught.value.where == tmp_path / name
    assert caught.value.remedy


def test_missing_folder_and_too_large(tmp_path):
    with pytest.raises(FileProblem, match="no such file"):
        load_landmarks(tmp_path / "missing.json")
    with pytest.raises(FileProblem, match="a folder"):
        load_landmarks(tmp_path)
    with pytest.raises(FileProblem, match="more than the 16 MB"):
        loaded(tmp_path, "a.json", b" " * (16 * 1024**2 + 1))


@pytest.mark.parametrize("name", ["a.json", "a.csv", "a.pp", "a.mrk.json", "a.fcsv"])
def test_cut_off_or_changed_anywhere(name, tmp_path):
    path = tmp_path / name
    save_landmarks(Landmarks.of(POINTS), path)
    whole = path.read_bytes()
    rng = np.random.default_rng(3)
    cuts = [whole[:cut] for cut in range(1, len(whole), max(1, len(whole) // 200))]
    changed = []
    for _ in range(200):
        data = bytearray(whole)
        data[rng.integers(len(data))] = rng.choice([0, 255, ord(","), ord('"'), ord("<"), rng.integers(256)])
        changed.append(bytes(data))
    for data in cuts + changed:
        path.write_bytes(data)
        try:
            points, where = load_landmarks(path).points, path
        except (FileProblem, LandmarkProblem) as problem:
            points, where = np.empty((0, 3)), problem.where
        assert where == path
        assert np.all(np.isfinite(points))


def test_where_not_to_write(tmp_path):
    landmarks = Landmarks.of(POINTS)
    with pytest.raises(FileProblem, match=r"not written as \.txt"):
        save_landmarks(landmarks, tmp_path / "a.txt")
    with pytest.raises(FileProblem, match="not written as scalisma"):
        save_landmarks(landmarks, tmp_path / "a.json", format="scalisma")
    with pytest.raises(LandmarkProblem, match="axes 'XYZ'"):
        save_landmarks(landmarks, tmp_path / "a.fcsv", space="XYZ")
    with pytest.raises(LandmarkProblem, match="nipple_left is not finite"):
        save_landmarks(Landmarks.of({"nipple_left": [1, 2, float("nan")]}), tmp_path / "a.json")
    with pytest.raises(FileProblem, match="folder for this file does not exist"):
        save_landmarks(landmarks, tmp_path / "missing" / "a.json")
    assert not list(tmp_path.iterdir())


ROWS = [
    [1.5, 2.0, -3.0],
    [4.0, 5.25, 6.0],
    [7.0, 8.0, 9.0],
    [0.5, 1.0, 2.0],
    [3.0, 4.0, 5.0],
    [6.0, 7.0, 8.0],
]


def without_names(kind, rows):
    if kind == "csv":
        return "".join(f"{x},{y},{z}\n" for x, y, z in rows)
    if kind == "pp":
        points = (
            f'<point active="1" name="{k}" x="{x}" y="{y}" z="{z}"/>' for k, (x, y, z) in enumerate(rows)
        )
        return f"<!DOCTYPE PickedPoints><PickedPoints>{''.join(points)}</PickedPoints>"
    head = f"ply\nformat ascii 1.0\nelement vertex {len(rows)}\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz")
    return head + "end_header\n" + "".join(f"{x} {y} {z}\n" for x, y, z in rows)


@pytest.mark.parametrize("count", [4, 6])
@pytest.mark.parametrize("kind", ["csv", "pp", "ply"])
def test_four_or_six_points_without_names_are_those_of_the_rbsm_programs(kind, count, tmp_path):
    text = without_names(kind, ROWS[:count])
    file = loaded(tmp_path, f"a.{kind}", text)
    names = ("sternal_notch", "navel", "nipple_left", "nipple_right", "coracoid_left", "coracoid_right")
    assert file.landmarks.names == file.assumed_order == names[:count]
    assert file.landmarks.points.tolist() == ROWS[:count]
    own = loaded(tmp_path, f"a.{kind}", text, order=NAMES[:count])
    assert (own.landmarks.names, own.assumed_order) == (NAMES[:count], ())


def test_other_numbers_of_points_without_names_are_not_guessed(tmp_path):
    for kind in ("csv", "ply"):
        with pytest.raises(LandmarkProblem, match="without names"):
            loaded(tmp_path, f"a.{kind}", without_names(kind, ROWS[:5]))
    with pytest.raises(FileProblem, match="200 points, not landmarks"):
        loaded(tmp_path, "a.ply", without_names("ply", ROWS[:4] * 50))
    surface = without_names("ply", ROWS[:4]).replace(
        "end_header", "element face 1\nproperty list uchar int vertex_indices\nend_header"
    )
    with pytest.raises(FileProblem, match="a surface, not landmarks"):
        loaded(tmp_path, "a.ply", surface + "3 0 1 2\n")
