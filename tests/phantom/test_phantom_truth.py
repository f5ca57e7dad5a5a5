"""The dense truth: symmetric mean, sound surfaces, exact volumes, overhanging folds, many modes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import cKDTree

from breastmorph.mesh.geometry import Similarity, edge_lengths, face_angles, face_areas
from breastmorph.mesh.topology import face_components, is_manifold
from breastmorph.phantom import draw_cohort, mean_torso, mirror_vertices, topology, torso
from breastmorph.phantom.cohort import Mastectomy
from breastmorph.scan.scan import REQUIRED, SIDES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cohort():
    return draw_cohort(32, 7)


@pytest.fixture(scope="module")
def torsos(cohort):
    return [torso(subject) for subject in cohort]


def test_topology_is_one_manifold_piece_with_a_mirror():
    faces, mirror = topology(), mirror_vertices()
    assert is_manifold(faces)
    assert face_components(faces).max() == 0
    assert (mirror[mirror] == np.arange(len(mirror))).all()
    there = {tuple(sorted(face)) for face in faces.tolist()}
    assert {tuple(sorted(face)) for face in mirror[faces].tolist()} == there


def test_mean_is_symmetric():
    mean = mean_torso()
    flip = np.array([-1.0, 1.0, 1.0])
    np.testing.assert_allclose(mean.mesh.vertices[mirror_vertices()] * flip, mean.mesh.vertices, atol=1e-9)
    assert (mean.breast["left"][mirror_vertices()] == mean.breast["right"]).all()
    mirrored = mean.landmarks.mirrored()
    for name in REQUIRED:
        np.testing.assert_allclose(mirrored[name], mean.landmarks[name], atol=1e-9)
    assert mean.volumes["left"] == pytest.approx(mean.volumes["right"])


def test_frame_and_landmarks_are_anatomical(torsos):
    lean, sternum = [], []
    for one in torsos:
        marks = one.landmarks
        assert marks["nipple_left"][0] > 30 > -30 > marks["nipple_right"][0]
        assert marks["nipple_left"][2] > marks["lateral_pole_left"][2]
        for side in SIDES:
            assert marks[f"lower_pole_{side}"][1] < marks[f"nipple_{side}"][1]
            assert marks[f"lateral_pole_{side}"][1] == pytest.approx(marks[f"nipple_{side}"][1], abs=1e-6)
        down = marks["xiphoid"] - marks["sternal_notch"]
        sternum.append(np.linalg.norm(down))
        lean.append(np.degrees(np.arctan2(down[2], -down[1])))
    assert min(sternum) > 120
    assert max(sternum) < 260
    assert np.mean(lean) == pytest.approx(21.0, abs=4.0)
    assert np.std(lean) == pytest.approx(6.0, abs=2.5)
    reach = [np.linalg.norm(t.landmarks["nipple_left"] - t.landmarks["sternal_notch"]) for t in torsos]
    assert min(reach) > 160
    assert max(reach) < 360
    assert 20 < np.std(reach) < 45


def test_volume_is_exactly_what_was_drawn(cohort, torsos):
    for subject, one in zip(cohort[:8], torsos, strict=False):
        for side in SIDES:
            # Independent of how the truth was made: whole mesh against whole mesh, about another origin.
            other = "right" if side == "left" else "left"
            with_it = np.where(one.breast[other][:, None], one.bare, one.whole)
            volume = (signed_volume(with_it) - signed_volume(one.bare)) / 1000.0
            assert volume == pytest.approx(subject.breast(side).volume, rel=1e-6)
            assert one.volumes[side] == pytest.approx(volume, rel=1e-6)
        assert signed_volume(one.whole) > signed_volume(one.bare) > 5e6


def signed_volume(points):
    a, b, c = (points[topology()[:, k]] + np.array([30.0, -70.0, 11.0]) for k in range(3))
    # The open ends (neck, waist, arms) are the same in the shapes compared and cancel.
    return np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0


def test_surfaces_do_not_cut_themselves(torsos):
    for one in torsos[:5]:
        assert crossing_faces(one.mesh.vertices, topology()) == 0
        assert face_areas(one.mesh.vertices, topology()).min() > 0.02
        assert np.degrees(np.percentile(face_angles(one.mesh.vertices, topology()).min(axis=1), 1)) > 8
        assert edge_lengths(one.mesh.vertices, topology()).mean() < 7


def crossing_faces(points, faces):
    """How many edges pass through a face that shares no vertex with theirs."""
    centre = points[faces].mean(axis=1)
    reach = np.linalg.norm(points[faces] - centre[:, None], axis=2).max(axis=1)
    pairs = cKDTree(centre).query_pairs(2.0 * np.percentile(reach, 99), output_type="ndarray")
    apart = np.linalg.norm(centre[pairs[:, 0]] - centre[pairs[:, 1]], axis=1)
    pairs = pairs[apart < reach[pairs].sum(axis=1)]
    pairs = np.vstack([pairs, pairs[:, ::-1]])
    shared = (faces[pairs[:, 0]][:, :, None] == faces[pairs[:, 1]][:, None, :]).any(axis=(1, 2))
    one, other = pairs[~shared].T
    a, b, c = (points[faces[other, k]] for k in range(3))
    crossing = np.zeros(len(one), bool)
    for k in range(3):
        start = points[faces[one, k]]
        step = points[faces[one, (k + 1) % 3]] - start
        across = np.cross(step, c - a)
        size = ((b - a) * across).sum(axis=1)
        size = np.where(np.abs(size) > 1e-12, size, np.inf)
        u = ((start - a) * across).sum(axis=1) / size
        over = np.cross(start - a, b - a)
        v = (step * over).sum(axis=1) / size
        s = ((c - a) * over).sum(axis=1) / size
        crossing |= np.isfinite(size) & (u >= 0) & (v >= 0) & (u + v <= 1) & (s >= 0) & (s <= 1)
    return int(crossing.sum())


def test_crossing_faces_finds_a_crossing():
    points = np.array([[0, 0, 0], [4, 0, 0], [0, 4, 0], [1, 1, -1], [1, 1, 1], [1.5, 1, 1.0]], dtype=float)
    assert crossing_faces(points, np.array([[0, 1, 2], [3, 4, 5]])) > 0


def test_ptotic_breasts_overhang_their_folds_and_firm_ones_do_not(cohort, torsos):
    overhang = {True: [], False: []}
    for subject, one in zip(cohort, torsos, strict=True):
        for side in SIDES:
            mask, ptotic = one.breast[side], subject.breast(side).sag >= 1.0
            overhang[ptotic].append(one.bare[mask, 1].min() - one.mesh.vertices[mask, 1].min())
            assert (one.below_fold[side] >= 0) == ptotic
    assert np.min(overhang[True]) > 2.0
    assert np.median(overhang[True]) > 15.0
    assert np.median(overhang[False]) < 10.0


def test_lower_pole_is_not_the_same_skin_in_firm_and_hanging_breasts(cohort):
    firm = torso(replace(cohort[0], left=replace(cohort[0].left, sag=0.0)))
    hanging = torso(replace(cohort[0], left=replace(cohort[0].left, sag=1.4)))
    skin = []
    for one in (firm, hanging):
        away = np.linalg.norm(one.mesh.vertices - one.landmarks["lower_pole_left"], axis=1)
        skin.append(int(away.argmin()))
        assert away.min() < 1e-9
    mean = mean_torso().bare
    assert np.linalg.norm(mean[skin[0]] - mean[skin[1]]) > 5.0


def test_aligned_truth_needs_many_components(torsos):
    shapes = np.array([one.mesh.vertices[::7] for one in torsos])
    mean = shapes[0]
    for _ in range(4):
        aligned = np.array([Similarity.fit(shape, mean).apply(shape) for shape in shapes])
        mean = aligned.mean(axis=0)
        mean *= np.linalg.norm(shapes[0] - shapes[0].mean(axis=0)) / np.linalg.norm(mean - mean.mean(axis=0))
    rest = (aligned - aligned.mean(axis=0)).reshape(len(shapes), -1)
    share = np.cumsum(np.linalg.eigvalsh(rest @ rest.T)[::-1])
    assert int((share / share[-1] < 0.98).sum()) + 1 >= 20
    # Too hard for alignment alone: points are well over a centimetre from the mean's.
    assert np.linalg.norm(rest.reshape(len(shapes), -1, 3), axis=2).mean() > 10.0


def test_one_sided_subject_is_flat_there_and_keeps_the_whole(cohort):
    subject = replace(cohort[1], absent="left", operation=Mastectomy())
    one, both = torso(subject), torso(cohort[1])
    left, right = one.breast["left"], one.breast["right"]
    np.testing.assert_allclose(one.mesh.vertices[left], one.bare[left], atol=1e-9)
    np.testing.assert_array_equal(one.mesh.vertices[right], both.mesh.vertices[right])
    np.testing.assert_array_equal(one.whole, both.mesh.vertices)
    assert one.landmarks.absent_sides == ("left",)
    assert one.landmarks.complete_sides == ("right",)
    assert one.volumes["left"] == pytest.approx(subject.left.volume)


def test_operations_leave_a_pad_and_reach_beyond_the_breast(cohort):
    operation = Mastectomy(pad=70.0, blend=25.0, hollow=5.0, scar=2.5, scar_angle=30.0, dog_ear=6.0)
    one = torso(replace(cohort[1], absent="left", operation=operation))
    breast, faces = one.breast["left"], one.mesh.faces
    left_over = one.remaining
    assert left_over == pytest.approx(70.0, abs=5.0)
    moved = np.linalg.norm(one.mesh.vertices - one.whole, axis=1)
    beyond = moved[~breast & (one.bare[:, 0] > 0)]
    assert 2.0 < beyond.max() < 8.0
    assert moved[one.bare[:, 0] <= 0].max() < 1.0
    # Smooth: no step at the border that a scanner would see as a cliff.
    edges = np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    height = np.linalg.norm(one.mesh.vertices - one.bare, axis=1)
    steps = np.abs(np.diff(height[edges], axis=1))[:, 0]
    lengths = np.linalg.norm(np.diff(one.bare[edges], axis=1)[:, 0], axis=1)
    on_left = (one.bare[edges, 0] > 0).all(axis=1)
    assert (steps / lengths)[on_left].max() < 1.0


def test_operations_are_as_varied_as_they_are():
    drawn = [Mastectomy.drawn(np.random.default_rng(seed)) for seed in range(200)]
    for name, low, high in (("pad", 30, 120), ("blend", 12, 28), ("scar", -2, 2.5), ("scar_angle", 0, 40)):
        values = [getattr(one, name) for one in drawn]
        assert min(values) < low
        assert max(values) > high
    assert Mastectomy(pad=100.0).pad_volume(150.0) == pytest.approx(60.0)
