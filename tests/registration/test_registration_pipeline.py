"""Registration end to end on plain torsos: right, the same in any pose and order, refusing what is not a torso."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, rotation_about, vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration import Registrar, preset, register
from breastmorph.registration.pipeline import RegistrationLog, align_rigidly, prepare_scan
from breastmorph.registration.prepared import PreparedTemplate, bodies_carried_to, known_bodies
from breastmorph.registration.target import Pairs
from breastmorph.registration.warp import warp_onto
from breastmorph.scan.scan import STERNUM, Found, Landmarks, Scan
from breastmorph.template import Template, default_template, template_from
from torso import torso

STRETCH = np.array([1.04, 0.97, 1.0])


def front(edge: float = 8.0) -> Template:
    """The middle of the plain torso: a template is smaller than a scan."""
    mesh, landmarks = torso(edge)
    ids = nearest(mesh.vertices, landmarks.points)
    keep = (np.abs(mesh.vertices[:, 0]) < 154) & (mesh.vertices[:, 1] > -178) & (mesh.vertices[:, 1] < 118)
    kept = mesh.kept(keep[mesh.faces].all(axis=1))
    return template_from(kept, Landmarks(landmarks.names, mesh.vertices[ids]))


def nearest(vertices: np.ndarray, points: np.ndarray) -> np.ndarray:
    return np.linalg.norm(points[:, None] - vertices[None], axis=2).argmin(axis=1)


def true_points(points: np.ndarray, size: float, edge: float = 8.0) -> np.ndarray:
    """Where points of the plain torso's vertices lie on another one: same angle and height."""
    base, other = torso(edge)[0].vertices, torso(edge, size)[0].vertices
    return other[nearest(base, points)] * STRETCH


def shaped(size: float) -> Scan:
    mesh = torso(6.0, size)[0]
    marks = front().landmarks
    on_scan = (
        Surface(mesh.with_vertices(mesh.vertices * STRETCH)).closest(true_points(marks.points, size)).points
    )
    return Scan("plain", mesh.with_vertices(mesh.vertices * STRETCH), Landmarks(marks.names, on_scan))


@pytest.fixture(scope="module")
def registrar():
    return Registrar(front())


@pytest.fixture(scope="module")
def scan():
    return shaped(1.5)


@pytest.fixture(scope="module")
def result(registrar, scan):
    return registrar.register(scan)


def aligned(registrar, scan):
    """The rigid stage of a scan, and what it said of itself."""
    log = RegistrationLog()
    rigid = align_rigidly(registrar.prepared, prepare_scan(registrar.prepared, scan, log), log)
    return rigid.transform, log


def breast(result) -> np.ndarray:
    return result.template_mask > 0.2


def test_breast_lies_on_the_scan(result, scan):
    distances = Surface(scan.mesh).closest(result.vertices).distances
    assert distances[breast(result)].mean() < 0.15
    assert result.metrics["distance_inside"] < 0.15
    assert result.metrics["residual_nipple_left"] < 1.0
    assert result.metrics["flipped_percent"] == 0.0
    assert result.warnings == ()


def test_points_end_where_they_belong(registrar, result, scan):
    truth = true_points(registrar.template.mesh.vertices, 1.5)
    error = np.linalg.norm(result.vertices - truth, axis=1)
    rigid = register(registrar.template, scan, preset("rigid"))
    assert error[breast(result)].mean() < 6.0
    assert (
        error[breast(result)].mean()
        < 0.5 * np.linalg.norm(rigid.vertices - truth, axis=1)[breast(result)].mean()
    )


@pytest.mark.slow
def test_notch_and_nipples_are_enough(registrar, result, scan):
    few = scan.landmarks.only(("sternal_notch", "nipple_left", "nipple_right"))
    found = registrar.register(replace(scan, landmarks=few))
    truth = true_points(registrar.template.mesh.vertices, 1.5)
    off = [np.linalg.norm(one.vertices - truth, axis=1)[breast(result)].mean() for one in (found, result)]
    assert off[0] < off[1] + 1.0
    # What was used is said, and where it was found is about where it is.
    assert set(found.estimated) == set(scan.landmarks) - set(few)
    assert all(name in str(found.warnings[0]) for name in found.estimated)
    assert np.linalg.norm(found.estimated["xiphoid"] - scan.landmarks["xiphoid"]) < 12.0
    assert np.abs(found.scan_mask - result.scan_mask).mean() < 0.03
    # An estimate pulls nothing, and nothing is said to agree with it.
    assert "residual_xiphoid" not in found.metrics
    assert "residual_nipple_left" in found.metrics
    assert not len(result.estimated)


def test_one_pole_more_or_less_hardly_matters(registrar, result, scan):
    marks = scan.landmarks.only([name for name in scan.landmarks if name != "lateral_pole_left"])
    found = registrar.register(replace(scan, landmarks=marks))
    assert tuple(found.estimated) == ("lateral_pole_left",)
    assert np.linalg.norm(found.vertices - result.vertices, axis=1)[breast(result)].mean() < 1.5


def test_one_breast_needs_no_poles_either(registrar, scan):
    found = registrar.register(
        replace(scan, landmarks=scan.landmarks.only(("sternal_notch", "xiphoid", "nipple_left")))
    )
    assert found.absent_side == "right"
    assert tuple(found.estimated) == ("lower_pole_left", "lateral_pole_left")


def test_any_pose_gives_the_same_shape(registrar, result, scan):
    move = Similarity(rotation_about(np.array([1.0, -2.0, 0.5]), 140.0), np.array([300.0, -900.0, 50.0]))
    moved = replace(
        scan,
        mesh=scan.mesh.with_vertices(move.apply(scan.mesh.vertices)),
        landmarks=scan.landmarks.transformed(move),
    )
    there = registrar.register(moved)
    assert np.abs(move.inverse().apply(there.vertices) - result.vertices).max() < 1e-3


def test_same_input_twice_is_bit_identical(registrar, result, scan):
    again = Registrar(registrar.template).register(scan)
    assert np.array_equal(again.vertices, result.vertices)


def test_order_of_the_scan_does_not_matter(registrar, result, scan):
    rng = np.random.default_rng(0)
    order, faces = rng.permutation(scan.mesh.n_vertices), rng.permutation(scan.mesh.n_faces)
    shuffled = TriangleMesh(scan.mesh.vertices[order], np.argsort(order)[scan.mesh.faces][faces])
    other = registrar.register(replace(scan, mesh=shuffled))
    assert np.abs(other.vertices - result.vertices).max() < 1e-3
    assert np.allclose(other.scan_mask, result.scan_mask[order], atol=1e-9)


def test_outside_is_calm_with_masks_and_tight_without(registrar, result, scan):
    plain = register(registrar.template, scan, preset("default", use_masks=False))
    outside = result.template_mask < 0.02
    surface = Surface(scan.mesh)
    tight = surface.closest(plain.vertices[outside]).distances.mean()
    assert tight < 0.3
    rigid = result.transform.apply(registrar.template.mesh.vertices)
    calm = np.linalg.norm(result.vertices - rigid, axis=1)[outside].mean()
    assert calm < 0.8 * np.linalg.norm(plain.vertices - rigid, axis=1)[outside].mean()


def test_a_hole_under_the_breast_stays_smooth(registrar, scan):
    mark = scan.landmarks["lower_pole_left"] + [0.0, -12.0, 0.0]
    keep = np.linalg.norm(scan.mesh.vertices - mark, axis=1) > 22
    holed = replace(scan, mesh=scan.mesh.kept(keep[scan.mesh.faces].all(axis=1)))
    result = registrar.register(holed)
    assert result.metrics["flipped_percent"] == 0.0
    assert result.metrics["smallest_area_ratio"] > 0.1
    filled = Surface(scan.mesh).closest(result.vertices[breast(result)]).distances
    assert filled.max() < 8.0  # the bridge stays near the skin that was not scanned


def test_half_a_breast_that_was_not_scanned_is_said(registrar, scan):
    above = scan.landmarks["nipple_left"] + [0.0, 75.0, -20.0]
    keep = np.linalg.norm(scan.mesh.vertices - above, axis=1) > 85
    keep |= np.linalg.norm(scan.mesh.vertices - scan.landmarks["nipple_left"], axis=1) < 10
    holed = replace(scan, mesh=scan.mesh.kept(keep[scan.mesh.faces].all(axis=1)))
    result = registrar.register(holed)
    assert result.metrics["distance_inside"] < 0.15  # speaks of the rest
    assert len(result.warnings) == 1
    assert "of the left breast is in the scan" in str(result.warnings[0])


def test_jittered_landmarks_hardly_move_the_surface(registrar, result, scan):
    rng = np.random.default_rng(4)
    names, points = scan.landmarks.names, scan.landmarks.points
    jitter = rng.normal(0, 5 / np.sqrt(3), points.shape)
    other = registrar.register(replace(scan, landmarks=Landmarks(names, points + jitter)))
    change = Surface(result.mesh).closest(other.vertices[breast(result)]).distances
    assert change.mean() < 1.0


def test_what_the_warp_knows_mends_a_start_by_a_vaguely_found_sternum(registrar, result, scan):
    """Both ends of the sternum are found too high; nipples and poles are where they are."""
    marks = scan.landmarks
    high = np.array([[0.0, 15.0 * (name in STERNUM), 0.0] for name in marks])
    points = Surface(scan.mesh).closest(marks.points + high).points
    vague = {name: Found("shape", 12.0, np.diag([9.0, 225.0, 9.0])) for name in STERNUM}
    wrong = replace(scan, landmarks=Landmarks(marks.names, points, found=vague))
    without_warp = Registrar(registrar.template, replace(preset("default"), warp=None))
    again, log = aligned(registrar, wrong)
    before, after, right = (
        transform.apply(registrar.template.landmarks["sternal_notch"][None])[0][1]
        for transform in (aligned(without_warp, wrong)[0], again, result.transform)
    )
    assert before - right > 2.0
    assert abs(after - right) < 0.7 * (before - right)
    assert [stage.name for stage in log.stages] == ["rigid"]
    assert registrar.register(wrong).transform.translation == pytest.approx(again.translation)
    # What a person set is kept: the template stays where the sternum puts it.
    assert result.transform.translation == pytest.approx(aligned(without_warp, scan)[0].translation)


def test_other_templates_are_told_how_bodies_vary(registrar):
    """They have no say within the breasts there; carried to the built-in template they are what was learnt."""
    assert not registrar.prepared.knows_bodies
    assert registrar.prepared.whole_basis is not None
    built_in = default_template()
    assert PreparedTemplate(built_in, preset("default")).knows_bodies
    known, carried = known_bodies(), bodies_carried_to(built_in)
    assert np.allclose(carried.modes, known.modes, atol=1e-6)
    assert np.allclose(carried.by_size, known.by_size, atol=1e-6)
    larger = replace(
        built_in,
        mesh=built_in.mesh.with_vertices(1.1 * built_in.mesh.vertices),
        coarse=built_in.coarse.with_vertices(1.1 * built_in.coarse.vertices),
    )
    assert np.allclose(bodies_carried_to(larger).modes, 1.1 * known.modes, atol=1e-6)


def test_a_template_without_nipples_is_told_nothing_of_bodies(registrar):
    template = registrar.template
    sternum = {name: template.landmark_ids[name] for name in STERNUM}
    assert bodies_carried_to(replace(template, landmark_ids=sternum)) is None


def test_wide_people_are_not_as_much_longer():
    """What size tells: beside the template's proportions the belly of a large body lies higher."""
    below = (
        default_template().coarse.vertices[:, 1] < default_template().landmarks["lower_pole_left"][1] - 20.0
    )
    assert known_bodies().by_size[below, 1].mean() > 0.0
    prior = PreparedTemplate(default_template(), preset("default")).sliding_basis
    usual, large = (prior.functions.anchors @ prior.mean_of(size) for size in (0.0, 0.1))
    assert np.abs(usual).max() == 0.0
    assert 2.0 < (large - usual)[below, 1].mean() < 15.0


def test_the_second_warp_keeps_the_trunk_where_whole_bodies_put_it(registrar, scan):
    prepared = registrar.prepared
    log = RegistrationLog()
    rigid = align_rigidly(prepared, prepare_scan(prepared, scan, log), log)
    start, size = (prepared.fine.mesh, prepared.coarse.mesh), float(np.log(rigid.transform.scale))
    args = (rigid.target, start[0].vertices, start[1])
    rest = (prepared.fine.landmark_ids, rigid.marks)
    alone = warp_onto(*args, prepared.sliding_basis, *rest, size=size)[1]
    whole = warp_onto(*args, prepared.whole_basis, *rest, size=size)[1]
    both = prepared.warp_onto(rigid.target, start, rigid.marks, rigid.transform.scale)[1]
    trunk = prepared.functions.trunk > 0.9
    off = {
        name: np.linalg.norm((one - whole)[trunk], axis=1).mean()
        for name, one in (("alone", alone), ("both", both))
    }
    assert off["both"] < 0.7 * off["alone"]


class Torn:
    """A target to which half of the anchors, here and there, lie 5 mm outwards and the others 5 mm inwards."""

    def __init__(self, mesh):
        self.out = np.arange(mesh.n_vertices) % 2 == 0
        self.normals = vertex_normals(mesh.vertices, mesh.faces)
        self.points = mesh.vertices + np.where(self.out, 5.0, -5.0)[:, None] * self.normals

    def pairs(self, points, normals, max_angle):
        across = ((self.points - points) * self.normals).sum(axis=1)
        return Pairs(self.points, self.normals, np.abs(across), np.ones(len(points), bool))


def test_skin_hardly_pairs_with_skin_of_another_depth_in_the_breast(registrar):
    """Where breasts touch, or one overhangs, the nearest skin is often not the same skin: the masks tell."""
    prepared = registrar.prepared
    coarse, functions = prepared.coarse.mesh, prepared.functions
    target = Torn(coarse)
    start = (target, prepared.fine.mesh.vertices, coarse, prepared.sliding_basis, {}, Landmarks.of({}))
    alike, other = functions.mask, functions.mask + np.where(target.out, 0.0, 1.0)
    moved = [
        ((warp_onto(*start, mask_at=lambda _, at=at: at)[1] - coarse.vertices) * target.normals)
        .sum(axis=1)
        .mean()
        for at in (alike, other)
    ]
    assert abs(moved[0]) < 1.0
    assert moved[1] > 3.0


def test_absent_side_registers_and_is_named(registrar, scan):
    one = scan.landmarks.only([name for name in scan.landmarks if not name.endswith("_right")])
    result = registrar.register(replace(scan, landmarks=one))
    assert result.absent_side == "right"
    assert any("right breast is absent" in str(warning) for warning in result.warnings)
    assert "residual_nipple_right" not in result.metrics
    distances = Surface(scan.mesh).closest(result.vertices).distances
    assert distances[breast(result) & (result.vertices[:, 0] > 20)].mean() < 0.3


def test_landmarks_of_another_scan_are_refused(registrar, scan):
    off = scan.landmarks.transformed(Similarity(translation=np.array([0.0, 60.0, 120.0])))
    with pytest.raises(LandmarkProblem, match="off the scan's surface"):
        registrar.register(replace(scan, landmarks=off))


def test_swapped_sides_are_refused(registrar, scan):
    swap = {"left": "right", "right": "left"}
    names = tuple("_".join(swap.get(word, word) for word in name.split("_")) for name in scan.landmarks.names)
    with pytest.raises(LandmarkProblem, match="plain: sides swapped"):
        registrar.register(replace(scan, landmarks=Landmarks(names, scan.landmarks.points)))


@pytest.mark.parametrize("turn", [0.0, 100.0])
def test_a_nipple_and_a_lower_pole_that_are_exchanged_are_doubted(registrar, scan, turn):
    # On a hanging breast the two are so close that no range is left; in any pose of the scan.
    points = dict(scan.landmarks)
    low = points["nipple_left"] + [0.0, -15.0, 0.0]
    points["lower_pole_left"], points["nipple_left"] = points["nipple_left"], low
    move = Similarity(rotation_about(np.array([1.0, 0.0, 0.0]), turn))
    placed = scan.mesh.with_vertices(move.apply(scan.mesh.vertices))
    result = registrar.register(replace(scan, mesh=placed, landmarks=Landmarks.of(points).transformed(move)))
    doubts = [warning for warning in result.warnings if "exchanged" in str(warning)]
    assert len(doubts) == 1
    assert "lower_pole_left lies above nipple_left" in str(doubts[0])


def test_a_sphere_is_refused_or_loudly_doubted(registrar, scan):
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 60), np.linspace(0.02, np.pi - 0.02, 40))
    points = 160 * np.column_stack(
        [(np.cos(u) * np.sin(v)).ravel(), np.cos(v).ravel(), (np.sin(u) * np.sin(v)).ravel()]
    )
    a = (np.arange(39)[:, None] * 60 + np.arange(59)).ravel()
    faces = np.vstack([np.column_stack([a, a + 1, a + 61]), np.column_stack([a, a + 61, a + 60])])
    ball = TriangleMesh(points, faces)
    marks = Landmarks(scan.landmarks.names, Surface(ball).closest(scan.landmarks.points * 1.1).points)
    try:
        result = registrar.register(Scan("ball", ball, marks))
    except BreastMorphError:
        return
    assert result.warnings


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paper", "paper-stacked"])
def test_presets_of_the_paper_run_with_all_their_stages(name, scan):
    result = register(front(), scan, preset(name))
    assert [stage.name for stage in result.stages] == ["rigid", "initial", "coarse", "fine"]
    assert result.metrics["distance_inside"] < 5.0
    fine = result.stages[-1]
    assert fine.trace[0].stiffness == 250.0
    assert fine.trace[-1].stiffness >= 1.0


def test_unknown_preset_is_named():
    with pytest.raises(BreastMorphError, match="unknown preset"):
        preset("papier")


def test_a_dense_scan_is_registered_as_without_its_thinned_copy():
    template = front()
    mesh, landmarks = torso(4.0, 1.1)
    scan = Scan("dense", mesh, landmarks)
    whole = register(template, scan)
    lengths = replace(whole.parameters, dense=1000, dense_edge=6.0)
    thin = register(template, scan, lengths)
    off = np.linalg.norm(thin.vertices - whole.vertices, axis=1)
    assert 0.0 < off.max() < 0.5
    assert off.mean() < 0.05
    assert len(thin.scan_mask) == mesh.n_vertices
