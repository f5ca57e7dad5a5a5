from __future__ import annotations

from pathlib import Path

import igl
import numpy as np
import pytest

from breast_cohort import breast_shapes
from breastmorph.explorer.settings import Settings
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.files import save_model
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import Landmarks
from explored_patient import POSE, model, uploaded
from explorer_client import running
from explorer_window import begin_again, window


@pytest.fixture(scope="module")
def folder(tmp_path_factory, breast_template):
    """A model and the scan of somebody it does not know, with landmarks, in centimetres."""
    home = tmp_path_factory.mktemp("patient")
    save_model(model(), home / "model.h5")
    save_scan(breast_template, 40, home / "scan.ply")
    return home


def save_scan(template, k: int, path: Path) -> None:
    """Somebody's scan in centimetres, with her landmarks beside it."""
    shape = breast_shapes(k + 1)[k]
    marks = Landmarks(tuple(template.landmark_ids), shape[list(template.landmark_ids.values())])
    vertices, faces = igl.upsample(shape, np.array(template.mesh.faces))  # not the model's own triangles
    save_mesh(TriangleMesh(POSE.apply(vertices), faces[::-1]), path)
    save_landmarks(marks.transformed(POSE), path.with_suffix(".json"))


@pytest.fixture(scope="module")
def clinic(tmp_path_factory, breast_template):
    """A folder with two folders of scans, and a way out of it."""
    home = tmp_path_factory.mktemp("rooms") / "clinic"
    for k in (40, 41, 42):
        (home / "spring").mkdir(parents=True, exist_ok=True)
        save_scan(breast_template, k, home / "spring" / f"scan {k}.ply")
    (home / "autumn" / "scans").mkdir(parents=True)
    save_scan(breast_template, 43, home / "autumn" / "scans" / "late.ply")
    elsewhere = home.parent / "elsewhere"
    elsewhere.mkdir()
    save_scan(breast_template, 44, elsewhere / "foreign.ply")
    (home / "link").symlink_to(elsewhere)
    return home


@pytest.fixture(scope="module")
def explorer(folder):
    with running(Settings(model=folder / "model.h5")) as found:
        yield found


@pytest.fixture(scope="module")
def only_tab(browser, entrance):
    with window(browser, entrance) as found:
        yield found


@pytest.fixture
def tab(only_tab):
    """The page at a module's ``entrance``, as after its start whatever came before; nothing may go wrong on it."""
    yield only_tab
    # Right after its start the server may still prepare something; it says so, and the page asks again.
    complaints = [text for text in only_tab.complaints() if "status of 503" not in text]
    begin_again(only_tab)
    assert complaints == []


@pytest.fixture(scope="module")
def patient(explorer, folder):
    """A tab with a registered patient, an edit and a prediction."""
    visitor, scan = uploaded(explorer, folder)
    done = visitor.job(f"/api/scans/{scan}/register")
    assert done["state"] == "done", done
    predicted = visitor.job("/api/predict", {"side": "right"})
    assert predicted["state"] == "done", predicted
    return visitor, scan
