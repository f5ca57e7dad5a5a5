"""Symmetry of the breasts: each against the mirror image of the other, once the thorax is aligned with its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from breastmorph.clinical.mirror_frame import NOT_SYMMETRIC
from breastmorph.clinical.skin_points import SkinPoints
from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import MeshProblem
from breastmorph.mask import breast_regions
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import Similarity, face_normals, vertex_areas
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.scan.scan import SIDES, Landmarks


@dataclass(frozen=True, eq=False)
class Symmetry:
    """How far a subject's breasts differ in shape.

    Attributes
    ----------
    deviation : float
        Mean distance in mm between the breasts and the mirror image of the other side, over the skin of both.
    sides : mapping from side to float
        The same, of one side.
    thorax : float
        The same of the thorax: how well the mirror image could be laid on, mm.
    signed : (n,) float
        By vertex: mm the skin lies outside (+) or inside (-) the mirror image of the other side; NaN off the breasts.
    mirrored : TriangleMesh
        The mirror image, laid on the subject.
    """

    deviation: float
    sides: Mapping[str, float]
    thorax: float
    signed: Floats
    mirrored: TriangleMesh


class SymmetryGauge:
    """Symmetry of shapes in correspondence: prepared once per template or model.

    Parameters
    ----------
    mesh : TriangleMesh
        The template or the model's mean, upright, in mm.
    landmarks : Landmarks
        As for :func:`breastmorph.mask.breast_regions`.
    mirror : (n,) int, optional
        The vertex at every vertex's mirror image; found on the mesh, which must be nearly symmetric, when not given.
    """

    def __init__(self, mesh: TriangleMesh, landmarks: Landmarks, mirror: Ints | None = None) -> None:
        self.regions = breast_regions(mesh, landmarks)
        self._faces = mesh.faces
        self._thorax = ~(self.regions["left"] | self.regions["right"])
        self._weights = vertex_areas(mesh.vertices, mesh.faces)[self._thorax]
        self._twin = SkinPoints.of_vertices(mirror) if mirror is not None else _twins(mesh, landmarks)

    def of(self, shape: Floats) -> Symmetry:
        """Symmetry of a shape (n, 3) in mm and in any pose."""
        reflected = self._twin.at(shape) * MIRROR
        # The breasts take no part: a larger breast must not turn the mirror image towards itself.
        lay = Similarity.fit(reflected[self._thorax], shape[self._thorax], self._weights, with_scale=False)
        mirrored = TriangleMesh(lay.apply(reflected), self._faces)
        found = Surface(mirrored).closest(shape)
        normals = face_normals(mirrored.vertices, mirrored.faces)[found.faces]
        outside = ((shape - found.points) * normals).sum(axis=1) >= 0.0
        areas = vertex_areas(shape, self._faces)

        def mean(part: np.ndarray) -> float:
            return float(np.average(found.distances[part], weights=areas[part]))

        return Symmetry(
            mean(~self._thorax),
            MappingProxyType({side: mean(self.regions[side]) for side in SIDES}),
            mean(self._thorax),
            np.where(self._thorax, np.nan, np.where(outside, found.distances, -found.distances)),
            mirrored,
        )


def _twins(mesh: TriangleMesh, landmarks: Landmarks) -> SkinPoints:
    """The place of every vertex's mirror image on a nearly symmetric mesh."""
    middle = landmarks["sternal_notch"][0]
    across = mesh.vertices * MIRROR + [2.0 * middle, 0.0, 0.0]
    surface = Surface(mesh)
    found = surface.closest(across)
    if found.distances.mean() > NOT_SYMMETRIC:
        raise MeshProblem(
            "the mesh is not symmetric: it lies {distances:.0f} mm from its mirror image",
            "Symmetry needs a symmetric template, upright and centred on the sternum",
            distances=found.distances.mean(),
        )
    return SkinPoints(mesh.faces[found.faces], found.weights)
