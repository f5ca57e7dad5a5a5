"""Edits as the page makes them: one judgement of plausibility, the other breast held, refusals, and files."""

from __future__ import annotations

import csv
import io
import json
import re
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import breastmorph as bm
from breastmorph.batch.product import FailedScan
from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.clinical.editing import Editor
from breastmorph.clinical.patient import mean_patient
from breastmorph.explorer.answers import error_record, spoken
from breastmorph.explorer.patients import failure
from breastmorph.explorer.settings import Settings
from breastmorph.foundation.errors import MeshProblem, error_context
from breastmorph.foundation.terms import MEASURES
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.files import save_model
from breastmorph.scan.check import ScanFiles, require_size
from explorer_client import Visitor, running


@pytest.fixture(scope="module")
def visitor(tmp_path_factory, breast_model):
    path = tmp_path_factory.mktemp("model") / "model.h5"
    save_model(breast_model, path)
    with running(Settings(model=path)) as explorer:
        yield Visitor.of(explorer)


@pytest.fixture(scope="module")
def usual(breast_model) -> Editor:
    """Knows what is usual of every measure."""
    model = breast_model
    return Editor(model, mean_patient(model))


def edit(visitor, name, value, unit, **more):
    wish = {"name": name, "value": value, "unit": unit}
    return visitor.post("/api/edit", {"base": {"kind": "mean"}, "wishes": [wish], "hold": ["thorax"], **more})


def at(usual, name, deviations) -> float:
    _, mean, sd = usual.usual(name)
    return mean + deviations * sd


# --- plausibility -----------------------------------------------------------------------------------------------------


def shown_level(visitor) -> str:
    """Of the shown edit, as strip and plausibility say."""
    return visitor.post("/api/measures", {"shape": {"kind": "edit"}}).json["plausibility"]["level"]


@pytest.mark.parametrize("deviations", [0.5, 2.0, 3.4, 4.0, 4.8, 5.6])
def test_plausibility_and_notes_agree(visitor, usual, deviations):
    answer = edit(visitor, "volume-left", at(usual, "volume-left", deviations), "cc")
    if answer.status == 422:
        assert answer.json["code"] == "unattainable"
        return
    noted = [one for one in answer.json["warnings"] if "standard deviations" in one or "folded" in one]
    level = shown_level(visitor)
    assert not (noted and level == "usual"), answer.json
    if deviations > 3.0:
        assert noted
    if deviations > 4.5:
        assert level == "implausible"


def test_a_small_change_is_usual(visitor, usual):
    record = edit(visitor, "volume-left", at(usual, "volume-left", 0.3), "cc").json
    assert shown_level(visitor) == "usual"
    assert record["warnings"] == []


@pytest.mark.parametrize(("name", "deviations"), [("volume-left", 27.0), ("SN-NL", 7.0), ("SN-NR", -6.5)])
def test_what_is_far_outside_is_refused_in_the_pages_words(visitor, usual, name, deviations):
    value, unit = at(usual, name, deviations), "cc" if name.startswith("volume") else "mm"
    answer = edit(visitor, name, max(value, 1.0), unit)
    assert answer.status == 422
    assert MEASURES[name] in answer.json["cause"]
    assert name not in answer.json["cause"] + answer.json["remedy"]
    assert "mm" not in answer.json["remedy"]


# --- holding ----------------------------------------------------------------------------------------------------------


def change(record, name) -> dict:
    return next(one for one in record["changes"] if one["name"] == name)


def test_the_other_breast_is_held_by_itself_and_that_is_said(visitor, usual):
    wanted = at(usual, "volume-left", 0.5)
    free = edit(visitor, "volume-left", wanted, "cc").json
    moved_free = visitor.case.edited.edit.movements["right"]
    record = edit(visitor, "volume-left", wanted, "cc", hold_other=True).json
    moved = visitor.case.edited.edit.movements["right"]
    assert change(record, "volume-left")["after"] == pytest.approx(wanted, abs=0.05)
    assert record["held"] == ["thorax", "right"]
    assert record["held_by_itself"] == "right"
    assert moved == 0.0
    right = change(record, "volume-right")
    assert right["after"] == pytest.approx(right["before"], abs=0.01)
    assert free["held"] == ["thorax"]
    assert moved_free > moved


def test_the_page_the_file_and_python_give_the_same_edit(visitor, usual, tmp_path, breast_model):
    wanted = at(usual, "volume-left", 0.5)
    edit(visitor, "volume-left", wanted, "cc", hold=["thorax", "right"])
    by_python = bm.edit(breast_model, None, {"volume-left": wanted}, hold=["thorax", "right"])
    asked = {"shape": {"kind": "edit"}, "format": "ply"}
    (tmp_path / "edit.ply").write_bytes(visitor.post("/api/download/mesh", asked).content)
    file = load_mesh(tmp_path / "edit.ply").vertices
    stays = ~usual._regions["left"]
    for shape in (visitor.case.edited.edit.shape, by_python.shape, file):
        assert np.abs(shape - by_python.shape).max() < 1e-3
        assert np.abs(shape - breast_model.mean)[stays].max() < 1e-3


def test_a_wish_about_both_breasts_holds_neither(visitor, usual):
    record = edit(visitor, "NL-NR", at(usual, "NL-NR", 0.3), "mm", hold_other=True).json
    assert record["held"] == ["thorax"]
    assert record["held_by_itself"] == record["not_held"] == ""


def test_where_holding_makes_it_impossible_the_remedy_is_to_release(visitor, usual):
    # A breast cannot be larger and stay as it is.
    answer = edit(visitor, "volume-left", at(usual, "volume-left", 2.5), "cc", hold=["thorax", "left"])
    assert answer.status == 422
    assert "Release the left breast" in answer.json["remedy"]


# --- words ------------------------------------------------------------------------------------------------------------


def test_an_edits_refusal_uses_the_pages_words(visitor):
    answer = edit(visitor, "SN-NL", 30.0, "mm", hold=[])
    assert answer.json["cause"].startswith("Sternal notch to left nipple 3.0 cm cannot be attained")
    assert re.search(
        r"Usual at this size: Sternal notch to left nipple \d+\.\d ± \d\.\d cm", answer.json["remedy"]
    )


def test_why_a_registration_failed_uses_the_pages_words_from_its_record(tmp_path):
    files = ScanFiles("a", tmp_path / "a.ply")
    with pytest.raises(MeshProblem) as refused, error_context(files.mesh, MeshProblem):
        require_size(TriangleMesh(np.eye(3), np.array([[0, 1, 2]] * 2)), max_faces=1)
    failed = FailedScan.of(files, refused.value)
    assert failed.message.startswith("a.ply: too large: 2 faces")
    assert "max_faces" in failed.message
    kept = RegisteredFolder(tmp_path / "out")
    kept.store(failed)
    again = kept.outcome("a")
    assert again.code == "too-large"
    assert spoken(error_record(failure(again)), "en") == {
        "cause": "too large: 2 faces (at most 1)",
        "remedy": "Decimate it first (300,000 faces are plenty)",
        "where": "a",
        "code": "too-large",
    }
    older = replace(again, finding={})  # a folder of an earlier version has the words alone
    told = spoken(error_record(failure(older)), "en")
    assert told["cause"] == failed.message
    assert told["code"] == "too-large"


@pytest.mark.parametrize(
    "where", [Path("/home/somebody/skin.mtl"), "/home/somebody/skin.mtl", "C:\\clinic\\skin.mtl"]
)
def test_why_a_registration_failed_names_files_without_their_folders(tmp_path, where):
    files = ScanFiles("a", tmp_path / "a.obj")
    problem = MeshProblem("left/right: both are there", "Keep one", where)
    assert FailedScan.of(files, problem).message == "skin.mtl: left/right: both are there. Keep one"
    assert (
        FailedScan.of(files, MeshProblem("left/right: both are there")).message
        == "left/right: both are there"
    )


# --- files ------------------------------------------------------------------------------------------------------------


def test_empty_cells_of_the_table_are_empty(visitor):
    text = visitor.post("/api/download/measures", {"shapes": [{"kind": "mean"}]}).content.decode()
    cells = next(csv.DictReader(io.StringIO(text))).values()
    assert "" in cells
    assert "'" not in cells


def glb_extent(data: bytes) -> np.ndarray:
    length = struct.unpack("<I", data[12:16])[0]
    header = json.loads(data[20 : 20 + length])
    corner = header["accessors"][header["meshes"][0]["primitives"][0]["attributes"]["POSITION"]]
    return np.array(corner["max"]) - np.array(corner["min"])


def test_a_glb_is_in_metres(visitor, breast_model):
    data = visitor.post("/api/download/mesh", {"shape": {"kind": "mean"}, "format": "glb"}).content
    wanted = np.ptp(breast_model.mean, axis=0) / 1000.0
    np.testing.assert_allclose(glb_extent(data), wanted, rtol=1e-3)
