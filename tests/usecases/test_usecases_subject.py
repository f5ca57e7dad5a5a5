"""A scan or a mesh taken in as a patient: her frame, her unit, and points that are not where somebody put them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from breast_cohort import breast_shapes
from breastmorph.cohort import Cohort
from breastmorph.evaluation.training_set import training_set
from breastmorph.foundation.errors import BreastMorphError, FileProblem, LandmarkProblem
from breastmorph.mesh.files import save_mesh
from breastmorph.mesh.geometry import Similarity
from breastmorph.model.building import build_model
from breastmorph.model.shape_model import landmark_frame
from breastmorph.scan.scan import Landmarks
from breastmorph.usecases.subject import _moved_landmarks, registered_patient, template_of
from edited_people import FIVE
from refusals import refused


def test_landmarks_that_the_registration_moved_are_named_and_others_not(small_template):
    template = small_template
    shape = template.mesh.vertices
    annotated = {name: shape[vertex] for name, vertex in template.landmark_ids.items()}
    assert _moved_landmarks(shape, template, Landmarks.of(annotated)) == ()
    annotated["lower_pole_left"] = annotated["lower_pole_left"] + [0.0, -12.0, 0.0]
    said = str(_moved_landmarks(shape, template, Landmarks.of(annotated))[0])
    assert "lower_pole_left 12 mm" in said
    assert "right" not in said


def test_landmarks_that_the_scan_does_not_have_are_no_matter(small_template):
    template = small_template
    notch = template.mesh.vertices[template.landmark_ids["sternal_notch"]]
    assert _moved_landmarks(template.mesh.vertices, template, Landmarks.of({"sternal_notch": notch})) == ()


def test_registered_meshes_come_back_in_their_own_frame_and_unit(tmp_path, breast_model, features, stranger):
    model = breast_model
    to_file = Similarity(
        Rotation.from_euler("x", 90, degrees=True).as_matrix(), np.array([1.0, 2.0, 3.0]), 0.001
    )
    path = tmp_path / "subject.ply"
    save_mesh(model.mesh(to_file.apply(stranger.shape)), path)
    patient = registered_patient(model, path)
    assert patient.to_file.apply(patient.shape) == pytest.approx(to_file.apply(stranger.shape), abs=1e-6)
    lengths = [features.find("SN-NL").value(shape) for shape in (patient.shape, stranger.shape)]
    assert lengths[0] == pytest.approx(lengths[1], rel=1e-6)
    save_mesh(model.mesh(7.7e-6 * stranger.shape), path)
    with pytest.raises(FileProblem, match="no adult's size"):
        registered_patient(model, path)
    (tmp_path / "subject.json").write_text('{"absent_side": ""}')
    with pytest.raises(FileProblem, match="record cannot be read"):
        registered_patient(model, path)


@pytest.mark.parametrize("size", [0.45, 2.3])
def test_a_mesh_of_a_size_that_no_adult_has_is_refused(size, tmp_path, breast_model):
    model, path = breast_model, tmp_path / "subject.ply"
    save_mesh(model.mesh(size * model.mean), path)
    with pytest.raises(FileProblem, match="no adult's size"):
        registered_patient(model, path)
    assert landmark_frame(model.landmarks.transformed(Similarity(scale=size))) is None


@pytest.mark.parametrize("size", [0.3, 3.3])
def test_a_size_unlike_the_others_is_refused_in_a_cohort(size, breast_model, breast_template):
    model = breast_model
    with pytest.raises(BreastMorphError, match="not of the others' size"):
        build_model(Cohort.of([model.mean, 1.01 * model.mean, size * model.mean], breast_template))
    with refused("unit-of-model"):
        training_set(model.transform(Similarity(scale=size)), Cohort.of(breast_shapes(6), breast_template))


@pytest.mark.parametrize("beside", ['{"nipple_left": [1, 2, 3]}', "[]", '{"coefficients": [0.1]}'])
def test_another_file_of_the_same_name_is_no_record_of_a_registration(
    beside, tmp_path, breast_model, stranger
):
    path = tmp_path / "subject.ply"
    save_mesh(breast_model.mesh(stranger.shape), path)
    alone = registered_patient(breast_model, path)
    path.with_suffix(".json").write_text(beside)
    assert np.array_equal(registered_patient(breast_model, path).shape, alone.shape)


def test_the_template_of_a_model_has_its_triangles(breast_model, breast_template):
    found = template_of(breast_model)
    assert np.array_equal(found.mesh.faces, breast_model.faces)
    assert dict(found.landmark_ids) == dict(breast_template.landmark_ids)
    bare = replace(breast_model, landmark_ids={name: breast_model.landmark_ids[name] for name in FIVE})
    with pytest.raises(LandmarkProblem, match="landmark_ids"):
        template_of(bare)
