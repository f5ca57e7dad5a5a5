"""A scan on the page: its surface, its landmarks so far, and where they are kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.errors import BreastMorphError, FileProblem
from breastmorph.explorer.arrays import packed
from breastmorph.explorer.picking import Picked, doubts, pick
from breastmorph.explorer.picks import Picks
from breastmorph.explorer.problems import RequestProblem, bad_request, not_now
from breastmorph.explorer.scan_reading import ReadScan
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files.writing import make_folder, write_file
from breastmorph.plain import read_object
from breastmorph.scan.files import load_landmarks
from breastmorph.scan.folder import ScanFiles
from breastmorph.scan.landmarks import OF_A_BREAST, OPTIONAL, SIDES

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
    read : ReadScan
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
        read: ReadScan,
        mesh_file: Path | None = None,
        landmark_file: Path | None = None,
    ) -> None:
        self.key, self.name, self.source, self.read = key, name, source, read
        self.mesh_file, self.landmark_file = mesh_file, landmark_file
        self.picks = Picks()
        self.saved = False
        self.registered = False
        self._stamp: int | None = None
        self._lock = threading.Lock()

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
        return packed(arrays, {"scale": 1.0 / read.to_file.scale, "name": self.name})

    def as_record(self) -> dict[str, Any]:
        """For the page."""
        picks, read = self.picks, self.read
        extent = float(np.ptp(read.mesh.vertices, axis=0).max())
        return {
            "scan": self.key,
            "name": self.name,
            "source": self.source,
            "vertices": read.mesh.n_vertices,
            "faces": read.mesh.n_faces,
            "shown_faces": len(read.faces),
            "texture": bool(read.image),
            "colors": read.colors is not None,
            "landmarks": {name: point.tolist() for name, point in picks.points.items()},
            "absent_side": picks.absent_side,
            "next": picks.next,
            "complete": picks.complete,
            "can_undo": picks.previous is not None,
            "saved": self.saved,
            "warnings": doubts(picks, extent),
            "registered": self.registered,
        }

    # --- steps --------------------------------------------------------------------------------------------------------

    def pick(self, asked: Mapping[str, Any]) -> Picked:
        """Place a landmark by a click; see :func:`breastmorph.explorer.picking.pick`."""
        with self._lock:
            picked = pick(self.surface, self.picks, asked)
            self._keep(self.picks.placed(picked.landmark, picked.point, picked.front))
        return picked

    def step(self, change: Callable[[Picks], Picks]) -> None:
        """Change the landmarks otherwise."""
        with self._lock:
            self._keep(change(self.picks))

    def take(self, path: Path) -> list[str]:
        """Take landmarks from a file; returns labels that were not understood."""
        found = load_landmarks(path)
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
        picks = Picks(dict(marks.items()), {}, declared_absent(path, marks.names), frozenset(OPTIONAL))
        self.step(lambda old: picks_after(old, picks))
        return list(found.unknown)

    def _keep(self, picks: Picks) -> None:
        self.picks, self.saved = picks, False
        if self.landmark_file is not None:
            make_folder(self.landmark_file.parent)
            write_file(self.landmark_file, landmark_json(self))
            self._stamp = self.landmark_file.stat().st_mtime_ns
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
        try:
            marks = load_landmarks(path).landmarks.transformed(self.read.to_file.inverse())
        except BreastMorphError:
            return
        skipped = frozenset(OPTIONAL) if own is None else _nulls(path) & set(OPTIONAL)
        absent = declared_absent(path, marks.names)
        with self._lock:
            self.picks = Picks(dict(marks.items()), {}, absent, frozenset(skipped))
            self.saved, self._stamp = own is not None, stamp

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
            path = folder / f"{self.mesh_file.stem}.json"
            write_file(path, landmark_json(self))
        return ScanFiles(self.mesh_file.stem, self.mesh_file, (path,))


def landmark_json(scan: OpenScan) -> bytes:
    """The landmarks in the scan's own coordinates, in our JSON; null for what is absent or not wanted."""
    picks, to_file = scan.picks, scan.read.to_file
    content: dict[str, list[float] | None] = {
        name: to_file.apply(point).tolist() for name, point in picks.landmarks.items()
    }
    gone = [f"{part}_{picks.absent_side}" for part in OF_A_BREAST] if picks.absent_side else []
    content |= {name: None for name in (*gone, *sorted(picks.skipped)) if name not in content}
    return (json.dumps(content, indent=1) + "\n").encode()


def picks_after(old: Picks, new: Picks) -> Picks:
    """New landmarks as one step that can be undone."""
    return replace(new, previous=old)


def required_side(value: Any) -> str:
    """A side, or empty for none."""
    if value not in (*SIDES, ""):
        raise bad_request("a side is left or right")
    return str(value)


def optional_landmark(value: Any) -> str:
    """An optional landmark's name."""
    if value not in OPTIONAL:
        raise RequestProblem(
            409, "this landmark is needed", "Pick it, or say that the breast is absent", code="needed"
        )
    return str(value)


def _nulls(path: Path) -> set[str]:
    """Names that a file of ours gives as absent."""
    return {name for name, value in read_object(path).items() if value is None}


def declared_absent(path: Path, names: tuple[str, ...]) -> str:
    """The side that a file declares absent: no point of it, and null for its nipple."""
    nulls = _nulls(path)
    for side in SIDES:
        parts = [f"{part}_{side}" for part in OF_A_BREAST]
        if not any(name in parts for name in names) and parts[0] in nulls:
            return side
    return ""
