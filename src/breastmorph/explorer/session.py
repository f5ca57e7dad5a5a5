"""Sessions: one per tab, each with its own folder, scans, patient and jobs; none sees another's."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breastmorph.errors import BreastMorphError
from breastmorph.explorer.jobs import Jobs
from breastmorph.explorer.model_source import ModelOrigin, ModelSource
from breastmorph.explorer.private_folder import private_folder
from breastmorph.explorer.problems import RequestProblem, not_now, unknown
from breastmorph.explorer.settings import MEGABYTE, Settings
from breastmorph.explorer.uploads import UploadFolder

if TYPE_CHECKING:
    from breastmorph.explorer.editing import Edited, Editing
    from breastmorph.explorer.model_view import ModelView
    from breastmorph.explorer.open_scan import OpenScan
    from breastmorph.explorer.patients import ShownPatient
    from breastmorph.explorer.predicting import Predicted, Predicting
    from breastmorph.explorer.scan_queue import ScanQueue
    from breastmorph.explorer.worker_calls import WorkerCalls

_ABANDONED = 600.0  # seconds: a session left alone so long makes room for a new one
_PATIENCE = 2.0  # seconds that jobs have to end


class Session:
    """What one tab works on.

    Parameters
    ----------
    explorer : Explorer
        What all sessions share.
    folder : Path
        A private one of its own.
    """

    def __init__(self, explorer: Explorer, folder: Path) -> None:
        self.id, self.explorer, self.folder = secrets.token_urlsafe(24), explorer, folder
        self.seen = time.monotonic()
        self.jobs = Jobs()
        self.uploads = UploadFolder(folder, 3 * explorer.settings.max_upload)
        self.scans: dict[str, OpenScan] = {}
        self.mesh_uploads: dict[str, str] = {}  # of scans: the upload
        self.patient: ShownPatient | None = None
        self.edited: Edited | None = None
        self.predicted: Predicted | None = None
        self.lock = threading.RLock()
        self._own_view: ModelView | None = None
        self._origin: ModelOrigin | None = None
        self._editing: dict[str, Editing] = {}
        self._predicting: Predicting | None = None

    # --- the model ----------------------------------------------------------------------------------------------------

    @property
    def view(self) -> ModelView:
        """The model of this session: the server's, perhaps with landmarks picked here."""
        return self._own_view or self.explorer.source.view

    @property
    def origin(self) -> ModelOrigin:
        """Where that model comes from."""
        return self._origin or self.explorer.source.origin

    def take_landmarks(self, landmark_ids: dict[str, int]) -> None:
        """Use landmarks picked on the mean; what was computed with the old ones goes."""
        from breastmorph.explorer.model_view import ModelView

        model = self.view.model.with_landmark_ids(landmark_ids)
        self._own_view = ModelView(model, self.view.modes)
        merged = {name: int(vertex) for name, vertex in model.landmark_ids.items()}
        self._origin = ModelOrigin(self.origin.path, tuple(merged.items()))
        self._editing.clear()
        self._predicting = None
        self.edited = self.predicted = None

    @property
    def predicting(self) -> Predicting:
        """Predictions with this session's model."""
        from breastmorph.explorer.predicting import Predicting

        if self._own_view is None:
            return self.explorer.predicting
        if self._predicting is None:
            self._predicting = Predicting(self.view.model)
        return self._predicting

    def editing(self, base: str) -> Editing:
        """The editor of the mean or of the patient."""
        from breastmorph.clinical.patient import mean_patient
        from breastmorph.explorer.editing import Editing

        with self.lock:
            if base == "mean" and self._own_view is None:
                return self.explorer.mean_editing
            if base not in self._editing:
                shape = mean_patient(self.view.model) if base == "mean" else self.required_patient.patient
                self._editing[base] = Editing(self.view, shape)
            return self._editing[base]

    # --- the patient --------------------------------------------------------------------------------------------------

    @property
    def required_patient(self) -> ShownPatient:
        """The patient; raises where there is none."""
        if self.patient is None:
            raise not_now("there is no patient yet", "Open a scan, and register or fit it", code="no-patient")
        return self.patient

    def take_patient(self, patient: ShownPatient) -> None:
        """Work on another patient."""
        with self.lock:
            self.patient = patient
            self.predicted = None
            if self.edited is not None and self.edited.base == "patient":
                self.edited = None
            self._editing.pop("patient", None)

    # --- scans --------------------------------------------------------------------------------------------------------

    def scan(self, key: str) -> OpenScan:
        """A scan by its key: open, in the queue, or the model's mean."""
        from breastmorph.explorer.opening import open_mean, open_queued

        queue = self.explorer.queue
        found = self.scans.get(key)
        if found is not None:
            if queue is not None and key in queue.scans:
                found.resume(queue.beside(key))
                found.registered = queue.is_registered(key)
            return found
        if key == "mean":
            opened = open_mean(self.view)
        elif queue is not None and key in queue.scans:
            try:
                opened = open_queued(self.explorer, queue, key)  # may take long: without the lock
            except BreastMorphError as error:
                queue.unreadable[key] = error.cause
                raise
            queue.unreadable.pop(key, None)  # the file may have been exported again
        else:
            raise unknown("scan", "Open it again", code="no-scan")
        with self.lock:
            if key not in self.scans:  # nobody was faster
                self._make_room()
                self.scans[key] = opened
            return self.scans[key]

    def add_scan(self, scan: OpenScan, upload: str) -> None:
        """Keep an uploaded scan."""
        with self.lock:
            self._make_room()
            self.scans[scan.key], self.mesh_uploads[scan.key] = scan, upload

    def drop_scan(self, key: str) -> None:
        """Forget a scan; an upload's files are deleted."""
        with self.lock:
            if key not in self.scans:
                raise unknown("scan", code="no-scan")
            del self.scans[key]
            upload = self.mesh_uploads.pop(key, None)
            if upload is not None:
                self.uploads.drop(upload)

    def _make_room(self) -> None:
        most = self.explorer.settings.max_scans
        idle = [key for key in self.scans if key not in self.mesh_uploads]
        if len(self.scans) >= most and idle:
            del self.scans[idle[0]]  # from the queue: saved, and read again when needed
        elif len(self.scans) >= most:
            raise RequestProblem(429, f"{most} scans are open", "Close one first", code="too-many")

    # --- life ---------------------------------------------------------------------------------------------------------

    def as_record(self) -> dict[str, Any]:
        """The whole state, for the page."""
        from breastmorph import __version__
        from breastmorph.explorer.picks import guide
        from breastmorph.mesh.files import READABLE
        from breastmorph.scan.folder import LANDMARK_SUFFIXES

        settings, patient = self.explorer.settings, self.patient
        return {
            "version": __version__,
            "start": "queue" if self.explorer.queue is not None else "model",
            "model": self.model_record(),
            "queue": self.explorer.queue is not None,
            "limits": {
                "upload_mb": settings.max_upload / MEGABYTE,
                "landmark_mb": settings.max_landmarks / MEGABYTE,
                "modes": settings.modes,
            },
            "mesh_suffixes": list(READABLE),
            "landmark_suffixes": list(LANDMARK_SUFFIXES),
            "picking": guide(),
            "patient": patient.as_record() if patient is not None else None,
            "edit": self.edited.record if self.edited is not None else None,
            "prediction": self.predicted.record if self.predicted is not None else None,
            "scan": patient.scan if patient is not None else None,
            "example": True,  # a synthetic scan can be made
        }

    def model_record(self) -> dict[str, Any]:
        """The model, for the page."""
        return self.explorer.source.as_record(self._own_view)

    def end(self) -> None:
        """Stop all work and delete all files."""
        self.jobs.cancel_all()
        self.jobs.wait(_PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


class Explorer:
    """What all sessions share: the model, the queue, a reading process, a private folder.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder = private_folder()
        self.source = ModelSource(ModelOrigin(settings.model), settings.modes)
        self.queue: ScanQueue | None = None
        self._reading: WorkerCalls | None = None
        self._mean_editing: Editing | None = None
        self._predicting: Predicting | None = None
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()

    def start(self) -> None:
        """Look into the folder, then prepare the rest in the background."""
        if self.settings.folder is not None:
            from breastmorph.explorer.scan_queue import ScanQueue

            self.queue = ScanQueue.of(self.settings.folder)
        self.source.start()
        threading.Thread(target=self._prepare, name="preparing", daemon=True).start()
        threading.Thread(target=self._sweep, name="sweeping", daemon=True).start()

    @property
    def reading(self) -> WorkerCalls:
        """The process that reads visitors' files."""
        from breastmorph.explorer.scan_reading import reader
        from breastmorph.explorer.worker_calls import WorkerCalls

        with self._lock:
            if self._reading is None:
                self._reading = WorkerCalls(reader, self.settings.reading)
            return self._reading

    @property
    def mean_editing(self) -> Editing:
        """The editor of the server's mean, shared by all."""
        from breastmorph.clinical.patient import mean_patient
        from breastmorph.explorer.editing import Editing

        view = self.source.view
        with self._lock:
            if self._mean_editing is None:
                self._mean_editing = Editing(view, mean_patient(view.model))
            return self._mean_editing

    @property
    def predicting(self) -> Predicting:
        """Predictions with the server's model, shared by all: what it learned takes long."""
        from breastmorph.explorer.predicting import Predicting

        view = self.source.view
        with self._lock:
            if self._predicting is None:
                self._predicting = Predicting(view.model)
            return self._predicting

    # --- sessions -----------------------------------------------------------------------------------------------------

    def open(self) -> Session:
        """A new session.

        Raises
        ------
        RequestProblem
            429 where there are too many.
        """
        with self._lock:
            if len(self._sessions) >= self.settings.max_sessions:
                oldest = min(self._sessions.values(), key=lambda one: one.seen)
                if time.monotonic() - oldest.seen < _ABANDONED:
                    raise RequestProblem(
                        429,
                        f"{len(self._sessions)} tabs are open",
                        "Close one of them and try again",
                        code="too-many-sessions",
                    )
                del self._sessions[oldest.id]
                threading.Thread(target=oldest.end, daemon=True).start()
            session = Session(self, Path(tempfile.mkdtemp(prefix="s-", dir=self.folder)))
            self._sessions[session.id] = session
            return session

    def find(self, session_id: str) -> Session:
        """The session of a tab."""
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

    def end(self) -> None:
        """End everything; all that visitors sent is deleted."""
        self._over.set()
        for session in list(self._sessions.values()):
            self.close(session)
        if self._reading is not None:
            self._reading.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def sweep(self) -> None:
        """End sessions that nobody uses."""
        now = time.monotonic()
        for session in list(self._sessions.values()):
            if now - session.seen > self.settings.idle:
                self.close(session)

    def _sweep(self) -> None:
        while not self._over.wait(min(30.0, self.settings.idle / 4)):
            self.sweep()

    def _prepare(self) -> None:
        self.source.wait()
        try:
            self.reading.prepare()
            self.mean_editing.prepare()
        except Exception:  # whoever asks for it is told what is wrong
            return
