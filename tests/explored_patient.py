"""Somebody whom a small model does not know, and her scan in the explorer."""

from __future__ import annotations

from functools import cache

import numpy as np

from breast_cohort import breast_shapes, breast_template
from breastmorph.cohort import Cohort
from breastmorph.mesh.geometry import Similarity, rotation_about
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.shape_model import ShapeModel
from explorer_client import Visitor

POSE = Similarity(rotation_about([0, 1, 0], 5.0), np.array([3.0, 1.0, 2.0]), 0.1)  # in cm, a little turned


@cache
def model() -> ShapeModel:
    """A model whose subjects slid a little along their skin, as registrations do."""
    shapes, rng = breast_shapes(40), np.random.default_rng(7)
    points = breast_template().mesh.vertices
    centres = points[rng.choice(len(points), 60, replace=False)]
    bumps = np.exp(-0.5 * (np.linalg.norm(points[:, None] - centres, axis=2) / 30.0) ** 2)
    slid = np.einsum("nc,kcd->knd", bumps, rng.normal(scale=2.5, size=(len(shapes), 60, 3)))
    return build_model(Cohort.of(shapes + slid, breast_template()), BuildParameters(keep_scores=True))


def uploaded(explorer, folder) -> tuple[Visitor, str]:
    visitor = Visitor.of(explorer)
    answer = visitor.ask("POST", "/api/scans?name=scan.ply", (folder / "scan.ply").read_bytes())
    assert answer.status == 201, answer.content
    scan = answer.json["scan"]
    marks = visitor.ask(
        "POST", f"/api/scans/{scan}/landmarks?name=scan.json", (folder / "scan.json").read_bytes()
    )
    assert marks.json["complete"], marks.content
    return visitor, scan
