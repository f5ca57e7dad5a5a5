"""The model that a server shows: read in the background after the page is there, and prepared once for all."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breastmorph.errors import BreastMorphError
from breastmorph.explorer.problems import RequestProblem, as_record, preparing

if TYPE_CHECKING:
    from breastmorph.explorer.model_view import ModelView
    from breastmorph.model.shape_model import ShapeModel

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelOrigin:
    """Where a model comes from; small enough to be sent to a worker process.

    Attributes
    ----------
    path : Path, optional
        The demo model when not given.
    landmark_ids : tuple of (name, vertex)
        Landmarks that were picked on it.
    """

    path: Path | None = None
    landmark_ids: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        """For people."""
        return self.path.name if self.path is not None else "Demo model"

    def load(self) -> ShapeModel:
        """Read the model."""
        from breastmorph.explorer.demo_model import demo_model
        from breastmorph.model.files import load_model

        model = load_model(self.path) if self.path is not None else demo_model()
        return model.with_landmark_ids(dict(self.landmark_ids)) if self.landmark_ids else model


class ModelSource:
    """Reads a model once, in a thread.

    Parameters
    ----------
    origin : ModelOrigin
    modes : int
        Most modes that the page gets.
    """

    def __init__(self, origin: ModelOrigin, modes: int) -> None:
        self.origin, self._modes = origin, modes
        self._view: ModelView | None = None
        self._error: Exception | None = None
        self._done = threading.Event()

    def start(self) -> None:
        """Begin to read."""
        threading.Thread(target=self._read, name="model", daemon=True).start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the model is there or failed."""
        return self._done.wait(seconds)

    @property
    def view(self) -> ModelView:
        """The model; raises while it is not there."""
        if self._error is not None:
            if isinstance(self._error, BreastMorphError):
                raise self._error
            raise RequestProblem(500, "the model could not be read", "Look at the terminal of the command")
        if self._view is None:
            raise preparing("the model")
        return self._view

    def as_record(self, own: ModelView | None = None) -> dict[str, Any]:
        """What the page is told; ``own`` is a session's version of the model."""
        view = own or self._view
        if view is not None:
            return {"status": "ready", **view.as_record()}
        if self._error is not None:
            return {"status": "failed", "error": as_record(self._error)}
        return {"status": "loading"}

    def _read(self) -> None:
        try:
            from breastmorph.explorer.model_view import ModelView

            model = self.origin.load()
            view = ModelView(self.origin, model, min(self._modes, model.n_components))
            _ = view.geometry
            self._view = view
        except Exception as error:
            if not isinstance(error, BreastMorphError):
                _log.exception("the model could not be read")
            self._error = error
        self._done.set()
        if self._view is not None:
            try:  # what the first visitor asks next
                _ = self._view.volumes, self._view.maps
            except Exception:
                _log.exception("the model could not be prepared")
