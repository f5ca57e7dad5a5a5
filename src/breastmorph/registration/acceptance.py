"""What speaks against a registration: what is refused, and what the user is warned of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.errors import LandmarkProblem, MeshProblem
from breastmorph.foundation.messages import Finding, warning
from breastmorph.registration.parameters import AcceptanceParameters
from breastmorph.registration.target import Target
from breastmorph.scan.scan import OF_A_BREAST, SIDES, SIGN, STERNUM, Landmarks


def landmarks_on_surface(
    landmarks: Landmarks, target: Target, scan_id: str, parameters: AcceptanceParameters
) -> tuple[Landmarks, list[Finding]]:
    """A scan's landmarks moved onto its surface, and warnings of those that lay off it.

    Parameters
    ----------
    landmarks : Landmarks
    target : Target
        The scan in its own coordinates.
    scan_id : str
        To be named in errors.
    parameters : AcceptanceParameters

    Raises
    ------
    LandmarkProblem
        They are another scan's, or left and right are exchanged.
    """
    landmarks = landmarks.on_skin
    found = target.surface.closest(landmarks.points)
    worst = int(found.distances.argmax())
    if found.distances[worst] > parameters.landmark_refused:
        distance = float(found.distances[worst])
        raise LandmarkProblem(
            "landmark {name:landmark} lies {distance:.0f} mm off the scan's surface",
            "These look like the landmarks of another scan, or of another unit or frame",
            scan_id,
            code="unusable-landmarks/off-scan",
            name=landmarks.names[worst],
            distance=distance,
        )
    _require_sides(landmarks, target.normals_at(found).sum(axis=0), scan_id)
    warnings = [
        warning(
            "landmark-moved",
            "landmark {name:landmark} lies {distance:.0f} mm off the surface; moved onto it",
            name=name,
            distance=float(distance),
        )
        for name, distance in zip(landmarks.names, found.distances, strict=True)
        if distance > parameters.landmark_moved
    ]
    return replace(landmarks, points=found.points), warnings


def judge_landmarks(landmarks: Landmarks) -> list[Finding]:
    """Warnings of landmarks that contradict each other; they are given upright, as the template sees them."""
    return [
        warning(
            "pole-above-nipple",
            "landmark {pole:landmark} lies above {nipple:landmark}, yet it is the lowest point of "
            "the breast; are the two exchanged?",
            pole=f"lower_pole_{side}",
            nipple=f"nipple_{side}",
        )
        for side in landmarks.nipple_sides
        if f"lower_pole_{side}" in landmarks
        and landmarks[f"lower_pole_{side}"][1] > landmarks[f"nipple_{side}"][1]
    ]


def judge_thorax(gap: float, scan_id: str, parameters: AcceptanceParameters) -> list[Finding]:
    """Warnings of a rigid alignment that leaves the thorax ``gap`` mm from the scan (NaN: nothing faces it).

    Raises
    ------
    MeshProblem
        The scan is no torso.
    """
    if not gap < parameters.thorax_refused:
        how = f"it stays {gap:.0f} mm away" if np.isfinite(gap) else "no part of it faces the scan"
        raise MeshProblem(
            "the template does not find the thorax ({how})",
            "This does not look like a torso seen from the front, or the landmarks are not its own",
            scan_id,
            how=how,
        )
    return (
        [
            warning(
                "unusual-thorax",
                "unusual thorax: {gap:.0f} mm from the template after rigid alignment",
                gap=gap,
            )
        ]
        if gap > parameters.thorax_unusual
        else []
    )


def judge_result(
    metrics: Mapping[str, float], fitted: bool, scan_id: str, parameters: AcceptanceParameters
) -> list[Finding]:
    """Warnings of a finished registration.

    Parameters
    ----------
    metrics : mapping
        See :class:`breastmorph.registration.result.Registration`.
    fitted : bool
        Whether the template was to end on the scan, so that its last distance means something.
    scan_id : str
        To be named in errors.
    parameters : AcceptanceParameters

    Raises
    ------
    MeshProblem
        The scan shows too little.
    """
    share = metrics["overlap"]
    if share < parameters.overlap_refused:
        raise MeshProblem(
            "only {share:.0f} % of the template finds the scan's surface",
            "The scan shows too little of the chest, or the landmarks are not its own",
            scan_id,
            share=100 * share,
        )
    warnings = []
    if share < parameters.overlap_poor:
        warnings.append(
            warning(
                "poor-overlap",
                "poor overlap: {share:.0f} % of the template finds the scan",
                share=100 * share,
            )
        )
    if fitted and metrics["distance_inside"] > parameters.breast_off:
        warnings.append(
            warning(
                "breasts-off",
                "breasts end {distance:.1f} mm from the scan on average",
                distance=metrics["distance_inside"],
            )
        )
    for side in SIDES:
        residual = metrics.get(f"residual_nipple_{side}", 0.0)
        if fitted and residual > parameters.nipple_off:
            warnings.append(
                warning(
                    "nipple-off",
                    "landmark {name:landmark} ends {distance:.1f} mm off",
                    name=f"nipple_{side}",
                    distance=residual,
                )
            )
    if metrics["flipped_percent"] > parameters.folded:
        warnings.append(
            warning("folded", "folded triangles: {percent:.2f} %", percent=metrics["flipped_percent"])
        )
    if metrics["angle_distortion"] > parameters.distorted:
        warnings.append(
            warning(
                "distorted",
                "strong distortion: angles change by {degrees:.0f} degrees on average; are these the "
                "landmarks of this scan?",
                degrees=metrics["angle_distortion"],
            )
        )
    return warnings


def judge_breasts(shares: Mapping[str, float], parameters: AcceptanceParameters) -> list[Finding]:
    """Warnings of breasts that the scan hardly shows: the figures of a result speak only of what is there.

    Parameters
    ----------
    shares : mapping from side to float
        Share of the breast's points that found the scan.
    parameters : AcceptanceParameters
    """
    return [
        warning(
            "breast-not-seen",
            "only {share:.0f} % of the {side} breast is in the scan; the rest of it is a guess",
            share=100 * share,
            side=side,
        )
        for side, share in shares.items()
        if share < parameters.breast_overlap
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
