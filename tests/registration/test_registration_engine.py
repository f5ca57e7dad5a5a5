"""A batch that cannot lose work: what is done again and what not, failures that stay alone, one run at a time."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
from dataclasses import replace

import numpy as np
import pytest

from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import InProcess, LocalProcesses
from breastmorph.batch.product import ProductMaker, input_hashes
from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.foundation import locks as lock_module
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.locks import locked_folder
from breastmorph.foundation.messages import warning
from breastmorph.foundation.workers import Limits
from breastmorph.scan import check
from breastmorph.scan.check import check_scan
from breastmorph.scan.scan import Found, Landmarks, PlausibilityReport
from breastmorph.template import from_npz, to_npz
from tiny_cohort import Troubles, meshes, require_whole, tiny_recipe, write_scans


@pytest.fixture(scope="module")
def rules():
    return tiny_recipe()


@pytest.fixture(scope="module", autouse=True)
def compiled(rules, tmp_path_factory):
    """The kernels are compiled before any test sets a time limit."""
    ProductMaker(rules)(write_scans(tmp_path_factory.mktemp("compiled"), 1)[0])


def run(found, rules, out, executor=None, **more):
    outcomes = register_batch(found, rules, out, executor or InProcess(), **more)
    return {outcome.id: outcome.status for outcome in outcomes}


def summary(out):
    return {row["id"]: row for row in csv.DictReader((out / "summary.csv").read_text().splitlines())}


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals and limits of POSIX systems")
def test_a_scan_that_crashes_hangs_or_eats_memory_fails_alone(tmp_path):
    found = write_scans(tmp_path / "scans", 4)
    rules = tiny_recipe(Troubles(crash="s00", hang="s01", hungry="s02"))
    out = tmp_path / "out"
    seen = []
    register_batch(found, rules, out, LocalProcesses(2, Limits(8.0, 3 << 30)), on_done=seen.append)
    outcomes = {outcome.id: outcome for outcome in seen}
    assert outcomes["s03"].status == "registered"
    assert {key: o.code for key, o in outcomes.items() if o.status == "failed"} == {
        "s00": "crashed",
        "s01": "time-limit",
        "s02": "memory-limit",
    }
    rows = summary(out)
    assert "SIGSEGV" in rows["s00"]["message"]
    assert "time limit of 8 s" in rows["s01"]["message"]
    assert "3 GB" in rows["s02"]["message"]
    assert "s00.ply" in rows["s00"]["message"]
    assert rows["s03"]["status"] == "registered"
    kept = json.loads((out / "failed" / "s00.json").read_bytes())
    assert kept["code"] == "crashed"
    assert set(kept["inputs"]) == {"s00.ply", "s00.json"}
    # Mended, only the failed ones are done again, and their failures are forgotten.
    calm = replace(rules, pictures=Troubles())
    assert run(found, calm, out, retry_failed=True) == dict.fromkeys(("s00", "s01", "s02"), "registered")
    assert not list((out / "failed").iterdir())
    assert {row["status"] for row in summary(out).values()} == {"registered"}
    assert run(found, calm, out, retry_failed=True) == {}


@pytest.mark.slow
def test_a_second_run_does_what_is_missing_failed_or_changed(tmp_path):
    found = write_scans(tmp_path / "scans", 6)
    rules, out = tiny_recipe(Troubles()), tmp_path / "out"
    found[5].landmarks[0].write_text("{")
    first = run(found, rules, out)
    assert first.pop("s05") == "failed"
    assert set(first.values()) == {"registered"}
    (out / "registered" / "s00.ply").unlink()  # missing
    (out / "thumbnails" / "s01.png").unlink()  # a part of it is missing
    damaged = bytearray((out / "registered" / "s02.ply").read_bytes())
    damaged[-1] ^= 1
    (out / "registered" / "s02.ply").write_bytes(damaged)  # same size
    found[3].landmarks[0].write_bytes(found[3].landmarks[0].read_bytes() + b"\n")  # changed input
    counts = []
    second = run(found, rules, out, on_start=lambda todo, current: counts.append((todo, current)))
    assert second == {
        **dict.fromkeys(("s00", "s01", "s02", "s03"), "registered"),
        "s04": "unchanged",
        "s05": "failed",
    }
    assert counts == [(5, 1)]
    assert require_whole(out) == 5
    assert set(run(found[:5], rules, out).values()) == {"unchanged"}
    assert set(run(found[:2], rules, out, force=True).values()) == {"registered"}
    other = replace(rules, check=replace(rules.check, mean_edge=21.0))
    assert set(run(found[:2], other, out).values()) == {"registered"}


def test_nobody_starts_working_for_nothing(rules, tmp_path):
    class Unreachable:
        def run(self, *given):
            raise AssertionError("asked although nothing is to be done")
            yield

    found = write_scans(tmp_path / "scans", 1)
    run(found, rules, tmp_path / "out")
    assert run(found, rules, tmp_path / "out", Unreachable()) == {"s00": "unchanged"}


@pytest.mark.slow
def test_a_scan_that_now_fails_leaves_no_result_behind(tmp_path):
    found = write_scans(tmp_path / "scans", 2)
    rules, out = tiny_recipe(Troubles()), tmp_path / "out"
    run(found, rules, out)
    found[0].mesh.write_bytes(b"ply\n")
    assert run(found, rules, out) == {"s00": "failed", "s01": "unchanged"}
    assert {path.name for path in (out / "superseded").iterdir()} == {"s00.ply", "s00.json"}
    assert not (out / "thumbnails" / "s00.png").exists()
    assert set(meshes(out)) == {"s01.ply"}
    assert summary(out)["s00"]["status"] == "failed"


def test_what_an_earlier_check_said_is_not_sought_again(rules, tmp_path, monkeypatch):
    (files,) = write_scans(tmp_path / "scans", 1)
    looked = []

    def look(mesh, marks, to_file):
        looked.append(marks)
        place = marks["xiphoid"] + [0.0, 30.0, 0.0]
        own = Found("shape", 2.0, 4.0 * np.eye(3))
        said = warning("landmark-improbable", "{name:landmark} lies off", name="xiphoid", distance=30.0)
        return [said], Landmarks(("xiphoid",), place[None], found={"xiphoid": own})

    monkeypatch.setattr(check, "recheck_landmarks", look)
    sought = ProductMaker(rules)(files)
    said = PlausibilityReport.of(check_scan(files, rules.check, rules.template.as_reference).accepted())
    kept = PlausibilityReport.from_dict(json.loads(json.dumps(said.as_dict())))
    assert len(looked) == 2
    known = ProductMaker(replace(rules, checked={"s00": (input_hashes(files), kept)}))(files)
    assert len(looked) == 2
    assert known.mesh == sought.mesh
    assert known.record["findings"] == sought.record["findings"] != []
    forgotten = ProductMaker(replace(rules, checked={"s00": (input_hashes(files), PlausibilityReport())}))(
        files
    )
    assert forgotten.mesh != sought.mesh  # so it does matter what is kept
    ProductMaker(replace(rules, checked={"s00": ({"s00.ply": "of another file"}, kept)}))(files)
    assert len(looked) == 3


def test_what_nobody_foresaw_is_a_failed_scan_with_its_trace(rules, tmp_path, monkeypatch):
    found = write_scans(tmp_path / "scans", 2)
    register = ProductMaker._product

    def breaks(self, judged, scan, *others):
        if scan.id == "s00":
            raise ZeroDivisionError("of all things")
        return register(self, judged, scan, *others)

    monkeypatch.setattr(ProductMaker, "_product", breaks)
    assert run(found, rules, tmp_path / "out") == {"s00": "failed", "s01": "registered"}
    why = json.loads((tmp_path / "out" / "failed" / "s00.json").read_bytes())
    assert why["code"] == "unexpected"
    assert "of all things" in why["message"]
    assert "breaks" in why["trace"]


def test_a_picture_that_cannot_be_drawn_costs_no_registration(tmp_path):
    found = write_scans(tmp_path / "scans", 1)
    rules, out = tiny_recipe(Troubles(raises="s00")), tmp_path / "out"
    (outcome,) = register_batch(found, rules, out, InProcess())
    assert outcome.status == "registered"
    assert "no picture" in outcome.warnings[-1]
    assert run(found, rules, out) == {"s00": "unchanged"}  # it would fail again


@pytest.mark.slow
def test_a_stopped_run_is_whole_and_goes_on(rules, tmp_path):
    found = write_scans(tmp_path / "scans", 4)
    out = tmp_path / "out"
    done = []

    def stop(outcome):
        done.append(outcome.id)
        if len(done) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(found, rules, out, LocalProcesses(1), on_done=stop)
    assert set(done) <= set(summary(out))
    assert require_whole(out) >= 2
    rest = run(found, rules, out)
    assert {rest[scan_id] for scan_id in done} == {"unchanged"}
    assert require_whole(out) == 4


def test_left_overs_of_killed_processes_are_cleared_away(rules, tmp_path):
    found = write_scans(tmp_path / "scans", 1)
    out = tmp_path / "out"
    (out / "registered").mkdir(parents=True)
    left = [out / ".summary.csv.0a1b2c3d4e5f.part", out / "registered" / ".s00.ply.0a1b2c3d4e5f.part"]
    for path in left:
        path.write_bytes(b"half")
    run(found, rules, out)
    assert not any(path.exists() for path in left)


def hold(lock, pipe):
    pipe.send("held")
    pipe.recv()


@pytest.mark.kill
@pytest.mark.skipif(os.name == "nt", reason="workers share the lock on POSIX systems only")
def test_one_run_at_a_time_until_its_last_process_is_gone(rules, tmp_path, monkeypatch):
    monkeypatch.setattr(lock_module, "_PATIENCE", 0.2)
    found = write_scans(tmp_path / "scans", 1)
    out = tmp_path / "out"
    out.mkdir()
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    with locked_folder(out) as lock:
        worker = spawn.Process(target=hold, args=(lock, theirs))
        worker.start()
        ours.recv()
        with pytest.raises(FileProblem, match=f"another run works in this folder.*{os.getpid()}") as busy:
            run(found, rules, out)
        assert busy.value.code == "busy"
    with pytest.raises(FileProblem, match="another run"):  # the run is over, one of its workers is not
        run(found, rules, out)
    worker.kill()
    worker.join()
    monkeypatch.setattr(lock_module, "_PATIENCE", 3.0)
    assert run(found, rules, out) == {"s00": "registered"}


@pytest.mark.slow
def test_one_folder_one_template(rules, tmp_path):
    found = write_scans(tmp_path / "scans", 2)
    out = tmp_path / "out"
    run(found, rules, out)
    other = tiny_recipe(edge=10.5)
    with pytest.raises(FileProblem, match="another template"):
        run(found[:1], other, out)
    assert require_whole(out) == 2

    def stop(todo, current):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(found, other, out, on_start=stop)  # all will be done again: never two templates side by side
    assert meshes(out) == {}
    assert len(list((out / "superseded").glob("*.ply"))) == 2
    assert set(run(found, other, out).values()) == {"registered"}
    kept = from_npz((out / "template.npz").read_bytes())
    assert kept.mesh.n_vertices == other.template.mesh.n_vertices


def test_the_template_travels_without_rounding(rules):
    template = rules.template
    rounded = from_npz(to_npz(template))
    assert (template.mesh.vertices != rounded.mesh.vertices).sum() > 0
    assert replace(rules, template=rounded).common["template"] != rules.common["template"]


def test_the_folder_tells_what_it_holds(tmp_path):
    found = write_scans(tmp_path / "scans", 2)
    found[1].landmarks[0].write_text("{")
    told = []
    register_batch(found, tiny_recipe(), tmp_path / "out", InProcess(), on_end=told.extend)
    again = list(RegisteredFolder(tmp_path / "out").outcomes())
    assert [(o.id, o.message, o.record) for o in again] == [(o.id, o.message, o.record) for o in told]
    assert [o.status for o in again] == ["unchanged", "failed"]
