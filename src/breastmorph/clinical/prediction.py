"""The value of a prediction: a torso with a predicted breast, its alternatives and its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from breastmorph.clinical.left_out import Choice
from breastmorph.clinical.measure_table import MeasureTable
from breastmorph.clinical.missing_region import MissingRegion
from breastmorph.clinical.skin_points import Reading
from breastmorph.clinical.torso_view import Evidence
from breastmorph.foundation.arrays import Floats, Ints, Shown, doubted
from breastmorph.foundation.messages import Finding
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.triangle_mesh import TriangleMesh

_SAMPLED = 0.95  # share of the variance that samples show


@dataclass(frozen=True, eq=False)
class Prediction(Shown):
    """A predicted breast in its torso, in the frame and size of the shape that was given.

    Attributes
    ----------
    shape : (n, 3) float
        The likeliest shape; outside ``region.missing`` exactly what was given.
    mirrored : (n, 3) float
        The same with the mirror image of the other breast, joined in the same way; where both are missing, with the
        model's mean breasts.
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
    warnings : tuple of Finding
    measures : MeasureTable
        Of the predicted breast with their standard deviations, and of the other one.
    given : tuple of str
        What else was known of the lost breast, in words: an earlier scan, measures.
    skin : (n, 4) uint8, optional
        The patient's, with that of the other breast where one is predicted.
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
    warnings: tuple[Finding, ...] = ()
    measures: MeasureTable = field(default_factory=lambda: MeasureTable("not measured", ()))
    given: tuple[str, ...] = ()
    skin: NDArray[np.uint8] | None = None

    def __repr__(self) -> str:
        mean = self.sd_normal[self.region.breast].mean()
        warned = doubted(self.warnings)
        return f"Prediction({self.region.called}, ± {mean:.1f} mm along the normal on average{warned})"

    @property
    def mesh(self) -> TriangleMesh:
        """The torso with the likeliest breast."""
        return TriangleMesh(self.shape, self.faces, self.skin)

    def samples(self, count: int, seed: int = 0) -> list[TriangleMesh]:
        """Plausible alternatives to ``mesh``; the same seed, the same shapes."""
        rng = np.random.default_rng(seed)
        return [TriangleMesh(self.drawn(rng), self.faces, self.skin) for _ in range(count)]

    @cached_property
    def sd(self) -> Floats:
        """Standard deviation of every point in mm, all directions together, (n,); 0 where known."""
        return self._by_vertex(np.einsum("nmd,nmd->m", self.modes, self.modes) + 3.0 * self.rest_variance)

    @cached_property
    def sd_normal(self) -> Floats:
        """Standard deviation of every point along the predicted skin's normal in mm, (n,); 0 where known."""
        normals = vertex_normals(self.shape, self.faces)[self.region.missing]
        along = np.einsum("nmd,md->nm", self.modes, normals.astype(np.float32))
        return self._by_vertex((along**2).sum(axis=0) + self.rest_variance)

    def drawn(self, rng: np.random.Generator) -> Floats:
        """A plausible alternative, (n, 3), of the directions that hold nearly all of the variance.

        The rest is fine wrinkles that the registrations of the left-out subjects differ in, no real shape has them.
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
        explained = np.cumsum(values[order]) / max(float(values.sum()), 1e-30)
        kept = order[: int(np.searchsorted(explained, _SAMPLED) + 1)]
        return (vectors[:, kept].T @ flat).reshape(len(kept), *self.modes.shape[1:])

    def _by_vertex(self, variance: NDArray[np.floating]) -> Floats:
        out = np.zeros(len(self.shape))
        out[self.region.missing] = np.sqrt(variance)
        return out


def deviation_of(reading: Reading, prediction: Prediction) -> float:
    """Standard deviation of a measure of a predicted shape, from its derivative by the vertices."""
    gradient = np.zeros_like(prediction.shape)
    gradient[reading.vertices] = reading.gradient
    missing = gradient[prediction.region.missing]
    by_mode = np.tensordot(prediction.modes, missing.astype(np.float32), 2)
    rest = np.sqrt(prediction.rest_variance) * np.linalg.norm(missing)
    return float(np.hypot(np.linalg.norm(by_mode), rest))
