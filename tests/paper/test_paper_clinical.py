from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from breast_cohort import breast_shapes, breast_template
from breastmorph.cohort import Cohort
from breastmorph.evaluation.generalization import LeaveOneOut
from breastmorph.evaluation.training_set import training_set
from breastmorph.mesh.closest import Geodesics
from breastmorph.mesh.files import save_mesh
from breastmorph.model.building import build_model
from breastmorph.paper.clinical_generalization import (
    ClinicalGeneralization,
    ClinicalParameters,
    clinical_generalization,
)
from breastmorph.paper.statements import clinical_statements
from breastmorph.scan.check import CheckParameters, find_scans
from breastmorph.scan.landmark_files import save_landmarks
from breastmorph.scan.scan import Landmarks
from small_cohort import small_cohort

K = 12
MARKS = ("sternal_notch", "nipple_left", "nipple_right")


def annotated(shapes, shift=0.0):
    """A cohort whose scans have their landmarks at the template's landmark vertices, the left nipple moved outwards."""
    template = breast_template()
    cohort = Cohort.of(shapes, template)
    marks = []
    for shape in shapes:
        points = {name: shape[vertex] for name, vertex in template.landmark_ids.items()}
        away = points["nipple_left"] - points["sternal_notch"]
        points["nipple_left"] = points["nipple_left"] + shift * away / np.linalg.norm(away)
        marks.append(Landmarks.of(points))
    return replace(cohort, landmarks=tuple(marks))


@pytest.fixture(scope="module")
def cohort():
    return annotated(breast_shapes(K))


@pytest.fixture(scope="module")
def result(cohort):
    return clinical_generalization(cohort)


def test_errors_are_those_of_whole_reconstructions_at_the_subjects_own_size(cohort, result, breast_template):
    training = training_set(build_model(cohort), cohort)
    folds = LeaveOneOut(training.shapes)
    at = [breast_template.landmark_ids[mark] for mark in MARKS]
    for subject in (0, 7):
        own = cohort.shape(subject)[at]
        back = training.transforms[subject].inverse()
        for count in (0, 3, 10):
            given_back = back.apply(folds.reconstructions(subject, np.array([count]))[0][at])
            for d, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
                error = abs(np.linalg.norm(given_back[a] - given_back[b]) - np.linalg.norm(own[a] - own[b]))
                assert result.straight[subject, count, d] == pytest.approx(error, abs=1e-4)
    assert result.registered.max() < 1e-3
    assert result.components.tolist() == list(range(K - 1))


def test_the_raw_scans_landmarks_decide_not_the_registered_ones():
    moved = clinical_generalization(annotated(breast_shapes(K), shift=5.0))
    assert moved.registered[:, 0] == pytest.approx(5.0, abs=1e-3)
    assert moved.registered[:, 1] == pytest.approx(0.0, abs=1e-3)


def test_a_cohort_of_two_ways_to_differ_needs_no_more_than_a_few_components():
    base, rng = breast_shapes(3), np.random.default_rng(0)
    mean = base.mean(axis=0)
    shapes = mean + np.einsum("kw,wnd->knd", rng.normal(size=(20, 2)) / 2, base[:2] - mean)
    found = clinical_generalization(annotated(shapes))
    assert found.average[0] > 1.0
    assert found.average[6] < 0.05
    preserved, best = clinical_statements(found)
    assert preserved.holds == "yes"
    assert best.comparison.difference > -0.01


def test_a_poor_model_does_not_preserve_distances(result):
    preserved, best = clinical_statements(result)
    assert preserved.holds == ("yes" if result.average[-1] <= 2.0 else "no")
    assert result.average[0] > result.average[-1]
    assert best.comparison.n == K


def test_missing_landmarks_are_left_out_and_counted(cohort):
    marks = list(cohort.landmarks)
    marks[2] = marks[2].only(name for name in marks[2] if name != "nipple_left")
    marks[3] = marks[3].only(name for name in marks[3] if name != "nipple_left")
    found = clinical_generalization(
        replace(cohort, landmarks=tuple(marks), absent=("right", *cohort.absent[1:]))
    )
    assert found.lacking == {"SN-NL": 2, "SN-NR": 0, "NL-NR": 2}
    assert found.left_out == 1
    assert np.isnan(found.straight[1, :, 0]).all()
    assert np.isfinite(found.straight[1, :, 1]).all()
    assert np.isfinite(found.average).all()
    assert clinical_statements(found)[1].comparison.n == K - 3
    back = ClinicalGeneralization.from_record(json.loads(json.dumps(found.record(), allow_nan=False)))
    assert back.record() == found.record()


def test_tape_distances_run_over_the_skin_of_scan_and_reconstruction(cohort, tmp_path):
    few = cohort.chosen(range(6))
    for k, name in enumerate(few.ids):
        if k != 4:
            save_mesh(few.template.mesh.with_vertices(few.shape(k)), tmp_path / f"{name}.ply")
            save_landmarks(few.landmarks[k], tmp_path / f"{name}.json")
    check = CheckParameters(mean_edge=20.0)
    found = clinical_generalization(
        few, ClinicalParameters(tape_at=(1,)), scans=find_scans(tmp_path), check=check
    )
    assert found.tape_components.tolist() == [1, 4]
    assert found.notes == ("004: no scan of this name",)
    assert np.isnan(found.tape[4]).all()
    assert np.isfinite(found.straight[4]).all()
    training = training_set(build_model(few), few)
    at = [few.template.landmark_ids[mark] for mark in MARKS]
    back = training.transforms[2].inverse().apply(LeaveOneOut(training.shapes).reconstructions(2, [1])[0])
    lengths = [
        Geodesics(few.template.mesh.with_vertices(shape), shape[at]).distance(0, 1)
        for shape in (back, few.shape(2))
    ]
    assert found.tape[2, 0, 0] == pytest.approx(abs(lengths[0] - lengths[1]), abs=0.01)


def test_without_landmarks_there_is_a_reason_and_no_crash():
    found = clinical_generalization(small_cohort(6))
    assert "landmarks of the raw scans" in found.impossible
    assert {statement.holds for statement in clinical_statements(found)} == {"not testable"}
    assert "too few" in clinical_generalization(annotated(breast_shapes(3))).impossible


def test_scans_of_others_are_a_reason_and_no_measurement(cohort, tmp_path):
    save_mesh(cohort.template.mesh, tmp_path / "somebody.ply")
    save_landmarks(cohort.landmarks[0], tmp_path / "somebody.json")
    found = clinical_generalization(replace(cohort, landmarks=()), scans=find_scans(tmp_path))
    assert "no scan of this name" in found.impossible
    assert {statement.holds for statement in clinical_statements(found)} == {"not testable"}
