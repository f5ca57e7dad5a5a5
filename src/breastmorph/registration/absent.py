"""A side without landmarks: whether a breast is there, and a template that starts without it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import splu

from breastmorph.mesh.closest import Surface
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.topology import boundary_vertices
from breastmorph.mesh.triangle_mesh import Floats, TriangleMesh
from breastmorph.scan.landmarks import SIGN

_BREAST = 0.03  # mask above which skin belongs to the breast and its fold
_MIDLINE = 5.0  # mm beside the sternum that stay as they are
_RAISED = 5.0  # mm that a breast stands out where it is looked for
_GRID = 6.0  # mm between the places looked at
_IN_FRONT = 600.0  # mm before the template: from where they are looked at


def without_breast(mesh: TriangleMesh, probability: Floats, side: str, middle: float = 0.0) -> TriangleMesh:
    """Take one breast off an upright template.

    Pressed onto a flat chest, a template's fold would stay folded. A membrane (the harmonic map from the breast's own
    skin) has no fold, and spreads the breast's triangles evenly without turning any over.

    Parameters
    ----------
    mesh : TriangleMesh
    probability : (n,) float
        Mask of that side.
    side : str
    middle : float
        Where the sternum lies, on x.
    """
    import igl

    outwards = (mesh.vertices[:, 0] - middle) * SIGN[side]
    free = (probability > _BREAST) & (outwards > _MIDLINE) & ~boundary_vertices(mesh.faces, mesh.n_vertices)
    if not free.any():
        return mesh
    laplacian = igl.cotmatrix(np.array(mesh.vertices), np.array(mesh.faces)).tocsr()[free]
    vertices = np.array(mesh.vertices)
    vertices[free] = splu(laplacian[:, free].tocsc()).solve(-laplacian[:, ~free] @ vertices[~free])
    return mesh.with_vertices(vertices)


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
    """

    places: Floats
    level: Floats
    breast: Floats

    @classmethod
    def of(cls, whole: TriangleMesh, bare: TriangleMesh) -> BreastHeight:
        """Of an upright template with and without the breast."""
        taken = np.linalg.norm(whole.vertices - bare.vertices, axis=1) > _RAISED
        if not taken.any():
            return cls(np.empty((0, 3)), np.empty(0), np.empty(0))
        low, high = (end(whole.vertices[taken, :2], axis=0) for end in (np.min, np.max))
        across, up = np.meshgrid(*(np.arange(a, b, _GRID) for a, b in zip(low, high, strict=True)))
        front = np.full(across.size, whole.vertices[:, 2].max() + _IN_FRONT)
        places = np.column_stack([across.ravel(), up.ravel(), front])
        level = _height(Surface(bare), places, Similarity())
        return cls(places, level, _height(Surface(whole), places, Similarity()) - level)

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
        known = (self.breast > _RAISED) & np.isfinite(seen)
        breast = self.breast[known]
        return float(seen[known] @ breast / (breast @ breast)) if known.any() else 0.0


def _height(surface: Surface, places: Floats, transform: Similarity) -> Floats:
    """Height of the skin behind places in front of it, (k,); NaN where there is none."""
    directions = np.tile(-transform.rotation[:, 2], (len(places), 1))
    faces, distances, _ = surface.first_hit(transform.apply(places), directions)
    return np.where(faces >= 0, places[:, 2] - distances / transform.scale, np.nan)
