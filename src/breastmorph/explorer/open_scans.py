"""Scans that are open: uploaded, of the folder, or the model's mean; with their landmark files."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from breastmorph.explorer.answers import finding_record, not_now, packed
from breastmorph.explorer.picking import landmark_warnings, rings
from breastmorph.explorer.picks import Picks
from breastmorph.explorer.reading import ReadScan, read_scan, shown_scan
from breastmorph.explorer.workspace import Case, day_in
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.foundation.files import make_folder, read_object, write_file
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.scan.check import ScanFiles
from breastmorph.scan.finder import improbable
from breastmorph.scan.landmark_files import ours, read_landmarks
from breastmorph.scan.scan import OF_A_BREAST, OPTIONAL, SIDES

if TYPE_CHECKING:
    from breastmorph.explorer.explorer import Explorer
    from breastmorph.explorer.folders import ScanQueue
    from breastmorph.explorer.model_view import ModelView
    from breastmorph.explorer.proposing import Proposal
    from breastmorph.explorer.session import Session
    from breastmorph.explorer.uploads import Upload

_OFF_SURFACE = 10.0  # mm, as the check allows


def landmark_json(picks: Picks, to_file: Similarity) -> bytes:
    """A file of ours, in the coordinates of the scan's file; null says that a point is absent or not wanted."""
    of_side = [f"{part}_{picks.absent_side}" for part in OF_A_BREAST] if picks.absent_side else []
    absent = [name for name in (*of_side, *sorted(picks.skipped)) if name not in picks.points]
    return ours(picks.landmarks.transformed(to_file), absent).encode()


def nulls(path: Path) -> set[str]:
    """Names that a file of ours gives as absent."""
    return {name for name, value in read_object(path).items() if value is None}


def declared_absent(path: Path, names: tuple[str, ...]) -> str:
    """The side that a file declares absent: no point of it, and null for its nipple."""
    absent = nulls(path)
    for side in SIDES:
        parts = [f"{part}_{side}" for part in OF_A_BREAST]
        if not any(name in parts for name in names) and parts[0] in absent:
            return side
    return ""


class LandmarkFile:
    """The landmark file of a folder's scan: saved after every step, read again where another program changed it.

    Parameters
    ----------
    path : Path
        Where landmarks are saved.
    to_file : Similarity
        From the coordinates that the scan is shown in to those of its file.

    Attributes
    ----------
    picks : Picks, optional
        What the file holds, where it is known.
    """

    def __init__(self, path: Path, to_file: Similarity) -> None:
        self.path, self._to_file = path, to_file
        self.picks: Picks | None = None
        self._stamp: int | None = None
        self._whole = False  # whether all that the file says is in the picks

    def save(self, picks: Picks) -> None:
        """Write the landmarks; a file of which only a part was understood is put aside first."""
        make_folder(self.path.parent)
        if not self._whole and self.path.is_file():
            before = self.path.with_name(f"{self.path.name}.before")
            write_file(before, self.path.read_bytes(), like=self.path)
        write_file(self.path, landmark_json(picks, self._to_file))
        self.picks, self._stamp, self._whole = picks, self.path.stat().st_mtime_ns, True

    def changed(self, beside: Path | None) -> Picks | None:
        """What was saved before, or lies beside the scan, where it is new; what cannot be read is left alone."""
        own = self.path.is_file()
        path = self.path if own else beside
        if path is None or (stamp := path.stat().st_mtime_ns) == self._stamp:
            return None
        self._whole = False
        try:
            found = read_landmarks(path)
        except BreastMorphError:
            return None
        marks = found.landmarks.transformed(self._to_file.inverse())
        picks = Picks.given(marks, declared_absent(path, marks.names))
        if own:  # begun here: what was not skipped is still asked for
            picks = replace(picks, skipped=frozenset(nulls(path) & set(OPTIONAL)))
        self.picks, self._stamp, self._whole = picks if own else None, stamp, own and not found.unknown
        return picks


@dataclass(frozen=True, eq=False)
class OpenScan:
    """One scan as it was read; what is picked on it and made of it stands in its case.

    Attributes
    ----------
    key : str
        What the page calls it.
    source : {"queue", "upload", "mean"}
    read : ReadScan
    mesh_file : Path, optional
        Where it was read from.
    landmarks : LandmarkFile, optional
        Where landmarks are saved after every step.
    upload : str
        Id of the file that was sent; empty for others.
    """

    key: str
    source: str
    read: ReadScan
    mesh_file: Path | None = None
    landmarks: LandmarkFile | None = None
    upload: str = ""

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

    def forget_computed(self) -> None:
        """Another scan is looked at: what can be computed again need not stay in memory."""
        for name in ("surface", "geometry"):
            self.__dict__.pop(name, None)

    @property
    def required_file(self) -> Path:
        """Where it was read from; raises for the model's mean."""
        if self.mesh_file is None:
            raise not_now("this is not a scan", "Choose a scan")
        return self.mesh_file


def scan_record(case: Case, *, has_result: bool) -> dict[str, Any]:
    """A scan with its landmarks so far, for the page."""
    scan, picks, proposal = case.required_scan, case.picks, case.proposal
    to_file = scan.read.to_file
    unusual = []  # what a person set otherwise than the program would
    if proposal is not None:
        found = proposal.found.landmarks.transformed(to_file.inverse())
        unusual = [finding_record(finding) for finding in improbable(picks.placed_by_hand, found, to_file)]
    return {
        "scan": case.key,
        "name": case.name,
        "source": scan.source,
        "vertices": scan.read.mesh.n_vertices,
        "texture": bool(scan.read.image),
        "landmarks": {name: point.tolist() for name, point in picks.points.items()},
        "absent_side": picks.absent_side,
        "next": picks.next,
        "complete": picks.complete,
        "can_undo": picks.previous is not None,
        "saved": scan.landmarks is not None and scan.landmarks.picks is picks,
        "warnings": [*landmark_warnings(picks, scan.extent), *unusual],
        "found": rings(scan.surface, picks.landmarks),
        "confirmed": picks.confirmed or not picks.found,
        "proposal": proposal.as_record() if proposal is not None else None,
        "turn": proposal.turn(to_file) if proposal is not None else None,
        "has_result": has_result,
    }


def with_proposal(case: Case, proposal: Proposal) -> Case:
    """With what the program found; what a person has set stays."""
    found = proposal.found.landmarks.transformed(case.required_scan.read.to_file.inverse())
    picks = case.picks.proposed(found, proposal.found.absent) if len(found) else case.picks
    return replace(case, proposal=proposal, picks=picks)


def taken_from(case: Case, path: Path) -> tuple[Picks, list[str]]:
    """The landmarks of a file, and labels of it that were not understood."""
    scan, found = case.required_scan, read_landmarks(path)
    if not len(found.landmarks):
        raise FileProblem("no landmark in this file is known", "See docs/landmarks.md for the names")
    marks = found.landmarks.transformed(scan.read.to_file.inverse())
    off = scan.surface.closest(marks.points).distances
    if np.median(off) > _OFF_SURFACE:
        worst = int(off.argmax())
        raise FileProblem(
            "the landmarks do not lie on this scan ({names} is {off:.0f} mm off)",
            "Check that they belong to this scan, in its coordinates and unit",
            code="landmark-off-surface",
            names=marks.names[worst],
            off=off[worst],
        )
    return replace(Picks.given(marks, declared_absent(path, marks.names)), previous=case.picks), list(
        found.unknown
    )


def scan_files(case: Case, folder: Path) -> ScanFiles:
    """A scan with its landmarks as files, for the check and the registration.

    Parameters
    ----------
    case : Case
    folder : Path
        A private one, for the landmarks of an upload.
    """
    scan, mesh_file = case.required_scan, case.required_scan.required_file
    if not case.picks.points:
        raise not_now("there are no landmarks yet", "Pick them on the scan, or load a landmark file")
    saved = scan.landmarks
    if saved is not None and saved.path.is_file():
        path = saved.path
    else:
        path = folder / f"landmarks-{scan.key}" / f"{mesh_file.stem}.json"  # names may be alike
        make_folder(path.parent)
        write_file(path, landmark_json(case.picks, scan.read.to_file))
    return ScanFiles(mesh_file.stem, mesh_file, (path,))


def uploaded_case(session: Session, main: Upload, companions: Sequence[str] = ()) -> Case:
    """Read a visitor's file in the reading process; nothing is left of a file that is refused.

    Parameters
    ----------
    session : Session
    main : Upload
        The mesh.
    companions : sequence of str
        Ids of uploads that it needs: materials, pictures.
    """
    try:
        session.uploads.together(main, companions)
        if not session.reading.acquire(blocking=False):
            raise not_now("another file of this tab is still being read", "Wait for it", code="busy")
        try:
            read = _read(session.explorer, main.path)
        finally:
            session.reading.release()
    except BaseException:
        session.uploads.drop(main.id)
        raise
    key, name = f"u{secrets.token_hex(8)}", main.path.stem
    return Case(key, name, day=day_in(name), scan=OpenScan(key, "upload", read, main.path, upload=main.id))


def queued_case(explorer: Explorer, queue: ScanQueue, key: str) -> Case:
    """Read a scan of the folder, with the landmarks it has."""
    files = queue.scans[key]
    read = _read(explorer, files.mesh)
    file = LandmarkFile(queue.landmark_file(key), read.to_file)
    picks = file.changed(queue.beside(key)) or Picks()
    case = Case(
        key,
        files.id,
        day=day_in(files.id),
        scan=OpenScan(key, "queue", read, files.mesh, file),
        picks=picks,
    )
    proposal = queue.proposal(key)
    return with_proposal(case, proposal) if proposal is not None and not picks.points else case


def mean_case(view: ModelView) -> Case:
    """The model's mean, with the landmarks it knows."""
    model = view.model
    read = shown_scan(model.mean_mesh, len(model.faces), Similarity())
    return Case("mean", "model mean", scan=OpenScan("mean", "mean", read), picks=Picks.given(model.landmarks))


def picked_vertices(view: ModelView, picks: Picks) -> dict[str, int]:
    """The model's vertices nearest to what was picked on its mean."""
    if not picks.points:
        raise not_now("nothing is picked yet", "Pick landmarks on the model's mean")
    mean = view.model.mean
    return {
        name: int(np.linalg.norm(mean - point, axis=1).argmin()) for name, point in picks.landmarks.items()
    }


def _read(explorer: Explorer, path: Path) -> ReadScan:
    read: ReadScan = explorer.reading.call((read_scan, path, explorer.settings.max_shown_faces))
    return read
