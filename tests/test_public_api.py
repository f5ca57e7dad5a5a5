"""The names people import, and their parameters: a change here is one for every user, and goes into the changelog."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import breastmorph

PROMISED = {
    "BreastMorphError": "cause remedy where code",
    "TriangleMesh": "vertices faces colors texture space",
    "load_mesh": "path",
    "save_mesh": "mesh path",
    "Landmarks": "names points",
    "load_landmarks": "path order",
    "save_landmarks": "landmarks path format space",
    "Scan": "id mesh landmarks to_file warnings",
    "load_scan": "mesh landmarks parameters reference",
    "check_scan": "files parameters reference",
    "breast_mask": "mesh landmarks side",
    "Template": "mesh landmark_ids coarse coarse_landmark_ids mirror coarse_mirror",
    "default_template": "",
    "load_template": "mesh landmarks coarse",
    "Registrar": "template parameters",
    "Cohort": "ids template packed rows to_file absent table landmarks",
    "load_cohort": "folder table on_packed landmarks packed_in",
    "ShapeModel": "mean basis variances faces landmark_ids noise_variance mirror training info",
    "build_model": "cohort parameters notes",
    "load_model": "path landmark_ids",
    "save_model": "model path",
    "fit_model": "model target landmarks parameters",
    "Examiner": "mesh landmark_ids mirror",
    "Editor": "model patient features parameters",
    "predict_breast": "model shape missing parameters absent subjects",
    "evaluate_model": "model cohort parameters scans check truth progress",
}


def test_nothing_promised_is_missing_and_nothing_else_is_public():
    assert set(PROMISED) == set(breastmorph.__all__) - {"__version__"}


@pytest.mark.parametrize("name", PROMISED)
def test_parameters_keep_their_names_and_order(name):
    found = list(inspect.signature(getattr(breastmorph, name)).parameters)
    assert found == PROMISED[name].split()


def test_the_reference_shows_every_public_name():
    page = (Path(__file__).parents[1] / "docs" / "reference" / "api.md").read_text()
    shown = {line.rsplit(".", 1)[-1] for line in re.findall(r"^::: (\S+)$", page, re.MULTILINE)}
    assert shown == set(PROMISED)


def test_the_package_is_light_to_import():
    """Nothing heavy loads before it is needed."""
    code = "import sys, breastmorph, breastmorph.cli; print(*sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "scipy", "numba", "h5py", "igl", "matplotlib", "starlette"} & set(loaded)


def test_the_package_is_typed():
    assert (Path(breastmorph.__file__).parent / "py.typed").exists()
