"""Sessions: one per tab, each with its own folder, scans, patient and jobs; none sees another's."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breastmorph.explorer.answers import RequestProblem, not_now, unknown
from breastmorph.explorer.jobs import Job, Jobs, SharedCalls
from breastmorph.explorer.model_view import ModelOrigin, ModelSource
from breastmorph.explorer.security import Keys
from breastmorph.explorer.settings import MEGABYTE, READERS, PrivateFolder, Settings, is_loopback
from breastmorph.explorer.uploads import UploadFolder
from breastmorph.foundation.errors import BreastMorphError

if TYPE_CHECKING:
    from breastmorph.explorer.editing import Edited, Editing
    from breastmorph.explorer.model_view import ModelView, NamedShape
    from breastmorph.explorer.open_scans import OpenScan, ScanQueue
    from breastmorph.explorer.patients import ShownPatient
    from breastmorph.explorer.predicting import Predicted
    from breastmorph.explorer.proposing import Background

_ABANDONED = 180.0  # seconds: pages that are open ask every minute, so this one was closed
_UNUSED = 1200.0  # seconds after which an open tab that nobody touched gives way to somebody who has none
_LOOKING = 200  # tabs beside those that keep something: they cost next to nothing
_REMEMBERED = 1000  # sessions whose tabs are told what became of them
_PATIENCE = 2.0  # seconds that jobs have to end


class Session:
    """What one tab works on.

    Parameters
    ----------
    explorer : Explorer
        What all sessions share.
    folder : Path
        A private one of its own.
    visitor : str
        Address of whoever opened it.
    """

    def __init__(self, explorer: Explorer, folder: Path, visitor: str = "") -> None:
        self.id, self.explorer, self.folder = secrets.token_urlsafe(24), explorer, folder
        self.visitor, self.has_place = visitor, False
        self.opened = self.seen = self.used = (
            time.monotonic()
        )  # used: by somebody, not only by a page that is open
        self.reading = threading.Lock()  # of an upload: one at a time, so that others get their turn
        self.jobs = Jobs()
        self.uploads = UploadFolder(folder, 3 * explorer.settings.max_upload)
        self.scans: dict[str, OpenScan] = {}
        self.mesh_uploads: dict[str, str] = {}  # of scans: the upload
        self.patient: ShownPatient | None = None
        self.edited: Edited | None = None
        self.predicted: Predicted | None = None
        self.kept: NamedShape | None = None  # to compare with, as it was then
        self.lock = threading.RLock()
        self._own_view: ModelView | None = None
        self._patient_editing: Editing | None = None

    # --- the model ----------------------------------------------------------------------------------------------------

    @property
    def view(self) -> ModelView:
        """The model of this session: the server's, perhaps with landmarks picked here."""
        return self._own_view or self.explorer.source.view

    def take_landmarks(self, landmark_ids: dict[str, int]) -> None:
        """Use landmarks picked on the mean; what was computed with the old ones goes."""
        self._own_view = self.view.with_landmarks(landmark_ids)
        self.edited = self.predicted = self._patient_editing = None

    def editing(self, base: str) -> Editing:
        """The editor of the mean or of the patient."""
        if base == "mean":
            return self.view.mean_editing
        from breastmorph.explorer.editing import Editing

        with self.lock:
            patient = self.required_patient.patient
            if self._patient_editing is None:
                self._patient_editing = Editing(self.view.model, patient)
            return self._patient_editing

    # --- the patient --------------------------------------------------------------------------------------------------

    @property
    def required_patient(self) -> ShownPatient:
        """The patient; raises where there is none."""
        if self.patient is None:
            raise not_now("there is no patient yet", "Open a scan, and register or fit it", code="no-patient")
        return self.patient

    @property
    def required_edit(self) -> Edited:
        """The edit; raises where there is none."""
        if self.edited is None:
            raise not_now("nothing has been edited", "Change a measure first", code="no-edit")
        return self.edited

    @property
    def required_kept(self) -> NamedShape:
        """The shape that was kept to compare; raises where there is none."""
        if self.kept is None:
            raise not_now("no shape is kept to compare", "Keep one first", code="no-kept")
        return self.kept

    @property
    def required_prediction(self) -> Predicted:
        """The prediction; raises where there is none."""
        if self.predicted is None:
            raise not_now("nothing has been predicted", "Choose the missing side first", code="no-prediction")
        return self.predicted

    def take_patient(self, patient: ShownPatient, job: Job | None = None) -> None:
        """Work on another patient; not where the job that found her was cancelled, or her scan was removed."""
        with self.lock:
            if job is not None:
                job.settle()
            self.patient, self.predicted, self._patient_editing = patient, None, None
            if self.edited is not None and self.edited.base == "patient":
                self.edited = None
            if patient.scan in self.scans:
                self.scans[patient.scan].has_result = True

    def forget_patient(self) -> None:
        """Nobody's results are left."""
        with self.lock:
            self.patient = self.edited = self.predicted = self.kept = self._patient_editing = None

    def take_prediction(self, predicted: Predicted, patient: ShownPatient, job: Job) -> None:
        """Keep a prediction, unless its job was cancelled or somebody else is the patient by now."""
        with self.lock:
            job.settle()
            if self.patient is patient:
                self.predicted = predicted

    # --- scans --------------------------------------------------------------------------------------------------------

    def scan(self, key: str) -> OpenScan:
        """A scan by its key: open, in the queue, or the model's mean."""
        from breastmorph.explorer.open_scans import open_mean, open_queued

        queue = self.explorer.queue
        found = self.scans.get(key)
        if found is not None:
            if queue is not None and key in queue.scans:
                found.resume(queue.beside(key))
                found.has_result = queue.is_registered(key)
            return found
        if key == "mean":
            opened = open_mean(self.view)
        elif queue is not None and key in queue.scans:
            try:
                opened = open_queued(self.explorer, queue, key)  # may take long: without the lock
            except BreastMorphError as error:
                queue.unreadable[key] = error.said("page").cause
                raise
            queue.unreadable.pop(key, None)  # the file may have been exported again
        else:
            raise unknown("scan", "Open it again", code="no-scan")
        with self.lock:
            if key not in self.scans:  # nobody was faster
                self._make_room()
                self.scans[key] = opened
            return self.scans[key]

    @property
    def latest_scan(self) -> str:
        """Key of the patient's scan; while there is no patient, of the one that was uploaded last. May be empty."""
        return self.patient.scan if self.patient is not None else next(reversed(self.mesh_uploads), "")

    def add_scan(self, scan: OpenScan, upload: str) -> None:
        """Keep an uploaded scan."""
        with self.lock:
            self._make_room()
            self.scans[scan.key], self.mesh_uploads[scan.key] = scan, upload

    def drop_scan(self, key: str) -> None:
        """Forget a scan and what was made or is being made of it; an upload's files are deleted."""
        with self.lock:
            self.jobs.cancel_all(key)
            if self.patient is not None and self.patient.scan == key:
                self.forget_patient()
            elif key not in self.scans:
                raise unknown("scan", code="no-scan")
            self.scans.pop(key, None)
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
        from breastmorph.explorer.picking import guide
        from breastmorph.foundation.words import MEASURES, PAIRS_IN_WORDS
        from breastmorph.mesh import files as mesh_files
        from breastmorph.scan import landmark_files

        patient, running = self.patient, self.jobs.running
        return {
            "model": self.model_record(),
            "queue": self.explorer.queue is not None,
            "propose": self.explorer.settings.propose,
            "upload_mb": self.explorer.settings.max_upload / MEGABYTE,
            "mesh_suffixes": list(mesh_files.READABLE),
            "landmark_suffixes": list(landmark_files.READABLE),
            "picking": guide(),
            "measure_names": MEASURES,
            "pair_names": PAIRS_IN_WORDS,
            "patient": patient.as_record() if patient is not None else None,
            "edit": self.edited.record if self.edited is not None else None,
            "prediction": self.predicted.record if self.predicted is not None else None,
            "scan": self.latest_scan,
            "job": running.as_record() if running is not None else None,
        }

    def model_record(self) -> dict[str, Any]:
        """The model, for the page."""
        return self.explorer.source.as_record(self._own_view)

    def leave(self) -> None:
        """Its page was closed, or is loaded again: then it is heard of at once."""
        self.seen = time.monotonic() - _ABANDONED

    @property
    def is_left(self) -> bool:
        """Whether its page was closed."""
        return time.monotonic() - self.seen >= _ABANDONED

    def gives_way(self) -> bool:
        """Whether somebody else may have its place."""
        unused = time.monotonic() - self.used >= _UNUSED
        return (self.is_left or unused) and self.jobs.running is None

    def end(self) -> None:
        """Stop all work and delete all files."""
        self.jobs.cancel_all()
        self.jobs.wait(_PATIENCE)
        self.uploads.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Explorer:
    """What all sessions share: the keys, the model, the queue, processes for hard work, a private folder.

    Parameters
    ----------
    settings : Settings
    """

    def __init__(self, settings: Settings) -> None:
        self.settings, self.keys = settings, Keys()
        self._private = PrivateFolder()
        self.folder = self._private.path
        self.source = ModelSource(ModelOrigin(settings.model), settings.modes)
        self.queue: ScanQueue | None = None
        self.background: Background | None = None
        self.reading = SharedCalls(_reader, settings.reading, READERS)
        # One process: what it learned of the model for one tab serves the next.
        self.predicting = SharedCalls(_predictor, settings.computing, 1)
        self._sessions: dict[str, Session] = {}
        self._gave_way: deque[str] = deque(maxlen=_REMEMBERED)
        self._lock = threading.Lock()
        self._over = threading.Event()

    def start(self) -> None:
        """Look into the folder, then prepare the rest in the background."""
        if self.settings.folder is not None:
            from breastmorph.explorer.open_scans import ScanQueue

            self.queue = ScanQueue.of(self.settings.folder)
            if self.settings.propose:
                from breastmorph.explorer.proposing import Background

                self.background = Background(self.queue, self.settings.reading)
        self.source.start()
        threading.Thread(target=self._prepare, name="preparing", daemon=True).start()
        threading.Thread(target=self._sweep, name="sweeping", daemon=True).start()

    # --- sessions -----------------------------------------------------------------------------------------------------

    def open(self, visitor: str = "") -> Session:
        """A new session, for everybody: as long as it keeps nothing it costs next to nothing.

        Of too many, one that keeps nothing ends: first those that nobody used after they were opened.
        """
        with self._lock:
            if len(self._sessions) >= self.settings.max_sessions + _LOOKING:
                looking = [one for one in self._sessions.values() if not one.has_place]
                self._end_soon(min(looking, key=lambda one: (one.used > one.opened, one.seen)))
            session = Session(self, Path(tempfile.mkdtemp(prefix="s-", dir=self.folder)), visitor)
            self._sessions[session.id] = session
            return session

    def give_place(self, session: Session) -> None:
        """Let a session keep scans and results; a tab that was closed or long unused gives way where all are taken.

        Raises
        ------
        RequestProblem
            429 where none can.
        """
        most = self.settings.max_sessions
        with self._lock:
            if session.has_place:
                return
            working = [one for one in self._sessions.values() if one.has_place]
            own = [one for one in working if one.visitor == session.visitor]
            if len(own) >= self._most_of_one():
                self._make_way(own)
            elif len(working) >= most:
                self._make_way(working)
            session.has_place = True

    def _most_of_one(self) -> int:
        """Places that visitors from one address may have; one quarter is left for others where there can be others."""
        most = self.settings.max_sessions
        return most if is_loopback(self.settings.host) else max(1, most - most // 4)

    def _make_way(self, working: Sequence[Session]) -> None:
        idle = [one for one in working if one.gives_way()]
        if not idle:
            raise RequestProblem(
                429,
                f"{len(working)} other tabs are at work, and there is no place for one more",
                "Close one of them: its place is free then",
                code="too-many-sessions",
            )
        self._end_soon(min(idle, key=lambda one: (not one.is_left, one.used)))

    def _end_soon(self, session: Session) -> None:
        del self._sessions[session.id]
        self._gave_way.append(session.id)
        threading.Thread(target=session.end, daemon=True).start()

    def find(self, session_id: str) -> Session:
        """The session of a tab."""
        session = self._sessions.get(session_id)
        if session is None and session_id in self._gave_way:
            raise RequestProblem(
                404,
                "this tab was closed or long unused, and another one needed its place: what it held is deleted",
                "Reload the page; open your scan or session file again",
                code="no-session",
            )
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
        """Whether somebody ended it."""
        return self._over.is_set()

    def end(self) -> None:
        """End everything; all that visitors sent is deleted."""
        self._over.set()
        if self.background is not None:
            self.background.stop()
        for session in list(self._sessions.values()):
            self.close(session)
        self.reading.close()
        self.predicting.close()
        self._private.delete()

    def _sweep(self) -> None:
        """End sessions that nobody uses."""
        while not self._over.wait(min(30.0, self.settings.idle / 4)):
            self.end_idle()

    def end_idle(self) -> None:
        """End the sessions that nobody used for long."""
        now = time.monotonic()
        for session in list(self._sessions.values()):
            if now - session.seen > self.settings.idle:
                self.close(session)

    def _prepare(self) -> None:
        self.source.wait()
        try:
            self.reading.prepare()
            self.source.view.mean_editing.prepare()
        except Exception:  # whoever asks for it is told what is wrong
            return
        finally:
            if self.background is not None and not self.is_over:
                self.background.begin()


# Both modules take long to load, and only their processes need them.


def _reader() -> Callable[[Any], Any]:
    from breastmorph.explorer.uploads import reader

    return reader()


def _predictor() -> Callable[[Any], Any]:
    from breastmorph.explorer.predicting import predictor

    return predictor()
