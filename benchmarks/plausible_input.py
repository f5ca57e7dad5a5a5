"""Scans that are wrong but plausible: how many the check warns of, and how many clean scans it suspects.

    python benchmarks/plausible_input.py [--n 24] [--seed 5] [--folder SCANS LANDMARKS]... [--signs]

Every scan is spoiled in every way, written to files, and checked as a user would. Without --folder phantoms are made.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import measuring
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.topology import boundary_loops, edge_table
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.phantom import write_cohort
from breastmorph.scan.check import ScanFiles, check_scan, find_scans
from breastmorph.scan.landmark_files import load_landmarks, save_landmarks
from breastmorph.scan.scan import Landmarks
from breastmorph.scan.suspicion import signs

LEAST_FOUND = {"double layer": 0.9, "noise 3 mm": 0.9, "another's landmarks": 0.9, "pushed out 30 mm": 0.7}
MOST_CLEAN = 0.02


@dataclass(frozen=True, eq=False)
class Given:
    """A scan as in its files, upright and in mm."""

    mesh: TriangleMesh
    landmarks: Landmarks


Spoiler = Callable[[Given, Sequence[Given], np.random.Generator], Given]


def snapped(mesh: TriangleMesh, landmarks: Landmarks) -> Given:
    """Landmarks on the nearest skin."""
    return Given(mesh, Landmarks(landmarks.names, Surface(mesh).closest(landmarks.points).points))


def carried(given: Given, vertices: Floats) -> Given:
    """Vertices moved, and the landmarks with them."""
    near = Surface(given.mesh).closest(given.landmarks.points)
    corners = vertices[given.mesh.faces[near.faces]]
    points = np.einsum("kc,kci->ki", near.weights, corners)
    return Given(given.mesh.with_vertices(vertices), Landmarks(given.landmarks.names, points))


def averaged(mesh: TriangleMesh, values: Floats, rounds: int) -> Floats:
    """Values (n, k) smoothed over the edges."""
    i, j = edge_table(mesh.faces).edges.T
    ends, others = np.r_[i, j, np.arange(mesh.n_vertices)], np.r_[j, i, np.arange(mesh.n_vertices)]
    count = np.bincount(ends)
    for _ in range(rounds):
        values = np.stack([np.bincount(ends, v[others]) / count for v in values.T], axis=1)
    return values


def noisy(size: float, rounds: int = 0) -> Spoiler:
    """Noise of ``size`` mm along the normals and across, smoothed over some edges."""

    def spoil(given: Given, others: Sequence[Given], rng: np.random.Generator) -> Given:
        noise = averaged(given.mesh, rng.normal(size=given.mesh.vertices.shape), rounds)
        return snapped(
            given.mesh.with_vertices(given.mesh.vertices + noise * size / noise.std()), given.landmarks
        )

    return spoil


def doubled(gap: float, radius: float = np.inf) -> Spoiler:
    """A second layer ``gap`` mm above (or below) the skin around one nipple, sewn to it along its border."""

    def spoil(given: Given, others: Sequence[Given], rng: np.random.Generator) -> Given:
        mesh = given.mesh
        nipples = _nipples(given)
        centre = nipples[rng.integers(len(nipples))]
        chosen = np.linalg.norm(mesh.vertices[mesh.faces].mean(axis=1) - centre, axis=1) < radius
        faces = mesh.faces[chosen]
        used = np.unique(faces)
        new = np.zeros(mesh.n_vertices, np.int64)
        new[used] = mesh.n_vertices + np.arange(len(used))
        layer = (mesh.vertices + gap * vertex_normals(mesh.vertices, mesh.faces))[used]
        below = mesh.faces
        if np.isfinite(
            radius
        ):  # a patch hangs on two triangles: a sewn border would have edges of three faces
            middle = faces[len(faces) // 2]
            a, b = middle[:2]
            below, faces = (one[(one != middle).any(axis=1)] for one in (below, faces))
            strip = np.array([[b, a, new[a]], [b, new[a], new[b]]])
        else:
            seam = np.asarray(boundary_loops(mesh.faces)[0])
            after = np.roll(seam, -1)
            strip = np.concatenate(
                [
                    np.stack([after, seam, new[seam]], axis=1),
                    np.stack([after, new[seam], new[after]], axis=1),
                ]
            )
        both = TriangleMesh(np.vstack([mesh.vertices, layer]), np.vstack([below, new[faces], strip]))
        return snapped(both, given.landmarks)

    return spoil


def pushed(size: float, everywhere: bool = False, along: int = 0) -> Spoiler:
    """Skin pushed outwards by ``size`` mm around the breasts; ``along`` rounds smooth the directions."""

    def spoil(given: Given, others: Sequence[Given], rng: np.random.Generator) -> Given:
        mesh = given.mesh
        normals = averaged(mesh, vertex_normals(mesh.vertices, mesh.faces), along)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        distance = np.min([np.linalg.norm(mesh.vertices - n, axis=1) for n in _nipples(given)], axis=0)
        share = np.ones(mesh.n_vertices) if everywhere else np.exp(-((distance / 90.0) ** 2) / 2.0)
        return carried(given, mesh.vertices + size * share[:, None] * normals)

    return spoil


def with_anothers_landmarks(given: Given, others: Sequence[Given], rng: np.random.Generator) -> Given:
    """The landmarks of another scan's file, on the nearest skin."""
    names = set(given.landmarks.names)
    fitting = [one for one in others if one is not given and set(one.landmarks.names) == names]
    return snapped(given.mesh, fitting[rng.integers(len(fitting))].landmarks)


def enlarged(given: Given, others: Sequence[Given], rng: np.random.Generator) -> Given:
    """A mesh 3 % larger than its landmarks' unit says."""
    return Given(given.mesh.with_vertices(1.03 * given.mesh.vertices), given.landmarks)


def mirrored(given: Given, others: Sequence[Given], rng: np.random.Generator) -> Given:
    """A mirror image with the names of the sides exchanged."""
    return Given(given.mesh.with_vertices(given.mesh.vertices * MIRROR).flipped(), given.landmarks.mirrored())


def _nipples(given: Given) -> Floats:
    return given.landmarks.only(["nipple_left", "nipple_right"]).points


SPOILERS: Mapping[str, Spoiler] = {
    "clean": lambda given, others, rng: given,
    "double layer": doubled(5.0),
    "double layer, a patch of 70 mm": doubled(5.0, 70.0),
    "double layer, 3 mm below, a patch": doubled(-3.0, 90.0),
    "noise 3 mm": noisy(3.0),
    "noise 3 mm, over two edges": noisy(3.0, 2),
    "noise 1 mm (a poor scanner)": noisy(1.0),
    "another's landmarks": with_anothers_landmarks,
    "pushed out 30 mm": pushed(30.0),
    "pushed out 30 mm everywhere": pushed(30.0, everywhere=True),
    "pushed out 30 mm, smooth directions": pushed(30.0, along=60),
    "pushed out 15 mm": pushed(15.0),
    "3 % larger": enlarged,
    "mirrored": mirrored,
}


def judged(given: Given, folder: Path, show: bool) -> str:
    """What the check says of a scan: codes of its warnings, "refused", or nothing."""
    files = ScanFiles("scan", folder / "scan.ply", (folder / "scan.json",))
    save_mesh(given.mesh, files.mesh)
    save_landmarks(given.landmarks, files.landmarks[0])
    check = check_scan(files)
    if check.scan is None:
        return "refused"
    if show:
        s = signs(check.scan.mesh, check.scan.landmarks)
        shown = {name: np.round(value, 2).tolist() for name, value in vars(s).items()}
        print("   ", shown, flush=True)
    return " ".join(finding.code for finding in check.findings if finding.level == "warning")


def measure(scans: Sequence[Given], kinds: Sequence[str], seed: int, show: bool) -> dict[str, float]:
    """Print and return the share of scans of each kind that are warned of or refused."""
    rng = np.random.default_rng(seed)
    shares = {}
    with tempfile.TemporaryDirectory() as name:
        for kind in kinds:
            said = [judged(SPOILERS[kind](one, scans, rng), Path(name), show) for one in scans]
            shares[kind] = float(np.mean([bool(one) for one in said]))
            counts = {word: said.count(word) for word in sorted(set(said)) if word}
            print(f"{kind:38s} {100 * shares[kind]:5.1f} % of {len(said):3d}  {counts}", flush=True)
    return shares


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=24, help="scans of each folder")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--folder", type=Path, nargs=2, action="append", default=[])
    parser.add_argument("--kinds", nargs="+", default=list(SPOILERS), choices=list(SPOILERS))
    parser.add_argument("--signs", action="store_true", help="print what was measured of every scan")
    arguments = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as name:
        if not arguments.folder:
            write_cohort(Path(name), arguments.n, arguments.seed)
            arguments.folder = [[Path(name) / "scans", Path(name) / "landmarks"]]
        for scans, landmarks in arguments.folder:
            print(scans)
            found = find_scans(scans, landmarks)[: arguments.n]
            read = [Given(load_mesh(files.mesh), load_landmarks(files.landmarks[0])) for files in found]
            shares = measure(read, arguments.kinds, arguments.seed, arguments.signs)
            good &= all(shares[kind] >= least for kind, least in LEAST_FOUND.items() if kind in shares)
            good &= shares.get("clean", 0.0) <= MOST_CLEAN
    return 0 if good else 1


if __name__ == "__main__":
    measuring  # noqa: B018  (one core)
    try:
        sys.exit(main())
    except BreastMorphError as error:
        sys.exit(str(error))
