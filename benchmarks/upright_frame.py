"""The upright frame on realistic scans turned at random: degrees between the found and the true up axis.

    python benchmarks/upright_frame.py [FOLDER] [--turns 5]

FOLDER holds `scans/`, `landmarks/` and, optionally, `template/template.ply` with `template_landmarks.json`;
the scans' files are upright (y up). The default is the development set beside the repository, where present.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.check import find_scans, load_scan
from breastmorph.scan.frame import landmark_axes, upright_frame
from breastmorph.scan.landmark_files import load_landmarks

BESIDE = Path(__file__).parents[2] / "shared" / "torsos"


def without_level_edge(mesh: TriangleMesh) -> TriangleMesh:
    """Bite irregularly into the lower border, so that only the surface can tell the upright."""
    low = np.quantile(mesh.vertices[:, 1], 0.02)
    x, y, z = mesh.vertices[mesh.faces].mean(axis=1).T
    cut = low + 30 + 20 * np.sin(x / 13.0) + 12 * np.sin(z / 7.0 + 1.0)
    return mesh.kept(y > cut)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=BESIDE)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    folder = arguments.folder
    if not folder.exists():
        print(f"{folder.name}: not present, nothing measured")
        return 0
    reference = None
    if (folder / "template/template.ply").exists():
        reference = (
            load_mesh(folder / "template/template.ply"),
            load_landmarks(folder / "template/template_landmarks.json"),
        )
    errors: dict[str, list[float]] = {}
    sources: dict[str, int] = {}
    rng = np.random.default_rng(0)
    for files in find_scans(folder / "scans", folder / "landmarks"):
        scan = load_scan(files.mesh, files.landmarks[0])
        bitten = replace(scan, mesh=without_level_edge(scan.mesh))
        for _ in range(arguments.turns):
            turn = Similarity(Rotation.random(None, rng).as_matrix())
            for name, kind in (("as scanned", scan), ("lower edge bitten off", bitten)):
                mesh = kind.mesh.with_vertices(turn.apply(kind.mesh.vertices))
                landmarks = kind.landmarks.transformed(turn)
                frame = upright_frame(mesh, landmarks, reference)
                errors.setdefault(name, []).append(_degrees(frame.axes[1], turn.rotation[:, 1]))
                sources[f"{name}: {frame.source}"] = sources.get(f"{name}: {frame.source}", 0) + 1
            start = landmark_axes(landmarks)
            errors.setdefault("landmarks alone", []).append(_degrees(start[1], turn.rotation[:, 1]))
    print("up axis off by (degrees)      mean   median   worst      n")
    for name, values in errors.items():
        print(
            f"  {name:26s} {np.mean(values):6.2f} {np.median(values):8.2f} {np.max(values):7.2f} {len(values):6d}"
        )
    for name, count in sorted(sources.items()):
        print(f"  {name}: {count}")
    return 0 if max(errors["as scanned"]) <= 3.0 else 1


def _degrees(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.degrees(np.arccos(np.clip(a @ b, -1.0, 1.0))))


if __name__ == "__main__":
    sys.exit(main())
