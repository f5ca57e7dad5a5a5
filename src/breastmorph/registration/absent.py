"""A side without a breast: the template starts there as the skin spanned between its surroundings."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import splu

from breastmorph.mesh.topology import boundary_vertices
from breastmorph.mesh.triangle_mesh import Floats, TriangleMesh

_BREAST = 0.03  # mask above which skin belongs to the breast and its fold
_MIDLINE = 5.0  # mm beside the sternum that stay as they are


def without_breast(mesh: TriangleMesh, probability: Floats, side: str) -> TriangleMesh:
    """Take one breast off an upright template whose sternum lies at x = 0.

    Pressed onto a flat chest, a template's fold would stay folded. A membrane (the harmonic map from the breast's own
    skin) has no fold, and spreads the breast's triangles evenly without turning any over.

    Parameters
    ----------
    mesh : TriangleMesh
    probability : (n,) float
        Mask of that side.
    side : str
    """
    import igl

    outwards = mesh.vertices[:, 0] * (1.0 if side == "left" else -1.0)
    free = (probability > _BREAST) & (outwards > _MIDLINE) & ~boundary_vertices(mesh.faces, mesh.n_vertices)
    if not free.any():
        return mesh
    laplacian = igl.cotmatrix(np.array(mesh.vertices), np.array(mesh.faces)).tocsr()[free]
    vertices = np.array(mesh.vertices)
    vertices[free] = splu(laplacian[:, free].tocsc()).solve(-laplacian[:, ~free] @ vertices[~free])
    return mesh.with_vertices(vertices)
