"""Model metrics: CPU seconds on one core against the definitions, and whether both give the same.

    python benchmarks/metrics.py [--cohort REGISTERED] [--subjects 110] [--samples 1000]

Without ``--cohort`` (the --out of `breastmorph register`) the shapes are synthetic: the default template bent by smooth
waves whose variances fall as those of a registered cohort do. The definitions are run on two left-out subjects, and on
two samples at ten counts, and scaled to the whole job.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from breastmorph.cohort import Cohort, load_cohort
from breastmorph.evaluation.generalization import leave_one_out
from breastmorph.evaluation.specificity import draw_coefficients, specificity
from breastmorph.evaluation.training_set import training_set
from breastmorph.foundation.arrays import Floats
from breastmorph.model.building import build_model, principal_components
from breastmorph.model.shape_model import ShapeModel
from breastmorph.template import default_template
from measuring import compare, cpu_seconds, peak_memory

LIMITS = {"PCA": 0.5, "leave-one-out": 8.0, "specificity": 60.0}  # seconds, 110 subjects, 1,000 samples
SAME = 1e-4  # mm
REPEATS = 3  # of the PCA: the first pass also pays for fetching the shapes
NAIVE_FOLDS, NAIVE_SAMPLES, NAIVE_COUNTS = 2, 2, 10


def synthetic(subjects: int, seed: int = 0) -> Cohort:
    """Subjects as smooth bendings of the default template, sd 12 mm; 20 modes hold about 95 % of the variance."""
    rng = np.random.default_rng(seed)
    template = default_template()
    points = template.mesh.vertices
    sizes = 6.5 * np.exp(-np.arange(2 * subjects) / 14.0) + 0.1
    shapes = np.repeat(points[None], subjects, axis=0).astype(np.float32)
    for size in sizes:
        wave = np.cos(points @ rng.normal(scale=1 / 120.0, size=3) + rng.uniform(0, 6))
        direction = rng.normal(size=3)
        direction *= size / np.linalg.norm(direction)
        shapes += rng.normal(size=(subjects, 1, 1)) * (wave[:, None] * direction)
    return Cohort.of(shapes, template)


def naive_fold(shapes: Floats, subject: int) -> Floats:
    """One left-out subject by the definition: a model of the others, a reconstruction per count, (c,)."""
    others = np.delete(shapes, subject, axis=0).reshape(len(shapes) - 1, -1)
    mean = others.mean(axis=0)
    centred = others - mean
    values, vectors = np.linalg.eigh(centred @ centred.T)
    q = len(others) - 1
    basis = centred.T @ (vectors[:, ::-1][:, :q] / np.sqrt(values[::-1][:q]))
    deviation = shapes[subject].ravel() - mean
    out = []
    for m in range(q + 1):
        left = deviation - basis[:, :m] @ (basis[:, :m].T @ deviation)
        out.append(np.linalg.norm(left.reshape(-1, 3), axis=1).mean())
    return np.array(out)


def naive_sample(model: ShapeModel, shapes: Floats, coefficients: Floats) -> float:
    """One sample by the definition: its distance to every shape."""
    sample = model.instance(coefficients)
    return float(min(np.linalg.norm(sample - shape, axis=1).mean() for shape in shapes))


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--cohort", type=Path, help="a folder of registered scans instead of synthetic shapes"
    )
    parser.add_argument("--subjects", type=int, default=110)
    parser.add_argument("--samples", type=int, default=1000)
    arguments = parser.parse_args()
    cohort = load_cohort(arguments.cohort) if arguments.cohort else synthetic(arguments.subjects)
    build_seconds, model = cpu_seconds(lambda: build_model(cohort))
    training = training_set(model, cohort)
    shapes = training.shapes
    k, n = shapes.shape[:2]
    source = arguments.cohort or "synthetic shapes"
    print(f"{k} subjects x {n:,} vertices ({source}), one core, CPU seconds")
    print(f"build_model with alignment: {build_seconds:.2f} s\n")

    mean = shapes.mean(axis=0)
    seconds = {}
    flat = [(k, lambda ids: shapes[:, ids] - mean[ids])]
    seconds["PCA"], _ = cpu_seconds(lambda: principal_components(flat, np.arange(n), k - 1), REPEATS)
    whole = {"whole": np.ones(n, bool)}
    seconds["leave-one-out"], curve = cpu_seconds(lambda: leave_one_out(shapes, whole)["whole"])
    specificity(model, shapes, whole, 1)  # compiles
    seconds["specificity"], near = cpu_seconds(
        lambda: specificity(model, shapes, whole, arguments.samples)["whole"]
    )

    folds = np.linspace(0, k - 1, NAIVE_FOLDS).astype(int)
    fold_seconds, slow = cpu_seconds(lambda: np.array([naive_fold(shapes, i) for i in folds]))
    q = model.n_components
    counts = np.unique(np.linspace(1, q, NAIVE_COUNTS).astype(int))
    drawn = draw_coefficients(model, arguments.samples, 0)[:NAIVE_SAMPLES]
    sample_seconds, rows = cpu_seconds(
        lambda: np.array([[naive_sample(model, shapes, row[:m]) for m in counts] for row in drawn])
    )
    naive = {
        "leave-one-out": fold_seconds * k / len(folds),
        "specificity": sample_seconds * arguments.samples * q / rows.size,
    }
    differences = {
        "leave-one-out": float(np.abs(slow - curve.values[folds]).max()),
        "specificity": float(np.abs(rows - near.values[: len(drawn), counts - 1]).max()),
    }
    jobs = {
        "PCA": "all components",
        "leave-one-out": f"0 to {k - 2} components",
        "specificity": f"{len(near.values):,} samples x {q} counts",
    }
    good = True
    print("job | what | seconds | limit | definition (scaled) | ratio | largest difference mm")
    for name, what in jobs.items():
        row = [name, what, f"{seconds[name]:.2f}", f"{LIMITS[name]:g}"]
        good &= seconds[name] <= LIMITS[name]
        if name in naive:
            row += [
                f"{naive[name]:,.0f} s",
                f"{naive[name] / seconds[name]:,.0f} x",
                f"{differences[name]:.1e}",
            ]
            good &= differences[name] <= SAME
            compare(name, "CPU s", seconds[name], "the definition as a loop, scaled", naive[name])
        print(" | ".join(row))
    print(f"\npeak memory {peak_memory():.0f} MB (the definitions included)")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
