"""A running explorer for tests, and a visitor that talks to it over HTTP as the page does."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import uvicorn

from breastmorph.explorer.explorer import Explorer
from breastmorph.explorer.server import bound_socket, configured
from breastmorph.explorer.session import Session
from breastmorph.explorer.settings import Settings
from breastmorph.explorer.workspace import Case, Workspace


@contextmanager
def running(settings: Settings | None = None) -> Iterator[Explorer]:
    """An explorer that listens on a free port of this computer until the end of the block."""
    settings = settings or Settings()
    listening = bound_socket(settings.host, 0)
    explorer = Explorer(replace(settings, port=listening.getsockname()[1]))
    explorer.start()
    server = uvicorn.Server(configured(explorer))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield explorer
    finally:
        server.should_exit = True
        thread.join(60.0)
        listening.close()


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """As the page reads them; see ``breastmorph.explorer.answers``."""
        assert self.content[:4] == b"BMA1"
        start = 8 + int.from_bytes(self.content[4:8], "little")
        found = {}
        for one in json.loads(self.content[8:start]):
            count = int(np.prod(one["shape"], dtype=np.int64))
            flat = np.frombuffer(self.content, one["dtype"], count, start + one["offset"])
            found[one["name"]] = flat.reshape(one["shape"])
        return found


@dataclass
class Visitor:
    """A tab."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)
    explorer: Explorer | None = None

    @property
    def session(self) -> Session:
        """What the server has of this tab."""
        assert self.explorer is not None
        return self.explorer.find(self.headers["X-Session"])

    @property
    def case(self) -> Case:
        """What the server has of the scan that this tab works on."""
        now = self.session.workspace
        return now.case(now.current)

    def put(self, **parts: Any) -> Workspace:
        """Give the case that is worked on other parts without a step; returns the workspace before."""
        before = self.session.workspace
        self.session.workspace = before.changed(before.current, **parts)
        return before

    def leave(self) -> None:
        """End the session: there are only so many."""
        assert self.explorer is not None
        self.explorer.close(self.session)

    @classmethod
    def of(cls, explorer: Explorer) -> Visitor:
        """A tab with a session, once the model is there."""
        assert explorer.source.wait(120)
        visitor = cls(explorer.settings.port, {"X-Token": explorer.keys.token}, explorer)
        answer = visitor.ask("POST", "/api/sessions")
        assert answer.status == 201
        visitor.headers["X-Session"] = answer.json["session"]
        return visitor

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """One request; a dict is sent as JSON, bytes and iterables as they are."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        sent = json.dumps(body).encode() if isinstance(body, dict) else body
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, sent, {**self.headers, **named})
            reply = connection.getresponse()
            return Answer(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def post(self, path: str, body: Any = None) -> Answer:
        return self.ask("POST", path, {} if body is None else body)

    def job(self, path: str, body: Any = None) -> dict[str, Any]:
        """Start a job and wait for its end."""
        answer = self.post(path, body)
        assert answer.status == 202, answer.content
        record = answer.json
        end = time.monotonic() + 300
        while record["state"] == "running" and time.monotonic() < end:
            time.sleep(0.05)
            record = self.get(f"/api/jobs/{record['job']}").json
        return record
