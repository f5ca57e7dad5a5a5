"""A scan on the page: its surface, its landmarks so far, and where they are kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.errors import BreastMorphError, FileProblem
from breastmorph.explorer.arrays import packed
from breastmorph.explorer.landmark_file import declared_absent, landmark_json, nulls
from breastmorph.explorer.picking import doubts, pick
from breastmorph.explorer.picks import Picks
from breastmorph.explorer.problems import not_now
from breastmorph.explorer.scan_reading import ReadScan
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files.writing import make_folder, write_file
from breastmorph.scan.files import load_landmarks
from breastmorph.scan.folder import ScanFiles
from breastmorph.scan.landmarks import OPTIONAL

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
        self.has_result = False
        self._stamp: int | None = None
        self._whole = False  # whether all that the landmark file says is in the picks
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
        return packed(arrays)

    def as_record(self) -> dict[str, Any]:
        """For the page."""
        picks, read = self.picks, self.read
        extent = float(np.ptp(read.mesh.vertices, axis=0).max())
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
            "warnings": doubts(picks, extent),
            "has_result": self.has_result,
        }

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
            found = load_landmarks(path)
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
