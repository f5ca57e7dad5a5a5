"""The explorer as a web application: which request goes to which handler.

Bodies and answers are JSON unless said otherwise, and every error is ``{"cause", "remedy", "where", "code"}``. What
``POST /api/sessions`` gives as ``session`` is the header X-Session of all other requests. Before that, ``POST
/api/enter`` gives for the code of an address (header X-Code) the ``token``, which is the header X-Token of all others.
The header X-Scan says which of the open scans a request is about (empty: none); without it, the one worked on.

A handler is a plain function of an :class:`Asked`. What it returns becomes the answer: a dict is JSON, bytes are
arrays, a :class:`Download` is a file, a :class:`~breastmorph.explorer.jobs.Job` is 202 with the job, None is 204.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
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
    as_record,
    bad_request,
    not_now,
    spoken,
    status_of,
    unknown,
)
from breastmorph.explorer.cases import ABOUT
from breastmorph.explorer.jobs import Cancelled, Job
from breastmorph.explorer.security import Doorkeeper
from breastmorph.explorer.session import Explorer, Session
from breastmorph.explorer.uploads import Upload, body

_ENDPOINTS = {  # handlers are functions of three modules, loaded when first asked for
    "GET /api/state": "routes.session_state",
    "POST /api/undo": "routes.undo_step",
    "POST /api/redo": "routes.redo_step",
    "POST /api/notes": "routes.notes",
    "GET /api/cases": "routes.cases",
    "POST /api/cases": "routes.switch",
    "GET /api/jobs/{job}": "routes.job",
    "DELETE /api/jobs/{job}": "routes.cancel",
    "POST /api/left": "routes.left",
    "POST /api/files": "routes.add_file",
    "GET /api/files/{file}": "routes.fetch_file",
    "GET /api/model": "routes.model_state",
    "GET /api/model/geometry": "routes.model_geometry",
    "GET /api/model/maps": "routes.model_maps",
    "GET /api/model/file": "routes.model_file",
    "POST /api/model/landmarks": "routes.use_landmarks",
    "POST /api/shape": "routes.shape",
    "POST /api/measures": "routes.measures",
    "POST /api/compare": "looking.compare",
    "POST /api/compare/measures": "looking.compare_measures",
    "POST /api/symmetry": "looking.symmetry",
    "POST /api/lines": "looking.lines",
    "POST /api/ruler": "looking.ruler",
    "GET /api/edit": "routes.features",
    "POST /api/edit": "routes.edit",
    "DELETE /api/edit": "routes.forget_edit",
    "POST /api/kept": "routes.keep",
    "DELETE /api/kept": "routes.forget_kept",
    "GET /api/folders": "routes.folders",
    "POST /api/folders": "routes.open_folder",
    "GET /api/queue": "routes.queue",
    "GET /api/queue/quality": "routes.quality",
    "POST /api/queue/model": "routes.build",
    "POST /api/queue/propose": "routes.propose_queue",
    "POST /api/queue/accept": "routes.accept_queue",
    "POST /api/queue/check": "routes.check_queue",
    "POST /api/queue/register": "routes.register_queue",
    "POST /api/scans": "routes.upload",
    "POST /api/scans/example": "routes.example",
    "GET /api/scans/{scan}": "routes.scan_state",
    "DELETE /api/scans/{scan}": "routes.delete_scan",
    "POST /api/scans/{scan}/rename": "routes.rename",
    "POST /api/scans/{scan}/remove": "routes.remove_scan",
    "POST /api/scans/{scan}/thumbnail": "routes.thumbnail",
    "GET /api/scans/{scan}/geometry": "routes.scan_geometry",
    "GET /api/scans/{scan}/texture": "routes.texture",
    "GET /api/scans/{scan}/result": "routes.result",
    "POST /api/scans/{scan}/propose": "routes.propose",
    "POST /api/scans/{scan}/confirm": "routes.confirm",
    "POST /api/scans/{scan}/pick": "routes.pick",
    "POST /api/scans/{scan}/undo": "routes.undo",
    "POST /api/scans/{scan}/absent": "routes.absent",
    "POST /api/scans/{scan}/skip": "routes.skip",
    "POST /api/scans/{scan}/swap": "routes.swap",
    "POST /api/scans/{scan}/landmarks": "routes.landmarks",
    "POST /api/scans/{scan}/register": "routes.register",
    "POST /api/scans/{scan}/fit": "routes.fit",
    "POST /api/scans/{scan}/use": "routes.use",
    "POST /api/predict": "routes.predict",
    "GET /api/prediction/alternatives": "routes.alternatives",
    "DELETE /api/prediction": "routes.forget_prediction",
    "POST /api/plan": "routes.plan",
    "POST /api/plan/map": "routes.thickness",
    "POST /api/sections": "routes.cuts",
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
    "routes.add_file": "max_upload",
    "routes.upload": "max_upload",
    "routes.landmarks": "max_landmarks",
    "downloads.reopen": "max_upload",
}
_LOOKING = {  # handlers that leave nothing in a session: whoever only looks needs no place
    *("routes.session_state", "routes.job", "routes.cancel", "routes.left", "routes.cases"),
    *("routes.notes", "routes.undo_step", "routes.redo_step"),
    *("routes.model_state", "routes.model_geometry", "routes.model_maps", "routes.model_file"),
    *("routes.shape", "routes.measures", "routes.features", "routes.queue"),
    *("routes.folders", "routes.open_folder", "routes.quality"),
    *("looking.compare", "looking.compare_measures", "looking.symmetry", "looking.lines", "looking.ruler"),
    *("downloads.mesh", "downloads.measures", "routes.cuts"),
}
_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FOLDERS = {"page": files("breastmorph.explorer").joinpath("page"), "viewer": files("breastmorph.viewer")}
_REMEDY = "Open the address that the command printed"


def application(explorer: Explorer) -> Starlette:
    """The application of a server that listens on the port of the explorer's settings.

    Parameters
    ----------
    explorer : Explorer
        Its :meth:`~breastmorph.explorer.session.Explorer.end` is called when the server ends.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await to_thread.run_sync(explorer.end)

    routes = [
        Route("/", _static, methods=["GET"]),
        Route(
            "/api/sessions",
            endpoint(explorer, "routes.new_session", with_session=False, keeps=False),
            methods=["POST"],
        ),
    ]
    for request, handler in _ENDPOINTS.items():
        method, _, path = request.partition(" ")
        answer = endpoint(explorer, handler, _FILES.get(handler, ""), keeps=handler not in _LOOKING)
        routes.append(Route(path, answer, methods=[method]))
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
    return refusal(unknown("page", _REMEDY))


def _http(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 405:
        return refusal(RequestProblem(405, "this cannot be done there", "Reload the page"))
    return refusal(unknown("address", _REMEDY))


def _unexpected(request: Request, error: Exception) -> Response:
    return refusal(error)


# --------------------------------------------------------------------------------------------------------------------
# From a request to an answer: the session, the body and the ids are checked, the work runs in a thread
# --------------------------------------------------------------------------------------------------------------------

_ALIVE = ("routes.model_state", "routes.queue")  # what a page asks by itself, whether somebody uses it or not
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
    """

    session: Session
    values: Mapping[str, Any] = field(default_factory=dict)
    ids: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    upload: Upload | None = None

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
    explorer: Explorer, handler: str, limit: str = "", *, with_session: bool = True, keeps: bool = True
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
    keeps : bool
        Whether it may leave something in the session, which needs a place for that.
    """

    async def answer(request: Request) -> Response:
        language = request.headers.get("x-language", "en")
        try:
            session = await _session(explorer, request, with_session=with_session)
            if with_session and handler not in _ALIVE:
                session.used = session.seen
            if keeps:
                explorer.give_place(session)
            asked = await _asked(explorer, session, request, limit)
            result = await to_thread.run_sync(partial(_run, handler, asked, request.headers.get("x-scan")))
            return _response(result, language)
        except Cancelled:  # somebody ended the explorer while a file was read
            return refusal(not_now("the explorer is ending", "Start it again: breastmorph explore"))
        except Exception as error:
            return refusal(error, language)

    return answer


def refusal(error: Exception, language: str = "en") -> Response:
    """An error as an answer."""
    status = status_of(error)
    if status == 500:
        _log.error("unexpected error", exc_info=error)
    return JSONResponse(spoken(as_record(error), language), status)


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


def _run(handler: str, asked: Asked, scan: str | None) -> Any:
    ABOUT.set(scan)  # this call has a context of its own
    module, _, name = handler.partition(".")
    function: Handler = getattr(import_module(f"breastmorph.explorer.{module}"), name)
    return function(asked)


async def _session(explorer: Explorer, request: Request, *, with_session: bool) -> Session:
    if not with_session:
        return await to_thread.run_sync(explorer.open, request.client.host if request.client else "")
    return explorer.find(request.headers.get("x-session", ""))


async def _asked(explorer: Explorer, session: Session, request: Request, limit: str) -> Asked:
    ids = {name: str(value) for name, value in request.path_params.items()}
    if not all(_ID.fullmatch(value) for value in ids.values()):
        raise unknown("thing")
    query = dict(request.query_params)
    if limit:
        name, most = query.get("name", ""), getattr(explorer.settings, limit)
        return Asked(session, {}, ids, query, await session.uploads.receive(request, name, most))
    data = bytearray()
    if request.method != "GET":
        async for piece in body(request, explorer.settings.max_json):
            data += piece
    return Asked(session, _values(bytes(data)), ids, query)


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
