"""The folder in which the documentation's examples are run: every file that an example may name, small."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from breastmorph.cohort import load_cohort
from breastmorph.mesh.files import load_mesh
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.files import save_model
from breastmorph.phantom.files import write_cohort
from breastmorph.registration.batch import register_batch
from breastmorph.registration.executors import InProcess
from breastmorph.registration.lock import locked_file
from breastmorph.registration.product import recipe
from breastmorph.scan.folder import find_scans
from breastmorph.template.files import default_template
from stand_in import write_stand_in

_SUBJECTS = 6


def docs_world(shared: Path) -> Path:
    """The folder, made once for all test processes."""
    world = shared / "docs-world"
    with locked_file(shared / "docs-world.lock"):
        if not (world / "ready").exists():
            shutil.rmtree(world, ignore_errors=True)
            _make(world)
            (world / "ready").touch()
    return world


def _make(world: Path) -> None:
    write_cohort(world, _SUBJECTS, 1, 1)
    register_batch(
        find_scans(world / "scans", world / "landmarks"),
        recipe(default_template()),
        world / "cohort",
        InProcess(),
    )
    model = build_model(load_cohort(world / "cohort"), BuildParameters())
    save_model(model, world / "model.h5")
    for name in ("scan", "torso7"):
        shutil.copy(world / "scans" / "000.ply", world / f"{name}.ply")
        shutil.copy(world / "landmarks" / "000.json", world / f"{name}.json")
    points = json.loads((world / "scan.json").read_text())
    lines = [",".join([name, *map(str, point)]) for name, point in points.items() if isinstance(point, list)]
    (world / "points.csv").write_text("\n".join(["name,x,y,z", *lines]))
    np.savetxt(world / "cloud.xyz", load_mesh(world / "scan.ply").vertices[::5], fmt="%.3f")
    missing = np.flatnonzero(
        np.linalg.norm(model.mean - model.mean[model.landmark_ids["nipple_left"]], axis=1) < 40
    )
    (world / "region.txt").write_text("\n".join(map(str, missing)))
    others = write_stand_in(model, world / "rbsm-0122.h5")
    (world / "ids.json").write_text(json.dumps(others))
    (world / "vertices.json").write_text(json.dumps(dict(model.landmark_ids)))
    shutil.copytree(
        world / "cohort" / "registered", world / "meshes", ignore=shutil.ignore_patterns("*.json")
    )
