"""Left and right: the plane a surface is most symmetric to, and a whole made of one half."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from breastmorph.errors import MeshProblem
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import face_normals
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.topology import boundary_vertices, is_manifold
from breastmorph.mesh.triangle_mesh import MIRROR, Floats, Ints, TriangleMesh

_STEPS = 40
_ANCHORS = 0.2  # weight of all anchors together against all points


@dataclass(frozen=True, eq=False)
class Plane:
    """The points x with ``normal @ x == offset``.

    Attributes
    ----------
    normal : (3,) float
        Unit vector.
    offset : float
    """

    normal: Floats
    offset: float

    def distance(self, points: Floats) -> Floats:
        """Signed distances, (k,)."""
        return points @ self.normal - self.offset

    def reflected(self, points: Floats) -> Floats:
        """Mirror images, (k, 3)."""
        return points - 2.0 * self.distance(points)[:, None] * self.normal

    def to_sagittal(self) -> Similarity:
        """The smallest rigid motion that brings the plane to x = 0 and its normal to +x."""
        axis = np.array([1.0, 0.0, 0.0])
        cross = np.cross(self.normal, axis)
        k = np.array([[0, -cross[2], cross[1]], [cross[2], 0, -cross[0]], [-cross[1], cross[0], 0]])
        rotation = np.eye(3) + k + k @ k / (1.0 + self.normal @ axis)
        return Similarity(rotation, np.array([-self.offset, 0.0, 0.0]))


def symmetry_plane(surface: Surface, points: Floats, start: Plane, anchors: Floats) -> tuple[Plane, float]:
    """The plane that best mirrors a surface onto itself.

    Iterates closest points between the mirror image of ``points`` and the surface (Gauss-Newton on the
    distance along the normal). Pairs on the border, with other normals or far off are left out, so that
    what is asymmetric (one larger breast) does not turn the plane.

    Parameters
    ----------
    surface : Surface
    points : (k, 3) float
        Vertices of the surface to mirror.
    start : Plane
    anchors : (a, 3) float
        Points the plane should contain, as the sternum's landmarks: without them a round chest lets it turn.

    Returns
    -------
    plane : Plane
    residual : float
        Median distance between the mirror image and the surface.
    """
    normals = face_normals(surface.mesh.vertices, surface.mesh.faces)
    point_normals = normals[surface.closest(points).faces]
    plane, residual = start, np.inf
    for _ in range(_STEPS):
        image = plane.reflected(points)
        hit = surface.closest(image)
        facing = normals[hit.faces]
        turned = point_normals - 2.0 * (point_normals @ plane.normal)[:, None] * plane.normal
        fits = ~hit.on_boundary & ((turned * facing).sum(axis=1) > 0.7)
        if fits.sum() < 10:
            break
        residual = float(np.median(hit.distances[fits]))
        fits &= hit.distances < 3.0 * max(residual, 0.1)
        # Turn about two axes across the normal and shift: r = p - 2 (n.p - d) n, linearised in n and d.
        u = np.cross(plane.normal, [0.0, 1.0, 0.0])
        u /= np.linalg.norm(u)
        w = np.cross(plane.normal, u)
        p, m = points[fits], facing[fits]
        depth, along = plane.distance(p), m @ plane.normal
        rows = [-2.0 * ((p @ axis) * along + depth * (m @ axis)) for axis in (u, w)]
        jacobian = np.column_stack([*rows, 2.0 * along])
        error = ((image[fits] - hit.points[fits]) * m).sum(axis=1)
        weight = np.sqrt(_ANCHORS * len(p) / max(len(anchors), 1)) * 2.0
        anchored = np.column_stack([anchors @ u, anchors @ w, -np.ones(len(anchors))]) * weight
        system = np.concatenate([jacobian, anchored])
        right = np.concatenate([error, plane.distance(anchors) * weight])
        change = -np.linalg.lstsq(system, right, rcond=None)[0]
        normal = plane.normal + change[0] * u + change[1] * w
        length = np.linalg.norm(normal)
        plane = Plane(normal / length, (plane.offset + float(change[2])) / float(length))
        if np.abs(change[:2]).max() < 1e-6 and abs(change[2]) < 1e-4:
            break
    return plane, residual


def whole_of_half(half: TriangleMesh) -> tuple[TriangleMesh, Ints]:
    """Join a half (x >= 0, cut exactly at x = 0) with its mirror image.

    Returns
    -------
    mesh : TriangleMesh
        First the half's vertices and faces, then those of the mirror image.
    mirror : (n,) int
        The vertex at the mirror image's place; a vertex on the mid-line is its own.
    """
    middle = half.vertices[:, 0] == 0.0
    if not (middle & boundary_vertices(half.faces, half.n_vertices)).any() or half.vertices[:, 0].min() < 0:
        raise MeshProblem("the half surface does not end at the plane x = 0")
    n = half.n_vertices
    partner = np.arange(n)
    partner[~middle] = n + np.arange(n - int(middle.sum()))
    image = half.vertices[~middle] * MIRROR
    faces = np.concatenate([half.faces, partner[half.faces][:, ::-1]])
    mirror = np.concatenate([partner, np.flatnonzero(~middle)])
    mesh = TriangleMesh(np.concatenate([half.vertices, image]), faces)
    if not is_manifold(mesh.faces):
        raise MeshProblem("the half surface touches the plane x = 0 apart from its border there")
    return mesh, mirror
