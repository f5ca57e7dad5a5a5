"""Who is let in, what is refused, and that the server goes on after each refusal."""

from __future__ import annotations

import http.client
import os
import re
import signal
import stat
import threading
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from importlib.resources import files

import pytest

from breastmorph.explorer.answers import RequestProblem
from breastmorph.explorer.app import _ENDPOINTS
from breastmorph.explorer.jobs import Cancelled, WorkerCalls
from breastmorph.explorer.security import Doorkeeper, Keys
from breastmorph.explorer.settings import MEGABYTE, Settings, is_loopback
from breastmorph.explorer.uploads import harmless_name
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.workers import Limits
from breastmorph.model.files import save_model
from explorer_client import Visitor, running


@pytest.fixture(scope="module")
def settings(tmp_path_factory, breast_model) -> Settings:
    path = tmp_path_factory.mktemp("model") / "model.h5"
    save_model(breast_model, path)
    return Settings(model=path, max_upload=3 * MEGABYTE)


@pytest.fixture(scope="module")
def explorer(settings):
    with running(settings) as found:
        yield found


@pytest.fixture
def visitor(explorer):
    found = Visitor.of(explorer)
    yield found
    assert found.get("/api/state").status == 200  # it goes on
    found.leave()


def refusal(answer) -> tuple[int, str]:
    """Status and code of a refusal, which must also say why and what to do."""
    assert answer.json["cause"]
    assert answer.json["remedy"]
    return answer.status, answer.json["code"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:{port}", "127.0.0.1:1", "", "[::1]"]
)
def test_another_host_name_is_refused(visitor, host):
    assert refusal(visitor.ask("GET", "/", Host=host.format(port=visitor.port))) == (403, "wrong-host")


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:{port}", "LOCALHOST:{port}"])
def test_names_of_this_computer_are_let_in(visitor, host):
    assert visitor.ask("GET", "/api/state", Host=host.format(port=visitor.port)).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/api/sessions"), ("GET", "/"), ("GET", "/api/state")])
def test_another_page_is_refused(visitor, headers, method, path):
    sent = {name: value.format(port=visitor.port) for name, value in headers.items()}
    assert refusal(visitor.ask(method, path, **sent)) == (403, "other-origin")


def test_the_page_itself_is_let_in(visitor):
    own = {"Origin": f"http://127.0.0.1:{visitor.port}", "Sec-Fetch-Site": "same-origin"}
    assert visitor.ask("POST", "/api/measures", {"shape": {"kind": "mean"}}, **own).status == 200


def test_every_answer_has_the_safe_headers(visitor):
    for answer in (
        visitor.get("/"),
        visitor.get("/api/state"),
        visitor.get("/nowhere"),
        visitor.ask("GET", "/", Host="x"),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("shown", [{}, {"X-Token": ""}, {"X-Token": "guess"}, {"X-Token": "\xe9"}])
def test_without_the_token_there_is_the_empty_page_and_nothing_else(visitor, shown):
    stranger = Visitor(visitor.port, {"X-Session": visitor.headers["X-Session"], **shown})
    for request in (*_ENDPOINTS, "POST /api/sessions", "GET /nowhere", "POST /", "GET /api/enter"):
        method, _, path = request.partition(" ")
        answer = stranger.ask(method, re.sub(r"{\w+}", "mean", path))
        assert refusal(answer) == (403, "wrong-token"), request
    packaged = files("breastmorph.explorer").joinpath("page/index.html").read_bytes()
    assert stranger.get("/").content == stranger.get("/page/index.html").content == packaged


def test_a_code_opens_once_and_the_token_after_that(explorer):
    keys, browser = explorer.keys, Visitor(explorer.settings.port)
    used, told = keys.code, []
    keys.on_used = lambda: told.append(keys.code)
    first = browser.ask("POST", "/api/enter", X_Code=used)
    assert first.json == {"token": keys.token}
    assert "set-cookie" not in first.headers  # it would go to other ports of this computer too
    assert refusal(browser.ask("POST", "/api/enter", X_Code=used)) == (403, "used-address")
    for wrong in ("", keys.token, "\xe9"):
        assert refusal(browser.ask("POST", "/api/enter", X_Code=wrong)) == (403, "used-address")
    assert told == [keys.code]
    assert keys.code != used
    assert browser.ask("GET", "/api/state", X_Token=first.json["token"]).json["code"] == "no-session"


def test_only_one_of_many_gets_in_with_a_code():
    keys = Keys()
    used, let_in = keys.code, []

    def enter() -> None:
        with suppress(RequestProblem):
            let_in.append(keys.exchange(used))

    crowd = [threading.Thread(target=enter) for _ in range(20)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert let_in == [keys.token]
    assert min(map(len, (keys.token, keys.code))) >= 32
    assert len({keys.token, keys.code, used, Keys().token}) == 4


def test_a_link_may_open_the_page_but_ask_for_nothing(visitor):
    tab = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert visitor.ask("GET", "/", **tab).status == 200
    for method, path in (("GET", "/api/state"), ("POST", "/api/enter"), ("GET", "/page/index.html")):
        sent = {**tab, "X-Code": visitor.explorer.keys.code}
        assert refusal(visitor.ask(method, path, **sent)) == (403, "other-origin")
    framed = {**tab, "Sec-Fetch-Dest": "iframe"}
    assert refusal(visitor.ask("GET", "/", **framed)) == (403, "other-origin")


def test_what_is_this_computer_alone():
    assert is_loopback("::1")
    assert not is_loopback("evil.example")


def test_on_all_addresses_only_addresses_are_let_in():
    keeper = Doorkeeper(lambda *_: None, "0.0.0.0", 8000, Keys())
    assert keeper.is_our_host("192.168.1.5:8000")
    assert keeper.is_our_host("[fe80::1]:8000")
    assert not keeper.is_our_host("evil.example:8000")
    assert not keeper.is_our_host("192.168.1.5:8001")


def test_a_two_gigabyte_upload_is_refused_at_once(visitor, explorer):
    connection = http.client.HTTPConnection("127.0.0.1", visitor.port, timeout=120)
    connection.putrequest("POST", "/api/scans?name=huge.ply")
    connection.putheader("Content-Length", str(2 * 1024**3))
    for name in ("X-Token", "X-Session"):
        connection.putheader(name, visitor.headers[name])
    connection.endheaders()  # and not one byte of the body
    reply = connection.getresponse()
    assert reply.status == 413
    assert b"larger than the 3 MB" in reply.read()
    connection.close()
    assert not list(visitor.session.folder.rglob("*"))


def test_an_upload_of_unknown_length_ends_at_the_limit(visitor, explorer):
    resource = pytest.importorskip("resource")
    explorer.source.view.mean_editing.prepare()  # what happens in the background needs memory too
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pieces = (bytes(64 * 1024) for _ in range(4800))  # 300 MB, of which 3 are allowed
    answer = visitor.ask("POST", "/api/scans?name=endless.ply", pieces)
    assert refusal(answer) == (413, "too-large")
    # kB: what follows is thrown away; the explorer may still be preparing itself
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000
    assert not list(visitor.session.folder.rglob("*"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("torso.ply", b"ply\nformat ascii 1.0\nelement vertex 900000000\nproperty float x\nend_header\n"),
        ("torso.ply", bytes(1000)),
        ("torso.stl", b"\x89PNG\r\n\x1a\n" + bytes(200)),
        ("torso.obj", b"v 1 2 3\nf 1 2 900\n"),
        ("torso.glb", b"glTF\x02\x00\x00\x00" + b"\xff" * 60),
        ("torso.ply", b""),
        ("torso.exe", b"MZ" + bytes(300)),
    ],
)
def test_a_corrupt_upload_is_refused_and_deleted(visitor, explorer, name, content):
    answer = visitor.ask("POST", f"/api/scans?name={name}", content)
    assert answer.status in (400, 422)
    assert answer.json["cause"]
    assert answer.json["where"] in ("", name)
    assert not list(visitor.session.folder.rglob("*"))


CLIMBS = [
    "..%2f..%2fetc%2fpasswd",
    "..",
    "%2e%2e%2fmodel.h5",
    "a%00b",
    "C:%5Cx",
    "x" * 300,
    "s%0d%0aX%3a%20y",
]


@pytest.mark.parametrize("climb", CLIMBS)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/scans/{}"),
        ("DELETE", "/api/scans/{}"),
        ("GET", "/api/scans/{}/geometry"),
        ("GET", "/api/scans/{}/texture"),
        ("GET", "/api/scans/{}/result"),
        ("POST", "/api/scans/{}/pick"),
        ("POST", "/api/scans/{}/register"),
        ("GET", "/api/jobs/{}"),
        ("DELETE", "/api/jobs/{}"),
        ("GET", "/api/files/{}"),
        ("GET", "/page/{}"),
        ("GET", "/viewer/{}"),
        ("GET", "/{}/index.html"),
    ],
)
def test_no_path_leads_out_of_the_table(visitor, method, path, climb):
    answer = visitor.ask(method, path.format(climb))
    assert answer.status in (404, 405)
    assert answer.json["cause"]


@pytest.mark.parametrize(
    "climb", ["../../x.ply", "..\\..\\x.ply", "/etc/x.ply", "C:\\x.ply", "\0x.ply", "..x.ply"]
)
def test_names_of_files_become_harmless(climb):
    name = harmless_name(climb)
    assert name.endswith("x.ply")
    assert not set(name) & set("/\\:\0")
    assert not name.startswith(".")


@pytest.mark.parametrize(
    "name", ["Scan's #1 & 2.obj", "Mu\u0308ller.mtl", "\u60a3\u8005.png", "P-03 (a)+b,c.ply"]
)
def test_a_harmless_name_stays_as_it_is_because_other_files_mention_it(name):
    assert harmless_name(name) == name


def test_a_long_name_fits_on_the_disk():
    name = harmless_name("\U00020000" * 300 + ".ply")
    assert name.endswith(".ply")
    assert len(name.encode()) < 200


@pytest.mark.parametrize("name", ["", "ply", ".ply", "..", "x.", "a/", "x.a b"])
def test_a_file_without_a_proper_name_is_refused(name):
    with pytest.raises(RequestProblem):
        harmless_name(name)


def test_bodies_that_name_files_open_none(visitor):
    for body in ({"scan": "../../etc/passwd"}, {"scan": ["mean"]}, {"scan": "mean", "format": "/etc/passwd"}):
        assert visitor.post("/api/download/landmarks", body).status in (400, 404)
    assert visitor.post("/api/scans?name=a.obj&with=../../x", b"v 0 0 0").status == 404


def test_two_sessions_do_not_see_each_other(visitor, explorer):
    neighbour = Visitor.of(explorer)
    mesh = b"v 0 0 0\nv 300 0 0\nv 0 300 0\nv 0 300 50\nf 1 2 3\nf 2 4 3\n"
    scan = visitor.ask("POST", "/api/scans?name=a.obj", mesh).json["scan"]
    file = visitor.ask("POST", "/api/files?name=a.mtl", b"newmtl skin").json["file"]
    assert visitor.get(f"/api/scans/{scan}").status == 200
    for path in (f"/api/scans/{scan}", f"/api/scans/{scan}/geometry", f"/api/files/{file}"):
        assert neighbour.get(path).status == 404
    assert neighbour.ask("DELETE", f"/api/scans/{scan}").status == 404
    folders = [one.session.folder for one in (visitor, neighbour)]
    assert folders[0] != folders[1]
    assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 for folder in (*folders, explorer.folder))
    neighbour.leave()
    assert not folders[1].exists()
    assert neighbour.get("/api/state").json["code"] == "no-session"
    assert visitor.get(f"/api/scans/{scan}").status == 200


@pytest.mark.parametrize("session", ["", "guess", "../x"])
def test_without_a_session_nothing_is_told(explorer, session):
    stranger = Visitor(explorer.settings.port, {"X-Session": session, "X-Token": explorer.keys.token})
    assert refusal(stranger.get("/api/state")) == (404, "no-session")


def sent(visitor: Visitor):
    """The answer to a scan."""
    mesh = b"v 0 0 0\nv 300 0 0\nv 0 300 0\nv 0 300 50\nf 1 2 3\nf 2 4 3\n"
    return visitor.ask("POST", "/api/scans?name=a.obj", mesh)


def test_a_tab_that_holds_nothing_or_was_closed_gives_way_to_a_new_one(settings):
    with running(replace(settings, max_sessions=2)) as explorer:
        first, second = Visitor.of(explorer), Visitor.of(explorer)
        assert sent(first).status == 201
        third = Visitor.of(explorer)  # in the place of the second, which holds nothing
        assert refusal(second.get("/api/state")) == (404, "no-session")
        assert sent(third).status == 201
        token = {"X-Token": explorer.keys.token}
        assert refusal(Visitor(third.port, token).post("/api/sessions")) == (429, "too-many-sessions")
        assert first.post("/api/left").status == 204  # as a page does that is closed
        assert first.get("/api/state").status == 200  # it was only loaded again
        assert refusal(Visitor(third.port, token).post("/api/sessions")) == (429, "too-many-sessions")
        first.post("/api/left")
        stop = threading.Event()
        working = first.session.jobs.start("waits", lambda _: {"stopped": stop.wait(60.0)})
        first.post("/api/left")  # what computes for it is not ended
        assert refusal(Visitor(third.port, token).post("/api/sessions")) == (429, "too-many-sessions")
        stop.set()
        first.session.jobs.wait(60.0)
        assert working.is_over
        first.post("/api/left")
        for _ in range(5):  # tabs that are opened in a loop keep no one out
            Visitor.of(explorer)
        assert third.get("/api/state").status == 200
        assert first.get("/api/state").status == 404


def test_a_tab_reads_one_file_at_a_time(visitor):
    with visitor.session.reading:
        assert refusal(sent(visitor)) == (409, "busy")
        assert not list(visitor.session.folder.rglob("*"))
    assert sent(visitor).status == 201


def test_an_idle_session_ends_and_the_end_leaves_nothing(settings):
    with running(settings) as explorer:
        visitor = Visitor.of(explorer)
        session = visitor.session
        visitor.ask("POST", "/api/files?name=a.mtl", b"newmtl skin")
        explorer.end_idle()
        assert session.folder.exists()
        session.seen -= settings.idle + 1.0
        explorer.end_idle()
        assert not session.folder.exists()
        Visitor.of(explorer).ask("POST", "/api/files?name=a.mtl", b"newmtl skin")
        whole = explorer.folder
    assert not whole.exists()


def troubled():
    """Setup of a process that reads files with a will of their own."""

    def read(item: str) -> str:
        if item == "hangs":
            time.sleep(600)
        if item == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if item == "is greedy":
            bytearray(1 << 42)
        if item == "is broken":
            raise FileProblem("the file is broken", "Export it again")
        if item == "surprises":
            raise ZeroDivisionError("nobody expected this")
        return f"{item}, read"

    return read


@pytest.mark.slow
def test_a_hostile_file_costs_its_own_process_only():
    with WorkerCalls(troubled, Limits(seconds=4.0, memory=2 * 1024**3)) as calls:
        codes = []
        for item in ("hangs", "crashes", "is greedy", "is broken", "surprises"):
            with pytest.raises(BreastMorphError) as refused:
                calls.call(item)
            codes.append(refused.value.code)
            assert refused.value.remedy
            assert calls.call("a good file") == "a good file, read"
        assert codes == ["time-limit", "crashed", "memory-limit", "unreadable", "unexpected-content"]
        with pytest.raises(Cancelled):
            calls.call("hangs", lambda: True)
        assert calls.call("a good file") == "a good file, read"


@contextmanager
def while_one_hangs(most: int):
    """Shared processes, one of which is busy until the end of the block."""
    stop, begun = threading.Event(), threading.Event()
    ends = []

    def asked() -> bool:
        begun.set()
        return stop.is_set()

    def wait() -> None:
        try:
            calls.call("hangs", asked)
        except Cancelled as end:
            ends.append(end)

    with closing(WorkerCalls(troubled, Limits(seconds=300.0), most)) as calls:
        slow = threading.Thread(target=wait)
        slow.start()
        assert begun.wait(60.0)
        yield calls
        assert slow.is_alive()
        stop.set()
        slow.join(60.0)
        assert len(ends) == 1
        assert calls.call("the next") == "the next, read"


@pytest.mark.slow
def test_a_slow_file_does_not_hold_up_another():
    with while_one_hangs(most=2) as calls:
        assert calls.call("a good file") == "a good file, read"


@pytest.mark.slow
def test_whoever_waits_for_a_process_can_stop_waiting():
    with while_one_hangs(most=1) as calls, pytest.raises(Cancelled):
        calls.call("a good file", lambda: True)


def test_an_unexpected_error_tells_no_secrets(visitor, monkeypatch):
    from breastmorph.explorer import shape_routes

    def broken(asked):
        raise ZeroDivisionError("/home/somebody/secret")

    monkeypatch.setattr(shape_routes, "model_state", broken)
    answer = visitor.get("/api/model")
    assert answer.status == 500
    assert "secret" not in answer.content.decode()


def test_whoever_waits_for_a_file_is_told_that_the_explorer_ends(visitor, explorer, monkeypatch):
    def ended(*_: object) -> None:
        raise Cancelled

    monkeypatch.setattr(explorer.reading, "call", ended)
    answer = visitor.ask("POST", "/api/scans?name=a.obj", b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    assert answer.status == 409
    assert "ending" in answer.json["cause"]


def test_a_page_opens_folders_within_the_commands_by_keys_only(clinic, folder):
    with running(Settings(model=folder / "model.h5", folder=clinic, propose=False)) as explorer:
        visitor, other = Visitor.of(explorer), Visitor.of(explorer)
        assert visitor.get("/api/state").json["queue"] is False  # no scan in the folder itself
        assert visitor.get("/api/queue").json["code"] == "no-queue"
        found = {one["name"]: one for one in visitor.get("/api/folders").json["folders"]}
        assert {name: one["scans"] for name, one in found.items()} == {"clinic/autumn": 1, "clinic/spring": 3}
        for wrong in (str(clinic / "spring"), "../elsewhere", "clinic/link", "f" + 16 * "0", None, 3, ["x"]):
            answer = visitor.post("/api/folders", {"folder": wrong})
            assert (answer.status, answer.json["code"]) == (404, "no-folder"), wrong
        opened = visitor.post("/api/folders", {"folder": found["clinic/autumn"]["folder"]}).json
        assert [row["name"] for row in opened["scans"]] == ["late"]
        assert opened["results"] == "autumn/registration"
        assert other.get("/api/state").json["queue"] is False  # another tab has its own
        key = opened["scans"][0]["scan"]
        assert visitor.get(f"/api/scans/{key}").json["name"] == "late"
        assert other.get(f"/api/scans/{key}").status == 404
        assert [one["open"] for one in visitor.get("/api/folders").json["folders"]] == [True, False]
        moved = clinic / "spring"
        moved.rename(clinic.parent / "away")
        try:
            assert visitor.post("/api/folders", {"folder": found["clinic/spring"]["folder"]}).status == 404
        finally:
            (clinic.parent / "away").rename(moved)
        assert visitor.post("/api/queue/model").json["code"] == "nothing-ready"
        assert visitor.get("/api/queue/quality").json == {"rows": []}
