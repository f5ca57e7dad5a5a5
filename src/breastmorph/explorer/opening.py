"""Opening scans: an upload, one of the queue, or the model's mean for picking its landmarks."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from breastmorph.explorer.open_scan import OpenScan
from breastmorph.explorer.picks import Picks
from breastmorph.explorer.problems import not_now
from breastmorph.explorer.scan_reading import ReadScan, read_scan, shown_scan
from breastmorph.mesh.similarity import Similarity

if TYPE_CHECKING:
    from breastmorph.explorer.model_view import ModelView
    from breastmorph.explorer.scan_queue import ScanQueue
    from breastmorph.explorer.session import Explorer, Session
    from breastmorph.explorer.uploads import Upload


def open_upload(session: Session, main: Upload, companions: Sequence[str] = ()) -> OpenScan:
    """Read a visitor's file in the reading process and keep the scan; nothing is left of a file that is refused.

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
        scan = OpenScan(f"u{secrets.token_hex(8)}", main.path.stem, "upload", read, main.path)
        session.add_scan(scan, main.id)
    except BaseException:
        session.uploads.drop(main.id)
        raise
    return scan


def open_queued(explorer: Explorer, queue: ScanQueue, key: str) -> OpenScan:
    """Read a scan of the folder, with the landmarks it has."""
    files = queue.scans[key]
    read = _read(explorer, files.mesh)
    scan = OpenScan(key, files.id, "queue", read, files.mesh, queue.landmark_file(key))
    scan.resume(queue.beside(key))
    scan.has_result = queue.is_registered(key)
    return scan


def open_mean(view: ModelView) -> OpenScan:
    """The model's mean, with the landmarks it knows."""
    model = view.model
    scan = OpenScan("mean", "model mean", "mean", shown_scan(model.mean_mesh, len(model.faces), Similarity()))
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


def _read(explorer: Explorer, path: Path) -> ReadScan:
    read: ReadScan = explorer.reading.call((read_scan, path, explorer.settings.max_shown_faces))
    return read
