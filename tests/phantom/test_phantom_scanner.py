"""The scanner: open irregular surfaces, holes where no view looks, noise, pose, annotation."""

from dataclasses import replace

import numpy as np
import pytest

from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import edge_lengths, face_angles
from breastmorph.mesh.skin import to_lab
from breastmorph.mesh.topology import boundary_loops, face_components, is_manifold
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.phantom import Complexion, ScannerParameters, draw_cohort, scan_subject, topology, torso
from breastmorph.phantom.scanner import refinement
from breastmorph.scan.scan import REQUIRED

pytestmark = pytest.mark.slow


def with_breasts(**changes):
    """The torso of one subject with other breasts."""
    subject = draw_cohort(6, 3)[0]
    left, right = replace(subject.left, **changes), replace(subject.right, **changes)
    return torso(replace(subject, left=left, right=right))


@pytest.fixture(scope="module")
def firm():
    return with_breasts(sag=0.1, volume=300.0)


@pytest.fixture(scope="module")
def hanging():
    return with_breasts(sag=1.35, volume=700.0)


@pytest.fixture(scope="module")
def scans(firm, hanging):
    return {
        "firm": scan_subject(firm, np.random.default_rng(1)),
        "hanging": scan_subject(hanging, np.random.default_rng(1)),
        "again": scan_subject(hanging, np.random.default_rng(2)),
    }


def test_scan_is_one_open_manifold_piece_of_the_wanted_resolution(scans):
    for scan in scans.values():
        mesh = scan.mesh
        assert is_manifold(mesh.faces)
        assert face_components(mesh.faces).max() == 0
        assert edge_lengths(mesh.vertices, mesh.faces).mean() == pytest.approx(3.5, abs=0.1)
        assert 12_000 < mesh.n_vertices < 34_000
        assert np.degrees(np.percentile(face_angles(mesh.vertices, mesh.faces).min(axis=1), 5)) > 20


def test_scan_lies_on_the_truth_up_to_its_noise(scans):
    for scan in scans.values():
        true = Surface(TriangleMesh(scan.points, topology()))
        away = true.closest(scan.mesh.vertices).distances
        assert np.median(away) < 0.35
        assert np.percentile(away, 99) < 1.6
        assert away.mean() > 0.15  # there is noise


def test_noise_is_correlated(scans):
    mesh = scans["firm"].mesh
    # Neighbouring vertices share their error: the surface waves instead of bristling.
    true = Surface(TriangleMesh(scans["firm"].points, topology()))
    near = true.closest(mesh.vertices)
    offset = mesh.vertices - near.points
    start, end = mesh.faces[:, 0], mesh.faces[:, 1]
    product = (offset[start] * offset[end]).sum(axis=1).mean() / (offset**2).sum(axis=1).mean()
    assert 0.3 < product < 0.98


def test_folds_of_hanging_breasts_have_holes(hanging, firm, scans):
    def unseen(true, scan):
        breast = true.breast["left"] | true.breast["right"]
        return 1.0 - scan.visible[breast].mean()

    assert unseen(hanging, scans["hanging"]) > 0.10
    assert unseen(hanging, scans["hanging"]) > 4.0 * unseen(firm, scans["firm"])
    holes = [len(loop) for loop in boundary_loops(scans["hanging"].mesh.faces)][1:]
    assert sum(length > 80 for length in holes) == 2  # one under each breast


def test_what_is_called_visible_is_on_the_scan_and_the_back_is_not(scans):
    for scan in scans.values():
        away = Surface(scan.mesh).closest(scan.points).distances
        assert away[scan.visible].max() < 3.0
        assert 0.3 < scan.visible.mean() < 0.85
        canonical = scan.pose.inverse().apply(scan.points)
        back = (canonical[:, 2] < -80) & (np.abs(canonical[:, 0]) < 60)
        assert not scan.visible[back].any()


def test_two_scans_share_no_vertex_order(scans):
    one, other = scans["hanging"], scans["again"]
    a = one.pose.inverse().apply(one.mesh.vertices)
    b = other.pose.inverse().apply(other.mesh.vertices)
    k = min(len(a), len(b))
    assert np.median(np.linalg.norm(a[:k] - b[:k], axis=1)) > 3.5
    # Nor the vertices themselves: the nearest of the other scan is as far as between random samplings.
    near = np.min(np.linalg.norm(a[::400][:, None] - b[None], axis=2), axis=1)
    assert np.median(near) > 0.5
    assert a.shape != b.shape or not np.array_equal(one.mesh.faces, other.mesh.faces)


def test_landmarks_are_on_the_scan_and_off_by_the_annotation_error(hanging):
    quick = ScannerParameters(edge=9.0)
    errors = {name: [] for name in REQUIRED}
    for seed in range(3):
        scan = scan_subject(hanging, np.random.default_rng(seed), quick)
        assert Surface(scan.mesh).closest(scan.landmarks.points).distances.max() < 1e-6
        for name in REQUIRED:
            errors[name].append(np.linalg.norm(scan.landmarks[name] - scan.landmark_true[name]))
    assert 0.2 < np.mean(errors["sternal_notch"] + errors["xiphoid"]) < 3.0
    poles = np.mean(errors["lower_pole_left"] + errors["lower_pole_right"])
    assert 1.5 < poles < 20.0


def test_pose_stays_in_its_bounds_and_carries_the_truth(hanging, scans):
    for name, true in (("hanging", hanging), ("again", hanging)):
        pose = scans[name].pose
        angle = np.degrees(np.arccos((np.trace(pose.rotation) - 1.0) / 2.0))
        assert angle <= 10.0 + 1e-9
        assert np.linalg.norm(pose.translation) <= 30.0 + 1e-9
        np.testing.assert_allclose(scans[name].points, pose.apply(true.mesh.vertices))
        np.testing.assert_allclose(
            scans[name].landmark_true.points, pose.apply(true.landmarks.points), atol=1e-9
        )
    assert not np.allclose(scans["hanging"].pose.rotation, scans["again"].pose.rotation)


def test_borders_are_ragged(scans):
    scan = scans["firm"]
    border = boundary_loops(scan.mesh.faces)[0]
    points = scan.pose.inverse().apply(scan.mesh.vertices[border])
    waist = points[(points[:, 1] < points[:, 1].min() + 25) & (points[:, 2] > 40)]
    assert waist[:, 1].std() > 1.0


def test_refinement_keeps_vertices_and_area_and_bounds_edges():
    points = np.array([[0, 0, 0], [9, 0, 0], [0, 5, 0], [9, 5, 1]], dtype=float)
    faces = np.array([[0, 1, 2], [1, 3, 2]])
    midpoints, finer = refinement(points, faces, 2.0)
    fine = midpoints @ points
    np.testing.assert_array_equal(fine[:4], points)
    assert edge_lengths(fine, finer).max() <= 2.0
    assert is_manifold(finer)
    for shape, triangles in ((points, faces), (fine, finer)):
        area = np.cross(
            shape[triangles[:, 1]] - shape[triangles[:, 0]], shape[triangles[:, 2]] - shape[triangles[:, 0]]
        )
        if triangles is faces:
            expected = area.sum(axis=0)
        else:
            np.testing.assert_allclose(area.sum(axis=0), expected)


def complexions():
    return [Complexion.drawn(np.random.default_rng(seed)) for seed in range(300)]


def test_skin_has_every_tone_and_areolas_every_contrast():
    tone = np.array([c.tone for c in complexions()])
    change = np.array([c.areola for c in complexions()])
    radius = np.array([list(c.areola_radius.values()) for c in complexions()])
    assert 25.0 <= tone[:, 0].min() < 30.0
    assert 75.0 < tone[:, 0].max() <= 80.0
    assert (np.histogram(tone[:, 0], 5, (25.0, 80.0))[0] > 30).all()
    contrast = np.linalg.norm(change, axis=1)
    assert 0.05 < (contrast < 1.5).mean() < 0.2  # hardly any
    assert contrast.max() > 15.0
    assert 0.85 < (change[:, 0] < 0).mean() < 1.0  # seldom lighter than the skin around it
    assert radius.min() >= 12.0
    assert radius.max() <= 28.0
    assert np.ptp(change[contrast > 5, 2]) > 4.0  # from pink to brown


def test_colours_show_the_areola_at_the_true_nipple_and_leave_the_shape_alone(firm, scans):
    areola, plain = (-12.0, 5.0, 2.0), scans["firm"]
    complexion = replace(complexions()[5], areola=areola)
    scan, bare = (
        scan_subject(firm, np.random.default_rng(1), complexion=one)
        for one in (complexion, replace(complexion, areola=(0.0, 0.0, 0.0)))
    )
    np.testing.assert_array_equal(scan.mesh.vertices, plain.mesh.vertices)
    np.testing.assert_array_equal(scan.landmarks.points, plain.landmarks.points)
    assert plain.mesh.colors is None
    lab, without = to_lab(scan.mesh.colors[:, :3]), to_lab(bare.mesh.colors[:, :3])
    assert np.abs(np.median(lab, axis=0) - complexion.tone).max() < 4.0
    change = lab - without  # mottling and moles, which are the same in both, fall out
    for side, radius in complexion.areola_radius.items():
        away = np.linalg.norm(scan.mesh.vertices - scan.landmark_true[f"nipple_{side}"], axis=1)
        around, inside = (away > 1.3 * radius) & (away < 2.0 * radius), (away > 8.0) & (away < 0.8 * radius)
        assert np.abs(np.median(change[inside], axis=0) - areola).max() < 1.0
        assert np.abs(np.median(change[around], axis=0)).max() < 0.5


def test_colours_of_the_same_seed_are_the_same_and_each_subject_has_her_own(firm):
    quick = ScannerParameters(edge=9.0)
    one, again, other = (
        scan_subject(firm, np.random.default_rng(1), quick, complexions()[k]).mesh.colors for k in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, again)
    assert np.abs(one.astype(int) - other.astype(int)).mean() > 5.0
