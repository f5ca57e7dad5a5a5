"""Running the explorer: a socket on a free port, the page at once, everything else behind it."""

from __future__ import annotations

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
from typing import TYPE_CHECKING

from breastmorph.explorer.connections import protocol
from breastmorph.explorer.explorer import Explorer
from breastmorph.explorer.settings import EVERYWHERE, Settings
from breastmorph.foundation.arrays import templates
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import write_file

if TYPE_CHECKING:
    import uvicorn

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
    import uvicorn

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
    import uvicorn
    from anyio import to_thread

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
