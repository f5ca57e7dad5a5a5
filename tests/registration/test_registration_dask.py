"""A real Dask cluster on this machine: the same bytes as local, lost workers, files the workers cannot see."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib.util import find_spec

import pytest

from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import InProcess
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.workers import Limits
from tiny_cohort import Troubles, meshes, metrics, require_whole, tiny_recipe, write_scans

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.name == "nt", reason="ends process groups"),
    pytest.mark.skipif(find_spec("distributed") is None, reason="needs Dask"),
]


@pytest.fixture(scope="module", autouse=True)
def imported_late():
    """Dask takes a second of every process that only asks which tests there are."""
    global Cluster, cluster_module
    from breastmorph.batch import cluster as cluster_module
    from breastmorph.batch.cluster import Cluster


class LocalDask:
    """A scheduler and workers in processes of their own, as a user starts them."""

    def __init__(self, folder):
        self.folder = folder
        self.processes = []
        file = folder / "scheduler.json"
        self._start("scheduler", "--port", "0", "--scheduler-file", str(file), "--host", "127.0.0.1")
        for _ in range(1200):
            if file.exists() and file.stat().st_size:
                break
            time.sleep(0.1)
        self.address = json.loads(file.read_text())["address"]

    def wait_for_workers(self, n):
        import distributed

        with distributed.Client(self.address, timeout=120, set_as_default=False) as client:
            client.wait_for_workers(n, timeout=120)

    def worker(self, *options):
        return self._start("worker", self.address, "--nthreads", "1", "--memory-limit", "4GB", *options)

    def _start(self, kind, *options):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", kind, "--no-dashboard", *options],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def end(self, *processes):
        for process in processes or self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    cluster = LocalDask(tmp_path_factory.mktemp("dask"))
    cluster.workers = [cluster.worker(), cluster.worker()]
    try:
        cluster.wait_for_workers(2)
        yield cluster
    finally:
        cluster.end()


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Scans, one of them broken, and what this process makes of them."""
    folder = tmp_path_factory.mktemp("cohort")
    found = write_scans(folder / "scans", 8)
    found[7].landmarks[0].write_text("{")
    rules = tiny_recipe(Troubles())
    local = {o.id: o for o in register_batch(found, rules, folder / "local", InProcess())}
    return found, rules, folder / "local", local


def test_a_cluster_gives_the_same_bytes_even_when_it_loses_workers(dask, cohort, tmp_path):
    found, rules, local, expected = cohort
    slow = replace(rules, pictures=Troubles(slow=0.3))
    done = []

    def lose_workers(outcome):
        done.append(outcome)
        if len(done) == 2:
            dask.end(dask.workers[0])
        if len(done) == 4:  # the last scans are left to a worker that was not there at the start
            dask.worker()
            dask.end(dask.workers[1])

    outcomes = register_batch(found, slow, tmp_path / "out", Cluster(dask.address), on_done=lose_workers)
    assert {o.id: o.status for o in outcomes} == {o.id: o.status for o in expected.values()}
    assert meshes(tmp_path / "out") == meshes(local)
    assert metrics(tmp_path / "out") == metrics(local)
    assert require_whole(tmp_path / "out") == 7
    failed = {o.id: o.message for o in outcomes}["s07"]
    assert failed == expected["s07"].message


def test_files_that_workers_do_not_see_are_sent(dask, cohort, tmp_path, monkeypatch):
    found, rules, local, expected = cohort
    sent = []
    task = cluster_module._task

    def elsewhere(files, stream):
        """Workers see another file under the path of one scan, and none under those of the others."""
        there = next(known for known in found if known.id == files.id)
        made = task(there, stream)
        sent.append((files.id, stream))
        if stream:
            return made
        if files.id == "s01":
            return replace(made, inputs=dict.fromkeys(made.inputs, "other content"))
        return replace(made, files=replace(made.files, mesh=tmp_path / "nowhere" / made.files.mesh.name))

    monkeypatch.setattr(cluster_module, "_task", elsewhere)
    outcomes = register_batch(found, rules, tmp_path / "out", Cluster(dask.address))
    assert meshes(tmp_path / "out") == meshes(local)
    assert metrics(tmp_path / "out") == metrics(local)
    assert {o.id: o.message for o in outcomes}["s07"] == expected["s07"].message  # names the user's file
    assert len(sent) < 2 * len(found)  # what one scan taught was remembered for the rest
    assert {scan_id for scan_id, stream in sent if stream} == {files.id for files in found}


def test_a_fatal_scan_fails_alone_on_a_cluster_too(dask, cohort, tmp_path):
    found, rules, _, _ = cohort
    fatal = replace(rules, pictures=Troubles(crash="s00", hang="s01", hungry="s02"))
    limits = Limits(8.0, 3 << 30)
    outcomes = register_batch(found[:4], fatal, tmp_path / "out", Cluster(dask.address, limits))
    assert [o.code for o in outcomes] == ["crashed", "time-limit", "memory-limit", ""]
    assert outcomes[3].status == "registered"


def test_what_is_wrong_with_a_cluster_is_said(dask, cohort, tmp_path, monkeypatch):
    found, rules, _, _ = cohort
    with monkeypatch.context() as short:
        short.setattr(cluster_module, "_CONNECTING", 1.0)
        with pytest.raises(BreastMorphError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:1"):
            register_batch(found, rules, tmp_path / "a", Cluster("tcp://127.0.0.1:1"))
    with pytest.raises(BreastMorphError, match="no Dask scheduler answers at nonsense"):
        register_batch(found, rules, tmp_path / "b", Cluster("nonsense"))
    monkeypatch.setattr(cluster_module, "__version__", "9.9.9")
    with pytest.raises(BreastMorphError, match=r"has breastmorph .*, this is 9\.9\.9"):
        register_batch(found, rules, tmp_path / "c", Cluster(dask.address))


def test_a_lost_scheduler_stops_the_run_with_what_is_done_kept(cohort, tmp_path):
    found, rules, _, _ = cohort
    short = LocalDask(tmp_path)
    try:
        short.worker("--no-nanny")
        short.wait_for_workers(1)
        slow = replace(rules, pictures=Troubles(slow=0.2))
        with pytest.raises(BreastMorphError, match="connection to the cluster was lost"):
            register_batch(
                found, slow, tmp_path / "out", Cluster(short.address), on_done=lambda outcome: short.end()
            )
    finally:
        short.end()
    assert require_whole(tmp_path / "out") >= 1
    again = register_batch(found, rules, tmp_path / "out", InProcess())
    assert "unchanged" in {outcome.status for outcome in again}
