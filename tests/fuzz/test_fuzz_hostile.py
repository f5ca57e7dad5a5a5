"""Files made to do harm, each in a process with 512 MB and five seconds: refused in words, or harmless."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.hostile import HOSTILE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux"),
]


@pytest.fixture(scope="module")
def outcomes():
    command = [sys.executable, "-m", "fuzz", "--hostile", "--json"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True)
    assert done.stdout, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file(name, outcomes):
    outcome, says = outcomes[name], HOSTILE[name].says
    assert outcome["kind"] == ("own" if says else "value"), outcome["detail"]
    assert says in outcome["detail"]
    assert outcome["peak"] < 256, "MB"
    assert outcome["bytes"] < 4_000_000, "a small file must be enough to show it"
