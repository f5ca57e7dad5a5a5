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
