"""The virtual chest wall and volumes, on torsos whose bare chest is known."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breastmorph.clinical.volume import (
    DEFINITIONS,
    FLAT_WALL,
    INNER_BORDER,
    VOLUME,
    BreastVolumes,
    chest_walls,
)
from breastmorph.foundation.errors import MeshProblem
from breastmorph.mask import Footprint, RegionParameters, breast_regions
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.phantom import draw_cohort, mean_torso
from breastmorph.phantom import torso as phantom_torso
from breastmorph.scan.scan import SIDES, Landmarks


def chest(height: float | tuple[float, float] = 60.0) -> tuple[TriangleMesh, Landmarks]:
    """The front of a chest (an elliptic cone) with two smooth breasts so many mm high, left and right."""
    left, right = (height, height) if isinstance(height, float) else height
    angles, levels = np.radians(np.linspace(-120, 120, 97)), np.linspace(-230, 110, 69)

    def at(angle: np.ndarray, level: np.ndarray) -> np.ndarray:
        out = np.stack([np.sin(angle), 0.0 * level, np.cos(angle)], axis=-1)
        wide = 1.0 - 0.0012 * level
        r = np.hypot((np.abs(angle) - np.radians(40)) / np.radians(33), (level + 60.0) / 65.0)
        dome = np.where(angle > 0, left, right) * np.clip(1.0 - r**2, 0.0, None) ** 2
        points = out * (wide[..., None] * [150.0, 0.0, 110.0] + dome[..., None])
        points[..., 1] = level
        return points

    angle, level = (part.ravel() for part in np.meshgrid(angles, levels))
    a = (np.arange(68)[:, None] * 97 + np.arange(96)).ravel()
    faces = np.concatenate([np.column_stack([a, a + 1, a + 98]), np.column_stack([a, a + 98, a + 97])])
    places = {"sternal_notch": (0, 90), "xiphoid": (0, -90)}
    for side, sign in (("left", 1), ("right", -1)):
        places |= {
            f"nipple_{side}": (40 * sign, -60),
            f"lower_pole_{side}": (40 * sign, -120),
            f"lateral_pole_{side}": (85 * sign, -60),
        }
    marks = {
        name: at(np.radians(np.array(place[0])), np.array(float(place[1]))) for name, place in places.items()
    }
    return TriangleMesh(at(angle, level), faces), Landmarks.of(marks)


@cache
def prepared() -> BreastVolumes:
    return BreastVolumes(*chest())


def true_volume(height: float) -> float:
    """One breast over the same chest without breasts, cc."""
    mesh, bare = chest(height)[0], chest(0.0)[0]

    def six_fold(points: np.ndarray) -> float:
        a, b, c = points[mesh.faces].transpose(1, 0, 2)
        return float(np.einsum("ij,ij->", a, np.cross(b, c)))

    return (six_fold(mesh.vertices) - six_fold(bare.vertices)) / 12000.0


@pytest.mark.parametrize("height", [15.0, 40.0, 80.0])
def test_volumes_are_those_over_the_bare_chest(height):
    measured = prepared().cc(chest(height)[0].vertices, "left")
    assert measured == pytest.approx(true_volume(height), rel=0.03, abs=12.0)


def test_a_bare_chest_has_hardly_any_volume():
    assert abs(prepared().cc(chest(0.0)[0].vertices, "left")) < 12.0


@pytest.mark.slow
def test_volumes_of_phantoms_follow_the_truth_at_every_size():
    """On the true correspondence, with a coarse mesh of the phantom's skin as the template."""
    mean = mean_torso()
    gauge = BreastVolumes(mean.mesh, mean.landmarks)
    shapes = [phantom_torso(subject) for subject in draw_cohort(6, 3)]
    measured = np.array([[gauge.cc(one.mesh.vertices, side) for side in SIDES] for one in shapes]).ravel()
    truth = np.array([[one.volumes[side] for side in SIDES] for one in shapes]).ravel()
    assert np.corrcoef(measured, truth)[0, 1] > 0.97
    assert np.abs(measured / truth - 1).mean() < 0.12


def test_volumes_do_not_depend_on_the_pose_and_grow_with_the_cube_of_the_size():
    mesh, _ = chest()
    cc = prepared().cc(mesh.vertices, "left")
    turned = Similarity(
        Rotation.random(None, np.random.default_rng(0)).as_matrix(), np.array([100.0, -500.0, 900.0])
    )
    assert prepared().cc(turned.apply(mesh.vertices), "left") == pytest.approx(cc, rel=1e-9)
    assert prepared().cc(1.1 * mesh.vertices, "left") == pytest.approx(1.1**3 * cc, rel=1e-9)


def test_one_larger_breast_leaves_the_other_ones_volume_alone():
    mixed = chest((70.0, 30.0))[0].vertices
    for side, height in (("left", 70.0), ("right", 30.0)):
        alone = prepared().cc(chest(height)[0].vertices, side)
        assert prepared().cc(mixed, side) == pytest.approx(alone, rel=0.01)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_the_derivative_agrees_with_differences(definition):
    mesh, _ = chest()
    move = np.random.default_rng(5).normal(size=mesh.vertices.shape)
    reading = prepared().read(mesh.vertices, "right", definition)
    step = 1e-3
    low, high = (
        prepared().estimate(mesh.vertices + sign * step * move, "right", definition).cc for sign in (-1, 1)
    )
    by_gradient = float((reading.gradient * move[reading.vertices]).sum())
    assert by_gradient == pytest.approx((high - low) / (2 * step), rel=1e-6)
    assert np.abs(reading.gradient.sum(axis=0)).max() < 1e-9  # moving the whole body changes nothing
    assert len(np.unique(reading.vertices)) == len(reading.vertices)


def test_the_uncertainty_is_that_of_the_wall_and_of_a_border_where_one_is_drawn():
    shapes = {height: chest(height)[0].vertices for height in (20.0, 60.0)}
    found = {(name, h): prepared().estimate(shapes[h], "left", name) for name in DEFINITIONS for h in shapes}
    for height in shapes:
        wall, inner, flat = (found[name, height] for name in (VOLUME, INNER_BORDER, FLAT_WALL))
        assert (wall.source, inner.source, flat.source) == ("wall", "border, wall", "border")
        assert inner.uncertainty > wall.uncertainty
    # The wall is as little known behind a small breast as behind a large one; a border cuts off more of the latter.
    small, large = found[VOLUME, 20.0], found[VOLUME, 60.0]
    assert small.uncertainty == pytest.approx(large.uncertainty, rel=1e-6)
    assert found[FLAT_WALL, 60.0].uncertainty > 1.1 * found[FLAT_WALL, 20.0].uncertainty
    # A gap that is twice as wide is known up to 16 times worse, over four times the area; a narrow one to a mm.
    wider = prepared().estimate(2.0 * shapes[60.0], "left")
    assert 60.0 < wider.uncertainty / large.uncertainty < 64.0
    narrow = 0.3 * shapes[60.0]
    base = prepared().areas(narrow, "left")[1]
    assert prepared().estimate(narrow, "left").uncertainty == pytest.approx(0.1 * base, rel=0.02)


def test_a_smaller_border_holds_nearly_all_and_a_flat_wall_more_by_what_it_cuts_off_the_chest():
    shapes = {height: chest(height)[0].vertices for height in (0.0, 40.0, 60.0)}
    found = {
        (name, height): prepared().estimate(shape, "left", name).cc
        for name in DEFINITIONS
        for height, shape in shapes.items()
    }
    for height in (40.0, 60.0):
        assert found[INNER_BORDER, height] == pytest.approx(found["volume", height], rel=0.05)
    # Of a bare chest a flat wall cuts off its bulge; a breast stands on it as on every other wall.
    bulge = found[FLAT_WALL, 0.0]
    assert bulge > 30.0
    for height in (40.0, 60.0):
        assert found[FLAT_WALL, height] - bulge == pytest.approx(found[INNER_BORDER, height], rel=0.1)


def test_a_flat_wall_is_flat_and_passes_through_the_border():
    mesh, _ = chest()
    for side in SIDES:
        wall = prepared()._by_footprint[FLAT_WALL][0][side]
        points, rim = wall.points(mesh.vertices), np.unique(wall.rim)
        normal = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)[2][2]
        assert np.abs((points - points.mean(axis=0)) @ normal).max() < 1e-9
        off = mesh.vertices[rim] - points[np.searchsorted(wall.ids, rim)]
        assert np.abs(off.mean(axis=0)).max() < 1e-9


def test_threads_that_ask_at_once_get_the_same():
    mesh, landmarks = chest()
    volumes = BreastVolumes(mesh, landmarks)
    alone = volumes.cc(mesh.vertices, "left")
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda _: volumes.cc(mesh.vertices, "left"), range(400)))
    assert np.allclose(together, alone, rtol=1e-12)


def test_a_mesh_without_bare_chest_is_refused():
    mesh, landmarks = chest()
    wide = breast_regions(mesh, landmarks, RegionParameters(level=0.035, below=25.0))
    only_breast = mesh.kept((wide["left"] | wide["right"])[mesh.faces].all(axis=1))
    with pytest.raises(MeshProblem, match="bare chest"):
        chest_walls(replace(Footprint.of(mesh, landmarks), mesh=only_breast))
