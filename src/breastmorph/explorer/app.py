"""The explorer as a web application: which request goes to which handler.

Bodies and answers are JSON unless stated otherwise, and every error is ``{"cause", "remedy", "where", "code"}``. What
``POST /api/sessions`` gives as ``session`` is the header X-Session of all other requests. Before that, ``POST
/api/enter`` gives for the code of an address (header X-Code) the ``token``, which is the header X-Token of all others.
The header X-Scan says which of the open scans a request is about (empty: none); without it, the one worked on.

A handler is a plain function of an :class:`~breastmorph.explorer.asked.Asked`. What it returns becomes the answer: a
dict is JSON, bytes are arrays, a ``Download`` is a file, a ``Job`` is 202 with the job, None is 204.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from breastmorph.explorer.answers import (
    RequestProblem,
    unknown,
)
from breastmorph.explorer.asked import endpoint, language_of, refusal
from breastmorph.explorer.explorer import Explorer
from breastmorph.explorer.security import Doorkeeper
from breastmorph.explorer.wording import page_texts
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
    "GET /api/model": "model_routes.model_state",
    "GET /api/model/geometry": "model_routes.model_geometry",
    "GET /api/model/maps": "model_routes.model_maps",
    "GET /api/model/file": "model_routes.model_file",
    "POST /api/model/landmarks": "model_routes.use_landmarks",
    "POST /api/shape": "model_routes.shape",
    "POST /api/measures": "model_routes.measures",
    "POST /api/compare": "looking.compare",
    "POST /api/compare/measures": "looking.compare_measures",
    "POST /api/symmetry": "looking.symmetry",
    "POST /api/lines": "looking.lines",
    "POST /api/ruler": "looking.ruler",
    "GET /api/edit": "model_routes.features",
    "POST /api/edit": "model_routes.edit",
    "DELETE /api/edit": "model_routes.forget_edit",
    "POST /api/kept": "model_routes.keep",
    "DELETE /api/kept": "model_routes.forget_kept",
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
    "POST /api/predict": "patient_routes.predict",
    "GET /api/prediction/alternatives": "patient_routes.alternatives",
    "DELETE /api/prediction": "patient_routes.forget_prediction",
    "POST /api/plan": "patient_routes.plan",
    "POST /api/plan/map": "patient_routes.thickness",
    "POST /api/sections": "patient_routes.cuts",
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
