"""A study that is killed at any point and started again ends as an undisturbed one.

BREASTMORPH_SOAK=1 kills twelve times, else a few times.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time

import pytest

from study_cohort import contents, small_study, write_study_cohort

KILLS = 12 if os.environ.get("BREASTMORPH_SOAK") else 2
ONLY = ("model-masks", "experiment-3", "figure-experiment-3")
RUN = """
import sys
from pathlib import Path
from study_cohort import small_study

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    run = small_study(folder / "study", folder / "cohort", only=sys.argv[2:], processes=True)
    sys.exit(bool(run.failed))
"""


@pytest.mark.kill
@pytest.mark.skipif(os.name == "nt", reason="kills process groups")
def test_a_study_killed_again_and_again_ends_as_an_undisturbed_one(tmp_path):
    cohort = write_study_cohort(tmp_path / "cohort", 7, truth=False)
    small_study(tmp_path / "undisturbed", cohort, only=ONLY, processes=True)
    script = tmp_path / "run.py"
    script.write_text(RUN)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, str(script), str(tmp_path), *ONLY]
    parts, meshes = tmp_path / "study" / "parts", tmp_path / "study" / "registered" / "masks" / "registered"
    random_moments = random.Random(3)
    progress = [0]
    for kill in range(KILLS):
        run = subprocess.Popen(arguments, env=environment, start_new_session=True)
        # When something new has just appeared: a registered scan first, later a finished part.
        seen = _finished(parts, meshes)
        while run.poll() is None and _finished(parts, meshes) <= seen + kill:
            time.sleep(0.01)
        time.sleep(random_moments.uniform(0.0, 0.3))
        # Ctrl-C reaches the whole group once, death the other times.
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGINT if kill == 1 else signal.SIGKILL)
        run.wait()
        progress.append(_finished(parts, meshes))
    assert progress == sorted(progress)  # no work is lost ...
    assert progress[-1] > 0  # ... and there was some
    last = subprocess.run(arguments, env=environment, timeout=600, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    assert contents(tmp_path / "study") == contents(tmp_path / "undisturbed")
    assert not list((tmp_path / "study").rglob(".*.part"))
    assert not (tmp_path / "study" / ".making").exists()


def _finished(parts, meshes) -> int:
    return len(list(parts.glob("*.json"))) + len(list(meshes.glob("*.json")))
