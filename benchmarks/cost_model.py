"""The cost of a scan: CPU seconds by the vertices of scan and template, bytes, and what the caller of a cluster does.

python benchmarks/cost_model.py [--phantom FOLDER]
"""

from __future__ import annotations

import argparse
import json
import pickle
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import igl
import numpy as np

import measuring  # noqa: F401  (one core)
from breastmorph.batch.product import Product, ProductMaker, Recipe, input_hashes
from breastmorph.batch.registered_folder import RegisteredFolder
from breastmorph.mesh.files import load_mesh, save_mesh
from breastmorph.mesh.geometry import decimate
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.phantom import write_cohort
from breastmorph.report.registration_pictures import ScanPictures
from breastmorph.scan.check import CheckParameters, ScanFiles, find_scans, load_scan
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.template import Template, default_template, template_from

SCANS = 4
REPEATS = 5
CHECK = CheckParameters(mean_edge=12.0)  # a quarter of the vertices is coarser than we like


def upsampled(mesh: TriangleMesh) -> TriangleMesh:
    """The same surface with four times the faces."""
    return TriangleMesh(*igl.upsample(np.array(mesh.vertices), np.array(mesh.faces), 1))


def quarter(mesh: TriangleMesh) -> TriangleMesh:
    """The same surface with a quarter of the vertices."""
    return decimate(mesh, n_vertices=mesh.n_vertices // 4)


def resized(found: Sequence[ScanFiles], folder: Path) -> list[list[ScanFiles]]:
    """The scans with a quarter of their vertices, as they are, and with four times as many."""
    for name in ("quarter", "four"):
        (folder / name).mkdir()
    for files in found:
        scan = load_scan(files.mesh, files.landmarks[0])
        for name, change in (("quarter", quarter), ("four", upsampled)):
            save_mesh(change(scan.mesh), folder / name / f"{scan.id}.ply")
            save_landmarks(scan.landmarks, folder / name / f"{scan.id}.json")
    return [find_scans(folder / "quarter"), list(found), find_scans(folder / "four")]


def templates() -> list[Template]:
    """The default template, one of a quarter of its vertices and one of four times as many."""
    base = default_template()
    others = (
        template_from(change(base.mesh), base.landmarks, base.coarse) for change in (quarter, upsampled)
    )
    small, large = others
    return [small, base, large]


def print_seconds(cases: Sequence[Sequence[ScanFiles]]) -> None:
    """CPU seconds a scan: rows by the scan's vertices, columns by the template's."""
    chosen = templates()
    print("CPU seconds a scan: read, check, register, draw the thumbnail, encode")
    print(
        "  scan vertices" + "".join(f"{one.mesh.n_vertices:>12,}" for one in chosen) + "  template vertices"
    )
    makers = [ProductMaker(Recipe(one, check=CHECK, pictures=ScanPictures())) for one in chosen]
    for found in cases:
        line = []
        for make in makers:
            make(found[0])  # compiles
            begin = time.process_time()
            products = [make(files) for files in found]
            line.append((time.process_time() - begin) / len(products))
            failed = [product for product in products if not isinstance(product, Product)]
            if failed:
                raise RuntimeError(str(failed[0]))
        vertices = np.mean([load_mesh(files.mesh).n_vertices for files in found])
        print(f"  {vertices:13,.0f}" + "".join(f"{cost:12.2f}" for cost in line), flush=True)


def print_bytes(found: Sequence[ScanFiles], folder: RegisteredFolder) -> None:
    """Bytes a scan, and the caller's work."""
    rules = Recipe(default_template(), pictures=ScanPictures())
    products = [product for product in map(ProductMaker(rules), found) if isinstance(product, Product)]
    sizes = {
        "in: scan and landmarks": [sum(p.stat().st_size for p in (f.mesh, *f.landmarks)) for f in found],
        "out: mesh": [len(product.mesh) for product in products],
        "out: record": [len(json.dumps(product.record, indent=1)) for product in products],
        "out: thumbnail": [sum(map(len, product.pictures.values())) for product in products],
        "cohort file": [12 * default_template().mesh.n_vertices],
        "over the wire, back": [len(pickle.dumps(product)) for product in products],
        "over the wire, once a worker": [len(rules.template)],
    }
    print("\nbytes a scan")
    for name, values in sizes.items():
        print(f"  {name:30s}{np.mean(values):12,.0f}")
    folder.prepare()
    parcels = [pickle.dumps(product) for product in products]
    begin = np.array([time.process_time(), time.perf_counter()])
    for _ in range(REPEATS):
        for files, parcel in zip(found, parcels, strict=True):
            input_hashes(files)
            folder.store(pickle.loads(parcel))
    cpu, wall = 1000 * (np.array([time.process_time(), time.perf_counter()]) - begin) / REPEATS / len(found)
    print(f"\nthe caller of a cluster hashes and writes: {cpu:.1f} CPU-ms, {wall:.1f} ms a scan")


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--phantom", type=Path, help="a phantom cohort that is already there")
    cohort = parser.parse_args().phantom
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        if cohort is None:
            cohort = place / "phantom"
            write_cohort(cohort, SCANS, 1)
        found = find_scans(cohort / "scans", cohort / "landmarks")[:SCANS]
        print_seconds(resized(found, place))
        print_bytes(found, RegisteredFolder(place / "out"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
