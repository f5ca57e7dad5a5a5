"""Editing: what is asked for is attained, what is held stays, what cannot be is refused in clear words."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breast_cohort import breast_model, breast_shapes, breast_template
from breastmorph.clinical.edit.edit_space import EditSpace
from breastmorph.clinical.edit.editing import Editor, EditParameters
from breastmorph.clinical.edit.feature_regression import RegressionParameters, population, regress
from breastmorph.clinical.edit.model_features import ModelFeatures
from breastmorph.clinical.edit.most_likely import most_likely
from breastmorph.clinical.features import Request, parse_request
from breastmorph.clinical.patient import Patient, mean_patient, place, registered_patient, template_of
from breastmorph.errors import BreastMorphError, FileProblem, LandmarkProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.similarity import Similarity

FIVE = ("sternal_notch", "nipple_left", "nipple_right", "lower_pole_left", "lower_pole_right")


@cache
def features(kind: str = "straight") -> ModelFeatures:
    return ModelFeatures(breast_model(), kind)


@cache
def stranger() -> Patient:
    """Somebody outside the cohort, with a bump that the model cannot express, in a pose and size of her own."""
    shape = breast_shapes(1, seed=5)[0]
    shape = shape + 4.0 * np.cos(shape[:, [1, 2, 0]] / 9.0)
    return Patient("stranger", shape * 1.1 + [30.0, -40.0, 25.0])


@cache
def editor(who: str = "mean", kind: str = "straight") -> Editor:
    patient = mean_patient(breast_model()) if who == "mean" else stranger()
    return Editor(breast_model(), patient, features(kind))


def change(edit, name):
    return next(one for one in edit.changes if one.name == name)


# --- requests as people write them ------------------------------------------------------------------------------------


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


# --- the exact version ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["mean", "stranger"])
@pytest.mark.parametrize("name", ["SN-NL", "NL-NR", "NR-LPR", "projection-left", "volume-right"])
@pytest.mark.parametrize("deviations", [-2.0, 2.0])
def test_two_standard_deviations_are_attained_and_holds_hold(who, name, deviations):
    feature, _, sd = editor(who).usual(name)
    held = "SN-NR" if name == "NL-NR" else "NL-NR"
    amount = max(
        deviations * sd, -0.7 * feature.value(editor(who).patient.shape)
    )  # no breast has less than nothing
    edit = editor(who).exact([Request(name, amount, relative=True)], [held, "thorax"])
    assert abs(change(edit, feature.name).error) < 0.1
    assert abs(change(edit, held).after - change(edit, held).before) < 0.1
    assert edit.movements["thorax"] < 1.0
    # Measured again from the shape alone.
    assert abs(feature.value(edit.shape) - feature.value(edit.before) - amount) < 0.1
    assert edit.movements["left"] + edit.movements["right"] > 2.0


def test_several_requests_and_a_tape_measure_at_once():
    one = editor("stranger")
    edit = one.exact(
        [
            Request("SN-NL", 8.0, relative=True),
            Request("SN-NR", -5.0, relative=True),
            Request("tape NL-NR", 6.0, relative=True),
        ],
        ["volume-left"],
    )
    assert edit.largest_error < 0.1
    assert {c.name for c in edit.changes if c.requested is not None} == {
        "SN-NL", "SN-NR", "NL-NR tape", "volume-left",
    }  # fmt: skip


def test_the_result_is_the_most_likely_one():
    one = editor("stranger")
    requests = [Request("SN-NL", 10.0, relative=True), Request("NL-NR", -6.0, relative=True)]
    edit = one.exact(requests)
    model = breast_model()
    u = (edit.coefficients - edit.coefficients_before) / model.deviations
    rng = np.random.default_rng(0)
    space = EditSpace(model, stranger().shape, one.place, one._regions["thorax"], with_size=False)
    wanted = np.array([features().find(r.name).value(stranger().shape) + r.amount for r in requests])

    def read(at):
        readings = [features().find(r.name).read(space.displaced(at)) for r in requests]
        return np.array([r.value for r in readings]), np.array([space.pulled_back(r) for r in readings])

    for _ in range(5):  # from other places, Newton steps onto the constraints end farther away
        other = u + 0.3 * rng.normal(size=len(u))
        for _ in range(20):
            values, slopes = read(other)
            other = other + np.linalg.lstsq(slopes, wanted - values, rcond=None)[0]
        assert np.abs(read(other)[0] - wanted).max() < 1e-3
        assert np.linalg.norm(other) > np.linalg.norm(u)


def test_asking_for_what_is_there_returns_the_shape_itself():
    edit = editor("stranger").exact([Request("SN-NL", 0.0, relative=True)], ["thorax"])
    assert np.array_equal(edit.shape, stranger().shape)
    assert edit.length == 0.0
    assert edit.movements["thorax"] == 0.0


def test_what_the_model_cannot_express_stays():
    model, patient = breast_model(), stranger()
    edit = editor("stranger").exact([Request("SN-NL", 10.0, relative=True)], ["NL-NR"])
    to_model = place(model, patient.shape).to_model
    assert (
        np.linalg.norm(
            model.instance(model.project(to_model.apply(patient.shape))) - to_model.apply(patient.shape)
        )
        > 50
    )
    moved = (edit.shape - edit.before) @ to_model.rotation.T * to_model.scale
    # The movement is one of the model's modes and of a rigid motion that keeps the thorax.
    points = to_model.apply(patient.shape)
    fields = [np.tile(axis, (len(points), 1)) for axis in np.eye(3)] + [
        np.cross(axis, points) for axis in np.eye(3)
    ]
    known = np.column_stack([model.basis, *(field.ravel() for field in fields)])
    left = moved.ravel() - known @ np.linalg.lstsq(known, moved.ravel(), rcond=None)[0]
    assert np.abs(left).max() < 1e-3
    assert np.abs(moved).max() > 5.0


def test_pose_and_unit_of_the_patient_do_not_matter():
    turn = Similarity(
        Rotation.from_euler("xyz", [3, -8, 4], degrees=True).as_matrix(), np.array([400.0, 3.0, -90.0])
    )
    other = Patient("turned", turn.apply(stranger().shape))
    requests, hold = [Request("SN-NL", 9.0, relative=True)], ["NL-NR", "thorax"]
    first = editor("stranger").exact(requests, hold)
    second = Editor(breast_model(), other, features()).exact(requests, hold)
    assert np.abs(turn.apply(first.shape) - second.shape).max() < 0.05


def test_a_held_breast_stays():
    _, _, sd = editor().usual("volume-left")
    edit = editor().exact([Request("volume-left", sd, relative=True)], ["right", "thorax"])
    assert edit.movements["right"] < 1.0
    assert edit.movements["thorax"] < 1.0
    assert edit.movements["left"] > 1.0


def test_holding_the_thorax_costs_likelihood_and_no_more_than_needed():
    model = breast_model(rigid=True)  # where size is no coordinate beside the modes
    one = Editor(model, mean_patient(model))
    request = [Request("SN-NL", 25.0, relative=True)]
    free, held = one.exact(request), one.exact(request, ["thorax"])
    assert free.movements["thorax"] > 1.0 > held.movements["thorax"]
    assert held.movements["thorax"] > 0.8  # the limit is used
    assert held.length > free.length


def test_few_subjects_hold_the_thorax_by_local_modes():
    model = breast_model(k=7)
    one = Editor(model, replace(stranger(), id="few"), ModelFeatures(model))
    edit = one.exact([Request("SN-NL", 15.0, relative=True)], ["NL-NR", "thorax"])
    assert edit.largest_error < 0.1
    assert edit.movements["thorax"] < 1.0
    assert any("modes were made local" in warning for warning in edit.warnings)
    assert np.allclose(edit.coefficients, place(model, edit.shape).coefficients)
    # Far from the breasts nothing moves at all.
    moved = np.linalg.norm(edit.shape - edit.before, axis=1)
    away = np.linalg.norm(model.mean[:, None] - model.mean[list(model.landmark_ids.values())], axis=2).min(
        axis=1
    )
    assert moved[away > 150.0].max(initial=0.0) == 0.0
    assert moved.max() > 10.0


def test_a_model_that_keeps_size_is_edited_too():
    model = breast_model(rigid=True)
    edit = Editor(model, mean_patient(model)).exact([Request("SN-NL", 12.0, relative=True)], ["thorax"])
    assert edit.largest_error < 0.1
    assert edit.movements["thorax"] < 1.0
    assert edit.size_change == 0.0


def test_five_landmarks_are_enough():
    full = breast_model()
    model = replace(
        full, landmark_ids={name: full.landmark_ids[name] for name in FIVE}, training=None, info={}
    )
    one = Editor(model, mean_patient(model))
    edit = one.exact([Request("SN-NL", 2.0, "cm", relative=True), Request("NL-NR", 210.0)], ["thorax"])
    assert edit.largest_error < 0.1
    assert edit.movements["thorax"] < 1.0
    with pytest.raises(BreastMorphError, match="'SN-XI' is not known here"):
        one.exact([Request("SN-XI", 2.0, relative=True)])


# --- warnings and refusals --------------------------------------------------------------------------------------------


def test_beyond_three_standard_deviations_there_is_a_warning():
    _, _, sd = editor().usual("SN-NL")
    assert not editor().exact([Request("SN-NL", 1.5 * sd, relative=True)]).warnings
    warnings = editor().exact([Request("SN-NL", 3.5 * sd, relative=True)]).warnings
    assert any("SN-NL: the value asked for lies 3.5 standard deviations above" in text for text in warnings)


@pytest.mark.parametrize(
    ("requests", "hold", "says"),
    [
        # Two sides of a triangle are shorter than the third.
        (["SN-NL=80mm", "SN-NR=80mm", "NL-NR=300mm"], [], "cannot be attained; the nearest shape found has"),
        (["SN-NL=90cm"], [], "is out of reach"),
        (["SN-XI=+5cm"], ["thorax"], "while thorax stays cannot be attained"),
        (["SN-NL=0mm"], [], "SN-NL would be 0.0 mm"),
        (["SN-NL=-90cm"], [], "It is"),
        (["SN-NL=20cm", "straight sn_nl=21cm"], [], "asked for twice"),
        (["SN-NL=20cm"], ["SN-NL"], "both to be changed and to be held"),
        (["SN-NL=20cc"], [], "not measured in cc"),
        (["shoe size=40"], [], "'shoe size' is not known here"),
        (["SN-NL=20cm"], ["belly"], "'belly' cannot be held"),
        (["N-NL=20cm"], [], "Measures are SN-XI"),
        (["weight=70"], ["SN-NL", "tape projection-left"], "cannot be held"),
    ],
)
def test_what_cannot_be_is_refused_in_clear_words(requests, hold, says):
    with pytest.raises(BreastMorphError) as caught:
        editor().exact([parse_request(text) for text in requests], hold)
    assert says in str(caught.value)
    assert caught.value.remedy


def test_a_folded_surface_is_refused():
    strict = Editor(breast_model(), mean_patient(breast_model()), features(), EditParameters(torn=-1.0))
    with pytest.raises(BreastMorphError, match="would fold the surface") as caught:
        strict.exact([Request("SN-NL", 5.0, relative=True)])
    assert caught.value.code == "unattainable"


def test_an_absent_breast_has_no_measures():
    one = Editor(breast_model(), replace(stranger(), absent_side="left"))
    edit = one.exact([Request("SN-NR", 8.0, relative=True)])
    assert edit.movements["left"] < 1.0 < edit.movements["right"]
    names = {c.name for c in edit.changes}
    assert "volume-right" in names
    assert not names & {"SN-NL", "NL-NR", "volume-left"}
    with pytest.raises(BreastMorphError, match=r"'SN-NL' is not known here.*the left breast is absent"):
        one.exact([Request("SN-NL", 5.0, relative=True)])


def test_a_shape_of_another_topology_is_refused():
    with pytest.raises(BreastMorphError, match="12 vertices"):
        Editor(breast_model(), Patient("x", np.zeros((12, 3))), features())


def test_a_model_of_one_breast_has_no_thorax_to_hold():
    model = breast_model()
    part = model.marginal(np.flatnonzero(model.mean[:, 0] > 0))
    one = Editor(part, mean_patient(part))
    assert one.exact([Request("NL-LPL", 4.0, relative=True)]).largest_error < 0.1
    with pytest.raises(LandmarkProblem, match="the thorax cannot be held"):
        one.exact([Request("NL-LPL", 4.0, relative=True)], ["thorax"])


# --- the linear version -----------------------------------------------------------------------------------------------


def test_the_regression_is_the_papers():
    model = breast_model()
    chosen = [features().find(name) for name in ("SN-NL", "SN-NR", "NL-NR")]
    found = regress(model, chosen, [], 1.0)
    scores = model.training.scores
    table = np.array(
        [[f.value(model.instance(score)) for score in scores] for f in chosen] + [np.ones(len(scores))]
    )
    printed = scores.T @ np.linalg.pinv(table)  # M = A F+, the last column is the constant's
    assert np.abs(found.matrix - printed[:, :3]).max() < 1e-6 * np.abs(printed).max()
    assert found.source == "the 40 subjects of the model"


def test_without_scores_the_model_is_sampled_and_that_is_said():
    with_scores, without = breast_model(), breast_model(scores=False)
    chosen = [features().find("SN-NL"), features().find("volume-left")]
    few = regress(without, chosen[:1], [], 1.0)
    assert few.source == "10,000 samples of the model"
    costly = regress(without, chosen, [], 1.0, RegressionParameters(costly_samples=120))
    assert costly.source == "120 samples of the model"
    same = regress(with_scores, chosen[:1], [], 1.0)
    difference = (few.matrix - same.matrix)[:, 0] / with_scores.deviations
    assert np.linalg.norm(difference) < 0.2 * np.linalg.norm(same.matrix[:, 0] / with_scores.deviations)


def test_linear_errs_where_exact_does_not_and_small_steps_agree():
    request = [Request("NR-LPR", 20.0, relative=True), Request("SN-NR", 20.0, relative=True)]
    exact, linear = editor().exact(request), editor().linear(request)
    assert exact.largest_error < 0.1 < linear.largest_error
    small = [Request("SN-NR", 0.5, relative=True)]
    exact, linear = editor().exact(small), editor().linear(small)
    moved = np.linalg.norm(exact.shape - exact.before)
    assert np.linalg.norm(linear.shape - exact.shape) < 0.1 * moved
    with pytest.raises(BreastMorphError, match="linear version cannot hold the thorax"):
        editor().linear(small, ["thorax"])


def test_a_column_of_the_table_is_edited_with_size():
    model = breast_model()
    weights = model.training.columns["weight"]
    edit = editor().linear([Request("weight", float(weights.mean()) + 3.0)])
    assert edit.size_change == pytest.approx(3.0 / weights.mean(), rel=0.1)
    assert change(edit, "weight").before == pytest.approx(weights.mean())
    kept = editor().exact([Request("weight", 3.0, relative=True)], ["SN-NL"])
    assert abs(change(kept, "SN-NL").error) < 0.1
    assert kept.length > 0.1
    with pytest.raises(BreastMorphError, match="no shape tells its weight"):
        editor("stranger").linear([Request("weight", 70.0)])
    assert editor("stranger").linear([Request("age", 5.0, relative=True)]).length > 0.0


def test_columns_need_the_scores():
    one = Editor(breast_model(scores=False), mean_patient(breast_model(scores=False)), features())
    with pytest.raises(BreastMorphError, match="'weight' is not known here"):
        one.linear([Request("weight", 3.0, relative=True)])


# --- the parts --------------------------------------------------------------------------------------------------------


def test_population_is_that_of_samples():
    model, rng = breast_model(), np.random.default_rng(1)
    feature = features().find("SN-NL")
    mean, sd = population(model, feature, 1.2)
    values = [feature.value(1.2 * model.sample(rng)) for _ in range(400)]
    assert abs(np.mean(values) - mean) < 0.2 * sd
    assert 0.85 < np.std(values) / sd < 1.15


@pytest.mark.parametrize("name", ["SN-NL", "base-width-left", "volume-right"])
def test_gradients_reach_the_coordinates(name):
    one = editor("stranger")
    space = EditSpace(breast_model(), stranger().shape, one.place, one._regions["thorax"], with_size=True)
    feature = features().find(name)
    rng = np.random.default_rng(2)
    at, along = 0.5 * rng.normal(size=space.dimension), rng.normal(size=space.dimension)
    slope = space.pulled_back(feature.read(space.displaced(at))) @ along
    step = 1e-3
    values = [feature.value(space.displaced(at + sign * step * along)) for sign in (1, -1)]
    assert slope == pytest.approx((values[0] - values[1]) / (2 * step), rel=2e-2, abs=0.05)


def test_a_constraint_that_bends_much_is_still_met():
    # The unit circle about (0, 3) in two of six dimensions: plain linear steps swing about it.
    def read(u):
        out = u[:2] - np.array([0.0, 3.0])
        length = np.linalg.norm(out)
        return np.array([length]), np.concatenate([out / length, np.zeros(4)])[None]

    gram = np.diag([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    found = most_likely(read, np.array([1.0]), np.zeros(6), [gram], limit=2.5)
    assert found.attained
    assert found.coordinates[:2] == pytest.approx([0.0, 2.0], abs=1e-3)
    assert found.movements[0] <= 2.5
    tight = most_likely(read, np.array([1.0]), np.zeros(6), [gram], limit=1.0)
    assert not (tight.attained and tight.movements[0] <= 1.0)


def test_registered_meshes_come_back_in_their_own_frame_and_unit(tmp_path):
    model = breast_model()
    to_file = Similarity(
        Rotation.from_euler("x", 90, degrees=True).as_matrix(), np.array([1.0, 2.0, 3.0]), 0.001
    )
    path = tmp_path / "anna.ply"
    save_mesh(model.mesh(to_file.apply(stranger().shape)), path)
    patient = registered_patient(model, path)
    assert patient.to_file.apply(patient.shape) == pytest.approx(to_file.apply(stranger().shape), abs=1e-9)
    lengths = [features().find("SN-NL").value(shape) for shape in (patient.shape, stranger().shape)]
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-9)
    save_mesh(model.mesh(7.7e-6 * stranger().shape), path)
    with pytest.raises(FileProblem, match="no adult's size"):
        registered_patient(model, path)
    (tmp_path / "anna.json").write_text("{}")
    with pytest.raises(FileProblem, match="record cannot be read"):
        registered_patient(model, path)


def test_the_template_of_a_model_has_its_triangles():
    found = template_of(breast_model())
    assert np.array_equal(found.mesh.faces, breast_model().faces)
    assert dict(found.landmark_ids) == dict(breast_template().landmark_ids)
    bare = replace(breast_model(), landmark_ids={name: breast_model().landmark_ids[name] for name in FIVE})
    with pytest.raises(LandmarkProblem, match="--landmark-ids"):
        template_of(bare)
