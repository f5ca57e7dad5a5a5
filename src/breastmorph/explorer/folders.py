"""Folders of scans whose landmarks are to be picked: what there is, what is done, where results go."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breastmorph.explorer.answers import unknown
from breastmorph.explorer.open_scans import declared_absent, landmark_json
from breastmorph.explorer.picks import Picks
from breastmorph.explorer.proposing import Background, Proposal, settled
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.files import make_folder, write_file
from breastmorph.foundation.messages import Message
from breastmorph.foundation.text import name_of
from breastmorph.mesh.files import READABLE
from breastmorph.mesh.geometry import Similarity
from breastmorph.scan.check import ScanFiles, find_scans, folders_of_scans
from breastmorph.scan.landmark_files import read_landmarks

if TYPE_CHECKING:
    from breastmorph.explorer.settings import Settings


@dataclass(frozen=True, eq=False)
class ScanQueue:
    """The scans of a folder.

    Attributes
    ----------
    folder : Path
    scans : mapping from key to ScanFiles
        In the order of their names. Keys are random: the page never sends a name.
    unreadable : dict from key to Message
        Why scans could not be opened.
    verdicts : dict from key to (verdict, time of its landmark file)
        Of the last check.
    proposals : dict from key to (proposal, time of its mesh file)
        What the program found on scans without landmarks of a person.
    known : dict from key to (time of its landmark file, status)
        So that files are not read again at every look.
    """

    folder: Path
    scans: dict[str, ScanFiles]
    unreadable: dict[str, Message] = field(default_factory=dict)
    verdicts: dict[str, tuple[str, int]] = field(default_factory=dict)
    proposals: dict[str, tuple[Proposal, int]] = field(default_factory=dict)
    known: dict[str, tuple[int, tuple[str, Message | str, int]]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> ScanQueue:
        """Look into a folder.

        Raises
        ------
        FileProblem
            There is no scan in it.
        """
        if not folder.is_dir():
            raise FileProblem("there is no such folder", "Check the path", folder)
        direct = any(path.suffix.lower() in READABLE for path in folder.iterdir() if path.is_file())
        home = folder if direct or not (folder / "scans").is_dir() else folder / "scans"
        found = find_scans(home)
        return cls(folder, {f"q{secrets.token_hex(8)}": files for files in found})

    @property
    def registration(self) -> Path:
        """Where registrations are written."""
        return self.folder / "registration"

    def landmark_file(self, key: str) -> Path:
        """Where a scan's landmarks are saved."""
        return self.folder / "landmarks" / f"{self.scans[key].id}.json"

    def beside(self, key: str) -> Path | None:
        """A landmark file that lies beside the scan, from elsewhere."""
        found = self.scans[key].landmarks
        return found[0] if len(found) == 1 else None

    def chosen(self, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, ScanFiles]:
        """Scans by what :meth:`rows` says of them, each with the landmarks it has so far."""
        found = {}
        for key in (row["scan"] for row in self.rows() if is_wanted(row)):
            scan, path = self.scans[key], self._landmarks_of(key)
            found[key] = scan if path is None else replace(scan, landmarks=(path,))
        return found

    def note_verdict(self, key: str, verdict: str) -> None:
        """Keep the verdict of a check, as long as the landmarks stay."""
        self.verdicts[key] = (verdict, self._stamp(key))

    def _stamp(self, key: str) -> int:
        path = self._landmarks_of(key)
        return path.stat().st_mtime_ns if path is not None and path.is_file() else 0

    def is_registered(self, key: str) -> bool:
        """Whether a scan has a result."""
        return (self.registration / "registered" / f"{self.scans[key].id}.json").is_file()

    def proposal(self, key: str) -> Proposal | None:
        """What the program found on a scan, as its file is now."""
        found, stamp = self.proposals.get(key, (None, 0))
        return found if stamp == _changed(self.scans[key].mesh) else None

    def lacks_proposal(self, key: str) -> bool:
        """Whether a scan has neither landmarks of a person nor a proposal of the program."""
        return key not in self.unreadable and self._landmarks_of(key) is None and self.proposal(key) is None

    def take_proposal(self, key: str, find: Callable[[Path], Proposal]) -> Proposal | None:
        """Find landmarks on a scan and keep them; a scan that cannot be read is marked."""
        path = self.scans[key].mesh
        stamp = _changed(path)
        try:
            found = settled(find, path)
        except FileProblem as error:
            self.unreadable[key] = error.finding.cause
            return None
        self.proposals[key] = (found, stamp)
        return found

    def accept_sure(self) -> int:
        """Save the proposals of all scans about which there is no doubt; how many they were."""
        sure = [row["scan"] for row in self.rows() if row["status"] == "proposed" and not row["doubt"]]
        for key in sure:
            proposal = self.proposal(key)
            if proposal is not None and self._landmarks_of(key) is None:  # no person was faster
                picks = Picks().proposed(proposal.found.landmarks, proposal.found.absent).confirming()
                make_folder(self.landmark_file(key).parent)
                write_file(self.landmark_file(key), landmark_json(picks, Similarity()))
        return len(sure)

    def rows(self) -> list[dict[str, Any]]:
        """One row a scan, for the page: first those that the program is in doubt about."""
        out = []
        for key, files in self.scans.items():
            verdict, stamp = self.verdicts.get(key, ("", 0))
            status, problem, doubt = self._status(key)
            out.append(
                {
                    "scan": key,
                    "name": files.id,
                    "registered": self.is_registered(key),
                    "verdict": verdict if stamp == self._stamp(key) else "",
                    "status": status,
                    "problem": problem,
                    "doubt": doubt,
                }
            )
        return sorted(out, key=lambda row: -row["doubt"])

    def as_record(self) -> dict[str, Any]:
        """The whole queue, for the page."""
        name = self.folder.resolve().name
        return {"folder": name, "results": f"{name}/{self.registration.name}", "scans": self.rows()}

    def _landmarks_of(self, key: str) -> Path | None:
        own = self.landmark_file(key)
        return own if own.is_file() else self.beside(key)

    def _status(self, key: str) -> tuple[str, Message | str, int]:
        """How far a scan is, what is wrong with it, and how many of its landmarks need a person."""
        if key in self.unreadable:  # whatever landmarks lie there, nothing can be done with it
            return "unreadable", self.unreadable[key], 0
        path = self._landmarks_of(key)
        if path is None:
            found = self.proposal(key)
            status = "todo" if found is None or found.refused is not None else "proposed"
            return status, "", found.doubt if found is not None else 0
        stamp = _changed(path)
        if self.known.get(key, (None,))[0] != stamp:
            self.known[key] = (stamp, _read_status(path))
        return self.known[key][1]


class Folders:
    """The folder that the command named and those below it: what a page may open, by keys and never by paths.

    Parameters
    ----------
    settings : Settings
        With a folder.

    Attributes
    ----------
    first : ScanQueue, optional
        What is open from the start; none where the scans lie in subfolders only.

    Raises
    ------
    FileProblem
        There is no scan in any of them.
    """

    def __init__(self, settings: Settings) -> None:
        self._root, self._settings = settings.folder or Path(), settings
        self._keys: dict[Path, str] = {}
        self._open: dict[Path, tuple[ScanQueue, Background | None]] = {}
        self._lock = threading.Lock()
        self.first: ScanQueue | None = None
        try:
            self.first = self._opened(self._root)
        except FileProblem:
            if not self._root.is_dir() or not self._below():
                raise

    def as_record(self, shown: ScanQueue | None) -> list[dict[str, Any]]:
        """What there is now, for the page: the folder itself, then those below it."""
        with self._lock:
            own = {self._root: len(self.first.scans)} if self.first is not None else {}
            found = own | self._below()
            for path in found:
                self._keys.setdefault(path, f"f{secrets.token_hex(8)}")
        return [
            {
                "folder": self._keys[path],
                "name": name_of(str(path.relative_to(self._root.parent))) if path.name else str(path),
                "scans": count,
                "open": shown is not None and shown.folder == path,
            }
            for path, count in found.items()
        ]

    def open(self, key: Any) -> ScanQueue:
        """The scans of a folder that the page knows; the program begins to look for their landmarks."""
        path = next((path for path, known in self._keys.items() if known == key), None)
        if path is None or (
            path != self._root and path not in self._below()
        ):  # as it is now: no link, not moved
            raise unknown("folder", "Choose another one", code="no-folder")
        found = self._opened(path)
        background = self.background(found)
        if background is not None:
            background.begin()
        return found

    def background(self, queue: ScanQueue) -> Background | None:
        """What looks for the landmarks of a folder."""
        return self._open[queue.folder][1]

    def begin(self) -> None:
        """Look for the landmarks of what is open from the start."""
        background = self.background(self.first) if self.first is not None else None
        if background is not None:
            background.begin()

    def end(self) -> None:
        """Look for landmarks no more."""
        for _, background in list(self._open.values()):
            if background is not None:
                background.stop()

    def _opened(self, path: Path) -> ScanQueue:
        with self._lock:
            if path not in self._open:
                queue = ScanQueue.of(path)
                background = Background(queue, self._settings.reading) if self._settings.propose else None
                self._open[path] = (queue, background)
            return self._open[path][0]

    def _below(self) -> dict[Path, int]:
        """Folders of scans below the command's own; one that keeps them in ``scans/`` counts itself."""
        found = {}
        for path, count in folders_of_scans(self._root).items():
            found[path.parent if path.name == "scans" else path] = count
        if self.first is not None:
            found.pop(self._root, None)
        return found


def _changed(path: Path) -> int:
    """When a file was changed last; 0 where it is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _read_status(path: Path) -> tuple[str, Message | str, int]:
    """The status of a scan by its landmark file."""
    try:
        found = read_landmarks(path).landmarks
    except BreastMorphError as error:
        return "todo", error.finding.cause, 0
    picks = Picks.given(found, declared_absent(path, found.names))
    doubt = len(found.doubtful)
    done = "done" if picks.complete and not doubt else "started" if picks.points else "todo"
    return done, "", doubt + len(picks.lacking) if found.found else 0
