"""From a request to an answer: the session, the body and the ids are checked, the work runs in a thread.

A handler is a plain function of an :class:`Asked`. What it returns becomes the answer: a dict is JSON, bytes are
arrays, a :class:`Download` is a file, a :class:`~breastmorph.explorer.jobs.Job` is 202 with the job, None is 204.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import quote

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from breastmorph.explorer.answers import as_record, bad_request, not_now, spoken, status_of, unknown
from breastmorph.explorer.jobs import Cancelled, Job
from breastmorph.explorer.session import Explorer, Session
from breastmorph.explorer.uploads import Upload, body

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
            result = await to_thread.run_sync(partial(_run, handler, asked))
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


def _run(handler: str, asked: Asked) -> Any:
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
