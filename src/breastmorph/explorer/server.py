"""Running the explorer: a socket on a free port, the page at once, everything else behind it."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import h11
import uvicorn
from anyio import to_thread
from uvicorn.protocols.http.h11_impl import H11Protocol

from breastmorph.explorer.explorer import Explorer
from breastmorph.explorer.settings import EVERYWHERE, Settings
from breastmorph.foundation.arrays import templates
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import write_file

_GRACE = 2  # seconds that open requests have at the end
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>BreastMorph explorer</title>
<meta http-equiv="refresh" content="0; url={{ address }}"></head>
<body><p><a href="{{ address }}">Open the explorer</a></p></body></html>
"""


def bound_socket(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises
    ------
    BreastMorphError
        The address is not this computer's, or the port is taken.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as error:
        taken = error.errno in (errno.EADDRINUSE, errno.EACCES)
        raise BreastMorphError(
            "cannot listen on {host} port {port} ({why})",
            "Choose another port, or 0 for a free one" if taken else "Give an address of this computer",
            code="cannot-listen/taken" if taken else "cannot-listen/host",
            host=host,
            port=port,
            why=error.strerror or str(error),
        ) from error
    return found


@dataclass(frozen=True)
class Entrance:
    """How a user gets in.

    Attributes
    ----------
    address : str
        With a code that works once.
    file : Path
        A page that only this user can read. It leads to such an address too, and always to a fresh one: a browser
        is given this file, because others can read the words of its command line.
    """

    address: str
    file: Path


def address_of(settings: Settings, code: str = "") -> str:
    """What to open in a browser."""
    host = EVERYWHERE.get(settings.host, settings.host)
    place = f"[{host}]" if ":" in host else host
    # Browsers do not send what follows the #: it stands in no log, of whatever may lie between.
    return f"http://{place}:{settings.port}/" + (f"#code={code}" if code else "")


def entrance(explorer: Explorer) -> Entrance:
    """How to get in as long as the present code was not used; its file is written."""
    address, file = address_of(explorer.settings, explorer.keys.code), explorer.folder / "open.html"
    file.touch(mode=0o600)
    write_file(file, templates().from_string(_PAGE).render(address=address).encode())
    return Entrance(address, file)


def serve(
    settings: Settings, on_ready: Callable[[Entrance], None], on_entered: Callable[[Entrance], None]
) -> None:
    """Run until it is ended; all that visitors sent is deleted then.

    Parameters
    ----------
    settings : Settings
    on_ready : callable
        Called once the page can be opened.
    on_entered : callable
        Called when a user came in, with the entrance for the next.
    """
    _allow_many_files()
    listening = bound_socket(settings.host, settings.port)
    settings = replace(settings, port=int(listening.getsockname()[1]))
    explorer = Explorer(settings)

    def used() -> None:
        with suppress(BreastMorphError, OSError):  # a full disk must not keep out who has the code
            on_entered(entrance(explorer))

    explorer.keys.on_used = used
    try:
        _end_when_asked(explorer)
        explorer.start()
        server = _server(configured(explorer), explorer)
        _end_with_the_terminal(server)
        on_ready(entrance(explorer))
        server.run(sockets=[listening])
    finally:
        explorer.end()
        listening.close()


def _allow_many_files() -> None:
    """Every file of a visitor stays open, so that it needs no name; systems allow more than they offer at first."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # not on Windows, where files have names

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _end_when_asked(explorer: Explorer) -> None:
    """Until the server runs and takes over, end at once and silently; never in the middle of an import.

    The server hands back what it was asked when it is done: then everything is ended already.
    """

    def leave(number: int) -> None:
        explorer.end()
        os._exit(128 + number)

    def asked(number: int, frame: FrameType | None) -> None:
        if not explorer.is_over:  # in a thread: this one may have locked what the end waits for
            threading.Thread(target=leave, args=(number,), daemon=True).start()

    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, asked)


def configured(explorer: Explorer) -> uvicorn.Config:
    """How the explorer is served."""
    from breastmorph.explorer.app import application

    return uvicorn.Config(
        application(explorer),
        http=protocol(explorer.settings),
        ws="none",
        log_level="warning",
        access_log=False,  # where the output is kept, what was looked at is not
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=_GRACE,
    )


def _server(config: uvicorn.Config, explorer: Explorer) -> uvicorn.Server:
    """A server that ends quickly and silently, also in the middle of a request."""

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # A request that waits for a file is answered now; what is cut off even so is not worth a traceback.
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
            await to_thread.run_sync(explorer.end)
            await super().shutdown(sockets)

    return Server(config)


def _end_with_the_terminal(server: uvicorn.Server) -> None:
    """End in order when the terminal's window is closed, which uvicorn takes no notice of; not under nohup."""
    closed = getattr(signal, "SIGHUP", None)  # Windows has none
    if closed is not None and signal.getsignal(closed) is not signal.SIG_IGN:
        signal.signal(closed, server.handle_exit)


def protocol(settings: Settings) -> type[H11Protocol]:
    """The connections of a server; uvicorn itself waits for ever for what is missing of a request.

    Parameters
    ----------
    settings : Settings
        ``patience``, ``slowest`` and ``max_connections`` count.
    """
    enough = settings.patience * settings.slowest

    class Connection(H11Protocol):
        """One connection; its client has its time anew with every request and with every piece that is enough."""

        _timer: asyncio.TimerHandle | None = None
        _begun = False  # a request that is not answered yet
        _came = _unsent = 0  # bytes: since the time began, and at the last look
        heard = 0.0  # when the time began

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._give_time()
            others = [other for other in present if other.owes()]
            present.add(self)
            if len(present) > settings.max_connections and others:
                min(others, key=lambda other: other.heard).cut()

        def data_received(self, data: bytes) -> None:
            self._came += len(data)
            if not self._begun or self._came >= enough:
                self._give_time()
            self._begun = True
            super().data_received(data)

        def on_response_complete(self) -> None:
            self._begun = False
            self._give_time()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            present.discard(self)
            super().connection_lost(exc)

        def owes(self) -> bool:
            """Whether it is the client's turn: to begin, or to go on with what it began."""
            return self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.flow.read_paused

        def cut(self) -> None:
            """Close it at once."""
            self.transport.abort()

        def _give_time(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._came, self.heard = 0, self.loop.time()
            self._timer = self.loop.call_later(settings.patience, self._look)

        def _look(self) -> None:
            before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
            is_stuck = 0 < before <= self._unsent  # an answer of which nothing was taken
            if self.owes() or is_stuck or self.transport.is_closing():
                self.cut()
            else:
                self._give_time()

    present: set[Connection] = set()
    return Connection
