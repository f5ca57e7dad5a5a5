"""A model of 5,000 subjects that do not fit into memory: peak memory and CPU seconds on one core.

    python benchmarks/out_of_core.py [--subjects 5000] [--components 200] [--folder DIR]

Synthetic registered subjects (the default template, 150 smooth modes, noise, and a similarity each) are written to a
packed file by a process of their own, so that the memory measured is that of building alone. It includes the pages of
the file that the system keeps mapped. The baseline is the memory that the same data take as one array of 64-bit floats.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.files import save_model
from breastmorph.template import default_template
from measuring import cpu_seconds, peak_memory

MEMORY = 4.0  # GB
MODES = 150
NOISE = 0.2  # mm


def smooth_modes(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Displacements that vary smoothly over the torso, (MODES, n, 3), mm."""
    waves = rng.normal(scale=1 / 15.0, size=(MODES, 3))
    phases = rng.uniform(0, 2 * np.pi, (MODES, 1))
    directions = rng.normal(size=(MODES, 1, 3))
    sizes = 8.0 * 0.98 ** np.arange(MODES)
    fields = np.cos(waves @ points.T + phases)[:, :, None] * directions
    return (sizes[:, None, None] * fields).astype(np.float32)


def write_subjects(path: Path, subjects: int) -> None:
    """Draw subjects one after the other into a packed file."""
    rng = np.random.default_rng(1)
    template = default_template().mesh.vertices
    modes = smooth_modes(template, rng).reshape(MODES, -1)
    shape = (subjects, len(template), 3)
    packed = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    for k in range(subjects):
        body = template + (rng.standard_normal(MODES).astype(np.float32) @ modes).reshape(-1, 3)
        body += rng.normal(scale=NOISE, size=body.shape)
        turn = rotation_about(rng.normal(size=3), rng.normal(scale=8.0))
        packed[k] = Similarity(turn, rng.normal(scale=20.0, size=3), rng.uniform(0.8, 1.2)).apply(body)
    packed.flush()


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--subjects", type=int, default=5000)
    parser.add_argument("--components", type=int, default=200)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        write_subjects(arguments.write, arguments.subjects)
        return 0
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "shapes.npy"
        subprocess.run(
            [sys.executable, __file__, "--write", str(path), "--subjects", str(arguments.subjects)],
            check=True,
        )
        packed = np.load(path, mmap_mode="r")
        cohort = replace(Cohort.of(packed[:1], default_template()), packed=packed)
        cohort = replace(
            cohort,
            ids=tuple(f"{k:05d}" for k in range(len(packed))),
            rows=np.arange(len(packed)),
            to_file=cohort.to_file * len(packed),
            absent=("",) * len(packed),
            table=({},) * len(packed),
        )
        parameters = BuildParameters(components=arguments.components)
        seconds, model = cpu_seconds(lambda: build_model(cohort, parameters))
        save_model(model, Path(folder) / "model.h5")
    peak = peak_memory() / 1024
    whole = packed.size * 8 / 1024**3
    share = model.variances.sum() / model.info["total_variance"]
    print(f"{len(packed):,} subjects of {model.n_vertices:,} vertices, {model.n_components} components")
    print(f"alignment {model.info['removed']['iterations']} iterations; variance held {100 * share:.2f} %")
    print(f"CPU seconds     {seconds:8.0f}")
    print(f"peak memory     {peak:8.2f} GB (at most {MEMORY})")
    print(f"data as float64 {whole:8.2f} GB, which an in-memory model needs at least twice")
    return 0 if peak <= MEMORY and model.n_components == arguments.components else 1


if __name__ == "__main__":
    sys.exit(main())
