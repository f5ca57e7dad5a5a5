"""A folder of scans whose landmarks are to be picked: what there is, what is done, where results go.

::

    FOLDER/*.ply ...                the scans, or FOLDER/scans/
    FOLDER/landmarks/<id>.json      landmarks, saved after every click
    FOLDER/registration/            what the registration writes
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from breastmorph.errors import BreastMorphError, FileProblem
from breastmorph.scan.anatomy import require_complete
from breastmorph.scan.files import load_landmarks
from breastmorph.scan.folder import MESH_SUFFIXES, ScanFiles, find_scans
from breastmorph.scan.landmarks import REQUIRED, Landmarks


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
        direct = any(path.suffix.lower() in MESH_SUFFIXES for path in folder.iterdir() if path.is_file())
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

    def ready(self, key: str) -> ScanFiles | None:
        """A scan with its landmarks where these are complete."""
        path = self._landmarks_of(key)
        row = self._state(path)
        scan = self.scans[key]
        if key in self.unreadable:
            return None
        return (
            ScanFiles(scan.id, scan.mesh, (path,)) if path is not None and row["status"] == "done" else None
        )

    def with_landmarks(self, key: str) -> ScanFiles:
        """A scan with the landmarks it has so far."""
        scan, path = self.scans[key], self._landmarks_of(key)
        return ScanFiles(scan.id, scan.mesh, scan.landmarks if path is None else (path,))

    def note_verdict(self, key: str, verdict: str) -> None:
        """Keep what a check said, as long as the landmarks stay."""
        self.verdicts[key] = (verdict, self._stamp(key))

    def _stamp(self, key: str) -> int:
        path = self._landmarks_of(key)
        return path.stat().st_mtime_ns if path is not None and path.is_file() else 0

    def is_registered(self, key: str) -> bool:
        """Whether a scan has a result."""
        return (self.registration / "registered" / f"{self.scans[key].id}.json").is_file()

    def result_mesh(self, key: str) -> Path:
        """The registered mesh of a scan."""
        return self.registration / "registered" / f"{self.scans[key].id}.ply"

    def rows(self) -> list[dict[str, Any]]:
        """One row a scan, for the page."""
        out = []
        for key, files in self.scans.items():
            own = self.landmark_file(key)
            path = self._landmarks_of(key)
            verdict, stamp = self.verdicts.get(key, ("", 0))
            row = {
                "scan": key,
                "name": files.id,
                "registered": self.is_registered(key),
                "saved": own.is_file(),
                "verdict": verdict if stamp == self._stamp(key) else "",
            } | self._state(path)
            if key in self.unreadable:  # whatever landmarks lie there, nothing can be done with it
                row |= {"status": "unreadable", "problem": self.unreadable[key]}
            out.append(row)
        return out

    def as_record(self) -> dict[str, Any]:
        """The whole queue, for the page."""
        rows = self.rows()
        return {
            "folder": self.folder.resolve().name,
            "results": f"{self.folder.resolve().name}/{self.registration.name}",
            "scans": rows,
            "done": sum(row["status"] == "done" for row in rows),
            "total": len(rows),
        }

    def _landmarks_of(self, key: str) -> Path | None:
        own = self.landmark_file(key)
        return own if own.is_file() else self.beside(key)

    def _state(self, path: Path | None) -> dict[str, Any]:
        none = {"landmarks": 0, "needed": len(REQUIRED), "status": "todo", "absent_side": "", "problem": ""}
        if path is None:
            return none
        from breastmorph.explorer.open_scan import declared_absent

        try:
            found = load_landmarks(path).landmarks
        except BreastMorphError as error:
            return none | {"problem": error.cause}
        absent = declared_absent(path, found.names)
        needed = [name for name in REQUIRED if not (absent and name.endswith(f"_{absent}"))]
        picked = sum(name in found for name in needed)
        done = picked == len(needed) and _is_complete(found)
        status = "done" if done else "started" if picked else "todo"
        return none | {"landmarks": picked, "needed": len(needed), "status": status, "absent_side": absent}


def _is_complete(landmarks: Landmarks) -> bool:
    try:
        require_complete(landmarks)
    except BreastMorphError:
        return False
    return True
