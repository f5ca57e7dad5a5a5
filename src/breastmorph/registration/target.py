"""The scan as the template sees it: closest points, normals and mask in the template's frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.mesh.closest import Surface, SurfacePoints
from breastmorph.mesh.geometry import vertex_normals
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Bools, Floats, TriangleMesh


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


class Target:
    """A scan's surface seen through a similarity that takes template to scan coordinates.

    The search tree is built once, in the scan's own coordinates; :meth:`seen_through` shares it.
    """

    def __init__(self, mesh: TriangleMesh) -> None:
        self.surface = Surface(mesh)
        self._normals = vertex_normals(mesh.vertices, mesh.faces)
        self.transform = Similarity()

    def seen_through(self, transform: Similarity) -> Target:
        """The same scan in other template coordinates."""
        other = object.__new__(Target)
        other.surface, other._normals, other.transform = self.surface, self._normals, transform
        return other

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
        """Unit normals at points of the surface in scan coordinates, (k, 3).

        Interpolated, because a face's normal jumps where a closest point lies on an edge.
        """
        corners = self._normals[self.surface.mesh.faces[found.faces]]
        normals = np.einsum("kc,kci->ki", found.weights, corners)
        return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
