"""Other users of the same computer: they get nothing of a patient, find no key, and cannot keep the owner out."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from breast_cohort import breast_model
from breastmorph.explorer.settings import Settings
from breastmorph.mesh.files import save_mesh
from breastmorph.model.files import save_model
from explorer_client import Visitor, running
from explorer_window import address_in
from torso import torso

LANDMARKS = b'{"sternal_notch": [0.0, 0.0, 0.0], "nipple_left": null}\n'

# What a stranger tries, in a process of that account; prints what was found.
STRANGER = """
import encodings.idna, glob, http.client, json, os, sys  # all before the change: then they may be out of reach
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
port, session, scan, folder = int(sys.argv[1]), *sys.argv[2:]
answers = {}
for method, path in [("POST", "/api/sessions"), ("GET", "/api/state"), ("GET", "/api/queue"),
                     ("GET", f"/api/scans/{scan}"), ("GET", f"/api/scans/{scan}/geometry"),
                     ("POST", f"/api/scans/{scan}/swap"), ("POST", "/api/download/session"),
                     ("POST", "/api/scans?name=a.obj"), ("POST", "/api/enter")]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request(method, path, b"v 0 0 0" if "?" in path else None, {"X-Session": session})
    reply = connection.getresponse()
    answers[method + " " + path.split("?")[0].replace(scan, "SCAN")] = [reply.status, reply.read().decode("latin-1")]
seen = []
for file in [*glob.glob("/proc/[0-9]*/cmdline"), *glob.glob("/proc/[0-9]*/environ"),
             *glob.glob(folder + "/**", recursive=True)]:
    try:
        with open(file, "rb") as content:
            seen.append(content.read().decode("latin-1"))
    except OSError:
        pass
print(json.dumps({"user": os.getuid(), "answers": answers, "seen": seen}))
"""


BROWSER = """#!/bin/sh
echo "$@" > {words}.part
mv {words}.part {words}
while [ -e {words} ]; do sleep 0.1; done
"""


def as_stranger(*words: object) -> dict:
    """What another account finds; where no test can become one, this account without the token."""
    command = [sys.executable, "-I", "-c", STRANGER, *map(str, words)]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


@pytest.fixture
def clinic():
    """A model, and a scan with landmarks that others may not read, in a folder that they may."""
    with TemporaryDirectory() as place:  # pytest's own folders are closed to others
        home = Path(place)
        home.chmod(0o755)
        yield filled(home)


def filled(home: Path) -> Path:
    save_model(breast_model(), home / "model.h5")
    mesh, _ = torso(edge=20.0)
    (home / "clinic" / "landmarks").mkdir(parents=True)
    save_mesh(mesh, home / "clinic" / "patient.ply")
    (home / "clinic" / "landmarks" / "patient.json").write_bytes(LANDMARKS)
    for file in home.glob("clinic/**/*.*"):
        file.chmod(0o600)
    return home


@contextmanager
def explored(home: Path, *words: object):
    """The command with a browser that does nothing but keep its words; gives its entrance, these words, its process."""
    browser = home / "browser"
    browser.write_text(BROWSER.format(words=home / "words"))
    browser.chmod(0o755)
    place = home / "temporary"
    place.mkdir()
    place.chmod(0o1777)
    process = subprocess.Popen(
        [sys.executable, "-c", "from breastmorph.cli import main; main()", "explore", *map(str, words)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place), "BROWSER": f"{browser} %s", "PYTHONUNBUFFERED": "1"},
        start_new_session=True,  # a group of its own, that can be killed as a whole
    )
    try:
        line = process.stdout.readline()
        while not (home / "words").exists():
            time.sleep(0.02)
        yield Path(re.search(r"open file://(\S+),", line)[1]), (home / "words").read_text(), process
    finally:
        process.terminate()
        (home / "words").unlink(missing_ok=True)  # ends the browser
        process.communicate(timeout=60)


def entered(port: int, code: str) -> Visitor:
    """Somebody with a code, in a new session."""
    owner = Visitor(port)
    owner.headers["X-Token"] = owner.ask("POST", "/api/enter", X_Code=code).json["token"]
    owner.headers["X-Session"] = owner.ask("POST", "/api/sessions").json["session"]
    return owner


@pytest.mark.kill
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is for POSIX systems")
def test_nothing_of_a_scan_is_left_when_the_explorer_is_killed(clinic):
    place = clinic / "temporary"
    with explored(clinic, clinic / "model.h5") as (file, _, process):
        plain, _, code = address_in(file).partition("#code=")
        owner = entered(int(plain.rstrip("/").rpartition(":")[2]), code)
        mesh = b"# her scan\nv 0 0 0\nv 300 0 0\nv 0 300 0\nv 0 300 50\nf 1 2 3\nf 2 4 3\n"
        assert owner.ask("POST", "/api/scans?name=her.obj", mesh).status == 201
        if sys.platform == "linux":  # also when every process is killed at once, or the power fails
            files = [path for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
            assert files
            assert not [path for path in files if b"her scan" in path.read_bytes()]
        os.killpg(process.pid, signal.SIGKILL)
    end = time.monotonic() + 30.0
    while list(place.iterdir()) and time.monotonic() < end:
        time.sleep(0.02)
    assert not list(place.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
@pytest.mark.parametrize("with_folder", [True, False], ids=["a folder", "a model alone"])
def test_another_account_gets_nothing_and_finds_no_key(clinic, with_folder):
    given = [clinic / "clinic", "--model", clinic / "model.h5"] if with_folder else [clinic / "model.h5"]
    with explored(clinic, *given) as (file, words, _):
        address = address_in(file)
        plain, _, code = address.partition("#code=")
        port = int(plain.rstrip("/").rpartition(":")[2])
        before = as_stranger(port, "", "mean", clinic)  # while the code still works
        owner = entered(port, code)
        token = owner.headers["X-Token"]
        if with_folder:
            scan = owner.get("/api/queue").json["scans"][0]["scan"]
        else:
            sent = (clinic / "clinic" / "patient.ply").read_bytes()
            scan = owner.ask("POST", "/api/scans?name=new.ply", sent).json["scan"]
            assert owner.get(f"/api/scans/{scan}/geometry").status == 200
        # Even who overheard the session's name and the scan's:
        after = as_stranger(port, owner.headers["X-Session"], scan, clinic)
        renewed = address_in(file).partition("#code=")[2]
        assert words.split() == [file.as_uri()]
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    for found in (before, after):
        assert {status for status, _ in found["answers"].values()} == {403}
        assert not any("patient" in text for _, text in found["answers"].values())
        assert any("browser" in text and "open.html" in text for text in found["seen"])  # it did look
        if found["user"] != os.getuid():
            assert not any(secret in text for text in found["seen"] for secret in (code, renewed, token))
    assert len({code, renewed, token}) == 3
    assert (clinic / "clinic" / "landmarks" / "patient.json").read_bytes() == LANDMARKS


@pytest.fixture(scope="module")
def hurried(tmp_path_factory, breast_model):
    """An explorer with little patience."""
    path = tmp_path_factory.mktemp("model") / "model.h5"
    save_model(breast_model, path)
    settings = Settings(model=path, patience=1.0, slowest=2000, max_connections=12)
    with running(settings) as explorer:
        yield explorer


def seconds_until_cut(explorer, begin: bytes, piece: bytes, pause: float = 0.1) -> float:
    """How long a client can hold a connection that begins so and then trickles on; at most 20 s."""
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", explorer.settings.port)) as client:
        client.sendall(begin)
        client.settimeout(pause)
        while time.monotonic() - start < 20.0:
            try:
                if piece:
                    client.sendall(piece)
                if client.recv(4096) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    return time.monotonic() - start


@pytest.mark.parametrize("piece", [b"", b"x"], ids=["silent", "trickling"])
@pytest.mark.parametrize(
    "begin", ["", "GET / HTTP/1.1\r\nX-Long: ", "POST /api/scans?name=a.ply HTTP/1.1\r\n{}\r\n"]
)
def test_a_slow_connection_is_closed(hurried, begin, piece):
    visitor = Visitor.of(hurried)
    headers = {"Host": f"127.0.0.1:{visitor.port}", "Content-Length": "100000", **visitor.headers}
    written = begin.format("".join(f"{name}: {value}\r\n" for name, value in headers.items()))
    assert 0.8 < seconds_until_cut(hurried, written.encode(), piece) < 10.0
    end = time.monotonic() + 20.0
    while list(visitor.session.folder.rglob("*")) and time.monotonic() < end:
        time.sleep(0.02)
    assert not list(visitor.session.folder.rglob("*"))  # nothing is left of the upload
    visitor.leave()


def test_a_slow_upload_that_goes_on_arrives(hurried):
    visitor = Visitor.of(hurried)

    def pieces():
        for _ in range(10):  # 2 s: longer than the patience, but faster than the slowest
            yield bytes(4000)
            time.sleep(0.2)

    assert visitor.ask("POST", "/api/files?name=a.mtl", pieces()).status == 201
    visitor.leave()


def test_whoever_takes_no_answer_is_closed(hurried):
    start = time.monotonic()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", hurried.settings.port))
        asked = f"GET /viewer/three.min.js HTTP/1.1\r\nHost: 127.0.0.1:{hurried.settings.port}\r\n\r\n"
        try:
            while time.monotonic() - start < 20.0:
                client.sendall(asked.encode())  # and never reads
                time.sleep(0.1)
        except OSError:
            pass
    assert time.monotonic() - start < 15.0


def test_idle_connections_do_not_keep_the_owner_out(hurried):
    with running(replace(hurried.settings, patience=60.0)) as explorer:
        owner = Visitor.of(explorer)
        crowd = [socket.create_connection(("127.0.0.1", owner.port)) for _ in range(40)]
        try:
            assert owner.get("/api/state").status == 200
            crowd[0].settimeout(20.0)
            assert crowd[0].recv(1) == b""  # the one that was silent longest
            crowd[-1].setblocking(False)
            with pytest.raises(BlockingIOError):
                crowd[-1].recv(1)
        finally:
            for one in crowd:
                one.close()
