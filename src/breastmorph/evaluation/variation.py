"""What a model's variances say by themselves: compactness, and how calm the torso is outside the breast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from breastmorph.evaluation.curve import mean_of_known
from breastmorph.mesh.triangle_mesh import Bools, Floats, Ints
from breastmorph.model.shape_model import ShapeModel
from breastmorph.plain import plain

_BLOCK = 128  # vertices at a time: no second copy of the shapes


@dataclass(frozen=True, eq=False)
class Compactness:
    """How much variance the first components hold.

    Attributes
    ----------
    variance : (q,) float
        Cumulative, mm squared summed over all coordinates: the paper's compactness.
    share : (q,) float
        The same as a share of the total (0 to 1).
    total : float
        Variance of the model, with what it says lies outside its components.
    """

    variance: Floats
    share: Floats
    total: float

    @property
    def components(self) -> Ints:
        """Numbers of components, 1 to q."""
        return np.arange(1, len(self.variance) + 1)

    def needed(self, share: float) -> int | None:
        """Fewest components that hold a share of the total, or None where all together do not."""
        enough = np.flatnonzero(self.share >= share - 1e-9)
        return int(enough[0]) + 1 if len(enough) else None

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for a JSON file."""
        return {
            "components": self.components.tolist(),
            "variance": plain(self.variance),
            "share": plain(self.share),
            "total_variance": self.total,
            "components_for": {f"{share:.0%}": self.needed(share) for share in (0.9, 0.95, 0.98)},
        }


def compactness(model: ShapeModel) -> Compactness:
    """Cumulative variance of a model's components."""
    cumulative = np.cumsum(model.variances)
    total = float(cumulative[-1] if len(cumulative) else 0.0) + model.noise_variance * model.mean.size
    share = cumulative / total if total > 0.0 else np.ones(len(cumulative))
    return Compactness(cumulative, share, total)


@dataclass(frozen=True)
class Decoupling:
    """Variation inside and outside the breast.

    Attributes
    ----------
    variance_inside, variance_outside : float
        Of a vertex (all three directions together), mean over the vertices, mm squared.
    """

    variance_inside: float
    variance_outside: float

    def as_dict(self) -> dict[str, float | None]:
        """Plain numbers for a JSON file; standard deviations in mm, and their ratio outside to inside."""
        inside, outside = np.sqrt([self.variance_inside, self.variance_outside])
        names = ("variance_inside", "variance_outside", "sd_inside", "sd_outside", "sd_ratio")
        ratio = outside / inside if inside > 0.0 else np.nan
        values = np.array([self.variance_inside, self.variance_outside, inside, outside, ratio])
        return dict(zip(names, plain(values), strict=True))


def decoupling(shapes: Floats, breast: Bools) -> Decoupling:
    """Variance of aligned shapes (k, n, 3) at vertices inside and outside the breast (n,)."""
    variance = vertex_variances(shapes).sum(axis=1)
    return Decoupling(*(float(mean_of_known(variance[part])) for part in (breast, ~breast)))


def vertex_variances(shapes: Floats) -> Floats:
    """Variance of every coordinate over shapes (k, n, 3), (n, 3); a block of vertices at a time."""
    ddof = 1 if len(shapes) > 1 else 0
    starts = range(0, shapes.shape[1], _BLOCK)
    return np.concatenate([shapes[:, start : start + _BLOCK].var(axis=0, ddof=ddof) for start in starts])
