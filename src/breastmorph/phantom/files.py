"""Writing a cohort: scans, landmarks, a table of the subjects, and the truth.

::

    OUT/scans/NNN.ply         what the scanner gives, mm
    OUT/landmarks/NNN.json    as annotated: {name: [x, y, z]}
    OUT/cohort.csv            one row per subject
    OUT/truth/topology.npz    faces (m, 3), mirror (n,), mean (n, 3): the fixed topology, stored once
    OUT/truth/NNN.npz         points (n, 3)  on the fixed topology in the scan file's frame
                              bare (n, 3)  the same skin without breasts
                              visible, breast_left, breast_right (n,)
                              landmark_names (k,), landmark_true (k, 3)
                              volume_left, volume_right  cc
                              below_fold_left, below_fold_right  nipple below its fold, mm
                              rotation (3, 3), translation (3,)  the pose, canonical frame to file
                              absent  side without a breast, or empty

A one-sided subject has the flat chest in ``points`` and ``whole`` (n, 3) with both breasts beside it.
Volumes in the truth are those of the whole; in the table the absent side's volume is empty.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np

from breastmorph.errors import BreastMorphError, FileProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.files.writing import make_folder, write_file
from breastmorph.phantom.cohort import Subject, draw_cohort
from breastmorph.phantom.dense_truth import Torso, mean_torso, mirror_vertices, topology, torso
from breastmorph.phantom.scanner import ScannedTorso, scan_subject
from breastmorph.plain import csv_text
from breastmorph.scan.files import save_landmarks
from breastmorph.scan.landmarks import SIDES
from breastmorph.workers import Failure, run_each

COLUMNS = (
    "id", "age", "bmi", "volume_left", "volume_right", "ptosis_left", "ptosis_right", "operated", "absent",
)  # fmt: skip
_TOPOLOGY = -1  # in the list of work, beside the subjects' numbers
_GRADES = (0.0, 10.0, 30.0)  # mm below the fold at which the nipple enters ptosis grades I, II, III


def write_cohort(
    out: str | Path,
    n: int,
    seed: int,
    jobs: int = 1,
    one_sided: int = 0,
    on_done: Callable[[int], None] | None = None,
) -> list[dict[str, str]]:
    """Draw, scan and write a cohort; the same seed gives the same bytes whatever the number of jobs.

    Parameters
    ----------
    out : str or Path
        A new or empty folder, or one that holds a cohort of the same size.
    n, seed, one_sided : int
        See :func:`breastmorph.phantom.cohort.draw_cohort`.
    jobs : int
        Worker processes.
    on_done : callable, optional
        Called with the number of finished subjects.

    Returns
    -------
    rows : list of dict
        The rows of ``cohort.csv``.
    """
    out = Path(out)
    subjects = draw_cohort(n, seed, one_sided)
    _make_folders(out, {subject.id for subject in subjects})
    # Processes even for one job: they all count with one thread, so that sums come out alike.
    rows: dict[int, dict[str, str]] = {}
    items = [_TOPOLOGY, *range(n)]
    with closing(run_each(partial(_writer, out, subjects, seed), items, max(1, min(jobs, n)))) as results:
        for index, row in results:
            if isinstance(row, Failure):
                raise row.error or BreastMorphError(
                    f"subject {index} could not be made: {row.reason}", "Try again with fewer --jobs"
                )
            if index != _TOPOLOGY:
                rows[index] = row
                if on_done:
                    on_done(len(rows))
    write_file(out / "cohort.csv", csv_text(COLUMNS, (rows[index] for index in range(n))).encode())
    return [rows[index] for index in range(n)]


def _writer(out: Path, subjects: Sequence[Subject], seed: int) -> Callable[[int], dict[str, str]]:
    def write(index: int) -> dict[str, str]:
        if index == _TOPOLOGY:
            _write_topology(out)
            return {}
        return _write_subject(out, subjects[index], seed, index)

    return write


def _write_subject(out: Path, subject: Subject, seed: int, index: int) -> dict[str, str]:
    true = torso(subject)
    # A child of the seed per subject: no scan depends on the order in which they are made.
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1, index)))
    scan = scan_subject(true, rng)
    save_mesh(scan.mesh, out / "scans" / f"{subject.id}.ply")
    save_landmarks(scan.landmarks, out / "landmarks" / f"{subject.id}.json")
    _save_arrays(out / "truth" / f"{subject.id}.npz", _truth(true, scan))
    return _row(subject, true)


def _truth(true: Torso, scan: ScannedTorso) -> dict[str, object]:
    arrays: dict[str, object] = {
        "points": scan.points.astype(np.float32),
        "bare": scan.pose.apply(true.bare).astype(np.float32),
        "visible": scan.visible,
        "landmark_names": np.array(scan.landmark_true.names),
        "landmark_true": scan.landmark_true.points.astype(np.float32),
        "rotation": scan.pose.rotation,
        "translation": scan.pose.translation,
        "absent": np.array(true.absent),
    }
    for side in SIDES:
        arrays[f"breast_{side}"] = true.breast[side]
        arrays[f"volume_{side}"] = np.float64(true.volumes[side])
        arrays[f"below_fold_{side}"] = np.float64(true.below_fold[side])
    if true.absent:
        arrays["whole"] = scan.pose.apply(true.whole).astype(np.float32)
    return arrays


def _row(subject: Subject, true: Torso) -> dict[str, str]:
    row = {
        "id": subject.id,
        "age": f"{subject.age:.1f}",
        "bmi": f"{subject.bmi:.1f}",
        "operated": "yes" if subject.operated else "no",
        "absent": subject.absent,
    }
    for side in SIDES:
        there = side != subject.absent
        grade = int(np.searchsorted(_GRADES, true.below_fold[side], side="right"))
        row[f"volume_{side}"] = f"{true.volumes[side]:.1f}" if there else ""
        row[f"ptosis_{side}"] = str(grade) if there else ""
    return row


def _write_topology(out: Path) -> None:
    mean = mean_torso()
    _save_arrays(
        out / "truth" / "topology.npz",
        {
            "faces": topology().astype(np.int32),
            "mirror": mirror_vertices().astype(np.int32),
            "mean": mean.mesh.vertices.astype(np.float32),
            "breast_left": mean.breast["left"],
            "breast_right": mean.breast["right"],
            "landmark_names": np.array(mean.landmarks.names),
            "landmark_true": mean.landmarks.points.astype(np.float32),
        },
    )


def _save_arrays(path: Path, arrays: dict[str, object]) -> None:
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)  # type: ignore[arg-type]
    write_file(path, data.getvalue())


def _make_folders(out: Path, ids: set[str]) -> None:
    others = sorted(path.name for path in (out / "scans").glob("[!.]*") if path.stem not in ids)
    if others:
        raise FileProblem(
            f"the folder already holds other scans ({others[0]})", "Choose a new or empty folder", out
        )
    for name in ("scans", "landmarks", "truth"):
        make_folder(out / name)
