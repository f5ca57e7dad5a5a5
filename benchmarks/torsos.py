"""Registration of a folder of torsos with dense truth, plain and under nuisance, judged by the folder's own score.py.

    python benchmarks/torsos.py [FOLDER] [--only default,jitter5]

FOLDER holds `scans/`, `landmarks/`, `template/` and `score.py`; the default is the development set beside the
repository, where present. "surface" is the mean distance (mm, mask > 0.2) between the plain and the disturbed result.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

import measuring  # noqa: F401  (one core)
from breastmorph.mesh.closest import Surface, largest_piece
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import without_pinches
from breastmorph.registration import Registrar, Registration, preset
from breastmorph.scan.check import find_scans, load_scan
from breastmorph.scan.finder import find_landmarks, recheck_landmarks
from breastmorph.scan.scan import Landmarks, Scan
from breastmorph.template import load_template
from landmarks import walked

BESIDE = Path(__file__).parents[2] / "shared" / "torsos"


def jittered(rms: float) -> Callable[[Scan, np.random.Generator], Scan]:
    """Landmarks moved at random by this root mean square (mm) and put back onto the surface."""

    def disturb(scan: Scan, rng: np.random.Generator) -> Scan:
        points = scan.landmarks.points + rng.normal(scale=rms / np.sqrt(3), size=scan.landmarks.points.shape)
        return replace(
            scan, landmarks=Landmarks(scan.landmarks.names, Surface(scan.mesh).closest(points).points)
        )

    return disturb


def holed(scan: Scan, rng: np.random.Generator) -> Scan:
    """Six more holes of 40 mm anywhere but at the landmarks; what they cut off is dropped, as the check would."""
    vertices = scan.mesh.vertices
    far = (np.linalg.norm(vertices[:, None] - scan.landmarks.points, axis=2) > 30.0).all(axis=1)
    centres = rng.choice(vertices[far], size=6, replace=False)
    middle = vertices[scan.mesh.faces].mean(axis=1)
    lost = (np.linalg.norm(middle[:, None] - centres, axis=2) < 20.0).any(axis=1)
    mesh, _ = without_pinches(scan.mesh.kept(~lost))
    return replace(scan, mesh=largest_piece(mesh))


def cropped(scan: Scan, rng: np.random.Generator) -> Scan:
    """Arms, neck and belly cut off: 30 mm around the landmarks remain."""
    middle = scan.mesh.vertices[scan.mesh.faces].mean(axis=1)
    low, high = scan.landmarks.points.min(axis=0) - 30.0, scan.landmarks.points.max(axis=0) + 30.0
    mesh, _ = without_pinches(scan.mesh.kept(((middle > low) & (middle < high))[:, :2].all(axis=1)))
    return replace(scan, mesh=largest_piece(mesh))


def one_sided(scan: Scan, rng: np.random.Generator) -> Scan:
    """The right breast's landmarks missing."""
    names = [name for name in scan.landmarks if not name.endswith("right")]
    return replace(scan, landmarks=scan.landmarks.only(names))


def found(scan: Scan, rng: np.random.Generator) -> Scan:
    """The program's own landmarks instead of those that were set."""
    return replace(scan, landmarks=find_landmarks(scan.mesh, "mm").landmarks)


def mistaken(name: str, off: float) -> Callable[[Scan, np.random.Generator], Scan]:
    """One landmark set so far (mm) along the skin from its place, as the check then sees the scan."""

    def disturb(scan: Scan, rng: np.random.Generator) -> Scan:
        points, surface = scan.landmarks.points.copy(), Surface(scan.mesh)
        here, begin = scan.landmarks.names.index(name), scan.landmarks[name]
        points[here] = walked(surface, scan.mesh, begin, off, rng.normal(size=3))
        landmarks = replace(scan.landmarks, points=points)
        findings, rather = recheck_landmarks(scan.mesh, landmarks, scan.to_file)
        return replace(scan, landmarks=landmarks, warnings=tuple(findings), rather=rather)

    return disturb


VARIANTS = {
    "default": ("default", True, None),
    "no masks": ("default", False, None),
    "rigid": ("rigid", True, None),
    "paper": ("paper", True, None),
    "paper-stacked": ("paper-stacked", True, None),
    "jitter1": ("default", True, jittered(1.0)),
    "jitter3": ("default", True, jittered(3.0)),
    "jitter5": ("default", True, jittered(5.0)),
    "six holes": ("default", True, holed),
    "cropped": ("default", True, cropped),
    "found": ("default", True, found),
    "right landmarks missing": ("default", True, one_sided),
    "nipple_left 15 mm off": ("default", True, mistaken("nipple_left", 15.0)),
    "sternal_notch 20 mm off": ("default", True, mistaken("sternal_notch", 20.0)),
}


def change(results: dict[str, Registration], plain: dict[str, Registration]) -> float:
    """Mean distance of the breasts' surfaces between two runs, mm."""
    parts = []
    for name, result in results.items():
        breast = result.template_mask > 0.2
        parts.append(Surface(plain[name].mesh).closest(result.vertices[breast]).distances.mean())
    return float(np.mean(parts))


def named(results: dict[str, Registration], landmark: str) -> float:
    """Share of the results that name a landmark as improbable."""
    return float(
        np.mean([any(one.values.get("name") == landmark for one in r.warnings) for r in results.values()])
    )


def moved_away(
    results: dict[str, Registration], plain: dict[str, Registration], landmark: str
) -> tuple[float, float]:
    """Mean movement (mm) of vertices more than 50 mm from a landmark against the undisturbed result; the worst's."""
    parts = []
    for name, before in plain.items():
        place = before.vertices[before.template.landmark_ids[landmark]]
        away = np.linalg.norm(before.vertices - place, axis=1) > 50.0
        parts.append(np.linalg.norm(results[name].vertices - before.vertices, axis=1)[away].mean())
    return float(np.mean(parts)), float(np.max(parts))


def main() -> int:
    """Run the variants."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=BESIDE)
    parser.add_argument("--only", default=",".join(VARIANTS), help="comma-separated")
    arguments = parser.parse_args()
    folder = arguments.folder
    if not folder.exists():
        print(f"{folder.name}: not present, nothing measured")
        return 0
    made = folder / "template"
    template = load_template(
        made / "template.ply", made / "template_landmarks.json", made / "template_coarse.ply"
    )
    scans = [
        load_scan(files.mesh, files.landmarks[0], reference=template.as_reference)
        for files in find_scans(folder / "scans", folder / "landmarks")
    ]
    plain: dict[str, Registration] = {}
    for name in arguments.only.split(","):
        kind, use_masks, disturb = VARIANTS[name]
        registrar = Registrar(template, preset(kind, use_masks=use_masks))
        rng = np.random.default_rng(0)
        results = {}
        with tempfile.TemporaryDirectory() as out:
            (Path(out) / "registered").mkdir()
            for scan in scans:
                result = registrar.register(disturb(scan, rng) if disturb else scan)
                results[scan.id] = result
                in_file = result.mesh.with_vertices(scan.to_file.apply(result.vertices))
                save_mesh(in_file, Path(out) / "registered" / f"{scan.id}.ply")
            command = [sys.executable, str(folder / "score.py"), str(folder), out]
            score = subprocess.run(command, capture_output=True, text=True, check=False)
        if name == "default":
            plain = results
        moved = f" surface={change(results, plain):.2f}" if disturb and plain else ""
        landmark = name.split(" ")[0]
        if plain and landmark in template.landmark_ids:
            usual, worst = moved_away(results, plain, landmark)
            moved += f" away={usual:.2f} (worst {worst:.1f}) named={named(results, landmark):.0%}"
        print(f"{name:24s} {(score.stdout or score.stderr).strip()}{moved}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
