"""From a request to an answer: the session, the body and the ids are checked, the work runs in a thread."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from breastmorph.explorer.answers import (
    bad_request,
    error_record,
    not_now,
    spoken,
    status_of,
    unknown,
)
from breastmorph.explorer.explorer import Explorer
from breastmorph.explorer.jobs import Cancelled, Job
from breastmorph.explorer.session import Session
from breastmorph.explorer.uploads import Upload, body
from breastmorph.explorer.workspace import Case, Workspace

# The JSON fields of the handlers that are use cases; another field is refused.
FIELDS: dict[str, tuple[str, ...]] = {
    "folder_routes.build": (),
    "folder_routes.check_queue": (),
    "folder_routes.register_queue": (),
    "scan_routes.register": (),
    "scan_routes.fit": (),
    "model_routes.measures": ("shape", "tape"),
    "model_routes.edit": ("base", "wishes", "hold", "hold_other"),
    "looking.compare": ("shape", "other"),
    "looking.compare_measures": ("shape", "other", "tape"),
    "patient_routes.predict": ("side", "vertices", "operated", "earlier", "known"),
    "patient_routes.plan": ("target",),
    "patient_routes.thickness": ("target",),
    "downloads.comparison": ("scans",),
}
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Asked:
    """A request.

    Attributes
    ----------
    session : Session
    values : mapping
        The JSON body.
    ids : mapping
        Parts of the path.
    query : mapping
    upload : Upload, optional
        The body, where it is a file.
    about : str, optional
        Key of the case that the page showed when it asked; the one worked on where it says none.
    """

    session: Session
    values: Mapping[str, Any] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    upload: Upload | None = None
    about: str | None = None

    @cached_property
    def case(self) -> Case:
        """The case that the request is about, as it was at the first look: all of an answer is made from it."""
        now = self.session.workspace
        return now.case(now.current if self.about is None else self.about)

    @property
    def scanned(self) -> Case:
        """The case of the scan that the path names, as it is now."""
        return self.session.open(self.ids["scan"])

    def change(self, what: str, **parts: Any) -> None:
        """Change parts of the case as a step; refused where it was closed or computed anew meanwhile."""
        case = self.case

        def change(now: Workspace) -> Workspace:
            if now.case(case.key).patient is not case.patient:
                raise not_now(
                    "something else is still being computed", "Wait for it, or cancel it first", code="busy"
                )
            return now.changed(case.key, **parts)

        self.session.step(what, change)

    def require_proposals(self) -> None:
        """Refuse where landmarks are set by hand only."""
        if not self.session.explorer.settings.propose:
            raise not_now(
                "landmarks are set by hand here",
                "Start the explorer so that it proposes them, or set them here",
                code="by-hand",
            )

    @property
    def file(self) -> Upload:
        """The file that came."""
        if self.upload is None:
            raise bad_request("a file was expected")
        return self.upload


@dataclass(frozen=True)
class Download:
    """A file to save."""

    name: str
    media: str
    content: bytes


@dataclass(frozen=True)
class Created:
    """Something new, as JSON."""

    record: dict[str, Any]


Handler = Callable[[Asked], Any]


def endpoint(
    explorer: Explorer, handler: str, limit: str = "", *, with_session: bool = True
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint for a handler, ``module.function`` of the explorer, which is loaded when first asked for.

    Parameters
    ----------
    explorer : Explorer
    handler : str
    limit : str
        The setting that limits the body where it is a file.
    with_session : bool
        False for the request that makes one.
    """

    async def answer(request: Request) -> Response:
        language = language_of(request)
        try:
            if with_session:
                session = explorer.find(request.headers.get("x-session", ""))
            else:
                session = await to_thread.run_sync(explorer.open)
            asked = await _asked(explorer, session, request, limit)
            return _response(await to_thread.run_sync(_run, handler, asked), language)
        except Cancelled:  # the explorer ended while a file was read
            return refusal(not_now("the explorer is ending", "Start it again: breastmorph explore"))
        except Exception as error:
            return refusal(error, language)

    return answer


def language_of(request: Request) -> str:
    """The page's language."""
    return str(request.headers.get("x-language", "en"))


def refusal(error: Exception, language: str = "en") -> Response:
    """An error as an answer."""
    status = status_of(error)
    if status == 500:
        _log.error("unexpected error", exc_info=error)
    return JSONResponse(spoken(error_record(error), language), status)


def _response(result: Any, language: str) -> Response:
    if result is None:
        return Response(status_code=204)
    if isinstance(result, bytes):
        return Response(result, media_type="application/octet-stream")
    if isinstance(result, Download):
        name = result.name.encode("ascii", "replace").decode().replace('"', "_").replace("?", "_")
        header = f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(result.name)}"
        return Response(result.content, media_type=result.media, headers={"Content-Disposition": header})
    if isinstance(result, Job):
        return JSONResponse(spoken(result.as_record(), language), 202)
    if isinstance(result, Created):
        return JSONResponse(spoken(result.record, language), 201)
    return JSONResponse(spoken(result, language))


def _run(handler: str, asked: Asked) -> Any:
    strange = set(asked.values) - set(FIELDS.get(handler, asked.values))
    if strange:
        raise bad_request("the request has a field {strange!r} that it does not know", strange=min(strange))
    module, _, name = handler.partition(".")
    function: Handler = getattr(import_module(f"breastmorph.explorer.{module}"), name)
    return function(asked)


async def _asked(explorer: Explorer, session: Session, request: Request, limit: str) -> Asked:
    ids = {name: str(value) for name, value in request.path_params.items()}
    if not all(_ID.fullmatch(value) for value in ids.values()):
        raise unknown("thing")
    query, about = dict(request.query_params), request.headers.get("x-scan")
    if limit:
        name, most = query.get("name", ""), getattr(explorer.settings, limit)
        return Asked(session, {}, ids, query, await session.uploads.receive(request, name, most), about)
    data = bytearray()
    if request.method != "GET":
        async for piece in body(request, explorer.settings.max_json):
            data += piece
    return Asked(session, _values(bytes(data)), ids, query, about=about)


def _values(data: bytes) -> dict[str, Any]:
    if not data.strip():
        return {}
    try:
        values = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise bad_request("the request is no JSON") from None
    if not isinstance(values, dict):
        raise bad_request("the request is no JSON object")
    return values


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")
