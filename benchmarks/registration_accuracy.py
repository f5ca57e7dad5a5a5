"""Accuracy of registration by dense truth, on a phantom cohort that nothing was tuned on.

    python benchmarks/registration_accuracy.py [--n 30] [--seed 4242] [--peer 3]
    python benchmarks/registration_accuracy.py --n 12 --curve      # what the pull outside the mask does
    python benchmarks/registration_accuracy.py --n 20 --seed 55 --large --methods default    # 1,000 cc and more
    python benchmarks/registration_accuracy.py --methods default,learnt    # what register --learn gains

One row a method: mean surface distance, mean correspondence error and explained variation, in the breast and outside
(mm and shares; where the scanner saw the skin), standard deviation of the cohort over the true one, the thorax's own
standard deviation (mm, aligned on the thorax), angle distortion, flipped triangles, the worst subjects, and how many
have triangles below a tenth of their area where the truth's are not. ``--peer K`` adds trimesh's
nricp_amberg with the same landmarks on the first K scans (a minute or two each).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from breastmorph.batch.cohort_prior import CohortPrior, fit_cohort_prior
from breastmorph.evaluation.truth import SubjectTruth, Tie, cohort_truth, correspondence_error, load_truth
from breastmorph.foundation.arrays import Floats
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_areas
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.procrustes import align_shapes
from breastmorph.phantom import mean_torso, write_cohort
from breastmorph.phantom.cohort import LARGE
from breastmorph.registration import Registrar, RegistrationParameters, preset
from breastmorph.registration.result import shape_metrics
from breastmorph.scan.check import find_scans, load_scan
from breastmorph.scan.scan import Scan
from breastmorph.template import Template, default_template
from measuring import compare

METHODS: dict[str, tuple[str, bool]] = {
    "default": ("default", True),
    "learnt": ("default", True),
    "default without masks": ("default", False),
    "paper": ("paper", True),
    "paper without masks": ("paper", False),
    "paper-stacked": ("paper-stacked", True),
    "rigid only": ("rigid", True),
}
_HEADER = (
    "method", "n", "dist breast", "dist out", "to true surface", "corr breast", "corr out", "expl breast",
    "expl out", "sd breast", "sd out", "thorax sd", "angle", "flipped %", "seconds",
    "worst breast", "worst out", "crushed",
)  # fmt: skip


def peer(template: Template, scan: Scan) -> Floats:
    """trimesh's non-rigid ICP after Amberg with the same start and landmarks."""
    import trimesh

    start = Registrar(template, preset("rigid")).register(scan)
    names = [name for name in template.landmark_ids if name in scan.landmarks]
    return trimesh.registration.nricp_amberg(
        trimesh.Trimesh(start.vertices, template.mesh.faces, process=False),
        trimesh.Trimesh(scan.mesh.vertices, scan.mesh.faces, process=False),
        source_landmarks=np.array([template.landmark_ids[name] for name in names]),
        target_positions=scan.landmarks.array(names),
    )


def thorax_sd(shapes: list[Floats], truths: list[SubjectTruth]) -> float:
    """Standard deviation of the thorax over the cohort in mm, aligned on the thorax."""
    outside = np.mean([truth.breast for truth in truths], axis=0) <= 0.5
    aligned = align_shapes(np.stack(shapes)[:, outside]).shapes
    return float(np.sqrt(aligned.var(axis=0).sum(axis=1).mean()))


def crushed(template: Template, vertices: Floats, truth: SubjectTruth) -> int:
    """Triangles below a tenth of their share of the area where the truth's are not."""
    faces = template.mesh.faces
    before, now, true = (face_areas(v, faces) for v in (template.mesh.vertices, vertices, truth.points))
    small, right = (one / before / np.median(one / before) < 0.1 for one in (now, true))
    return int((small & ~right).sum())


def methods(names: str, curve: bool) -> dict[str, RegistrationParameters]:
    """What to compare: presets, or the default with another pull outside the mask."""
    if not curve:
        return {name: preset(METHODS[name][0], use_masks=METHODS[name][1]) for name in names.split(",")}
    base = preset("default")
    if base.warp is None:
        raise SystemExit("the default has no warp, so there is no pull to vary")
    found = {
        f"outside pull {pull:g}": replace(base, warp=replace(base.warp, outside_pull=pull))
        for pull in (0.0, 0.25, 0.5, 0.75, 1.0)
    }
    return found | {"without masks": preset("default", use_masks=False)}


def row(
    name: str,
    run: Callable[[Scan], Floats],
    scans: list[Scan],
    truths: list[SubjectTruth],
    surfaces: list[Surface],
    template: Template,
) -> tuple[list[str], Floats]:
    """Register all scans one way; the row of the table, and its first five figures."""
    shapes, figures = [], []
    seconds = time.process_time()
    results = [run(scan) for scan in scans]
    seconds = (time.process_time() - seconds) / len(scans)
    for scan, truth, true_surface, vertices in zip(scans, truths, surfaces, results, strict=True):
        seen_breast, seen_out = truth.breast & truth.visible, ~truth.breast & truth.visible
        distance = Surface(scan.mesh).closest(vertices).distances
        in_file = scan.to_file.apply(vertices)
        to_truth = true_surface.closest(in_file[seen_breast]).distances.mean()
        quality = shape_metrics(template.mesh.vertices, vertices, template.mesh.faces)
        figures.append(
            [
                distance[seen_breast].mean(),
                distance[seen_out].mean(),
                to_truth,
                *correspondence_error(in_file, truth),
                quality["angle_distortion"],
                quality["flipped_percent"],
                crushed(template, in_file, truth),
            ]
        )
        shapes.append(in_file)
    mean = np.mean(figures, axis=0)
    whole = cohort_truth(np.stack(shapes), truths) if len(scans) > 3 else None
    cohort = ["-"] * 5  # too few to speak of variation
    if whole is not None:
        cohort = [*(f"{value:.2f}" for value in vars(whole).values()), f"{thorax_sd(shapes, truths):.1f}"]
    cells = [name, str(len(scans)), *(f"{v:.2f}" for v in mean[:5]), *cohort, f"{mean[5]:.1f}", f"{mean[6]:.3f}",
             f"{seconds:.2f}", *(f"{v:.1f}" for v in np.max(figures, axis=0)[3:5]),
             str(int((np.array(figures)[:, 7] > 0).sum()))]  # fmt: skip
    return cells, mean[:5]


def beside(peer: str, ours: Floats, theirs: Floats) -> None:
    """Note how the default and another method compare by the figures of :func:`row`."""
    for name, own, other in zip(_HEADER[2:7], ours, theirs, strict=True):
        what = name.replace("dist", "distance to the scan,").replace("corr", "distance from the true place,")
        compare(what.replace("to true surface", "distance to the true surface"), "mm", own, peer, other)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=30)
    parser.add_argument("--seed", type=int, default=4242)
    parser.add_argument("--peer", type=int, default=0)
    parser.add_argument("--cohort", type=Path, help="where to keep the cohort; a temporary folder otherwise")
    parser.add_argument("--large", action="store_true", help="breasts of 1,000 cc and more")
    parser.add_argument("--curve", action="store_true", help="vary the pull outside the mask instead")
    parser.add_argument("--methods", default=",".join(METHODS), help="comma-separated")
    arguments = parser.parse_args()
    template = default_template()
    mean = mean_torso()
    tie = Tie.of(template, mean.mesh, mean.landmarks)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.cohort or Path(temporary)
        if not (folder / "cohort.csv").exists():
            drawn = LARGE if arguments.large else None
            write_cohort(folder, arguments.n, arguments.seed, jobs=os.cpu_count() or 1, parameters=drawn)
        scans, truths, surfaces = [], [], []
        for files in find_scans(folder / "scans", folder / "landmarks"):
            scans.append(load_scan(files.mesh, files.landmarks[0]))
            path = folder / "truth" / f"{files.id}.npz"
            truths.append(load_truth(path, tie))
            with np.load(path) as parts:
                surfaces.append(Surface(TriangleMesh(parts["points"], mean.mesh.faces)))
    print(
        f"phantom seed {arguments.seed}, {len(scans)} scans, template of {template.mesh.n_vertices:,} vertices"
    )
    print(" | ".join(_HEADER), flush=True)
    figures = {}
    for name, parameters in methods(arguments.methods, arguments.curve).items():
        registrar = Registrar(template, parameters)
        registrar.register(scans[0])  # compiled kernels and caches do not count
        learnt = None
        if name == "learnt":
            learnt = fit_cohort_prior(map(registrar.register, scans), template, parameters)
        if name == "learnt" and learnt is None:
            print(f"learnt: {len(scans)} scans are too few")
            continue

        def run(scan: Scan, registrar: Registrar = registrar, learnt: CohortPrior | None = learnt) -> Floats:
            return registrar.register(scan, learnt.for_scan(scan.id) if learnt else ()).vertices

        cells, figures[name] = row(name, run, scans, truths, surfaces, template)
        print(" | ".join(cells), flush=True)
    for name in figures.keys() - {"default"}:
        if "default" in figures and name in ("default without masks", "paper", "rigid only"):
            beside(f"{name}, {len(scans)} scans", figures["default"], figures[name])
    if arguments.peer:
        k = arguments.peer
        few = (scans[:k], truths[:k], surfaces[:k], template)
        best = Registrar(template)
        ours, own = row("default", lambda scan: best.register(scan).vertices, *few)
        theirs, other = row("nricp_amberg", lambda scan: peer(template, scan), *few)
        print(" | ".join(ours), " | ".join(theirs), sep="\n", flush=True)
        beside(f"trimesh nricp_amberg, {k} scans", own, other)
    return 0


if __name__ == "__main__":
    sys.exit(main())
