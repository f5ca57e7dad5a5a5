"""Distances on surfaces where they are known, names, missing landmarks, derivatives, ptosis."""

from dataclasses import replace

import numpy as np
import pytest

from breastmorph.clinical.distance_meter import DistanceMeter, measure_distances
from breastmorph.clinical.distances import DISTANCES, parse_measure
from breastmorph.clinical.examination import ptosis
from breastmorph.clinical.examiner import Examiner, examiner_of
from breastmorph.clinical.feature_requests import Request, parse_request
from breastmorph.clinical.features import measured_features
from breastmorph.clinical.measure_table import asymmetries
from breastmorph.clinical.skin_points import SkinLandmarks
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import Found, Landmarks
from breastmorph.template import default_template
from refusals import refused
from torso import torso

RADIUS = 120.0
FIVE = ("sternal_notch", "nipple_left", "nipple_right", "lower_pole_left", "lower_pole_right")


def cylinder() -> tuple[TriangleMesh, Landmarks]:
    """The front of a round trunk: every distance is a circle's or a straight line's."""
    angles = np.radians(np.linspace(-110, 110, 177))
    heights = np.linspace(-200, 100, 61)
    angle, height = (part.ravel() for part in np.meshgrid(angles, heights))
    a = (np.arange(60)[:, None] * 177 + np.arange(176)).ravel()
    faces = np.concatenate([np.column_stack([a, a + 1, a + 178]), np.column_stack([a, a + 178, a + 177])])

    def at(degrees: float, y: float) -> np.ndarray:
        return np.array([RADIUS * np.sin(np.radians(degrees)), y, RADIUS * np.cos(np.radians(degrees))])

    points = {"sternal_notch": at(0, 80), "xiphoid": at(0, -90)}
    for side, sign in (("left", 1), ("right", -1)):
        points |= {
            f"nipple_{side}": at(40 * sign, -60),
            f"lower_pole_{side}": at(40 * sign, -110),
            f"lateral_pole_{side}": at(90 * sign, -60),
        }
    vertices = np.column_stack([RADIUS * np.sin(angle), height, RADIUS * np.cos(angle)])
    return TriangleMesh(vertices, faces), Landmarks.of(points)


def values(mesh: TriangleMesh, landmarks: Landmarks) -> dict[tuple[str, str], float]:
    return {(m.name, m.kind): m.value for m in measure_distances(mesh, landmarks) if m.known}


@pytest.fixture(scope="module")
def on_cylinder():
    return values(*cylinder())


def arc(degrees: float) -> float:
    return RADIUS * np.radians(degrees)


def chord(degrees: float) -> float:
    return 2 * RADIUS * np.sin(np.radians(degrees / 2))


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("SN-XI", "tape", 170.0),
        ("SN-XI", "straight", 170.0),
        ("NL-NR", "tape", arc(80)),
        ("NL-NR", "straight", chord(80)),
        ("SN-NL", "tape", np.hypot(140, arc(40))),
        ("SN-NR", "straight", np.hypot(140, chord(40))),
        ("NL-LPL", "tape", 50.0),
        ("NL-M", "tape", arc(40)),
        ("NR-M", "straight", RADIUS * np.sin(np.radians(40))),
        ("half-chest-width-left", "tape", arc(90)),
        ("half-chest-width-right", "straight", chord(90)),
        ("projection-left", "straight", RADIUS * (np.cos(np.radians(5)) - np.cos(np.radians(45)))),
    ],
)
def test_distances_on_a_cylinder_are_those_of_geometry(on_cylinder, name, kind, expected):
    assert on_cylinder[name, kind] == pytest.approx(expected, rel=1e-3)


def test_a_tape_is_never_shorter_than_the_straight_line():
    found = values(*torso(8.0))
    both = [name for name, kind in found if kind == "tape" and (name, "straight") in found]
    assert len(both) == 10
    assert all(found[name, "tape"] >= found[name, "straight"] - 1e-9 for name in both)


def test_distances_between_landmarks_do_not_depend_on_the_pose():
    mesh, landmarks = torso(10.0)
    turn = Similarity.fit(np.eye(3), np.eye(3)[[1, 2, 0]])  # a proper rotation
    still = values(mesh, landmarks)
    moved = values(mesh.with_vertices(turn.apply(mesh.vertices)), landmarks.transformed(turn))
    for name in ("SN-NL", "NL-NR", "SN-XI", "NR-LPR"):
        for kind in ("tape", "straight"):
            assert moved[name, kind] == pytest.approx(still[name, kind], abs=1e-6)


def test_five_landmarks_give_what_they_can_and_reasons_for_the_rest():
    mesh, landmarks = torso(10.0)
    found = measure_distances(mesh, landmarks.only(FIVE))
    reasons = {m.name: str(m.reason or "") for m in found}
    assert {name for name, reason in reasons.items() if not reason} == {
        "SN-NL", "SN-NR", "NL-NR", "NL-LPL", "NR-LPR", "NL-M", "NR-M",
    }  # fmt: skip
    assert reasons["SN-XI"] == "needs xiphoid"
    assert reasons["half-chest-width-left"] == "needs lateral_pole_left"
    assert all(np.isnan(m.value) for m in found if not m.known)


def test_landmarks_that_no_distance_needs_may_lie_beyond_the_mesh():
    mesh, landmarks = torso(10.0)
    below = {"navel": mesh.vertices.min(axis=0) - 80.0, "coracoid_left": mesh.vertices.max(axis=0) + 60.0}
    more = Landmarks.of({**landmarks, **below})
    found, usual = ([m for m in measure_distances(mesh, marks) if m.known] for marks in (more, landmarks))
    assert len(usual) > 10
    assert found == usual
    with refused(kind=LandmarkProblem, name="nipple_left"):
        measure_distances(mesh, Landmarks.of({**landmarks, "nipple_left": below["navel"]}))


def test_an_absent_side_leaves_the_other_one_measured():
    mesh, landmarks = torso(10.0)
    one = landmarks.only([name for name in landmarks if not name.endswith("right")])
    found = {(m.name, m.kind): m for m in measure_distances(mesh, one)}
    assert found["SN-NL", "tape"].known
    assert found["NL-NR", "tape"].reason.message == "needs nipple_right"
    differences = {m.name: m for m in asymmetries(found.values())}
    assert not differences["SN-N"].known
    assert np.isnan(differences["SN-N"].value)


def test_asymmetry_is_left_minus_right():
    mesh, landmarks = cylinder()
    points = dict(landmarks)
    points["nipple_left"] = points["nipple_left"] - [0.0, 15.0, 0.0]
    found = {(m.name, m.kind): m.value for m in asymmetries(measure_distances(mesh, Landmarks.of(points)))}
    assert found["SN-N", "straight"] == pytest.approx(
        np.hypot(155, chord(40)) - np.hypot(140, chord(40)), abs=0.1
    )
    assert found["N-LP", "tape"] == pytest.approx(-15.0, abs=0.1)


def test_a_hole_over_the_sternum_makes_the_midline_unknown_only():
    mesh, landmarks = cylinder()
    near = np.abs(mesh.vertices[:, 0]) < 15
    hole = near & (np.abs(mesh.vertices[:, 1] + 60) < 15)
    found = {m.name: m for m in measure_distances(mesh.kept(~hole[mesh.faces].any(axis=1)), landmarks)}
    assert "midline" in found["half-chest-width-left"].reason.message
    assert found["SN-NL"].known


def test_pieces_that_are_not_joined_have_no_tape_between_them():
    mesh, landmarks = cylinder()
    apart = mesh.kept(~(np.abs(mesh.vertices[:, 0]) < 8)[mesh.faces].any(axis=1))
    names = [name for name in landmarks if "nipple" in name or "lower" in name]
    found = {(m.name, m.kind): m for m in measure_distances(apart, landmarks.only(names))}
    assert "joins" in found["NL-NR", "tape"].reason.message
    assert found["NL-NR", "straight"].known
    assert found["NL-LPL", "tape"].known


def test_landmarks_of_another_mesh_are_refused():
    mesh, landmarks = torso(12.0)
    with refused(kind=LandmarkProblem, name="nipple_left"):
        measure_distances(mesh, landmarks.transformed(Similarity(scale=10.0)))


def test_the_landmark_farthest_off_the_skin_is_named():
    mesh, landmarks = cylinder()
    moved = dict(landmarks)
    moved["sternal_notch"] = moved["sternal_notch"] + [0.0, 0.0, 30.0]
    moved["nipple_right"] = moved["nipple_right"] + [0.0, 0.0, 90.0]
    with refused(kind=LandmarkProblem, name="nipple_right"):
        SkinLandmarks.on(Surface(mesh), Landmarks.of(moved))


def test_found_landmarks_keep_their_own_spread_where_no_borders_are_found():
    mesh, landmarks = cylinder()
    known = ("sternal_notch", "nipple_left")  # they do not say where the breasts are
    ids = {name: int(np.linalg.norm(mesh.vertices - landmarks[name], axis=1).argmin()) for name in known}
    own = replace(landmarks.only(known), found={"nipple_left": Found("shape", 7.5, 56.0 * np.eye(3))})
    spread = Examiner(mesh, ids).landmarks(mesh.vertices, annotated=own).sd
    assert spread["nipple_left"] == 7.5
    assert spread["sternal_notch"] < 7.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SN-NL", ("SN-NL", "straight")),
        ("sn_nl tape", ("SN-NL", "tape")),
        ("tape SN-NL", ("SN-NL", "tape")),
        ("SN-NL:geodesic", ("SN-NL", "tape")),
        ("nipple_left to sternal_notch", ("SN-NL", "straight")),
        ("NR-NL", ("NL-NR", "straight")),
        ("N-N", ("NL-NR", "straight")),
        ("LPR-NR", ("NR-LPR", "straight")),
        ("Half-chest width left", ("half-chest-width-left", "straight")),
    ],
)
def test_names_are_understood_as_people_write_them(text, expected):
    assert parse_measure(text) == expected


@pytest.mark.parametrize("text", ["", "foo", "SN-LPL", "tape projection-left", "tape straight SN-NL", "NL"])
def test_unknown_names_are_refused_with_the_known_ones(text):
    with pytest.raises(BreastMorphError) as caught:
        parse_measure(text)
    assert caught.value.remedy


def test_derivatives_agree_with_differences():
    mesh, landmarks = torso(9.0)
    rng = np.random.default_rng(3)
    waves = rng.normal(scale=1 / 80.0, size=(4, 3))
    move = np.cos(mesh.vertices @ waves.T + rng.uniform(0, 6, 4)) @ rng.normal(size=(4, 3))
    meter = DistanceMeter(mesh.faces, SkinLandmarks.on(Surface(mesh), landmarks))
    step, checked = 1e-3, 0
    asked = [(d.name, kind) for d in DISTANCES.values() for kind in d.kinds if not meter.lacks(d.name)]
    shapes = [mesh.vertices + sign * step * move for sign in (-1, 1)]
    before, after = (meter.measures(shape, asked) for shape in shapes)
    for low, high in zip(before, after, strict=True):
        reading = meter.read(mesh.vertices, low.name, low.kind)
        by_gradient = float((reading.gradient * move[reading.vertices]).sum())
        # The midline's end may cross from one triangle into the next between the two shapes.
        assert by_gradient == pytest.approx((high.value - low.value) / (2 * step), abs=2e-3), (
            low.name,
            low.kind,
        )
        checked += 1
    assert checked == 22


def test_derivatives_say_that_moving_a_whole_body_changes_nothing():
    mesh, landmarks = torso(12.0)
    meter = DistanceMeter(mesh.faces, SkinLandmarks.on(Surface(mesh), landmarks))
    for name, kind in (
        ("SN-NL", "tape"),
        ("half-chest-width-left", "tape"),
        ("projection-right", "straight"),
    ):
        gradient = meter.read(mesh.vertices, name, kind).gradient
        assert np.abs(gradient.sum(axis=0)).max() < 1e-9


def test_a_measure_that_cannot_be_determined_has_no_derivative():
    mesh, landmarks = torso(12.0)
    meter = DistanceMeter(mesh.faces, SkinLandmarks.on(Surface(mesh), landmarks.only(FIVE)))
    with pytest.raises(BreastMorphError, match="needs xiphoid"):
        meter.read(mesh.vertices, "SN-XI", "tape")


def test_features_of_a_model_are_the_measures_of_its_shapes():
    mesh, landmarks = torso(12.0)
    ids = {
        name: int(np.linalg.norm(mesh.vertices - point, axis=1).argmin())
        for name, point in landmarks.only(FIVE).items()
    }
    basis = np.ones((3 * mesh.n_vertices, 1)) / np.sqrt(3 * mesh.n_vertices)
    model = ShapeModel(mesh.vertices, basis, np.ones(1), mesh.faces, ids)
    features = {one.name: one for one in measured_features(model)}
    assert set(features) - {"volume-left", "volume-right"} == {
        f"{name}{kind}"
        for name in ("SN-NL", "SN-NR", "NL-NR", "NL-LPL", "NR-LPR", "NL-M", "NR-M")
        for kind in ("", " tape")
    }
    straight = np.linalg.norm(model.mean[ids["sternal_notch"]] - model.mean[ids["nipple_left"]])
    assert features["SN-NL"].value(model.mean) == pytest.approx(straight)
    assert features["SN-NL"].read(1.1 * model.mean).value == pytest.approx(1.1 * straight)


@pytest.mark.parametrize(
    ("nipple", "pole", "grade"),
    [
        (5.0, -15.0, "none"),
        (5.0, -40.0, "pseudoptosis"),
        (-4.0, -40.0, "I"),
        (-20.0, -50.0, "II"),
        (-35.0, -60.0, "III"),
        (-8.0, -11.0, "III"),
    ],
)
def test_grades_of_ptosis(nipple, pole, grade):
    marks = {"nipple_left": [90, nipple, 80], "lower_pole_left": [90, pole, 50], "imf_left": [90, 0.0, 40]}
    found = ptosis(Landmarks.of(marks), "left")
    assert found.grade == grade
    assert found.above_fold == nipple
    assert found.above_lower_pole == nipple - pole


def test_without_a_fold_there_is_no_grade():
    _, landmarks = torso(20.0)
    found = ptosis(landmarks, "right")
    assert found.grade == "not determinable"
    assert "imf_right" in found.reason.message
    assert found.above_lower_pole == pytest.approx(45.0)
    assert np.isnan(ptosis(landmarks.only(["sternal_notch"]), "left").above_lower_pole)


def moved(name: str, by: list[float]) -> tuple[Examiner, TriangleMesh, Landmarks]:
    """An examiner of the default template, with a landmark that lies elsewhere."""
    template = default_template()
    points = dict(template.landmarks)
    annotated = Landmarks.of(points | {name: points[name] + np.array(by)})
    return examiner_of(template), template.mesh, annotated


@pytest.mark.slow
def test_a_lateral_pole_beyond_the_mesh_costs_only_its_own_measures():
    examiner, mesh, annotated = moved("lateral_pole_right", [-20.0, 0.0, -60.0])
    found = examiner.shape("wide", mesh.vertices, annotated=annotated)
    unknown = {measure.name for measure in found.measures if not measure.known}
    assert unknown == {"base-width-right", "half-chest-width-right", "projection-right"}
    assert [one.name for one in found.warnings] == ["not-reached"]
    examiner, mesh, annotated = moved("nipple_left", [0.0, 0.0, 60.0])
    with pytest.raises(LandmarkProblem, match="nipple_left"):
        examiner.shape("wrong", mesh.vertices, annotated=annotated)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SN-NL=21.5cm", Request("SN-NL", 21.5, "cm", False)),
        ("SN-NL = 215", Request("SN-NL", 215.0, "", False)),
        ("volume-left=400CC", Request("volume-left", 400.0, "CC", False)),
        ("NL-NR=+8mm", Request("NL-NR", 8.0, "mm", True)),
        ("bmi=-2,5", Request("bmi", -2.5, "", True)),
        ("tape SN-NL=.5 cm", Request("tape SN-NL", 0.5, "cm", False)),
    ],
)
def test_requests_are_read(text, expected):
    assert parse_request(text) == expected


@pytest.mark.parametrize("text", ["SN-NL", "=3", "SN-NL=", "SN-NL=long", "SN-NL=1e5x9", "SN-NL=nan", ""])
def test_no_request_is_refused(text):
    with pytest.raises(BreastMorphError, match="is no request"):
        parse_request(text)


def test_units_belong_to_their_quantity():
    assert Request("x", 2.0, "cm").in_unit("mm") == 20.0
    assert Request("x", 2.0, "ml").in_unit("cc") == 2.0
    for unit, of in (("cc", "mm"), ("cm", "cc"), ("kg", "")):
        with pytest.raises(BreastMorphError, match="not measured in"):
            Request("x", 2.0, unit).in_unit(of)
