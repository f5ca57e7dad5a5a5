"""Results that a change of the code's structure must not move: hashes of what the commands write.

    python scripts/frozen.py --out build/frozen                      # hashes of this tree, build/frozen/hashes.json
    python scripts/frozen.py --out build/frozen --against old.json   # and what differs from another tree's
    python scripts/frozen.py --src old/src --out build/old           # the same commands of another tree
    python scripts/frozen.py --quick --out build/frozen              # 6 phantoms instead of 30

Meshes, arrays and tables are hashed as bytes, models by their arrays, JSON by its numbers; sentences, times and
versions are left out. ``--torsos FOLDER`` registers six scans of a folder with ``scans/`` and ``landmarks/`` as well.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

ROOT = Path(__file__).parents[1]
HASHED = (".ply", ".stl", ".obj", ".csv", ".npz", ".json", ".h5")
# What may differ between two runs of the same code, or is text.
LEFT_OUT = {
    "made",
    "seconds",
    "timings",
    "version",
    "warnings",
    "peak_memory_mb",
    "written",
    "inputs",
    "software",
}


def numbers(value: Any, at: str = "") -> Iterator[str]:
    """Every number and truth value of a JSON document with the place where it stands."""
    if isinstance(value, dict):
        for key in sorted(value):
            if key not in LEFT_OUT:
                yield from numbers(value[key], f"{at}/{key}")
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from numbers(one, f"{at}/{place}")
    elif not isinstance(value, str):
        yield f"{at}={value!r}"


def digest(path: Path) -> str:
    """The hash of a file's content, without what may differ between two runs."""
    made = hashlib.sha256()
    if path.suffix == ".json":
        made.update("\n".join(numbers(json.loads(path.read_text(encoding="utf-8")))).encode())
    elif path.suffix == ".h5":
        with h5py.File(path) as file:
            arrays: dict[str, Any] = {}
            file.visititems(
                lambda name, one: arrays.update({name: one[()]}) if isinstance(one, h5py.Dataset) else None
            )
        for name in sorted(arrays):
            if getattr(arrays[name], "dtype", np.dtype("O")).kind in "fiub":
                made.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    elif path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            for name in sorted(arrays):
                if arrays[name].dtype.kind in "fiub":
                    made.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    elif path.suffix == ".csv":
        rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))
        kept = [place for place, name in enumerate(rows[0]) if name not in LEFT_OUT]
        made.update("\n".join(",".join(row[place] for place in kept) for row in rows).encode())
    else:
        made.update(path.read_bytes())
    return made.hexdigest()[:16]


class Commands:
    """The commands of one tree, run in one folder."""

    def __init__(self, src: Path, out: Path) -> None:
        self.out = out
        self.environment = {**os.environ, "PYTHONPATH": str(src), "OPENBLAS_NUM_THREADS": "1"}

    def run(self, *words: object) -> None:
        """Run one command, or end with what it said."""
        texts = [str(word) for word in words]
        print(" ".join(texts), flush=True)
        done = subprocess.run(
            [sys.executable, "-m", "breastmorph", *texts],
            cwd=self.out,
            env=self.environment,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(texts)}\n{done.stdout}\n{done.stderr}")


def make(commands: Commands, quick: bool, torsos: Path | None) -> None:
    """Run every command whose result must stay."""
    n, few = (6, 2) if quick else (30, 5)
    run = commands.run
    run("phantom", "--n", n, "--seed", 4242, "--out", "cohort")
    run("register", "cohort/scans", "--landmarks", "cohort/landmarks", "--out", "registered")
    if torsos is not None:
        names = sorted((torsos / "scans").iterdir())[:6]
        for scan in names:
            run("register", scan, "--landmarks", torsos / "landmarks", "--out", f"torsos/{scan.stem}")
    run("build", "registered", "-o", "model.h5")
    run("evaluate", "model.h5", "--cohort", "registered", "--json")
    run("measure", "registered", "--csv", "measures.csv")
    ids = [path.stem for path in sorted((commands.out / "registered" / "registered").glob("*.ply"))][:few]
    for place, name in enumerate(ids):
        mesh, side = f"registered/registered/{name}.ply", ("left", "right")[place % 2]
        words = ("--replace", "--no-sheet", "--out", f"predicted/{name}")
        run("predict", "model.h5", mesh, "--missing", side, *words)
        edits = [("--set", "volume-left=+80cc"), ("--set", "SN-NL=-10mm", "--hold", "thorax")]
        for k, edit in enumerate(edits):
            run("edit", "model.h5", "--registered", mesh, *edit, "--no-sheet", "--out", f"edited/{name}-{k}")
    run("phantom", "--n", few, "--seed", 5, "--one-sided", few, "--out", "one-sided")
    for scan in sorted((commands.out / "one-sided" / "scans").iterdir()):
        marks = commands.out / "one-sided" / "landmarks" / f"{scan.stem}.json"
        side = "left" if "nipple_right" in marks.read_text(encoding="utf-8") else "right"
        words = (
            "--landmarks",
            marks,
            "--missing",
            side,
            "--no-sheet",
            "--out",
            f"predicted/lost-{scan.stem}",
        )
        run("predict", "model.h5", scan, *words)
    run("phantom", "--n", few, "--seed", 7, "--visits", 2, "--out", "visits")
    for scan in sorted((commands.out / "visits" / "scans").glob("*_1.ply")):
        later = scan.with_name(scan.name.replace("_1", "_2"))
        run("compare", scan, later, "--landmarks", "visits/landmarks", "--out", f"compared/{scan.stem}")


def main() -> None:
    """Make, hash and compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--src", type=Path, default=ROOT / "src")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--torsos", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    out = options.out.resolve()
    if out.exists() and any(out.iterdir()):
        raise SystemExit(f"{out} is not empty")
    out.mkdir(parents=True, exist_ok=True)
    torsos = None if options.torsos is None else options.torsos.resolve()
    make(Commands(options.src.resolve(), out), options.quick, torsos)
    written = [path for path in sorted(out.rglob("*")) if path.suffix in HASHED]
    # What a folder keeps of its own files, by their times, is not a result.
    found = {path.relative_to(out).as_posix(): digest(path) for path in written if "shapes-" not in path.name}
    (out / "hashes.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"{len(found)} files hashed: {out / 'hashes.json'}")
    if options.against is not None:
        before = json.loads(options.against.read_text(encoding="utf-8"))
        differ = sorted(name for name in {*before, *found} if before.get(name) != found.get(name))
        print("\n".join(differ) or f"all {len(before)} the same")
        raise SystemExit(bool(differ))


if __name__ == "__main__":
    main()
