"""Landmarks that nobody set: where the template puts them once it lies on those that are set.

The mask and the rigid stage are built on xiphoid and poles. Where they are not set, the template is laid on the upright
scan by what is set and slides onto it; its own xiphoid and poles then tell where theirs are. They are good for saying
where the breast is, not for pulling anything: the warp itself put them there.
"""

from __future__ import annotations

import numpy as np

from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import Floats
from breastmorph.registration.parameters import RigidParameters
from breastmorph.registration.prepared import PreparedTemplate
from breastmorph.registration.rigid import RigidPart, align_by_sliding
from breastmorph.registration.target import Target
from breastmorph.registration.warp import slide_onto
from breastmorph.scan.anatomy import require_enough
from breastmorph.scan.landmarks import STERNUM, Landmarks

_SOFT = 0.3  # weight of the nipples beside bone, for the first guess of the size


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
    template, coarse = prepared.template.landmarks, prepared.coarse
    held = [name for name in STERNUM if name in landmarks]
    part = RigidPart(
        target,
        coarse.mesh,
        coarse.mask,
        lambda _, points: prepared.mask.at(points),
        (template.array(held), landmarks.array(held)),
    )
    transform, _ = align_by_sliding(part, _upright_start(template, landmarks), RigidParameters())
    warped, _ = slide_onto(
        target.seen_through(transform),
        prepared.fine.mesh.vertices,
        coarse.mesh,
        prepared.sliding_basis,
        prepared.fine.landmark_ids,
        landmarks.transformed(transform.inverse()),
    )
    guesses = transform.apply(warped[[prepared.fine.landmark_ids[name] for name in wanted]])
    for point, name in zip(guesses, wanted, strict=True):
        if name.startswith("lateral_pole"):  # by definition at the height of the nipple
            point[1] = landmarks[name.replace("lateral_pole", "nipple")][1]
    found = target.surface.closest(guesses).points
    return Landmarks((*landmarks.names, *wanted), np.vstack([landmarks.points, found]))


def _upright_start(template: Landmarks, landmarks: Landmarks) -> Similarity:
    """Size and place by the landmarks. The turn is none, both being upright: few landmarks would tell it worse."""
    shared = template.only(landmarks.names)
    weights = np.array([_SOFT if name.startswith("nipple") else 1.0 for name in shared])
    source, goal = (_centred(points, weights) for points in (shared.points, landmarks.array(shared)))
    scale = float((weights[:, None] * source * goal).sum() / (weights[:, None] * source**2).sum())
    return Similarity(np.eye(3), landmarks["sternal_notch"] - scale * template["sternal_notch"], scale)


def _centred(points: Floats, weights: Floats) -> Floats:
    return points - np.average(points, axis=0, weights=weights)
