"""What speaks against a registration: what is refused, and what the user is warned of."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from breastmorph.errors import LandmarkProblem, MeshProblem
from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.registration.target import Target
from breastmorph.scan.landmarks import OF_A_BREAST, SIDES, SIGN, STERNUM, Landmarks

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


def landmarks_on_surface(landmarks: Landmarks, target: Target, scan_id: str) -> tuple[Landmarks, list[str]]:
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
    found = target.surface.closest(landmarks.points)
    worst = int(found.distances.argmax())
    if found.distances[worst] > _OFF_SURFACE:
        raise LandmarkProblem(
            f"landmark {landmarks.names[worst]} lies {found.distances[worst]:.0f} mm off the scan's surface",
            "These look like the landmarks of another scan, or of another unit or frame",
            scan_id,
        )
    _require_sides(landmarks, target.normals_at(found).sum(axis=0), scan_id)
    warnings = [
        f"landmark {name} lies {distance:.0f} mm off the surface; moved onto it"
        for name, distance in zip(landmarks.names, found.distances, strict=True)
        if distance > _NEAR_SURFACE
    ]
    return Landmarks(landmarks.names, found.points), warnings


def judge_landmarks(landmarks: Landmarks) -> list[str]:
    """Warnings of landmarks that contradict each other; they are given upright, as the template sees them."""
    return [
        f"landmark lower_pole_{side} lies above nipple_{side}, yet it is the lowest point of the breast; are the two "
        "exchanged?"
        for side in landmarks.nipple_sides
        if f"lower_pole_{side}" in landmarks
        and landmarks[f"lower_pole_{side}"][1] > landmarks[f"nipple_{side}"][1]
    ]


def judge_thorax(gap: float, scan_id: str) -> list[str]:
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
    return (
        [f"unusual thorax: {gap:.0f} mm from the template after rigid alignment"] if gap > _ODD_TORSO else []
    )


def judge_result(metrics: Mapping[str, float], fitted: bool, scan_id: str) -> list[str]:
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
        warnings.append(f"poor overlap: {100 * share:.0f} % of the template finds the scan")
    if fitted and metrics["distance_inside"] > BREAST_OFF:
        warnings.append(f"breasts end {metrics['distance_inside']:.1f} mm from the scan on average")
    for side in SIDES:
        residual = metrics.get(f"residual_nipple_{side}", 0.0)
        if fitted and residual > _NIPPLE_OFF:
            warnings.append(f"landmark nipple_{side} ends {residual:.1f} mm off")
    if metrics["flipped_percent"] > FOLDED:
        warnings.append(f"folded triangles: {metrics['flipped_percent']:.2f} %")
    if metrics["angle_distortion"] > DISTORTED:
        warnings.append(
            f"strong distortion: angles change by {metrics['angle_distortion']:.0f} degrees on average; are these "
            "the landmarks of this scan?"
        )
    return warnings


def judge_breasts(shares: Mapping[str, float]) -> list[str]:
    """Warnings of breasts that the scan hardly shows: the figures of a result speak only of what is there.

    Parameters
    ----------
    shares : mapping from side to float
        Share of the breast's points that found the scan.
    """
    return [
        f"only {100 * share:.0f} % of the {side} breast is in the scan; the rest of it is a guess"
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
