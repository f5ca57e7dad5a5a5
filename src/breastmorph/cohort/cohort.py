"""Registered subjects with flat memory: the value, its packed file, and who is doubted."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import secrets
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import FileProblem, Finding, warning
from breastmorph.foundation.files import PART_FILES, make_folder, problems_at, write_file
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.topology import linked
from breastmorph.mesh.triangle_mesh import MIRROR
from breastmorph.scan.scan import Landmarks
from breastmorph.template import Template

# --------------------------------------------------------------------------------------------------------------------
# The cohort value
# --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cohort:
    """Subjects with the template's topology.

    Attributes
    ----------
    ids : tuple of str
    template : Template
    packed : (s, n, 3) float32
        Shapes in mm, each in the upright frame of its own scan (that of :class:`breastmorph.scan.scan.Scan`);
        usually mapped from a file. Read them with :meth:`shape`, :meth:`shapes` or :meth:`array`.
    rows : (k,) int
        The row of every subject in ``packed``.
    to_file : tuple of Similarity
        From a subject's upright frame to that of its scan's file.
    absent : tuple of str
        The side without a breast, or empty.
    table : tuple of mappings
        What the cohort's table says of every subject, as text; empty without a table.
    landmarks : tuple of Landmarks
        As annotated on every scan, in its upright frame; empty where unknown.
    """

    ids: tuple[str, ...]
    template: Template
    packed: NDArray[np.float32]
    rows: Ints
    to_file: tuple[Similarity, ...]
    absent: tuple[str, ...]
    table: tuple[Mapping[str, str], ...]
    landmarks: tuple[Landmarks, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        absent = sum(map(bool, self.absent))
        without = f", {absent} with an absent breast" if absent else ""
        return f"Cohort({len(self)} subjects{without}, {self.template.mesh.n_vertices:,} vertices)"

    def shape(self, index: int) -> Floats:
        """One subject, (n, 3) float, mm, upright."""
        return np.array(self.packed[self.rows[index]], dtype=np.float64)

    def shapes(self) -> Iterator[Floats]:
        """The subjects one after the other."""
        return (self.shape(index) for index in range(len(self)))

    def array(self) -> Floats:
        """All subjects at once, (k, n, 3) float; for cohorts that fit into memory."""
        return np.array(self.packed[self.rows], dtype=np.float64)

    def chosen(self, keep: Bools | Ints | Sequence[int]) -> Self:
        """The cohort of some subjects only, by truth values or by indices."""
        wanted = np.asarray(keep)
        if not wanted.size:
            wanted = wanted.astype(np.int64)  # an empty list has no type of its own
        index = np.arange(len(self))[wanted]

        def of(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(values[i] for i in index)

        return replace(
            self,
            ids=of(self.ids),
            rows=self.rows[index],
            to_file=of(self.to_file),
            absent=of(self.absent),
            table=of(self.table),
            landmarks=of(self.landmarks) if self.landmarks else (),
        )

    def fingerprint(self) -> str:
        """SHA-256 of the shapes, whatever their order and names: the same cohort, the same fingerprint."""
        digests = sorted(hashlib.sha256(self.packed[row].tobytes()).hexdigest() for row in self.rows)
        return hashlib.sha256("".join(digests).encode()).hexdigest()

    @classmethod
    def of(cls, shapes: Floats, template: Template, ids: Sequence[str] | None = None) -> Self:
        """A cohort from arrays, (k, n, 3), without files."""
        k = len(shapes)
        return cls(
            tuple(ids) if ids is not None else tuple(f"{i:03d}" for i in range(k)),
            template,
            np.asarray(shapes, dtype=np.float32),
            np.arange(k),
            (Similarity(),) * k,
            ("",) * k,
            ({},) * k,
        )


# --------------------------------------------------------------------------------------------------------------------
# The cohort file: the shapes of many mesh files in one, which is mapped into memory instead of being read
# --------------------------------------------------------------------------------------------------------------------

Reader = Callable[[int], tuple[Floats, Similarity]]
OnPacked = Callable[[int, int], None]

_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)
_LEFT_OVER = 3600.0  # seconds without a change: whoever packed there was killed
_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PackedShapes:
    """What a cohort file holds.

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
        Gives a subject by index: its shape, (n, 3), and the way back to its file.
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
                _write_head(file, (len(states), n_vertices, 3))
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
    del earlier  # holds the old file
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


def _write_head(file: IO[bytes], shape: tuple[int, int, int]) -> None:
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})


# --------------------------------------------------------------------------------------------------------------------
# What speaks against subjects of a cohort: copies of each other, mirror images, shapes unlike all others
# --------------------------------------------------------------------------------------------------------------------

_SITES = 64  # vertices looked at
SAME = 0.05  # mm, root mean square: left by rounding and another pose; two scans of a person differ by more
_UNLIKE = 2.5  # times the usual distance from the template


@dataclass(frozen=True)
class Doubts:
    """Subjects that a user should look at.

    Attributes
    ----------
    copies : tuple of tuples of str
        Ids of subjects with the same shape, whatever their pose and size.
    mirrored : tuple of str
        Subjects that fit the template better as their mirror image.
    unlike : tuple of str
        Subjects much farther from the template than the others.
    """

    copies: tuple[tuple[str, ...], ...]
    mirrored: tuple[str, ...]
    unlike: tuple[str, ...]

    @property
    def n_copies(self) -> int:
        """How many subjects are there once too often."""
        return sum(len(ids) - 1 for ids in self.copies)

    def warnings(self) -> list[Finding]:
        """The doubts one by one."""
        said = [warning("copies", ids=ids, times=len(ids)) for ids in self.copies]
        if self.mirrored:
            said.append(warning("mirrored", ids=self.mirrored))
        if self.unlike:
            said.append(warning("unlike-others", ids=self.unlike))
        return said


def doubts(cohort: Cohort) -> Doubts:
    """Look for copies, mirror images and shapes unlike all others."""
    laid, distances, mirrored = _on_template(cohort)
    group = _alike(laid)
    together = [np.flatnonzero(group == g) for g in range(group.max(initial=-1) + 1)]
    usual = float(np.median(distances)) if len(distances) else 0.0
    unlike = np.flatnonzero((distances > _UNLIKE * usual) & (distances > SAME))
    return Doubts(
        tuple(tuple(cohort.ids[i] for i in members) for members in together if len(members) > 1),
        tuple(cohort.ids[i] for i in np.flatnonzero(mirrored)),
        tuple(cohort.ids[i] for i in unlike if not mirrored[i]),
    )


def copy_groups(cohort: Cohort) -> Ints:
    """A number per subject, (k,), the same for copies of one shape."""
    return _alike(_on_template(cohort)[0])


def without_copies(cohort: Cohort) -> Cohort:
    """The cohort with every shape once."""
    first = np.unique(copy_groups(cohort), return_index=True)[1]
    return cohort if len(first) == len(cohort) else cohort.chosen(np.sort(first))


def _on_template(cohort: Cohort) -> tuple[Floats, Floats, Bools]:
    """Subjects laid on the template at the sites (k, s, 3), their distances in mm, whether they are mirrored."""
    template = cohort.template.mesh.vertices
    sites = np.unique(np.linspace(0, len(template) - 1, _SITES).astype(np.int64))
    target = template[sites]
    laid = np.array(cohort.packed[np.ix_(cohort.rows, sites)], dtype=np.float64)
    mirrored = np.zeros(len(laid), dtype=bool)
    for i, points in enumerate(laid):
        # A shape is scaled by its own size, so that copies in other units coincide exactly.
        centred = points - points.mean(axis=0)
        laid[i] = Similarity.fit(centred, target).apply(centred)
        flipped = centred * MIRROR
        image = Similarity.fit(flipped, target).apply(flipped)
        mirrored[i] = np.linalg.norm(image - target) < np.linalg.norm(laid[i] - target)
    return laid, np.sqrt(((laid - target) ** 2).sum(axis=2).mean(axis=1)), mirrored


def _alike(laid: Floats) -> Ints:
    """Groups of subjects whose sites agree, (k,)."""
    return linked(laid.reshape(len(laid), 3 * laid.shape[1]), SAME * np.sqrt(laid.shape[1]))
