"""Scans that are open: uploaded, of the queue, or an example; with their landmark files."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.explorer.answers import Spoken, not_now, packed, told, unknown
from breastmorph.explorer.picking import Picks, doubts, pick, rings
from breastmorph.explorer.proposing import Background, Proposal, propose, settled
from breastmorph.explorer.uploads import ReadScan, read_scan, shown_scan
from breastmorph.foundation.errors import BreastMorphError, FileProblem, name_of
from breastmorph.foundation.files import make_folder, read_object, write_file
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import READABLE
from breastmorph.mesh.files.ply import encoded
from breastmorph.mesh.geometry import Similarity
from breastmorph.phantom.cohort import draw_cohort, torso
from breastmorph.phantom.scanner import scan_subject
from breastmorph.scan.check import ScanFiles, find_scans, folders_of_scans
from breastmorph.scan.finder import improbable
from breastmorph.scan.landmark_files import ours, read_landmarks
from breastmorph.scan.scan import OF_A_BREAST, OPTIONAL, SIDES, Landmarks

if TYPE_CHECKING:
    from breastmorph.explorer.cases import Boxed
    from breastmorph.explorer.jobs import Job
    from breastmorph.explorer.model_view import ModelView
    from breastmorph.explorer.session import Explorer, Session
    from breastmorph.explorer.settings import Settings
    from breastmorph.explorer.uploads import Upload


# --------------------------------------------------------------------------------------------------------------------
# Landmark files of scans in the explorer: our JSON, in which null says that a point is absent or not wanted
# --------------------------------------------------------------------------------------------------------------------


def landmark_json(picks: Picks, to_file: Similarity) -> bytes:
    """The landmarks in the coordinates of the scan's file."""
    gone = [f"{part}_{picks.absent_side}" for part in OF_A_BREAST] if picks.absent_side else []
    absent = [name for name in (*gone, *sorted(picks.skipped)) if name not in picks.points]
    return ours(picks.landmarks.transformed(to_file), absent).encode()


def nulls(path: Path) -> set[str]:
    """Names that a file of ours gives as absent."""
    return {name for name, value in read_object(path).items() if value is None}


def declared_absent(path: Path, names: tuple[str, ...]) -> str:
    """The side that a file declares absent: no point of it, and null for its nipple."""
    gone = nulls(path)
    for side in SIDES:
        parts = [f"{part}_{side}" for part in OF_A_BREAST]
        if not any(name in parts for name in names) and parts[0] in gone:
            return side
    return ""


# --------------------------------------------------------------------------------------------------------------------
# A synthetic scan for visitors who have none at hand, with landmarks; nobody was scanned for it
# --------------------------------------------------------------------------------------------------------------------

NAME = "synthetic-scan.ply"
_COHORT, _SEED = 12, 77  # not those of the demo model


@lru_cache(maxsize=1)
def example_scan() -> tuple[bytes, Landmarks]:
    """A PLY file of an average adult torso and its landmarks, in the file's coordinates."""
    subjects = draw_cohort(_COHORT, _SEED)
    volumes = np.array([[one.left.volume, one.right.volume] for one in subjects]).mean(axis=1)
    subject = subjects[int(np.abs(volumes - np.median(volumes)).argmin())]
    found = scan_subject(torso(subject), np.random.default_rng(_SEED))
    return encoded(found.mesh), found.landmarks


# --------------------------------------------------------------------------------------------------------------------
# A scan on the page: its surface, its landmarks so far, and where they are kept
# --------------------------------------------------------------------------------------------------------------------

_OFF_SURFACE = 10.0  # mm, as the check allows


class OpenScan:
    """One scan in one session.

    Parameters
    ----------
    key : str
        What the page calls it.
    name : str
        What people call it.
    source : {"queue", "upload", "mean"}
    read : Boxed ReadScan
    mesh_file : Path, optional
        Where it was read from.
    landmark_file : Path, optional
        Where landmarks are saved after every step.
    """

    def __init__(
        self,
        key: str,
        name: str,
        source: str,
        read: Boxed[ReadScan],
        mesh_file: Path | None = None,
        landmark_file: Path | None = None,
    ) -> None:
        self.key, self.name, self.source, self._read = key, name, source, read
        self.mesh_file, self.landmark_file = mesh_file, landmark_file
        self.picks = Picks()
        self.proposal: Proposal | None = None
        self.saved = False
        self.has_result = False
        self._stamp: int | None = None
        self._whole = False  # whether all that the landmark file says is in the picks
        self._lock = threading.Lock()

    @property
    def read(self) -> ReadScan:
        """What was read of its file."""
        return self._read.value

    def rest(self) -> None:
        """Another scan is looked at: what can be made again need not be kept."""
        for made in ("surface", "geometry", "extent"):
            self.__dict__.pop(made, None)

    def go_to(self, picks: Picks, proposal: Proposal | None) -> None:
        """Landmarks as they were at another moment."""
        with self._lock:
            self.proposal = proposal
            if picks is not self.picks:
                self._keep(picks)

    @cached_property
    def extent(self) -> float:
        """Of the scan, mm."""
        return float(np.ptp(self.read.mesh.vertices, axis=0).max())

    @cached_property
    def surface(self) -> Surface:
        """The whole scan, for picking."""
        return Surface(self.read.mesh)

    @cached_property
    def geometry(self) -> bytes:
        """What is shown."""
        read = self.read
        arrays: dict[str, np.ndarray] = {"vertices": read.vertices, "faces": read.faces}
        if read.uv is not None:
            arrays["uv"] = read.uv
        if read.colors is not None:
            arrays["colors"] = read.colors
        return packed(arrays)

    def as_record(self) -> dict[str, Any]:
        """For the page."""
        picks, read = self.picks, self.read
        return {
            "scan": self.key,
            "name": self.name,
            "source": self.source,
            "vertices": read.mesh.n_vertices,
            "texture": bool(read.image),
            "landmarks": {name: point.tolist() for name, point in picks.points.items()},
            "absent_side": picks.absent_side,
            "next": picks.next,
            "complete": picks.complete,
            "can_undo": picks.previous is not None,
            "saved": self.saved,
            "warnings": [*doubts(picks, self.extent), *self._second_look()],
            "found": rings(self.surface, picks.landmarks),
            "confirmed": picks.confirmed or not picks.found,
            "proposal": self.proposal.as_record() if self.proposal is not None else None,
            "turn": self.proposal.turn(read.to_file) if self.proposal is not None else None,
            "has_result": self.has_result,
        }

    def _second_look(self) -> list[dict[str, str]]:
        """What a person set otherwise than the program would, where that is known already."""
        if self.proposal is None:
            return []
        seen = self.proposal.found.landmarks.transformed(self.read.to_file.inverse())
        said = improbable(self.picks.placed_by_hand, seen, self.read.to_file)
        return [told(one) for one in said]

    # --- steps --------------------------------------------------------------------------------------------------------

    def pick(self, asked: Mapping[str, Any]) -> float:
        """Place a landmark by a click (see :func:`breastmorph.explorer.picking.pick`); returns how far it went, mm."""
        with self._lock:
            picked = pick(self.surface, self.picks, asked)
            self._keep(self.picks.placed(picked.landmark, picked.point, picked.front))
        return picked.moved

    def step(self, change: Callable[[Picks], Picks]) -> None:
        """Change the landmarks otherwise."""
        with self._lock:
            self._keep(change(self.picks))

    def propose(self, proposal: Proposal) -> None:
        """Take what the program found; what a person has set stays. Nothing is saved before somebody says yes."""
        seen = proposal.found.landmarks.transformed(self.read.to_file.inverse())
        with self._lock:
            self.proposal = proposal
            if len(seen):
                self.picks = self.picks.proposed(seen, proposal.found.absent)

    def take(self, path: Path) -> list[str]:
        """Take landmarks from a file; returns labels that were not understood."""
        found = read_landmarks(path)
        if not len(found.landmarks):
            raise FileProblem("no landmark in this file is known", "See docs/landmarks.md for the names")
        marks = found.landmarks.transformed(self.read.to_file.inverse())
        off = self.surface.closest(marks.points).distances
        if np.median(off) > _OFF_SURFACE:
            worst = int(off.argmax())
            raise FileProblem(
                f"the landmarks do not lie on this scan ({marks.names[worst]} is {off[worst]:.0f} mm off)",
                "Check that they belong to this scan, in its coordinates and unit",
                code="landmark-off-surface",
            )
        picks = Picks.given(marks, declared_absent(path, marks.names))
        self.step(lambda old: replace(picks, previous=old))
        return list(found.unknown)

    def _keep(self, picks: Picks) -> None:
        self.picks, self.saved = picks, False
        if self.landmark_file is not None:
            make_folder(self.landmark_file.parent)
            if (
                not self._whole and self.landmark_file.is_file()
            ):  # somebody's work, of which we know only a part
                before = self.landmark_file.with_name(f"{self.landmark_file.name}.before")
                write_file(before, self.landmark_file.read_bytes(), like=self.landmark_file)
            write_file(self.landmark_file, self.landmark_json)
            self._stamp, self._whole = self.landmark_file.stat().st_mtime_ns, True
            self.saved = True

    # --- files --------------------------------------------------------------------------------------------------------

    def resume(self, beside: Path | None = None) -> None:
        """Take up what was saved before, or a file that lies beside the scan; what cannot be read is left alone."""
        own = self.landmark_file if self.landmark_file is not None and self.landmark_file.is_file() else None
        path = own or beside
        if path is None:
            return
        stamp = path.stat().st_mtime_ns
        if stamp == self._stamp:
            return
        self._whole = False
        try:
            found = read_landmarks(path)
        except BreastMorphError:
            return
        marks = found.landmarks.transformed(self.read.to_file.inverse())
        picks = Picks.given(marks, declared_absent(path, marks.names))
        if own is not None:  # begun here: what was not skipped is still asked for
            picks = replace(picks, skipped=frozenset(nulls(path) & set(OPTIONAL)))
        with self._lock:
            self.picks, self.saved, self._stamp = picks, own is not None, stamp
            self._whole = own is not None and not found.unknown

    @property
    def landmark_json(self) -> bytes:
        """The landmarks as a file of ours, in the scan's own coordinates."""
        return landmark_json(self.picks, self.read.to_file)

    def files(self, folder: Path) -> ScanFiles:
        """The scan with its landmarks as files, for the check and the registration.

        Parameters
        ----------
        folder : Path
            A private one, for the landmarks of an upload.
        """
        if self.mesh_file is None:
            raise not_now("this is not a scan", "Choose a scan")
        if not self.picks.points:
            raise not_now("there are no landmarks yet", "Pick them on the scan, or load a landmark file")
        path = self.landmark_file
        if path is None or not path.is_file():
            path = folder / f"landmarks-{self.key}" / f"{self.mesh_file.stem}.json"  # names may be alike
            make_folder(path.parent)
            write_file(path, self.landmark_json)
        return ScanFiles(self.mesh_file.stem, self.mesh_file, (path,))


# --------------------------------------------------------------------------------------------------------------------
# A folder of scans whose landmarks are to be picked: what there is, what is done, where results go
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ScanQueue:
    """The scans of a folder.

    Attributes
    ----------
    folder : Path
    scans : mapping from key to ScanFiles
        In the order of their names. Keys are random: the page never sends a name.
    unreadable : dict from key to Spoken
        Why scans could not be opened.
    verdicts : dict from key to (verdict, time of its landmark file)
        What the last check said.
    proposals : dict from key to (proposal, time of its mesh file)
        What the program found on scans that nobody has worked on.
    known : dict from key to (time of its landmark file, status)
        So that files are not read again at every look.
    """

    folder: Path
    scans: dict[str, ScanFiles]
    unreadable: dict[str, Spoken] = field(default_factory=dict)
    verdicts: dict[str, tuple[str, int]] = field(default_factory=dict)
    proposals: dict[str, tuple[Proposal, int]] = field(default_factory=dict)
    known: dict[str, tuple[int, tuple[str, Spoken | str, int]]] = field(default_factory=dict)

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
        """Keep what a check said, as long as the landmarks stay."""
        self.verdicts[key] = (verdict, self._stamp(key))

    def _stamp(self, key: str) -> int:
        path = self._landmarks_of(key)
        return path.stat().st_mtime_ns if path is not None and path.is_file() else 0

    def is_registered(self, key: str) -> bool:
        """Whether a scan has a result."""
        return (self.registration / "registered" / f"{self.scans[key].id}.json").is_file()

    # --- what the program proposes ------------------------------------------------------------------------------------

    def proposal(self, key: str) -> Proposal | None:
        """What the program found on a scan, as its file is now."""
        found, stamp = self.proposals.get(key, (None, 0))
        return found if stamp == _changed(self.scans[key].mesh) else None

    def lacks_proposal(self, key: str) -> bool:
        """Whether nobody has worked on a scan yet, and the program neither."""
        return key not in self.unreadable and self._landmarks_of(key) is None and self.proposal(key) is None

    def take_proposal(self, key: str, find: Callable[[Path], Proposal]) -> Proposal | None:
        """Find landmarks on a scan and keep them; a scan that cannot be read is marked."""
        path = self.scans[key].mesh
        stamp = _changed(path)
        try:
            found = settled(find, path)
        except FileProblem as error:
            self.unreadable[key] = Spoken(error.name, error.values)
            return None
        self.proposals[key] = (found, stamp)
        return found

    def accept_sure(self) -> int:
        """Save the proposals of all scans about which there is no doubt; how many they were."""
        sure = [row["scan"] for row in self.rows() if row["status"] == "proposed" and not row["doubt"]]
        for key in sure:
            proposal = self.proposal(key)
            if proposal is not None and self._landmarks_of(key) is None:  # nobody was faster
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

    def _status(self, key: str) -> tuple[str, Spoken | str, int]:
        """How far a scan is, what is wrong with it, and how many of its landmarks need a person."""
        if key in self.unreadable:  # whatever landmarks lie there, nothing can be done with it
            return "unreadable", self.unreadable[key], 0
        path = self._landmarks_of(key)
        if path is None:
            found = self.proposal(key)
            return ("todo", "", 0) if found is None else _proposed(found)
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
        """The scans of a folder that the page was told of; the program begins to look for their landmarks."""
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


def _proposed(found: Proposal) -> tuple[str, Spoken | str, int]:
    """The status of a scan that only the program has worked on."""
    return "todo" if found.refused is not None else "proposed", "", found.doubt


def _read_status(path: Path) -> tuple[str, Spoken | str, int]:
    """The status of a scan by its landmark file."""
    try:
        found = read_landmarks(path).landmarks
    except BreastMorphError as error:
        return "todo", Spoken(error.name, error.values), 0
    picks = Picks.given(found, declared_absent(path, found.names))
    doubt = len(found.doubtful)
    done = "done" if picks.complete and not doubt else "started" if picks.points else "todo"
    return done, "", doubt + len(picks.lacking) if found.found else 0


# --------------------------------------------------------------------------------------------------------------------
# Opening scans: an upload, one of the queue, or the model's mean for picking its landmarks
# --------------------------------------------------------------------------------------------------------------------


def open_upload(
    session: Session, main: Upload, companions: Sequence[str] = (), beside: bool = False
) -> OpenScan:
    """Read a visitor's file in the reading process and keep the scan; nothing is left of a file that is refused.

    Parameters
    ----------
    session : Session
    main : Upload
        The mesh.
    companions : sequence of str
        Ids of uploads that it needs: materials, pictures.
    beside : bool
        Whether another scan stays the one that is worked on.
    """
    try:
        session.uploads.together(main, companions)
        if not session.reading.acquire(blocking=False):
            raise not_now("another file of this tab is still being read", "Wait for it", code="busy")
        try:
            read = session.boxed(_read(session.explorer, main.path))
        finally:
            session.reading.release()
        scan = OpenScan(f"u{secrets.token_hex(8)}", main.path.stem, "upload", read, main.path)
        session.add_scan(scan, main.id, beside)
    except BaseException:
        session.uploads.drop(main.id)
        raise
    return scan


def open_queued(session: Session, queue: ScanQueue, key: str) -> OpenScan:
    """Read a scan of the folder, with the landmarks it has."""
    files = queue.scans[key]
    read = session.boxed(_read(session.explorer, files.mesh))
    scan = OpenScan(key, files.id, "queue", read, files.mesh, queue.landmark_file(key))
    scan.resume(queue.beside(key))
    proposal = queue.proposal(key)
    if proposal is not None and not scan.picks.points:
        scan.propose(proposal)
    scan.has_result = queue.is_registered(key)
    return scan


def open_mean(session: Session) -> OpenScan:
    """The model's mean, with the landmarks it knows."""
    model = session.view.model
    read = session.boxed(shown_scan(model.mean_mesh, len(model.faces), Similarity()))
    scan = OpenScan("mean", "model mean", "mean", read)
    scan.picks = Picks.given(model.landmarks)
    return scan


def picked_vertices(view: ModelView, scan: OpenScan) -> dict[str, int]:
    """The model's vertices nearest to what was picked on its mean."""
    if not scan.picks.points:
        raise not_now("nothing is picked yet", "Pick landmarks on the model's mean")
    mean = view.model.mean
    return {
        name: int(np.linalg.norm(mean - point, axis=1).argmin())
        for name, point in scan.picks.landmarks.items()
    }


def find_on(session: Session, scan: OpenScan, job: Job) -> None:
    """Propose landmarks for an open scan."""
    explorer, path = session.explorer, scan.mesh_file
    if path is None:
        raise not_now("this is not a scan", "Choose a scan")
    job.at("looking for the landmarks")

    def find(file: Path) -> Proposal:
        found: Proposal = explorer.reading.call((propose, file), lambda: job.is_cancelled)
        return found

    queue, found = session.queue, None
    if queue is None or scan.key not in queue.scans:
        found = settled(find, path)
    else:
        found = queue.proposal(scan.key) or queue.take_proposal(scan.key, find)
    if found is not None:
        with session.step("propose"):
            scan.propose(found)


def _read(explorer: Explorer, path: Path) -> ReadScan:
    read: ReadScan = explorer.reading.call((read_scan, path, explorer.settings.max_shown_faces))
    return read
