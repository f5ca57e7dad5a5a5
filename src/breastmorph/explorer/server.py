"""Running the explorer: a socket on a free port, the page at once, everything else behind it."""

from __future__ import annotations

import errno
import logging
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from breastmorph.errors import BreastMorphError
from breastmorph.explorer.session import Explorer
from breastmorph.explorer.settings import EVERYWHERE, Settings, is_loopback

if TYPE_CHECKING:
    import uvicorn

_GRACE = 2  # seconds that open requests have at the end


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
            f"cannot listen on {host} port {port} ({error.strerror or error})",
            "Choose another --port, or leave it out for a free one"
            if taken
            else "Give an address of this computer with --host, or leave it out",
        ) from error
    return found


def address_of(settings: Settings) -> str:
    """What to open in a browser."""
    host = EVERYWHERE.get(settings.host, settings.host)
    place = f"[{host}]" if ":" in host else host
    return f"http://{place}:{settings.port}/" + (f"?token={settings.token}" if settings.token else "")


def serve(settings: Settings, on_ready: Callable[[str], None]) -> None:
    """Run until somebody ends it; all that visitors sent is deleted then.

    Parameters
    ----------
    settings : Settings
    on_ready : callable
        Called with the address once the page can be opened.
    """
    import uvicorn

    from breastmorph.explorer.app import application

    if not settings.token and not is_loopback(settings.host):
        raise BreastMorphError(
            f"{settings.host} can be reached from other computers", "Give a token (--token auto makes one)"
        )
    listening = bound_socket(settings.host, settings.port)
    settings = replace(settings, port=int(listening.getsockname()[1]))
    explorer = Explorer(settings)
    try:
        explorer.start()
        config = uvicorn.Config(
            application(explorer),
            log_level="warning",
            access_log=False,  # addresses hold tokens
            server_header=False,
            lifespan="on",
            timeout_graceful_shutdown=_GRACE,
        )
        server = _server(config, explorer)
        _end_with_the_terminal(server)
        on_ready(address_of(settings))
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        explorer.end()
        listening.close()


def _server(config: uvicorn.Config, explorer: Explorer) -> uvicorn.Server:
    """A server that ends quickly and silently, also in the middle of a request."""
    import uvicorn
    from anyio import to_thread

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # Whoever waits for a file is answered now; what is cut off nevertheless is no error worth a traceback.
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
            await to_thread.run_sync(explorer.end)
            await super().shutdown(sockets)

    return Server(config)


def _end_with_the_terminal(server: uvicorn.Server) -> None:
    """End in order when the terminal's window is closed, which uvicorn takes no notice of; not under nohup."""
    closed = getattr(signal, "SIGHUP", None)  # Windows has none
    if closed is not None and signal.getsignal(closed) is not signal.SIG_IGN:
        signal.signal(closed, server.handle_exit)
