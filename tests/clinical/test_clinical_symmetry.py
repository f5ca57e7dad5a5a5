"""Symmetry: each breast against the mirror image of the other, laid on by the thorax."""

from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breastmorph.clinical.examination import SymmetryMeter
from breastmorph.foundation.errors import MeshProblem
from breastmorph.mesh.geometry import Similarity
from breastmorph.report.examination_sheet import save_symmetry_map
from torso import torso

EDGE = 8.0


def mirror_of(vertices: np.ndarray) -> np.ndarray:
    away = np.linalg.norm(vertices[:, None] * [-1, 1, 1] - vertices, axis=2)
    return away.argmin(axis=1)


@cache
def meter() -> SymmetryMeter:
    mesh, landmarks = torso(EDGE)
    return SymmetryMeter(mesh, landmarks, mirror_of(mesh.vertices))


def uneven(by: float = 8.0) -> np.ndarray:
    """The left breast stands further out by about so many mm."""
    mesh, landmarks = torso(EDGE)
    r = (mesh.vertices - landmarks["nipple_left"]) / [45.0, 45.0, 90.0]
    return mesh.vertices + by * np.exp(-(r**2).sum(axis=1))[:, None] * [0.0, 0.0, 1.0]


def test_a_symmetric_body_has_no_deviation():
    found = meter().of(torso(EDGE)[0].vertices)
    assert found.deviation < 1e-6
    assert found.thorax < 1e-6


def test_the_larger_side_lies_outside_and_the_smaller_inside():
    found = meter().of(uneven())
    regions = meter().regions
    assert np.nanmean(found.signed[regions["left"]]) > 0.5
    assert np.nanmean(found.signed[regions["right"]]) < -0.5
    assert np.isnan(found.signed[~(regions["left"] | regions["right"])]).all()
    assert found.thorax < 0.1 * found.deviation  # the breasts did not turn the mirror image
    assert 0.3 < found.deviation < 8.0
    assert np.nanmax(np.abs(found.signed)) == pytest.approx(8.0, abs=2.5)


def test_deviation_grows_with_the_difference():
    small, large = (meter().of(uneven(by)).deviation for by in (4.0, 12.0))
    assert 2.0 < large / small < 4.0


def test_the_pose_does_not_matter():
    turned = Similarity(
        Rotation.random(None, np.random.default_rng(2)).as_matrix(), np.array([30.0, -400.0, 55.0])
    )
    still, moved = meter().of(uneven()), meter().of(turned.apply(uneven()))
    assert moved.deviation == pytest.approx(still.deviation, abs=1e-6)
    assert np.allclose(moved.signed, still.signed, atol=1e-6, equal_nan=True)


def test_the_mirror_image_of_a_subject_exchanges_the_sides():
    mirror = mirror_of(torso(EDGE)[0].vertices)
    found, other = meter().of(uneven()), meter().of(uneven()[mirror] * [-1, 1, 1])
    assert other.sides["left"] == pytest.approx(
        found.sides["right"], rel=0.02
    )  # its triangles are not mirrored
    assert other.deviation == pytest.approx(found.deviation, rel=0.02)


def test_vertices_are_paired_on_the_mesh_where_no_pairs_are_given():
    mesh, landmarks = torso(EDGE)
    found = SymmetryMeter(mesh, landmarks).of(uneven())
    assert found.deviation == pytest.approx(meter().of(uneven()).deviation, rel=0.02)


def test_a_template_that_is_not_symmetric_is_refused():
    mesh, landmarks = torso(EDGE)
    half = mesh.kept(~((mesh.vertices[:, 0] < -60) & (mesh.vertices[:, 1] > -150))[mesh.faces].any(axis=1))
    left = landmarks.only([name for name in landmarks if not name.endswith("right")])
    with pytest.raises(MeshProblem, match="not symmetric"):
        SymmetryMeter(half, left)


@pytest.mark.slow
def test_the_map_is_drawn_with_both_colours(tmp_path):
    from PIL import Image

    mesh, _ = torso(EDGE)
    save_symmetry_map(mesh.with_vertices(uneven()), meter().of(uneven()), tmp_path / "maps" / "s.png", "s")
    picture = np.asarray(Image.open(tmp_path / "maps" / "s.png").convert("RGB")).astype(int)
    redder = picture[..., 0] - picture[..., 2]
    assert (redder > 90).sum() > 200
    assert (redder < -60).sum() > 200
