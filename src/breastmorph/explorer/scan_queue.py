"""A folder of scans whose landmarks are to be picked: what there is, what is done, where results go.

::

    FOLDER/*.ply ...                the scans, or FOLDER/scans/
    FOLDER/landmarks/<id>.json      landmarks, saved after every click
    FOLDER/registration/            what the registration writes
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from breastmorph.errors import BreastMorphError, FileProblem
from breastmorph.explorer.landmark_file import declared_absent
from breastmorph.explorer.picks import Picks
from breastmorph.mesh.files import READABLE
from breastmorph.scan.files import load_landmarks
from breastmorph.scan.folder import ScanFiles, find_scans


@dataclass(frozen=True, eq=False)
class ScanQueue:
    """The scans of a folder.

    Attributes
    ----------
    folder : Path
    scans : mapping from key to ScanFiles
        In the order of their names. Keys are random: the page never sends a name.
    unreadable : dict from key to str
        Why scans could not be opened.
    verdicts : dict from key to (verdict, time of its landmark file)
        What the last check said.
    """

    folder: Path
    scans: dict[str, ScanFiles]
    unreadable: dict[str, str] = field(default_factory=dict)
    verdicts: dict[str, tuple[str, int]] = field(default_factory=dict)

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

    def rows(self) -> list[dict[str, Any]]:
        """One row a scan, for the page."""
        out = []
        for key, files in self.scans.items():
            verdict, stamp = self.verdicts.get(key, ("", 0))
            status, problem = self._status(key)
            out.append(
                {
                    "scan": key,
                    "name": files.id,
                    "registered": self.is_registered(key),
                    "verdict": verdict if stamp == self._stamp(key) else "",
                    "status": status,
                    "problem": problem,
                }
            )
        return out

    def as_record(self) -> dict[str, Any]:
        """The whole queue, for the page."""
        name = self.folder.resolve().name
        return {"folder": name, "results": f"{name}/{self.registration.name}", "scans": self.rows()}

    def _landmarks_of(self, key: str) -> Path | None:
        own = self.landmark_file(key)
        return own if own.is_file() else self.beside(key)

    def _status(self, key: str) -> tuple[str, str]:
        """How far a scan is, and what is wrong with it."""
        if key in self.unreadable:  # whatever landmarks lie there, nothing can be done with it
            return "unreadable", self.unreadable[key]
        path = self._landmarks_of(key)
        if path is None:
            return "todo", ""
        try:
            found = load_landmarks(path).landmarks
        except BreastMorphError as error:
            return "todo", error.cause
        picks = Picks.given(found, declared_absent(path, found.names))
        return "done" if picks.complete else "started" if picks.points else "todo", ""
