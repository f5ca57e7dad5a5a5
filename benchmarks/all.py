"""All benchmarks in one run, and their tables in one file.

    python benchmarks/all.py [--only metrics,pca] [--out benchmarks/results.md]

Small settings, so that the whole takes less than 20 minutes on two cores; each script says how to run it larger. A part
that has nothing to work on (the realistic torsos are not in the repository) says so and the rest goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from measuring import NOTES

HERE = Path(__file__).parent
PARTS = (  # title, script with its options
    ("Closest points against trimesh", "closest_points.py"),
    ("Mesh files against trimesh and meshio", "mesh_files.py"),
    ("One registration against trimesh nricp_amberg", "registration.py --peer"),
    ("A scan of millions of faces", "dense_scan.py"),
    ("Registration by truth, with presets", "registration_accuracy.py --n 6 --peer 1"),
    ("Realistic torsos (development set)", "torsos.py --only default"),
    ("Upright frame (development set)", "upright_frame.py --turns 2"),
    ("Landmarks found by the program", "landmarks.py --n 5 --only phantom,phantom-coloured"),
    ("Principal components against scikit-learn", "pca.py"),
    ("Metrics against their definitions", "metrics.py"),
    ("Fitting against a plain Adam fit", "fitting.py --subjects 40 --unseen 3"),
    ("Editing", "editing.py --subjects 30 --unseen 1"),
    ("Prediction against mirroring", "prediction.py --n 24 --one-sided 6 --evidence surface"),
    ("Models larger than memory", "out_of_core.py --subjects 1000 --components 100"),
    ("The engine against a bare loop", "scaling.py overhead"),
    ("The explorer in a browser", "explorer.py"),
)
LIBRARIES = ("numpy", "scipy", "numba", "libigl", "qdldl", "trimesh", "meshio", "scikit-learn")
LONGEST = 600  # seconds of one part


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="names of scripts, separated by commas")
    parser.add_argument("--out", type=Path, default=HERE / "results.md")
    given = parser.parse_args()
    wanted = set(given.only.split(",")) if given.only else None
    begin, texts, failed = time.monotonic(), [], []
    rows: list[dict[str, Any]] = []
    for title, command in PARTS:
        if wanted is not None and command.split(".")[0] not in wanted:
            continue
        print(f"{title} ...", flush=True)
        output, seconds, is_good, compared = run(command)
        rows += compared
        if not is_good:
            failed.append(command)
        print(output, flush=True)
        texts.append(
            f"## {title}\n\n`python benchmarks/{command}` ({seconds:.0f} s)\n\n```text\n{output}\n```\n"
        )
    missed = f" A limit of their own was missed by: {', '.join(failed)}." if failed else ""
    texts.append(f"All parts together took {(time.monotonic() - begin) / 60:.0f} minutes.{missed}\n")
    given.out.write_text("\n".join([head(), *comparisons(rows), *texts]), encoding="utf-8")
    print(f"Written to {given.out}.{missed}")


def head() -> str:
    """Machine, versions, and how to read the rest."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        "# Results\n\nWritten by `make bench`. Ratios against a peer or a baseline in the same run count; seconds "
        "depend on the machine and on what else it does.\n\n"
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} "
        f"at the start; Python {platform.python_version()}; {libraries}.\n"
    )


def comparisons(rows: list[dict[str, Any]]) -> list[str]:
    """Two tables: where a peer is better, and where it is not. Less is better in every row."""
    worse = [row for row in rows if row["theirs"] < row["ours"]]
    better = [row for row in rows if row["theirs"] >= row["ours"]]
    return [
        "## Where a peer is better\n\nEvery comparison of this run in which the peer has the smaller figure.\n",
        table(worse, "peer is ... times smaller", lambda row: row["ours"] / row["theirs"]),
        "## Where BreastMorph is better\n",
        table(better, "peer is ... times larger", lambda row: row["theirs"] / row["ours"]),
    ]


def table(rows: list[dict[str, Any]], title: str, ratio: Callable[[dict[str, Any]], float]) -> str:
    """Comparisons as a table."""
    lines = [f"| job | peer | BreastMorph | peer's | {title} |", "|---|---|---|---|---|"]
    for row in rows:
        own, other = (f"{row[key]:.3g} {row['unit']}" for key in ("ours", "theirs"))
        lines.append(f"| {row['what']} | {row['peer']} | {own} | {other} | {ratio(row):.3g} |")
    return "\n".join(lines) + "\n"


def run(command: str) -> tuple[str, float, bool, list[dict[str, Any]]]:
    """Output of one script, its seconds, whether it ended well, and its comparisons with peers."""
    script, *options = command.split()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        notes = Path(place) / "comparisons.jsonl"
        notes.touch()
        try:
            done = subprocess.run(
                [sys.executable, str(HERE / script), *options],
                capture_output=True,
                text=True,
                timeout=LONGEST,
                cwd=HERE.parent,
                env={**os.environ, "COLUMNS": "150", NOTES: str(notes)},
            )
            output, is_good = done.stdout.strip() or done.stderr.strip(), done.returncode == 0
        except subprocess.TimeoutExpired as late:
            said = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
            output, is_good = f"{said.strip()}\nstopped after {LONGEST} s", False
        compared = [json.loads(line) for line in notes.read_text(encoding="utf-8").splitlines()]
    return output, time.monotonic() - begin, is_good, compared


if __name__ == "__main__":
    main()
