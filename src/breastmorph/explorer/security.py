"""Who may ask: the right host, the right origin, the right token; and the headers of every answer."""

from __future__ import annotations

import ipaddress
import secrets
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from breastmorph.explorer.problems import RequestProblem, as_record
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


class Doorkeeper:
    """Lets in only requests to this host, from this page, with the token; as ASGI middleware.

    Parameters
    ----------
    app : ASGIApp
    host, port
        The address the server listens on.
    token : str
        Empty where none is needed.
    """

    def __init__(self, app: ASGIApp, host: str, port: int, token: str) -> None:
        self.app, self.host, self.port, self.token = app, host, port, token
        # Cookies do not know ports: two explorers on one computer must not take each other's.
        self.cookie = f"breastmorph-{port}"

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
            self.require_host(Headers(scope=scope))
            self.require_origin(Headers(scope=scope))
            answer = self._entry(scope)
        except RequestProblem as problem:
            answer = JSONResponse(as_record(problem), problem.status)
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
            not one.startswith("http://") or not self.is_our_host(one.removeprefix("http://"))
            for one in origins
        )
        if foreign or headers.get("sec-fetch-site", "none") not in _OURS:
            raise RequestProblem(
                403,
                "this request comes from another page",
                "Open the explorer by its own address, in its own tab",
                code="other-origin",
            )

    def _entry(self, scope: Scope) -> Response | None:
        """Check the token; a refusal raises, the first visit gets its cookie."""
        if not self.token:
            return None
        headers = Headers(scope=scope)
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        if scope["path"] == "/" and "token" in query and self._is_right(query["token"][0]):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self.cookie, self.token, httponly=True, samesite="strict", path="/")
            return answer
        if not self._is_right(self._shown(headers)):
            raise RequestProblem(
                403,
                "the token is missing or wrong",
                "Open the whole address that the command printed, with its token",
                code="wrong-token",
            )
        return None

    def _shown(self, headers: Headers) -> str:
        # Other programs on this computer may have set cookies too, and in any shape.
        return cookie_parser(headers.get("cookie", "")).get(self.cookie, "")

    def _is_right(self, token: str) -> bool:
        return secrets.compare_digest(token.encode(), self.token.encode())
