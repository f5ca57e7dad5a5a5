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

from breast_cohort import breast_model
from breastmorph.cli import main
from breastmorph.errors import BreastMorphError
from breastmorph.explorer import server
from breastmorph.explorer.private_folder import private_folder
from breastmorph.explorer.server import address_of, bound_socket, serve
from breastmorph.explorer.settings import Settings
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
        (["--token", "short"], "at least 16"),
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
        pytest.raises(BreastMorphError, match=r"cannot .* another --port"),
    ):
        bound_socket("127.0.0.1", taken.getsockname()[1])


def test_what_other_computers_must_write_is_said(monkeypatch):
    monkeypatch.setattr(server, "serve", lambda settings, ready: ready(address_of(settings)))
    monkeypatch.setattr(os, "_exit", lambda code: None)
    result = CliRunner().invoke(main, ["explore", "--no-browser", "--host", "0.0.0.0", "--port", "81"])
    assert "http://127.0.0.1:81/?token=" in result.output
    assert "instead of 127.0.0.1" in result.output


def test_other_computers_are_never_served_without_a_token():
    with pytest.raises(BreastMorphError, match="other computers"):
        serve(Settings(host="0.0.0.0"), print)


def test_the_address_holds_the_token():
    assert address_of(Settings(token="secret", port=81)) == "http://127.0.0.1:81/?token=secret"
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
    new = private_folder()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, new.name])
    assert new.stat().st_mode & 0o077 == 0


def hear_the_terminal() -> None:
    """The tests themselves may run under nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.kill
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGINT)])
def test_it_serves_until_it_is_ended_and_deletes_all(tmp_path, number):
    save_model(breast_model(), tmp_path / "model.h5")
    place = tmp_path / "temporary"
    place.mkdir()
    code = "from breastmorph.cli import main; main()"
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            code,
            "explore",
            str(tmp_path / "model.h5"),
            "--no-browser",
            "--token",
            "always",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place), "PYTHONUNBUFFERED": "1"},
        preexec_fn=hear_the_terminal if os.name == "posix" else None,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{30,}", line)
        assert found, line
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(found[0], timeout=120) as answer:
            assert "<html" in answer.read().decode().lower()
        assert [Path(entry).name.startswith("breastmorph-") for entry in place.iterdir()] == [True]
        process.send_signal(number)
        _, noise = process.communicate(timeout=120)
        assert noise == ""
    finally:
        process.kill()
        process.wait()
    assert not list(place.iterdir())
