"""``breastmorph explore``: what it prints, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from breastmorph.cli import main
from breastmorph.explorer import server
from breastmorph.explorer.server import Entrance, address_of, bound_socket
from breastmorph.explorer.settings import Settings
from breastmorph.explorer.uploads import PrivateFolder
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.files import save_model


def test_help_shows_examples():
    result = CliRunner().invoke(main, ["explore", "--help"])
    assert result.exit_code == 0
    assert "breastmorph explore model.h5" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere.h5"], "no such file or folder"),
        (["{empty}"], "no scan in this folder"),
        (["{empty}", "--model", "nowhere.h5"], "no such file or folder"),
        (["{file}", "--model", "{file}"], "Give the model once"),
        (["{scan}"], "not a model"),
        (["{json}"], "not a model"),
        (["{empty}", "--model", "{scan}"], "not a model"),
        (["--token", "a-word-that-others-can-read"], "No such option"),
        (["--host", "203.0.113.7"], "Give an address of this computer"),
        (["--port", "99999"], "range"),
    ],
)
def test_what_cannot_start_is_said(tmp_path, words, said):
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "pat.ply").write_bytes(b"ply\nformat ascii 1.0\n")
    (tmp_path / "wrong.json").write_bytes(b"{}")
    (tmp_path / "empty").mkdir()
    places = {"empty": "empty", "file": "file", "scan": "pat.ply", "json": "wrong.json"}
    given = [word.format(**{key: tmp_path / name for key, name in places.items()}) for word in words]
    result = CliRunner().invoke(main, ["explore", "--no-browser", *given])
    assert result.exit_code == 2
    assert said in result.output


def test_a_taken_port_is_said():
    with (
        bound_socket("127.0.0.1", 0) as taken,
        pytest.raises(BreastMorphError, match=r"cannot .* another port"),
    ):
        bound_socket("127.0.0.1", taken.getsockname()[1])


@pytest.fixture
def said(monkeypatch):
    """What the command prints when it is ready and somebody came in; ``said(words, on_terminal)``."""
    way = Entrance("http://127.0.0.1:81/#code=secret", Path("/private/open.html"))
    monkeypatch.setattr(server, "serve", lambda settings, ready, entered: (ready(way), entered(way)))
    monkeypatch.setattr(os, "_exit", lambda code: None)

    def run(*words: str, on_terminal: bool = False) -> str:
        monkeypatch.setattr("breastmorph.cli.explore._is_terminal", lambda: on_terminal)
        return CliRunner().invoke(main, ["explore", "--no-browser", *words]).output

    return run


def test_what_other_computers_must_write_is_said(said):
    assert "instead of 127.0.0.1" in said("--host", "0.0.0.0")
    assert "instead of" not in said()


def test_the_code_is_shown_on_a_terminal_only(said):
    assert said(on_terminal=True).count("http://127.0.0.1:81/#code=secret") == 2
    kept = said()
    assert "secret" not in kept
    assert kept.count("http://127.0.0.1:81/ (open file:///private/open.html") == 2


def test_addresses():
    assert address_of(Settings(port=81), "secret") == "http://127.0.0.1:81/#code=secret"
    assert address_of(Settings(host="::1", port=81)) == "http://[::1]:81/"


@pytest.mark.skipif(os.name != "posix", reason="elsewhere left-over folders stay")
def test_what_a_killed_process_left_behind_is_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    kept = [f"breastmorph-{os.getpid()}-x", "breastmorph-x", f"other-{ended.pid}-x"]
    for name in (f"breastmorph-{ended.pid}-abc", *kept):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scan.ply").write_bytes(b"ply")
    new = PrivateFolder()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, new.path.name])
    assert new.path.stat().st_mode & 0o077 == 0
    new.delete()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def hear_the_terminal() -> None:
    """The tests themselves may run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.kill
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGINT)])
def test_it_serves_until_it_is_ended_and_deletes_all(tmp_path, number, breast_model):
    save_model(breast_model, tmp_path / "model.h5")
    place = tmp_path / "temporary"
    place.mkdir()
    code = "from breastmorph.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "explore", str(tmp_path / "model.h5"), "--no-browser"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place), "PYTHONUNBUFFERED": "1"},
        preexec_fn=hear_the_terminal if os.name == "posix" else None,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"(http://127\.0\.0\.1:\d+/) \(open file://(\S+),", line)
        assert found, line
        assert found[1] + "#code=" in Path(found[2]).read_text()
        with urllib.request.urlopen(found[1], timeout=120) as answer:
            assert "<html" in answer.read().decode().lower()
        assert [Path(entry).name.startswith("breastmorph-") for entry in place.iterdir()] == [True]
        process.send_signal(number)
        _, noise = process.communicate(timeout=120)
        assert noise == ""
    finally:
        process.kill()
        process.wait()
    assert not list(place.iterdir())


# Sends a signal to itself as soon as a module is loaded.
DISTURBED = """
import os, sys
class Watch:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Watch())
from breastmorph.cli import main
main()
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("module", "number"),
    [
        ("click", signal.SIGINT),
        ("breastmorph.cli.explore", signal.SIGTERM),
        pytest.param("breastmorph.explorer.server", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("uvicorn", signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_a_start_that_is_interrupted_ends_without_a_word(tmp_path, module, number, breast_model):
    save_model(breast_model, tmp_path / "model.h5")
    (tmp_path / "temporary").mkdir()
    words = ["explore", str(tmp_path / "model.h5"), "--no-browser"]
    done = subprocess.run(
        [sys.executable, "-c", DISTURBED.format(module=module, number=int(number)), *words],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        preexec_fn=hear_ctrl_c,
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert done.returncode in (-number, 128 + number)
    assert not list((tmp_path / "temporary").iterdir())


def hear_ctrl_c() -> None:
    """The tests themselves may run in the background, where Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
