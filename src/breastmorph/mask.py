"""Breast probability masks: how likely each point of a torso belongs to a breast (paper section 3.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import LandmarkProblem, MeshProblem
from breastmorph.mesh.closest import Geodesics, near_lines
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import SIDES, STERNUM, Landmarks

IN_BREAST = 0.2  # the paper's threshold: a mask above it means breast

# Where a tape measure from the nipple ends, and how much longer than the straight line it usually is at most.
_ENDS = (("lateral_pole_{}", 1.45), ("xiphoid", 1.1), ("lower_pole_{}", 1.35), ("sternal_notch", 1.03))
_WIDER = (1.0, 1.3, np.inf)  # times that, tried in turn
_BLOCK = 2**14  # points at once: they stay in the processor's cache
_UPPER_SHIFT = 1.0 / 5.0  # of the way nipple - sternal notch, t in the paper


@dataclass(frozen=True)
class BreastEllipsoids:
    """The two Gaussian ellipsoids of one breast: around the nipple and above it.

    Attributes
    ----------
    centres : (2, 3) float
        The nipple n and n + t.
    semi_axes : (2, 3) float
        a and a^ along x, y and z.
    """

    centres: Floats
    semi_axes: Floats

    def probability(self, points: Floats) -> Floats:
        """This breast's part of the mask at points (k, 3): a quarter of the sum of both ellipsoids, (k,)."""
        both = np.zeros(len(points))
        for start in range(0, len(points), _BLOCK):
            here = slice(start, start + _BLOCK)
            for centre, semi_axes in zip(self.centres, self.semi_axes, strict=True):
                x, y, z = ((points[here] - centre) / semi_axes).T
                both[here] += np.exp(-(x * x + y * y + z * z))
        return 0.25 * both

    def mirrored(self, middle: float) -> BreastEllipsoids:
        """The other breast's ellipsoids, mirrored across the plane x = middle."""
        centres = self.centres.copy()
        centres[:, 0] = 2.0 * middle - centres[:, 0]
        return BreastEllipsoids(centres, self.semi_axes)


@dataclass(frozen=True, eq=False)
class BreastMask:
    """A mask in closed form, to be asked at any point.

    Attributes
    ----------
    sides : mapping from "left", "right" to BreastEllipsoids
    mirrored_side : str
        The side that is absent on the scan and was mirrored from the other, or empty.
    """

    sides: Mapping[str, BreastEllipsoids]
    mirrored_side: str = ""

    def at(self, points: Floats, side: str | None = None) -> Floats:
        """Probability at points (k, 3) of one side or of both together, (k,), in (0, 1]."""
        if side is not None:
            return self.sides[side].probability(points)
        return sum((part.probability(points) for part in self.sides.values()), np.zeros(len(points)))

    def breasts_at(self, points: Floats) -> dict[str, Bools]:
        """Which points (k, 3) belong to which breast, (k,) by side."""
        left, right = (self.at(points, side) for side in SIDES)
        inside = self.at(points) > IN_BREAST
        return dict(zip(SIDES, (inside & (left >= right), inside & (right >= left)), strict=True))


@dataclass(frozen=True, eq=False)
class BreastLengths:
    """Tape measures of a torso from which its mask is made; they do not depend on the pose.

    Attributes
    ----------
    sides : mapping from side to (4,) float
        Geodesic lengths from the nipple to the lateral pole, the xiphoid, the lower pole and the sternal notch.
    """

    sides: Mapping[str, Floats]

    def scaled(self, factor: float) -> BreastLengths:
        """The lengths in another unit."""
        return BreastLengths({side: factor * lengths for side, lengths in self.sides.items()})

    def mask(self, landmarks: Landmarks) -> BreastMask:
        """The mask of a torso whose (upright) landmarks are at these places."""
        found = {side: _ellipsoids(landmarks[f"nipple_{side}"], self.sides[side]) for side in self.sides}
        absent = [side for side in SIDES if side not in found]
        if absent:
            middle = landmarks.array(STERNUM).mean(axis=0)[0]
            found[absent[0]] = next(iter(found.values())).mirrored(middle)
        return BreastMask(
            MappingProxyType({side: found[side] for side in SIDES}), absent[0] if absent else ""
        )


def measure_breasts(
    mesh: TriangleMesh, landmarks: Landmarks, thin: Callable[[TriangleMesh], TriangleMesh] | None = None
) -> BreastLengths:
    """Measure the mask's lengths on a torso in any pose and unit.

    Parameters
    ----------
    mesh : TriangleMesh
    landmarks : Landmarks
        Sternal notch, xiphoid and at least one complete side.
    thin : function from mesh to mesh, optional
        Makes the part that is looked at less dense.

    Raises
    ------
    LandmarkProblem
        When the sternum or both sides are incomplete, or landmarks coincide.
    """
    missing = [name for name in STERNUM if name not in landmarks]
    sides = landmarks.complete_sides
    if missing:
        raise LandmarkProblem.of("unusable-landmarks/mask", names=missing)
    if not sides:
        raise LandmarkProblem.of("unusable-landmarks/mask-none")
    ends = [(side, name.format(side), detour) for side in sides for name, detour in _ENDS]
    lengths = _tape_lengths(
        mesh,
        landmarks.array(f"nipple_{side}" for side, _, _ in ends),
        landmarks.array(name for _, name, _ in ends),
        np.array([detour for _, _, detour in ends]),
        thin or (lambda part: part),
    )
    for (side, name, _), length in zip(ends, lengths, strict=True):
        if not length > 0:
            raise LandmarkProblem.of("unusable-landmarks/coincide", nipple=f"nipple_{side}", name=name)
    return BreastLengths(
        MappingProxyType(dict(zip(sides, lengths.reshape(len(sides), len(_ENDS)), strict=True)))
    )


def _tape_lengths(
    mesh: TriangleMesh,
    starts: Floats,
    ends: Floats,
    detours: Floats,
    thin: Callable[[TriangleMesh], TriangleMesh],
) -> Floats:
    """Geodesic lengths between pairs of points, (k,).

    They are looked for near the straight lines first, and again further round where the line found is longer than that.
    """
    straight = np.linalg.norm(ends - starts, axis=1)
    lengths = np.full(len(ends), np.inf)
    open_pairs = np.arange(len(ends))
    for wider in _WIDER:
        limits = wider * detours * straight
        a, b = starts[open_pairs], ends[open_pairs]
        part = mesh if np.isinf(wider) else near_lines(mesh, a, b, limits[open_pairs])
        # The lines share their nipples.
        points, found_at = np.unique(np.vstack([a, b]), axis=0, return_inverse=True)
        from_id, to_id = found_at.reshape(2, -1).tolist()
        try:
            geodesics = Geodesics(thin(part), points)
            found = np.array([geodesics.distance(*pair) for pair in zip(from_id, to_id, strict=True)])
        except MeshProblem:  # a hole cuts the way: look further round
            if np.isinf(wider):
                raise
            continue
        lengths[open_pairs] = found
        open_pairs = open_pairs[found > limits[open_pairs]]
        if not len(open_pairs):
            break
    return lengths


def _ellipsoids(nipple: Floats, lengths: Floats) -> BreastEllipsoids:
    lateral, medial, lower, upper = lengths
    width = 0.5 * (lateral + medial)
    semi_axes = np.array([[width, 0.5 * lower, 0.5 * lateral], [width, 0.5 * upper, 0.5 * lateral]])
    return BreastEllipsoids(np.stack([nipple, nipple + [0.0, _UPPER_SHIFT * upper, 0.0]]), semi_axes)


def breast_mask(mesh: TriangleMesh, landmarks: Landmarks, side: str | None = None) -> Floats:
    """Probability of belonging to a breast at every vertex, (n,).

    Parameters
    ----------
    mesh : TriangleMesh
        Upright: x to the patient's left, y up, z forward; the unit does not matter.
    landmarks : Landmarks
        Where one side is absent, its mask is the other's mirror image across the sternum.
    side : {"left", "right"}, optional
        One breast only; default both together.
    """
    return measure_breasts(mesh, landmarks).mask(landmarks).at(mesh.vertices, side)
