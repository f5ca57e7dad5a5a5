"""kill -9 of a whole run at random moments, again and again: nothing half-written, and the same result in the end.

BREASTMORPH_SOAK=1 kills twenty times, else twice: before a scan is done, and just after one.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import InProcess
from tiny_cohort import Troubles, meshes, metrics, require_whole, tiny_recipe, write_scans

KILLS = 20 if os.environ.get("BREASTMORPH_SOAK") else 2
SCANS = 3 * KILLS
RUN = """
import sys
from pathlib import Path
from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import LocalProcesses
from breastmorph.scan.check import find_scans
from tiny_cohort import Troubles, tiny_recipe

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    rules = tiny_recipe(Troubles(slow=0.5))  # a fast machine must not be done before it is killed
    outcomes = register_batch(find_scans(folder / "scans"), rules, folder / "out", LocalProcesses(2))
    sys.exit(any(outcome.status == "failed" for outcome in outcomes))
"""


@pytest.mark.kill
@pytest.mark.skipif(os.name == "nt", reason="kills process groups")
def test_a_run_killed_again_and_again_ends_as_an_undisturbed_one(tmp_path):
    found = write_scans(tmp_path / "scans", SCANS)
    register_batch(found, tiny_recipe(Troubles()), tmp_path / "undisturbed", InProcess())
    script = tmp_path / "run.py"
    script.write_text(RUN)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, str(script), str(tmp_path)]
    random_moments = random.Random(5)
    registered, progress = tmp_path / "out" / "registered", [0]
    for kill in range(KILLS):
        run = subprocess.Popen(arguments, env=environment, start_new_session=True)
        # Half of the kills come at any time before a scan is done, half just after one, where they hurt most.
        moment = time.monotonic() + (random_moments.uniform(0.3, 2.5) if kill % 2 == 0 else 300.0)
        while (
            run.poll() is None
            and time.monotonic() < moment
            and len(list(registered.glob("*.json"))) <= progress[-1]
        ):
            time.sleep(0.01)
        if kill % 2:
            time.sleep(random_moments.uniform(0.0, 0.3))
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        progress.append(require_whole(tmp_path / "out") if registered.exists() else 0)
    assert progress == sorted(progress)  # no work is lost ...
    assert 0 < progress[-1] < SCANS  # ... and the kills did hit a run at work
    assert subprocess.run(arguments, env=environment, timeout=300).returncode == 0
    assert meshes(tmp_path / "out") == meshes(tmp_path / "undisturbed")
    assert metrics(tmp_path / "out") == metrics(tmp_path / "undisturbed")
    assert require_whole(tmp_path / "out") == SCANS
    assert not list((tmp_path / "out").rglob(".*.part"))
