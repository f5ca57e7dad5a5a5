"""3D Slicer's own readers and writers on our files; run where slicer-core is installed. What it reads: through VTK."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from breastmorph.mesh.files import load_mesh
from breastmorph.scan.landmark_files import read_landmarks

HALF_TURN = np.array([-1.0, -1.0, 1.0])  # between LPS and RAS
SPACES = ("LPS", "RAS")
POINT_FILES = {"mrk.json": "vtkMRMLMarkupsJsonStorageNode", "fcsv": "vtkMRMLMarkupsFiducialStorageNode"}


def in_slicer(values, space):
    """Slicer works in RAS, and takes a mesh that declares nothing for LPS."""
    return np.asarray(values) * (1.0 if space == "RAS" else HALF_TURN)


@pytest.fixture(scope="module")
def slicer():
    """The classes that 3D Slicer itself uses, without its windows."""
    nodes = pytest.importorskip("slicer")
    if not hasattr(nodes, "vtkMRMLScene"):
        pytest.skip("this is another package of the same name")
    return nodes


@pytest.fixture
def stored(slicer):
    scene = slicer.vtkMRMLScene()

    def do(action, kind, path, node, space=""):
        store = getattr(slicer, kind)()
        scene.AddNode(store)
        store.SetFileName(str(path))
        if space:
            store.SetCoordinateSystem(getattr(slicer.vtkMRMLStorageNode, f"CoordinateSystem{space}"))
        node = scene.AddNewNodeByClass(node) if isinstance(node, str) else node
        assert getattr(store, action)(node) == 1
        return node

    return do


@pytest.mark.parametrize("suffix", POINT_FILES)
@pytest.mark.parametrize("space", SPACES)
def test_landmarks_there_and_back(space, suffix, stored, kit, points, tmp_path, assert_near):
    path = kit / f"points{space}.{suffix}"
    node = stored("ReadData", POINT_FILES[suffix], path, "vtkMRMLMarkupsFiducialNode")
    numbers = range(node.GetNumberOfControlPoints())
    assert [node.GetNthControlPointLabel(k) for k in numbers] == list(points)
    places = [list(node.GetNthControlPointPosition(k)) for k in numbers]
    assert_near(places, in_slicer(list(points.values()), space), atol=1e-9)
    node.SetNthControlPointLabel(node.AddControlPoint([0.0, 0.0, 0.0]), "navel")
    node.UnsetNthControlPointPosition(len(points))  # one that nobody has placed
    for again, kind in POINT_FILES.items():
        for written in SPACES:
            stored("WriteData", kind, tmp_path / f"a.{again}", node, written)
            back = read_landmarks(tmp_path / f"a.{again}")
            assert (back.space, back.unknown, back.landmarks.names) == (written, (), tuple(points))
            turn = 1.0 if written == space else HALF_TURN
            assert_near(back.landmarks.points, np.array(list(points.values())) * turn, atol=1e-9)


@pytest.mark.parametrize("suffix", ["ply", "obj", "stl", "vtp"])
@pytest.mark.parametrize("space", ["", *SPACES])
def test_meshes_there_and_back(space, suffix, stored, kit, mesh, tmp_path, assert_near):
    from vtkmodules.util.numpy_support import vtk_to_numpy

    path = kit / f"mesh{space}.{suffix}"
    node = stored("ReadData", "vtkMRMLModelStorageNode", path, "vtkMRMLModelNode")
    surface = node.GetPolyData()
    assert_near(vtk_to_numpy(surface.GetPoints().GetData()), in_slicer(mesh.vertices, space), suffix)
    has_colors = suffix in ("ply", "vtp")  # VTK's reader of OBJ skips colours
    if has_colors:
        assert np.array_equal(vtk_to_numpy(surface.GetPointData().GetArray("RGBA")), mesh.colors)
    for again in ("ply", "vtp", "vtk"):
        for written in SPACES:
            stored("WriteData", "vtkMRMLModelStorageNode", tmp_path / f"a.{again}", node, written)
            back = load_mesh(tmp_path / f"a.{again}")
            assert back.space == written
            turn = 1.0 if written == (space or "LPS") else HALF_TURN
            assert_near(back.vertices, mesh.vertices * turn, suffix)
            assert not has_colors or np.array_equal(back.colors, mesh.colors)


@pytest.mark.slow
@pytest.mark.parametrize("space", SPACES)
def test_the_space_stands_where_slicer_looks(space, kit, mesh, assert_near):
    pytest.importorskip("vtk")
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOGeometry import vtkOBJReader, vtkSTLReader
    from vtkmodules.vtkIOPLY import vtkPLYReader
    from vtkmodules.vtkIOXML import vtkXMLPolyDataReader

    def read(reader, suffix):
        reader.SetFileName(str(kit / f"mesh{space}.{suffix}"))
        reader.Update()
        assert_near(vtk_to_numpy(reader.GetOutput().GetPoints().GetData()), mesh.vertices, suffix)
        return reader

    comments = read(vtkPLYReader(), "ply").GetComments()
    assert f"SPACE={space}" in [comments.GetValue(k) for k in range(comments.GetNumberOfValues())]
    assert f"SPACE={space}" in read(vtkSTLReader(), "stl").GetHeader()
    assert f"SPACE={space}" in read(vtkOBJReader(), "obj").GetComment()
    fields = read(vtkXMLPolyDataReader(), "vtp").GetOutput().GetFieldData()
    assert fields.GetAbstractArray("SPACE").GetValue(0) == space


@pytest.mark.parametrize("space", SPACES)
def test_markups_are_what_the_published_schema_asks_for(space, kit, points):
    """Version 1.0.3; from 5.0 on 3D Slicer refuses a file whose schema has another main version."""
    content = json.loads((kit / f"points{space}.mrk.json").read_text())
    assert re.search(r"markups-schema-v1\.[0-9]+\.[0-9]+\.json#*$", content["@schema"].lower())
    (markup,) = content["markups"]
    assert markup["type"] == "Fiducial"
    assert markup["coordinateSystem"] == space
    assert markup["coordinateUnits"] == "mm"
    assert isinstance(markup["labelFormat"], str)
    assert [point["label"] for point in markup["controlPoints"]] == list(points)
    for point in markup["controlPoints"]:
        assert len(point["position"]) == 3
        assert all(type(value) is float for value in point["position"])
        assert isinstance(point["id"], str)
        assert all(type(point[flag]) is bool for flag in ("selected", "locked", "visibility"))
        assert point["positionStatus"] in ("undefined", "preview", "defined")
        known = {"id", "label", "position", "selected", "locked", "visibility", "positionStatus"}
        assert set(point) <= known | {"description", "associatedNodeID", "orientation"}


def test_a_point_that_slicer_has_not_placed(tmp_path):
    """As version 5.13 writes it: its position is an empty text."""
    placed = {"id": "1", "label": "xiphoid", "position": [0.5, -14.0, 13.8], "positionStatus": "defined"}
    missing = {"id": "2", "label": "navel", "position": "", "positionStatus": "undefined"}
    markup = {"type": "Fiducial", "coordinateSystem": "RAS", "controlPoints": [placed, missing]}
    schema = "https://example.org/markups-schema-v1.0.4.json#"
    (tmp_path / "a.mrk.json").write_text(json.dumps({"@schema": schema, "markups": [markup]}))
    file = read_landmarks(tmp_path / "a.mrk.json")
    assert (file.landmarks.names, file.space) == (("xiphoid",), "RAS")
