"""Picking landmarks: clicks on the skin, the lowest point of a hanging breast, doubts, the folder's queue."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace

import numpy as np
import pytest

from breastmorph.explorer.answers import RequestProblem
from breastmorph.explorer.folders import ScanQueue
from breastmorph.explorer.picking import landmark_warnings, most_caudal, pick, rings
from breastmorph.explorer.picks import ORDER, Picks, guide
from breastmorph.explorer.proposing import Proposal
from breastmorph.explorer.reading import clustered, guessed_pose, shown_scan
from breastmorph.explorer.settings import Settings
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.messages import note
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.mesh.triangle_mesh import Texture, TriangleMesh
from breastmorph.model.files import save_model
from breastmorph.scan.check import find_scans, load_scan
from breastmorph.scan.finder import FoundLandmarks
from breastmorph.scan.landmark_files import load_landmarks
from breastmorph.scan.scan import OPTIONAL, REQUIRED, Found, Landmarks
from explorer_client import Visitor, running
from torso import torso


def ray_at(point, towards=(0.0, 0.0, -1.0), away=300.0) -> dict:
    direction = np.array(towards)
    return {"origin": (np.asarray(point) - away * direction).tolist(), "direction": direction.tolist()}


def hanging_ball(n: int = 60) -> TriangleMesh:
    """A half ball of 50 mm on a wall: its lowest point is known."""
    polar, around = np.meshgrid(np.linspace(0.02, np.pi - 0.02, n), np.linspace(-1.5, 1.5, n), indexing="ij")
    vertices = 50.0 * np.column_stack(
        [
            (np.sin(polar) * np.sin(around)).ravel(),
            np.cos(polar).ravel(),
            (np.sin(polar) * np.cos(around)).ravel(),
        ]
    )
    a = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = np.concatenate([np.column_stack([a, a + n, a + 1]), np.column_stack([a + 1, a + n, a + n + 1])])
    return TriangleMesh(vertices, faces)


def test_a_click_lands_on_the_full_surface():
    mesh, landmarks = torso(edge=4.0)
    target = landmarks["nipple_left"]
    found = pick(Surface(mesh), Picks(), {"landmark": "nipple_left", "ray": ray_at(target)})
    assert np.linalg.norm(found.point - target) < 1.0
    assert found.front[2] > 0.5
    assert found.moved == 0.0


def test_a_click_through_a_hole_does_not_land_on_the_inside():
    mesh, landmarks = torso(edge=10.0)
    behind = {"landmark": "xiphoid", "ray": ray_at(landmarks["xiphoid"], (0.0, 0.0, 1.0))}
    for surface in (Surface(mesh), Surface(mesh.flipped())):  # also of a file that is inside out
        with pytest.raises(RequestProblem, match="inside"):
            pick(surface, Picks(), behind)
        front = pick(surface, Picks(), {"landmark": "xiphoid", "ray": ray_at(landmarks["xiphoid"])})
        assert front.front[2] > 0.5


def test_a_lower_pole_goes_to_the_lowest_point_of_what_hangs():
    surface = Surface(hanging_ball())
    click = {"landmark": "lower_pole_left", "ray": ray_at([3.0, -48.0, 0.0])}
    found = pick(surface, Picks(), click)
    assert found.moved > 0.5
    assert found.point[1] < -49.0
    assert pick(surface, Picks(), click | {"snap": False}).moved == 0.0


def test_where_the_skin_only_runs_on_the_click_stays():
    x, y = np.meshgrid(np.linspace(-80, 80, 40), np.linspace(-80, 80, 40))
    flat = np.column_stack([x.ravel(), y.ravel(), 0.1 * y.ravel()])
    a = (np.arange(39)[:, None] * 40 + np.arange(39)).ravel()
    faces = np.concatenate([np.column_stack([a, a + 1, a + 41]), np.column_stack([a, a + 41, a + 40])])
    surface = Surface(TriangleMesh(flat, faces))
    assert most_caudal(surface, np.zeros(3), np.array([0.0, 1.0, 0.0])) is None


def all_picked(names=ORDER) -> Picks:
    mesh, landmarks = torso(edge=5.0)
    surface, picks = Surface(mesh), Picks()
    for name in names:
        if name in landmarks:
            click = {"landmark": name, "ray": ray_at(landmarks[name]), "snap": False}
            found = pick(surface, picks, click) if not name.startswith("lateral") else None
            point = landmarks[name] if found is None else found.point
            picks = picks.placed(name, point, None if found is None else found.front)
    return picks


def test_the_guide_leads_through_all_landmarks():
    assert [one["name"] for one in guide()][: len(REQUIRED)] == [name for name in ORDER if name in REQUIRED]
    assert all(one["label"] and one["text"] for one in guide())
    picks = all_picked()
    assert picks.complete
    assert picks.next == OPTIONAL[0]
    assert not landmark_warnings(picks, 400.0)


def test_swapped_sides_are_noticed_at_the_first_nipple():
    picks = all_picked(("sternal_notch", "xiphoid", "nipple_right"))
    assert not landmark_warnings(picks, 400.0)
    wrong = picks.swapped()
    assert [one["code"] for one in landmark_warnings(wrong, 400.0)] == ["sides-swapped"]
    assert not landmark_warnings(wrong.swapped(), 400.0)


def test_a_sternum_of_no_adult_is_doubted():
    picks = all_picked(("sternal_notch", "xiphoid"))
    near = picks.placed("xiphoid", picks.points["sternal_notch"] - [0.0, 30.0, 0.0])
    assert [one["code"] for one in landmark_warnings(near, 400.0)] == ["implausible-anatomy"]


def test_steps_can_be_undone_and_a_side_can_be_absent():
    picks = all_picked()
    one_sided = picks.without_side("left")
    assert one_sided.complete
    assert "nipple_left" not in one_sided.points
    assert one_sided.undone() is picks or dict(one_sided.undone().points) == dict(picks.points)
    many = picks
    for step in range(200):
        many = many.placed("xiphoid", np.array([0.0, 0.0, float(step)]))
    depth = 0
    while many.previous is not None:
        many, depth = many.previous, depth + 1
    assert 20 < depth < 100  # a long day must not fill the memory


@pytest.mark.parametrize(
    "asked",
    [
        {"ray": ray_at([0, 0, 0])},
        {"landmark": "elbow", "ray": ray_at([0, 0, 0])},
        {"landmark": "xiphoid"},
        {"landmark": "xiphoid", "ray": {"origin": [0, 0, 1], "direction": [0, 0, 0]}},
        {"landmark": "xiphoid", "ray": ray_at([0, 0, 0], (0.0, 1.0, 0.0), -5000.0)},
        {"landmark": "xiphoid", "ray": 7},
        {"landmark": "xiphoid", "ray": {"origin": ["a", 0, 0], "direction": [0, 0, -1]}},
    ],
)
def test_clicks_beside_the_scan_are_refused(asked):
    with pytest.raises(RequestProblem):
        pick(Surface(torso(edge=20.0)[0]), Picks(), asked)


@pytest.mark.parametrize(
    ("turn", "scale"),
    [(np.eye(3), 1.0), (rotation_about([1, 0, 0], 90.0), 0.001), (rotation_about([0, 1, 0], 180.0), 0.1)],
)
def test_a_scan_is_shown_upright_from_the_front_in_mm(turn, scale):
    mesh, landmarks = torso(edge=10.0)
    moved = Similarity(turn, np.array([5.0, 2.0, 1.0]), scale)
    read = shown_scan(mesh.with_vertices(moved.apply(mesh.vertices)), 10**6)
    shown = read.to_file.inverse().apply(moved.apply(landmarks.points))
    offset = shown - landmarks.points
    assert np.abs(offset - offset.mean(axis=0)).max() < 1e-6


def test_a_huge_scan_is_shown_with_fewer_triangles_but_picked_in_full():
    mesh, _ = torso(edge=2.0)
    uv = np.random.default_rng(0).uniform(size=(mesh.n_faces, 3, 2))
    textured = TriangleMesh(mesh.vertices, mesh.faces, texture=Texture(uv, b"\x89PNG"))
    read = shown_scan(textured, 8000)
    assert len(read.faces) <= 8000
    assert read.mesh.n_faces == mesh.n_faces
    assert read.uv is not None
    assert len(read.uv) == len(read.vertices)
    few = clustered(mesh, 8000)
    assert Surface(mesh).closest(few.vertices).distances.max() < 1e-6
    assert few.n_faces > 3000


# --- over HTTP --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model_file(tmp_path_factory, breast_model):
    path = tmp_path_factory.mktemp("model") / "model.h5"
    save_model(breast_model, path)
    return path


@pytest.fixture
def folder(tmp_path):
    return three_scans(tmp_path / "clinic")


def three_scans(home):
    """A folder of scans without landmarks, lying on their back in metres."""
    home.mkdir()
    for k in range(3):
        mesh, _ = torso(edge=6.0, size=0.8 + 0.1 * k)
        save_mesh(mesh.with_vertices(lying().apply(mesh.vertices)), home / f"torso {k}.ply")
    return home


def lying() -> Similarity:
    return Similarity(rotation_about([1, 0, 0], 90.0), np.array([0.1, 0.2, 0.3]), 0.001)


def place(visitor, scan: str, to_shown: Similarity, size: float, names=REQUIRED) -> dict:
    _, landmarks = torso(edge=6.0, size=size)
    for name in names:
        click = {"landmark": name, "ray": shown_ray(to_shown, landmarks[name])}
        state = visitor.post(f"/api/scans/{scan}/pick", click).json
        assert state["moved_mm"] < 30.0
    return state


def shown_ray(to_shown: Similarity, point) -> dict:
    """From outside to a point of the torso, whose axis is its y axis."""
    inwards = to_shown.rotation @ (np.array([0.0, point[1], 0.0]) - point)
    return ray_at(to_shown.apply(point), inwards / np.linalg.norm(inwards))


def shown_from_torso(visitor, scan: str, mesh_size: float) -> Similarity:
    """From the torso's own frame to the coordinates in which the server shows it."""
    mesh, _ = torso(edge=6.0, size=mesh_size)
    shown = visitor.get(f"/api/scans/{scan}/geometry").arrays["vertices"].astype(float)
    return Similarity.fit(mesh.vertices, shown)


@pytest.mark.slow
def test_the_queue_is_saved_after_every_click_and_taken_up_again(folder, model_file):
    settings = Settings(model=model_file, folder=folder, propose=False)
    with running(settings) as explorer:
        visitor = Visitor.of(explorer)
        assert visitor.get("/api/state").json["queue"]
        queue = visitor.get("/api/queue").json
        assert [row["name"] for row in queue["scans"]] == ["torso 0", "torso 1", "torso 2"]
        first, second = (row["scan"] for row in queue["scans"][:2])
        to_shown = shown_from_torso(visitor, first, 0.8)
        assert to_shown.scale == pytest.approx(1.0, abs=1e-3)
        assert visitor.post("/api/queue/register").json["code"] == "nothing-ready"
        place(visitor, first, to_shown, 0.8, ("sternal_notch", "xiphoid"))
        saved = json.loads((folder / "landmarks" / "torso 0.json").read_bytes())
        _, truth = torso(edge=6.0, size=0.8)
        assert np.linalg.norm(np.array(saved["xiphoid"]) - lying().apply(truth["xiphoid"])) < 0.003
        place(visitor, second, shown_from_torso(visitor, second, 0.9), 0.9)
        state = visitor.post(f"/api/scans/{second}/absent", {"side": "left"}).json
        assert state["complete"]
    with running(settings) as explorer:
        visitor = Visitor.of(explorer)
        rows = visitor.get("/api/queue").json["scans"]
        assert [row["status"] for row in rows] == ["started", "done", "todo"]
        state = visitor.get(f"/api/scans/{rows[0]['scan']}").json
        assert state["next"] == "nipple_left"
        again = visitor.get(f"/api/scans/{rows[1]['scan']}").json
        assert again["absent_side"] == "left"
        assert again["complete"]
        assert len(again["landmarks"]) == 5
    assert sorted(path.name for path in folder.iterdir()) == [
        "landmarks",
        "torso 0.ply",
        "torso 1.ply",
        "torso 2.ply",
    ]


@pytest.mark.slow
def test_check_and_register_go_straight_from_the_queue(folder, model_file):
    with running(Settings(model=model_file, folder=folder, propose=False)) as explorer:
        visitor = Visitor.of(explorer)
        key = visitor.get("/api/queue").json["scans"][0]["scan"]
        to_shown, (_, landmarks) = shown_from_torso(visitor, key, 0.8), torso(edge=6.0, size=0.8)
        place(visitor, key, to_shown, 0.8)
        checked = visitor.job("/api/queue/check")
        assert [one["verdict"] for one in checked["result"]["checks"]] == ["usable"]
        done = visitor.job("/api/queue/register")
        assert done["state"] == "done", done
        assert done["result"]["registered"][0]["error"] is None
        assert visitor.get("/api/queue").json["scans"][0]["registered"]
        patient = visitor.post(f"/api/scans/{key}/use").json
        assert patient["residual"]["mean_mm"] < 2.0
        result = visitor.get(f"/api/scans/{key}/result").arrays
        shown = visitor.get(f"/api/scans/{key}/geometry").arrays
        assert np.abs(result["vertices"].mean(axis=0) - shown["vertices"].mean(axis=0)).max() < 60.0
        # With another landmark it is registered anew, and that is what is used then.
        click = {"landmark": "xiphoid", "ray": shown_ray(to_shown, landmarks["xiphoid"] - [0.0, 8.0, 0.0])}
        assert visitor.post(f"/api/scans/{key}/pick", click).status == 200
        assert visitor.job("/api/queue/register")["state"] == "done"
        visitor.post(f"/api/scans/{key}/use")
        again = visitor.get(f"/api/scans/{key}/result").arrays
        assert np.abs(again["vertices"] - result["vertices"]).max() > 0.1
    assert (folder / "registration" / "summary.csv").is_file()
    found = find_scans(folder, folder / "landmarks")
    assert load_scan(found[0].mesh, found[0].landmarks[0]).landmarks.complete_sides == ("left", "right")


# Landmark files that lie there before, none of which is understood whole.
ODD = {1: '{"xiphoid": [1, 2', 2: '{"xiphoid": [0.1, 0.2, 0.3], "clavicle_left": [0.1, 0.2, 0.3]}'}


@pytest.fixture(scope="module")
def queue(tmp_path_factory, model_file):
    """A folder, and a tab of its explorer; every test has a scan of its own in it."""
    home = three_scans(tmp_path_factory.mktemp("queue") / "clinic")
    (home / "landmarks").mkdir()
    for k, content in ODD.items():
        (home / "landmarks" / f"torso {k}.json").write_text(content, encoding="utf-8")
        (home / "landmarks" / f"torso {k}.json").chmod(0o600)
    with running(Settings(model=model_file, folder=home, propose=False)) as explorer:
        yield home, Visitor.of(explorer)


@pytest.mark.slow
def test_a_click_cannot_be_lost_by_undo_and_swap(queue):
    folder, visitor = queue
    key = visitor.get("/api/queue").json["scans"][0]["scan"]
    to_shown = shown_from_torso(visitor, key, 0.8)
    place(visitor, key, to_shown, 0.8, ("sternal_notch", "nipple_left"))
    state = visitor.post(f"/api/scans/{key}/swap").json
    assert set(state["landmarks"]) == {"sternal_notch", "nipple_right"}
    state = visitor.post(f"/api/scans/{key}/undo").json
    assert set(state["landmarks"]) == {"sternal_notch", "nipple_left"}
    saved = load_landmarks(folder / "landmarks" / "torso 0.json")
    assert set(saved) == {"sternal_notch", "nipple_left"}
    assert visitor.post(f"/api/scans/{key}/skip", {"landmark": "xiphoid"}).json["code"] == "needed"
    assert visitor.post(f"/api/scans/{key}/absent", {"side": "both"}).status == 400


@pytest.mark.slow
def test_an_unreadable_scan_is_marked_and_a_click_stays_with_its_scan(folder, model_file):
    (folder / "bad.ply").write_bytes(b"ply\nformat binary_little_endian 1.0\nelement vertex 9\nend_header\n")
    with running(Settings(model=model_file, folder=folder, propose=False)) as explorer:
        visitor = Visitor.of(explorer)
        rows = {row["name"]: row for row in visitor.get("/api/queue").json["scans"]}
        bad, first, second = (rows[name]["scan"] for name in ("bad", "torso 0", "torso 1"))
        to_shown = shown_from_torso(visitor, first, 0.8)
        _, landmarks = torso(edge=6.0, size=0.8)
        click = {"landmark": "xiphoid", "ray": shown_ray(to_shown, landmarks["xiphoid"])}
        assert visitor.get(f"/api/scans/{bad}").status == 422
        assert visitor.post(f"/api/scans/{bad}/pick", click | {"scan": first}).status == 422
        assert visitor.post(f"/api/scans/{second}/pick", click | {"scan": first}).json["code"] == "other-scan"
        assert not (folder / "landmarks").exists()
        assert visitor.post(f"/api/scans/{first}/pick", click | {"scan": first}).status == 200
        status = {row["name"]: row["status"] for row in visitor.get("/api/queue").json["scans"]}
        assert status == {"bad": "unreadable", "torso 0": "started", "torso 1": "todo", "torso 2": "todo"}
        checks = visitor.job("/api/queue/check")["result"]["checks"]
        # What nobody set yet the check finds by itself.
        assert {one["name"]: one["verdict"] for one in checks} == {"bad": "refused", "torso 0": "usable"}
        said = json.dumps(checks)
        assert "--" not in said
        verdicts = {row["name"]: row["verdict"] for row in visitor.get("/api/queue").json["scans"]}
        assert verdicts["torso 0"] == "usable"
        visitor.post(f"/api/scans/{first}/undo")
        assert visitor.get("/api/queue").json["scans"][1]["verdict"] == ""  # it was about other points


def test_a_coracoid_is_bone_and_stays_when_a_breast_is_missing():
    picks = all_picked().placed("coracoid_left", np.zeros(3)).without_side("left")
    assert "coracoid_left" in picks.points
    assert "nipple_left" not in picks.points
    assert not next(one for one in guide() if one["name"] == "coracoid_left")["of_breast"]


def test_a_pose_guess_needs_no_scan_to_be_a_torso():
    triangle = TriangleMesh(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))
    assert np.isfinite(guessed_pose(triangle).apply(triangle.vertices)).all()


@pytest.mark.parametrize(("k", "content"), ODD.items())
def test_a_landmark_file_that_is_not_understood_whole_is_not_lost(queue, k, content):
    folder, visitor = queue
    key, size = visitor.get("/api/queue").json["scans"][k]["scan"], 0.8 + 0.1 * k
    place(visitor, key, shown_from_torso(visitor, key, size), size, ("sternal_notch", "nipple_left"))
    assert (folder / "landmarks" / f"torso {k}.json.before").read_text(encoding="utf-8") == content
    assert "sternal_notch" in load_landmarks(folder / "landmarks" / f"torso {k}.json")
    kept = [file for file in (folder / "landmarks").iterdir() if file.name.startswith(f"torso {k}.")]
    assert len(kept) == 2
    if os.name == "posix":  # whom it was closed to, it stays closed to
        assert [file.stat().st_mode & 0o777 for file in kept] == [0o600, 0o600]


# --- what the program proposes ----------------------------------------------------------------------------------------


def found_on_torso(*doubtful: str, without: str = "") -> Landmarks:
    """The torso's landmarks as if the program had found them, 5 mm sure across and 10 mm upwards."""
    _, marks = torso(edge=20.0)
    names = [name for name in marks if not without or not name.endswith(without)]
    spread = np.diag([25.0, 100.0, 25.0])
    found = {name: Found("shape", 8.0, spread, name in doubtful) for name in names}
    return replace(marks.only(names), found=found)


def test_what_a_person_sets_or_confirms_is_told_from_what_was_found():
    picks = Picks().placed("xiphoid", np.array([1.0, 2.0, 3.0]))
    picks = picks.proposed(found_on_torso("nipple_left", "lower_pole_right", "xiphoid"), "")
    assert picks.points["xiphoid"].tolist() == [1.0, 2.0, 3.0]  # somebody was faster
    assert "xiphoid" not in picks.found
    assert picks.complete
    assert not picks.confirmed
    assert picks.next == "nipple_left"  # what is doubtful is asked first
    moved = picks.placed("nipple_left", np.zeros(3))
    assert "nipple_left" not in moved.found
    assert set(moved.placed_by_hand) == {"xiphoid", "nipple_left"}
    assert moved.next == "lower_pole_right"
    one = moved.confirming("lower_pole_right")
    assert one.next is None
    assert not one.confirmed
    assert one.confirming().confirmed
    assert one.found["lower_pole_right"].sd == 8.0  # as sure as it was
    assert one.undone().next == "lower_pole_right"
    assert "nipple_right" not in moved.swapped().found  # what was moved by hand is the other side's now


def test_a_side_without_a_breast_is_taken_over_unless_somebody_set_a_point_there():
    marks = found_on_torso(without="left")
    assert Picks().proposed(marks, "left").absent_side == "left"
    assert Picks().proposed(marks, "left").complete
    assert not Picks().placed("nipple_left", np.zeros(3)).proposed(marks, "left").absent_side
    assert Picks.given(marks).absent_side == "left"  # as the program writes it into a file


def test_a_ring_on_the_skin_shows_how_sure_a_landmark_is():
    mesh, _ = torso(edge=4.0)
    marks, surface = found_on_torso("xiphoid"), Surface(mesh)
    said = rings(surface, marks.only(("xiphoid", "nipple_left")))
    ring = np.array(said["xiphoid"]["ring"])
    assert surface.closest(ring).distances.max() < 1.5
    away = np.abs(ring - marks["xiphoid"]).max(axis=0)
    assert away[0] == pytest.approx(1.96 * 5.0, abs=1.0)
    assert away[1] == pytest.approx(1.96 * 10.0, abs=2.0)
    assert said["xiphoid"]["mm"] == pytest.approx(1.96 * 8.0)
    assert [one["doubtful"] for one in said.values()] == [True, False]
    assert rings(surface, replace(marks, found={})) == {}
    hidden = replace(marks, points=marks.points - [0.0, 0.0, 40.0])  # as a fold behind a breast
    behind = np.array(rings(surface, hidden)["xiphoid"]["ring"])
    np.testing.assert_allclose(behind.mean(axis=0), hidden["xiphoid"], atol=0.1)


def test_a_scan_that_lies_on_its_side_is_turned_upright():
    axes = rotation_about([0, 0, 1], 90.0)
    turn = Proposal(FoundLandmarks(Landmarks.of({}), axes=axes)).turn(Similarity())
    np.testing.assert_allclose(np.reshape(turn, (3, 3)), axes)
    leaning = FoundLandmarks(Landmarks.of({}), axes=rotation_about([1, 0, 0], 10.0))
    assert Proposal(leaning).turn(Similarity()) is None


def test_a_folder_is_sorted_by_doubt_and_the_rest_confirmed_at_once(folder):
    (folder / "torso 3.ply").write_bytes((folder / "torso 2.ply").read_bytes())
    queue = ScanQueue.of(folder)
    first, second, third, last = queue.scans

    def broken(path):
        raise FileProblem("the file breaks off", "Copy it again", path)

    queue.take_proposal(first, lambda _: Proposal(FoundLandmarks(found_on_torso())))
    queue.take_proposal(second, lambda _: Proposal(FoundLandmarks(found_on_torso("xiphoid", "nipple_left"))))
    queue.take_proposal(third, lambda _: Proposal(refused=note("not-a-torso", "no torso")))
    assert queue.take_proposal(last, broken) is None
    rows = [(row["name"], row["status"], row["doubt"]) for row in queue.rows()]
    assert rows == [
        ("torso 2", "todo", len(REQUIRED)),
        ("torso 1", "proposed", 2),
        ("torso 0", "proposed", 0),
        ("torso 3", "unreadable", 0),
    ]
    assert not any(map(queue.lacks_proposal, queue.scans))
    assert not (folder / "landmarks").exists()  # nothing is written before somebody says yes
    assert queue.accept_sure() == 1
    assert [file.name for file in (folder / "landmarks").iterdir()] == ["torso 0.json"]
    kept = load_landmarks(folder / "landmarks" / "torso 0.json")
    assert set(kept.found) == set(REQUIRED)
    assert {row["name"]: row["status"] for row in queue.rows()}["torso 0"] == "done"
    os.utime(queue.scans[second].mesh, ns=(1, 1))  # exported again: it was about another surface
    assert queue.lacks_proposal(second)


@pytest.fixture(scope="module")
def proposed(tmp_path_factory, model_file):
    """A folder of scans in which the program has looked for landmarks, with its explorer."""
    home = three_scans(tmp_path_factory.mktemp("proposed") / "clinic")
    (home / "torso 2.ply").unlink()
    save_mesh(hanging_ball(), home / "ball.ply")
    with running(Settings(model=model_file, folder=home)) as explorer:
        visitor, end = Visitor.of(explorer), time.monotonic() + 120
        while visitor.get("/api/queue").json["proposing"]["state"] != "done" and time.monotonic() < end:
            time.sleep(0.1)
        visitor.leave()  # whoever waited for it is gone; what was found is not
        yield home, explorer


@pytest.mark.slow
def test_all_scans_of_a_folder_are_proposed_in_the_background(proposed):
    folder, explorer = proposed
    visitor = Visitor.of(explorer)
    queue = visitor.get("/api/queue").json
    assert queue["proposing"] == {"state": "done", "left": 0}
    rows = {row["name"]: row for row in queue["scans"]}
    assert rows["ball"]["doubt"] == len(REQUIRED)
    assert queue["scans"][0]["name"] == "ball"
    ball = visitor.get(f"/api/scans/{rows['ball']['scan']}").json
    assert ball["proposal"]["refused"]["message"]
    assert ball["landmarks"] == {}
    assert ball["next"] == "sternal_notch"  # by hand, as ever
    state = visitor.get(f"/api/scans/{rows['torso 0']['scan']}").json
    _, truth = torso(edge=6.0, size=0.8)
    to_shown = shown_from_torso(visitor, rows["torso 0"]["scan"], 0.8)
    off = np.array(state["landmarks"]["nipple_left"]) - to_shown.apply(truth["nipple_left"])
    assert np.linalg.norm(off) < 15.0
    assert set(state["found"]) >= set(REQUIRED)
    assert not state["confirmed"]
    assert not (folder / "landmarks").exists()
    visitor.leave()


@pytest.mark.slow
def test_a_proposed_landmark_that_is_moved_is_set_and_the_others_stay_found(proposed):
    folder, explorer = proposed
    visitor = Visitor.of(explorer)
    key = next(row["scan"] for row in visitor.get("/api/queue").json["scans"] if row["name"] == "torso 1")
    to_shown, (_, truth) = shown_from_torso(visitor, key, 0.9), torso(edge=6.0, size=0.9)
    wrong = truth["nipple_right"] + [0.0, 40.0, 0.0]
    click = {"landmark": "nipple_right", "ray": shown_ray(to_shown, wrong)}
    state = visitor.post(f"/api/scans/{key}/pick", click).json
    assert "nipple_right" not in state["found"]
    assert "landmark-improbable" in [one["code"] for one in state["warnings"]]
    state = visitor.post(f"/api/scans/{key}/confirm").json
    assert state["confirmed"]
    assert state["next"] is None
    content = json.loads((folder / "landmarks" / "torso 1.json").read_bytes())
    assert content["found"]["nipple_right"] == "set"
    assert content["found"]["nipple_left"] != "set"
    assert content["doubtful"] == []
    assert content["uncertainty"]["nipple_left"] > 0.5
    rows = {row["name"]: row for row in visitor.get("/api/queue").json["scans"]}
    assert (rows["torso 1"]["status"], rows["torso 1"]["doubt"]) == ("done", 0)
    findings = visitor.job("/api/queue/check")["result"]["checks"][0]["findings"]
    told = next(one for one in findings if one["code"] == "landmark-improbable")
    assert (told["level"], "right nipple" in told["message"].lower()) == ("warning", True)
    assert visitor.post(f"/api/scans/{key}/confirm", {"landmark": "elbow"}).status == 400
    visitor.leave()


@pytest.mark.slow
def test_the_background_can_be_stopped_and_goes_on(proposed):
    _, explorer = proposed
    visitor, queue = Visitor.of(explorer), explorer.folders.first
    visitor.post("/api/queue/propose", {"on": False})
    key = next(key for key, files in queue.scans.items() if files.id == "ball")
    known = queue.proposals.pop(key)
    assert visitor.get("/api/queue").json["proposing"] == {"state": "stopped", "left": 1}
    assert visitor.post("/api/queue/propose", {"on": "yes"}).status == 400
    assert visitor.post("/api/queue/propose", {"on": True}).json["proposing"]["state"] == "running"
    end = time.monotonic() + 60
    while explorer.folders.background(queue).state != "done" and time.monotonic() < end:
        time.sleep(0.05)
    assert queue.proposal(key).refused == known[0].refused
    visitor.leave()


@pytest.mark.slow
def test_an_uploaded_scan_is_proposed_in_a_job(proposed):
    _, explorer = proposed
    visitor = Visitor.of(explorer)
    content = (explorer.folders.first.folder / "torso 0.ply").read_bytes()
    scan = visitor.ask("POST", "/api/scans?name=torso.ply", content).json
    assert scan["proposal"] is None
    done = visitor.job(f"/api/scans/{scan['scan']}/propose")
    assert done["state"] == "done", done
    assert set(done["result"]["found"]) >= set(REQUIRED)
    assert visitor.post(f"/api/scans/{scan['scan']}/undo").json["landmarks"] == {}  # and by hand
    visitor.leave()


def test_who_wants_no_proposals_gets_none(queue):
    _, visitor = queue
    record = visitor.get("/api/queue").json
    assert record["proposing"] is None
    assert not visitor.get("/api/state").json["propose"]
    answer = visitor.post(f"/api/scans/{record['scans'][0]['scan']}/propose")
    assert (answer.status, answer.json["code"]) == (409, "by-hand")
