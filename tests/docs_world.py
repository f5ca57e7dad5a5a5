"""The folder in which the documentation's examples are run: every file that an example may name, small."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import trimesh
from click.testing import CliRunner

from breastmorph.cli import main
from breastmorph.foundation.locks import locked_file
from breastmorph.mesh.files import load_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.demo_model import demo_model
from breastmorph.model.files import load_model
from breastmorph.template import default_template, template_from, to_npz

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
_SUBJECTS = 5  # fewer are too few to predict from
_SEED = 1  # the last subject lacks the right breast


def script(path: Path) -> ModuleType:
    """A script of the repository as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)  # dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def shared(temporary: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A file or folder made once for all processes of a test run, by calling ``make`` with its path."""
    folder = temporary.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:  # every worker has a folder of its own in that of the run
        folder = folder.parent
    place = folder / name
    with locked_file(folder / f"{name}.lock"):
        if not (folder / f"{name}.ready").exists():
            shutil.rmtree(place, ignore_errors=True)
            make(place)
            (folder / f"{name}.ready").touch()
    return place


def docs_world(temporary: pytest.TempPathFactory) -> Path:
    """The world itself, made once."""
    published = published_model(temporary)
    return shared(temporary, "docs-world", lambda world: _make(world, published))


def published_model(temporary: pytest.TempPathFactory) -> Path:
    """A folder with a file like the published model's, made of the demo model."""

    def make(place: Path) -> None:
        sys.path.insert(0, str(NOTEBOOKS))  # the stand-in lies beside the notebook that shows it
        from stand_in import write_stand_in

        place.mkdir()
        others = write_stand_in(demo_model(), place / "rbsm-0122.h5")
        (place / "ids.json").write_text(json.dumps(others))

    return shared(temporary, "published", make)


def small_template(temporary: pytest.TempPathFactory) -> Path:
    """A template of 2,501 vertices in a file: examples take a quarter of the time with it."""

    def make(place: Path) -> None:
        full = default_template()
        vertices, faces = trimesh.remesh.subdivide(full.coarse.vertices, full.coarse.faces)
        mesh = TriangleMesh(np.asarray(vertices), np.asarray(faces))
        place.write_bytes(to_npz(template_from(mesh, full.coarse_landmarks, full.coarse)))

    return shared(temporary, "small-template.npz", make)


def run(*words: object) -> None:
    """One of our commands, which must succeed."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, f"breastmorph {words}\n{result.output}\n{result.exception}"


def _make(world: Path, published: Path) -> None:
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
    shutil.copytree(published, world, dirs_exist_ok=True)
    (world / "vertices.json").write_text(json.dumps(dict(model.landmark_ids)))
    shutil.copytree(
        world / "cohort" / "registered", world / "meshes", ignore=shutil.ignore_patterns("*.json")
    )
    for part in ("scans", "landmarks", "truth"):
        shutil.copytree(world / part, world / "demo" / "cohort" / part)
        shutil.copytree(world / part, world / "ph" / part)
