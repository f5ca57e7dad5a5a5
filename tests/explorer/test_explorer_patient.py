"""A patient from the upload to the download: register, edit, predict, take home, and open the session again."""

from __future__ import annotations

import csv
import io
import json
import time
import zipfile
from dataclasses import replace
from functools import cache

import igl
import numpy as np
import pytest

from breast_cohort import breast_shapes, breast_template
from breastmorph.cohort import Cohort
from breastmorph.explorer.settings import Settings
from breastmorph.explorer.worker_calls import SharedCalls
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.similarity import Similarity, rotation_about
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.files import save_model
from breastmorph.model.regions import breast_regions
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.files import load_landmarks, save_landmarks
from breastmorph.scan.landmarks import Landmarks
from breastmorph.workers import Limits
from explorer_client import Visitor, running

POSE = Similarity(rotation_about([0, 1, 0], 5.0), np.array([3.0, 1.0, 2.0]), 0.1)  # in cm, a little turned


@cache
def model() -> ShapeModel:
    """A model whose subjects slid a little along their skin, as registrations do."""
    shapes, rng = breast_shapes(40), np.random.default_rng(7)
    points = breast_template().mesh.vertices
    centres = points[rng.choice(len(points), 60, replace=False)]
    bumps = np.exp(-0.5 * (np.linalg.norm(points[:, None] - centres, axis=2) / 30.0) ** 2)
    slid = np.einsum("nc,kcd->knd", bumps, rng.normal(scale=2.5, size=(len(shapes), 60, 3)))
    return build_model(Cohort.of(shapes + slid, breast_template()), BuildParameters(keep_scores=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model and the scan of somebody it does not know, with landmarks, in centimetres."""
    home = tmp_path_factory.mktemp("patient")
    save_model(model(), home / "model.h5")
    template = breast_template()
    shape = breast_shapes(41)[40]
    marks = Landmarks(tuple(template.landmark_ids), shape[list(template.landmark_ids.values())])
    vertices, faces = igl.upsample(shape, np.array(template.mesh.faces))  # not the model's own triangles
    save_mesh(TriangleMesh(POSE.apply(vertices), faces[::-1]), home / "scan.ply")
    save_landmarks(marks.transformed(POSE), home / "scan.json")
    return home


@pytest.fixture(scope="module")
def explorer(folder):
    with running(Settings(model=folder / "model.h5")) as found:
        yield found


def uploaded(explorer, folder) -> tuple[Visitor, str]:
    visitor = Visitor.of(explorer)
    answer = visitor.ask("POST", "/api/scans?name=scan.ply", (folder / "scan.ply").read_bytes())
    assert answer.status == 201, answer.content
    scan = answer.json["scan"]
    marks = visitor.ask(
        "POST", f"/api/scans/{scan}/landmarks?name=scan.json", (folder / "scan.json").read_bytes()
    )
    assert marks.json["complete"], marks.content
    return visitor, scan


@pytest.fixture(scope="module")
def patient(explorer, folder):
    """A tab with a registered patient, an edit and a prediction."""
    visitor, scan = uploaded(explorer, folder)
    done = visitor.job(f"/api/scans/{scan}/register")
    assert done["state"] == "done", done
    predicted = visitor.job("/api/predict", {"side": "right"})
    assert predicted["state"] == "done", predicted
    return visitor, scan


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


def test_the_patient_is_edited_by_her_measures(patient):
    visitor, _ = patient
    now = {one["name"]: one for one in visitor.get("/api/edit?base=patient").json["features"]}
    wish = {"name": "NL-NR", "value": (now["NL-NR"]["value"] + 5.0) / 10.0, "unit": "cm"}
    answer = visitor.post("/api/edit", {"base": {"kind": "patient"}, "wishes": [wish], "hold": ["thorax"]})
    assert answer.status == 200, answer.content
    measured = visitor.post("/api/measures", {"shape": {"kind": "edit"}}).json["measures"]
    found = next(one["value"] for one in measured if (one["name"], one["kind"]) == ("NL-NR", "straight"))
    assert found == pytest.approx(now["NL-NR"]["value"] + 5.0, abs=0.05)


def test_a_torso_without_one_breast_is_not_called_implausible(patient, monkeypatch):
    visitor, _ = patient
    asked = {"shape": {"kind": "patient"}}
    assert visitor.post("/api/measures", asked).json["plausibility"]["level"]
    whole = visitor.session.patient
    one_sided = replace(whole, patient=replace(whole.patient, absent_side="left"))
    monkeypatch.setattr(visitor.session, "patient", one_sided)
    assert visitor.post("/api/measures", asked).json["plausibility"] is None


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
    found, given = load_landmarks(path).landmarks, load_landmarks(folder / "scan.json").landmarks
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
    given = load_landmarks(folder / "scan.json").landmarks
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
    end = time.monotonic() + 20
    while visitor.get(f"/api/jobs/{job}").json["state"] == "running" and time.monotonic() < end:
        time.sleep(0.05)
    return visitor.get(f"/api/jobs/{job}").json["state"]


def test_a_prediction_is_cancelled_in_the_middle_and_the_next_one_works(patient, explorer, monkeypatch):
    visitor, _ = patient
    before = visitor.get("/api/state").json["prediction"]
    hanging = SharedCalls(never_done, Limits(), 1)
    monkeypatch.setattr(explorer, "predicting", hanging)
    job = visitor.post("/api/predict", {"side": "left"}).json["job"]
    time.sleep(0.3)
    begin = time.monotonic()
    visitor.ask("DELETE", f"/api/jobs/{job}")
    assert ended(visitor, job) == "cancelled"
    assert time.monotonic() - begin < 10.0  # its process slept for an hour
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


# --- the session file -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session_file(patient) -> bytes:
    visitor, _ = patient
    now = {one["name"]: one["value"] for one in visitor.get("/api/edit?base=patient").json["features"]}
    wish = {"name": "SN-NR", "value": now["SN-NR"] + 4.0, "unit": "mm"}
    visitor.post("/api/edit", {"base": {"kind": "patient"}, "wishes": [wish], "hold": ["thorax"]})
    answer = visitor.post("/api/download/session", {"page": {"tab": "patient"}})
    assert answer.status == 200
    return answer.content


def test_a_session_file_reopens_everything(patient, explorer, session_file):
    visitor, _ = patient
    other = Visitor.of(explorer)
    done = other.job("/api/session-file?name=session.zip", session_file)
    assert done["state"] == "done", done
    assert done["result"]["page"] == {"tab": "patient"}
    before, after = visitor.get("/api/state").json, other.get("/api/state").json
    assert after["patient"]["residual"] == before["patient"]["residual"]
    assert after["prediction"]["measures"] == before["prediction"]["measures"]
    for kind in ("patient", "edit", "prediction"):
        first, second = (
            one.post("/api/shape", {"shape": {"kind": kind}}).arrays["vertices"] for one in (visitor, other)
        )
        assert np.abs(first - second).max() < 0.01
    scan = other.get(f"/api/scans/{after['scan']}").json
    assert scan["complete"]
    other.leave()


def test_a_session_file_of_a_scan_without_a_patient_shows_the_scan_and_nobody_else(explorer, folder):
    visitor, _ = uploaded(explorer, folder)
    content = visitor.post("/api/download/session", {"page": None}).content
    other, scan = uploaded(explorer, folder)
    assert other.job(f"/api/scans/{scan}/fit")["state"] == "done"
    assert other.job("/api/session-file?name=session.zip", content)["state"] == "done"
    state = other.get("/api/state").json
    assert state["patient"] is None  # the one that was there before is somebody else
    assert state["scan"] not in ("", scan)
    assert other.get(f"/api/scans/{state['scan']}").json["complete"]
    visitor.leave()
    other.leave()


def tampered(data: bytes, change) -> bytes:
    """The archive with its parts changed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts = change(parts)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def noted(parts, **changes):
    notes = json.loads(parts["session.json"])
    for name, value in changes.items():
        notes[name] = (
            {**notes[name], **value}
            if isinstance(value, dict) and isinstance(notes.get(name), dict)
            else value
        )
    return parts | {"session.json": json.dumps(notes).encode()}


def array(values, **options) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values, **options)
    return buffer.getvalue()


TAMPERED = {
    "kind": lambda parts: noted(parts, kind="something else"),
    "another model": lambda parts: noted(parts, model={"fingerprint": "0" * 64}),
    "no notes": lambda parts: {name: data for name, data in parts.items() if name != "session.json"},
    "notes are a list": lambda parts: parts | {"session.json": b"[]"},
    "notes nest deeply": lambda parts: parts | {"session.json": b"[" * 200_000},
    "pickle": lambda parts: parts | {"patient.npy": array(np.array([{}], dtype=object), allow_pickle=True)},
    "another shape": lambda parts: parts | {"patient.npy": array(np.zeros((3, 3)))},
    "no adult": lambda parts: parts | {"patient.npy": array(np.zeros_like(model().mean))},
    "not finite": lambda parts: parts | {"patient.npy": array(np.full_like(model().mean, np.nan))},
    "turned inside out": lambda parts: noted(
        parts, patient={"to_file": {"rotation": [[9] * 3] * 3, "translation": [0] * 3, "scale": 1}}
    ),
    "no scan": lambda parts: {name: data for name, data in parts.items() if not name.startswith("scan/")},
    "climbing": lambda parts: parts | {"scan/../../evil.ply": b"x"},
    "elsewhere": lambda parts: parts | {"/etc/evil.ply": b"x"},
    "bomb": lambda parts: parts | {"scan/zeros.bin": bytes(40 * 1024**2)},
    "broken scan": lambda parts: parts | {"scan/scan.ply": b"ply\nformat binary_little_endian 1.0\n"},
    "bad edit": lambda parts: noted(parts, edit={"wishes": "all of them"}),
    "bad landmarks": lambda parts: noted(parts, scan={"landmarks": {"xiphoid": "here"}}),
}


@pytest.mark.parametrize("case", TAMPERED)
def test_a_tampered_session_file_is_refused(explorer, session_file, case):
    visitor = Visitor.of(explorer)
    done = visitor.job("/api/session-file?name=session.zip", tampered(session_file, TAMPERED[case]))
    assert done["state"] == "failed", done
    assert done["error"]["cause"]
    assert done["error"]["code"] != "unexpected"
    assert visitor.get("/api/state").status == 200
    visitor.leave()


@pytest.mark.parametrize("cut", [0.0, 0.3, 0.9, 0.99])
def test_a_session_file_cut_off_is_refused(explorer, session_file, cut):
    visitor = Visitor.of(explorer)
    data = session_file[: int(cut * len(session_file))] or b"PK"
    done = visitor.job("/api/session-file?name=session.zip", data)
    assert done["state"] == "failed"
    assert done["error"]["code"] != "unexpected"
    visitor.leave()
