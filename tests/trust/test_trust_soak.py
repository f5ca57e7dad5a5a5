"""A storm over a long run: kills, crashes and starved workers; nothing lost, nothing twice, the same bytes in the end.

BREASTMORPH_SOAK=1 registers 500 scans (``make soak``), else a few.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import LocalProcesses
from tiny_cohort import Troubles, meshes, metrics, require_whole, tiny_recipe, write_scans

SCANS = int(os.environ.get("BREASTMORPH_SOAK_SCANS", "500")) if os.environ.get("BREASTMORPH_SOAK") else 8
STEP = 0.6 / SCANS
RUN = """
import sys
from pathlib import Path
from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import LocalProcesses
from breastmorph.scan.check import find_scans
from test_trust_soak import Storm
from tiny_cohort import tiny_recipe

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    # A fast machine must not be done before it is struck.
    rules = tiny_recipe(Storm(folder=str(folder / "storm"), slow=0.3))
    outcomes = register_batch(find_scans(folder / "scans"), rules, folder / "out", LocalProcesses(2))
    sys.exit(any(outcome.status == "failed" for outcome in outcomes))
"""


@dataclass(frozen=True)
class Storm(Troubles):
    """Every sixth scan brings down its process at the first attempt, every eighth asks for all memory."""

    folder: str = ""

    def __call__(self, scan, result):
        number = int(scan.id[1:])
        attempt = Path(self.folder) / scan.id
        if not attempt.exists() and (number % 6 == 1 or number % 8 == 3):
            attempt.touch()
            if number % 6 == 1:
                os.kill(os.getpid(), signal.SIGSEGV)
            bytearray(1 << 42)
        return super().__call__(scan, result)


def children(pid: int) -> list[int]:
    """Worker processes of a run."""
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.NoSuchProcess:
        return []


@pytest.mark.kill
@pytest.mark.skipif(os.name == "nt", reason="kills process groups")
def test_a_storm_leaves_what_calm_weather_leaves(tmp_path):
    found = write_scans(tmp_path / "scans", SCANS, edge=12.0, step=STEP)
    (tmp_path / "storm").mkdir()
    calm = register_batch(found, tiny_recipe(Troubles()), tmp_path / "calm", LocalProcesses(2))
    assert [outcome.status for outcome in calm] == ["registered"] * SCANS
    script = tmp_path / "run.py"
    script.write_text(RUN)
    here = str(Path(__file__).parent)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([here, *sys.path])}
    command = [sys.executable, str(script), str(tmp_path)]
    registered, dice = tmp_path / "out" / "registered", random.Random(11)
    counts = {"kill -9": 0, "terminate": 0, "kill -9 of a worker": 0}
    before: set[str] = set()
    for attempt in range(4 * SCANS):
        run = subprocess.Popen(
            command,
            env=environment,
            start_new_session=True,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        # The first strike comes at any time before a scan is done, others when work is under way, where they hurt most.
        wanted = len(before) + dice.randint(1, max(SCANS // 25, 2))
        moment = time.monotonic() + (dice.uniform(0.3, 2.5) if attempt == 0 else 300.0)
        while (
            run.poll() is None and time.monotonic() < moment and len(list(registered.glob("*.json"))) < wanted
        ):
            time.sleep(0.01)
        time.sleep(dice.uniform(0.0, 0.2))
        kind = list(counts)[attempt % 3]
        if run.poll() is None:
            counts[kind] += 1
            workers = children(run.pid)
            if kind == "kill -9 of a worker" and workers:
                with suppress(ProcessLookupError):  # the storm was faster
                    os.kill(dice.choice(workers), signal.SIGKILL)
                time.sleep(dice.uniform(0.0, 0.5))
            if kind == "terminate":
                run.terminate()
                time.sleep(dice.uniform(0.0, 0.1))
            os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        require_whole(tmp_path / "out")
        now = {path.stem for path in registered.glob("*.json")}
        assert before <= now  # what was done stays done
        before = now
        if len(before) >= SCANS - max(SCANS // 25, 2):
            break
    for _ in range(2):  # what failed in the storm is tried again by the next run
        last = subprocess.run(command, env=environment, timeout=3600, capture_output=True)
    assert last.returncode == 0, last.stderr
    assert sum(counts.values()) >= 2
    assert require_whole(tmp_path / "out") == SCANS  # nothing lost, nothing twice
    assert meshes(tmp_path / "out") == meshes(tmp_path / "calm")
    assert metrics(tmp_path / "out") == metrics(tmp_path / "calm")
    assert not list((tmp_path / "out").rglob(".*.part"))
    struck = len(list((tmp_path / "storm").iterdir()))
    print(f"{SCANS} scans, {attempt + 1} runs struck {counts}, {struck} crashes or starved workers")
    assert struck > 0
