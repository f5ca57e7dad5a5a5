"""The doctor says what is wrong with an installation, and goes on after it."""

import json

import pytest
from click.testing import CliRunner

from breastmorph.cli import doctor, main


def examined(monkeypatch, **broken):
    for name, look in broken.items():
        changed = [
            doctor._Examination(e.name, look) if e.name == name else e
            for e in doctor._EXAMINATIONS
            if e.name != "registration"  # seconds that other tests spend already
        ]
        monkeypatch.setattr(doctor, "_EXAMINATIONS", tuple(changed))
    result = CliRunner().invoke(main, ["doctor", "--json"])
    return result.exit_code, {entry["name"]: entry for entry in json.loads(result.stdout)}


@pytest.mark.slow
def test_a_sound_installation_is_well():
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 0, result.output
    assert "problem" not in result.output
    assert "a synthetic scan met to 0." in result.output


def test_it_says_where_compiled_code_is_kept(monkeypatch):
    def read_only(*args, **others):
        raise OSError(30, "Read-only file system")

    assert doctor._kernels().startswith("compiled once, kept for later runs")
    monkeypatch.setattr("tempfile.TemporaryFile", read_only)  # how numba finds out whether it may write
    assert "compiled anew by every process" in doctor._kernels()


def test_one_broken_library_is_named_and_the_rest_still_examined(monkeypatch):
    def broken():
        raise ImportError("libsolver.so not found")

    code, found = examined(monkeypatch, **{"linear solver": broken})
    assert code == 1
    assert not found["linear solver"]["well"]
    assert "libsolver.so" in found["linear solver"]["found"]
    assert found["model files"]["well"]


def test_a_library_that_is_too_old_is_named(monkeypatch):
    monkeypatch.setattr("importlib.metadata.requires", lambda name: ["numpy>=99", "nosuchthing>=1"])
    code, found = examined(monkeypatch, registration=lambda: "")
    assert code == 1
    assert "numpy>=99 is needed" in found["libraries"]["found"]
    assert "nosuchthing>=1 is missing" in found["libraries"]["found"]


def test_the_version_says_what_it_runs_on():
    text = CliRunner().invoke(main, ["--version"]).output
    assert "breastmorph, version" not in text
    assert "Python 3." in text
