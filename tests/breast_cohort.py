"""A cohort for tests of clinical use: torsos that differ by smooth local bumps, without files."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from breastmorph.cohort import Cohort
from breastmorph.model.building import BuildParameters, build_model
from breastmorph.model.procrustes import ProcrustesParameters
from breastmorph.model.shape_model import ShapeModel
from breastmorph.template import Template, template_from
from torso import torso

WIDTH = 32.0  # mm: of the bumps


@cache
def breast_template() -> Template:
    """A torso of some 1700 vertices with all landmarks."""
    mesh, landmarks = torso(edge=10.0)
    return template_from(mesh, landmarks, coarse=mesh)


def breast_shapes(k: int = 40, seed: int = 0, template: Template | None = None) -> np.ndarray:
    """Upright torsos in mm, (k, n, 3), in their own sizes."""
    rng = np.random.default_rng(seed)
    template = template or breast_template()
    points, marks = template.mesh.vertices, template.landmarks
    centres = [marks[f"nipple_{side}"] + shift for side in ("left", "right") for shift in _around()]
    centres += [np.array([x, y, 60.0]) for x in (-120.0, 0.0, 120.0) for y in (-180.0, 0.0, 90.0)]
    amounts = rng.normal(size=(k, len(centres), 3)) * np.array([6.0] * 10 + [2.5] * 9)[:, None]
    together = rng.normal(size=(k, 1, 3))  # heavy breasts go with wide chests
    amounts[:, :10] += 4.0 * together
    amounts[:, 10:] += 5.0 * together
    away = np.linalg.norm(points[:, None] - np.array(centres), axis=2)
    bumps = np.exp(-0.5 * (away / WIDTH) ** 2)
    shapes = points + np.einsum("nc,kcd->knd", bumps, amounts)
    return shapes * rng.normal(1.0, 0.07, size=(k, 1, 1))


def _around() -> np.ndarray:
    return np.array([[0, 0, 0], [25, 15, 0], [-25, 15, 0], [0, -30, 0], [0, 45, -10]], dtype=float)


@cache
def breast_model(k: int = 40, rigid: bool = False, scores: bool = True) -> ShapeModel:
    """A model of that cohort; its table has columns ``weight`` (with size) and ``age`` (unknown twice)."""
    shapes = breast_shapes(k)
    cohort = Cohort.of(shapes, breast_template())
    sizes = np.linalg.norm(shapes - shapes.mean(axis=1, keepdims=True), axis=(1, 2))
    rows = tuple(
        {"id": name, "weight": f"{60 * size / sizes.mean():.3f}", "age": f"{30 + i}" if i > 1 else ""}
        for i, (name, size) in enumerate(zip(cohort.ids, sizes, strict=True))
    )
    parameters = BuildParameters(keep_scores=scores, procrustes=ProcrustesParameters(with_scale=not rigid))
    return build_model(replace(cohort, table=rows), parameters)
