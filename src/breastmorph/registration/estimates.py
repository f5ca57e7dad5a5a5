"""Landmarks that are not set: where the template puts them once it lies on those that are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from breastmorph.foundation.arrays import Floats
from breastmorph.mesh.geometry import Similarity
from breastmorph.registration.prepared import PreparedTemplate
from breastmorph.registration.rigid import RigidPart, align_by_sliding
from breastmorph.registration.target import Target
from breastmorph.scan.anatomy import require_enough
from breastmorph.scan.scan import STERNUM, Landmarks


def with_estimates(prepared: PreparedTemplate, target: Target, landmarks: Landmarks) -> Landmarks:
    """A scan's landmarks and, after them, estimates of those that are not set; the same where all are.

    Parameters
    ----------
    prepared : PreparedTemplate
    target : Target
        The upright scan in its own coordinates.
    landmarks : Landmarks
        Sternal notch and at least one nipple.
    """
    wanted = [name for name in landmarks.unset if name in prepared.template.landmark_ids]
    if not wanted:
        return landmarks
    require_enough(landmarks)
    template, coarse, parameters = prepared.template.landmarks, prepared.coarse, prepared.parameters.estimates
    sternum = [name for name in STERNUM if name in landmarks]
    part = RigidPart(
        target,
        coarse.mesh,
        coarse.mask,
        lambda _, points: prepared.mask.at(points),
        template.array(sternum),
        landmarks.only(sternum),
    )
    start = _upright_start(template, landmarks, parameters.nipple_weight)
    transform, _ = align_by_sliding(part, start, parameters.rigid)
    warped, _ = prepared.warp_onto(
        target.seen_through(transform),
        (prepared.fine.mesh, coarse.mesh),
        landmarks.transformed(transform.inverse()),
        transform.scale,
    )
    guesses = transform.apply(warped[[prepared.fine.landmark_ids[name] for name in wanted]])
    for point, name in zip(guesses, wanted, strict=True):
        if name.startswith("lateral_pole"):  # by definition at the height of the nipple
            point[1] = landmarks[name.replace("lateral_pole", "nipple")][1]
    found = target.surface.closest(guesses).points
    return replace(landmarks, names=(*landmarks.names, *wanted), points=np.vstack([landmarks.points, found]))


def _upright_start(template: Landmarks, landmarks: Landmarks, nipple_weight: float) -> Similarity:
    """Size and place by the landmarks. The turn is none, both being upright: few landmarks give it worse."""
    shared = template.only(landmarks.names)
    weights = np.array([nipple_weight if name.startswith("nipple") else 1.0 for name in shared])

    def centred(points: Floats) -> Floats:
        return points - np.average(points, axis=0, weights=weights)

    source, goal = centred(shared.points), centred(landmarks.array(shared))
    scale = float((weights[:, None] * source * goal).sum() / (weights[:, None] * source**2).sum())
    return Similarity(np.eye(3), landmarks["sternal_notch"] - scale * template["sternal_notch"], scale)
