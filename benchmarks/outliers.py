"""Flags for wrong correspondence on the right surface: how many are found, how many healthy subjects are flagged.

    python benchmarks/outliers.py [--n 110] [--cohort-size 110] [--phantom FOLDER --registered FOLDER]

A phantom cohort is registered; then one subject at a time is spoiled, by a wrong landmark (and registered again) or by
sliding its points on its own surface, and judged among the others.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import measuring  # noqa: F401  (one core)
from breastmorph.batch.engine import register_batch
from breastmorph.batch.product import Recipe
from breastmorph.batch.registered_folder import Outcome
from breastmorph.batch.stretch import unexplained_stretch
from breastmorph.batch.summary import summarise
from breastmorph.cohort import Cohort, load_cohort
from breastmorph.foundation.arrays import Floats
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import rotation_about
from breastmorph.phantom import write_cohort
from breastmorph.registration import Registrar
from breastmorph.scan.check import ScanFiles, find_scans, load_scan
from breastmorph.scan.scan import Landmarks, Scan
from breastmorph.template import default_template

SPOILED = 12  # subjects per case
MOST_HEALTHY = 0.05  # share of healthy subjects that may be flagged
LEAST_FOUND = {"slid 4 degrees around the chest": 0.9, "slid 20 mm down": 0.9, "poles exchanged": 0.8}


def moved(scan: Scan, name: str, shift: Sequence[float]) -> Scan:
    """The scan with one landmark elsewhere on its surface."""
    points = scan.landmarks.points.copy()
    index = scan.landmarks.names.index(name)
    points[index] = Surface(scan.mesh).closest(points[index][None] + shift).points[0]
    return replace(scan, landmarks=Landmarks(scan.landmarks.names, points))


def exchanged(scan: Scan, one: str, other: str) -> Scan:
    """The scan with two landmarks exchanged."""
    points = scan.landmarks.points.copy()
    pair = [scan.landmarks.names.index(name) for name in (one, other)]
    points[pair] = points[pair[::-1]]
    return replace(scan, landmarks=Landmarks(scan.landmarks.names, points))


LANDMARK_ERRORS: dict[str, Callable[[Scan], Scan]] = {
    "poles exchanged": lambda scan: exchanged(scan, "lateral_pole_left", "lower_pole_left"),
    "nipple and lower pole exchanged": lambda scan: exchanged(scan, "nipple_left", "lower_pole_left"),
    "xiphoid 40 mm too high": lambda scan: moved(scan, "xiphoid", (0.0, 40.0, 0.0)),
    "nipple 30 mm lateral": lambda scan: moved(scan, "nipple_left", (30.0, 0.0, -10.0)),
    "nipple 25 mm too low": lambda scan: moved(scan, "nipple_right", (0.0, -25.0, 0.0)),
    "nipple 15 mm lateral": lambda scan: moved(scan, "nipple_left", (15.0, 0.0, 0.0)),
    "notch 30 mm too low": lambda scan: moved(scan, "sternal_notch", (0.0, -30.0, 0.0)),
}
SLIDES: dict[str, Callable[[Floats], Floats]] = {
    "slid 4 degrees around the chest": lambda points: (
        points @ rotation_about(np.array([0.0, 1.0, 0.0]), 4.0).T
    ),
    "slid 20 mm down": lambda points: points - [0.0, 20.0, 0.0],
}


def flagged(shapes: Sequence[Floats], cohort: Cohort) -> list[bool]:
    """Whether each subject's point distances are flagged."""
    found = unexplained_stretch(shapes, cohort.template, [""] * len(shapes))
    ids = [f"{k:05d}" for k in range(len(shapes))]
    rows = summarise([Outcome(i, "registered") for i in ids], dict(zip(ids, found, strict=True)))
    return [bool(row.flags) for row in rows]


def judge(cohort: Cohort, found: Sequence[ScanFiles], size: int) -> bool:
    """Print how many of each kind are flagged."""
    rng = np.random.default_rng(0)
    shapes = list(cohort.shapes())
    rounds = 1 if size == len(shapes) else 20
    healthy = [
        flagged([shapes[k] for k in rng.permutation(len(shapes))[:size]], cohort) for _ in range(rounds)
    ]
    share = float(np.mean(healthy))
    print(f"{'healthy':36s} {100 * share:4.1f} % of {size} flagged")
    good = share <= MOST_HEALTHY
    registrar = Registrar(cohort.template)
    chosen = rng.permutation(len(shapes))[:SPOILED]

    def found_among_others(index: int, spoiled: Floats) -> bool:
        others = [k for k in rng.permutation(len(shapes)) if k != index][: size - 1]
        return flagged([spoiled, *(shapes[k] for k in others)], cohort)[0]

    for name, slide in SLIDES.items():
        count = 0
        for index in chosen:
            surface = Surface(cohort.template.mesh.with_vertices(shapes[index]))
            count += found_among_others(index, surface.closest(slide(shapes[index])).points)
        print(f"{name:36s} {count:2d} of {len(chosen)}", flush=True)
        good &= count >= LEAST_FOUND.get(name, 0.0) * len(chosen) or size < len(shapes)
    scans = [load_scan(found[index].mesh, found[index].landmarks[0]) for index in chosen]
    for name, spoil in LANDMARK_ERRORS.items():
        results = [registrar.register(spoil(scan)) for scan in scans]
        count = sum(found_among_others(i, result.vertices) for i, result in zip(chosen, results, strict=True))
        distance = np.mean([result.metrics["distance_inside"] for result in results])
        angle = np.mean([result.metrics["angle_distortion"] for result in results])
        print(
            f"{name:36s} {count:2d} of {len(chosen)}   ({distance:.2f} mm, {angle:.0f} degrees)", flush=True
        )
        good &= count >= LEAST_FOUND.get(name, 0.0) * len(chosen) or size < len(shapes)
    return good


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=110)
    parser.add_argument("--cohort-size", type=int, help="judge in smaller cohorts drawn from the n")
    parser.add_argument("--phantom", type=Path, help="a phantom cohort that is already there")
    parser.add_argument("--registered", type=Path, help="its registered folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        phantom = arguments.phantom or Path(name) / "phantom"
        if arguments.phantom is None:
            write_cohort(phantom, arguments.n, 1)
        found = find_scans(phantom / "scans", phantom / "landmarks")[: arguments.n]
        registered = arguments.registered or Path(name) / "registered"
        if arguments.registered is None:
            register_batch(found, Recipe(default_template()), registered)
        cohort = load_cohort(registered, packed_in=Path(name) / "packed")
        return 0 if judge(cohort, found, arguments.cohort_size or len(cohort)) else 1


if __name__ == "__main__":
    sys.exit(main())
