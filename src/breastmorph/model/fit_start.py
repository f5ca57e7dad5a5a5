"""Where a fit starts: by landmarks, or without them by trying poses all around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from breastmorph.errors import LandmarkProblem
from breastmorph.mesh.similarity import Similarity
from breastmorph.mesh.triangle_mesh import MIRROR, Floats
from breastmorph.model.landmark_frame import axis_rotations
from breastmorph.model.matching import Sites, TargetPoints
from breastmorph.model.pose_and_shape import Prior, State, cost, improve
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.landmarks import STERNUM, Landmarks

_SPREAD = 10.0  # mm that landmarks must extend across their longest line
_MIRRORED = (
    0.8  # residual of the mirrored landmarks over that of the given ones below which sides are swapped
)
_TURNS = 96  # poses tried besides the 24 along the axes
_APART = 25.0  # mm between poses that are worth going on with
# Widths (mm) of the robust function in each round, and how many poses go on to the next.
_ROUNDS = (((80.0, 60.0, 45.0), 60), ((45.0, 35.0, 27.0, 20.0), 30), ((20.0, 20.0, 15.0, 15.0), 30))


def shared_landmarks(model: ShapeModel, landmarks: Landmarks) -> tuple[str, ...]:
    """Names that model and target share.

    Raises
    ------
    LandmarkProblem
        They are too few or on one line, or left and right are swapped.
    """
    names = tuple(name for name in landmarks if name in model.landmark_ids)
    known = ", ".join(model.landmark_ids) or "none"
    if len(names) < 3:
        raise LandmarkProblem(
            f"model and target share only {len(names)} landmarks; a pose needs three",
            f"The model knows {known}; --landmark-ids adds more. Or leave the landmarks out",
            code="missing-landmarks",
        )
    source = model.mean[[model.landmark_ids[name] for name in names]]
    places = landmarks.array(names)
    if not np.isfinite(places).all():
        raise LandmarkProblem("a landmark is not finite", "Remove it or place it again")
    across = np.linalg.svd(places - places.mean(axis=0), compute_uv=False)[1]
    if across < _SPREAD:
        raise LandmarkProblem("the landmarks lie on one line", "Give one that lies beside it")
    mirrored = source * MIRROR
    # Fewer than five lie so nearly in one plane that their mirror image fits as well.
    if len(names) >= 5 and _residual(mirrored, places) < _MIRRORED * _residual(source, places):
        raise LandmarkProblem(
            "the landmarks fit the model's mirror image better: sides swapped or file mirrored",
            "Check the names of the left and right landmarks (sides are the patient's); if all are right, export "
            "the file again without mirroring",
            code="sides-swapped",
        )
    return names


def _residual(source: Floats, places: Floats) -> float:
    transform = Similarity.fit(source, places)
    return float(np.linalg.norm(transform.apply(source) - places)) / transform.scale


def pose_by_landmarks(
    model: ShapeModel, landmarks: Landmarks, names: tuple[str, ...], *, with_scale: bool = True
) -> Similarity:
    """Best transform of the mean shape onto landmarks; bone counts more than soft tissue."""
    ids = [model.landmark_ids[name] for name in names]
    weights = np.array([3.0 if name in STERNUM else 1.0 for name in names])
    return Similarity.fit(model.mean[ids], landmarks.array(names), weights, with_scale=with_scale)


def poses_all_around(prior: Prior, sites: Sites, target: TargetPoints, kept: int) -> list[State]:
    """The most promising poses of the mean shape, best first; quick, and without any shape.

    Parameters
    ----------
    sites : Sites
        Some hundred.
    target : TargetPoints
        Some hundred.
    kept : int
        At most so many poses, all clearly different.
    """
    rigid = replace(prior, deviations=prior.deviations[:0], log_scale_deviation=0.0)
    middle = np.median(target.points, axis=0)
    states = []
    for rotation in _rotations():
        start = Similarity(rotation, middle - rotation @ prior.centre)
        states.append(State(start, prior.deviations[:0]))
    for widths, survivors in _ROUNDS:
        judged = []
        for state in states:
            for width in widths:
                state, evidence, _ = improve(state, rigid, sites, target, None, width, width**2)
            judged.append((cost(evidence, widths[-1]), state))
        states = [state for _, state in distinct(judged, sites.mean, _APART)[: min(survivors, kept * 6)]]
    return [State(state.transform, np.zeros(len(prior.deviations))) for state in states[:kept]]


def distinct(
    judged: Sequence[tuple[float, State]], points: Floats, apart: float
) -> list[tuple[float, State]]:
    """Poses sorted by their cost, without those that lie near a better one.

    Parameters
    ----------
    points : (s, 3) float
        Of the mean shape; what counts is how far they are carried.
    apart : float
        Mean distance of the carried points, mm, from which poses are different.
    """
    probe = points[:: max(len(points) // 60, 1)]
    kept: list[tuple[float, State]] = []
    places: list[Floats] = []
    for value, state in sorted(judged, key=lambda one: one[0]):
        place = state.transform.apply(probe)
        if all(np.linalg.norm(place - other, axis=1).mean() > apart for other in places):
            kept.append((value, state))
            places.append(place)
    return kept


def _rotations() -> list[Floats]:
    """The 24 rotations along the axes (files are often so), and others spread evenly over all rotations."""
    return axis_rotations() + [_rotation(quaternion) for quaternion in _spread_quaternions(_TURNS)]


def _spread_quaternions(count: int) -> Floats:
    """Super-Fibonacci spirals (Alexa 2022): an even cover of the rotations, (count, 4)."""
    phi, psi = np.sqrt(2.0), 1.533751168755204288118041
    s = np.arange(count) + 0.5
    inner, outer = np.sqrt(s / count), np.sqrt(1.0 - s / count)
    alpha, beta = 2.0 * np.pi * s / phi, 2.0 * np.pi * s / psi
    return np.column_stack(
        [inner * np.sin(alpha), inner * np.cos(alpha), outer * np.sin(beta), outer * np.cos(beta)]
    )


def _rotation(quaternion: Floats) -> Floats:
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_quat(quaternion).as_matrix())
