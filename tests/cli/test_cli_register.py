"""`breastmorph register`: the output contract, second runs, failures, the user's own template."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial.transform import Rotation

from breastmorph.cli import main
from breastmorph.cli.stopping import ended_like_ctrl_c
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import Landmarks
from torso import torso

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX systems")
ONE = {"scans": "scans/a.ply", "landmarks": "landmarks/a.json"}  # one scan of the cohort


@pytest.fixture
def cohort(tmp_path):
    """Two scans (one of them in metres), a broken one, and a small template."""
    for name in ("scans", "landmarks"):
        (tmp_path / name).mkdir()
    for name, size, scale in (("a", 0.8, 1.0), ("b", 1.2, 0.001)):
        mesh, landmarks = torso(edge=6, size=size)
        move = Similarity(translation=np.array([10.0, 20.0, 30.0]) * scale, scale=scale)
        save_mesh(mesh.with_vertices(move.apply(mesh.vertices)), tmp_path / "scans" / f"{name}.ply")
        save_landmarks(landmarks.transformed(move), tmp_path / "landmarks" / f"{name}.json")
    (tmp_path / "scans" / "broken.ply").write_bytes(b"ply\nformat ascii 1.0\n")
    mesh, landmarks = torso(edge=11)
    save_mesh(mesh, tmp_path / "template.ply")
    save_landmarks(landmarks, tmp_path / "template.json")
    return tmp_path


def arguments(folder, *more, scans="scans", landmarks="landmarks", out="out", jobs="1"):
    """The command with the user's own template."""
    places = {
        "--landmarks": landmarks,
        "--template": "template.ply",
        "--template-landmarks": "template.json",
        "--out": out,
    }
    options = [part for option, name in places.items() for part in (option, str(folder / name))]
    return ["register", str(folder / scans), *options, "--jobs", jobs, *more]


def invoke(folder, *more, **places):
    return CliRunner().invoke(main, arguments(folder, *more, **places))


def run(folder, *more, **places):
    result = invoke(folder, *more, "--json", **places)
    assert result.exit_code in (0, 1, 2), result.output
    return result.exit_code, json.loads(result.stdout)


def test_a_batch_goes_on_and_every_scan_keeps_its_own_frame(cohort):
    code, report = run(cohort)
    assert code == 1
    assert report["counts"] == {"registered": 2, "unchanged": 0, "failed": 1}
    template = load_mesh(cohort / "template.ply")
    for name, allowed in (("a", 0.5), ("b", 0.0005)):
        registered = load_mesh(cohort / "out" / "registered" / f"{name}.ply")
        assert np.array_equal(registered.faces, template.faces)
        found = Surface(load_mesh(cohort / "scans" / f"{name}.ply")).closest(registered.vertices)
        assert found.distances[~found.on_boundary].mean() < allowed
        record = json.loads((cohort / "out" / "registered" / f"{name}.json").read_text())
        assert {"metrics", "seconds", "parameters", "inputs", "template", "version"} <= set(record)
    broken = next(scan for scan in report["scans"] if scan["id"] == "broken")
    assert "broken.ply" in broken["message"]
    with open(cohort / "out" / "summary.csv") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert rows["broken"]["status"] == "failed"
    assert float(rows["a"]["distance_inside"]) < 0.5


@pytest.mark.slow
def test_a_second_run_does_only_what_is_missing_or_changed(cohort):
    run(cohort)
    first = (cohort / "out" / "registered" / "a.ply").read_bytes()
    _, again = run(cohort)
    assert again["counts"]["unchanged"] == 2
    (cohort / "out" / "registered" / "a.ply").unlink()
    _, landmarks = torso(edge=6, size=1.2)
    save_landmarks(
        landmarks.transformed(Similarity(translation=np.full(3, 20.0))), cohort / "landmarks" / "b.json"
    )
    _, third = run(cohort)
    status = {scan["id"]: scan["status"] for scan in third["scans"]}
    assert status["a"] == "registered"
    assert status["b"] != "unchanged"
    assert (cohort / "out" / "registered" / "a.ply").read_bytes() == first  # the same input, bit for bit
    _, other = run(cohort, "--no-mask")
    assert next(scan for scan in other["scans"] if scan["id"] == "a")["status"] == "registered"


def test_nothing_registered_is_exit_code_two(cohort):
    for name in ("a", "b"):
        (cohort / "scans" / f"{name}.ply").unlink()
    code, report = run(cohort)
    assert code == 2
    assert report["counts"]["failed"] == 1


def test_a_template_needs_its_landmarks(cohort):
    given = ["register", str(cohort / "scans"), "--out", str(cohort / "out")]
    result = CliRunner().invoke(main, [*given, "--template", str(cohort / "template.ply")])
    assert result.exit_code == 2
    assert "--template-landmarks" in result.output
    result = CliRunner().invoke(main, [*given, "--template-coarse", str(cohort / "template.ply")])
    assert result.exit_code == 2
    assert "--template-coarse belongs to --template" in result.output


@pytest.mark.slow
def test_pose_and_unit_of_the_file_do_not_matter(cohort):
    mesh, landmarks = torso(edge=6, size=0.8)
    rotation = Rotation.from_euler("xyz", [70, 25, 130], degrees=True).as_matrix()
    move = Similarity(rotation, np.array([1.0, -2.0, 3.0]), 0.001)  # turned, shifted, in metres
    (cohort / "both").mkdir()
    save_mesh(mesh.with_vertices(move.apply(mesh.vertices)), cohort / "both" / "turned.ply")
    save_landmarks(landmarks.transformed(move), cohort / "landmarks" / "turned.json")
    save_mesh(mesh, cohort / "both" / "plain.ply")
    save_landmarks(landmarks, cohort / "landmarks" / "plain.json")
    run(cohort, scans="both")
    plain = load_mesh(cohort / "out" / "registered" / "plain.ply").vertices
    turned = load_mesh(cohort / "out" / "registered" / "turned.ply").vertices
    assert np.linalg.norm(move.inverse().apply(turned) - plain, axis=1).max() < 0.1


@pytest.mark.slow
def test_the_landmarks_of_another_scan_are_refused(cohort):
    _, landmarks = torso(edge=6, size=0.8)
    other = Landmarks.of(
        {n: p + ((0, 0, 45) if n.startswith("nipple") else (0, 12, 0)) for n, p in landmarks.items()}
    )
    save_landmarks(other, cohort / "landmarks" / "a.json")
    _, report = run(cohort)
    scan = next(scan for scan in report["scans"] if scan["id"] == "a")
    assert scan["status"] == "failed"
    assert "off the surface" in scan["message"]


@pytest.mark.slow
def test_a_result_whose_scan_now_fails_does_not_stay(cohort):
    run(cohort)
    (cohort / "landmarks" / "a.json").write_text("{")
    _, report = run(cohort)
    assert next(scan for scan in report["scans"] if scan["id"] == "a")["status"] == "failed"
    assert not (cohort / "out" / "registered" / "a.ply").exists()
    assert (cohort / "out" / "superseded" / "a.ply").exists()


@pytest.mark.slow
def test_one_folder_holds_one_template_and_a_summary_of_all(cohort):
    run(cohort)
    code, _ = run(cohort, **ONE)
    assert code == 0
    with open(cohort / "out" / "summary.csv") as file:
        assert [row["id"] for row in csv.DictReader(file)] == ["a", "b", "broken"]
    mesh, landmarks = torso(edge=8)
    save_mesh(mesh, cohort / "template.ply")
    save_landmarks(landmarks, cohort / "template.json")
    result = invoke(cohort, **ONE)
    assert result.exit_code == 2
    assert "another template" in result.output


@pytest.mark.slow
def test_a_sheet_never_shows_an_older_result(cohort):
    sheet = cohort / "out" / "sheets" / "a.png"
    run(cohort, "--quality-sheet", **ONE)
    assert sheet.stat().st_size > 10_000
    run(cohort, "--no-mask", **ONE)
    assert not sheet.exists()
    _, report = run(cohort, "--no-mask", "--quality-sheet", **ONE)
    assert report["counts"]["registered"] == 1
    assert sheet.exists()


@pytest.mark.slow
def test_bare_lists_can_be_registered_too(cohort):
    _, landmarks = torso(edge=6, size=0.8)
    points = landmarks.points + [10.0, 20.0, 30.0]
    np.savetxt(cohort / "bare.txt", points)
    one = {"scans": "scans/a.ply", "landmarks": "bare.txt"}
    code, _ = run(cohort, "--landmark-order", ",".join(landmarks.names), **one)
    assert code == 0


@pytest.mark.slow
def test_a_scan_in_no_unit_with_four_points_needs_one_measured_distance(cohort):
    mesh, k = torso(edge=6)
    shrink = 1 / 37.0
    navel = mesh.vertices[np.linalg.norm(mesh.vertices - [0, -200, 100], axis=1).argmin()]
    points = np.vstack([k["sternal_notch"], navel, k["nipple_left"], k["nipple_right"]])
    save_mesh(mesh.with_vertices(mesh.vertices * shrink), cohort / "phone.ply")
    rows = [f'<point name="{n}" x="{x}" y="{y}" z="{z}"/>' for n, (x, y, z) in enumerate(points * shrink)]
    (cohort / "phone.pp").write_text(f"<PickedPoints>{''.join(rows)}</PickedPoints>")
    phone = {"scans": "phone.ply", "landmarks": "phone.pp"}
    code, report = run(cohort, **phone)
    assert (code, report["scans"][0]["code"]) == (2, "unknown-unit")
    assert "--scale-by NL-NR=21cm" in report["scans"][0]["message"]
    apart = float(np.linalg.norm(k["nipple_left"] - k["nipple_right"]))
    code, report = run(cohort, "--scale-by", f"NL-NR={apart}mm", **phone)
    assert code == 0, report
    record = json.loads((cohort / "out" / "registered" / "phone.json").read_text())
    assert record["check"]["scale_by"] == f"NL-NR={apart}mm"
    assert record["to_file"]["scale"] == pytest.approx(shrink)
    placed = {"sternal_notch", "navel", "nipple_left", "nipple_right"}
    assert set(record["landmarks"]) - set(record["landmarks_found"]) == placed
    assert set(k) <= set(record["landmarks"])
    assert not record["landmarks_estimated"]
    assert all(0.0 < sd < 100.0 for sd in record["landmarks_found"].values())
    registered = load_mesh(cohort / "out" / "registered" / "phone.ply").vertices
    assert Surface(mesh).closest(registered / shrink).distances.mean() < 2.0


@pytest.mark.slow
def test_only_what_failed_is_tried_again(cohort):
    run(cohort)
    mesh, landmarks = torso(edge=6, size=1.1)
    save_mesh(mesh, cohort / "scans" / "broken.ply")
    save_landmarks(landmarks, cohort / "landmarks" / "broken.json")
    (cohort / "out" / "registered" / "a.ply").unlink()  # missing, but it did not fail
    code, report = run(cohort, "--retry-failed")
    assert code == 0
    assert [(scan["id"], scan["status"]) for scan in report["scans"]] == [("broken", "registered")]
    code, report = run(cohort, "--retry-failed")
    assert (code, report["scans"]) == (0, [])


@pytest.mark.slow
def test_a_limit_is_kept_even_with_one_job(cohort):
    code, report = run(cohort, "--time-limit", "0.001", **ONE)
    assert code == 2
    assert report["scans"][0]["code"] == "time-limit"
    assert "--time-limit" in report["scans"][0]["message"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--force", "--retry-failed"], "give one of them"),
        (["--memory-limit", "much"], "write for example 4GB"),
        (["--time-limit", "0"], "--time-limit"),
        (["--scale-by", "NL-NR=21"], "as in NL-NR=21cm"),
        (["--scale-by", "NL-NR=21cm", "--unit", "cm"], "exclude each other"),
        (["--scheduler", "tcp://127.0.0.1:1"], "with --scheduler the cluster decides"),
    ],
)
def test_options_that_make_no_sense_are_refused(cohort, options, said):
    result = invoke(cohort, *options)
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())
    assert not (cohort / "out").exists()


@POSIX
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_polite_requests_to_end_are_taken_as_ctrl_c(name):
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)  # the tests themselves may run under nohup
    try:
        with pytest.raises(KeyboardInterrupt), ended_like_ctrl_c():
            signal.raise_signal(number)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


@POSIX
def test_under_nohup_a_closed_terminal_stops_nothing():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_like_ctrl_c():
            signal.raise_signal(signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.kill
@POSIX
def test_a_run_can_be_stopped_and_goes_on(cohort):
    for k in range(8):
        mesh, landmarks = torso(edge=6, size=0.8 + 0.03 * k)
        save_mesh(mesh, cohort / "scans" / f"more{k}.ply")
        save_landmarks(landmarks, cohort / "landmarks" / f"more{k}.json")
    program = [sys.executable, "-c", "from breastmorph.cli import main; main()"]
    process = subprocess.Popen(
        [*program, *arguments(cohort, jobs="2")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # With three results of two workers there, the parent has heard of the first.
    while process.poll() is None and len(list(cohort.glob("out/registered/*.json"))) < 3:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    output, said = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "run the same command again" in said
    assert "Traceback" not in said
    with open(cohort / "out" / "summary.csv") as file:
        done = [row["id"] for row in csv.DictReader(file) if row["status"] == "registered"]
    assert 0 < len(done) < 10
    assert all(scan_id in output for scan_id in done)
    _, report = run(cohort)
    unchanged = [scan["id"] for scan in report["scans"] if scan["status"] == "unchanged"]
    assert set(done) <= set(unchanged)
    assert report["counts"]["registered"] + len(unchanged) == 10
