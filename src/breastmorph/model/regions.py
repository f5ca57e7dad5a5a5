"""The breast region of each side: which vertices of an upright torso belong to the breast and its close surroundings.

The region is the breast mask above a level, cut at the midline of the sternum and a little below the lower pole.
It is found once on a template or on a model's mean; all shapes in correspondence share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import LandmarkProblem
from breastmorph.mask import BreastMask, measure_breasts
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.topology import edge_table
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import SIDES, SIGN, STERNUM, Landmarks, other_side

_XIPHOID_HEIGHT = 0.75  # of the way down from the sternal notch to the lower poles, where no xiphoid is given
_LATERAL_POLE = 0.94  # of the distance from nipple to xiphoid, where no lateral pole is given


@dataclass(frozen=True)
class RegionParameters:
    """How far a breast region reaches."""

    level: float = 0.05  # of one side's mask, which peaks at about 0.46
    midline: float = 6.0  # mm the region stays away from the middle of the sternum
    below: float = 8.0  # mm it may reach below the level of the lower pole
    rounding: float = 6.0  # mm: radius of the corners where these limits meet


def breast_regions(
    mesh: TriangleMesh, landmarks: Landmarks, parameters: RegionParameters | None = None
) -> Mapping[str, Bools]:
    """The breast region of each side.

    Parameters
    ----------
    mesh : TriangleMesh
        A template or a model's mean: upright (x to the patient's left, y up, z forward), in mm.
    landmarks : Landmarks
        Sternal notch and at least one side's nipple and lower pole. Xiphoid and lateral poles make the region
        better; without them they are estimated. A side without landmarks takes the other's mirror image.
    parameters : RegionParameters, optional

    Returns
    -------
    mapping from side to (n,) bool
        Both sides. Each is one connected piece without holes; the two do not overlap.

    Raises
    ------
    LandmarkProblem
        When the landmarks do not say where a breast is.
    """
    return Footprint.of(mesh, landmarks).regions(parameters)


@dataclass(frozen=True, eq=False)
class Footprint:
    """Where the breasts are on a mesh: prepared once, asked for regions of any reach.

    Attributes
    ----------
    mesh : TriangleMesh
    landmarks : Landmarks
        Completed by estimates where some were missing.
    mask : BreastMask
    """

    mesh: TriangleMesh
    landmarks: Landmarks
    mask: BreastMask

    @classmethod
    def of(cls, mesh: TriangleMesh, landmarks: Landmarks) -> Footprint:
        """Measure a mesh; see :func:`breast_regions`."""
        completed = completed_landmarks(mesh, landmarks)
        return cls(mesh, completed, measure_breasts(mesh, completed).mask(completed))

    def regions(self, parameters: RegionParameters | None = None) -> Mapping[str, Bools]:
        """The region of each side, (n,) bool by side; see :func:`breast_regions`."""
        p = parameters or RegionParameters()
        return MappingProxyType({side: _one_piece(self.mesh, self.inside(side, p)) for side in SIDES})

    def inside(self, side: str, parameters: RegionParameters) -> Floats:
        """About the distance of every vertex from the region's border in mm, positive inside, (n,)."""
        p = parameters
        x, y = self.mesh.vertices[:, 0], self.mesh.vertices[:, 1]
        notch, xiphoid = self.landmarks.array(STERNUM)
        along = np.clip((notch[1] - y) / (notch[1] - xiphoid[1]), -0.5, 1.5)
        middle = notch[0] + along * (xiphoid[0] - notch[0])
        # Where the mask exp(-r^2) is low, r is about 1.5 semi-axes and it falls by 3 log units per semi-axis.
        to_mm = self.mask.sides[side].semi_axes[0].mean() / 3.0
        probability = np.maximum(self.mask.at(self.mesh.vertices, side), 1e-12)
        limits = np.stack(
            [
                to_mm * np.log(probability / p.level),
                SIGN[side] * (x - middle) - p.midline,
                y - (self.of_side("lower_pole", side)[1] - p.below),
            ]
        )
        return _rounded_minimum(limits, p.rounding)

    def of_side(self, part: str, side: str) -> Floats:
        """A breast's landmark, (3,); that of the other breast mirrored across the sternum where the side has none."""
        if f"{part}_{side}" in self.landmarks:
            return self.landmarks[f"{part}_{side}"]
        point = self.landmarks[f"{part}_{other_side(side)}"].copy()
        point[0] = 2.0 * self.landmarks.array(STERNUM)[:, 0].mean() - point[0]
        return point


def completed_landmarks(mesh: TriangleMesh, landmarks: Landmarks) -> Landmarks:
    """Add what a model with few landmarks lacks (xiphoid, lateral poles), where it usually lies on an upright mesh.

    Raises
    ------
    LandmarkProblem
        Without the sternal notch, or without a side that has nipple and lower pole.
    """
    sides = [side for side in SIDES if f"nipple_{side}" in landmarks and f"lower_pole_{side}" in landmarks]
    if "sternal_notch" not in landmarks or not sides:
        raise LandmarkProblem(
            "the landmarks do not say where the breasts are",
            "Give at least the sternal notch, and nipple and lower pole of one side",
        )
    points = dict(landmarks)
    if "xiphoid" not in landmarks:
        points["xiphoid"] = _usual_xiphoid(mesh, landmarks, sides)
    for side in sides:
        if f"lateral_pole_{side}" not in landmarks:
            points[f"lateral_pole_{side}"] = _usual_lateral_pole(
                mesh, points[f"nipple_{side}"], points["xiphoid"], side
            )
    return Landmarks.of(points)


def _usual_xiphoid(mesh: TriangleMesh, landmarks: Landmarks, sides: list[str]) -> Floats:
    """The point of the front of the chest where a xiphoid usually lies, (3,)."""
    notch = landmarks["sternal_notch"]
    nipples, poles = (
        landmarks.array(f"{part}_{side}" for side in sides) for part in ("nipple", "lower_pole")
    )
    across = nipples[:, 0].mean() if len(sides) == len(SIDES) else notch[0]
    height = notch[1] + _XIPHOID_HEIGHT * (poles[:, 1].mean() - notch[1])
    front = float(mesh.vertices[:, 2].max()) + 1.0
    origin = np.array([[0.5 * (notch[0] + across), height, front]])
    face, distance, _ = Surface(mesh).first_hit(origin, np.array([[0.0, 0.0, -1.0]]))
    if face[0] < 0:
        raise LandmarkProblem(
            "no surface where the xiphoid should be", "Give the landmark xiphoid, and an upright mesh in mm"
        )
    return origin[0] - [0.0, 0.0, float(distance[0])]


def _usual_lateral_pole(mesh: TriangleMesh, nipple: Floats, xiphoid: Floats, side: str) -> Floats:
    """The point at the nipple's height on the side of the chest, nearly as far from the nipple as the xiphoid, (3,)."""
    offset = mesh.vertices - nipple
    far = _LATERAL_POLE * np.linalg.norm(xiphoid - nipple)
    at_side = SIGN[side] * (mesh.vertices[:, 0] - xiphoid[0]) > 0.7 * SIGN[side] * (nipple[0] - xiphoid[0])
    off = np.hypot(offset[:, 1], np.linalg.norm(offset, axis=1) - far)
    return mesh.vertices[np.where(at_side & (offset[:, 2] < 0.0), off, np.inf).argmin()]


def _rounded_minimum(values: Floats, radius: float) -> Floats:
    """The smallest of (k, n) values with rounded corners, (n,)."""
    low = values.min(axis=0)
    return low - radius * np.log(np.exp(-(values - low) / radius).sum(axis=0))


def _one_piece(mesh: TriangleMesh, function: Floats) -> Bools:
    """The largest piece of {function > 0}, its holes filled, (n,)."""
    inside: Bools = _largest(mesh, function > 0)
    if not inside.any():
        raise LandmarkProblem(
            "a breast region is empty", "Check that the landmarks belong to this mesh, upright and in mm"
        )
    return ~_largest(mesh, ~inside)


def _largest(mesh: TriangleMesh, chosen: Bools) -> Bools:
    edges = edge_table(mesh.faces).edges
    edges = edges[chosen[edges].all(axis=1)]
    graph = coo_matrix((np.ones(len(edges)), edges.T), shape=(mesh.n_vertices, mesh.n_vertices))
    piece = connected_components(graph, directed=False)[1]
    sizes = np.bincount(piece[chosen], minlength=1)
    return chosen & (piece == sizes.argmax())
