"""Connections that cannot be kept for nothing: silent and slow ones are closed, and there are only so many."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from breastmorph.explorer.settings import Settings


def protocol(settings: Settings) -> type[H11Protocol]:
    """The connections of a server; uvicorn itself waits for ever for what is missing of a request.

    Parameters
    ----------
    settings : Settings
        ``patience``, ``slowest`` and ``max_connections`` count.
    """
    enough = settings.patience * settings.slowest

    class Connection(H11Protocol):
        """One connection; its client has its time anew with every request and with every piece that is enough."""

        _timer: asyncio.TimerHandle | None = None
        _begun = False  # a request that is not answered yet
        _came = _unsent = 0  # bytes: since the time began, and at the last look
        heard = 0.0  # when the time began

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._give_time()
            others = [one for one in present if one.owes()]
            present.add(self)
            if len(present) > settings.max_connections and others:
                min(others, key=lambda one: one.heard).cut()

        def data_received(self, data: bytes) -> None:
            self._came += len(data)
            if not self._begun or self._came >= enough:
                self._give_time()
            self._begun = True
            super().data_received(data)

        def on_response_complete(self) -> None:
            self._begun = False
            self._give_time()
            super().on_response_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            present.discard(self)
            super().connection_lost(exc)

        def owes(self) -> bool:
            """Whether it is the client's turn: to begin, or to go on with what it began."""
            return self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.flow.read_paused

        def cut(self) -> None:
            """Close it at once."""
            self.transport.abort()

        def _give_time(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
            self._came, self.heard = 0, self.loop.time()
            self._timer = self.loop.call_later(settings.patience, self._look)

        def _look(self) -> None:
            before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
            is_stuck = 0 < before <= self._unsent  # an answer of which nothing was taken
            if self.owes() or is_stuck or self.transport.is_closing():
                self.cut()
            else:
                self._give_time()

    present: set[Connection] = set()
    return Connection
