"""The explorer as a web application: which request goes to which handler.

Bodies and answers are JSON unless said otherwise, and every error is ``{"cause", "remedy", "where", "code"}``. What
``POST /api/sessions`` gives as ``session`` is the header X-Session of all other requests. Before that, ``POST
/api/enter`` gives for the code of an address (header X-Code) the ``token``, which is the header X-Token of all others.
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
from starlette.responses import Response
from starlette.routing import Route

from breastmorph.explorer.answering import endpoint, refusal
from breastmorph.explorer.answers import RequestProblem, unknown
from breastmorph.explorer.security import Doorkeeper
from breastmorph.explorer.session import Explorer

_ENDPOINTS = {  # handlers are functions of modules in ``routes``
    "GET /api/state": "sessions.state",
    "GET /api/jobs/{job}": "sessions.job",
    "DELETE /api/jobs/{job}": "sessions.cancel",
    "POST /api/left": "sessions.left",
    "POST /api/files": "sessions.add_file",
    "GET /api/files/{file}": "sessions.fetch_file",
    "GET /api/model": "model.state",
    "GET /api/model/geometry": "model.geometry",
    "GET /api/model/maps": "model.maps",
    "GET /api/model/file": "model.model_file",
    "POST /api/model/landmarks": "model.use_landmarks",
    "POST /api/shape": "model.shape",
    "POST /api/measures": "model.measures",
    "GET /api/edit": "model.features",
    "POST /api/edit": "model.edit",
    "DELETE /api/edit": "model.forget_edit",
    "POST /api/kept": "model.keep",
    "GET /api/queue": "scans.queue",
    "POST /api/queue/check": "scans.check_queue",
    "POST /api/queue/register": "scans.register_queue",
    "POST /api/scans": "scans.upload",
    "POST /api/scans/example": "scans.example",
    "GET /api/scans/{scan}": "scans.state",
    "DELETE /api/scans/{scan}": "scans.delete",
    "GET /api/scans/{scan}/geometry": "scans.geometry",
    "GET /api/scans/{scan}/texture": "scans.texture",
    "GET /api/scans/{scan}/result": "scans.result",
    "POST /api/scans/{scan}/pick": "scans.pick",
    "POST /api/scans/{scan}/undo": "scans.undo",
    "POST /api/scans/{scan}/absent": "scans.absent",
    "POST /api/scans/{scan}/skip": "scans.skip",
    "POST /api/scans/{scan}/swap": "scans.swap",
    "POST /api/scans/{scan}/landmarks": "scans.landmarks",
    "POST /api/scans/{scan}/register": "scans.register",
    "POST /api/scans/{scan}/fit": "scans.fit",
    "POST /api/scans/{scan}/use": "scans.use",
    "POST /api/predict": "patient.predict",
    "GET /api/prediction/alternatives": "patient.alternatives",
    "DELETE /api/prediction": "patient.forget",
    "POST /api/download/mesh": "out.mesh",
    "POST /api/download/measures": "out.measures",
    "POST /api/download/landmarks": "out.landmarks",
    "POST /api/download/sheet": "out.page",
    "POST /api/download/session": "out.session",
    "POST /api/session-file": "out.reopen",
}
_FILES = {  # handlers whose body is a file, and the setting that limits it
    "sessions.add_file": "max_upload",
    "scans.upload": "max_upload",
    "scans.landmarks": "max_landmarks",
    "out.reopen": "max_upload",
}
_LOOKING = {  # handlers that leave nothing in a session: whoever only looks needs no place
    *("sessions.state", "sessions.job", "sessions.cancel", "sessions.left"),
    *("model.state", "model.geometry", "model.maps", "model.model_file", "model.shape", "model.measures"),
    *("model.features", "scans.queue", "out.mesh", "out.measures"),
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
            endpoint(explorer, "sessions.create", with_session=False, keeps=False),
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
