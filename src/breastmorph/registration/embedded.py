"""Embedded deformation: carrying a coarse mesh's deformation to a fine one (Sumner et al. 2007)."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.foundation.arrays import Floats


class EmbeddedDeformation:
    """Fine points that follow the nearest nodes of a coarse mesh: prepared once, applied often.

    Parameters
    ----------
    points : (n, 3) float
        The fine mesh at rest.
    nodes : (a, 3) float
        The coarse mesh at rest.
    followed : int
        Nodes that each point follows; one more gives the radius at which the weight is zero.
    """

    def __init__(self, points: Floats, nodes: Floats, followed: int) -> None:
        count = min(followed + 1, len(nodes))
        distances, ids = cKDTree(nodes).query(points, k=count)
        weights = (1.0 - distances[:, :-1] / np.maximum(distances[:, -1:], 1e-300)) ** 2
        total = weights.sum(axis=1, keepdims=True)
        self._ids = ids[:, :-1]
        self._weights = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1.0 / (count - 1))
        self._offsets = points[:, None, :] - nodes[self._ids]

    def apply(self, moved: Floats, scales: Floats, rotations: Floats) -> Floats:
        """Fine points after every node moved to ``moved`` (a, 3), turned and scaled, (n, 3)."""
        turned = np.einsum("nkij,nkj->nki", rotations[self._ids], self._offsets)
        carried = scales[self._ids][..., None] * turned + moved[self._ids]
        return np.einsum("nk,nki->ni", self._weights, carried)
