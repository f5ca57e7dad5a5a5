"""What a tab holds on the server: open scans, steps that can be undone, what is deleted."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from breastmorph.explorer.answers import RequestProblem
from breastmorph.explorer.app import _ENDPOINTS
from breastmorph.explorer.workspace import day_in
from explored_patient import uploaded
from explorer_client import Visitor


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("p017_2024-03-05", "2024-03-05"),
        ("scan20240305b", "2024-03-05"),
        ("17", ""),
        ("20241350", ""),
        ("x_2023.02.30", ""),
    ],
)
def test_the_day_of_a_visit_is_taken_from_the_files_name(name, day):
    assert day_in(name) == day


def names(visitor: Visitor) -> list[str]:
    return [one["name"] for one in visitor.get("/api/cases").json["cases"]]


def sent_files(visitor: Visitor) -> list:
    return [file for file in visitor.session.folder.rglob("*") if file.is_symlink() or file.is_file()]


def upload(visitor: Visitor, folder, name: str) -> str:
    answer = visitor.ask("POST", f"/api/scans?name={name}.ply", (folder / "scan.ply").read_bytes())
    assert answer.status == 201, answer.content
    return answer.json["scan"]


@pytest.fixture
def visitor(explorer):
    found = Visitor.of(explorer)
    yield found
    found.leave()


def test_thirty_scans_are_open_in_one_tab_and_closed_ones_leave_nothing(visitor, folder):
    keys = [upload(visitor, folder, f"visit-{k:02d}") for k in range(30)]
    assert names(visitor) == [f"visit-{k:02d}" for k in range(30)]
    first = visitor.get(f"/api/scans/{keys[0]}/geometry").arrays["vertices"]
    np.testing.assert_array_equal(first, visitor.get(f"/api/scans/{keys[-1]}/geometry").arrays["vertices"])
    state = visitor.post("/api/cases", {"scan": keys[3]}).json
    assert state["scan"] == keys[3]
    computed = [case.key for case in visitor.session.workspace.listed if "geometry" in vars(case.scan)]
    assert computed == []  # only of the scan that is looked at
    for key in keys:
        assert visitor.ask("DELETE", f"/api/scans/{key}").status == 204
    assert names(visitor) == []
    assert visitor.session.history.cases() <= {""}
    assert not [file for file in visitor.session.folder.rglob("*") if file.is_file()]


def test_a_removed_scan_comes_back_and_is_deleted_after_ten_minutes(visitor, folder, monkeypatch):
    key, other = upload(visitor, folder, "first"), upload(visitor, folder, "second")
    assert visitor.post(f"/api/scans/{other}/remove").json["scan"] == key
    assert names(visitor) == ["first"]
    assert visitor.get(f"/api/scans/{other}").status == 404
    assert visitor.post("/api/undo").json["scan"] == other
    assert names(visitor) == ["first", "second"]
    assert visitor.get(f"/api/scans/{other}").status == 200
    visitor.post(f"/api/scans/{other}/remove")
    visitor.session.delete_removed()
    assert len(sent_files(visitor)) == 2
    monkeypatch.setattr("breastmorph.explorer.session._REMOVED", -1.0)
    visitor.session.delete_removed()
    assert len(sent_files(visitor)) == 1
    assert other not in visitor.session.history.cases()
    undone = visitor.post("/api/undo").json
    assert undone["undone"] == "open"  # of the first: nothing brings the second one back
    assert [one["scan"] for one in undone["cases"]] == []


def test_what_belongs_to_no_scan_is_neither_named_nor_removed(visitor):
    for step in (lambda: visitor.session.rename("", {"name": "x"}), lambda: visitor.session.remove("")):
        with pytest.raises(RequestProblem) as refused:
            step()
        assert refused.value.code == "no-scan"
    assert visitor.session.workspace.case("").key == ""


def test_a_scan_that_was_closed_is_in_no_step(visitor, folder):
    key = upload(visitor, folder, "first")
    visitor.post(f"/api/scans/{key}/rename", {"name": "Other", "person": "P", "day": "2025-01-02"})
    assert visitor.ask("DELETE", f"/api/scans/{key}").status == 204
    assert visitor.get("/api/cases").json["history"]["undo"] is None
    assert visitor.post("/api/undo").status == 409


@pytest.mark.parametrize("asked", [{"name": " "}, {"day": "2024-02-31"}, {"day": "soon"}, {"person": 3}])
def test_names_and_days_are_checked(visitor, folder, asked):
    key = upload(visitor, folder, "first")
    assert visitor.post(f"/api/scans/{key}/rename", asked).status == 400
    assert names(visitor) == ["first"]


def everything(visitor: Visitor) -> dict:
    """The whole state, with the shapes to the last bit."""
    state = visitor.get("/api/state").json
    volatile = ("history", "job", "undone", "redone")
    found = {name: value for name, value in state.items() if name not in volatile}
    for kind in ("patient", "edit", "kept", "prediction", "mirrored"):
        answer = visitor.post("/api/shape", {"shape": {"kind": kind}})
        found[f"shape {kind}"] = answer.content if answer.status == 200 else answer.status
    for one in state["cases"]:
        found[f"scan {one['scan']}"] = visitor.get(f"/api/scans/{one['scan']}").json
    return found


NO_STEP = {  # they change nothing, lead elsewhere, are the steps themselves, or (closing) are final
    *(
        "undo",
        "redo",
        "left",
        "cases",
        "files",
        "shape",
        "measures",
        "compare",
        "compare/measures",
        "symmetry",
        "lines",
    ),
    *(
        "ruler",
        "plan",
        "plan/map",
        "sections",
        "scans/{scan}/thumbnail",
        "jobs/{job}",
        "scans/{scan}",
        "folders",
    ),
    *("download/mesh", "download/textured", "download/measures", "download/landmarks", "download/sheet"),
    *("download/plan", "download/handout", "download/comparison", "download/session", "session-file"),
    *(
        "queue/propose",
        "queue/accept",
        "queue/check",
        "queue/register",
    ),  # of files in the folder, for all tabs
}
OTHERWISE = {  # steps of the same kind as others here, or of scans in a folder
    *("scans/example", "scans/{scan}/propose", "scans/{scan}/fit", "scans/{scan}/use", "queue/model"),
}


@pytest.mark.slow
def test_undo_and_redo_over_a_random_sequence_bring_the_state_back_exactly(explorer, folder):
    visitor, scan = uploaded(explorer, folder)
    second = upload(visitor, folder, "second")
    visitor.post("/api/cases", {"scan": scan})
    rng = random.Random(3)
    assert visitor.job(f"/api/scans/{scan}/register")["state"] == "done"
    names_ = list(visitor.get(f"/api/scans/{scan}").json["landmarks"])
    middle = visitor.get(f"/api/scans/{scan}/geometry").arrays["vertices"]

    def pick():
        key = rng.choice([scan, second])
        at = middle[rng.randrange(len(middle))].astype(float)
        ray = {"origin": [*at[:2], 900.0], "direction": [0.0, 0.0, -1.0]}
        visitor.post(f"/api/scans/{key}/pick", {"landmark": rng.choice(names_), "ray": ray, "snap": False})

    def wish():
        base = rng.choice([{"kind": "mean"}, {"kind": "patient"}])
        features = visitor.get(f"/api/edit?base={base['kind']}").json.get("features")
        if features:
            one = rng.choice(features)
            value = one["value"] * rng.uniform(0.98, 1.03) / (10.0 if one["unit"] == "mm" else 1.0)
            unit = "cm" if one["unit"] == "mm" else "cc"
            wishes = [{"name": one["name"], "value": value, "unit": unit}]
            visitor.post("/api/edit", {"base": base, "hold": [], "hold_other": False, "wishes": wishes})

    def tried(path, body=None):
        answer = visitor.post(path, body)  # landmarks may be missing by now
        while answer.status in (200, 202) and answer.json["state"] == "running":
            answer = visitor.get(f"/api/jobs/{answer.json['job']}")

    marks = (folder / "scan.json").read_bytes()
    actions = {
        "POST scans/{scan}/pick": pick,
        "POST edit": wish,
        "POST scans/{scan}/absent": lambda: visitor.post(
            f"/api/scans/{second}/absent", {"side": rng.choice(["left", "right", ""])}
        ),
        "POST scans/{scan}/swap": lambda: visitor.post(f"/api/scans/{scan}/swap"),
        "POST scans/{scan}/undo": lambda: visitor.post(f"/api/scans/{scan}/undo"),
        "POST scans/{scan}/skip": lambda: visitor.post(f"/api/scans/{second}/skip", {"landmark": "navel"}),
        "POST scans/{scan}/confirm": lambda: visitor.post(f"/api/scans/{scan}/confirm"),
        "POST scans/{scan}/landmarks": lambda: visitor.ask(
            "POST", f"/api/scans/{second}/landmarks?name=scan.json", marks
        ),
        "POST kept": lambda: visitor.post(
            "/api/kept", {"shape": {"kind": rng.choice(["mean", "edit", "patient"])}}
        ),
        "DELETE kept": lambda: visitor.ask("DELETE", "/api/kept"),
        "DELETE edit": lambda: visitor.ask("DELETE", "/api/edit"),
        "POST notes": lambda: visitor.post(
            "/api/notes", {"notes": {"painted": rng.random()}, "what": "paint"}
        ),
        "POST scans/{scan}/rename": lambda: visitor.post(
            f"/api/scans/{second}/rename", {"name": f"n{rng.random()}", "day": "2025-05-01"}
        ),
        "POST scans/{scan}/remove": lambda: visitor.post(f"/api/scans/{rng.choice([scan, second])}/remove"),
        "POST scans": lambda: upload(visitor, folder, f"third-{rng.randrange(999)}"),
        "POST scans/{scan}/register": lambda: tried(f"/api/scans/{scan}/register"),
        "POST predict": lambda: tried("/api/predict", {"side": "right"}),
        "DELETE prediction": lambda: visitor.ask("DELETE", "/api/prediction"),
        "POST model/landmarks": lambda: visitor.post("/api/model/landmarks"),
    }
    there = {one.replace("/api/", "") for one in _ENDPOINTS if not one.startswith("GET")}
    assert {one for one in there if one.partition(" ")[2] not in NO_STEP | OTHERWISE} == set(actions)
    rare = ("POST scans/{scan}/register", "POST predict", "POST model/landmarks")  # they take seconds
    often = [one for one in actions if one not in rare]
    chosen = rng.sample(list(actions), len(actions)) + rng.choices(often, k=15)
    seen = []
    for action in chosen:
        if scan not in [one["scan"] for one in visitor.get("/api/cases").json["cases"]]:
            visitor.post("/api/undo")  # all goes on with her, so she is brought back when she was removed
            seen.pop()
        visitor.post("/api/cases", {"scan": scan})
        before, steps = everything(visitor), visitor.get("/api/cases").json["history"]["revision"]
        actions[action]()
        if visitor.get("/api/cases").json["history"]["revision"] != steps:
            seen.append(before)
    seen.append(everything(visitor))
    assert len(seen) > 12
    for wanted in reversed(seen[:-1]):
        assert visitor.post("/api/undo").status == 200
        assert everything(visitor) == wanted
    for wanted in seen[1:]:
        assert visitor.post("/api/redo").status == 200
        assert everything(visitor) == wanted
    assert json.loads(visitor.post("/api/redo").content)["code"] == "nothing-to-redo"
    visitor.leave()
