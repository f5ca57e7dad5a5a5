"""What a registration returns, how good it is by its own measures, and what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from breastmorph.foundation.arrays import Floats, Ints, Shown, doubted
from breastmorph.foundation.errors import Finding, LandmarkProblem, MeshProblem, warning
from breastmorph.mesh.geometry import Similarity
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.registration.minimiser import Trace
from breastmorph.registration.parameters import RegistrationParameters
from breastmorph.registration.rigid import Target
from breastmorph.scan.scan import OF_A_BREAST, SIDES, SIGN, STERNUM, Landmarks
from breastmorph.template import Template

# --------------------------------------------------------------------------------------------------------------------
# What a registration returns, and how good it is by its own measures
# --------------------------------------------------------------------------------------------------------------------


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

    ratio, over = dense.pressed(template, vertices, faces)
    return {
        "angle_distortion": float(np.degrees(dense.angle_change(template, vertices, faces))),
        "flipped_percent": float(100.0 * over.mean()),
        "smallest_area_ratio": float(ratio.min() / np.median(ratio)),
    }


# --------------------------------------------------------------------------------------------------------------------
# What speaks against a registration: what is refused, and what the user is warned of
# --------------------------------------------------------------------------------------------------------------------

_OFF_SURFACE = 20.0  # mm between a landmark and the scan: these are not this scan's landmarks
_NEAR_SURFACE = 8.0  # mm: worth a warning
_NO_TORSO = 25.0  # mm between the rigid template and the thorax: no torso, or not its landmarks (torsos: < 7)
_ODD_TORSO = 12.0  # mm: worth a warning
_TOO_LITTLE, _LITTLE = 0.5, 0.75  # of the template finds the scan: refused, worth a warning
_LITTLE_OF_A_BREAST = 0.7  # finds the scan (under hanging breasts scanners miss up to a fifth)
BREAST_OFF = 1.0  # mm between breasts and scan
_NIPPLE_OFF = 2.0  # mm
FOLDED = 0.05  # per cent of the triangles
DISTORTED = 14.0  # degrees


def landmarks_on_surface(
    landmarks: Landmarks, target: Target, scan_id: str
) -> tuple[Landmarks, list[Finding]]:
    """A scan's landmarks moved onto its surface, and warnings of those that lay off it.

    Parameters
    ----------
    landmarks : Landmarks
    target : Target
        The scan in its own coordinates.
    scan_id : str
        To be named in errors.

    Raises
    ------
    LandmarkProblem
        They are another scan's, or left and right are exchanged.
    """
    landmarks = landmarks.on_skin
    found = target.surface.closest(landmarks.points)
    worst = int(found.distances.argmax())
    if found.distances[worst] > _OFF_SURFACE:
        distance = float(found.distances[worst])
        raise LandmarkProblem.of(
            "unusable-landmarks/off-scan", scan_id, name=landmarks.names[worst], distance=distance
        )
    _require_sides(landmarks, target.normals_at(found).sum(axis=0), scan_id)
    warnings = [
        warning("landmark-moved", name=name, distance=float(distance))
        for name, distance in zip(landmarks.names, found.distances, strict=True)
        if distance > _NEAR_SURFACE
    ]
    return replace(landmarks, points=found.points), warnings


def judge_landmarks(landmarks: Landmarks) -> list[Finding]:
    """Warnings of landmarks that contradict each other; they are given upright, as the template sees them."""
    return [
        warning("pole-above-nipple", pole=f"lower_pole_{side}", nipple=f"nipple_{side}")
        for side in landmarks.nipple_sides
        if f"lower_pole_{side}" in landmarks
        and landmarks[f"lower_pole_{side}"][1] > landmarks[f"nipple_{side}"][1]
    ]


def judge_thorax(gap: float, scan_id: str) -> list[Finding]:
    """Warnings of a rigid alignment that leaves the thorax ``gap`` mm from the scan (NaN: nothing faces it).

    Raises
    ------
    MeshProblem
        The scan is no torso.
    """
    if not gap < _NO_TORSO:
        how = f"it stays {gap:.0f} mm away" if np.isfinite(gap) else "no part of it faces the scan"
        raise MeshProblem(
            f"the template does not find the thorax ({how})",
            "This does not look like a torso seen from the front, or the landmarks are not its own",
            scan_id,
        )
    return [warning("unusual-thorax", gap=gap)] if gap > _ODD_TORSO else []


def judge_result(metrics: Mapping[str, float], fitted: bool, scan_id: str) -> list[Finding]:
    """Warnings of a finished registration.

    Parameters
    ----------
    metrics : mapping
        See :class:`breastmorph.registration.result.Registration`.
    fitted : bool
        Whether the template was to end on the scan, so that what is left of the way means something.
    scan_id : str
        To be named in errors.

    Raises
    ------
    MeshProblem
        The scan shows too little.
    """
    share = metrics["overlap"]
    if share < _TOO_LITTLE:
        raise MeshProblem(
            f"only {100 * share:.0f} % of the template finds the scan's surface",
            "The scan shows too little of the chest, or the landmarks are not its own",
            scan_id,
        )
    warnings = []
    if share < _LITTLE:
        warnings.append(warning("poor-overlap", share=100 * share))
    if fitted and metrics["distance_inside"] > BREAST_OFF:
        warnings.append(warning("breasts-off", distance=metrics["distance_inside"]))
    for side in SIDES:
        residual = metrics.get(f"residual_nipple_{side}", 0.0)
        if fitted and residual > _NIPPLE_OFF:
            warnings.append(warning("nipple-off", name=f"nipple_{side}", distance=residual))
    if metrics["flipped_percent"] > FOLDED:
        warnings.append(warning("folded", percent=metrics["flipped_percent"]))
    if metrics["angle_distortion"] > DISTORTED:
        warnings.append(warning("distorted", degrees=metrics["angle_distortion"]))
    return warnings


def judge_breasts(shares: Mapping[str, float]) -> list[Finding]:
    """Warnings of breasts that the scan hardly shows: the figures of a result speak only of what is there.

    Parameters
    ----------
    shares : mapping from side to float
        Share of the breast's points that found the scan.
    """
    return [
        warning("breast-not-seen", share=100 * share, side=side)
        for side, share in shares.items()
        if share < _LITTLE_OF_A_BREAST
    ]


def _require_sides(landmarks: Landmarks, outward: Floats, scan_id: str) -> None:
    """Refuse a scan whose left, up and forward (``outward``, (3,)) do not make the patient's frame."""
    middle = landmarks.only(STERNUM).points.mean(axis=0)
    below = ["xiphoid"] if "xiphoid" in landmarks else [f"nipple_{side}" for side in landmarks.nipple_sides]
    up = landmarks["sternal_notch"] - landmarks.array(below).mean(axis=0)
    left = np.zeros(3)
    for side, sign in SIGN.items():
        for part in OF_A_BREAST:
            if f"{part}_{side}" in landmarks:
                left += sign * (landmarks[f"{part}_{side}"] - middle)
    if np.cross(left, up) @ outward <= 0:
        raise LandmarkProblem(
            "sides swapped or file mirrored: left, up and forward do not fit together",
            "Left and right are the patient's; rename the landmarks, or turn the surface outside out",
            scan_id,
        )
