"""The template: the mesh that is bent onto every scan, its landmarks and its coarse twin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from breastmorph.foundation.arrays import Ints, Shown
from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.mesh.geometry import decimate
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import STERNUM, Landmarks

_COARSE_VERTICES = 650  # the paper's coarse stage; about 14 mm edges on a torso
_OFF_MESH = 10.0  # mm between a landmark and the mesh's nearest vertex: not this mesh's landmark


@dataclass(frozen=True, eq=False)
class Template(Shown):
    """A torso in the upright frame (x to the patient's left, y up, z forward), in millimetres.

    Attributes
    ----------
    mesh : TriangleMesh
    landmark_ids : mapping from name to vertex of ``mesh``
    coarse : TriangleMesh
        The same surface with few vertices.
    coarse_landmark_ids : mapping from name to vertex of ``coarse``
    mirror, coarse_mirror : (n,) int, optional
        The vertex at every vertex's mirror image, where the template is symmetric.
    """

    mesh: TriangleMesh
    landmark_ids: Mapping[str, int]
    coarse: TriangleMesh
    coarse_landmark_ids: Mapping[str, int]
    mirror: Ints | None = None
    coarse_mirror: Ints | None = None

    def __repr__(self) -> str:
        kind = "symmetric, " if self.mirror is not None else ""
        return f"Template({kind}{self.mesh.n_vertices:,} vertices, {len(self.landmark_ids)} landmarks)"

    @property
    def landmarks(self) -> Landmarks:
        """Positions of the landmark vertices."""
        return Landmarks.at_vertices(self.landmark_ids, self.mesh.vertices)

    @property
    def as_reference(self) -> tuple[TriangleMesh, Landmarks]:
        """The template as the upright reference of :func:`breastmorph.scan.check.check_scan`."""
        return self.mesh, self.landmarks

    @property
    def coarse_landmarks(self) -> Landmarks:
        """Positions of the coarse twin's landmark vertices."""
        return Landmarks.at_vertices(self.coarse_landmark_ids, self.coarse.vertices)


def template_from(mesh: TriangleMesh, landmarks: Landmarks, coarse: TriangleMesh | None = None) -> Template:
    """A template from a mesh and points near its vertices; the coarse twin is derived when not given."""
    missing = [name for name in STERNUM if name not in landmarks]
    if missing or not landmarks.complete_sides:
        if missing:
            raise LandmarkProblem(
                "the template lacks {name:landmark}",
                "A template needs sternal notch, xiphoid, nipples, lower and lateral poles",
                code="unusable-landmarks/template-lacks",
                name=missing[0],
            )
        raise LandmarkProblem(
            "the template lacks a complete breast",
            "A template needs sternal notch, xiphoid, nipples, lower and lateral poles",
            code="unusable-landmarks/template-lacks-breast",
        )
    twin = coarse
    if twin is None and mesh.n_vertices <= 2 * _COARSE_VERTICES:
        twin = TriangleMesh(mesh.vertices, mesh.faces)
    elif twin is None:
        twin = decimate(mesh, n_vertices=_COARSE_VERTICES)
    return Template(
        mesh, _nearest_vertices(mesh, landmarks, _OFF_MESH), twin, _nearest_vertices(twin, landmarks)
    )


def _nearest_vertices(
    mesh: TriangleMesh, landmarks: Landmarks, limit: float = np.inf
) -> MappingProxyType[str, int]:
    ids = {}
    for name in landmarks:
        distances = np.linalg.norm(mesh.vertices - landmarks[name], axis=1)
        if distances.min() > limit:
            distance = float(distances.min())
            raise LandmarkProblem(
                "template landmark {name:landmark} lies {distance:.0f} mm from the template",
                "Give the landmarks that belong to this template, in its unit and frame",
                code="unusable-landmarks/template-off",
                name=name,
                distance=distance,
            )
        ids[name] = int(distances.argmin())
    return MappingProxyType(ids)
