"""How far a shape lies from a scanned surface, where the scan shows it."""

from __future__ import annotations

import numpy as np

from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_normals
from breastmorph.mesh.triangle_mesh import Floats

_FAR = 15.0  # mm: what lies farther from the shape is not the same surface


def surface_residuals(
    surface: Surface, points: Floats, normals: Floats, *, may_be_turned: bool = False
) -> Floats:
    """Signed distance of points from a surface, mm; positive outside, NaN where the surface shows nothing, (n,).

    Parameters
    ----------
    surface : Surface
    points, normals : (n, 3) float
    may_be_turned : bool
        The faces of a scan that nobody checked may all look inwards; then the majority of the points decides.
    """
    found = surface.closest(points)
    facing = face_normals(surface.mesh.vertices, surface.mesh.faces)[found.faces]
    if may_be_turned:
        facing = facing * (np.sign(np.median((facing * normals).sum(axis=1))) or 1.0)
    side = np.sign(((points - found.points) * facing).sum(axis=1))
    seen = ~found.on_boundary & ((facing * normals).sum(axis=1) > 0.0) & (found.distances < _FAR)
    return np.where(seen, side * found.distances, np.nan)
