"""What a registration returns, and how good it is by its own measures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints, Shown, doubted
from breastmorph.foundation.messages import Finding
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.scan.scan import Landmarks
from breastmorph.template import Template


@dataclass(frozen=True)
class Trace:
    """One iteration of a stage: stiffness, energy F after it, root mean square of the distance term in mm."""

    stiffness: float
    energy: float
    distance: float


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
class Registration(Shown):
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
    warnings : tuple of Finding
        Empty when all is well.
    parameters : RegistrationParameters
    template : Template
        What was bent.
    landmarks : Landmarks
        As annotated on the scan, in the frame of ``mesh``.
    to_file : Similarity
        From there to the frame and unit of the scan's file.
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
    warnings: tuple[Finding, ...]
    parameters: RegistrationParameters
    template: Template
    landmarks: Landmarks
    to_file: Similarity
    estimated: Landmarks = field(default_factory=lambda: Landmarks.of({}))

    def __repr__(self) -> str:
        absent = f", {self.absent_side} side absent" if self.absent_side else ""
        off = self.metrics.get("distance_inside", float("nan"))
        return (
            f"Registration({self.id!r}, {self.mesh.n_vertices:,} vertices, {off:.2f} mm from the scan in the breast"
            f"{absent}{doubted(self.warnings)})"
        )

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
    from breastmorph.mesh import dense

    ratio, over = dense.area_ratios(template, vertices, faces)
    return {
        "angle_distortion": float(np.degrees(dense.angle_change(template, vertices, faces))),
        "flipped_percent": float(100.0 * over.mean()),
        "smallest_area_ratio": float(ratio.min() / np.median(ratio)),
    }
