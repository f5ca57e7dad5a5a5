"""What a registration returns, and how good it is by its own measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from breastmorph.mesh.geometry import face_angles, face_areas, face_normals, vertex_normals
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Floats, Ints, TriangleMesh
from breastmorph.registration.minimiser import Trace
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.scan.landmarks import Landmarks


@dataclass(frozen=True)
class StageMetrics:
    """How things stand after one stage.

    Attributes
    ----------
    name : str
        "rigid", "warp", "initial", "coarse" or "fine".
    seconds : float
    iterations : int
    distance_inside, distance_outside : float
        Mean distance in mm from the template to the scan where the template's mask is above 0.2 and below, over
        points that face the scan; NaN where there are none.
    landmark_residuals : mapping from name to mm
    trace : tuple of Trace
        Iterations of the minimiser.
    """

    name: str
    seconds: float
    iterations: int
    distance_inside: float
    distance_outside: float
    landmark_residuals: Mapping[str, float]
    trace: tuple[Trace, ...] = ()


@dataclass(frozen=True, eq=False)
class Registration:
    """The template in a subject's shape.

    Attributes
    ----------
    id : str
        The scan's.
    mesh : TriangleMesh
        The template's topology in the scan's canonical frame (that of ``Scan.mesh``), in mm.
    transform : Similarity
        The rigid stage: from template to scan coordinates.
    template_mask : (n,) float
        Breast probability of the template's vertices.
    scan_mask : (k,) float
        Breast probability of the scan's vertices.
    absent_side : str
        The side that is absent on the scan (its mask is mirrored, its landmark pairs are void), or empty.
    stages : tuple of StageMetrics
    metrics : mapping from name to float
        Of the final shape: see :func:`shape_metrics`.
    seconds : mapping from step to float
    warnings : tuple of str
        In plain words; empty when all is well.
    parameters : RegistrationParameters
    estimated : Landmarks
        Where landmarks that are not set were taken to be, in the frame of ``mesh``; for the mask and the rigid stage.
    """

    id: str
    mesh: TriangleMesh
    transform: Similarity
    template_mask: Floats
    scan_mask: Floats
    absent_side: str
    stages: tuple[StageMetrics, ...]
    metrics: Mapping[str, float]
    seconds: Mapping[str, float]
    warnings: tuple[str, ...]
    parameters: RegistrationParameters
    estimated: Landmarks = field(default_factory=lambda: Landmarks.of({}))

    @property
    def vertices(self) -> Floats:
        """Vertices in the scan's canonical frame, (n, 3) float."""
        return self.mesh.vertices


def shape_metrics(template: Floats, vertices: Floats, faces: Ints) -> dict[str, float]:
    """Distortion of a shape against the template's.

    Returns
    -------
    dict
        ``angle_distortion`` mean change of the triangles' angles in degrees, ``flipped_percent`` triangles that
        face against their surroundings, ``smallest_area_ratio`` of a triangle against the template's, relative
        to the median ratio.
    """
    before, after = face_angles(template, faces), face_angles(vertices, faces)
    normals = face_normals(vertices, faces)
    around = vertex_normals(vertices, faces)[faces].mean(axis=1)
    ratio = face_areas(vertices, faces) / np.maximum(face_areas(template, faces), 1e-300)
    return {
        "angle_distortion": float(np.degrees(np.abs(after - before).mean())),
        "flipped_percent": float(100.0 * ((normals * around).sum(axis=1) < 0).mean()),
        "smallest_area_ratio": float(ratio.min() / np.median(ratio)),
    }
