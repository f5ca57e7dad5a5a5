"""All benchmarks in one run, and their tables in one file.

    python benchmarks/all.py [--only metrics,pca] [--out benchmarks/results.md]

Small settings, so that the whole takes less than 20 minutes on two cores; each script says how to run it larger. A part
that has nothing to work on (the realistic torsos are not in the repository) says so and the rest goes on.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
PARTS = (  # title, script with its options
    ("Closest points against trimesh", "closest_points.py"),
    ("One registration against trimesh nricp_amberg", "registration.py --peer"),
    ("Registration by truth, with presets", "registration_accuracy.py --n 6"),
    ("Realistic torsos (development set)", "torsos.py --only default"),
    ("Upright frame (development set)", "upright_frame.py --turns 2"),
    ("Principal components against scikit-learn", "pca.py"),
    ("Metrics against their definitions", "metrics.py"),
    ("Fitting against a plain Adam fit", "fitting.py --subjects 40 --unseen 3"),
    ("Editing", "editing.py --subjects 30 --unseen 1"),
    ("Models larger than memory", "out_of_core.py --subjects 1000 --components 100"),
    ("The engine against a bare loop", "scaling.py overhead"),
    ("The explorer in a browser", "explorer.py"),
)
LIBRARIES = ("numpy", "scipy", "numba", "libigl", "qdldl", "trimesh", "scikit-learn")
LONGEST = 400  # seconds of one part


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", help="names of scripts, separated by commas")
    parser.add_argument("--out", type=Path, default=HERE / "results.md")
    given = parser.parse_args()
    wanted = set(given.only.split(",")) if given.only else None
    begin, texts, failed = time.monotonic(), [head()], []
    for title, command in PARTS:
        if wanted is not None and command.split(".")[0] not in wanted:
            continue
        print(f"{title} ...", flush=True)
        output, seconds, is_good = run(command)
        if not is_good:
            failed.append(command)
        print(output, flush=True)
        texts.append(
            f"## {title}\n\n`python benchmarks/{command}` ({seconds:.0f} s)\n\n```text\n{output}\n```\n"
        )
    texts.append(f"All parts together took {(time.monotonic() - begin) / 60:.0f} minutes.\n")
    given.out.write_text("\n".join(texts), encoding="utf-8")
    print(f"Written to {given.out}" + (f"; not as wished: {', '.join(failed)}" if failed else ""))


def head() -> str:
    """Machine, versions, and how to read the rest."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        "# Benchmarks\n\nWritten by `make bench`. Ratios against a peer or a baseline in the same run count; seconds "
        "depend on the machine and on what else it does.\n\n"
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} "
        f"at the start; Python {platform.python_version()}; {libraries}.\n"
    )


def run(command: str) -> tuple[str, float, bool]:
    """Output of one script, its seconds, and whether it ended well."""
    script, *options = command.split()
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / script), *options],
            capture_output=True,
            text=True,
            timeout=LONGEST,
            cwd=HERE.parent,
            env={**os.environ, "COLUMNS": "150"},
        )
        output, is_good = done.stdout.strip() or done.stderr.strip(), done.returncode == 0
    except subprocess.TimeoutExpired as late:
        said = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        output, is_good = f"{said.strip()}\nstopped after {LONGEST} s", False
    return output, time.monotonic() - begin, is_good


if __name__ == "__main__":
    main()
