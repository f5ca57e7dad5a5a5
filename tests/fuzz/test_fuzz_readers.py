"""Mutated files in processes with limits: a value or our own error, nothing else. The long run is `make fuzz`."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest
from fuzz.child import run
from fuzz.inputs import mutated
from fuzz.targets import TARGETS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")


@pytest.fixture(scope="module")
def short_run():
    """What sixty inputs of every reader came to."""
    command = [sys.executable, "-m", "fuzz", "--inputs", "60", "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return {row["reader"]: row for row in json.loads(done.stdout)}


@linux_only
@pytest.mark.parametrize("name", TARGETS)
def test_mutated_files_give_a_value_or_our_error(name, short_run):
    row = short_run[name]
    assert row["bad"] == []
    assert row["value"] + row["own"] == 60
    assert row["value"] > 0, "not even the seeds are read"
    assert row["peak"] < 512


def test_inputs_are_the_same_in_every_run(tmp_path):
    target = TARGETS["PLY text"]
    seeds = target.seeds(tmp_path)
    first = [target.input(seeds, number) for number in range(50)]
    assert first == [target.input(seeds, number) for number in range(50)]
    assert len(set(first)) > 40
    assert mutated(seeds, "text", Random(1)) == mutated(seeds, "text", Random(1))


def _crash(path):
    import os
    import signal

    os.kill(os.getpid(), signal.SIGKILL)


def _takes_memory(path):
    from breastmorph.foundation.errors import FileProblem

    try:
        bytearray(2**30)
    except MemoryError as error:
        raise FileProblem("too large") from error


def _warns(path):
    import warnings

    warnings.warn("look", RuntimeWarning, stacklevel=1)


def _long_message(path):
    from breastmorph.foundation.errors import FileProblem

    raise FileProblem("x" * 5000)


@linux_only
@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (_crash, "crash"), (_takes_memory, "memory"), (_warns, "unexpected"), (_long_message, "unexpected"),
        (lambda path: 1 / 0, "unexpected"), (lambda path: None, "value"),
    ],
)  # fmt: skip
def test_the_judge_sees_what_went_wrong(read, kind, tmp_path):
    def harmful_once(path):
        return read(path) if path.read_bytes() == b"1" else None

    outcomes = list(run(harmful_once, tmp_path / "f", range(3), lambda number: str(number).encode()))
    assert [outcome.kind for outcome in outcomes] == ["value", kind, "value"]
    assert [outcome.number for outcome in outcomes] == [0, 1, 2]
