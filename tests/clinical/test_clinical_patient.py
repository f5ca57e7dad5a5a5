"""A scan taken in as a patient: what is said about points that are not where somebody put them."""

from __future__ import annotations

from breastmorph.clinical.patient import _moved_landmarks
from breastmorph.scan.landmarks import Landmarks
from small_cohort import small_template


def test_landmarks_that_the_registration_moved_are_named_and_others_not():
    template = small_template()
    shape = template.mesh.vertices
    annotated = {name: shape[vertex] for name, vertex in template.landmark_ids.items()}
    assert _moved_landmarks(shape, template, Landmarks.of(annotated)) == ""
    annotated["lower_pole_left"] = annotated["lower_pole_left"] + [0.0, -12.0, 0.0]
    said = _moved_landmarks(shape, template, Landmarks.of(annotated))
    assert "lower_pole_left 12 mm" in said
    assert "right" not in said


def test_landmarks_that_the_scan_does_not_have_are_no_matter():
    template = small_template()
    notch = template.mesh.vertices[template.landmark_ids["sternal_notch"]]
    assert _moved_landmarks(template.mesh.vertices, template, Landmarks.of({"sternal_notch": notch})) == ""
