"""Scaling of batches: speed-up by processes, cost per scan as batches grow, the engine's own cost, flat memory.

    python benchmarks/scaling.py                      # all parts, about 25 minutes on two cores
    python benchmarks/scaling.py speedup --n 110      # --jobs 2 over --jobs 1 against two pure-CPU processes
    python benchmarks/scaling.py growth               # CPU seconds a scan at 10, 100 and 1,000 scans; parent's memory
    python benchmarks/scaling.py overhead             # the engine against a bare loop
    python benchmarks/scaling.py cohort --full        # packing and reading 5,000 subjects of 30,328 vertices

CPU time is measured where other work on the machine would spoil wall time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import numpy as np

from breastmorph.batch import product
from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import InProcess, LocalProcesses
from breastmorph.batch.product import Recipe
from breastmorph.batch.registered_folder import Outcome
from breastmorph.batch.stretch import unexplained_stretch
from breastmorph.cohort import load_cohort
from breastmorph.foundation.files import file_hash
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.phantom import write_cohort
from breastmorph.registration import Registrar
from breastmorph.scan.check import CheckParameters, find_scans
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import Landmarks
from breastmorph.template import Template, default_template, template_hash, to_npz
from measuring import compare, peak_memory

SPEEDUP_SHARE = 0.9  # of what two pure-CPU processes reach
GROWTH = 0.10  # CPU a scan may differ by between batch sizes
OVERHEAD = 0.020  # seconds a scan
PARENT_GROWTH = 8.0  # KB a scan that the parent may keep: its row of the summary
COHORT_GROWTH = 60.0  # MB from the smallest to the largest cohort
_QUIET = 1.2  # times the shortest: more variation means that others used the machine
PURE_CPU = "import time\nn = 0\nwhile n < 30_000_000: n += 1\n"
CHECK = CheckParameters(mean_edge=20.0)  # lets the tiny scans pass


# -- measuring -------------------------------------------------------------------------------------------------


def wall_of(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def own_memory() -> float:
    """MB this process holds for itself; pages mapped from files do not count, the system takes them back freely."""
    try:
        text = Path("/proc/self/status").read_text()
        return int(text.split("RssAnon:")[1].split()[0]) / 1024
    except (OSError, IndexError):
        return peak_memory()


def in_fresh_process(*arguments: object) -> dict[str, Any]:
    """Run one of the ``CHILDREN`` in a process of its own; what it returns."""
    command = [sys.executable, __file__, "child", *map(str, arguments)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def verdict(good: bool) -> str:
    return "ok" if good else "MISSED"


# -- cohorts ---------------------------------------------------------------------------------------------------


def tiny_template() -> Template:
    """The default template's coarse twin: 646 vertices."""
    full = default_template()
    return Template(full.coarse, full.coarse_landmark_ids, full.coarse, full.coarse_landmark_ids)


def write_tiny_scans(folder: Path, n: int) -> None:
    """Smoothly bent torsos on the tiny template, with landmarks beside them."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    template = tiny_template()
    ids = list(template.landmark_ids.values())
    for k in range(n):
        waves = np.cos(template.mesh.vertices @ rng.normal(scale=0.01, size=(3, 4)) + rng.uniform(0, 6, 4))
        shape = template.mesh.vertices + waves @ rng.normal(scale=4.0, size=(4, 3))
        save_mesh(template.mesh.with_vertices(shape), folder / f"{k:04d}.ply")
        save_landmarks(Landmarks(tuple(template.landmark_ids), shape[ids]), folder / f"{k:04d}.json")


def phantom_scans(arguments: argparse.Namespace, place: Path, n: int) -> Path:
    """The user's phantom cohort, or a new one."""
    if arguments.phantom is not None:
        return Path(arguments.phantom)
    print(f"making a phantom cohort of {n} ...", flush=True)
    write_cohort(place / "phantom", n, 1)
    return place / "phantom"


# -- speed-up --------------------------------------------------------------------------------------------------


def speedup(arguments: argparse.Namespace, place: Path) -> bool:
    """Two processes over one, against what two pure-CPU processes gain at the same time on this machine."""
    cohort = phantom_scans(arguments, place, arguments.n)
    some = place / "some"
    for kind in ("scans", "landmarks"):
        (some / kind).mkdir(parents=True)
        for path in sorted((cohort / kind).iterdir())[: arguments.n]:
            os.symlink(path.resolve(), some / kind / path.name)

    def pure(processes: int) -> None:
        started = [subprocess.Popen([sys.executable, "-c", PURE_CPU]) for _ in range(processes)]
        for process in started:
            process.wait()

    def register(jobs: int, out: str) -> None:
        start = "from breastmorph.cli import main; main()"
        command = [sys.executable, "-c", start, "register", some / "scans", "--landmarks", some / "landmarks"]
        options = ["--out", place / out, "--jobs", str(jobs), "--json"]
        done = subprocess.run([*command, *options], capture_output=True, text=True)
        counts.append(json.loads(done.stdout)["counts"])

    counts: list[dict[str, int]] = []
    walls: dict[int, list[float]] = {1: [], 2: []}
    alone: dict[int, list[float]] = {1: [], 2: []}
    pure(1)
    for turn, jobs in enumerate((1, 2, 2, 1)):  # there and back, so that a changing load cancels out
        for processes in (1, 2, 2, 1):
            alone[processes].append(wall_of(lambda processes=processes: pure(processes)))
        walls[jobs].append(wall_of(lambda jobs=jobs, turn=turn: register(jobs, f"out{turn}")))
    possible = 2.0 * float(np.sum(alone[1]) / np.sum(alone[2]))
    reached = float(np.sum(walls[1]) / np.sum(walls[2]))
    share = reached / possible
    good = share >= SPEEDUP_SHARE
    times = {jobs: " and ".join(f"{wall:.0f}" for wall in found) for jobs, found in walls.items()}
    print(f"\n{arguments.n} phantom scans: --jobs 1 {times[1]} s, --jobs 2 {times[2]} s; {counts[0]}")
    print(f"speed-up {reached:.2f}; two pure-CPU processes in the same run {possible:.2f}")
    print(f"share {share:.2f} (at least {SPEEDUP_SHARE}) {verdict(good)}")
    if max(alone[1]) > _QUIET * min(alone[1]):
        ratio = max(alone[1]) / min(alone[1])
        print(
            f"the machine was not quiet: the same pure-CPU job took up to {ratio:.1f} times its shortest time"
        )
    return good and all(count["registered"] + count["failed"] == arguments.n for count in counts)


# -- growth ----------------------------------------------------------------------------------------------------


def growth(arguments: argparse.Namespace, place: Path) -> bool:
    """CPU seconds a scan as the batch grows, and what the parent keeps of each."""
    sizes = (10, 100, arguments.large)
    write_tiny_scans(place / "tiny", max(sizes))
    in_fresh_process("batch", place / "tiny", 2, place / "warm")  # compiles
    found: dict[int, list[float]] = {n: [] for n in sizes}
    memory: list[float] = []
    for step, n in enumerate((*sizes, *sizes[-2::-1])):  # there and back, so that a changing load cancels out
        for k in range(5 if n < 50 else 1):  # ten scans are over too soon to be measured once
            run = in_fresh_process("batch", place / "tiny", n, place / f"out{step}-{k}")
            found[n].append(run["cpu"])
            memory = run["memory"] if n == sizes[-1] else memory
    costs = [float(np.mean(found[n])) for n in sizes]
    print("\ntiny template, one worker process; starting up not counted")
    for n, cost in zip(sizes, costs, strict=True):
        print(f"{n:6d} scans: {1000 * cost:6.1f} CPU-ms a scan")
    spread = max(costs) / min(costs) - 1.0
    half = len(memory) // 2
    kept = 1024 * (memory[-1] - memory[half]) / (sizes[-1] / 2)
    good = spread <= GROWTH and kept <= PARENT_GROWTH
    print(f"spread {100 * spread:.0f} % (at most {100 * GROWTH:.0f}) {verdict(spread <= GROWTH)}")
    print(f"parent: {memory[0]:.0f} MB at first, {memory[-1]:.0f} MB at last;", end=" ")
    print(f"it keeps {kept:.1f} KB a scan (at most {PARENT_GROWTH:g}) {verdict(kept <= PARENT_GROWTH)}")
    return good


def child_batch(folder: str, n: str, out: str) -> dict[str, Any]:
    """Register tiny scans in one worker process, watching the CPU time of both and the parent's memory."""
    memory: list[float] = []
    cpu: list[float] = []

    def done(outcome: Outcome) -> None:
        if outcome.status == "failed":
            raise RuntimeError(outcome.message)
        memory.append(own_memory())
        cpu.append(time.process_time() + sum(cpu_of(process.pid) for process in active_children()))

    found = find_scans(Path(folder))[: int(n)]
    register_batch(found, Recipe(tiny_template(), check=CHECK), Path(out), LocalProcesses(1), on_done=done)
    return {
        "memory": memory[:: max(1, len(memory) // 20)] + memory[-1:],
        "cpu": (cpu[-1] - cpu[0]) / (len(cpu) - 1),
    }


def cpu_of(process: int | None) -> float:
    """CPU seconds of a running process (Linux)."""
    times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


# -- overhead --------------------------------------------------------------------------------------------------


def overhead(arguments: argparse.Namespace, place: Path) -> bool:
    """What the engine adds to reading, checking and registering: hashes, files, the record, the summary."""
    n = arguments.few
    cohort = phantom_scans(arguments, place, n)
    found = find_scans(cohort / "scans", cohort / "landmarks")[:n]
    rules = Recipe(default_template())
    register_batch(found[:1], rules, place / "warm", InProcess())  # compiles
    inside = 0.0

    def timed(work: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            nonlocal inside
            begin = time.process_time()
            try:
                return work(*values, **named)
            finally:
                inside += time.process_time() - begin

        return call

    # Timed within the run: the difference of two runs would drown in the noise of a loaded machine.
    product.check_scan = timed(product.check_scan)
    product.Registrar.register = timed(Registrar.register)  # type: ignore[method-assign]
    product.Registrar.__init__ = timed(Registrar.__init__)  # type: ignore[method-assign]
    own = []
    for count in (1, n):
        inside, begin = 0.0, time.process_time()
        register_batch(found[:count], rules, place / f"engine{count}", InProcess())
        own.append(time.process_time() - begin - inside)
    added = (own[1] - own[0]) / (n - 1)
    good = added <= OVERHEAD
    print(
        f"\n{n} phantom scans in one process: {1000 * inside / n:.0f} CPU-ms a scan to read, check and register"
    )
    print(
        f"the engine adds {1000 * added:.1f} ms a scan (at most {1000 * OVERHEAD:.0f}) {verdict(good)}",
        end="",
    )
    print(f" and {own[0] - added:.2f} s a run")
    compare("one scan of a batch", "CPU s", inside / n + added, "a bare loop", inside / n)
    clocks = _clocks()
    again = register_batch(found, rules, place / f"engine{n}", InProcess())
    cpu, wall = (now - then for now, then in zip(_clocks(), clocks, strict=True))
    print(f"a second run takes {cpu:.2f} CPU-s ({wall:.2f} s) to see that nothing is to do")
    return good and all(outcome.status == "unchanged" for outcome in again)


def _clocks() -> tuple[float, float]:
    return time.process_time(), time.perf_counter()


# -- cohort ----------------------------------------------------------------------------------------------------


def cohort_file(arguments: argparse.Namespace, place: Path) -> bool:
    """Packing and reading large cohorts of the default template's size, with flat memory."""
    sizes = (100, 1000, 5000) if arguments.full else (100, 500)
    peaks = []
    print()
    for n in sizes:
        folder = place / f"cohort{n}"
        write_registered(folder, n)
        run = in_fresh_process("cohort", folder)
        peaks.append(max(run["packing_memory"], run["reading_memory"]))
        print(
            f"{n:6d} subjects of {run['vertices']:,} vertices ({run['megabytes']:,.0f} MB): "
            f"packed in {run['packing']:.1f} s, {1000 * run['packing'] / n:.1f} ms each; "
            f"opened again in {run['opening']:.2f} s, read in {run['reading']:.1f} s, flags in {run['flags']:.1f} s"
        )
        steps = ", ".join(
            f"{step} {run[f'{step}_memory']:.0f}" for step in ("start", "packing", "reading", "flags")
        )
        print(f"       own memory in MB: {steps}", flush=True)
    grown = peaks[-1] - peaks[0]
    good = grown <= COHORT_GROWTH
    print(
        f"memory grows by {grown:.0f} MB from {sizes[0]} to {sizes[-1]} (at most {COHORT_GROWTH:.0f}) {verdict(good)}"
    )
    return good


def write_registered(folder: Path, n: int) -> None:
    """A registered folder of ``n`` subjects; eight meshes under many names, so that the disk holds few of them."""
    template = default_template()
    (folder / "registered").mkdir(parents=True)
    (folder / "template.npz").write_bytes(to_npz(template))
    rng = np.random.default_rng(0)
    common = {"to_file": Similarity().as_dict(), "absent_side": "", "template": template_hash(template)}
    digests = []
    for k in range(n):
        path = folder / "registered" / f"{k:05d}.ply"
        if k < 8:
            shape = template.mesh.vertices * (1.0 + 0.1 * rng.normal(size=3))
            save_mesh(template.mesh.with_vertices(shape), path)
            digests.append(file_hash(path))
        else:
            os.link(folder / "registered" / f"{k % 8:05d}.ply", path)
        record = {"id": path.stem, "outputs": {path.name: digests[k % 8]}, **common}
        path.with_suffix(".json").write_text(json.dumps(record))


def child_cohort(folder: str) -> dict[str, Any]:
    """Pack, open and read a cohort, watching memory."""
    start = own_memory()
    packing: list[float] = []
    begin = time.perf_counter()
    load_cohort(Path(folder), on_packed=lambda done, total: packing.append(own_memory()))
    packed = time.perf_counter()
    cohort = load_cohort(Path(folder))
    opened = time.perf_counter()
    mean = np.zeros((cohort.template.mesh.n_vertices, 3))
    reading = []
    for shape in cohort.shapes():
        mean += shape / len(cohort)
        reading.append(own_memory())
    read = time.perf_counter()
    unexplained_stretch(cohort.shapes(), cohort.template, cohort.absent)
    return {
        "vertices": cohort.template.mesh.n_vertices,
        "megabytes": cohort.packed.nbytes / 1e6,
        "packing": packed - begin,
        "opening": opened - packed,
        "reading": read - opened,
        "flags": time.perf_counter() - read,
        "start_memory": start,
        "packing_memory": max(packing),
        "reading_memory": max(reading),
        "flags_memory": own_memory(),
    }


PARTS = {"speedup": speedup, "growth": growth, "overhead": overhead, "cohort": cohort_file}
CHILDREN = {"batch": child_batch, "cohort": child_cohort}


def main() -> int:
    """Measure and judge."""
    if sys.argv[1:2] == ["child"]:
        print(json.dumps(CHILDREN[sys.argv[2]](*sys.argv[3:])))
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all when none is given")
    parser.add_argument("--n", type=int, default=110, help="scans of the speed-up")
    parser.add_argument("--few", type=int, default=16, help="scans of the overhead")
    parser.add_argument("--large", type=int, default=1000, help="scans of the largest batch")
    parser.add_argument("--full", action="store_true", help="a cohort of 5,000")
    parser.add_argument("--phantom", help="a phantom cohort that is already there")
    arguments = parser.parse_args()
    good = True
    for part in arguments.parts or PARTS:
        with tempfile.TemporaryDirectory() as place:
            good &= PARTS[part](arguments, Path(place))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
