"""Two shapes beside each other, left against right, lines and the ruler: what the page's pictures say is measured."""

from __future__ import annotations

import numpy as np
import pytest

from breastmorph.clinical.distances import DISTANCES
from explored_patient import model

MEAN, MOVED = {"kind": "mean"}, {"kind": "model", "scores": [1.5, -1.0]}


@pytest.fixture(scope="module")
def visitor(patient):
    return patient[0]


def compared(visitor, shape, other):
    answer = visitor.post("/api/compare", {"shape": shape, "other": other})
    assert answer.status == 200, answer.content
    return answer.arrays


def shown(visitor, spec) -> np.ndarray:
    return visitor.post("/api/shape", {"shape": spec}).arrays["vertices"]


def test_a_shape_does_not_differ_from_itself_and_differences_have_a_sign(visitor):
    assert np.abs(compared(visitor, MEAN, MEAN)["difference"]).max() < 1e-3
    there, back = (compared(visitor, *pair)["difference"] for pair in ((MOVED, MEAN), (MEAN, MOVED)))
    assert np.abs(there).max() > 3.0
    assert np.corrcoef(there, back)[0, 1] < -0.95  # what is in front of the one is behind the other


def test_the_other_shape_is_laid_on_without_changing_its_size(visitor):
    laid, free = compared(visitor, {"kind": "patient"}, MOVED)["vertices"], shown(visitor, MOVED)
    pairs = np.random.default_rng(0).integers(0, len(free), (200, 2))
    lengths = [np.linalg.norm(at[pairs[:, 0]] - at[pairs[:, 1]], axis=1) for at in (laid, free)]
    np.testing.assert_allclose(*lengths, atol=0.01)


def test_measures_stand_beside_each_other_as_the_tables_have_them(visitor):
    rows = visitor.post("/api/compare/measures", {"shape": {"kind": "patient"}, "other": MEAN}).json["rows"]
    assert rows
    for spec, column in (({"kind": "patient"}, lambda row: row), (MEAN, lambda row: row["other"])):
        table = visitor.post("/api/measures", {"shape": spec}).json["measures"]
        known = {(one["name"], one["kind"]): one["value"] for one in table}
        for row in rows:
            assert column(row)["value"] == pytest.approx(known[row["name"], row["kind"]])
    for row in rows:
        assert row["difference"]["value"] == pytest.approx(row["value"] - row["other"]["value"])
        spreads = [one["sd"] for one in (row, row["other"]) if one["sd"] is not None]
        assert row["difference"]["sd"] == (pytest.approx(np.linalg.norm(spreads)) if spreads else None)
    same = visitor.post("/api/compare/measures", {"shape": {"kind": "patient"}, "other": {"kind": "patient"}})
    assert all(row["difference"]["sd"] is None for row in same.json["rows"])  # one scan, the same errors


def test_left_against_right_is_zero_on_a_symmetric_torso_and_signed_on_another(visitor):
    reflected = visitor.post("/api/symmetry", {"shape": MOVED}).arrays
    signed = reflected["symmetry"]
    assert np.isnan(signed).any()  # only the breasts are judged
    assert np.nanmax(np.abs(signed)) > 0.5
    assert reflected["vertices"].shape == shown(visitor, MOVED).shape


@pytest.mark.slow
def test_lines_on_the_body_are_as_long_as_their_measures_say(visitor):
    found = visitor.post("/api/lines", {"shape": {"kind": "patient"}}).json
    assert {line["name"] for line in found["lines"]} >= {"SN-NL", "SN-NR", "NL-NR"}
    for line in found["lines"]:
        points = np.array(line["points"])
        values = {one["kind"]: one["value"] for one in line["values"]}
        if "tape" in values and values["tape"] is not None:
            along = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
            assert along == pytest.approx(values["tape"], rel=0.02), line["name"]
        if "straight" in values:
            assert np.linalg.norm(points[-1] - points[0]) == pytest.approx(values["straight"], abs=0.1)


@pytest.mark.slow
def test_the_ruler_between_two_landmarks_is_the_measure(visitor):
    record = visitor.post("/api/measures", {"shape": MEAN, "tape": True}).json["measures"]
    known = {(one["name"], one["kind"]): one["value"] for one in record}
    places = model().landmarks
    for name in ("SN-NL", "NL-NR"):
        ends = [places[end].tolist() for end in DISTANCES[name].landmarks[:2]]
        found = visitor.post("/api/ruler", {"shape": MEAN, "points": ends}).json
        assert found["straight"] == pytest.approx(known[name, "straight"], abs=0.1)
        assert found["along"] == pytest.approx(known[name, "tape"], rel=0.01)
        assert found["along"] >= found["straight"]


def test_the_ruler_works_on_the_raw_scan_too(patient):
    visitor, scan = patient
    vertices = visitor.get(f"/api/scans/{scan}/geometry").arrays["vertices"]
    ends = vertices[[10, len(vertices) // 2]].tolist()
    found = visitor.post("/api/ruler", {"scan": scan, "points": ends}).json
    assert found["straight"] == pytest.approx(float(np.linalg.norm(np.subtract(*ends))), abs=0.01)


@pytest.mark.parametrize("points", [None, [], [[0, 0, 0]], [[0, 0], [1, 1]], [[0, 0, "x"], [1, 1, 1]]])
def test_a_ruler_without_two_points_is_refused(visitor, points):
    assert visitor.post("/api/ruler", {"shape": MEAN, "points": points}).status == 400


def test_visits_are_compared_with_each_other(visitor, patient):
    answer = visitor.post("/api/compare", {"shape": MEAN, "other": {"kind": "case", "scan": patient[1]}})
    assert answer.status == 200
    assert (
        visitor.post("/api/compare", {"shape": MEAN, "other": {"kind": "case", "scan": "u0"}}).status == 409
    )


def test_an_answer_is_about_the_scan_that_the_page_showed_when_it_asked(patient, folder):
    visitor, scan = patient
    shape = {"shape": {"kind": "patient"}}
    wanted = visitor.post("/api/shape", shape).content
    other = visitor.ask("POST", "/api/scans?name=other.ply", (folder / "scan.ply").read_bytes()).json["scan"]
    assert (
        visitor.post("/api/shape", shape).status == 409
    )  # nobody is registered of the scan that is worked on now
    assert visitor.ask("POST", "/api/shape", shape, X_Scan=scan).content == wanted
    assert visitor.get(f"/api/scans/{scan}/result").status == 200
    assert visitor.ask("GET", "/api/state", X_Scan=scan).json["scan"] == other
    assert visitor.ask("POST", "/api/shape", shape, X_Scan="gone").json["code"] == "no-scan"
    # A job, too, goes on with the scan of its request: a page to take home is never that of the next patient.
    made = visitor.ask(
        "POST", "/api/download/handout", {"shape": {"kind": "patient"}, "paper": "A4"}, X_Scan=scan
    ).json
    while made["state"] == "running":
        made = visitor.get(f"/api/jobs/{made['job']}").json
    assert made["state"] == "done", made
    assert made["result"]["name"].startswith("scan-handout")
    assert visitor.ask("DELETE", f"/api/scans/{other}").status == 204
    visitor.post("/api/cases", {"scan": scan})
