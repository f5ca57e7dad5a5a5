"""Fitting: known pose and shape recovered from raw points, what is unsure says so, what is no torso is refused."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import breastmorph as bm
from breastmorph.foundation.errors import LandmarkProblem, MeshProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, vertex_normals
from breastmorph.mesh.remeshing import thinned
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.fitting import FitParameters, all_sites, fit_model, points_of, some_sites
from breastmorph.model.procrustes import ProcrustesParameters
from breastmorph.model.shape_model import ShapeModel
from breastmorph.phantom import draw_cohort, scan_subject, topology, torso
from breastmorph.phantom.scanner import ScannedTorso
from breastmorph.scan.scan import Found, Landmarks
from breastmorph.template import default_template
from refusals import refused
from small_cohort import small_cohort

FIVE = ("sternal_notch", "nipple_left", "nipple_right", "lower_pole_left", "lower_pole_right")
POSE = Similarity(
    Rotation.from_euler("xyz", [140, -70, 30], degrees=True).as_matrix(), np.array([400.0, -90, 800])
)


@cache
def model() -> ShapeModel:
    return build_model(small_cohort(k=14))


def subject(seed: int = 1, pose: Similarity = POSE) -> tuple[np.ndarray, TriangleMesh, Landmarks]:
    """Scores, surface and landmarks of a random member of the population, 5 % larger than the mean."""
    scores = np.random.default_rng(seed).normal(size=model().n_components)
    place = pose.after(Similarity(scale=1.05))
    mesh = model().mesh(place.apply(model().instance(scores * model().deviations)))
    points = mesh.vertices[list(model().landmark_ids.values())]
    return scores, mesh, Landmarks(tuple(model().landmark_ids), points)


def cloud(mesh: TriangleMesh, noise: float = 0.5, count: int = 3000, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    points = points_of(mesh, count, rng).points
    return points + noise * rng.normal(size=points.shape)


def off(fit, mesh: TriangleMesh) -> float:
    return float(Surface(mesh).closest(fit.mesh.vertices).distances.mean())


@pytest.mark.parametrize("names", [tuple(model().landmark_ids), FIVE, FIVE[:3]])
def test_pose_and_shape_come_back_from_noisy_points(names):
    scores, mesh, landmarks = subject()
    fit = fit_model(model(), cloud(mesh), landmarks.only(names))
    assert off(fit, mesh) < 0.5
    assert np.linalg.norm(fit.mesh.vertices - mesh.vertices, axis=1).mean() < 2.5
    assert fit.transform.scale == pytest.approx(1.05, abs=0.01)
    turned = Rotation.from_matrix(fit.transform.rotation.T @ POSE.rotation).magnitude()
    assert np.degrees(turned) < 1.5
    assert np.abs(fit.coefficients / model().deviations - scores).max() < 0.5
    assert fit.noise == pytest.approx(0.5, abs=0.2)  # 14 mm between vertices add a little
    assert fit.misfit < 0.4
    assert fit.explained > 0.97
    assert not fit.warnings


def test_the_fit_moves_with_the_target():
    _, mesh, landmarks = subject()
    points = cloud(mesh)
    first = fit_model(model(), points, landmarks)
    move = Similarity(Rotation.from_rotvec([1.0, -0.5, 2.0]).as_matrix(), np.array([5.0, -3000.0, 70.0]))
    second = fit_model(model(), move.apply(points), landmarks.transformed(move))
    assert np.allclose(move.apply(first.mesh.vertices), second.mesh.vertices, atol=0.2)


def test_the_mesh_is_the_instance_of_the_coefficients_in_its_place():
    _, mesh, landmarks = subject()
    fit = fit_model(model(), mesh, landmarks)
    again = fit.transform.apply(model().instance(fit.coefficients))
    assert np.allclose(again, fit.mesh.vertices, atol=1e-2)
    assert fit.mahalanobis == pytest.approx(model().mahalanobis(fit.coefficients), rel=1e-6)
    assert 0.0 < fit.plausibility < 1.0


@cache
def scanned() -> ScannedTorso:
    scan = scan_subject(torso(draw_cohort(1, 5)[0]), np.random.default_rng(5))
    return replace(scan, mesh=thinned(scan.mesh, 5.0))


@pytest.mark.parametrize(
    ("seed", "points"),
    [(1, 0), (2, 20_000), (3, 3000)],
)
@pytest.mark.slow
def test_without_landmarks_a_fit_begins_from_found_ones_in_any_pose(seed, points):
    scan = scanned()
    turn = Rotation.random(None, np.random.default_rng(seed)).as_matrix()
    pose = Similarity(turn, np.array([100.0, 500.0, -900.0]))
    target = scan.mesh.with_vertices(pose.apply(scan.mesh.vertices))
    demo = bm.demo_model()
    fit = bm.fit(demo, cloud(target, count=points) if points else target)
    assert (
        Surface(TriangleMesh(pose.apply(scan.points), topology())).closest(fit.mesh.vertices).distances.mean()
        < 3
    )
    assert fit.start == "found landmarks"
    assert set(fit.landmarks.found) == set(fit.landmarks) == set(demo.landmark_ids)
    marks = scan.landmarks.transformed(pose)
    sure = ("sternal_notch", "nipple_left", "nipple_right")
    assert np.linalg.norm(fit.landmarks.array(sure) - marks.array(sure), axis=1).max() < 20.0
    assert any("mirrored" in str(warning) for warning in fit.warnings)


@pytest.mark.slow
def test_a_model_that_knows_no_landmarks_has_them_found_on_its_mean():
    scan, demo = scanned(), bm.demo_model()
    fit = fit_model(replace(demo, landmark_ids={}), scan.mesh, scan.landmarks)
    assert off(fit, TriangleMesh(scan.points, topology())) < 3.0
    assert "nipple_left" in fit.landmarks


@pytest.mark.slow
def test_a_few_landmarks_are_evidence_and_the_others_are_found():
    scan = scanned()
    fit = bm.fit(bm.demo_model(), scan.mesh, scan.landmarks.only(("nipple_left", "nipple_right")))
    assert fit.start == "set and found landmarks"
    assert "nipple_left" not in fit.landmarks.found
    assert "xiphoid" in fit.landmarks.found
    assert np.allclose(fit.landmarks["nipple_left"], scan.landmarks["nipple_left"])
    assert not any("mirrored" in str(warning) for warning in fit.warnings)


def test_a_vague_landmark_pulls_less():
    _, mesh, landmarks = subject()
    off_place = replace(
        landmarks, points=landmarks.points + np.array([[0, 0, 40.0]]) * (np.arange(8) == 2)[:, None]
    )
    name = off_place.names[2]

    def nearest(sd):
        found = {name: Found("shape", sd, sd**2 * np.eye(3))}
        fit = fit_model(model(), cloud(mesh), replace(off_place, found=found))
        return np.linalg.norm(fit.mesh.vertices - mesh.vertices, axis=1).mean()

    assert nearest(40.0) < nearest(1.0)


def test_stray_points_do_not_matter():
    _, mesh, landmarks = subject()
    points = cloud(mesh)
    rng = np.random.default_rng(3)
    strays = rng.uniform(points.min(axis=0) - 60, points.max(axis=0) + 60, (1300, 3))
    fit = fit_model(model(), np.concatenate([points, strays]), landmarks)
    assert off(fit, mesh) < 0.6


def test_half_a_torso_is_completed_and_says_what_was_not_seen():
    _, mesh, landmarks = subject(pose=Similarity())
    points = cloud(mesh)
    fit = fit_model(model(), points[points[:, 0] > 10.0], landmarks)
    left = mesh.vertices[:, 0] > 30.0
    right = mesh.vertices[:, 0] < -20.0
    distances = Surface(mesh).closest(fit.mesh.vertices).distances
    assert distances[left].mean() < 0.6
    assert np.isnan(fit.residuals[right]).mean() > 0.9
    assert fit.covered < 0.7
    assert fit.deviations[right].mean() > 1.5 * fit.deviations[left].mean()
    assert any("not seen" in str(warning) for warning in fit.warnings)


def test_points_beyond_the_model_do_not_pull():
    """Scans are larger than the model: skin goes on beyond its border."""
    _, mesh, landmarks = subject(pose=Similarity())
    low = mesh.vertices[:, 1].min()
    rng = np.random.default_rng(0)
    around = np.radians(rng.uniform(-90, 90, 2000))
    waist = np.column_stack([160 * np.sin(around), low - rng.uniform(8, 150, 2000), 100 * np.cos(around)])
    alone = fit_model(model(), cloud(mesh), landmarks)
    fit = fit_model(model(), np.concatenate([cloud(mesh), waist]), landmarks, FitParameters(points=8000))
    assert fit.over_model < alone.over_model - 0.2
    assert off(fit, mesh) < off(alone, mesh) + 0.3


def test_residuals_are_negative_where_the_fit_lies_inside_the_scan():
    _, mesh, landmarks = subject()
    normals = vertex_normals(mesh.vertices, mesh.faces)
    middle = int(np.argmin(np.linalg.norm(mesh.vertices - landmarks["xiphoid"], axis=1)))
    near = np.linalg.norm(mesh.vertices - mesh.vertices[middle], axis=1) < 18.0
    bump = mesh.with_vertices(mesh.vertices + np.where(near, 4.0, 0.0)[:, None] * normals)
    for target in (bump, cloud(bump, noise=0.1, count=5000)):
        fit = fit_model(model(), target, landmarks)
        assert np.nanmean(fit.residuals[near]) < -1.5
        assert np.abs(np.nanmean(fit.residuals[~near])) < 0.3


def test_a_model_that_holds_size_is_not_scaled():
    p = BuildParameters(procrustes=ProcrustesParameters(with_scale=False))
    rigid = build_model(small_cohort(k=14), p)
    shape = rigid.instance(rigid.deviations * 0.5)
    landmarks = Landmarks(tuple(rigid.landmark_ids), shape[list(rigid.landmark_ids.values())])
    fit = fit_model(rigid, cloud(rigid.mesh(shape)), landmarks)
    assert fit.transform.scale == 1.0
    assert off(fit, rigid.mesh(shape)) < 0.5


def test_a_model_in_metres_gives_the_same_shape():
    _, mesh, landmarks = subject()
    points = cloud(mesh)
    fit = fit_model(model(), points, landmarks)
    metres = fit_model(model().transform(Similarity(scale=0.001)), points, landmarks)
    assert metres.unit == 1000.0
    assert np.allclose(metres.mesh.vertices, fit.mesh.vertices, atol=0.05)
    assert np.allclose(1000.0 * metres.coefficients, fit.coefficients, atol=0.5)


def test_only_the_components_asked_for_are_used():
    _, mesh, landmarks = subject()
    fit = fit_model(model(), cloud(mesh), landmarks, FitParameters(components=4))
    assert len(fit.coefficients) == model().n_components
    assert np.any(fit.coefficients[:4] != 0)
    assert not fit.coefficients[4:].any()
    assert fit.misfit > fit_model(model(), cloud(mesh), landmarks).misfit


def test_a_surface_inside_out_is_turned_and_may_be_mirrored_where_nobody_set_landmarks():
    _, mesh, landmarks = subject()
    fit = fit_model(model(), mesh.flipped(), landmarks)
    assert off(fit, mesh) < 0.6
    assert any("inside out" in str(warning) for warning in fit.warnings)
    found = {name: Found("shape", 3.0, 9.0 * np.eye(3)) for name in landmarks}
    fit = fit_model(model(), mesh.flipped(), replace(landmarks, found=found))
    assert any("inside out, or mirrored" in str(warning) for warning in fit.warnings)


def sphere(radius: float) -> np.ndarray:
    v = np.random.default_rng(0).normal(size=(3000, 3))
    return radius * v / np.linalg.norm(v, axis=1, keepdims=True)


def leg() -> np.ndarray:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 3000)
    return np.column_stack([80 * np.cos(angle), rng.uniform(-350, 350, 3000), 80 * np.sin(angle)])


REFUSED = {
    "sphere": lambda points: sphere(150.0),
    "leg": lambda points: leg(),
    "box of points": lambda points: np.random.default_rng(0).uniform(-200, 200, (3000, 3)),
    "plane": lambda points: points * np.array([1.0, 1.0, 0.0]),
    "centimetres": lambda points: points / 10.0,
    "metres": lambda points: points / 1000.0,
    "empty": lambda points: np.zeros((0, 3)),
    "three points": lambda points: points[:3],
    "not finite": lambda points: np.full_like(points, np.nan),
    "one point many times": lambda points: np.ones_like(points),
    "two columns": lambda points: points[:, :2],
}
_SEARCHED = ("leg", "box of points", "plane")  # what takes a search before it is refused, but for one


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in _SEARCHED else name for name in REFUSED],
)
def test_what_is_no_torso_is_refused(name):
    _, mesh, _ = subject(pose=Similarity())
    with pytest.raises(MeshProblem) as refusal:
        bm.fit(model(), REFUSED[name](cloud(mesh)))
    assert refusal.value.cause


def test_unusable_landmarks_are_refused():
    _, mesh, landmarks = subject()
    points = cloud(mesh)
    mirror = np.array([-1.0, 1.0, 1.0])
    with refused("sides-swapped", LandmarkProblem):
        fit_model(model(), points * mirror, Landmarks(landmarks.names, landmarks.points * mirror))
    with refused("missing-landmarks", LandmarkProblem, n=2):
        fit_model(model(), points, landmarks.only(FIVE[:2]))
    line = Landmarks(FIVE[:3], landmarks["xiphoid"] + np.arange(3)[:, None] * np.array([0.0, 50.0, 0.0]))
    with pytest.raises(LandmarkProblem, match="one line"):
        fit_model(model(), points, line)
    small = Similarity(scale=0.1)
    with refused("wrong-unit"):
        fit_model(model(), small.apply(points), landmarks.transformed(small))


def test_sites_have_the_normals_of_the_surface_they_stand_for():
    template = default_template()
    full = replace(model(), mean=template.mesh.vertices, faces=template.mesh.faces, landmark_ids={}, mirror=None,
                   basis=np.zeros((template.mesh.vertices.size, 0)), variances=np.zeros(0), training=None)  # fmt: skip
    everything = all_sites(full)
    some = some_sites(everything, 2500)
    assert 1500 < len(some.ids) < 3500
    exact = everything.normals(everything.mean)[some.ids]
    cosine = (some.normals(some.mean) * exact).sum(axis=1)
    assert np.median(cosine) > 0.99
    assert (cosine[~some.border] > 0.5).mean() > 0.99
