"""The explorer as a web application: which request goes to which handler.

Bodies and answers are JSON unless stated otherwise, and every error is ``{"cause", "remedy", "where", "code"}``. What
``POST /api/sessions`` gives as ``session`` is the header X-Session of all other requests. Before that, ``POST
/api/enter`` gives for the code of an address (header X-Code) the ``token``, which is the header X-Token of all others.
The header X-Scan says which of the open scans a request is about (empty: none); without it, the one worked on.

A handler is a plain function of an :class:`~breastmorph.explorer.app.Asked`. What it returns becomes the answer: a
dict is JSON, bytes are arrays, a ``Download`` is a file, a ``Job`` is 202 with the job, None is 204.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from breastmorph.explorer.answers import (
    RequestProblem,
    bad_request,
    error_record,
    not_now,
    spoken,
    status_of,
    unknown,
)
from breastmorph.explorer.explorer import Explorer
from breastmorph.explorer.jobs import Cancelled, Job
from breastmorph.explorer.security import Doorkeeper
from breastmorph.explorer.session import Session
from breastmorph.explorer.uploads import Upload, body
from breastmorph.explorer.wording import page_texts
from breastmorph.explorer.workspace import Case, Workspace
from breastmorph.foundation.language import N_

_ENDPOINTS = {  # handlers are functions of these modules, loaded when first asked for
    "GET /api/state": "session_routes.session_state",
    "POST /api/undo": "session_routes.undo_step",
    "POST /api/redo": "session_routes.redo_step",
    "POST /api/notes": "session_routes.notes",
    "GET /api/cases": "session_routes.cases",
    "POST /api/cases": "session_routes.switch",
    "GET /api/jobs/{job}": "session_routes.job",
    "DELETE /api/jobs/{job}": "session_routes.cancel",
    "POST /api/left": "session_routes.left",
    "POST /api/files": "session_routes.add_file",
    "GET /api/files/{file}": "session_routes.fetch_file",
    "GET /api/model": "shape_routes.model_state",
    "GET /api/model/geometry": "shape_routes.model_geometry",
    "GET /api/model/maps": "shape_routes.model_maps",
    "GET /api/model/file": "shape_routes.model_file",
    "POST /api/model/landmarks": "shape_routes.use_landmarks",
    "POST /api/shape": "shape_routes.shape",
    "POST /api/measures": "shape_routes.measures",
    "POST /api/compare": "looking.compare",
    "POST /api/compare/measures": "looking.compare_measures",
    "POST /api/symmetry": "looking.symmetry",
    "POST /api/lines": "looking.lines",
    "POST /api/ruler": "looking.ruler",
    "GET /api/edit": "shape_routes.features",
    "POST /api/edit": "shape_routes.edit",
    "DELETE /api/edit": "shape_routes.forget_edit",
    "POST /api/kept": "shape_routes.keep",
    "DELETE /api/kept": "shape_routes.forget_kept",
    "GET /api/folders": "folder_routes.folders",
    "POST /api/folders": "folder_routes.open_folder",
    "GET /api/queue": "folder_routes.queue",
    "GET /api/queue/quality": "folder_routes.quality",
    "POST /api/queue/model": "folder_routes.build",
    "POST /api/queue/propose": "folder_routes.propose_queue",
    "POST /api/queue/accept": "folder_routes.accept_queue",
    "POST /api/queue/check": "folder_routes.check_queue",
    "POST /api/queue/register": "folder_routes.register_queue",
    "POST /api/scans": "scan_routes.upload",
    "POST /api/scans/example": "scan_routes.example",
    "GET /api/scans/{scan}": "scan_routes.scan_state",
    "DELETE /api/scans/{scan}": "scan_routes.delete_scan",
    "POST /api/scans/{scan}/rename": "session_routes.rename",
    "POST /api/scans/{scan}/remove": "session_routes.remove_scan",
    "POST /api/scans/{scan}/thumbnail": "session_routes.thumbnail",
    "GET /api/scans/{scan}/geometry": "scan_routes.scan_geometry",
    "GET /api/scans/{scan}/texture": "scan_routes.texture",
    "GET /api/scans/{scan}/result": "scan_routes.result",
    "POST /api/scans/{scan}/propose": "scan_routes.propose",
    "POST /api/scans/{scan}/confirm": "scan_routes.confirm",
    "POST /api/scans/{scan}/pick": "scan_routes.pick",
    "POST /api/scans/{scan}/undo": "scan_routes.undo",
    "POST /api/scans/{scan}/absent": "scan_routes.absent",
    "POST /api/scans/{scan}/skip": "scan_routes.skip",
    "POST /api/scans/{scan}/swap": "scan_routes.swap",
    "POST /api/scans/{scan}/landmarks": "scan_routes.landmarks",
    "POST /api/scans/{scan}/register": "scan_routes.register",
    "POST /api/scans/{scan}/fit": "scan_routes.fit",
    "POST /api/scans/{scan}/use": "scan_routes.use",
    "POST /api/predict": "shape_routes.predict",
    "GET /api/prediction/alternatives": "shape_routes.alternatives",
    "DELETE /api/prediction": "shape_routes.forget_prediction",
    "POST /api/plan": "shape_routes.plan",
    "POST /api/plan/map": "shape_routes.thickness",
    "POST /api/sections": "shape_routes.cuts",
    "POST /api/download/mesh": "downloads.mesh",
    "POST /api/download/textured": "downloads.textured",
    "POST /api/download/measures": "downloads.measures",
    "POST /api/download/landmarks": "downloads.landmarks",
    "POST /api/download/sheet": "downloads.page",
    "POST /api/download/plan": "downloads.solid",
    "POST /api/download/handout": "downloads.handout",
    "POST /api/download/comparison": "downloads.comparison",
    "POST /api/download/session": "downloads.session",
    "POST /api/session-file": "downloads.reopen",
}
_FILES = {  # handlers whose body is a file, and the setting that limits it
    "session_routes.add_file": "max_upload",
    "scan_routes.upload": "max_upload",
    "scan_routes.landmarks": "max_landmarks",
    "downloads.reopen": "max_upload",
}
_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOLDERS = {"page": files("breastmorph.explorer").joinpath("page"), "viewer": files("breastmorph.viewer")}
_REMEDY = N_("Open the address that the command printed")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def application(explorer: Explorer) -> Starlette:
    """The application of a server that listens on the port of the explorer's settings.

    Parameters
    ----------
    explorer : Explorer
        Its :meth:`~breastmorph.explorer.explorer.Explorer.end` is called when the server ends.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await to_thread.run_sync(explorer.end)

    routes = [
        Route("/", _static, methods=["GET"]),
        Route("/words.json", _words, methods=["GET"]),
        Route(
            "/api/sessions",
            endpoint(explorer, "session_routes.new_session", with_session=False),
            methods=["POST"],
        ),
    ]
    for request, handler in _ENDPOINTS.items():
        method, _, path = request.partition(" ")
        routes.append(Route(path, endpoint(explorer, handler, _FILES.get(handler, "")), methods=[method]))
    routes.append(Route("/{folder}/{name}", _static, methods=["GET"]))  # last: it would take all the others
    settings = explorer.settings
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Doorkeeper, host=settings.host, port=settings.port, keys=explorer.keys)],
        exception_handlers={HTTPException: _http, Exception: _unexpected},
    )


def _static(request: Request) -> Response:
    """A file of the page: found in the list of what there is, so that no path can lead elsewhere."""
    asked = {"folder": "page", "name": "index.html"} | request.path_params
    if asked["folder"] in _FOLDERS:
        for file in _FOLDERS[asked["folder"]].iterdir():
            media = _MEDIA.get("." + file.name.rpartition(".")[2])
            if file.name == asked["name"] and media is not None and file.is_file():
                return Response(file.read_bytes(), headers={"Content-Type": media})
    return refusal(unknown("page", _REMEDY), language_of(request))


def _words(request: Request) -> Response:
    return JSONResponse(page_texts())


def _http(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 405:
        return refusal(
            RequestProblem(405, "this cannot be done there", "Reload the page"), language_of(request)
        )
    return refusal(unknown("address", _REMEDY), language_of(request))


def _unexpected(request: Request, error: Exception) -> Response:
    return refusal(error, language_of(request))


# The JSON fields of the handlers that are use cases; another field is refused.
FIELDS: dict[str, tuple[str, ...]] = {
    "folder_routes.build": (),
    "folder_routes.check_queue": (),
    "folder_routes.register_queue": (),
    "scan_routes.register": (),
    "scan_routes.fit": (),
    "shape_routes.measures": ("shape", "tape"),
    "shape_routes.edit": ("base", "wishes", "hold", "hold_other"),
    "looking.compare": ("shape", "other"),
    "looking.compare_measures": ("shape", "other", "tape"),
    "shape_routes.predict": ("side", "vertices", "operated", "earlier", "known"),
    "shape_routes.plan": ("target",),
    "shape_routes.thickness": ("target",),
    "downloads.comparison": ("scans",),
}
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
