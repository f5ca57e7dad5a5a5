"""Smoothing that does not shrink, and fair surfaces where there is no data."""

from __future__ import annotations

import numpy as np
from scipy.sparse import diags_array

from breastmorph.mesh.topology import boundary_vertices
from breastmorph.mesh.triangle_mesh import Floats, Ints


def smoothed(
    vertices: Floats, faces: Ints, weights: Floats, wavelength: float, values: Floats | None = None
) -> Floats:
    """Smooth a surface without shrinking it; fair it where it has no weight.

    Minimises ``sum weights area |x - x0|^2 + (wavelength / 2 pi)^4 sum area |laplacian x|^2``: undulations of
    that wavelength keep half their height (where the weight is 1), much longer ones all of it. With weight 0
    the surface becomes a thin plate that continues its surroundings.

    Parameters
    ----------
    vertices : (n, 3) float
    faces : (m, 3) int
    weights : (n,) float
    wavelength : float
        Same unit as the vertices.
    values : (n, k) float, optional
        Smooth these functions on the surface instead of the coordinates.

    Returns
    -------
    (n, 3) or (n, k) float
    """
    import igl
    from scipy.sparse.linalg import splu

    v, f = np.array(vertices), np.array(faces)
    laplacian = igl.cotmatrix(v, f)
    area = igl.massmatrix(v, f, igl.MASSMATRIX_TYPE_BARYCENTRIC).diagonal()
    area = np.maximum(area, 1e-9 * area.mean())
    # On the border the operator does not vanish for flat surfaces; left in, it would pull the border in.
    stiff = np.where(boundary_vertices(f, len(v)), 0.0, 1.0 / area)
    bending = laplacian.T @ diags_array(stiff) @ laplacian
    # A trace of weight keeps the system definite where whole pieces have none.
    data = area * np.maximum(weights, 1e-9)
    system = diags_array(data) + (wavelength / (2.0 * np.pi)) ** 4 * bending
    factor = splu(system.tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
    start = vertices if values is None else values
    return factor.solve(data[:, None] * start)
