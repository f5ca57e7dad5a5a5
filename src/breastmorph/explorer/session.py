"""Sessions: one per tab, each with its own folder, scans, patient and jobs; none sees another's."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from breastmorph.explorer.answers import RequestProblem, Spoken, bad_request, not_now, there, unknown
from breastmorph.explorer.cases import ABOUT, Boxed, Case, History, Room, Shelf, day_in
from breastmorph.explorer.jobs import Cancelled, Job, Jobs, SharedCalls
from breastmorph.explorer.model_view import ModelOrigin, ModelSource
from breastmorph.explorer.security import Keys
from breastmorph.explorer.settings import MEGABYTE, READERS, PrivateFolder, Settings, is_loopback
from breastmorph.explorer.uploads import UploadFolder
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.machine import cores

if TYPE_CHECKING:
    from breastmorph.explorer.editing import Edited, Editing
    from breastmorph.explorer.model_view import ModelView, NamedShape
    from breastmorph.explorer.open_scans import Folders, OpenScan
    from breastmorph.explorer.patients import ShownPatient
    from breastmorph.explorer.predicting import Predicted

_ABANDONED = 180.0  # seconds: pages that are open ask every minute, so this one was closed
_UNUSED = 1200.0  # seconds after which an open tab that nobody touched gives way to somebody who has none
_LOOKING = 200  # tabs beside those that keep something: they cost next to nothing
_REMEMBERED = 1000  # sessions whose tabs are told what became of them
_PATIENCE = 2.0  # seconds that jobs have to end
_AWAKE = 64 * MEGABYTE  # of arrays that a tab has in memory; what is not looked at rests on the disk
_FILES = 12  # times the largest upload: what all files of a tab may take
_SECOND_THOUGHTS = 600.0  # seconds in which a removed scan can be brought back
_LATE = 3.0  # seconds in which requests of a page that was closed may still come in
_LARGEST_NOTES = 256 * 1024  # letters of the page's own notes
_THUMBNAIL = 24 * 1024  # letters of a small picture


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
        # used: by somebody, not only by a page that is open
        self.opened = self.seen = self.used = time.monotonic()
        self.reading = threading.Lock()  # of an upload: one at a time, so that others get their turn
        self.jobs = Jobs()
        self.uploads = UploadFolder(folder, _FILES * explorer.settings.max_upload)
        self.scans: dict[str, OpenScan] = {}
        self.queue = explorer.folders.first if explorer.folders is not None else None  # the open folder
        self.mesh_uploads: dict[str, str] = {}  # of scans: the upload
        self.thumbnails: dict[str, str] = {}
        self.lock = threading.RLock()
        self._cases: Mapping[str, Case] = {"": Case()}
        self._current = ""
        self._kept: Boxed[NamedShape] | None = None  # to compare with, as it was then
        self._kept_of = ""
        self.notes = "{}"
        self._history, self._shelf = History(), Shelf(folder, _AWAKE)
        self._away: dict[str, float] = {}  # cases that only a step could bring back: since when
        self._stepping = False
        self._left = float("-inf")  # when its page was closed last
        self._own_view: ModelView | None = None
        self._patient_editing: tuple[Boxed[ShownPatient] | None, Editing] | None = None

    # --- the model ----------------------------------------------------------------------------------------------------

    @property
    def view(self) -> ModelView:
        """The model of this session: the server's, perhaps with landmarks picked here."""
        return self._own_view or self.explorer.source.view

    def take_model(self, view: ModelView, what: str) -> None:
        """Use another model, or this one with its landmarks picked; what was computed with the old one goes."""
        alike = np.array_equal(view.model.faces, self.view.model.faces)
        gone = dict.fromkeys(("edited", "predicted") if alike else ("patient", "edited", "predicted"))
        with self.step(what):
            self._own_view, self._patient_editing = view, None
            self._cases = {key: replace(case, **cast("Any", gone)) for key, case in self._cases.items()}
            if not alike:
                self._kept, self._kept_of = None, ""
            for scan in self.scans.values():
                self._note_result(scan)

    def editing(self, base: str) -> Editing:
        """The editor of the mean or of the patient."""
        if base == "mean":
            return self.view.mean_editing
        from breastmorph.explorer.editing import Editing

        with self.lock:
            patient, box = self.required_patient.patient, self.case.patient
            if self._patient_editing is None or self._patient_editing[0] is not box:
                self._patient_editing = (box, Editing(self.view.model, patient))
            return self._patient_editing[1]

    # --- steps that can be undone -------------------------------------------------------------------------------------

    @property
    def room(self) -> Room:
        """All that is worked on, as it is now."""
        marks = {key: (scan.picks, scan.proposal) for key, scan in self.scans.items()}
        return Room(self._cases, self.current, marks, self.notes, self._kept, self._kept_of, self._own_view)

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """A change that can be undone; of steps within another one only that counts."""
        with self.lock:
            inner, self._stepping = self._stepping, True
            before = self.room
            try:
                yield
            finally:
                self._stepping = inner
                if not inner and self.room != before:
                    self._history.note(what, before)

    def undo(self) -> str:
        """As before the last step; returns what it was."""
        return self._travel(self._history.back)

    def redo(self) -> str:
        """The step that was undone last is made again; returns what it was."""
        return self._travel(self._history.forth)

    def _travel(self, way: Callable[[Room], tuple[str, Room]]) -> str:
        with self.lock:
            if self.jobs.running is not None:
                raise not_now("something is still being computed", "Wait for it, or cancel it", code="busy")
            self.forget_removed()
            what, room = way(self.room)
            self._enter(room)
            return what

    def _enter(self, room: Room) -> None:
        self._cases, self.current, self.notes = room.cases, room.current, room.notes
        self._kept, self._kept_of, self._own_view = room.kept, room.kept_of, room.view
        self._patient_editing = None
        for key, scan in self.scans.items():
            if key in room.marks:
                scan.go_to(*room.marks[key])
            case = self._cases.get(key)
            if case is not None:
                scan.name = case.name
            self._note_result(scan)

    def take_notes(self, notes: Any, what: str, *, joined: bool) -> None:
        """Keep what the page says of its own state: a step of its own, or part of the last one."""
        text = json.dumps(notes, sort_keys=True)
        if not isinstance(notes, dict) or len(text) > _LARGEST_NOTES:
            raise bad_request("the page's notes are no object, or too long")
        with self.lock:
            if joined:
                self.notes = text
                return
            with self.step(what[:40]):
                self.notes = text

    # --- cases --------------------------------------------------------------------------------------------------------

    @property
    def current(self) -> str:
        """Key of the case that is worked on."""
        return self._current

    @current.setter
    def current(self, key: str) -> None:
        self._current = key
        ABOUT.set(None)  # whoever goes elsewhere means what is there

    @property
    def case(self) -> Case:
        """The one that the request is about, otherwise the one that is worked on."""
        named = ABOUT.get()
        return self.case_of(self.current if named is None else named)

    def case_of(self, key: str, *, of_a_scan: bool = False) -> Case:
        """One that is open; raises where there is none, or only that of nobody where a scan's is asked for."""
        case = self._cases.get(key)
        if case is None or (of_a_scan and not key):
            raise unknown("scan", "Open it again", code="no-scan")
        return case

    @property
    def cases(self) -> list[Case]:
        """Those with a scan, in the order in which they were opened."""
        return [case for key, case in self._cases.items() if key]

    def patient_of(self, key: str) -> ShownPatient | None:
        """What was made of a scan; None where nothing was, or it is not open."""
        case = self._cases.get(key)
        return case.patient.value if case is not None and case.patient is not None else None

    def change(self, key: str, **changes: Any) -> None:
        """Change a case; large values are boxed."""
        boxed: dict[str, Any] = {
            name: self._shelf.put(value)
            if name in ("patient", "edited", "predicted") and value is not None
            else value
            for name, value in changes.items()
        }
        with self.lock:
            self._cases = {**self._cases, key: replace(self._cases.get(key, Case(key)), **boxed)}

    def switch(self, key: str) -> None:
        """Work on another case, or (empty) on none of a patient."""
        with self.lock:
            self.current, self._patient_editing = self.case_of(key).key, None
        for other, scan in list(self.scans.items()):
            if other != key:
                scan.rest()

    def rename(self, key: str, asked: Mapping[str, Any]) -> None:
        """Another name, person or day; results are called by it too."""
        with self.step("rename"):
            case = self.case_of(key, of_a_scan=True).renamed(asked)
            self._cases = {**self._cases, key: case}
            if key in self.scans:
                self.scans[key].name = case.name
            if case.patient is not None and case.patient.value.patient.id != case.name:
                patient = case.patient.value
                self.change(key, patient=replace(patient, patient=replace(patient.patient, id=case.name)))

    def remove(self, key: str) -> None:
        """Take a case out of the list; it can be brought back for some minutes."""
        with self.step("remove"):
            self.case_of(key, of_a_scan=True)
            self.jobs.cancel_all(key)
            self._go_without(key)

    def _go_without(self, key: str) -> None:
        room = self.room.without(key)
        self._cases, self.current = room.cases, room.current
        self._kept, self._kept_of = room.kept, room.kept_of
        self._patient_editing = None

    def forget_removed(self) -> None:
        """Delete what was removed some minutes ago, or by somebody who has left."""
        now = time.monotonic()
        with self.lock:
            could_return = {key for key in {*self._history.keys(), *self.mesh_uploads} if key}
            for key in could_return:
                if key in self._cases:
                    self._away.pop(key, None)
                elif now - self._away.setdefault(key, now) >= _SECOND_THOUGHTS or self.is_left:
                    self._delete(key)

    def _delete(self, key: str) -> None:
        """Nothing of a case is left."""
        self._away.pop(key, None)
        self.thumbnails.pop(key, None)
        self.scans.pop(key, None)
        upload = self.mesh_uploads.pop(key, None)
        if upload is not None:
            self.uploads.drop(upload)
        self._history.forget(key, self.room)

    # --- the patient --------------------------------------------------------------------------------------------------

    @property
    def patient(self) -> ShownPatient | None:
        """The one that is worked on."""
        return self.case.patient.value if self.case.patient is not None else None

    @patient.setter
    def patient(self, patient: ShownPatient | None) -> None:
        self.change(self.case.key, patient=patient)

    @property
    def edited(self) -> Edited | None:
        """The last edit."""
        return self.case.edited.value if self.case.edited is not None else None

    @edited.setter
    def edited(self, edited: Edited | None) -> None:
        with self.step("edit"):
            self.change(self.case.key, edited=edited)

    @property
    def predicted(self) -> Predicted | None:
        """The last prediction."""
        return self.case.predicted.value if self.case.predicted is not None else None

    @predicted.setter
    def predicted(self, predicted: Predicted | None) -> None:
        with self.step("predict"):
            self.change(self.case.key, predicted=predicted)

    @property
    def kept(self) -> NamedShape | None:
        """What is kept to compare with."""
        return self._kept.value if self._kept is not None else None

    @kept.setter
    def kept(self, shape: NamedShape | None) -> None:
        with self.step("keep"):
            self._kept = self._shelf.put(shape) if shape is not None else None
            self._kept_of = self.case.key if shape is not None else ""

    @property
    def required_patient(self) -> ShownPatient:
        """The patient; raises where there is none."""
        return there(
            self.patient, "there is no patient yet", "Open a scan, and register or fit it", code="no-patient"
        )

    @property
    def required_edit(self) -> Edited:
        """The edit; raises where there is none."""
        return there(self.edited, "nothing has been edited", "Change a measure first", code="no-edit")

    @property
    def required_kept(self) -> NamedShape:
        """The shape that was kept to compare; raises where there is none."""
        return there(self.kept, "no shape is kept to compare", "Keep one first", code="no-kept")

    @property
    def required_prediction(self) -> Predicted:
        """The prediction; raises where there is none."""
        return there(
            self.predicted,
            "nothing has been predicted",
            "Choose the missing side first",
            code="no-prediction",
        )

    def take_patient(self, patient: ShownPatient, job: Job | None = None) -> None:
        """Keep what was made of a scan; not where the job was cancelled, or the scan was removed."""
        key = patient.scan
        with self.step(patient.how):
            if key in self.mesh_uploads and key not in self._cases:
                raise Cancelled
            if job is not None:
                job.settle()
            if key not in self._cases:  # of the folder
                self._cases = {
                    **self._cases,
                    key: Case(key, patient.patient.id, day=day_in(patient.patient.id)),
                }
                self.current = key
            kept = self._cases[key].edited
            is_hers = kept is not None and kept.value.base == "patient"
            self.change(key, patient=patient, predicted=None)
            if is_hers:
                self.change(key, edited=None)
            if key in self.scans:
                self.scans[key].has_result = True

    def forget_patient(self) -> None:
        """Work on no patient, with nothing edited or kept."""
        with self.lock:
            self._cases = {**self._cases, "": Case()}
            self.current, self._kept, self._kept_of, self._patient_editing = "", None, "", None

    def take_prediction(self, predicted: Predicted, patient: ShownPatient, job: Job) -> None:
        """Keep a prediction, unless its job was cancelled or the patient's shape is another one by now."""
        with self.step("predict"):
            job.settle()
            case = self._cases.get(patient.scan)
            if case is None or case.patient is None:
                return
            if np.array_equal(case.patient.value.patient.shape, patient.patient.shape):
                self.change(patient.scan, predicted=predicted)

    # --- scans --------------------------------------------------------------------------------------------------------

    def scan(self, key: str) -> OpenScan:
        """A scan by its key: open, in the queue, or the model's mean."""
        from breastmorph.explorer.open_scans import open_mean, open_queued

        queue = self.queue
        found = self.scans.get(key)
        if found is not None and key in self.mesh_uploads and key not in self._cases:
            found = None  # removed
        if found is not None:
            if queue is not None and key in queue.scans:
                found.resume(queue.beside(key))
                self._note_result(found)
            return found
        if key == "mean":
            opened = open_mean(self)
        elif queue is not None and key in queue.scans:
            try:
                opened = open_queued(self, queue, key)  # may take long: without the lock
            except BreastMorphError as error:
                queue.unreadable[key] = Spoken(error.name, error.values)
                raise
            queue.unreadable.pop(key, None)  # the file may have been exported again
        else:
            raise unknown("scan", "Open it again", code="no-scan")
        with self.lock:
            if key not in self.scans:  # nobody was faster
                self._make_room()
                self.scans[key] = opened
            return self.scans[key]

    def boxed(self, value: Any) -> Boxed[Any]:
        """A large value that rests on the disk while nobody looks at it."""
        return self._shelf.put(value)

    def _note_result(self, scan: OpenScan) -> None:
        queue, case = self.queue, self._cases.get(scan.key)
        in_folder = queue is not None and scan.key in queue.scans and queue.is_registered(scan.key)
        scan.has_result = in_folder or (case is not None and case.patient is not None)

    def add_scan(self, scan: OpenScan, upload: str, beside: bool = False) -> None:
        """Keep an uploaded scan; it is worked on now, unless it only stands ``beside`` the one that is."""
        with self.step("open"):
            self._make_room()
            self.scans[scan.key], self.mesh_uploads[scan.key] = scan, upload
            self._cases = {**self._cases, scan.key: Case(scan.key, scan.name, day=day_in(scan.name))}
            self.switch(self.current if beside else scan.key)

    def drop_scan(self, key: str) -> None:
        """Forget a scan and what was made or is being made of it for good; an upload's files are deleted."""
        with self.lock:
            self.jobs.cancel_all(key)
            if key not in self._cases and key not in self.scans:
                raise unknown("scan", code="no-scan")
            if key in self._cases and key:
                self._go_without(key)
            self._delete(key)

    def _make_room(self) -> None:
        most = self.explorer.settings.max_scans
        idle = [key for key in self.scans if key not in self._cases and key not in self.mesh_uploads]
        if len(self.scans) >= most and idle:
            del self.scans[idle[0]]  # from the queue: saved, and read again when needed
        elif len(self.scans) >= most:
            raise RequestProblem(429, f"{most} scans are open", "Close one first", code="too-many")

    # --- life ---------------------------------------------------------------------------------------------------------

    def as_record(self) -> dict[str, Any]:
        """The whole state, for the page."""
        from breastmorph.explorer.picking import told_once

        ABOUT.set(None)  # of what is worked on now, whatever the page has shown so far
        patient, running = self.patient, self.jobs.running
        edited, predicted = self.edited, self.predicted
        return {
            "model": self.model_record(),
            "queue": self.queue is not None,
            "folders": self.explorer.folders is not None,
            "propose": self.explorer.settings.propose,
            "upload_mb": self.explorer.settings.max_upload / MEGABYTE,
            **told_once(),
            "patient": patient.as_record() if patient is not None else None,
            "edit": edited.record if edited is not None else None,
            "prediction": predicted.record if predicted is not None else None,
            "scan": self.current,
            "kept": {"token": self._kept.token, "of": self._kept_of} if self._kept is not None else None,
            **self.change_record(),
            "notes": json.loads(self.notes),
            "job": running.as_record() if running is not None else None,
        }

    def change_record(self) -> dict[str, Any]:
        """What any step may change, for the page."""
        return {"cases": self.case_records(), "history": self._history.as_record()}

    def case_records(self) -> list[dict[str, Any]]:
        """The list of open scans, for the page; nothing that rests is read for it."""
        return [
            case.as_record(
                self.scans[case.key].picks if case.key in self.scans else None,
                self.thumbnails.get(case.key, ""),
            )
            for case in self.cases
        ]

    def take_thumbnail(self, key: str, picture: Any) -> None:
        """A small picture of a scan, as the page drew it."""
        if not isinstance(picture, str) or len(picture) > _THUMBNAIL or not picture.isascii():
            raise bad_request("the picture is too large")
        if key in self._cases:
            self.thumbnails[key] = picture

    def model_record(self) -> dict[str, Any]:
        """The model, for the page."""
        return self.explorer.source.as_record(self._own_view)

    def leave(self) -> None:
        """Its page was closed, or is loaded again: then it is heard of at once."""
        self._left = time.monotonic()
        self.seen = self._left - _ABANDONED

    def notice(self, *, loaded: bool = False) -> None:
        """Its page asked for something; what a page sent just before it was closed does not count."""
        now = time.monotonic()
        if loaded or now - self._left > _LATE:
            self.seen = now

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
        self._shelf.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Explorer:
    """What all sessions share: the keys, the model, the folders, processes for hard work, a private folder.

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
        self.reading = SharedCalls(partial(_setup, "uploads.reader"), settings.reading, READERS)
        # One process: what it learned of the model for one tab serves the next.
        self.predicting = SharedCalls(partial(_setup, "predicting.predictor"), settings.computing, 1)
        self.registering = SharedCalls(
            partial(_setup, "patients.registrar"), settings.computing, max(READERS, cores())
        )
        self._sessions: dict[str, Session] = {}
        self._gave_way: deque[str] = deque(maxlen=_REMEMBERED)
        self._lock = threading.Lock()
        self._over = threading.Event()

    def start(self) -> None:
        """Look into the folder, then prepare the rest in the background."""
        if self.settings.folder is not None:
            from breastmorph.explorer.open_scans import Folders

            self.folders = Folders(self.settings)
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
        session.notice()
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
        if self.folders is not None:
            self.folders.end()
        for session in list(self._sessions.values()):
            self.close(session)
        self.reading.close()
        self.predicting.close()
        self.registering.close()
        self._private.delete()

    def _sweep(self) -> None:
        """End sessions that nobody uses."""
        while not self._over.wait(min(30.0, self.settings.idle / 4)):
            self.end_idle()

    def end_idle(self) -> None:
        """End the sessions that nobody used for long."""
        now = time.monotonic()
        for session in list(self._sessions.values()):
            session.forget_removed()
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
            if self.folders is not None and not self.is_over:
                self.folders.begin()


def _setup(name: str) -> Callable[[Any], Any]:
    """What a worker process does, by its module and maker: these take long to load, and only it needs them."""
    module, _, made_by = name.partition(".")
    made: Callable[[Any], Any] = getattr(import_module(f"breastmorph.explorer.{module}"), made_by)()
    return made
