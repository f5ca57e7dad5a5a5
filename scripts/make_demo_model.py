"""Make src/breastmorph/data/demo_model.npz: a model of registered phantom scans on the default template.

    python scripts/make_demo_model.py

Takes some minutes: the phantom's subjects are scanned and registered as anybody's would be, so that the demo model
knows the small errors that registrations have. A model of the true shapes would refuse every real scan as unlike any
of its subjects.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from breastmorph.batch.engine import register_batch
from breastmorph.batch.executors import LocalProcesses
from breastmorph.batch.product import Recipe
from breastmorph.cohort import load_cohort
from breastmorph.foundation.files import write_file
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.demo_model import from_bytes, to_bytes
from breastmorph.phantom.scanner import write_cohort
from breastmorph.scan.check import find_scans
from breastmorph.template import default_template

SUBJECTS, SEED = 48, 2024
OUT = Path(__file__).parents[1] / "src" / "breastmorph" / "data" / "demo_model.npz"


def main() -> None:
    """Scan, register, build and write, and print its figures."""
    with tempfile.TemporaryDirectory() as folder:
        scans, registered = Path(folder) / "phantom", Path(folder) / "registered"
        write_cohort(scans, SUBJECTS, SEED)
        found = find_scans(scans / "scans", scans / "landmarks")
        outcomes = register_batch(found, Recipe(default_template()), registered, LocalProcesses(1))
        print(f"{sum(one.status == 'registered' for one in outcomes)} of {len(found)} registered")
        model = build_model(load_cohort(registered), BuildParameters(keep_scores=True))
    data = to_bytes(model)
    write_file(OUT, data)
    again = from_bytes(data)
    off = again.instance(model.deviations) - model.instance(model.deviations)
    print(
        f"{OUT.name}: {len(data) / 1e6:.2f} MB, {model.n_components} modes of {SUBJECTS} subjects; "
        f"rounding {np.linalg.norm(off, axis=1).mean():.3f} mm with all modes at one standard deviation"
    )


if __name__ == "__main__":
    main()
