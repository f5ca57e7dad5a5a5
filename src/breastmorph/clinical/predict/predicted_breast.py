"""The value of a prediction: a torso with a predicted breast, its alternatives and its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.features import Reading
from breastmorph.clinical.predict.leave_one_out import Choice
from breastmorph.clinical.predict.missing_region import MissingRegion
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import Floats, Ints

Evidence = Literal["surface", "points"]

_SAMPLED = 0.95  # share of the variance that samples show


@dataclass(frozen=True, eq=False)
class Prediction:
    """A predicted breast in its torso, in the frame and size of the shape that was given.

    Attributes
    ----------
    shape : (n, 3) float
        The likeliest shape; outside ``region.missing`` exactly what was given.
    mirrored : (n, 3) float
        The same with the mirror image of the other breast, joined in the same way.
    faces : (f, 3) int
    region : MissingRegion
    modes : (N, m, 3) float32
        How the missing vertices may lie elsewhere, mm: the likeliest shape plus these with independent standard normal
        factors is a plausible one.
    rest_variance : float
        Variance of a coordinate that the modes do not hold, mm squared.
    evidence : {"surface", "points"}
    choice : Choice
        Noise and share of the mirror image, by leave-one-out likelihood.
    source : str
        On whom this was chosen and the uncertainty measured.
    mismatch : float
        How far the prediction lay off the scan at the region's border before they were joined, mm.
    spread : float
        This subject's uncertainty relative to the average one: by that mismatch, and by how much worse the known skin
        fits than that of any subject.
    warnings : tuple of str
    """

    shape: Floats
    mirrored: Floats
    faces: Ints
    region: MissingRegion
    modes: NDArray[np.float32]
    rest_variance: float
    evidence: Evidence
    choice: Choice
    source: str
    mismatch: float
    spread: float
    warnings: tuple[str, ...] = ()

    @cached_property
    def deviation(self) -> Floats:
        """Standard deviation of every point in mm, all directions together, (n,); 0 where known."""
        return self._by_vertex(np.einsum("nmd,nmd->m", self.modes, self.modes) + 3.0 * self.rest_variance)

    @cached_property
    def normal_deviation(self) -> Floats:
        """Standard deviation of every point along the predicted skin's normal in mm, (n,); 0 where known."""
        normals = vertex_normals(self.shape, self.faces)[self.region.missing]
        along = np.einsum("nmd,md->nm", self.modes, normals.astype(np.float32))
        return self._by_vertex((along**2).sum(axis=0) + self.rest_variance)

    def deviation_of(self, reading: Reading) -> float:
        """Standard deviation of a measure, from its derivative by the vertices."""
        gradient = np.zeros_like(self.shape)
        gradient[reading.vertices] = reading.gradient
        missing = gradient[self.region.missing]
        by_mode = np.tensordot(self.modes, missing.astype(np.float32), 2)
        return float(np.hypot(np.linalg.norm(by_mode), np.sqrt(self.rest_variance) * np.linalg.norm(missing)))

    def sample(self, rng: np.random.Generator) -> Floats:
        """A plausible alternative, (n, 3), of the directions that hold nearly all of the variance.

        The rest is fine wrinkles that the registrations of the left-out subjects differ in; nobody has them.
        """
        shape = self.shape.copy()
        draw = rng.standard_normal(len(self.leading)).astype(np.float32)
        shape[self.region.missing] += np.tensordot(draw, self.leading, (0, 0))
        return shape

    @cached_property
    def leading(self) -> NDArray[np.float32]:
        """The principal directions of the modes, (q, m, 3)."""
        flat = self.modes.reshape(len(self.modes), -1)
        values, vectors = np.linalg.eigh(flat @ flat.T)
        order = np.argsort(values)[::-1]
        held = np.cumsum(values[order]) / max(float(values.sum()), 1e-30)
        kept = order[: int(np.searchsorted(held, _SAMPLED) + 1)]
        return (vectors[:, kept].T @ flat).reshape(len(kept), *self.modes.shape[1:])

    def _by_vertex(self, variance: NDArray[np.floating]) -> Floats:
        out = np.zeros(len(self.shape))
        out[self.region.missing] = np.sqrt(variance)
        return out
