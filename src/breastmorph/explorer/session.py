"""Sessions: one per tab, each with its own folder, workspace, files and jobs; none sees another's."""

from __future__ import annotations

import json
import secrets
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.explorer.answers import RequestProblem, bad_request, not_now, unknown
from breastmorph.explorer.jobs import Cancelled, Job, Jobs
from breastmorph.explorer.picks import page_facts
from breastmorph.explorer.settings import MEGABYTE
from breastmorph.explorer.uploads import UploadFolder
from breastmorph.explorer.workspace import Case, Change, History, Workspace
from breastmorph.foundation.errors import BreastMorphError

if TYPE_CHECKING:
    from breastmorph.explorer.editing import Editing
    from breastmorph.explorer.explorer import Explorer
    from breastmorph.explorer.model_view import ModelView
    from breastmorph.explorer.patients import ShownPatient
    from breastmorph.explorer.picks import Picks
    from breastmorph.explorer.predicting import Predicted

_ABANDONED = 180.0  # seconds: pages that are open ask every minute, so this one was closed
_JOBS_END = 2.0  # seconds that jobs have to end
_FILES = 12  # times the largest upload: what all files of a tab may take
_REMOVED = 600.0  # seconds in which a removed scan can be brought back
_FOLDER_SCANS = 3  # scans of the folder that are open at a time; others are saved, and read again when needed
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

    Attributes
    ----------
    workspace : Workspace
        All that is worked on, as it is now.
    """

    def __init__(self, explorer: Explorer, folder: Path) -> None:
        self.id, self.explorer, self.folder = secrets.token_urlsafe(24), explorer, folder
        self.seen = time.monotonic()  # when its page asked last
        self.reading = threading.Lock()  # of an upload: one at a time, so that other tabs get their turn
        self.jobs = Jobs()
        self.uploads = UploadFolder(folder, _FILES * explorer.settings.max_upload)
        self.queue = explorer.folders.first if explorer.folders is not None else None  # the open folder
        self.workspace, self.history = Workspace(), History()
        self._lock = threading.RLock()
        self._thumbnails: dict[str, str] = {}
        self._mesh_uploads: dict[str, str] = {}  # of scans: the upload
        self._removed: dict[str, float] = {}  # cases that only a step could bring back: since when
        self._editing: tuple[ShownPatient, Editing] | None = None  # of one patient: it takes 100 MB

    # What can be undone

    def step(self, what: str, change: Change, *, save: bool = True) -> None:
        """Change the workspace so that it can be undone; ``save`` also the landmark files of the folder's scans."""
        with self._lock:
            before, after = self.workspace, change(self.workspace)
            if after != before:
                self.history.note(what, before)
                self._become(after, save=save)

    def undo(self) -> str:
        """As before the last step; returns what it was."""
        return self._travel(
            self.history.undo, ("there is nothing to undo", "Change something first", "nothing-to-undo")
        )

    def redo(self) -> str:
        """The step that was undone last is made again; returns what it was."""
        return self._travel(
            self.history.redo, ("there is nothing to do again", "Undo something first", "nothing-to-redo")
        )

    def _travel(
        self, move: Callable[[Workspace], tuple[str, Workspace] | None], nothing: tuple[str, str, str]
    ) -> str:
        with self._lock:
            if self.jobs.running is not None:
                raise not_now("something is still being computed", "Wait for it, or cancel it", code="busy")
            self.delete_removed()
            found = move(self.workspace)
            if found is None:
                raise not_now(*nothing)
            self._become(found[1])
            return found[0]

    def _become(self, after: Workspace, *, save: bool = True) -> None:
        before, self.workspace = self.workspace, after
        for key, case in after.cases.items() if save else ():
            file = case.scan.landmarks if case.scan is not None else None
            if file is not None and key in before.cases and before.cases[key].picks is not case.picks:
                file.save(case.picks)

    def take_notes(self, notes: Any, what: str, *, joined: bool) -> None:
        """Keep what the page says of its own state: a step of its own, or part of the last one."""
        text = json.dumps(notes, sort_keys=True)
        if not isinstance(notes, dict) or len(text) > _LARGEST_NOTES:
            raise bad_request("the page's notes are no object, or too long")
        if joined:
            with self._lock:
                self.workspace = replace(self.workspace, notes=text)
        else:
            self.step(what[:40], lambda now: replace(now, notes=text))

    # The model in use

    @property
    def view(self) -> ModelView:
        """The model of this session: the server's, one built here, or one with landmarks picked here."""
        return self.workspace.view or self.explorer.source.view

    def take_model(self, view: ModelView, what: str) -> None:
        """Use another model, or this one with its landmarks picked; what was computed with the old one goes."""
        alike = np.array_equal(view.model.faces, self.view.model.faces)
        self.step(what, lambda now: now.with_model(view, alike=alike))
        self._editing = None

    def editing(self, case: Case, base: str) -> Editing:
        """The editor of the mean or of a case's patient."""
        if base == "mean":
            return self.view.mean_editing
        from breastmorph.explorer.editing import Editing

        patient = case.required_patient
        with self._lock:
            if self._editing is None or self._editing[0] is not patient:
                self._editing = (patient, Editing(self.view.model, patient.patient))
            return self._editing[1]

    # Cases

    def open(self, key: str) -> Case:
        """The case of a scan: open already, of the folder, or the model's mean."""
        from breastmorph.explorer.open_scans import mean_case, queued_case

        queue = self.queue if self.queue is not None and key in self.queue.scans else None
        case = self.workspace.cases.get(key) if key else None
        if case is None and key == "mean":
            self._take_opened(mean_case(self.view))
        elif case is None and queue is not None:
            try:
                found = queued_case(self.explorer, queue, key)  # may take long: without the lock
            except BreastMorphError as error:
                queue.unreadable[key] = error.finding.cause
                raise
            queue.unreadable.pop(key, None)  # the file may have been exported again
            self._take_opened(found)
        elif case is None:
            raise unknown("scan", "Open it again", code="no-scan")
        elif queue is not None and case.scan is not None and case.scan.landmarks is not None:
            with self._lock:
                picks = case.scan.landmarks.changed(queue.beside(key))
                if picks is not None:
                    self.workspace = self.workspace.changed(key, picks=picks)
        return self.workspace.case(key)

    def _take_opened(self, case: Case) -> None:
        """Keep a case that no step opened, and few of them."""
        with self._lock:
            now = self.workspace
            if case.key in now.cases:  # another request was faster
                return
            running = self.jobs.running
            needed = ("", now.current, running.scan if running is not None else "")
            idle = [key for key, other in now.cases.items() if key not in needed and not other.is_listed]
            for key in idle[: max(len(idle) + 1 - _FOLDER_SCANS, 0)]:
                now = now.without(key)
            self._require_place()
            self.workspace = now.with_case(case)

    def add(self, case: Case, *, beside: bool = False) -> None:
        """Keep an uploaded scan; it is worked on now, unless it only stands ``beside`` the one that is."""
        upload = case.required_scan.upload
        try:
            self._require_place()
        except RequestProblem:
            self.uploads.drop(upload)
            raise
        self._mesh_uploads[case.key] = upload
        self.step("open", lambda now: now.with_case(case))
        if not beside:
            self.switch(case.key)

    def _require_place(self) -> None:
        most = self.explorer.settings.max_scans
        if len(self.workspace.cases) > most:
            raise RequestProblem(429, "{most} scans are open", "Close one first", code="too-many", most=most)

    def switch(self, key: str) -> None:
        """Work on another case, or (empty) on none of a patient."""
        with self._lock:
            self.workspace = replace(self.workspace, current=self.workspace.case(key).key)
            self._editing = None
            for other in self.workspace.cases.values():
                if other.key != key and other.scan is not None:
                    other.scan.forget_computed()

    def rename(self, key: str, asked: dict[str, Any]) -> None:
        """Another name, person or day; results are called by it too."""
        self.step("rename", lambda now: now.with_case(now.case(key, of_a_scan=True).renamed(asked)))

    def change_picks(self, key: str, change: Callable[[Picks], Picks]) -> Case:
        """Change the landmarks of a scan."""
        self.step("points", lambda now: now.changed(key, picks=change(now.case(key).picks)))
        return self.workspace.case(key)

    def remove(self, key: str) -> None:
        """Take a case out of the list; it can be brought back for some minutes."""
        self.workspace.case(key, of_a_scan=True)
        self.jobs.cancel_all(key)
        self.step("remove", lambda now: now.without(key))

    def delete(self, key: str) -> None:
        """Forget a scan and what was made or is being made of it for good; an upload's files are deleted."""
        with self._lock:
            self.jobs.cancel_all(key)
            self.workspace = self.workspace.without(self.workspace.case(key, of_a_scan=True).key)
            self._delete(key)

    def delete_removed(self) -> None:
        """Delete what was removed some minutes ago, or in a tab that was closed since."""
        now = time.monotonic()
        with self._lock:
            for key in {*self.history.cases(), *self._mesh_uploads}:
                if key in self.workspace.cases:
                    self._removed.pop(key, None)
                elif now - self._removed.setdefault(key, now) >= _REMOVED or self.is_left:
                    self._delete(key)

    def _delete(self, key: str) -> None:
        """Nothing of a case is left."""
        self._removed.pop(key, None)
        self._thumbnails.pop(key, None)
        self.uploads.drop(self._mesh_uploads.pop(key, ""))
        self.history.forget(key, self.workspace)
        self._editing = None

    def begin_anew(self) -> None:
        """Work on no patient, with nothing edited or kept."""
        with self._lock:
            self.workspace = replace(self.workspace.with_case(Case()), current="")

    # What jobs computed of a case: kept where it is still open and was not computed anew meanwhile

    def take_patient(self, patient: ShownPatient, job: Job | None = None) -> None:
        """Keep what was made of a scan; not where the job was cancelled, or the scan was removed."""

        def change(now: Workspace) -> Workspace:
            case = now.cases.get(patient.scan)
            if case is None:
                raise Cancelled
            if job is not None:
                job.settle()
            is_hers = case.edited is not None and case.edited.base == "patient"
            edited = None if is_hers else case.edited
            after = now.changed(case.key, patient=patient, edited=edited, predicted=None)
            return after if case.is_listed else replace(after, current=case.key)

        self.step(patient.how, change)

    def take_prediction(self, predicted: Predicted, of: Case, job: Job) -> None:
        """Keep a prediction, unless its job was cancelled or the patient's shape is another one by now."""

        def change(now: Workspace) -> Workspace:
            job.settle()
            case = now.cases.get(of.key)
            is_same = case is not None and case.patient is of.patient
            return now.changed(of.key, predicted=predicted) if is_same else now

        self.step("predict", change)

    # For the page

    def as_record(self) -> dict[str, Any]:
        """The whole state, for the page."""
        now, settings, running = self.workspace, self.explorer.settings, self.jobs.running
        case = now.case(now.current)
        return {
            "model": self.model_record(),
            "queue": self.queue is not None,
            "folders": self.explorer.folders is not None,
            "propose": settings.propose,
            "upload_mb": settings.max_upload / MEGABYTE,
            **page_facts(),
            "patient": case.patient.as_record(case.name) if case.patient is not None else None,
            "edit": case.edited.record if case.edited is not None else None,
            "prediction": case.predicted.record if case.predicted is not None else None,
            "scan": case.key,
            "kept": {"token": case.kept.token, "of": case.key} if case.kept is not None else None,
            **self.change_record(),
            "notes": json.loads(now.notes),
            "job": running.as_record() if running is not None else None,
        }

    def change_record(self) -> dict[str, Any]:
        """What any step may change, for the page."""
        cases = [case.as_record(self._thumbnails.get(case.key, "")) for case in self.workspace.listed]
        return {"cases": cases, "history": self.history.as_record()}

    def take_thumbnail(self, key: str, picture: Any) -> None:
        """A small picture of a scan, as the page drew it."""
        if not isinstance(picture, str) or len(picture) > _THUMBNAIL or not picture.isascii():
            raise bad_request("the picture is too large")
        if key in self.workspace.cases:
            self._thumbnails[key] = picture

    def model_record(self) -> dict[str, Any]:
        """The model, for the page."""
        return self.explorer.source.as_record(self.workspace.view)

    def has_result(self, case: Case) -> bool:
        """Whether a scan was registered or fitted, here or into its folder."""
        in_folder = self.queue is not None and case.key in self.queue.scans
        return case.patient is not None or (
            in_folder and self.queue is not None and self.queue.is_registered(case.key)
        )

    # Its life

    def leave(self) -> None:
        """Its page was closed, or is loaded again: then it asks at once."""
        self.seen = time.monotonic() - _ABANDONED

    @property
    def is_left(self) -> bool:
        """Whether its page was closed."""
        return time.monotonic() - self.seen >= _ABANDONED

    @property
    def may_end(self) -> bool:
        """Whether it may end for another tab's sake: closed or empty, and nothing is being computed."""
        return (self.is_left or self.is_empty) and self.jobs.running is None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was done in it."""
        return not self.workspace.listed and self.history.is_empty

    def end(self) -> None:
        """Stop all work and delete all files."""
        self.jobs.cancel_all()
        self.jobs.wait(_JOBS_END)
        self.uploads.close()
        shutil.rmtree(self.folder, ignore_errors=True)
