"""Models of registered subjects: who is in them, who is left out and why, and what they keep."""

from __future__ import annotations

import numpy as np
import pytest

from breastmorph.cohort import load_cohort
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.model.building import BuildParameters
from breastmorph.model.procrustes import ProcrustesParameters
from breastmorph.usecases.build import BuildRequest, Subjects, build
from small_cohort import random_shapes, write_registered

TABLE = "id,bmi,operated\n000,20,no\n001,22,yes\n002,26,no\n003,28,no\n004,31,no\n005,33,yes\n006,29,no\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Eight registered subjects, one with an absent breast, one not in the table."""
    folder = tmp_path_factory.mktemp("cohort")
    write_registered(folder / "out", random_shapes(k=8), absent={"006": "left"})
    (folder / "cohort.csv").write_text(TABLE)
    return folder


def built(folder, *, table=False, where=None, exclude=(), **parameters):
    subjects = Subjects(folder / "out", folder / "cohort.csv" if table else None, where, exclude)
    return build(BuildRequest(subjects, BuildParameters(**parameters)))


def test_subjects_are_left_out_by_reason_and_the_model_says_how_many(folder):
    found = built(folder, table=True, where="bmi > 25 and not operated", exclude=("004",))
    assert found.left_out == {
        "excluded": ["004"],
        "not in the table": ["007"],
        "not chosen": ["000", "001", "005"],
        "absent breast": ["006"],
    }
    assert found.model.info["subjects"] == 2
    assert found.model.info["left_out"] == {reason: len(ids) for reason, ids in found.left_out.items()}
    assert found.model.info["where"] == "bmi > 25 and not operated"


def test_a_folder_and_its_cohort_give_the_same_model(folder):
    of_folder = built(folder).model
    of_cohort = build(BuildRequest(Subjects(load_cohort(folder / "out")))).model
    assert np.array_equal(of_folder.basis, of_cohort.basis)
    assert of_folder.info == of_cohort.info


def test_parameters_reach_the_model(folder, small_template):
    whole = built(folder).model
    assert (whole.n_components, whole.n_vertices) == (6, small_template.mesh.n_vertices)
    assert whole.info["removed"]["variance_after"] <= whole.info["removed"]["variance_before"]
    assert dict(whole.landmark_ids) == dict(small_template.landmark_ids)
    assert built(folder, components=3).model.n_components == 3
    assert built(folder, variance=0.9).model.n_components < 6
    rigid = ProcrustesParameters(with_scale=False)
    assert built(folder, procrustes=rigid).model.info["alignment"] == "rigid"
    assert built(folder, symmetric=True).model.n_components == 13
    assert built(folder, asymmetry=True).model.n_components == 6
    assert built(folder, with_absent=True).model.info["subjects"] == 8
    assert "nipple_right" not in built(folder, part="left").model.landmark_ids


def test_scores_are_kept_only_on_request(folder):
    assert built(folder).model.training is None
    kept = built(folder, keep_scores=True, table=True).model.training
    assert kept.scores.shape == (7, 6)
    assert np.isnan(kept.columns["bmi"][-1])
    assert kept.columns["operated"][:2].tolist() == [0.0, 1.0]


def test_what_the_registration_found_unusual_is_handed_on(folder):
    summary = folder / "out" / "summary.csv"
    summary.write_text("id,status,flags\n000,registered,\n002,registered,odd shape\n")
    try:
        assert built(folder).flags == {"002": "odd shape"}
    finally:
        summary.unlink()


@pytest.mark.parametrize(
    "asked",
    [
        {"where": "bmi > 3"},
        {"table": True, "where": "bmo > 3"},
        {"table": True, "where": "bmi > 99"},
        {"table": True, "where": "bmi > 32"},
        {"exclude": ("000", "xyz")},
        {"variance": 3.0},
        {"symmetric": True, "asymmetry": True},
    ],
)
def test_what_cannot_be_built_is_refused(folder, asked):
    with pytest.raises(BreastMorphError):
        built(folder, **asked)
