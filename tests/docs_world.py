"""The folder in which the documentation's examples are run: every file that an example may name, small."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from breastmorph.cli import main
from breastmorph.mesh.files import load_mesh
from breastmorph.model.files import load_model
from breastmorph.registration.lock import locked_file

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
_SUBJECTS = 5  # fewer are too few to predict from
_SEED = 1  # the last subject lacks the right breast


def shared(folder: Path, name: str, make: object) -> Path:
    """A folder made once for all test processes, by calling ``make`` with its path."""
    place = folder / name
    with locked_file(folder / f"{name}.lock"):
        if not (folder / f"{name}.ready").exists():
            shutil.rmtree(place, ignore_errors=True)
            make(place)  # type: ignore[operator]
            (folder / f"{name}.ready").touch()
    return place


def docs_world(folder: Path) -> Path:
    """The world itself, made once."""
    return shared(folder, "docs-world", _make)


def run(*words: object) -> None:
    """One of our commands, which must succeed."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, f"breastmorph {words}\n{result.output}\n{result.exception}"


def _make(world: Path) -> None:
    run("phantom", "--n", _SUBJECTS + 1, "--seed", _SEED, "--one-sided", 1, "--jobs", 1, "--out", world)
    shutil.move(world / "scans" / f"{_SUBJECTS:03d}.ply", world / "patient.ply")
    shutil.move(world / "landmarks" / f"{_SUBJECTS:03d}.json", world / "patient.json")
    places = world / "scans", "--landmarks", world / "landmarks"
    run("register", *places, "--out", world / "cohort", "--quality-sheet", "--jobs", 1)
    run("build", world / "cohort", "-o", world / "model.h5")
    model = load_model(world / "model.h5")
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
    sys.path.insert(0, str(NOTEBOOKS))  # the stand-in lies beside the notebook that shows it
    from stand_in import write_stand_in

    others = write_stand_in(model, world / "rbsm-0122.h5")
    (world / "ids.json").write_text(json.dumps(others))
    (world / "vertices.json").write_text(json.dumps(dict(model.landmark_ids)))
    shutil.copytree(
        world / "cohort" / "registered", world / "meshes", ignore=shutil.ignore_patterns("*.json")
    )
    for part in ("scans", "landmarks", "truth"):
        shutil.copytree(world / part, world / "demo" / "cohort" / part)
        shutil.copytree(world / part, world / "ph" / part)
    for own in ("my-cohort", "with-masks", "without-masks"):
        shutil.copytree(world / "cohort", world / own)
