"""A cohort for studies that registers in tenths of a second: its scans are bent copies of the small template."""

from __future__ import annotations

import csv
import json
from contextlib import contextmanager, nullcontext
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from breastmorph.batch.executors import InProcess
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.workers import Failure
from breastmorph.mesh.files import save_mesh
from breastmorph.paper import cohort_parts, running
from breastmorph.paper.parameters import StudyParameters
from breastmorph.paper.running import StudyRun, run_study
from breastmorph.report import printing
from breastmorph.scan.check import CheckParameters
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import Landmarks
from drawn_figures import quickly_drawn
from small_cohort import random_shapes, small_template

CHECK = CheckParameters(mean_edge=60.0)
SMALL = StudyParameters(
    printed_method=False, samples=20, draws=2, predicted=2, shown=1, subsets=(5, 7), check=CHECK
)


def write_scan(folder: Path, name: str, shape: np.ndarray) -> None:
    template = small_template()
    ids = template.landmark_ids
    save_mesh(template.mesh.with_vertices(shape), folder / "scans" / f"{name}.ply")
    points = Landmarks(tuple(ids), shape[list(ids.values())])
    save_landmarks(points, folder / "landmarks" / f"{name}.json")


def write_study_cohort(folder: Path, k: int = 9, *, table: bool = True, truth: bool = True) -> Path:
    """Scans 000, 001 ..., landmarks, and where wanted cohort.csv and the truth behind them."""
    for name in ("scans", "landmarks"):
        (folder / name).mkdir(parents=True)
    shapes = random_shapes(k, size=4.0)
    for i, shape in enumerate(shapes):
        write_scan(folder, f"{i:03d}", shape)
    if table:
        with open(folder / "cohort.csv", "w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["id", "age", "bmi", "operated"])
            rows.writerows([f"{i:03d}", 30 + i, 22.5, "yes" if i % 2 else "no"] for i in range(k))
    if truth:
        _write_truth(folder / "truth", shapes)
    return folder


def _write_truth(folder: Path, shapes: np.ndarray) -> None:
    folder.mkdir()
    template = small_template()
    vertices, ids = template.mesh.vertices, template.landmark_ids
    np.savez(
        folder / "topology.npz",
        mean=vertices,
        faces=template.mesh.faces,
        landmark_names=np.array(list(ids)),
        landmark_true=vertices[list(ids.values())],
    )
    seen = np.ones(len(vertices), bool)
    for i, shape in enumerate(shapes):
        sides = {
            f"breast_{side}": np.linalg.norm(vertices - vertices[ids[f"nipple_{side}"]], axis=1) < 70.0
            for side in ("left", "right")
        }
        np.savez(folder / f"{i:03d}.npz", points=shape, visible=seen, **sides)


def small_study(
    out: Path, cohort: Path, parameters: StudyParameters = SMALL, *, processes: bool = False, **options
) -> StudyRun:
    """In this process, or in one other at a time as with ``--jobs 1``: starting those takes longer than most parts."""
    with nullcontext() if processes else in_this_process():
        return run_study(out, parameters, cohort=cohort, template=small_template(), jobs=1, **options)


@contextmanager
def in_this_process():
    """Studies start no other processes, and draw quickly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(printing, "figure_bytes", quickly_drawn)
        patch.setattr(cohort_parts, "LocalProcesses", lambda jobs: InProcess())
        patch.setattr(running, "run_each", _here)
        yield


def _here(setup, items, jobs):
    work = setup()
    for item in items:
        try:
            yield item, work(item)
        except BreastMorphError as error:
            yield item, Failure(str(error), "error", error)


def contents(out: Path) -> dict[str, str]:
    """Hashes of all files of a study by place, without timings, paths, locks and what is only kept for speed.

    Nor keys, which hold a hash of the source: somebody may be editing it while tests run.
    """
    found = {}
    for path in sorted(out.rglob("*")):
        place = path.relative_to(out).as_posix()
        if path.is_dir() or path.name == ".lock" or "/cohort/" in place or path.name.startswith("summary."):
            continue
        data = path.read_bytes()
        if path.suffix == ".json":
            record = json.loads(data)
            for changing in ("seconds", "timed", "stages", "cohort", "key", "program"):
                record.pop(changing, None)
            data = json.dumps(record).encode()
        found[place] = sha256(data).hexdigest()
    return found
