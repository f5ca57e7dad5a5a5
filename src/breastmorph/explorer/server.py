"""Running the explorer: a socket on a free port, the page at once, everything else behind it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace

from breastmorph.errors import BreastMorphError
from breastmorph.explorer.session import Explorer
from breastmorph.explorer.settings import Settings, is_loopback

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
        raise BreastMorphError(
            f"cannot listen on {host} port {port} ({error.strerror or error})",
            "Choose another --port, or leave it out for a free one",
        ) from error
    return found


def address_of(settings: Settings) -> str:
    """What to open in a browser."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)  # noqa: S104 - compared
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
        on_ready(address_of(settings))
        uvicorn.Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        pass
    finally:
        explorer.end()
        listening.close()
