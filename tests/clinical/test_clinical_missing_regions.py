"""Which skin is missing: regions of a side or painted, mirrors, and the seam where a prediction meets the scan."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breastmorph.clinical.mirror_frame import mirror_frame, plane_between
from breastmorph.clinical.missing_region import load_painted, missing_region
from breastmorph.clinical.predictor import fit_predictor
from breastmorph.clinical.seam import Seam
from breastmorph.foundation.errors import BreastMorphError, FileProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from predicted_people import model
from torso import torso


def test_the_plane_of_symmetry_is_found_in_any_pose():
    points = np.random.default_rng(1).normal(size=(50, 3)) * [40.0, 80.0, 25.0]
    turn = Similarity(
        Rotation.from_euler("xyz", [10, 25, -8], degrees=True).as_matrix(), np.array([5.0, 9.0, -3.0])
    )
    plane = plane_between(turn.apply(points), turn.apply(points * [-1.0, 1.0, 1.0]))
    expected = turn.rotation[:, 0]
    assert np.allclose(plane.normal, expected)
    assert plane.offset == pytest.approx(float(expected @ turn.translation))


def test_a_model_without_mirror_vertices_is_mirrored_all_the_same():
    assert model().mirror is None
    frame = mirror_frame(model())
    assert np.abs(frame.mirrored(frame.mean) - frame.mean).max() < 1.0
    shape = frame.to_frame.apply(model().instance([2.0 * model().deviations[0]]))
    assert np.linalg.norm(frame.mirrored(frame.mirrored(shape)) - shape, axis=1).mean() < 0.2


@pytest.mark.parametrize("side", ["left", "right"])
def test_regions_do_not_overlap_and_lie_on_their_side(side):
    frame = mirror_frame(model())
    region = missing_region(model(), frame, side)
    sign = 1.0 if side == "left" else -1.0
    assert (sign * frame.mean[region.missing, 0] > 0).all()
    assert (sign * frame.mean[region.healthy, 0] < 0).all()
    assert not (region.missing & region.thorax).any()
    assert not (region.healthy & region.thorax).any()
    assert region.missing[region.breast].all()
    assert region.missing[model().landmark_ids[f"nipple_{side}"]]
    assert region.thorax.sum() > 100


def test_a_seam_continues_smoothly_and_fades_out():
    mesh, _ = torso(edge=8.0)
    inside = np.linalg.norm(mesh.vertices - mesh.vertices[mesh.n_vertices // 2], axis=1) < 70.0
    seam = Seam(mesh, inside, 12.0)
    field = seam.continued(np.ones((len(seam.border), 2)))
    away = np.linalg.norm(mesh.vertices - mesh.vertices[mesh.n_vertices // 2], axis=1)[inside]
    assert np.allclose(field[:, 0], field[:, 1])
    assert field[away > 64.0].min() > 0.5  # next to the border it goes on
    assert np.abs(field[away < 25.0]).max() < 0.1  # in the middle it is gone
    assert np.allclose(seam.continued(np.zeros((len(seam.border), 3))), 0.0)


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("middle", "no side"),
        (np.zeros(5, bool), "painted vertices for a model"),
        (None, "is empty"),
        (True, "no thorax"),
    ],
)
def test_impossible_regions_are_refused(missing, words):
    if missing is None or missing is True:
        missing = np.full(model().n_vertices, missing is True)
    with pytest.raises(BreastMorphError, match=words):
        fit_predictor(model(), missing)


def test_a_painted_region_is_a_region(predictor, strangers):
    by_side = predictor
    painted = fit_predictor(model(), by_side.region.missing, "points")
    assert painted.region.side == "right"
    assert np.array_equal(painted.region.missing, by_side.region.missing)
    shape = strangers[8]
    # The noise is chosen on all that is painted, not on the breast alone, so it may differ somewhat.
    apart = np.linalg.norm(painted.predict(shape).shape - by_side.predict(shape).shape, axis=1)
    assert apart[by_side.region.breast].mean() < 0.5 * by_side.predict(shape).sd[by_side.region.breast].mean()


def test_painted_regions_in_files(tmp_path):
    wanted = np.zeros(model().n_vertices, bool)
    wanted[[3, 5, 200]] = True
    (tmp_path / "a.txt").write_text("3 5\n200\n")
    (tmp_path / "b.json").write_text(json.dumps([3, 5, 200]))
    colors = np.where(wanted[:, None], [220, 30, 30, 255], [200, 180, 170, 255]).astype(np.uint8)
    save_mesh(replace(model().mean_mesh, colors=colors), tmp_path / "c.ply")
    for name in ("a.txt", "b.json", "c.ply"):
        assert np.array_equal(load_painted(tmp_path / name, model().n_vertices), wanted)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", "3 five", "no vertex number"),
        ("a.txt", "999999", "does not exist"),
        ("a.txt", "-1", "does not exist"),
        ("a.txt", "\n\n", "no vertex is painted"),
        ("a.json", "[]", "no vertex is painted"),
    ],
)
def test_bad_painted_files_are_refused(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(FileProblem, match=words):
        load_painted(tmp_path / name, model().n_vertices)


def test_unpainted_meshes_are_refused(tmp_path):
    save_mesh(model().mean_mesh, tmp_path / "a.ply")
    with pytest.raises(FileProblem, match="no vertex colours"):
        load_painted(tmp_path / "a.ply", model().n_vertices)
    with pytest.raises(FileProblem, match="vertices, the model"):
        load_painted(tmp_path / "a.ply", 17)
