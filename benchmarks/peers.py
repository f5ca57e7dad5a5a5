"""The strongest peers on equal terms: the same scans, start and eight landmarks, one core, judged by truth.

    make peers                                             # phantoms; its own environment, by hand
    python benchmarks/peers.py --python PEERS/bin/python [--folder TORSOS] [--n 2] [--tune 1] [--only meshmonk,pycpd]

Every peer runs as a process of its own with the packages of requirements-peers.txt, so that its CPU time and memory are
its own. Settings are chosen on ``--tune`` subjects that are not scored, by the distance from the true place in the
breast. Peers that take no landmarks may start from the template bent through the eight, and all are given only what of
the scan lies near the template.
The table goes to benchmarks/peers.json and, with ``--docs``, into docs/peers.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")

import numpy as np

ROOT = Path(__file__).parents[1]
BESIDE = ROOT.parent / "shared" / "torsos"
_MINUTES = 15  # of a processor that one registration of a peer may take
_AROUND = 40.0  # mm from the started template: what peers are given of the scan
_REACH = 50.0  # mm that a landmark pulls along with it at the local start
# Stiffness, landmark weight, normals' weight and iterations of each step: trimesh's own.
_AMBERG = [[0.01, 10, 0.5, 10], [0.02, 5, 0.5, 10], [0.03, 2.5, 0.5, 10], [0.01, 0, 0.0, 10]]
# Settings tried for each peer; the best on the tuning subjects is scored. The dear ones have one: their authors', begun
# where the landmarks have bent the template.
CANDIDATES: dict[str, list[dict[str, Any]]] = {
    "nricp_amberg": [{"start": "local", "steps": _AMBERG}],
    "nricp_sumner": [{"start": "local"}],
    "meshmonk": [
        {"start": start, "num_iterations": n, "transform_sigma": sigma}
        for start, n, sigma in (
            ("rigid", 90, 3.0),
            ("local", 90, 3.0),
            ("local", 60, 2.0),
        )
    ],
    "pycpd": [
        {"start": start, "alpha": alpha, "beta": beta}
        for start, alpha, beta in (("local", 2.0, 40.0), ("local", 10.0, 40.0))
    ],
    "bcpd": [
        {"start": start, "beta": beta, "stiffness": stiffness, "geodesic": geodesic}
        for start, beta, stiffness, geodesic in (
            ("rigid", 1.0, 20.0, 0.0),
            ("local", 1.0, 20.0, 0.0),
            ("local", 1.0, 200.0, 0.0),
        )
    ],
    "functional maps": [{"start": "local", "k": 20, "zoomout": 20}],
    "landmarks alone": [{"start": start} for start in ("spline", "local")],
}
# Presets of BreastMorph that stand in the table, and their titles there.
OURS = {"default": "BreastMorph", "paper": "the printed method", "rigid": "similarity alone"}
PACKAGES = {
    "nricp_amberg": "trimesh", "nricp_sumner": "trimesh", "meshmonk": "meshmonk", "pycpd": "pycpd",
    "functional maps": "pyfmaps", "landmarks alone": "scipy",
}  # fmt: skip

# --------------------------------------------------------------------------------------------------------------------
# The peers: from a started template and a scan to the template in her shape. Runs with their packages, without ours
# --------------------------------------------------------------------------------------------------------------------


def _amberg(job: dict[str, Any], kind: str, **settings: Any) -> np.ndarray:
    import trimesh

    method = getattr(trimesh.registration, kind)
    return np.asarray(
        method(
            trimesh.Trimesh(job["start"], job["faces"], process=False),
            trimesh.Trimesh(job["scan"], job["scan_faces"], process=False),
            source_landmarks=job["ids"],
            target_positions=job["marks"],
            **settings,
        )
    )


def _meshmonk(job: dict[str, Any], **settings: Any) -> np.ndarray:
    import meshmonk
    import trimesh

    found = meshmonk.pyramid_register(
        floating=trimesh.Trimesh(job["start"], job["faces"], process=False),
        target=trimesh.Trimesh(job["scan"], job["scan_faces"], process=False),
        **settings,
    )
    return np.asarray(found.aligned_features)[:, :3]


def _pycpd(job: dict[str, Any], alpha: float, beta: float, points: int = 1500) -> np.ndarray:
    from pycpd import DeformableRegistration
    from scipy.spatial.distance import cdist

    # All pairs of points do not fit: a part of both is registered, and its displacement carried to the rest.
    rng = np.random.default_rng(0)
    own = np.union1d(rng.choice(len(job["start"]), points, replace=False), job["ids"])
    other = rng.choice(len(job["scan"]), min(2 * points, len(job["scan"])), replace=False)
    found = DeformableRegistration(
        X=job["scan"][other], Y=job["start"][own], alpha=alpha, beta=beta, max_iterations=100
    )
    found.register()
    # Its own function moves only the points that were registered: the kernel carries their weights to all others.
    near = np.exp(cdist(job["start"], found.Y, "sqeuclidean") / (-2.0 * beta**2))
    return np.asarray(job["start"] + near @ found.W)


def _bcpd(job: dict[str, Any], beta: float, stiffness: float, geodesic: float) -> np.ndarray:
    program = os.environ.get("BCPD", "")
    if not program:
        raise SystemExit("BCPD names no program: build github.com/ohirose/bcpd and set it")
    with tempfile.TemporaryDirectory() as temporary:
        for name, values in (("x", job["scan"]), ("y", job["start"])):
            np.savetxt(f"{temporary}/{name}.txt", values, fmt="%.6f", delimiter="\t")
        # Both are in one frame already (-ux, -g0.1); 4,000 points each, the displacement carried to the rest ("++").
        options = [
            f"-b{beta}",
            f"-l{stiffness}",
            "-w0.05",
            "-g0.1",
            "-ux",
            "-Tn",
            "-DB,4000,0.02",
            "-J300",
            "-K150",
        ]
        options += ["-p", "-c1e-5", "-n300", "-q", "-W", "-r1"]
        if geodesic:
            np.savetxt(f"{temporary}/faces.txt", job["faces"] + 1, fmt="%d", delimiter="\t")
            options += [f"-Ggeodesic,{geodesic},faces.txt"]
        subprocess.run([program, "-xx.txt", "-yy.txt", *options, "-oout_"], cwd=temporary, check=True)
        return np.loadtxt(f"{temporary}/out_y.txt")


def _functional_maps(job: dict[str, Any], k: int, zoomout: int, step: int = 3) -> np.ndarray:
    from pyFM import spectral
    from pyFM.mesh import TriMesh
    from pyFM.refine.zoomout import mesh_zoomout_refine
    from scipy.spatial import cKDTree

    scan, template = TriMesh(job["scan"], job["scan_faces"]), TriMesh(job["start"], job["faces"])
    for mesh in (scan, template):
        mesh.process(k + step * zoomout)
    # From where the bent template lies already.
    found = spectral.mesh_p2p_to_FM(cKDTree(job["scan"]).query(job["start"])[1], scan, template, dims=(k, k))
    found = mesh_zoomout_refine(found, scan, template, nit=zoomout, step=step, subsample=2000, n_jobs=1)
    return np.asarray(job["scan"][spectral.mesh_FM_to_p2p(found, scan, template, use_adj=True, n_jobs=1)])


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "nricp_amberg": lambda job, **settings: _amberg(job, "nricp_amberg", **settings),
    "nricp_sumner": lambda job, **settings: _amberg(job, "nricp_sumner", **settings),
    "meshmonk": _meshmonk,
    "pycpd": _pycpd,
    "bcpd": _bcpd,
    "functional maps": _functional_maps,
    "landmarks alone": lambda job: job["start"],
}


def bent(start: np.ndarray, ids: np.ndarray, marks: np.ndarray, how: str) -> np.ndarray:
    """The template bent through the landmarks: by a spline everywhere, or only near them."""
    from scipy.interpolate import RBFInterpolator

    # In space the thin-plate kernel is the distance itself; a linear part would swing out, as the landmarks lie flat.
    kind: dict[str, Any] = {"kernel": "linear", "degree": 0}
    if how == "local":
        kind = {"kernel": "gaussian", "degree": -1, "epsilon": 1.0 / _REACH}
    return np.asarray(start + RBFInterpolator(start[ids], marks - start[ids], **kind)(start))


def cut(job: dict[str, np.ndarray]) -> None:
    """Leave of the scan what lies near the template: arms and belly only mislead methods that take all of both."""
    from scipy.spatial import cKDTree

    near = cKDTree(job["start"]).query(job["scan"])[0] <= _AROUND
    faces = job["scan_faces"][near[job["scan_faces"]].all(axis=1)]
    used, placed = np.unique(faces, return_inverse=True)
    job["scan"], job["scan_faces"] = job["scan"][used], placed.reshape(-1, 3)


def processor_seconds() -> float:
    """Of this process and of those it has started and seen end."""
    return sum(os.times()[:4])


def peak_memory() -> float:
    """MB that this process, or one that it has started, held at most; on Linux without what its parent held."""
    started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return max(int(line.split()[1]) / 1024, started)
    return max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, started)


def work(method: str, job: Path, out: Path, settings: dict[str, Any]) -> None:
    """One registration in this process."""
    resource.setrlimit(resource.RLIMIT_CPU, (60 * _MINUTES, 60 * _MINUTES))
    with np.load(job) as parts:
        given = {name: parts[name] for name in parts.files}
    seconds = processor_seconds()
    how = settings.pop("start")
    cut(given)
    if how != "rigid":
        given["start"] = bent(given["start"], given["ids"], given["marks"], how)
    found = METHODS[method](given, **settings)
    seconds = processor_seconds() - seconds
    np.savez(out, vertices=found, seconds=seconds, memory=peak_memory())


# --------------------------------------------------------------------------------------------------------------------
# The scans, ours, and the score. Runs with BreastMorph
# --------------------------------------------------------------------------------------------------------------------


def subjects(
    folder: Path | None, count: int, tune: int, place: Path
) -> tuple[Any, list[Any], list[Any], str]:
    """The template, scans and their truth: those to be scored first, then those to tune on; and what they are."""
    from breastmorph.evaluation.truth import SubjectTruth, Tie, load_truth
    from breastmorph.phantom import mean_torso, write_cohort
    from breastmorph.scan.check import find_scans, load_scan
    from breastmorph.template import default_template, load_template

    if folder is None:
        template, mean = default_template(), mean_torso()
        tie = Tie.of(template, mean.mesh, mean.landmarks)
        write_cohort(place, count + tune, 4242)
        found = find_scans(place / "scans", place / "landmarks")
        scans = [load_scan(one.mesh, one.landmarks[0]) for one in found]
        return (
            template,
            scans,
            [load_truth(place / "truth" / f"{one.id}.npz", tie) for one in found],
            "phantoms",
        )
    made = folder / "template"
    template = load_template(
        made / "template.ply", made / "template_landmarks.json", made / "template_coarse.ply"
    )
    with np.load(made / "template_truth.npz") as known:
        tie = Tie(known["faces"][known["vertex_face"]], known["vertex_bary"])
        breast = tie.at((known["breast_left"] | known["breast_right"]).astype(float)) > 0.5
    scans, truths = [], []
    for one in find_scans(folder / "scans", folder / "landmarks")[: count + tune]:
        scans.append(load_scan(one.mesh, one.landmarks[0], reference=template.as_reference))
        with np.load(folder / "truth" / f"{one.id}.npz") as known:
            visible = tie.at(known["visible"].astype(float)) > 0.9
            truths.append(SubjectTruth(tie.at(known["points"]), visible, breast))
    return template, scans, truths, "realistic torsos"


def figures(template: Any, scan: Any, truth: Any, vertices: np.ndarray) -> dict[str, float]:
    """What one registration is worth, lengths in mm."""
    from breastmorph.evaluation.truth import correspondence_error
    from breastmorph.mesh.closest import Surface
    from breastmorph.registration.result import shape_metrics

    seen = truth.breast & truth.visible
    off = correspondence_error(scan.to_file.apply(vertices), truth)
    quality = shape_metrics(template.mesh.vertices, vertices, template.mesh.faces)
    distance = Surface(scan.mesh).closest(vertices).distances
    return {
        "off_breast": off[0],
        "off_outside": off[1],
        "surface_breast": float(distance[seen].mean()),
        "angle": quality["angle_distortion"],
        "folds_percent": quality["flipped_percent"],
    }


def summary(
    rows: list[dict[str, float]], shapes: list[np.ndarray], truths: list[Any]
) -> dict[str, float | None]:
    """Means over the subjects, and the explained variation of more than three."""
    from breastmorph.evaluation.truth import cohort_truth

    mean: dict[str, float | None] = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    whole = cohort_truth(np.stack(shapes), truths) if len(shapes) > 3 else None
    mean["explained_breast"] = None if whole is None else whole.explained_breast
    mean["explained_outside"] = None if whole is None else whole.explained_outside
    return mean


def peer_once(python: str, method: str, settings: dict[str, Any], job: Path, place: Path) -> dict[str, Any]:
    """One registration by a peer in a process of its own; ``failed`` says why there is none."""
    out = place / "out.npz"
    out.unlink(missing_ok=True)
    command = [
        python,
        str(Path(__file__).resolve()),
        "--work",
        method,
        str(job),
        str(out),
        json.dumps(settings),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return {"failed": f"more than {_MINUTES} minutes of a processor"}
    if done.returncode or not out.is_file():
        return {"failed": (done.stderr.strip().splitlines() or ["it ended without a word"])[-1][:200]}
    with np.load(out) as parts:
        return {name: parts[name] if name == "vertices" else float(parts[name]) for name in parts.files}


def ours(template: Any, scans: list[Any], preset_name: str) -> list[dict[str, Any]]:
    """The same by BreastMorph, in this process."""
    from breastmorph.registration import Registrar, preset

    registrar = Registrar(template, preset(preset_name))
    registrar.register(scans[0])  # compiled code and caches do not count
    found = []
    for scan in scans:
        seconds = time.process_time()
        vertices = registrar.register(scan).vertices
        seconds = time.process_time() - seconds
        found.append({"vertices": vertices, "seconds": seconds, "memory": peak_memory()})
    return found


def compared(arguments: argparse.Namespace, keep: Callable[[dict[str, Any]], None]) -> None:
    """All methods on all scored subjects; what is known so far is kept after each."""
    from breastmorph.registration import Registrar, preset

    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        template, scans, truths, kind = subjects(
            arguments.folder, arguments.n, arguments.tune, place / "phantom"
        )
        start, jobs = Registrar(template, preset("rigid")), []
        for k, scan in enumerate(scans):
            names = [name for name in template.landmark_ids if name in scan.landmarks]
            jobs.append(place / f"job-{k}.npz")
            np.savez(
                jobs[-1], start=start.register(scan).vertices, faces=template.mesh.faces, scan=scan.mesh.vertices,
                scan_faces=scan.mesh.faces, ids=np.array([template.landmark_ids[name] for name in names]),
                marks=scan.landmarks.array(names),
            )  # fmt: skip
        n = arguments.n
        table: dict[str, Any] = {}
        run = {"subjects": kind, "scored": n, "tuned_on": arguments.tune, "vertices": template.mesh.n_vertices,
               "versions": versions(arguments.python), "methods": table}  # fmt: skip
        for method in arguments.only.split(","):
            if method in OURS:
                done, chosen = ours(template, scans[:n], method), {}
            else:
                chosen = tuned(arguments.python, method, jobs[n:], scans[n:], truths[n:], template, place)
                done = [peer_once(arguments.python, method, chosen, job, place) for job in jobs[:n]]
            table[method] = row(done, scans[:n], truths[:n], template) | {"settings": chosen}
            print(method, json.dumps(table[method]), flush=True)
            keep(run)


def tuned(
    python: str,
    method: str,
    jobs: list[Path],
    scans: list[Any],
    truths: list[Any],
    template: Any,
    place: Path,
) -> dict[str, Any]:
    """The settings that are best on subjects that are not scored."""
    best, least = CANDIDATES[method][0], float("inf")
    if len(CANDIDATES[method]) == 1:
        return best
    for settings in CANDIDATES[method]:
        off = []
        for job, scan, truth in zip(jobs, scans, truths, strict=True):
            found = peer_once(python, method, settings, job, place)
            off.append(
                figures(template, scan, truth, found["vertices"])["off_breast"]
                if "vertices" in found
                else float("inf")
            )
        print(f"  {method} {settings}: {np.mean(off):.2f} mm", file=sys.stderr, flush=True)
        if np.mean(off) < least:
            best, least = settings, float(np.mean(off))
    return best


def row(done: list[dict[str, Any]], scans: list[Any], truths: list[Any], template: Any) -> dict[str, Any]:
    """One line of the table."""
    good = [k for k, one in enumerate(done) if "vertices" in one]
    failed = [one["failed"] for one in done if "failed" in one]
    if not good:
        return {"registered": 0, "failed": failed}
    shapes = [scans[k].to_file.apply(done[k]["vertices"]) for k in good]
    mean = summary(
        [figures(template, scans[k], truths[k], done[k]["vertices"]) for k in good],
        shapes,
        [truths[k] for k in good],
    )
    used = {name: float(np.mean([done[k][name] for k in good])) for name in ("seconds", "memory")}
    return {"registered": len(good), "failed": failed, **mean, **used}


def versions(python: str) -> dict[str, str]:
    """Of the peers' packages."""
    code = "import json, sys, importlib.metadata as m; print(json.dumps({p: m.version(p) for p in sys.argv[1:]}))"
    names = sorted(set(PACKAGES.values()))
    done = subprocess.run([python, "-c", code, *names], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {}


# --------------------------------------------------------------------------------------------------------------------
# The page
# --------------------------------------------------------------------------------------------------------------------

_COLUMNS = {
    "off_breast": ("off the true place, breast, mm", 2),
    "off_outside": ("outside, mm", 2),
    "explained_breast": ("explained variation, breast", 2),
    "surface_breast": ("distance to the scan, breast, mm", 2),
    "folds_percent": ("flipped triangles, %", 3),
    "seconds": ("CPU s", 1),
    "memory": ("memory, MB", 0),
}
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


def as_markdown(runs: list[dict[str, Any]]) -> str:
    """The tables of all runs, and what was better than ours in each."""
    lines = []
    for run in runs:
        methods = run["methods"]
        lines += [f"**{run['scored']} {run['subjects']}**, settings chosen on {run['tuned_on']} other(s), template of "
                  f"{run['vertices']:,} vertices.", ""]  # fmt: skip
        wins = [
            f"{title} ({name})"
            for key, (title, _) in _COLUMNS.items()
            for name, one in methods.items()
            if name not in (*OURS, "landmarks alone")
            and one.get(key) is not None
            and methods.get("default", {}).get(key) is not None
            and one[key] != methods["default"][key]
            and (one[key] > methods["default"][key]) == (key == "explained_breast")
        ]
        lines += [f"Where a peer is better: {'; '.join(wins) if wins else 'nowhere in this run'}.", ""]
        lines.append("| method | " + " | ".join(title for title, _ in _COLUMNS.values()) + " |")
        lines.append("|---" * (1 + len(_COLUMNS)) + "|")
        for name, one in methods.items():
            cells = [
                "-" if one.get(key) is None else f"{one[key]:.{digits}f}"
                for key, (_, digits) in _COLUMNS.items()
            ]
            lines.append(f"| {OURS.get(name, name)} | " + " | ".join(cells) + " |")
        lines += ["", "Settings: " + "; ".join(
            f"{name} {json.dumps(one['settings'])}" for name, one in methods.items() if one.get("settings")
        ) + ".", ""]  # fmt: skip
        failed = [f"{name}: {why}" for name, one in methods.items() for why in one.get("failed", [])]
        lines += [f"Failed: {'; '.join(failed)}.", ""] if failed else []
        lines += [
            "Versions: " + ", ".join(f"{name} {number}" for name, number in run["versions"].items()) + ".",
            "",
        ]
    return "\n".join(lines)


def write_page(runs: list[dict[str, Any]]) -> None:
    """Renew the tables of docs/peers.md."""
    page = ROOT / "docs" / "peers.md"
    text = page.read_text(encoding="utf-8")
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    page.write_text(f"{head}{BEGIN}\n\n{as_markdown(runs)}\n{END}{tail}", encoding="utf-8")


def same(run: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two runs had the same subjects, so that their methods go into one table."""
    return all(run[name] == other[name] for name in ("subjects", "scored", "tuned_on", "vertices"))


def main() -> int:
    """Run as a peer, or compare."""
    if len(sys.argv) > 1 and sys.argv[1] == "--work":
        work(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]), json.loads(sys.argv[5]))
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="of the peers' environment")
    parser.add_argument("--folder", type=Path, help="realistic torsos with truth; phantoms otherwise")
    parser.add_argument("--n", type=int, default=2, help="subjects that are scored")
    parser.add_argument("--tune", type=int, default=1, help="other subjects that settings are chosen on")
    parser.add_argument(
        "--only", default=",".join([*OURS, *CANDIDATES]), help="comma-separated; empty: only write the page"
    )
    parser.add_argument(
        "--add", action="store_true", help="keep other runs and methods in benchmarks/peers.json"
    )
    parser.add_argument("--docs", action="store_true", help="renew the tables of docs/peers.md")
    arguments = parser.parse_args()
    kept = ROOT / "benchmarks" / "peers.json"
    before = json.loads(kept.read_text(encoding="utf-8")) if kept.is_file() and arguments.add else []
    if not arguments.only:
        write_page(json.loads(kept.read_text(encoding="utf-8")))
        return 0

    def keep(found: dict[str, Any]) -> None:
        runs = [run for run in before if not same(run, found)]
        earlier = [run["methods"] for run in before if same(run, found)]
        methods = {name: one for known in (*earlier, found["methods"]) for name, one in known.items()}
        order = [name for name in (*OURS, *CANDIDATES) if name in methods]
        runs.append(found | {"methods": {name: methods[name] for name in order}})
        kept.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
        if arguments.docs:
            write_page(runs)

    compared(arguments, keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
