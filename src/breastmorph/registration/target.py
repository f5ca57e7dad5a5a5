"""The scan as the template sees it: closest points and normals in the template's frame."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.mesh.closest import Surface, SurfacePoints
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh


def normals_at_vertices(vertices: Floats, faces: Ints) -> Floats:
    """Unit normals (n, 3), compiled at any size: a registration asks for them some thirty times."""
    from breastmorph.mesh import (
        dense,
    )  # numba is loaded where something is registered, not with every command

    return dense.vertex_normals(vertices, faces)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Closest points of the scan.

    Attributes
    ----------
    points : (k, 3) float
    normals : (k, 3) float
        The scan's, at those points.
    distances : (k,) float
    sound : (k,) bool
        Neither on the scan's border nor with disagreeing normals.
    """

    points: Floats
    normals: Floats
    distances: Floats
    sound: Bools


@dataclass(frozen=True, eq=False)
class Target:
    """A scan's surface seen through a similarity.

    Attributes
    ----------
    surface : Surface
        In the scan's own coordinates; its search tree is built once and shared by all views.
    normals : (n, 3) float
        Of its vertices.
    transform : Similarity
        From template to scan coordinates.
    """

    surface: Surface
    normals: Floats
    transform: Similarity

    @classmethod
    def of(cls, mesh: TriangleMesh) -> Target:
        """A scan in its own coordinates."""
        return cls(Surface(mesh, compiled=True), normals_at_vertices(mesh.vertices, mesh.faces), Similarity())

    def seen_through(self, transform: Similarity) -> Target:
        """The same scan in other template coordinates."""
        return replace(self, transform=transform)

    def pairs(self, points: Floats, normals: Floats, max_angle: float) -> Pairs:
        """Pair points (k, 3) that have unit normals (k, 3) with the scan.

        Parameters
        ----------
        max_angle : float
            Degrees between the normals of a sound pair.
        """
        found = self.surface.closest(self.transform.apply(points))
        inverse = self.transform.inverse()
        facing = self.normals_at(found) @ self.transform.rotation  # rotation^T n, row by row
        agree = (facing * normals).sum(axis=1) > np.cos(np.radians(max_angle))
        return Pairs(
            inverse.apply(found.points),
            facing,
            found.distances / self.transform.scale,
            agree & ~found.on_boundary,
        )

    def normals_at(self, found: SurfacePoints) -> Floats:
        """Unit normals at points of the surface in scan coordinates, (k, 3)."""
        from breastmorph.mesh import dense

        return dense.normals_within(self.normals, self.surface.mesh.faces[found.faces], found.weights)
