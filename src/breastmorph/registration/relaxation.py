"""Triangles that are compressed: spread again over the skin around them."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import splu

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.topology import faces_with_any
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.parameters import RelaxationParameters
from breastmorph.registration.target import normals_at_vertices


def membrane(rest: TriangleMesh, points: Floats, free: Bools) -> Floats:
    """Points (n, 3) of which the free ones hang between the others as a membrane that is even on the mesh at rest."""
    laplacian = _laplacian(rest)[free]
    found = np.array(points)
    found[free] = splu(laplacian[:, free].tocsc()).solve(-laplacian[:, ~free] @ points[~free])
    return found


def relaxed(
    rest: TriangleMesh, points: Floats, tightest: float, fixed: Bools, parameters: RelaxationParameters
) -> Floats:
    """Points (n, 3) of the same surface on which no triangle is compressed.

    Closest points of a deep fold lie side by side, and the skin before it ends on one line. Where along the surface it
    belongs no scan says; the template's own proportions do.

    Parameters
    ----------
    rest : TriangleMesh
        The template.
    points : (n, 3) float
    tightest : float
        Share of its area at rest, as the median triangle keeps its own, below which a triangle is spread.
    fixed : (n,) bool
        Vertices that stay.
    parameters : RelaxationParameters
    """
    p = parameters
    compressed, over = _compressed(rest, points, tightest)
    if not compressed.any():
        return points
    laplacian = _laplacian(rest)
    points, free, surface = np.array(points), np.zeros(len(points), bool), None
    for turn in range(p.rounds):
        if over.any():  # a surface that lies over itself is no surface to slide on
            points = membrane(rest, points, _around(rest.faces, over, p.overlap_rings + turn, fixed))
            surface = None
        surface = Surface(rest.with_vertices(points)) if surface is None else surface
        free |= _around(rest.faces, compressed, p.rings, fixed)
        pull = diags(-p.step / laplacian.diagonal()[free]) @ laplacian[free]
        faces = rest.faces[faces_with_any(free, rest.faces)]
        for _ in range(p.steps):
            normals = normals_at_vertices(points, faces)[free]
            step = pull @ points
            step -= (step * normals).sum(axis=1)[:, None] * normals
            points[free] = surface.closest(points[free] + step).points
        compressed, over = _compressed(rest, points, tightest)
        if not compressed.any():
            break
    return points


def _laplacian(mesh: TriangleMesh) -> csr_matrix:
    import igl

    return igl.cotmatrix(np.array(mesh.vertices), np.array(mesh.faces)).tocsr()


def _compressed(rest: TriangleMesh, points: Floats, tightest: float) -> tuple[Bools, Bools]:
    """Triangles that are too small or turned over, and those that are turned over, (m,) bool each."""
    from breastmorph.mesh import dense

    ratio, over = dense.area_ratios(rest.vertices, points, rest.faces)
    return (ratio < tightest * np.median(ratio)) | over, over


def _around(faces: Ints, chosen: Bools, rings: int, fixed: Bools) -> Bools:
    """Vertices of chosen faces and so many rings about them, but for those that are fixed, (n,)."""
    near = np.zeros(len(fixed), bool)
    near[faces[chosen]] = True
    for _ in range(rings):
        near[faces[faces_with_any(near, faces)]] = True
    found: Bools = near & ~fixed
    return found
