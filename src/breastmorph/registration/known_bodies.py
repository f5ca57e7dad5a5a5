"""How the bodies of adults vary, where it is known: at the default template's anchors."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
from scipy.spatial.distance import cdist

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.safe_parsing import open_archive
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.registration.warp import Bodies
from breastmorph.template import Template, default_template


@cache
def known_bodies() -> Bodies:
    """At the default template's anchors; see scripts/make_known_bodies.py."""
    data = files("breastmorph").joinpath("data/known_bodies.npz").read_bytes()
    with open_archive(data) as parts:
        return Bodies(parts["modes"].astype(float), parts["by_size"].astype(float))


_FEWEST = 4  # landmarks by which a template can be placed on another


def bodies_carried_to(template: Template) -> Bodies | None:
    """The known bodies at another template's anchors; None where its landmarks do not give how the two lie.

    Each anchor moves as the built-in template's skin does there, once that is bent onto the other by both's landmarks.
    """
    known, default = known_bodies(), default_template()
    shared = [name for name in default.landmarks if name in template.landmarks]
    if len(shared) < _FEWEST:
        return None
    here, there = default.landmarks.array(shared), template.landmarks.array(shared)
    similarity = Similarity.fit(here, there)
    warped = _spline_warp(similarity.apply(default.coarse.vertices), similarity.apply(here), there)
    found = Surface(default.coarse.with_vertices(warped)).closest(template.coarse.vertices)
    corners = np.dstack([known.modes, known.by_size])[default.coarse.faces[found.faces]]
    turned = similarity.scale * np.einsum("ij,akjr->akir", similarity.rotation, corners)
    carried = np.einsum("ak,akir->air", found.weights, turned)
    return Bodies(carried[:, :, :-1], carried[:, :, -1])


def _spline_warp(points: Floats, here: Floats, there: Floats) -> Floats:
    """Points (k, 3) moved so that some places get to others: the displacement spreads as a linear spline, (k, 3)."""
    unit = np.ones((len(here), 1))
    system = np.block([[cdist(here, here), unit], [unit.T, np.zeros((1, 1))]])
    weights = np.linalg.lstsq(system, np.vstack([there - here, np.zeros((1, 3))]), rcond=None)[0]
    found: Floats = points + cdist(points, here) @ weights[:-1] + weights[-1]
    return found
