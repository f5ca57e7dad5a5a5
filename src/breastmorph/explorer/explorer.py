"""What all tabs share: the keys, the model, the folders, processes for hard work, a private folder."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breastmorph.explorer.answers import RequestProblem, unknown
from breastmorph.explorer.jobs import WorkerCalls
from breastmorph.explorer.model_view import ModelOrigin, ModelSource
from breastmorph.explorer.security import Keys
from breastmorph.explorer.session import Session
from breastmorph.explorer.settings import READERS, Settings
from breastmorph.explorer.uploads import PrivateFolder
from breastmorph.foundation.machine import cores

if TYPE_CHECKING:
    from breastmorph.explorer.folders import Folders


class Explorer:
    """What all sessions share.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.keys = settings, Keys()
        self._private = PrivateFolder()
        self.folder = self._private.path
        self.source = ModelSource(ModelOrigin(settings.model), settings.modes)
        self.folders: Folders | None = None
        self.reading = WorkerCalls(partial(_setup, "reading.reader"), settings.reading, READERS)
        # One process: what it computed of the model for one tab serves the next.
        self.predicting = WorkerCalls(partial(_setup, "predicting.predictor"), settings.computing, 1)
        self.registering = WorkerCalls(
            partial(_setup, "patients.registrar"), settings.computing, max(READERS, cores())
        )
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()

    def start(self) -> None:
        """Look into the folder, then prepare the rest in the background."""
        if self.settings.folder is not None:
            from breastmorph.explorer.folders import Folders

            self.folders = Folders(self.settings)
        self.source.start()
        threading.Thread(target=self._prepare, name="preparing", daemon=True).start()
        threading.Thread(target=self._sweep, name="sweeping", daemon=True).start()

    def open(self) -> Session:
        """A new session; of too many, one ends that holds nothing, or whose page was closed.

        Raises
        ------
        RequestProblem
            429 where all are in use.
        """
        with self._lock:
            if len(self._sessions) >= self.settings.max_sessions:
                idle = [session for session in self._sessions.values() if session.may_end]
                if not idle:
                    raise RequestProblem(
                        429,
                        "{n_sessions} other tabs are at work, and there is no place for one more",
                        "Close one of them: its place is free then",
                        code="too-many-sessions",
                        n_sessions=len(self._sessions),
                    )
                ending = min(idle, key=lambda session: (not session.is_empty, session.seen))
                del self._sessions[ending.id]
                threading.Thread(target=ending.end, daemon=True).start()
            session = Session(self, Path(tempfile.mkdtemp(prefix="s-", dir=self.folder)))
            self._sessions[session.id] = session
            return session

    def find(self, session_id: str) -> Session:
        """The session of a tab, whose page has just asked for something."""
        session = self._sessions.get(session_id)
        if session is None:
            raise unknown("session", "Reload the page", code="no-session")
        session.seen = time.monotonic()
        return session

    def close(self, session: Session) -> None:
        """End a session."""
        with self._lock:
            self._sessions.pop(session.id, None)
        session.end()

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._over.is_set()

    def end(self) -> None:
        """End everything; all that visitors sent is deleted."""
        self._over.set()
        if self.folders is not None:
            self.folders.end()
        for session in list(self._sessions.values()):
            self.close(session)
        self.reading.close()
        self.predicting.close()
        self.registering.close()
        self._private.delete()

    def end_idle(self) -> None:
        """Delete what was removed from sessions, and end those whose page has not asked for long."""
        now = time.monotonic()
        for session in list(self._sessions.values()):
            session.delete_removed()
            if now - session.seen > self.settings.idle:
                self.close(session)

    def _sweep(self) -> None:
        while not self._over.wait(min(30.0, self.settings.idle / 4)):
            self.end_idle()

    def _prepare(self) -> None:
        self.source.wait()
        try:
            self.reading.prepare()
            self.source.view.mean_editing.prepare()
        except Exception:  # the request that needs it says what is wrong
            return
        finally:
            if self.folders is not None and not self.is_over:
                self.folders.begin()


def _setup(name: str) -> Callable[[Any], Any]:
    """What a worker process does, by its module and maker: these take long to load, and only it needs them."""
    module, _, made_by = name.partition(".")
    made: Callable[[Any], Any] = getattr(import_module(f"breastmorph.explorer.{module}"), made_by)()
    return made
