"""The cohort file: the shapes of many mesh files in one, which is mapped into memory instead of being read."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import secrets
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import FileProblem
from breastmorph.foundation.files import PART_FILES, make_folder, problems_at, write_file
from breastmorph.mesh.geometry import Similarity

Reader = Callable[[int], tuple[Floats, Similarity]]
OnPacked = Callable[[int, int], None]

_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
_LEFT_OVER = 3600.0  # seconds without a change: the process that packed there was killed
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PackedShapes:
    """The content of a cohort file.

    Attributes
    ----------
    shapes : (k, n, 3) float32
        Mapped from the file.
    to_file : tuple of Similarity
        From each subject's upright frame to that of its own file.
    """

    shapes: NDArray[np.float32]
    to_file: tuple[Similarity, ...]


def packed_shapes(
    folder: Path,
    states: Sequence[str],
    n_vertices: int,
    read: Reader,
    on_packed: OnPacked | None,
) -> PackedShapes:
    """Map the shapes of a cohort, packing them before where that was not done yet.

    Parameters
    ----------
    folder : Path
        Where the cohort file lies.
    states : sequence of str
        A text per subject that changes whenever its shape does.
    n_vertices : int
    read : callable
        Gives a subject by index: its shape, (n, 3), and the similarity back to its file.
    on_packed : callable, optional
        Called with (done, all) while packing.
    """
    key = hashlib.sha256(json.dumps([n_vertices, *states]).encode()).hexdigest()[:16]
    path = folder / f"shapes-{key}.npy"
    found = _load(path, n_vertices)
    if found is not None:
        return found[1]
    try:
        return _packed(path, states, n_vertices, read, on_packed)
    except FileProblem as problem:
        if getattr(problem.__cause__, "errno", None) not in _READ_ONLY:
            raise
    _log.warning("The cohort's folder is read-only: its shapes are packed in a temporary folder for this run")
    with TemporaryDirectory(prefix="breastmorph-", ignore_cleanup_errors=True) as place:
        packed = _packed(Path(place) / path.name, states, n_vertices, read, on_packed)
        if os.name == "nt":  # where a mapped file cannot be removed; elsewhere it lives on without a name
            packed = PackedShapes(np.array(packed.shapes), packed.to_file)
    return packed


def file_state(stat: os.stat_result) -> str:
    """A text that changes whenever a file's content does.

    The time of the last change of the inode cannot be set by a user, so that a file with a restored or wrong date
    is not taken for the one before.
    """
    return f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"


def _packed(
    path: Path, states: Sequence[str], n_vertices: int, read: Reader, on_packed: OnPacked | None
) -> PackedShapes:
    """Write a cohort file and map it."""
    folder = path.parent
    earlier = _earlier(folder, n_vertices)
    make_folder(folder)
    part = folder / f".shapes.{secrets.token_hex(6)}.part"
    frames = []
    try:
        # Written as a stream: a full disk is an error here, where it would kill the process with a mapped file.
        with problems_at(path):
            with open(part, "xb") as file:
                head = {"descr": "<f4", "fortran_order": False, "shape": (len(states), n_vertices, 3)}
                np.lib.format.write_array_header_1_0(file, head)
                for row, state in enumerate(states):
                    shape, to_file = earlier(state) or read(row)
                    file.write(np.ascontiguousarray(shape, dtype="<f4").tobytes())
                    frames.append(to_file.as_dict())
                    if on_packed is not None:
                        on_packed(row + 1, len(states))
                file.flush()
                os.fsync(file.fileno())
            write_file(
                path.with_suffix(".json"), json.dumps({"states": list(states), "to_file": frames}).encode()
            )
            os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
    del earlier  # the old file is mapped by it
    _remove_others(folder, path)
    found = _load(path, n_vertices)
    if found is None:
        raise FileProblem("the cohort file vanished while it was made", "Try again", path)
    return found[1]


def _load(path: Path, n_vertices: int) -> tuple[list[str], PackedShapes] | None:
    """States and content of a cohort file; None where it is not there, cut off or of another kind."""
    try:
        index = json.loads(path.with_suffix(".json").read_bytes())
        states = list(index["states"])
        to_file = tuple(Similarity.from_dict(parts) for parts in index["to_file"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy only warns of headers it has to guess at
            shapes = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception:  # damaged in any way there is: it is made again
        return None
    if not isinstance(shapes, np.ndarray) or shapes.dtype != np.float32:
        return None
    if shapes.shape != (len(to_file), n_vertices, 3) or len(states) != len(to_file):
        return None
    if not all(isinstance(state, str) for state in states):
        return None
    return states, PackedShapes(shapes, to_file)


def _earlier(folder: Path, n_vertices: int) -> Callable[[str], tuple[NDArray[Any], Similarity] | None]:
    """Subjects of an earlier cohort file by their state."""
    for path in folder.glob("shapes-*.npy"):
        found = _load(path, n_vertices)
        if found is not None:
            states, packed = found
            rows = {state: row for row, state in enumerate(states)}
            return lambda state: (
                (packed.shapes[rows[state]], packed.to_file[rows[state]]) if state in rows else None
            )
    return lambda state: None


def _remove_others(folder: Path, path: Path) -> None:
    others = [other for other in folder.glob("shapes-*") if other.stem != path.stem]
    for other in (*others, *folder.glob(PART_FILES)):
        with suppress(OSError):  # where a file in use cannot be removed, the next packing will
            if other in others or time.time() - other.stat().st_mtime > _LEFT_OVER:
                other.unlink(missing_ok=True)
