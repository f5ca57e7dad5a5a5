"""The model over HTTP: geometry, measures, edits that attain their wishes, and its landmarks."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from breastmorph.clinical.examiner import examiner_of
from breastmorph.explorer.settings import Settings
from breastmorph.model.demo_model import demo_model, from_bytes, to_bytes
from breastmorph.model.files import load_model, save_model
from breastmorph.model.shape_model import ShapeModel
from breastmorph.report.examination_sheet import caution
from breastmorph.template import default_template
from explorer_client import Visitor, running


@pytest.fixture(scope="module")
def model(breast_model) -> ShapeModel:
    return breast_model


@pytest.fixture(scope="module")
def explorer(tmp_path_factory, model):
    path = tmp_path_factory.mktemp("model") / "model.h5"
    save_model(model, path)
    with running(Settings(model=path)) as found:
        yield found


@pytest.fixture
def visitor(explorer):
    found = Visitor.of(explorer)
    yield found
    found.leave()


def scores(*values: float) -> dict:
    return {"kind": "model", "scores": list(values)}


def test_the_page_can_morph_the_mean_by_itself(visitor, model):
    arrays = visitor.get("/api/model/geometry").arrays
    own = arrays["mean"] + 1.5 * arrays["modes"][0] - 0.5 * arrays["modes"][2]
    served = visitor.post("/api/shape", {"shape": scores(1.5, 0.0, -0.5)}).arrays["vertices"]
    assert np.abs(own - served).max() < 1e-3
    assert np.array_equal(arrays["faces"], model.faces)


def test_maps_are_per_vertex(visitor, model):
    maps = visitor.get("/api/model/maps").arrays
    assert np.allclose(maps["sd"], model.vertex_deviations(), rtol=1e-4)
    nipples = [model.landmark_ids[f"nipple_{side}"] for side in ("left", "right")]
    assert maps["mask"][nipples].min() > 0.3


def test_measures_are_those_of_the_shape(visitor, model):
    record = visitor.post("/api/measures", {"shape": scores(2.0)}).json
    found = {(one["name"], one["kind"]): one["value"] for one in record["measures"]}
    shape = model.instance([2.0 * model.deviations[0]])
    examiner = examiner_of(model)
    measured = examiner.measured(shape, examiner.landmarks(shape), kinds=("straight",))
    wanted = {(one.name, one.kind): one.value for one in measured}
    assert wanted["NL-IMFL", "straight"] > 20.0
    for key, value in wanted.items():
        assert found[key] == pytest.approx(value, abs=1e-3, nan_ok=True) or found[key] is None
    assert found["volume-left", "volume"] > 50.0
    assert ("SN-NL", "tape") not in found
    taped = visitor.post("/api/measures", {"shape": scores(2.0), "tape": True}).json["measures"]
    tape = {one["name"]: one["value"] for one in taped if one["kind"] == "tape"}
    assert tape["SN-NL"] > found["SN-NL", "straight"]


def test_a_far_shape_is_called_implausible(visitor):
    levels = [
        visitor.post("/api/measures", {"shape": scores(*values)}).json["plausibility"]["level"]
        for values in ((0.0,) * 6, (3.4, 0.0, 0.0, 0.0, 0.0, 0.0), (5.0,) * 6)
    ]
    assert levels == ["usual", "unusual", "implausible"]


def features(visitor, base="mean") -> dict:
    for _ in range(2400):
        answer = visitor.get(f"/api/edit?base={base}")
        if answer.status != 503:
            break
        time.sleep(0.05)
    return {one["name"]: one for one in answer.json["features"]}


def test_an_edit_gives_the_wish_and_holds_the_thorax(visitor, model):
    now = features(visitor)
    wishes = [
        {"name": "SN-NL", "value": (now["SN-NL"]["value"] + 6.0) / 10.0, "unit": "cm"},
        {"name": "volume-right", "value": 1.1 * now["volume-right"]["value"], "unit": "cc"},
    ]
    record = visitor.post("/api/edit", {"base": {"kind": "mean"}, "wishes": wishes, "hold": ["thorax"]}).json
    assert [one for one in record["changes"] if one["requested"] is not None]
    assert visitor.case.edited.edit.movements["thorax"] < 1.0
    shape = visitor.post("/api/shape", {"shape": {"kind": "edit"}}).arrays["vertices"].astype(float)
    notch, nipple = (shape[model.landmark_ids[name]] for name in ("sternal_notch", "nipple_left"))
    assert np.linalg.norm(notch - nipple) == pytest.approx(now["SN-NL"]["value"] + 6.0, abs=0.05)
    again = visitor.post("/api/measures", {"shape": {"kind": "edit"}}).json["measures"]
    volume = next(one["value"] for one in again if one["name"] == "volume-right")
    assert volume == pytest.approx(wishes[1]["value"], abs=0.05)


def test_an_edit_can_start_from_the_sliders(visitor):
    base = scores(0.5, -0.5)
    before = {
        one["name"]: one["value"]
        for one in visitor.post("/api/measures", {"shape": base}).json["measures"]
        if one["kind"] == "straight"
    }
    wish = {"name": "NL-NR", "value": before["NL-NR"] + 4.0, "unit": "mm"}
    record = visitor.post("/api/edit", {"base": base, "wishes": [wish]}).json
    change = next(one for one in record["changes"] if one["name"].startswith("NL-NR"))
    assert change["before"] == pytest.approx(before["NL-NR"], abs=0.01)
    assert change["after"] == pytest.approx(wish["value"], abs=0.05)


def test_what_cannot_be_attained_is_refused_with_a_remedy(visitor):
    wish = {"name": "SN-NL", "value": 3.0, "unit": "cm"}
    answer = visitor.post("/api/edit", {"base": {"kind": "mean"}, "wishes": [wish], "hold": ["thorax"]})
    assert answer.status == 422
    assert "Sternal notch to left nipple 3.0 cm" in answer.json["cause"]  # the page's words and units
    assert "Usual" in answer.json["remedy"]
    assert visitor.get("/api/model").status == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/shape", {"shape": {"kind": "elsewhere"}}),
        ("/api/shape", {"shape": "../../etc/passwd"}),
        ("/api/shape", {"shape": {"kind": "model", "scores": ["1"]}}),
        ("/api/shape", {"shape": {"kind": "model", "scores": [0.0] * 5000}}),
        ("/api/measures", {}),
        ("/api/edit", {"base": {"kind": "mean"}, "wishes": []}),
        ("/api/edit", {"base": {"kind": "mean"}, "wishes": [{"name": "SN-NL", "value": "far"}]}),
        ("/api/predict", {"side": "left"}),
        ("/api/download/mesh", {"shape": {"kind": "mean"}, "format": "../x"}),
    ],
)
def test_nonsense_is_refused_in_words(visitor, path, body):
    answer = visitor.post(path, body)
    assert 400 <= answer.status < 500
    assert set(answer.json) == {"cause", "remedy", "where", "code"}


@pytest.mark.parametrize("body", [b"{", b"[1]", b'{"scores": NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(visitor, body):
    assert visitor.ask("POST", "/api/measures", body).status == 400


def test_a_foreign_models_landmarks_are_picked_once(tmp_path, model):
    path = tmp_path / "foreign.h5"
    few = {name: model.landmark_ids[name] for name in ("sternal_notch", "nipple_left", "nipple_right")}
    save_model(replace(model, landmark_ids=few), path)
    with running(Settings(model=path)) as explorer:
        visitor, neighbour = Visitor.of(explorer), Visitor.of(explorer)
        assert "xiphoid" in visitor.get("/api/model").json["missing_landmarks"]
        target = model.landmark_ids["xiphoid"]
        ray = {"origin": (model.mean[target] + [0.0, 0.0, 200.0]).tolist(), "direction": [0.0, 0.0, -1.0]}
        state = visitor.post("/api/scans/mean/pick", {"landmark": "xiphoid", "ray": ray}).json
        assert "xiphoid" in state["landmarks"]
        assert "xiphoid" not in visitor.post("/api/model/landmarks").json["missing_landmarks"]
        written = tmp_path / "complete.h5"
        written.write_bytes(visitor.get("/api/model/file").content)
        found = load_model(written).landmark_ids["xiphoid"]
        assert np.linalg.norm(model.mean[found] - model.mean[target]) < 10.0
        assert "xiphoid" in neighbour.get("/api/model").json["missing_landmarks"]


def test_a_model_that_cannot_be_read_is_told_and_the_page_stays(tmp_path):
    path = tmp_path / "broken.h5"
    path.write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    with running(Settings(model=path)) as explorer:
        visitor = Visitor.of(explorer)
        record = visitor.get("/api/model").json
        assert record["status"] == "failed"
        assert record["error"]["cause"]
        assert visitor.get("/api/model/geometry").status == 422
        assert str(tmp_path) not in str(record)


@pytest.fixture(scope="module")
def demo():
    return demo_model()


def test_the_demo_model_says_that_it_is_synthetic_also_as_a_file(demo, tmp_path, visitor):
    assert demo.is_synthetic
    save_model(demo.truncate(2), tmp_path / "demo.h5")
    assert load_model(tmp_path / "demo.h5").is_synthetic
    assert not visitor.get("/api/model").json["synthetic"]
    assert "not for planning" in caution(demo)


def test_the_demo_model_is_a_whole_model_on_the_default_template(demo):
    found = demo
    assert np.array_equal(found.faces, default_template().mesh.faces)
    basis = found.basis.astype(float)
    assert np.abs(basis.T @ basis - np.eye(found.n_components)).max() < 1e-4
    sternum = found.mean[found.landmark_ids["sternal_notch"]] - found.mean[found.landmark_ids["xiphoid"]]
    assert 120.0 < np.linalg.norm(sternum) < 260.0
    again = from_bytes(to_bytes(found.truncate(4)))
    off = again.instance(2.0 * found.deviations[:4]) - found.instance(2.0 * found.deviations[:4])
    assert np.abs(off).max() < 0.15
