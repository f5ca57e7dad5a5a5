"""Editing: what is asked for is attained, what is held stays, what cannot be is refused in clear words."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breast_cohort import breast_model
from breastmorph.clinical.edit_solver import EditSpace
from breastmorph.clinical.editing import Editor, EditParameters
from breastmorph.clinical.feature_requests import Request, parse_request
from breastmorph.clinical.features import ModelFeatures
from breastmorph.clinical.patient import Patient, mean_patient, place
from breastmorph.clinical.seam import JoinedBorder
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.topology import edge_table
from edited_people import FIVE, change, editor
from refusals import refused


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
    assert edit.movements["thorax"] == 0.0
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


def test_the_result_is_the_most_likely_one(breast_model, features, stranger):
    one = editor("stranger")
    requests = [Request("SN-NL", 10.0, relative=True), Request("NL-NR", -6.0, relative=True)]
    edit = one.exact(requests)
    model = breast_model
    u = (edit.coefficients - edit.coefficients_before) / model.deviations
    rng = np.random.default_rng(0)
    space = EditSpace(model, stranger.shape, one.place, one._regions["thorax"], with_size=False)
    wanted = np.array([features.find(r.name).value(stranger.shape) + r.amount for r in requests])

    def read(at):
        readings = [features.find(r.name).read(space.displaced(at)) for r in requests]
        return np.array([r.value for r in readings]), np.array([space.pulled_back(r) for r in readings])

    for _ in range(5):  # from other places, Newton steps onto the constraints end farther away
        other = u + 0.3 * rng.normal(size=len(u))
        for _ in range(20):
            values, slopes = read(other)
            other = other + np.linalg.lstsq(slopes, wanted - values, rcond=None)[0]
        assert np.abs(read(other)[0] - wanted).max() < 1e-3
        assert np.linalg.norm(other) > np.linalg.norm(u)


def test_asking_for_what_is_there_returns_the_shape_itself(stranger):
    edit = editor("stranger").exact([Request("SN-NL", 0.0, relative=True)], ["thorax"])
    assert np.array_equal(edit.shape, stranger.shape)
    assert edit.length == 0.0
    assert edit.movements["thorax"] == 0.0


def test_what_the_model_cannot_express_stays(breast_model, stranger):
    model = breast_model
    edit = editor("stranger").exact([Request("SN-NL", 10.0, relative=True)], ["NL-NR"])
    to_model = place(model, stranger.shape).to_model
    points = to_model.apply(stranger.shape)
    assert np.linalg.norm(model.instance(model.project(points)) - points) > 50
    moved = (edit.shape - edit.before) @ to_model.rotation.T * to_model.scale
    # The movement is one of the model's modes and of a rigid motion that keeps the thorax.
    shifts = [np.tile(axis, len(points)) for axis in np.eye(3)]
    turns = [np.cross(axis, points).ravel() for axis in np.eye(3)]
    known = np.column_stack([model.basis, *shifts, *turns])
    left = moved.ravel() - known @ np.linalg.lstsq(known, moved.ravel(), rcond=None)[0]
    assert np.abs(left).max() < 1e-3
    assert np.abs(moved).max() > 5.0


def test_pose_and_unit_of_the_patient_do_not_matter(breast_model, features, stranger):
    turn = Similarity(
        Rotation.from_euler("xyz", [3, -8, 4], degrees=True).as_matrix(), np.array([400.0, 3.0, -90.0])
    )
    other = Patient("turned", turn.apply(stranger.shape))
    requests, hold = [Request("SN-NL", 9.0, relative=True)], ["NL-NR", "thorax"]
    first = editor("stranger").exact(requests, hold)
    second = Editor(breast_model, other, features).exact(requests, hold)
    assert np.abs(turn.apply(first.shape) - second.shape).max() < 0.05


@pytest.mark.parametrize("hold", [["thorax"], ["right"], ["right", "thorax"]])
@pytest.mark.parametrize("who", [pytest.param("mean", marks=pytest.mark.slow), "stranger"])
def test_what_is_held_does_not_move_at_all(who, hold):
    one = editor(who)
    held = np.any([one._regions[region] for region in hold], axis=0)
    for name in ("SN-NL", "volume-left"):
        _, _, sd = one.usual(name)
        for step in (-2.0, 0.5, 2.0):
            edit = one.exact([Request(name, step * sd, relative=True)], hold)
            assert np.array_equal(edit.shape[held], edit.before[held])
            assert edit.largest_error < 0.1
            assert edit.movements["left"] > 2.0
            if "right" in hold:  # also where the chest wall behind it is free to move
                assert change(edit, "volume-right").after == pytest.approx(
                    change(edit, "volume-right").before, abs=0.1
                )


def test_held_and_free_skin_are_joined_without_a_step_or_a_crease(breast_model, editor):
    edit = editor.exact([Request("SN-NL", 15.0, relative=True)], ["thorax"])
    moved = np.linalg.norm(edit.shape - edit.before, axis=1)
    edges = edge_table(breast_model.faces).edges
    thorax = editor._regions["thorax"]
    across, along = edges[thorax[edges].sum(axis=1) == 1], edges[~thorax[edges].any(axis=1)]
    # The first free vertices move less than neighbours inside differ: value and slope are 0 at the border.
    assert moved[across].max() < 0.5 * np.abs(np.diff(moved[along], axis=1)).max()
    assert JoinedBorder(breast_model, ~thorax).bend(edit.before, edit.shape) < 1.0


def test_a_border_that_bends_more_than_people_do_is_told_and_then_refused(breast_model, features):
    patient, request = mean_patient(breast_model), [Request("SN-NL", 15.0, relative=True)]
    told = Editor(breast_model, patient, features, EditParameters(bent=0.1))
    (said,) = told.exact(request, ["thorax"]).warnings
    assert re.search(r"bent 0\.\d times as much as any two of the model's people differ there", str(said))
    strict = Editor(breast_model, patient, features, EditParameters(broken=0.1))
    with pytest.raises(BreastMorphError, match=r"the skin would be bent 0\.\d times") as caught:
        strict.exact(request, ["thorax"])
    assert caught.value.code == "unattainable"


def test_holding_the_thorax_costs_likelihood():
    model = breast_model(rigid=True)  # where size is no coordinate beside the modes
    one = Editor(model, mean_patient(model))
    request = [Request("SN-NL", 25.0, relative=True)]
    free, held = one.exact(request), one.exact(request, ["thorax"])
    assert free.movements["thorax"] > 1.0
    assert held.movements["thorax"] == 0.0
    assert held.length > free.length


@pytest.mark.slow
def test_few_subjects_hold_the_thorax_too(stranger):
    model = breast_model(k=7)
    one = Editor(model, replace(stranger, id="few"), ModelFeatures(model))
    edit = one.exact([Request("SN-NL", 15.0, relative=True)], ["NL-NR", "thorax"])
    assert edit.largest_error < 0.1
    assert edit.movements["thorax"] == 0.0
    assert np.allclose(edit.coefficients, place(model, edit.shape).coefficients)
    assert np.linalg.norm(edit.shape - edit.before, axis=1).max() > 10.0


def test_a_model_that_keeps_size_is_edited_too():
    model = breast_model(rigid=True)
    edit = Editor(model, mean_patient(model)).exact([Request("SN-NL", 12.0, relative=True)], ["thorax"])
    assert edit.largest_error < 0.1
    assert edit.movements["thorax"] == 0.0
    assert edit.size_change == 0.0


def test_five_landmarks_are_enough(breast_model):
    full = breast_model
    model = replace(
        full, landmark_ids={name: full.landmark_ids[name] for name in FIVE}, training=None, info={}
    )
    one = Editor(model, mean_patient(model))
    edit = one.exact([Request("SN-NL", 2.0, "cm", relative=True), Request("NL-NR", 210.0)], ["thorax"])
    assert edit.largest_error < 0.1
    assert edit.movements["thorax"] == 0.0
    with refused("unknown-measure", name="SN-XI"):
        one.exact([Request("SN-XI", 2.0, relative=True)])


def test_beyond_three_standard_deviations_there_is_a_warning(editor):
    _, _, sd = editor.usual("SN-NL")
    assert not editor.exact([Request("SN-NL", 1.5 * sd, relative=True)]).warnings
    warnings = editor.exact([Request("SN-NL", 3.5 * sd, relative=True)]).warnings
    (found,) = (one for one in warnings if one.name == "unusual-value/above")
    assert found.cause.values["deviations"] == pytest.approx(3.5)


@pytest.mark.parametrize("version", ["exact", "linear"])
def test_beyond_six_standard_deviations_the_model_knows_nothing(version, editor):
    edit = getattr(editor, version)
    _, mean, sd = editor.usual("SN-NL")
    assert edit([Request("SN-NL", mean + 5.5 * sd)]).warnings
    for far in (-6.5, 6.5):
        with refused("beyond-model", name="SN-NL") as caught:
            edit([Request("SN-NL", mean + far * sd)])
        assert f"SN-NL {mean:.0f} ± {sd:.0f} mm" in caught.value.remedy


def test_who_is_far_out_may_come_nearer(breast_model, editor, features):
    _, mean, sd = editor.usual("SN-NL")
    long = editor.exact([Request("SN-NL", mean + 3.0 * sd)]).shape
    one = Editor(breast_model, Patient("long", long), features, EditParameters(reach=1.0))
    _, mean, sd = one.usual("SN-NL")
    assert one.exact([Request("SN-NL", mean + 2.0 * sd)]).largest_error < 0.1
    with refused("beyond-model", name="SN-NL"):
        one.exact([Request("SN-NL", mean + 4.0 * sd)])


@pytest.mark.parametrize(
    ("requests", "hold", "says"),
    [
        # Two sides of a triangle are shorter than the third.
        (
            ["SN-NL=140mm", "SN-NR=140mm", "NL-NR=285mm"],
            [],
            "cannot be attained; the nearest shape found has",
        ),
        (["SN-NL=90cm"], [], "is out of reach"),
        (["SN-XI=+5mm"], ["thorax"], "while thorax stays cannot be attained: SN-XI lies wholly on held skin"),
        (["volume-left=+50"], ["left"], "while left stays cannot be attained"),
        (["SN-NL=+5mm"], ["thorax", "left", "right"], "all of the skin is held"),
        (["SN-NL=0mm"], [], "SN-NL would be 0.0 mm"),
        (["SN-NL=-90cm"], [], "It is"),
        (["SN-NL=20cm", "straight sn_nl=21cm"], [], "asked for twice"),
        (["SN-NL=20cm"], ["SN-NL"], "both to be changed and to be held"),
        (["SN-NL=20cc"], [], "not measured in cc"),
        (["shoe size=40"], [], "'shoe size' is not known here"),
        (["SN-NL=20cm"], ["belly"], "'belly' cannot be held"),
        (["N-NL=20cm"], [], "The measures are SN-XI"),
        (["weight=70"], ["SN-NL", "tape projection-left"], "cannot be held"),
    ],
)
def test_what_cannot_be_is_refused_in_clear_words(requests, hold, says, editor):
    with pytest.raises(BreastMorphError) as caught:
        editor.exact([parse_request(text) for text in requests], hold)
    assert says in str(caught.value)
    assert caught.value.remedy


def test_a_folded_surface_is_refused(breast_model, features):
    strict = Editor(breast_model, mean_patient(breast_model), features, EditParameters(torn=-1.0))
    with refused("unattainable") as caught:
        strict.exact([Request("SN-NL", 5.0, relative=True)])
    assert caught.value.code == "unattainable"


def test_an_absent_breast_has_no_measures(breast_model, stranger):
    one = Editor(breast_model, replace(stranger, absent_side="left"))
    edit = one.exact([Request("SN-NR", 8.0, relative=True)])
    assert edit.movements["left"] == 0.0
    assert edit.movements["right"] > 1.0
    names = {c.name for c in edit.changes}
    assert "volume-right" in names
    assert not names & {"SN-NL", "NL-NR", "volume-left"}
    with pytest.raises(BreastMorphError, match=r"'SN-NL' is not known here.*the left breast is absent"):
        one.exact([Request("SN-NL", 5.0, relative=True)])


def test_a_shape_of_another_topology_is_refused(breast_model, features):
    with refused(n_shape=12):
        Editor(breast_model, Patient("x", np.zeros((12, 3))), features)


def test_a_model_of_one_breast_has_no_thorax_to_hold(breast_model):
    model = breast_model
    part = model.marginal(np.flatnonzero(model.mean[:, 0] > 0))
    one = Editor(part, mean_patient(part))
    assert one.exact([Request("NL-LPL", 4.0, relative=True)]).largest_error < 0.1
    with refused("region-not-held", LandmarkProblem, region="thorax"):
        one.exact([Request("NL-LPL", 4.0, relative=True)], ["thorax"])
