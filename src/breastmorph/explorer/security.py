"""Who may ask: the right host, the right origin, the right token; and the headers of every answer."""

from __future__ import annotations

import ipaddress
import secrets
import threading
from collections.abc import Callable

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from breastmorph.explorer.answers import RequestProblem, error_record, spoken
from breastmorph.explorer.settings import EVERYWHERE, is_loopback

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_OURS = ("same-origin", "none")  # of Sec-Fetch-Site; another port of this computer is "same-site", not ours
ENTRANCE = "/api/enter"
_BYTES = 24  # of a secret: 192 bits are not guessed


class Keys:
    """What opens an explorer: a code that works once, and the token that a browser gets for it.

    The code is part of the address, so it may be seen by others after its use: in a history, over a shoulder. The
    token is sent with every request for data and dies with the server. The page keeps it in the browser's storage for
    this very address: a cookie would also be sent to other ports, where another user of this computer may listen.

    Attributes
    ----------
    token, code : str
    on_used : callable
        Called when a code was used and there is a new one.
    """

    def __init__(self) -> None:
        self.token, self.code = secrets.token_urlsafe(_BYTES), secrets.token_urlsafe(_BYTES)
        self.on_used: Callable[[], None] = lambda: None
        self._lock = threading.Lock()

    def exchange(self, code: str) -> str:
        """The token for a code, which is worth nothing from then on.

        Raises
        ------
        RequestProblem
            403 where the code is not the present one.
        """
        with self._lock:
            if not _is_same(code, self.code):
                raise RequestProblem(
                    403,
                    "this address was opened before, and each works once",
                    "Open the newest address in the terminal, or the file open.html that it names. If another person "
                    "opened it, end the explorer with Ctrl-C",
                    code="used-address",
                )
            self.code = secrets.token_urlsafe(_BYTES)
            self.on_used()
            return self.token

    def require(self, token: str) -> None:
        """Refuse a request without the token."""
        if not _is_same(token, self.token):
            raise RequestProblem(
                403,
                "this browser has no token, or one of an earlier explorer",
                "Open the newest address in the terminal, or the file open.html that it names",
                code="wrong-token",
            )


def _is_same(shown: str, secret: str) -> bool:
    return secrets.compare_digest(shown.encode(), secret.encode())


class Doorkeeper:
    """Lets in only requests to this host, from this page, with the token; as ASGI middleware.

    Without the token there are the files of the page, which are the same for all, and nothing else.

    Parameters
    ----------
    app : ASGIApp
    host, port
        The address the server listens on.
    keys : Keys
    """

    def __init__(self, app: ASGIApp, host: str, port: int, keys: Keys) -> None:
        self.app, self.host, self.port, self.keys = app, host, port, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            headers = Headers(scope=scope)
            self.require_host(headers)
            if not _is_visit(scope, headers):
                self.require_origin(headers)
            answer = await self._entry(scope, headers)
        except RequestProblem as problem:
            answer = JSONResponse(
                spoken(error_record(problem), headers.get("x-language", "en")), problem.status
            )
        await (self.app if answer is None else answer)(scope, receive, with_headers)

    def require_host(self, headers: Headers) -> None:
        """Refuse a request to another name than ours: a foreign page may point its own name at this computer."""
        names = headers.getlist("host")
        if len(names) != 1 or not self.is_our_host(names[0]):
            raise RequestProblem(
                403,
                "this request was sent to another host name",
                "Open the page at the address that the command printed",
                code="wrong-host",
            )

    def is_our_host(self, name: str) -> bool:
        """Whether a Host header names this server."""
        host, _, port = name.rpartition(":") if not name.endswith("]") else (name, "", "")
        if not host and port:  # no colon: the port is the default one
            host, port = port, ""
        if (port or "80") != str(self.port):
            return False
        host = host.strip("[]").lower()
        if host == self.host.lower():
            return True
        if is_loopback(self.host):
            return host == "localhost" or is_loopback(host)
        if self.host in EVERYWHERE:  # any address of this computer; an address cannot be pointed elsewhere
            try:
                ipaddress.ip_address(host)
            except ValueError:
                return host == "localhost"
            return True
        return False

    def require_origin(self, headers: Headers) -> None:
        """Refuse what another page sends."""
        origins = headers.getlist("origin")
        foreign = any(
            not origin.startswith("http://") or not self.is_our_host(origin.removeprefix("http://"))
            for origin in origins
        )
        if foreign or headers.get("sec-fetch-site", "none") not in _OURS:
            raise RequestProblem(
                403,
                "this request comes from another page",
                "Open the explorer by its own address, in its own tab",
                code="other-origin",
            )

    async def _entry(self, scope: Scope, headers: Headers) -> Response | None:
        """Check the token; a refusal raises, a code is answered with the token."""
        if (scope["method"], scope["path"]) == ("POST", ENTRANCE):
            token = await to_thread.run_sync(self.keys.exchange, headers.get("x-code", ""))
            return JSONResponse({"token": token})
        if not _is_of_the_page(scope):
            self.keys.require(headers.get("x-token", ""))
        return None


def _is_of_the_page(scope: Scope) -> bool:
    """Whether a request is for a file of the page: these come with the software and hold no data."""
    path: str = scope["path"]
    return scope["method"] in ("GET", "HEAD") and (
        path in ("/", "/words.json") or path.startswith(("/page/", "/viewer/"))
    )


def _is_visit(scope: Scope, headers: Headers) -> bool:
    """Whether the page is opened in a tab, perhaps by a link; the file open.html is one for the browser."""
    shown = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return (scope["method"], scope["path"], *shown) == ("GET", "/", "navigate", "document")
