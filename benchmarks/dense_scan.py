"""A scan of millions of faces: its registration against the one without the thinned copy, in time and in millimetres;
its search tree against libigl's.

    python benchmarks/dense_scan.py [--levels 3]

The scan is a phantom's, subdivided and given waves of 0.15 mm on its skin, so that thinning does change its surface.
Each level of subdivision has four times the faces. CPU seconds of reading, checking and registering; then of the whole
command `breastmorph register SCAN --jobs 1`, with its start and the pages it writes.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import igl
import numpy as np

from breastmorph.mask import IN_BREAST
from breastmorph.mesh.box_tree import BoxTree
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.phantom import write_cohort
from breastmorph.registration import Registrar, RegistrationParameters
from breastmorph.scan.check import load_scan
from breastmorph.template import default_template
from measuring import compare, cpu_seconds, peak_memory

MEAN, MOST = 0.05, 0.5  # mm that vertices in the breast may differ by
HEIGHT = 0.15  # mm of the waves


def dense(mesh: TriangleMesh, levels: int) -> TriangleMesh:
    """The mesh with waves 10 to 40 mm long on ``levels`` times subdivided faces."""
    vertices, faces = igl.upsample(np.array(mesh.vertices), np.array(mesh.faces), levels)
    rng = np.random.default_rng(0)
    height = np.zeros(len(vertices))
    for direction, length in zip(rng.normal(size=(32, 3)), rng.uniform(10.0, 40.0, 32), strict=True):
        height += np.cos(vertices @ direction * (2 * np.pi / length / np.linalg.norm(direction)))
    return TriangleMesh(vertices + vertex_normals(vertices, faces) * (HEIGHT / 4.0 * height)[:, None], faces)


def commanded(scan: Path, landmarks: Path, out: Path) -> tuple[float, float, float, float]:
    """User, system and wall seconds of the command, and MB that it held at most; compiled code is there already."""
    words = ["register", str(scan), "--landmarks", str(landmarks), "--jobs", "1", "--out", str(out)]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, "-m", "breastmorph", *words], check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, wall, after.ru_maxrss / 1024


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--levels", type=int, default=3)
    levels = parser.parse_args().levels
    template = default_template()
    fast = Registrar(template)
    plain = Registrar(template, replace(RegistrationParameters(), dense=10**9))
    with tempfile.TemporaryDirectory() as place:
        write_cohort(Path(place), 1, 1)
        path = next((Path(place) / "scans").glob("*.ply"))
        landmarks = Path(place) / "landmarks" / f"{path.stem}.json"
        fast.register(load_scan(path, landmarks, reference=template.as_reference))  # compiles
        save_mesh(dense(load_mesh(path), levels), path)
        before = peak_memory()
        reading, scan = cpu_seconds(lambda: load_scan(path, landmarks, reference=template.as_reference))
        user, system, wall, held = commanded(path, landmarks, Path(place) / "out")
    ours, thin = cpu_seconds(lambda: fast.register(scan))
    memory = peak_memory()
    theirs, whole = cpu_seconds(lambda: plain.register(scan))
    vertices, faces = np.array(scan.mesh.vertices), np.array(scan.mesh.faces)  # libigl takes no others
    boxes, tree = cpu_seconds(lambda: BoxTree.of(scan.mesh.vertices, scan.mesh.faces))
    asking, found = cpu_seconds(lambda: tree.closest(whole.vertices))
    peer = igl.AABB()
    peer_boxes, _ = cpu_seconds(lambda: peer.init(vertices, faces))
    peer_asking, peer_found = cpu_seconds(lambda: peer.squared_distance(vertices, faces, whole.vertices))
    assert np.allclose(found[0], peer_found[0], atol=1e-9)
    off = np.linalg.norm(thin.vertices - whole.vertices, axis=1)[thin.template_mask > IN_BREAST]
    compare("registering a dense scan", "CPU s", ours, "without a thinned copy", theirs)
    compare("search tree of a dense scan", "CPU s", boxes, "libigl", peer_boxes)
    compare("closest points of a dense scan", "CPU s", asking, "libigl", peer_asking)
    print(f"{scan.mesh.n_faces:,} faces; reading and checking {reading:.1f} s")
    print(
        f"the command: {user:.1f} + {system:.1f} CPU s (user + system), {wall:.1f} s by the clock, {held:,.0f} MB"
    )
    print(f"registering {ours:.1f} s, without a thinned copy {theirs:.1f} s ({theirs / ours:.1f} times)")
    print(f"memory at most {memory:,.0f} MB (making the scan {before:,.0f}), {peak_memory():,.0f} MB without")
    print(f"search tree {boxes:.2f} s, libigl's {peer_boxes:.2f} s; asked for {len(whole.vertices):,} points")
    print(f"it takes {asking:.2f} s, libigl's {peer_asking:.2f} s")
    print(f"vertices in the breast differ by {off.mean():.5f} mm in the mean, {off.max():.5f} mm at most")
    return 0 if off.mean() <= MEAN and off.max() <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
