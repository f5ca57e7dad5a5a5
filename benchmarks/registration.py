"""Registration: seconds a scan, where they go, memory, and accuracy by truth on the phantom.

    python benchmarks/registration.py speed [--peer]
    python benchmarks/registration.py accuracy --subjects 12 --seed 4242
    python benchmarks/registration.py masks --subjects 12

``--peer`` also runs trimesh's nricp_amberg once on the same template, scan and landmarks (minutes).
"""

from __future__ import annotations

import os

for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_pool, "1")  # before numpy is loaded: one core is what is measured

import argparse
import resource
import statistics
import time
from dataclasses import dataclass, replace

import numpy as np

from breastmorph.evaluation.truth import Tie
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Floats, TriangleMesh
from breastmorph.phantom import draw_cohort, mean_torso, scan_subject, topology, torso
from breastmorph.registration import Registrar, Registration, RegistrationParameters, preset
from breastmorph.scan.scan import Scan
from breastmorph.template.files import default_template


@dataclass(frozen=True, eq=False)
class Case:
    """A scan with its truth at the template's vertices."""

    scan: Scan
    truth: Floats
    surface: TriangleMesh
    visible: np.ndarray
    breast: np.ndarray


def cases(count: int, seed: int) -> list[Case]:
    """Scan a phantom cohort."""
    mean = mean_torso()
    tie = Tie.of(default_template(), mean.mesh, mean.landmarks)
    found = []
    for index, subject in enumerate(draw_cohort(count, seed)):
        body = torso(subject)
        seen = scan_subject(body, np.random.default_rng([seed, index]))
        found.append(
            Case(
                Scan(f"{index:03d}", seen.mesh, seen.landmarks),
                tie.at(seen.points),
                TriangleMesh(seen.points, topology()),
                tie.at(seen.visible.astype(float)) > 0.9,
                tie.at((body.breast["left"] | body.breast["right"]).astype(float)) > 0.5,
            )
        )
    return found


def speed(peer: bool) -> None:
    """Median seconds on a scan of about 20k vertices and on the same scan subdivided."""
    import igl

    case = cases(1, 1)[0]
    vertices, faces = igl.upsample(np.array(case.scan.mesh.vertices), np.array(case.scan.mesh.faces), 1)
    dense = replace(case.scan, mesh=TriangleMesh(vertices, faces))
    registrar = Registrar(default_template())
    registrar.register(case.scan)  # compiles and loads
    for scan in (case.scan, dense):
        runs = []
        for _ in range(7):
            begin = time.perf_counter()
            result = registrar.register(scan)
            runs.append((time.perf_counter() - begin, result))
        seconds = statistics.median(duration for duration, _ in runs)
        print(f"\n{scan.mesh.n_vertices} vertices: median {seconds:.2f} s")
        result = sorted(runs, key=lambda run: run[0])[len(runs) // 2][1]
        for step, duration in result.seconds.items():
            print(f"  {step:20s} {1000 * duration:6.0f} ms")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    if peer:
        _peer(case, registrar)


def _peer(case: Case, registrar: Registrar) -> None:
    import trimesh

    template = registrar.template
    begin = time.perf_counter()
    ours = registrar.register(case.scan)
    own_seconds = time.perf_counter() - begin
    names = [name for name in template.landmark_ids if name in case.scan.landmarks]
    start = ours.transform.apply(template.mesh.vertices)
    begin = time.perf_counter()
    theirs = trimesh.registration.nricp_amberg(
        trimesh.Trimesh(start, template.mesh.faces, process=False),
        trimesh.Trimesh(case.scan.mesh.vertices, case.scan.mesh.faces, process=False),
        source_landmarks=np.array([template.landmark_ids[name] for name in names]),
        target_positions=case.scan.landmarks.array(names),
    )
    seconds = time.perf_counter() - begin
    print(f"\nnricp_amberg {seconds:.0f} s, ours {own_seconds:.2f} s: ratio {seconds / own_seconds:.0f}")
    for name, points in (("nricp_amberg", np.asarray(theirs)), ("ours", ours.vertices)):
        inside, true, breast, rest = errors(case, points, ours.template_mask)
        print(
            f"  {name:14s} distance {inside:.2f} (true surface {true:.2f}), correspondence {breast:.1f} / {rest:.1f} mm"
        )


def errors(case: Case, points: Floats, mask: Floats) -> tuple[float, float, float, float]:
    """Distance to scan and to true surface in the mask, correspondence error in the breast and in the rest, mm."""
    inside = (mask > 0.2) & case.visible
    to_scan = Surface(case.scan.mesh).closest(points[inside]).distances.mean()
    to_truth = Surface(case.surface).closest(points[inside]).distances.mean()
    off = np.linalg.norm(points - case.truth, axis=1)
    breast, rest = off[case.breast & case.visible].mean(), off[~case.breast & case.visible].mean()
    return float(to_scan), float(to_truth), float(breast), float(rest)


def explained(all_cases: list[Case], shapes: list[Floats]) -> float:
    """Share of the true breast variation that the shapes recover, in the truth's own alignment."""
    truths = [case.truth for case in all_cases]
    mean = truths[0]
    for _ in range(5):
        fits = [Similarity.fit(truth, mean) for truth in truths]
        aligned = np.array([fit.apply(truth) for fit, truth in zip(fits, truths, strict=True)])
        mean = aligned.mean(axis=0)
    got = np.array([fit.apply(shape) for fit, shape in zip(fits, shapes, strict=True)])
    breast = np.mean([case.breast for case in all_cases], axis=0) > 0.5
    return float(1 - ((got - aligned)[:, breast] ** 2).sum() / ((aligned - mean)[:, breast] ** 2).sum())


def thorax_sd(all_cases: list[Case], shapes: list[Floats]) -> float:
    """Standard deviation of the thorax over the cohort in mm, aligned on the thorax."""
    outside = ~(np.mean([case.breast for case in all_cases], axis=0) > 0.5)
    mean = shapes[0][outside]
    for _ in range(5):
        aligned = np.array([Similarity.fit(x[outside], mean).apply(x[outside]) for x in shapes])
        mean = aligned.mean(axis=0)
    return float(np.sqrt(aligned.var(axis=0).sum(axis=1).mean()))


def _row(name: str, all_cases: list[Case], results: list[Registration]) -> None:
    shapes = [result.vertices for result in results]
    table = [errors(case, x, r.template_mask) for case, x, r in zip(all_cases, shapes, results, strict=True)]
    inside, true, breast, rest = np.mean(table, axis=0)
    flipped = np.mean([result.metrics["flipped_percent"] for result in results])
    angle = np.mean([result.metrics["angle_distortion"] for result in results])
    print(
        f"| {name} | {inside:.2f} | {true:.2f} | {breast:.1f} | {rest:.1f} | {explained(all_cases, shapes):.2f} "
        f"| {thorax_sd(all_cases, shapes):.1f} | {angle:.1f} | {flipped:.3f} |",
        flush=True,
    )


_HEAD = (
    "| method | distance in the mask | to the true surface | corr. breast | corr. rest | explained | thorax sd | angle "
    "| flipped % |\n|---|---|---|---|---|---|---|---|---|"
)


def _run(all_cases: list[Case], parameters: RegistrationParameters) -> list[Registration]:
    registrar = Registrar(default_template(), parameters)
    return [registrar.register(case.scan) for case in all_cases]


def accuracy(count: int, seed: int) -> None:
    """Every preset by truth."""
    all_cases = cases(count, seed)
    print(_HEAD)
    for name in ("rigid", "paper", "paper-stacked", "default"):
        _row(name, all_cases, _run(all_cases, preset(name)))
    _row("default, no masks", all_cases, _run(all_cases, preset("default", use_masks=False)))


def masks(count: int, seed: int) -> None:
    """The trade-off outside the mask: the pull's weight against thorax error, thorax sd and breast error."""
    all_cases = cases(count, seed)
    print(_HEAD)
    base = preset("default")
    if base.warp is None:
        return
    for pull in (0.0, 0.25, 0.5, 0.75, 1.0):
        parameters = replace(base, warp=replace(base.warp, outside_pull=pull))
        _row(f"outside pull {pull}", all_cases, _run(all_cases, parameters))
    _row("no masks", all_cases, _run(all_cases, preset("default", use_masks=False)))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "accuracy", "masks"])
    parser.add_argument("--subjects", type=int, default=12)
    parser.add_argument("--seed", type=int, default=4242)
    parser.add_argument("--peer", action="store_true")
    options = parser.parse_args()
    if options.what == "speed":
        speed(options.peer)
    elif options.what == "accuracy":
        accuracy(options.subjects, options.seed)
    else:
        masks(options.subjects, options.seed)


if __name__ == "__main__":
    main()
