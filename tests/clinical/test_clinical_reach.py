"""Landmarks beyond the end of a registered mesh."""

from __future__ import annotations

import numpy as np
import pytest

from breastmorph.clinical.examiner import Examiner
from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.scan.scan import Landmarks
from breastmorph.template import default_template
from refusals import refused


def moved(name: str, by: list[float]) -> Landmarks:
    points = dict(default_template().landmarks)
    return Landmarks.of(points | {name: points[name] + np.array(by)})


@pytest.mark.slow
def test_a_lateral_pole_beyond_the_mesh_costs_only_its_own_measures():
    template = default_template()
    examiner = Examiner(template.mesh, template.landmark_ids, template.mirror)
    annotated = moved("lateral_pole_right", [-20.0, 0.0, -60.0])
    found = examiner.shape("wide", template.mesh.vertices, annotated=annotated)
    unknown = {measure.name for measure in found.measures if not measure.known}
    assert unknown == {"base-width-right", "half-chest-width-right", "projection-right"}
    assert [str(one) for one in found.warnings] == ["the mesh does not reach lateral_pole_right"]


@pytest.mark.slow
def test_another_landmark_off_the_mesh_is_still_refused():
    template = default_template()
    examiner = Examiner(template.mesh, template.landmark_ids, template.mirror)
    with refused(kind=LandmarkProblem, name="nipple_left"):
        examiner.shape("wrong", template.mesh.vertices, annotated=moved("nipple_left", [0.0, 0.0, 60.0]))
