"""The explorer as a web application.

Endpoints (bodies and answers are JSON unless said otherwise; every error is ``{"cause", "remedy", "where", "code"}``)::

    GET    /, /page/<file>, /viewer/<file>       the page
    POST   /api/sessions                         a session; its id is the header X-Session of all others
    DELETE /api/sessions                         end it
    GET    /api/state                            all of it
    GET    /api/model, /geometry, /maps          the model; arrays (see ``arrays``)
    POST   /api/model/sample                     a random shape
    POST   /api/model/landmarks                  use what was picked on the mean; GET /landmark-ids, /file
    POST   /api/shape, /api/measures             any shape: arrays; its measures
    GET, POST, DELETE /api/edit                  what can be edited; edit; forget it
    GET    /api/queue; POST /check, /register    the folder of scans
    POST   /api/files, /api/scans                a companion file; a mesh (raw bodies)
    POST   /api/scans/example                    a synthetic scan with landmarks
    GET    /api/scans/{scan}, /geometry, /texture, /result
    POST   /api/scans/{scan}/pick, /undo, /clear, /absent, /skip, /swap, /landmarks, /check, /register, /fit, /use
    DELETE /api/scans/{scan}
    POST   /api/predict; GET /api/prediction/alternatives; DELETE /api/prediction
    GET, DELETE /api/jobs/{job}                  how far; cancel
    POST   /api/download/mesh, /measures, /landmarks, /sheet, /session; GET /api/files/{file}
    POST   /api/session-file                     open a session file (raw body)
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
from breastmorph.explorer.problems import RequestProblem, unknown
from breastmorph.explorer.security import Doorkeeper
from breastmorph.explorer.session import Explorer

_UPLOAD, _LANDMARKS = "max_upload", "max_landmarks"
_ENDPOINTS = (
    ("GET", "/api/state", "sessions.state", ""),
    ("DELETE", "/api/sessions", "sessions.delete", ""),
    ("GET", "/api/jobs/{job}", "sessions.job", ""),
    ("DELETE", "/api/jobs/{job}", "sessions.cancel", ""),
    ("POST", "/api/files", "sessions.add_file", _UPLOAD),
    ("GET", "/api/files/{file}", "sessions.fetch_file", ""),
    ("GET", "/api/model", "model.state", ""),
    ("GET", "/api/model/geometry", "model.geometry", ""),
    ("GET", "/api/model/maps", "model.maps", ""),
    ("POST", "/api/model/sample", "model.sample", ""),
    ("POST", "/api/model/landmarks", "model.use_landmarks", ""),
    ("GET", "/api/model/landmark-ids", "model.landmark_ids", ""),
    ("GET", "/api/model/file", "model.model_file", ""),
    ("POST", "/api/shape", "model.shape", ""),
    ("POST", "/api/measures", "model.measures", ""),
    ("GET", "/api/edit", "model.features", ""),
    ("POST", "/api/edit", "model.edit", ""),
    ("DELETE", "/api/edit", "model.forget_edit", ""),
    ("GET", "/api/queue", "scans.queue", ""),
    ("POST", "/api/queue/check", "scans.check_queue", ""),
    ("POST", "/api/queue/register", "scans.register_queue", ""),
    ("POST", "/api/scans", "scans.upload", _UPLOAD),
    ("POST", "/api/scans/example", "scans.example", ""),
    ("GET", "/api/scans/{scan}", "scans.state", ""),
    ("DELETE", "/api/scans/{scan}", "scans.delete", ""),
    ("GET", "/api/scans/{scan}/geometry", "scans.geometry", ""),
    ("GET", "/api/scans/{scan}/texture", "scans.texture", ""),
    ("GET", "/api/scans/{scan}/result", "scans.result", ""),
    ("POST", "/api/scans/{scan}/pick", "scans.pick", ""),
    ("POST", "/api/scans/{scan}/undo", "scans.undo", ""),
    ("POST", "/api/scans/{scan}/clear", "scans.clear", ""),
    ("POST", "/api/scans/{scan}/absent", "scans.absent", ""),
    ("POST", "/api/scans/{scan}/skip", "scans.skip", ""),
    ("POST", "/api/scans/{scan}/swap", "scans.swap", ""),
    ("POST", "/api/scans/{scan}/landmarks", "scans.landmarks", _LANDMARKS),
    ("POST", "/api/scans/{scan}/check", "scans.check", ""),
    ("POST", "/api/scans/{scan}/register", "scans.register", ""),
    ("POST", "/api/scans/{scan}/fit", "scans.fit", ""),
    ("POST", "/api/scans/{scan}/use", "scans.use", ""),
    ("POST", "/api/predict", "patient.predict", ""),
    ("GET", "/api/prediction/alternatives", "patient.alternatives", ""),
    ("DELETE", "/api/prediction", "patient.forget", ""),
    ("POST", "/api/download/mesh", "out.mesh", ""),
    ("POST", "/api/download/measures", "out.measures", ""),
    ("POST", "/api/download/landmarks", "out.landmarks", ""),
    ("POST", "/api/download/sheet", "out.page", ""),
    ("POST", "/api/download/session", "out.session", ""),
    ("POST", "/api/session-file", "out.reopen", _UPLOAD),
)
_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}
_FOLDERS = {"page": ("breastmorph.explorer", "page"), "viewer": ("breastmorph.viewer", "")}


def application(explorer: Explorer, port: int) -> Starlette:
    """The application of a server that listens on a port.

    Parameters
    ----------
    explorer : Explorer
        Its :meth:`~breastmorph.explorer.session.Explorer.end` is called when the server ends.
    port : int
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await to_thread.run_sync(explorer.end)

    routes = [
        Route("/", _index, methods=["GET"]),
        Route("/favicon.ico", _nothing, methods=["GET"]),
        Route("/api/sessions", endpoint(explorer, "sessions.create", with_session=False), methods=["POST"]),
    ]
    routes += [
        Route(path, endpoint(explorer, handler, limit), methods=[method])
        for method, path, handler, limit in _ENDPOINTS
    ]
    routes.append(Route("/{folder}/{name}", _static, methods=["GET"]))
    settings = explorer.settings
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(Doorkeeper, host=settings.host, port=port, token=settings.token)],
        exception_handlers={HTTPException: _http, Exception: _unexpected},
    )


def _file(folder: str, name: str) -> Response:
    """A file of the page: found in the list of what there is, so that no path can lead elsewhere."""
    if folder in _FOLDERS:
        package, place = _FOLDERS[folder]
        home = files(package).joinpath(place) if place else files(package)
        for file in home.iterdir() if home.is_dir() else ():
            media = _MEDIA.get("." + file.name.rpartition(".")[2])
            if file.name == name and media is not None and file.is_file():
                return Response(file.read_bytes(), headers={"Content-Type": media})
    raise unknown("page", "Open the address that the command printed")


def _index(request: Request) -> Response:
    try:
        return _file("page", "index.html")
    except RequestProblem as problem:
        return refusal(problem)


def _static(request: Request) -> Response:
    try:
        return _file(request.path_params["folder"], request.path_params["name"])
    except RequestProblem as problem:
        return refusal(problem)


def _nothing(request: Request) -> Response:
    return Response(status_code=204)


def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        return refusal(RequestProblem(405, "this cannot be done there", "Reload the page"))
    return refusal(unknown("address", "Open the address that the command printed"))


def _unexpected(request: Request, error: Exception) -> Response:
    return refusal(error)
