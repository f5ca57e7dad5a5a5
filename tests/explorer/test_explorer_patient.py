"""A patient from the upload to the download: register, edit, predict, take home."""

from __future__ import annotations

import csv
import io
import json
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from click.testing import CliRunner

from breastmorph.cli import main
from breastmorph.explorer.jobs import Cancelled, Job, WorkerCalls
from breastmorph.explorer.open_scans import scan_files
from breastmorph.foundation.workers import Limits
from breastmorph.mask import breast_regions
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.skin import SEEN, skin_of, vertex_rgb
from breastmorph.scan.landmark_files import load_landmarks
from explored_patient import model, uploaded
from explorer_client import Visitor

pytestmark = pytest.mark.slow


def test_a_registered_scan_lies_on_the_scan(patient, folder):
    visitor, scan = patient
    record = visitor.get("/api/state").json["patient"]
    assert record["how"] == "registered"
    assert record["residual"]["mean_mm"] < 1.5
    answer = visitor.post("/api/download/mesh", {"shape": {"kind": "patient"}, "format": "ply"})
    path = folder / "patient.ply"
    path.write_bytes(answer.content)
    off = Surface(load_mesh(folder / "scan.ply")).closest(load_mesh(path).vertices).distances
    assert np.median(off) < 0.1  # cm, in the scan's own frame and unit
    shown = visitor.get(f"/api/scans/{scan}/result").arrays
    assert np.nanmean(np.abs(shown["residual"])) == pytest.approx(record["residual"]["mean_mm"], rel=1e-3)


def test_a_predicted_breast_comes_home_as_stl(patient, folder):
    visitor, _ = patient
    record = visitor.get("/api/state").json["prediction"]
    assert record["side"] == "right"
    assert record["breast_was_there"]
    assert 0.1 < record["sd_mm"]["mean"] < 30.0
    arrays = visitor.post("/api/shape", {"shape": {"kind": "prediction"}}).arrays
    own = visitor.post("/api/shape", {"shape": {"kind": "patient"}}).arrays
    missing = arrays["missing"].astype(bool)
    assert np.abs(arrays["vertices"] - own["vertices"])[~missing].max() < 1e-3
    assert (arrays["sd"][missing] > 0.0).all()
    assert (arrays["vertices"][missing][:, 0] < arrays["vertices"][~missing][:, 0].max()).all()
    path = folder / "prediction.stl"
    answer = visitor.post("/api/download/mesh", {"shape": {"kind": "prediction"}, "format": "stl"})
    assert 'filename="scan-prediction.stl"' in answer.headers["content-disposition"]
    path.write_bytes(answer.content)
    mesh = load_mesh(path)
    assert mesh.n_faces == len(model().faces)
    assert np.ptp(mesh.vertices, axis=0).max() < 60.0  # cm again


def test_her_own_skin_stays_on_all_that_is_made_of_her(patient, tmp_path):
    visitor, scan = patient
    plain = visitor.case.patient
    assert "colors" not in visitor.post("/api/shape", {"shape": {"kind": "patient"}}).arrays
    assert visitor.get("/api/state").json["patient"]["skin_seen"] is None
    x = plain.patient.shape[:, 0]
    skin = skin_of(np.column_stack([150 + 0.2 * x, 120 - 0.1 * x, 0 * x + 90]), np.arange(len(x)) % 7 > 0)
    before = visitor.put(patient=replace(plain, patient=replace(plain.patient, skin=skin)))
    assert visitor.get("/api/state").json["patient"]["skin_seen"] == pytest.approx(6 / 7, abs=0.01)
    for found in (
        visitor.post("/api/shape", {"shape": {"kind": "patient"}}),
        visitor.get(f"/api/scans/{scan}/result"),
    ):
        assert np.array_equal(found.arrays["colors"], skin[:, :3])
        assert np.array_equal(found.arrays["made_up"], skin[:, 3] != SEEN)
    assert visitor.job("/api/predict", {"side": "right"})["state"] == "done"
    predicted = visitor.post("/api/shape", {"shape": {"kind": "prediction"}}).arrays
    missing = predicted["missing"].astype(bool)
    assert np.array_equal(predicted["colors"][~missing], skin[~missing, :3])
    assert predicted["made_up"][missing].all()
    for kind in ("ply", "obj", "glb"):
        asked = {"shape": {"kind": "prediction"}, "format": kind}
        (tmp_path / f"a.{kind}").write_bytes(visitor.post("/api/download/mesh", asked).content)
        home = load_mesh(tmp_path / f"a.{kind}")
        assert np.array_equal(home.colors[:, :3], predicted["colors"])
        (tmp_path / f"b.{kind}").write_bytes(
            visitor.post("/api/download/mesh", asked | {"plain": True}).content
        )
        assert load_mesh(tmp_path / f"b.{kind}").colors is None
    # The same as a picture, for programs that show no colours of vertices.
    done = visitor.job("/api/download/textured", {"shape": {"kind": "prediction"}})
    assert done["state"] == "done", done
    with zipfile.ZipFile(io.BytesIO(visitor.get(f"/api/files/{done['result']['file']}").content)) as archive:
        assert sorted(Path(name).suffix for name in archive.namelist()) == [".mtl", ".obj", ".png"]
        archive.extractall(tmp_path / "textured")
    home = load_mesh(next((tmp_path / "textured").glob("*.obj")))
    assert np.array_equal(home.faces, visitor.session.view.model.faces)
    assert np.abs(vertex_rgb(home).astype(int) - predicted["colors"]).max() <= 1
    assert visitor.job("/api/download/textured", {"shape": {"kind": "mean"}})["error"]["code"] == "no-skin"
    visitor.session.workspace = before


def test_a_plan_comes_home_as_a_solid_of_the_volume_that_is_shown(patient, tmp_path):
    import trimesh

    visitor, _ = patient
    assert visitor.post("/api/plan", {"target": "somebody else"}).status == 400
    now = {one["name"]: one for one in visitor.get("/api/edit?base=patient").json["features"]}
    wish = {"name": "NL-NR", "value": (now["NL-NR"]["value"] + 5.0) / 10.0, "unit": "cm"}
    visitor.post("/api/edit", {"base": {"kind": "patient"}, "wishes": [wish], "hold": ["thorax"]})
    for target in ("predicted", "mirrored", "edited"):
        answer = visitor.post("/api/plan", {"target": target})
        assert answer.status == 200, answer.content
        plan = answer.json
        assert "operation" in plan["note"]
        own = visitor.post("/api/plan/map", {"target": target}).arrays["thickness"]
        assert np.abs(own).max() == pytest.approx(
            max(abs(one["thickest_mm"]) for one in plan["sides"]), abs=0.01
        )
        for side in plan["sides"]:
            for part in ("added", "removed"):
                asked = {"target": target, "side": side["side"], "part": part}
                answer = visitor.post("/api/download/plan", asked)
                if side[f"{part}_cc"] == 0.0:
                    assert answer.status == 422
                    continue
                (tmp_path / "a.stl").write_bytes(answer.content)
                solid = trimesh.load(tmp_path / "a.stl")
                assert solid.is_watertight
                assert solid.volume / 1000.0 == pytest.approx(side[f"{part}_cc"], abs=0.5, rel=1e-3)
    assert (
        visitor.post("/api/download/plan", {"target": "predicted", "side": "left", "part": "added"}).status
        == 422
    )


@pytest.mark.parametrize(
    "about", [{"shape": {"kind": "patient"}}, {"target": "predicted"}, {"target": "mirrored"}]
)
def test_a_page_to_take_home(patient, about):
    visitor, _ = patient
    done = visitor.job("/api/download/handout", {**about, "language": "de", "identifier": "P-0042"})
    assert done["state"] == "done", done
    assert done["result"]["name"] == "scan-handout.pdf"
    pdf = visitor.get(f"/api/files/{done['result']['file']}").content
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf
    assert visitor.post("/api/download/handout", {**about, "language": "xx"}).status == 400


def test_cuts_lie_on_the_shapes_where_the_page_shows_them(patient):
    visitor, _ = patient
    kinds = ("patient", "prediction", "mean")
    asked = {"shapes": [{"kind": kind} for kind in kinds], "side": "right"}
    cuts = visitor.post("/api/sections", asked).json["sections"]
    assert [one["kind"] for one in cuts] == ["level", "upright"]
    for one in cuts:
        for kind, outline in zip(kinds, one["outlines"], strict=True):
            shown = visitor.post("/api/shape", {"shape": {"kind": kind}}).arrays["vertices"]
            surface = Surface(model().mesh(shown.astype(float)))
            assert surface.distances(np.array(outline["shown"])).max() < 0.01
            assert outline["area_cm2"] > 10.0
    assert visitor.post("/api/sections", {"shapes": [], "side": "right"}).status == 400


def test_alternatives_are_what_the_sliders_show(patient):
    visitor, _ = patient
    arrays = visitor.get("/api/prediction/alternatives").arrays
    likeliest = visitor.post("/api/shape", {"shape": {"kind": "prediction"}}).arrays["vertices"]
    other = visitor.post("/api/shape", {"shape": {"kind": "alternative", "scores": [2.0, -1.0]}}).arrays[
        "vertices"
    ]
    own = likeliest.copy()
    own[arrays["ids"]] += 2.0 * arrays["modes"][0] - arrays["modes"][1]
    assert np.abs(own - other).max() < 1e-3
    assert np.abs(likeliest - other).max() > 0.5


def test_a_painted_region_is_predicted(patient):
    visitor, _ = patient
    painted = breast_regions(model().mean_mesh, model().landmarks)["left"]
    done = visitor.job("/api/predict", {"vertices": np.flatnonzero(painted).tolist()})
    assert done["result"]["side"] == "left"
    assert done["result"]["painted"]
    refused = visitor.job("/api/predict", {"vertices": [10**6]})
    assert refused["state"] == "failed"
    assert refused["error"]["cause"]
    assert visitor.job("/api/predict", {"side": "right"})["state"] == "done"


def test_what_is_known_of_the_lost_breast_moves_the_prediction(patient, folder):
    visitor, _ = patient

    def volume(body: dict) -> tuple[dict, dict]:
        done = visitor.job("/api/predict", {"side": "right", **body})
        assert done["state"] == "done", done
        return next(one for one in done["result"]["measures"] if one["name"] == "volume-right"), done[
            "result"
        ]

    plain, before = volume({})
    wanted = plain["predicted"] + 2.0 * plain["sd"]
    told, after = volume({"known": [{"name": "volume-right", "value": wanted, "unit": "cc"}]})
    assert abs(told["predicted"] - wanted) < 0.2 * abs(plain["predicted"] - wanted)
    assert told["sd"] < 0.5 * plain["sd"]
    assert after["given"] == [f"volume-right {wanted:.0f} cc"]
    # What it would take grows with the breast, and has a spread of its own.
    fill = [
        next(one for one in result["measures"] if one["name"] == "difference") for result in (before, after)
    ]
    assert fill[1]["predicted"] > fill[0]["predicted"] + plain["sd"]
    assert 0 < fill[1]["sd"] < fill[0]["sd"]
    refused = visitor.job(
        "/api/predict", {"side": "right", "known": [{"name": "volume-left", "value": 300, "unit": "cc"}]}
    )
    assert refused["state"] == "failed"
    assert "volume-left" in refused["error"]["cause"]
    # Her own scan, sent again, as an earlier one: her breast comes back.
    answer = visitor.ask("POST", "/api/scans?beside=1&name=earlier.ply", (folder / "scan.ply").read_bytes())
    scan = answer.json["scan"]
    early = visitor.job("/api/predict", {"side": "right", "earlier": scan})
    assert "landmarks" in early["error"]["cause"]
    visitor.ask("POST", f"/api/scans/{scan}/landmarks?name=scan.json", (folder / "scan.json").read_bytes())
    _, result = volume({"earlier": scan})
    assert result["given"] == ["an earlier scan"]
    shapes = [
        visitor.post("/api/shape", {"shape": {"kind": kind}}).arrays["vertices"]
        for kind in ("prediction", "patient")
    ]
    assert np.linalg.norm(shapes[0] - shapes[1], axis=1).max() < 1.0
    visitor.ask("DELETE", f"/api/scans/{scan}")
    assert visitor.job("/api/predict", {"side": "right"})["state"] == "done"


def test_the_patient_is_edited_by_her_measures(patient):
    visitor, _ = patient
    now = {one["name"]: one for one in visitor.get("/api/edit?base=patient").json["features"]}
    wish = {"name": "NL-NR", "value": (now["NL-NR"]["value"] + 5.0) / 10.0, "unit": "cm"}
    answer = visitor.post("/api/edit", {"base": {"kind": "patient"}, "wishes": [wish], "hold": ["thorax"]})
    assert answer.status == 200, answer.content
    measured = visitor.post("/api/measures", {"shape": {"kind": "edit"}}).json["measures"]
    found = next(one["value"] for one in measured if (one["name"], one["kind"]) == ("NL-NR", "straight"))
    assert found == pytest.approx(now["NL-NR"]["value"] + 5.0, abs=0.05)


def test_a_torso_without_one_breast_is_not_called_implausible_and_reasons_are_given(patient):
    visitor, _ = patient
    asked = {"shape": {"kind": "patient"}}
    assert visitor.post("/api/measures", asked).json["plausibility"]["level"]
    whole = visitor.case.patient
    before = visitor.put(patient=replace(whole, patient=replace(whole.patient, absent_side="left")))
    found = visitor.post("/api/measures", asked).json
    visitor.session.workspace = before
    assert found["plausibility"] is None
    reasons = [measure["reason"] for measure in found["measures"] if measure.get("reason")]
    assert reasons
    assert not any("_" in reason for reason in reasons), reasons


def test_a_scan_an_edit_and_a_prediction_have_the_numbers_of_the_commands(patient, folder, tmp_path):
    visitor, _ = patient
    wish = {"name": "NL-NR", "value": 21.0, "unit": "cm"}
    asked = {"base": {"kind": "patient"}, "wishes": [wish], "hold": ["thorax"]}
    edited = {one["name"]: one for one in visitor.post("/api/edit", asked).json["changes"]}
    assert visitor.job("/api/predict", {"side": "right"})["state"] == "done"
    page = {}
    for kind in ("patient", "edit", "prediction"):
        shown = visitor.post("/api/measures", {"shape": {"kind": kind}, "tape": True}).json["measures"]
        page[kind] = {(one["name"], one["kind"]): one for one in shown}
        table = visitor.post("/api/download/measures", {"shapes": [{"kind": kind}]}).content.decode()
        [row] = csv.DictReader(io.StringIO(table))
        for one in shown:
            column = f"{one['name']}{'' if one['kind'] == 'volume' else ' ' + one['kind']} {one['unit']}"
            assert row[column] == ("" if one["value"] is None else f"{one['value']:.2f}"), column
            assert row[f"{column} sd"] == ("" if one["sd"] is None else f"{one['sd']:.2f}"), column
        assert row["predicted_side"] == ("right" if kind == "prediction" else "")
    files = ["--landmarks", str(folder / "scan.json"), "--json", "--no-sheet"]
    scan, known = str(folder / "scan.ply"), str(folder / "model.h5")
    change = [
        "edit",
        known,
        "--scan",
        scan,
        "--set",
        "NL-NR=21cm",
        "--hold",
        "thorax",
        "--out",
        str(tmp_path / "e"),
    ]
    told = json.loads(CliRunner().invoke(main, [*change, *files]).stdout)["changes"]
    assert {one["name"] for one in told} == set(edited)
    for one in told:
        after = page["edit"][one["name"], "volume" if one["unit"] == "cc" else "straight"]
        before = page["patient"][one["name"], after["kind"]]
        assert one["before"] == pytest.approx(before["value"], abs=0.01), one["name"]
        for found in (edited[one["name"]], one):
            assert found["after"] == pytest.approx(after["value"], abs=0.01), one["name"]
            assert found["sd"] == pytest.approx(after["sd"], abs=0.01), one["name"]
            assert found["unit"] == after["unit"]
    lost = [
        "predict",
        known,
        scan,
        "--missing",
        "right",
        "--replace",
        "--samples",
        "0",
        "--out",
        str(tmp_path / "p"),
    ]
    told = json.loads(CliRunner().invoke(main, [*lost, *files]).stdout)["measures"]
    compared = [one for one in told if (one["name"], one["kind"]) in page["prediction"]]
    assert {"volume-right", "SN-NR", "NL-NR", "surface-right"} <= {one["name"] for one in compared}
    for one in compared:
        shown = page["prediction"][one["name"], one["kind"]]
        assert shown["predicted"]
        assert one["predicted"] == pytest.approx(shown["value"], rel=1e-4, abs=0.01), one["name"]
        assert (one["deviation"] is None) == (shown["sd"] is None)
        if shown["sd"] is not None:
            assert one["deviation"] == pytest.approx(shown["sd"], rel=1e-3, abs=0.01), one["name"]


def test_measures_come_as_a_table(patient):
    visitor, _ = patient
    answer = visitor.post("/api/download/measures", {"shapes": [{"kind": "patient"}, {"kind": "prediction"}]})
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [row["id"] for row in rows] == ["scan", "scan-prediction"]
    assert all(float(row["volume-left volume cc".replace(" volume cc", " cc")]) > 0.0 for row in rows)


@pytest.mark.parametrize("kind", [".json", ".csv", ".pp", ".mrk.json", ".fcsv"])
def test_landmarks_come_home_in_the_scans_coordinates(patient, folder, tmp_path, kind):
    visitor, scan = patient
    answer = visitor.post("/api/download/landmarks", {"scan": scan, "format": kind})
    path = tmp_path / f"scan{kind}"
    path.write_bytes(answer.content)
    found, given = load_landmarks(path), load_landmarks(folder / "scan.json")
    assert np.abs(found.array(given.names) - given.points).max() < 1e-5


@pytest.mark.parametrize("kind", ["edit", "prediction", "measures"])
def test_a_page_for_the_clinic(patient, kind):
    visitor, _ = patient
    if kind == "edit":
        wish = {"name": "SN-NL", "value": 1.0, "unit": "mm"}
        now = visitor.get("/api/edit?base=patient").json["features"]
        wish["value"] = next(one["value"] for one in now if one["name"] == "SN-NL") + 3.0
        visitor.post("/api/edit", {"base": {"kind": "patient"}, "wishes": [wish]})
    done = visitor.job("/api/download/sheet", {"kind": kind, "shape": {"kind": "patient"}})
    assert done["state"] == "done", done
    place = f"/api/files/{done['result']['file']}"
    picture = visitor.get(place)
    assert picture.content.startswith(b"\x89PNG")
    assert len(picture.content) > 20_000
    assert visitor.get(place).status == 404  # pages that were fetched do not fill the session


def test_a_fit_needs_no_registration(explorer, folder):
    visitor, scan = uploaded(explorer, folder)
    done = visitor.job(f"/api/scans/{scan}/fit")
    assert done["state"] == "done", done
    assert done["result"]["how"] == "fitted"
    assert done["result"]["residual"]["mean_mm"] < 4.0
    measured = visitor.post("/api/measures", {"shape": {"kind": "patient"}}).json["measures"]
    given = load_landmarks(folder / "scan.json")
    true = 10.0 * np.linalg.norm(given["nipple_left"] - given["nipple_right"])
    found = next(one["value"] for one in measured if one["name"] == "NL-NR")
    assert found == pytest.approx(true, rel=0.1)
    visitor.leave()


def test_one_job_at_a_time_and_it_can_be_cancelled(explorer, folder):
    visitor, scan = uploaded(explorer, folder)
    job = visitor.post(f"/api/scans/{scan}/register").json["job"]
    assert visitor.post(f"/api/scans/{scan}/fit").json["code"] == "busy"
    visitor.ask("DELETE", f"/api/jobs/{job}")
    assert ended(visitor, job) == "cancelled"
    assert visitor.get("/api/state").json["patient"] is None
    visitor.leave()


def ended(visitor, job: str) -> str:
    """The state of a job once it is over."""
    end = time.monotonic() + 120
    while visitor.get(f"/api/jobs/{job}").json["state"] == "running" and time.monotonic() < end:
        time.sleep(0.05)
    return visitor.get(f"/api/jobs/{job}").json["state"]


def test_a_prediction_is_cancelled_in_the_middle_and_the_next_one_works(patient, explorer, monkeypatch):
    visitor, _ = patient
    before = visitor.get("/api/state").json["prediction"]
    hanging = WorkerCalls(never_done, Limits(), 1)
    monkeypatch.setattr(explorer, "predicting", hanging)
    job = visitor.post("/api/predict", {"side": "left"}).json["job"]
    time.sleep(0.3)
    visitor.ask("DELETE", f"/api/jobs/{job}")
    assert ended(visitor, job) == "cancelled"  # its process would have slept for an hour
    monkeypatch.undo()
    hanging.close()
    assert visitor.get("/api/state").json["prediction"] == before
    assert visitor.job("/api/predict", {"side": "right"})["state"] == "done"


def never_done():
    """Setup of a process that takes its time."""

    def sleep(task: object) -> None:
        time.sleep(3600)

    return sleep


def test_a_removed_scan_takes_its_patient_with_it(explorer, folder):
    visitor, scan = uploaded(explorer, folder)
    assert visitor.get("/api/state").json["scan"] == scan  # a page that is loaded again shows it
    assert visitor.job(f"/api/scans/{scan}/fit")["state"] == "done"
    assert visitor.get(f"/api/scans/{scan}").json["has_result"]
    assert visitor.ask("DELETE", f"/api/scans/{scan}").status == 204
    state = visitor.get("/api/state").json
    assert state["patient"] is None
    assert state["scan"] == ""
    visitor.leave()


def test_somebody_without_a_scan_gets_a_synthetic_one(explorer):
    visitor = Visitor.of(explorer)
    answer = visitor.post("/api/scans/example")
    assert answer.status == 201, answer.content
    state = answer.json
    assert state["complete"]
    assert not state["warnings"]
    assert state["landmarks"]["nipple_left"][0] > state["landmarks"]["xiphoid"][0]  # x is the patient's left
    visitor.leave()


def test_what_is_not_there_yet_is_said(explorer, folder):
    visitor = Visitor.of(explorer)
    answer = visitor.ask("POST", "/api/scans?name=scan.ply", (folder / "scan.ply").read_bytes())
    scan = answer.json["scan"]
    assert visitor.post(f"/api/scans/{scan}/register").json["code"] == "missing-landmarks"
    assert visitor.get(f"/api/scans/{scan}/result").json["code"] == "not-registered"
    assert visitor.get(f"/api/scans/{scan}/texture").json["code"] == "no-texture"
    assert visitor.post("/api/predict", {"side": "left"}).json["code"] == "no-patient"
    for kind, code in (("patient", "no-patient"), ("edit", "no-edit"), ("prediction", "no-prediction")):
        assert visitor.post("/api/shape", {"shape": {"kind": kind}}).json["code"] == code
    visitor.leave()


def test_landmarks_of_another_scan_are_refused(explorer, folder):
    visitor = Visitor.of(explorer)
    answer = visitor.ask("POST", "/api/scans?name=scan.ply", (folder / "scan.ply").read_bytes())
    scan = answer.json["scan"]
    wrong = json.dumps({"sternal_notch": [500, 0, 0], "xiphoid": [500, 10, 0], "nipple_left": [0, 900, 0]})
    refused = visitor.ask("POST", f"/api/scans/{scan}/landmarks?name=a.json", wrong.encode())
    assert refused.status == 422
    assert "do not lie on this scan" in refused.json["cause"]
    broken = visitor.ask("POST", f"/api/scans/{scan}/landmarks?name=a.json", b'{"xiphoid": [1, 2')
    assert broken.status == 422
    assert not visitor.get(f"/api/scans/{scan}").json["landmarks"]
    visitor.leave()


def test_an_obj_brings_its_texture(explorer):
    visitor = Visitor.of(explorer)
    picture = b"\x89PNG\r\n\x1a\n" + bytes(64)
    files = {
        "skin.png": picture,
        "torso.mtl": b"newmtl skin\nmap_Kd skin.png\n",
    }
    ids = [visitor.ask("POST", f"/api/files?name={name}", data).json["file"] for name, data in files.items()]
    mesh = (
        b"mtllib torso.mtl\nusemtl skin\nv 0 0 0\nv 300 0 0\nv 300 300 0\nv 0 300 0\n"
        b"vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nf 1/1 2/2 3/3\nf 1/1 3/3 4/4\n"
    )
    state = visitor.ask("POST", f"/api/scans?name=torso.obj&with={','.join(ids)}", mesh).json
    assert state["texture"]
    assert visitor.get(f"/api/scans/{state['scan']}/texture").content == picture
    assert visitor.get(f"/api/scans/{state['scan']}/geometry").arrays["uv"].shape == (4, 2)
    assert visitor.ask("DELETE", f"/api/scans/{state['scan']}").status == 204
    assert visitor.get(f"/api/files/{ids[0]}").status == 404
    visitor.leave()


def test_an_obj_whose_files_have_unusual_names_brings_its_texture(explorer):
    visitor = Visitor.of(explorer)
    files = {
        "Scan's #1.png": b"\x89PNG\r\n\x1a\n" + bytes(64),
        "Scan's #1.mtl": b"newmtl skin\nmap_Kd Scan's #1.png\n",
    }
    ids = [
        visitor.ask("POST", f"/api/files?name={quote(name)}", data).json["file"]
        for name, data in files.items()
    ]
    mesh = (
        b"mtllib Scan's #1.mtl\nusemtl skin\nv 0 0 0\nv 300 0 0\nv 300 300 0\n"
        b"vt 0 0\nvt 1 0\nvt 1 1\nf 1/1 2/2 3/3\n"
    )
    name = quote("Scan's #1.obj")
    state = visitor.ask("POST", f"/api/scans?name={name}&with={','.join(ids)}", mesh).json
    assert state["texture"]
    visitor.leave()


def test_a_landmark_file_is_called_after_its_scan(explorer, folder):
    visitor = Visitor.of(explorer)
    name = quote("Müller 2026.05.ply")
    scan = visitor.ask("POST", f"/api/scans?name={name}", (folder / "scan.ply").read_bytes()).json["scan"]
    answer = visitor.post("/api/download/landmarks", {"scan": scan, "format": ".json"})
    assert f"filename*=UTF-8''{quote('Müller 2026.05.json')}" in answer.headers["content-disposition"]
    visitor.leave()


def test_scans_of_the_same_name_keep_their_own_landmarks(explorer, folder):
    visitor, first = uploaded(explorer, folder)
    second = visitor.ask("POST", "/api/scans?name=scan.ply", (folder / "scan.ply").read_bytes()).json["scan"]
    sent = (folder / "scan.json").read_bytes()
    assert visitor.ask("POST", f"/api/scans/{second}/landmarks?name=scan.json", sent).json["complete"]
    cases = [visitor.session.open(key) for key in (first, second)]
    files = [scan_files(case, visitor.session.folder).landmarks[0] for case in cases]
    assert len(set(files)) == 2
    assert [path.name for path in files] == ["scan.json", "scan.json"]  # as messages call them
    visitor.leave()


def test_a_scan_that_is_removed_while_it_is_registered_does_not_come_back(explorer, folder):
    visitor, scan = uploaded(explorer, folder)
    job = visitor.post(f"/api/scans/{scan}/register").json["job"]
    assert visitor.ask("DELETE", f"/api/scans/{scan}").status == 204
    assert ended(visitor, job) == "cancelled"
    state = visitor.get("/api/state").json
    assert (state["patient"], state["scan"], state["job"]) == (None, "", None)
    visitor.leave()


def test_what_still_runs_is_told_to_a_page_that_is_loaded_again(patient, explorer, monkeypatch):
    visitor, _ = patient
    hanging = WorkerCalls(never_done, Limits(), 1)
    monkeypatch.setattr(explorer, "predicting", hanging)
    job = visitor.post("/api/predict", {"side": "left"}).json["job"]
    running = visitor.get("/api/state").json["job"]
    assert (running["job"], running["kind"], running["state"]) == (job, "predict", "running")
    visitor.ask("DELETE", f"/api/jobs/{job}")
    assert ended(visitor, job) == "cancelled"
    hanging.close()
    assert visitor.get("/api/state").json["job"] is None


def test_a_job_is_either_cancelled_or_kept(patient):
    visitor, _ = patient
    session = visitor.session
    late, early = Job("register"), Job("register")
    late.settle()
    late.cancel()
    assert not late.is_cancelled
    early.cancel()
    before = visitor.case.patient
    with pytest.raises(Cancelled):
        session.take_patient(replace(before), early)
    assert visitor.case.patient is before


def test_a_kept_shape_is_what_it_was_when_it_was_kept(patient):
    visitor, _ = patient
    asked = {"base": {"kind": "patient"}, "hold": ["thorax"]}
    now = {one["name"]: one["value"] for one in visitor.get("/api/edit?base=patient").json["features"]}
    lengths = []
    for more in (3.0, 6.0):
        wish = {"name": "NL-NR", "value": now["NL-NR"] + more, "unit": "mm"}
        record = visitor.post("/api/edit", asked | {"wishes": [wish]}).json
        assert record["asked"]["wishes"] == [wish]  # a page that is loaded again shows what was set
        if not lengths:
            assert visitor.post("/api/kept", {"shape": {"kind": "edit"}}).json["name"] == "scan-edited-kept"
        lengths.append(wish["value"])
    answer = visitor.post("/api/download/measures", {"shapes": [{"kind": "edit"}, {"kind": "kept"}]})
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert [row["id"] for row in rows] == ["scan-edited", "scan-edited-kept"]
    found = [float(row["NL-NR straight mm"]) for row in rows]
    assert found == pytest.approx(lengths[::-1], abs=0.1)
