"""Many items in local processes: what is fatal to one item costs that item only, and no process is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.machine import cores, memory, memory_share
from breastmorph.foundation.workers import Failure, Limits, run_each

POSIX = pytest.mark.skipif(os.name == "nt", reason="signals and limits of POSIX systems")


def prepare(offset):
    made_by = os.getpid()

    def work(item):
        if item == "exit":
            os._exit(3)
        if item == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if item == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if item == "hang":
            time.sleep(600)
        if item == "memory":
            return len(bytearray(8 << 30))
        if item == "disk":
            raise FileProblem("no space", "Free some", "out.ply", code="unwritable")
        if item == "environment":
            return {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
        if item == "lambda":
            return lambda: 1
        return item + offset, os.getpid() == made_by

    return work


def prepare_badly():
    raise FileProblem("no template", "Give one")


def prepare_fatally():
    os._exit(7)


def results(items, jobs=2, **limits):
    return dict(run_each(partial(prepare, 100), items, jobs, Limits(**limits)))


def test_every_item_has_its_result_and_setup_ran_in_the_same_process():
    assert results(range(9)) == {k: (k + 100, True) for k in range(9)}


@pytest.mark.slow
@POSIX
def test_fatal_items_fail_alone_with_their_reason():
    items = ["exit", 1, "segfault", 2, "hang", 3, "memory", 4, "killed", 5]
    found = results(items, seconds=6.0, memory=4 << 30)
    assert {k: found[k] for k in (1, 2, 3, 4, 5)} == {k: (k + 100, True) for k in (1, 2, 3, 4, 5)}
    codes = {item: found[item].code for item in items if isinstance(item, str)}
    assert codes == {
        "exit": "crashed",
        "segfault": "crashed",
        "killed": "crashed",
        "hang": "time-limit",
        "memory": "memory-limit",
    }
    reasons = {item: found[item].reason for item in codes}
    assert "exit code 3" in reasons["exit"]
    assert "SIGSEGV" in reasons["segfault"]
    assert "time limit of 6 s" in reasons["hang"]
    assert "4 GB" in reasons["memory"]
    assert "out of memory" in reasons["killed"]


def test_errors_come_back_as_they_were():
    found = results(["disk", 1, "lambda"], jobs=1)
    error = found["disk"].error
    assert (error.cause, error.where, error.code) == ("no space", "out.ply", "unwritable")
    assert found[1] == (101, True)
    assert isinstance(found["lambda"], Failure)  # a result that cannot be sent


@pytest.mark.slow
def test_processes_that_cannot_start_are_one_clear_error():
    with pytest.raises(FileProblem, match="no template"):
        list(run_each(prepare_badly, [1, 2], 1))
    with pytest.raises(BreastMorphError, match="exit code 7"):
        list(run_each(prepare_fatally, [1, 2], 1))


def test_linear_algebra_has_one_thread_in_workers_and_ours_stays(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert set(results(["environment"])["environment"].values()) == {"1"}
    assert os.environ["OMP_NUM_THREADS"] == "5"
    assert "OPENBLAS_NUM_THREADS" not in os.environ


ORPHAN = """
import os, sys, time
from breastmorph.foundation.workers import run_each
def setup():
    os.write(1, b"%d\\n" % os.getpid())  # whole lines: two processes write at once
    return work
def work(seconds):
    if seconds:
        os.write(1, b"begun\\n")
    time.sleep(seconds)
if __name__ == "__main__":
    if sys.argv[1] == "stop":
        for _ in run_each(setup, [0, 600], 2):
            break  # one item is done, the other has just begun
        print("stopped", flush=True)
    for _ in run_each(setup, [600], 1):
        pass
"""


def gone(pid: int) -> bool:
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rsplit(")", 1)[1].split()[0] == "Z":  # nobody collects orphans in some containers
                return True
        time.sleep(0.1)
    return False


@pytest.mark.kill
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_no_process_outlives_its_parent_or_its_run(tmp_path):
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    with subprocess.Popen([sys.executable, script, "stop"], stdout=subprocess.PIPE, text=True) as parent:
        lines = iter(parent.stdout.readline, "")
        stopped = []
        for line in lines:
            if line == "stopped\n":
                break
            stopped += [int(line)] if line != "begun\n" else []
        assert stopped
        assert all(gone(pid) for pid in stopped)
        busy = int(next(lines))
        assert next(lines) == "begun\n"
        parent.kill()
        assert gone(busy)


INTERRUPTED = """
import multiprocessing.util, os, signal
from breastmorph.foundation.workers import run_each

def setup():
    return str

if __name__ == "__mp_main__" and "{who}" == "child":  # while it starts
    os.kill(os.getpid(), signal.SIGINT)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run in the background, where it is ignored
    start = multiprocessing.util.spawnv_passfds

    def disturbed(*given):
        child = start(*given)
        if "{who}" == "parent" and b"spawn_main" in b" ".join(map(os.fsencode, given[1])):
            os.kill(os.getpid(), signal.SIGINT)  # before the child was told what to do
        return child

    multiprocessing.util.spawnv_passfds = disturbed
    try:
        print(list(run_each(setup, [1], 1)))
    except KeyboardInterrupt:
        print("stopped")
"""


@POSIX
@pytest.mark.parametrize(("who", "said"), [("child", "[(1, '1')]"), ("parent", "stopped")])
def test_ctrl_c_while_a_process_starts_prints_no_traceback(tmp_path, who, said):
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED.replace("{who}", who))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.stderr) == (said, "")


def test_the_machine_has_cores_and_memory():
    assert 1 <= cores() <= os.cpu_count()
    if memory() is not None:
        assert memory_share(2) <= max(memory(), 1 << 30)
        assert memory_share(4) <= memory_share(2)
