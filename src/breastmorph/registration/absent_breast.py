"""A side without landmarks: whether a breast is there, and a template that starts without it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.topology import boundary_vertices
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.parameters import AbsentBreastParameters
from breastmorph.registration.relaxation import membrane
from breastmorph.scan.scan import SIGN


def without_breast(
    mesh: TriangleMesh, probability: Floats, side: str, middle: float, parameters: AbsentBreastParameters
) -> TriangleMesh:
    """Take one breast off an upright template.

    Compressed onto a flat chest, a template's fold would stay folded. A membrane (the harmonic map from the breast's
    own skin) has no fold, and spreads the breast's triangles evenly without turning any over.

    Parameters
    ----------
    mesh : TriangleMesh
    probability : (n,) float
        Mask of that side.
    side : str
    middle : float
        Where the sternum lies, on x.
    parameters : AbsentBreastParameters
    """
    outwards = (mesh.vertices[:, 0] - middle) * SIGN[side]
    inside = (probability > parameters.mask) & (outwards > parameters.midline)
    free = inside & ~boundary_vertices(mesh.faces, mesh.n_vertices)
    return mesh.with_vertices(membrane(mesh, mesh.vertices, free)) if free.any() else mesh


@dataclass(frozen=True, eq=False)
class BreastHeight:
    """How a template's breast stands out, seen from the front at places on a grid.

    Attributes
    ----------
    places : (k, 3) float
        In front of the template.
    level : (k,) float
        Height of the skin behind them without the breast; NaN where there is none.
    breast : (k,) float
        What the breast adds to it.
    raised : float
        Places where it adds less, in mm, do not count.
    """

    places: Floats
    level: Floats
    breast: Floats
    raised: float

    @classmethod
    def of(cls, whole: TriangleMesh, flat: TriangleMesh, parameters: AbsentBreastParameters) -> BreastHeight:
        """Of an upright template with and without the breast."""
        p = parameters
        taken = np.linalg.norm(whole.vertices - flat.vertices, axis=1) > p.raised
        if not taken.any():
            return cls(np.empty((0, 3)), np.empty(0), np.empty(0), p.raised)
        low, high = (end(whole.vertices[taken, :2], axis=0) for end in (np.min, np.max))
        across, up = np.meshgrid(*(np.arange(a, b, p.grid) for a, b in zip(low, high, strict=True)))
        front = np.full(across.size, whole.vertices[:, 2].max() + p.in_front)
        places = np.column_stack([across.ravel(), up.ravel(), front])
        level = _height(Surface(flat), places, Similarity())
        return cls(places, level, _height(Surface(whole), places, Similarity()) - level, p.raised)

    def share_in(self, scan: Surface, transform: Similarity) -> float:
        """How far a scan stands out where the template has a breast: about 0 on a flat chest, 1 like the template.

        The least-squares share of the template's breast in the scan's height. Closest points could not tell: on a flat
        chest they find skin beside and below the breast, and not far away.

        Parameters
        ----------
        scan : Surface
        transform : Similarity
            From template to scan coordinates.
        """
        if not len(self.places):
            return 0.0
        seen = _height(scan, self.places, transform) - self.level
        known = (self.breast > self.raised) & np.isfinite(seen)
        breast = self.breast[known]
        return float(seen[known] @ breast / (breast @ breast)) if known.any() else 0.0


def _height(surface: Surface, places: Floats, transform: Similarity) -> Floats:
    """Height of the skin behind places in front of it, (k,); NaN where there is none."""
    directions = np.tile(-transform.rotation[:, 2], (len(places), 1))
    faces, distances, _ = surface.first_hit(transform.apply(places), directions)
    return np.where(faces >= 0, places[:, 2] - distances / transform.scale, np.nan)
