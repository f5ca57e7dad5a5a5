"""A session taken home and opened again; files that were changed are refused."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

from explored_patient import model, uploaded
from explorer_client import Visitor

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def session_file(patient) -> bytes:
    visitor, _ = patient
    now = {one["name"]: one["value"] for one in visitor.get("/api/edit?base=patient").json["features"]}
    wish = {"name": "SN-NR", "value": now["SN-NR"] + 4.0, "unit": "mm"}
    visitor.post("/api/edit", {"base": {"kind": "patient"}, "wishes": [wish], "hold": ["thorax"]})
    answer = visitor.post("/api/download/session", {"page": {"tab": "patient"}})
    assert answer.status == 200
    return answer.content


def in_the_server(*_: object) -> None:
    raise AssertionError("a file of somebody else is unpacked in the server")


def test_a_session_file_reopens_everything(patient, explorer, session_file, monkeypatch):
    monkeypatch.setattr("breastmorph.explorer.session_file._checked_members", in_the_server)
    visitor, _ = patient
    other = Visitor.of(explorer)
    done = other.job("/api/session-file?name=session.zip", session_file)
    assert done["state"] == "done", done
    assert done["result"]["page"] == {"tab": "patient"}
    before, after = visitor.get("/api/state").json, other.get("/api/state").json
    assert after["patient"]["residual"] == pytest.approx(before["patient"]["residual"], rel=1e-6)
    assert done["result"]["said"] == []
    measures = [
        {one["name"]: one["predicted"] for one in state["prediction"]["measures"]}
        for state in (before, after)
    ]
    assert measures[1] == pytest.approx(measures[0], rel=1e-6)
    for kind in ("patient", "edit", "prediction"):
        first, second = (
            one.post("/api/shape", {"shape": {"kind": kind}}).arrays["vertices"] for one in (visitor, other)
        )
        assert np.abs(first - second).max() < 0.01
    scan = other.get(f"/api/scans/{after['scan']}").json
    assert scan["complete"]
    other.leave()
    # An earlier scan that a prediction took is not in the file: it is said, and nothing else is shown in its place.
    with zipfile.ZipFile(io.BytesIO(session_file)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    notes = json.loads(files["session.json"])
    notes["prediction"]["earlier"] = "somewhere"
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (files | {"session.json": json.dumps(notes).encode()}).items():
            archive.writestr(name, data)
    third = Visitor.of(explorer)
    done = third.job("/api/session-file?name=session.zip", content.getvalue())
    assert "earlier scan" in done["result"]["said"][0]
    assert third.get("/api/state").json["prediction"] is None
    third.leave()


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
    "not finite": lambda parts: parts | {"patient.npy": array(np.full_like(model().mean, np.nan))},
    "no such way": lambda parts: noted(parts, patient={"how": "believed"}),
    "a patient without a scan": lambda parts: noted(parts, scan=None),
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


def patient_shape(parts) -> np.ndarray:
    return np.load(io.BytesIO(parts["patient.npy"]))


def as_kind_1(parts):
    """As the first version of the explorer saved it: the patient as she was computed, and the scan's landmarks only."""
    part = {
        "name": "somebody else",
        "how": "registered",
        "absent_side": "left",
        "to_file": {"rotation": [[9] * 3] * 3, "translation": [0] * 3, "scale": 1},
        "warnings": ["all is well"],
    }
    notes = json.loads(parts["session.json"]) | {"kind": "BreastMorph session 1", "patient": part}
    residual = np.zeros(len(patient_shape(parts)))
    return parts | {"session.json": json.dumps(notes).encode(), "residual.npy": array(residual)}


FORGED = {
    "times 1.2": (as_kind_1, lambda shape: 1.2 * shape),
    "inside out": (dict, lambda shape: shape * (1.0, 1.0, -1.0)),
    "random points": (dict, lambda shape: np.random.default_rng(0).normal(scale=150.0, size=shape.shape)),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_patient_is_never_shown_but_computed_from_the_scan(patient, explorer, session_file, case):
    def forged(parts):
        prepared, change = FORGED[case]
        return prepared(parts) | {"patient.npy": array(change(patient_shape(parts)))}

    first, _ = patient
    visitor = Visitor.of(explorer)
    done = visitor.job("/api/session-file?name=session.zip", tampered(session_file, forged))
    assert done["state"] == "done", done
    assert "not what its scan and landmarks give" in done["result"]["said"][0]
    true, found = (one.get("/api/state").json["patient"] for one in (first, visitor))
    assert found["warnings"] == [*true["warnings"], *done["result"]["said"]]  # as long as she is shown
    assert (found["name"], found["absent_side"]) == (true["name"], true["absent_side"])
    assert found["residual"] == pytest.approx(true["residual"], rel=1e-6)
    for kind in ("patient", "edit", "prediction"):
        one, other = (
            tab.post("/api/shape", {"shape": {"kind": kind}}).arrays["vertices"] for tab in (first, visitor)
        )
        assert np.abs(one - other).max() < 0.01
    visitor.leave()


def test_the_patient_is_computed_with_the_landmarks_that_were_used(explorer, folder):
    visitor, scan = uploaded(explorer, folder)
    assert visitor.job(f"/api/scans/{scan}/register")["state"] == "done"
    marks = json.loads((folder / "scan.json").read_bytes())
    del marks["nipple_left"]  # picked again, and not yet registered again
    visitor.ask("POST", f"/api/scans/{scan}/landmarks?name=scan.json", json.dumps(marks).encode())
    content = visitor.post("/api/download/session", {"page": None}).content
    other = Visitor.of(explorer)
    done = other.job("/api/session-file?name=session.zip", content)
    assert (done["state"], done["result"]["said"]) == ("done", [])
    state = other.get("/api/state").json
    assert "nipple_left" not in other.get(f"/api/scans/{state['scan']}").json["landmarks"]

    def without_those(parts):
        return noted(parts, patient={"landmarks": None})

    done = other.job("/api/session-file?name=session.zip", tampered(content, without_those))
    assert done["state"] == "done"
    assert "could not be computed again" in done["result"]["said"][0]
    assert other.get("/api/state").json["patient"] is None
    visitor.leave()
    other.leave()


@pytest.mark.parametrize("cut", [0.0, 0.3, 0.9, 0.99])
def test_a_session_file_cut_off_is_refused(explorer, session_file, cut):
    visitor = Visitor.of(explorer)
    data = session_file[: int(cut * len(session_file))] or b"PK"
    done = visitor.job("/api/session-file?name=session.zip", data)
    assert done["state"] == "failed"
    assert done["error"]["code"] != "unexpected"
    visitor.leave()
