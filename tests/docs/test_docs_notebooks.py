"""The notebooks run from the first to the last cell, come to right results, and are kept without them."""

from __future__ import annotations

import json
import re
import shutil
import sys
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

import breastmorph as bm
from docs_world import NOTEBOOKS

pytestmark = pytest.mark.slow

NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))


def cells(name: str, kind: str) -> list[dict]:
    book = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    return [cell for cell in book["cells"] if cell["cell_type"] == kind]


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """What lies in the folder of the notebooks, in a folder of its own: notebooks are run where they are."""
    for path in NOTEBOOKS.glob("*.py"):
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = matplotlib.get_backend()
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")
    matplotlib.use(before)


def test_there_are_three():
    assert len(NAMES) == 3


@pytest.mark.parametrize("name", NAMES)
def test_kept_without_results(name):
    book = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells(name, "code"))


@pytest.mark.parametrize("name", NAMES)
def test_no_other_language_in_code(name):
    lines = [line for cell in cells(name, "code") for line in cell["source"]]
    assert lines
    assert not [line for line in lines if re.match(r"\s*[%!]", line)]  # magic would not run here


def run(name: str, names: dict[str, object]) -> None:
    code = cells(name, "code")
    assert len(code) >= 6
    for number, cell in enumerate(code):
        exec(compile("".join(cell["source"]), f"{name}, code cell {number}", "exec"), names)


def ran(name: str) -> SimpleNamespace:
    """What a notebook leaves behind."""
    names: dict[str, object] = {"__name__": "__main__"}
    run(name, names)
    return SimpleNamespace(**names)


def test_scans_become_a_model_that_knows_them(beside):
    got = ran(NAMES[0])
    model, cohort, truth = got.model, got.cohort, got.evaluation.truth
    assert list(cohort.ids) == [scan.id for scan in got.scans]
    assert got.fit.metrics["distance_inside"] < 0.3  # mm
    # Neither a collapsed nor a slid cohort passes: the points lie near their true places and vary as the true ones.
    assert truth.correspondence.mean() < 10.0
    assert truth.cohort.explained_breast > 0.3
    assert model.n_components == len(cohort) - 1
    assert (np.diff(model.variances) < 0.0).all()
    for k in range(len(cohort)):  # with all components it gives its own subjects back
        aligned = model.align(cohort.shape(k)).apply(cohort.shape(k))
        assert np.abs(model.instance(model.project(aligned)) - aligned).max() < 0.5
    assert got.breast.mean[-1] < got.breast.mean[0]
    shown = np.loadtxt(got.work / "generalization.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(shown[:, 1], got.breast.mean)
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", (got.work / "generalization.pdf").read_bytes())
    assert float(box[1]) == pytest.approx(85.0 / 25.4 * 72.0, abs=0.5)  # one column


def test_a_patient_is_measured_edited_and_completed(beside):
    got = ran(NAMES[1])
    with np.load(got.work / "truth" / "000.npz") as known:
        places = dict(zip(known["landmark_names"].tolist(), known["landmark_true"], strict=True))
        volumes = {f"volume-{side}": float(known[f"volume_{side}"]) for side in ("left", "right")}
    measured = {(one.name, one.kind): one.value for one in bm.measure(got.patient).measures}
    true = np.linalg.norm(places["sternal_notch"] - places["nipple_left"])
    assert measured["SN-NL", "straight"] == pytest.approx(true, abs=5.0)
    for name, volume in volumes.items():
        assert measured[name, "volume"] == pytest.approx(volume, rel=0.3)
    changes = {one.name: one for one in got.edited.changes}
    assert changes["SN-NL"].after - changes["SN-NL"].before == pytest.approx(10.0, abs=0.05)
    assert changes["NL-NR"].after == pytest.approx(changes["NL-NR"].before, abs=0.05)
    moved = got.edited.movements
    assert moved["thorax"] < 0.5 * max(moved.values())
    # The right breast that was taken away comes back, where it was and as unsure as it is said to be.
    assert got.off < 1.3 * got.mirrored
    assert 0.3 < got.off / got.lost.sd[got.missing].mean() < 4.0
    back = {(one.name, one.kind): one.value for one in got.lost.measures.measures}
    assert back["volume-right", "volume"] == pytest.approx(volumes["volume-right"], rel=0.5)


def test_the_last_one_runs_with_the_real_model_which_is_not_written_over(beside, tmp_path):
    names: dict[str, object] = {"__name__": "__main__"}
    first = compile("".join(cells(NAMES[-1], "code")[0]["source"]), NAMES[-1], "exec")
    exec(first, names)  # without the file: a stand-in, which then plays the real one
    real = shutil.copy(names["path"], tmp_path / "rbsm-0122.h5")
    before = real.read_bytes()
    run(NAMES[-1], names)
    assert names["path"].resolve() == real
    assert real.read_bytes() == before
    scan, fit, model = names["scan"], names["fit"], names["model"]
    assert np.nanmean(np.abs(fit.residuals)) < 2.5  # mm
    nipples = [f"nipple_{side}" for side in ("left", "right")]
    placed = fit.mesh.vertices[[model.landmark_ids[name] for name in nipples]]
    off = np.linalg.norm(placed - scan.landmarks.array(nipples), axis=1)
    assert off.max() < 20.0
    assert bm.load_model(names["work"] / "completed.h5").n_vertices == 30_924
