"""Where the breast is: probability masks (paper section 3.1), and the region of each side.

The region of a side is the mask above a level, cut at the midline of the sternum and a little below the lower pole.
It is found once on a template or on a model's mean; all shapes in correspondence share it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.checks import check_choice, check_type
from breastmorph.foundation.errors import LandmarkProblem, MeshProblem
from breastmorph.mesh.closest import Geodesics, Surface, near_lines
from breastmorph.mesh.topology import edge_table
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import SIDES, SIGN, STERNUM, Landmarks, other_side

IN_BREAST = 0.2  # the paper's threshold: a mask above it means breast

_ENDS = ("lateral_pole_{}", "xiphoid", "lower_pole_{}", "sternal_notch")  # of a tape measure from the nipple
_BLOCK = 2**14  # points at once: they stay in the processor's cache


@dataclass(frozen=True)
class MaskParameters:
    """How a torso is measured for its mask (paper section 3.1)."""

    upper_shift: float = 1.0 / 5.0  # t: centre of the upper ellipsoid, of the way nipple - sternal notch
    # Lengths over the skin to lateral pole, xiphoid, lower pole and notch: times the straight line, usually at most.
    detours: tuple[float, float, float, float] = (1.45, 1.1, 1.35, 1.03)
    wider: tuple[float, ...] = (1.0, 1.3)  # times that are looked at in turn, before the whole mesh


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
    parameters : MaskParameters
    """

    sides: Mapping[str, Floats]
    parameters: MaskParameters

    def scaled(self, factor: float) -> BreastLengths:
        """The lengths in another unit."""
        return replace(self, sides={side: factor * lengths for side, lengths in self.sides.items()})

    def mask(self, landmarks: Landmarks) -> BreastMask:
        """The mask of a torso whose (upright) landmarks are at these places."""
        shift = self.parameters.upper_shift
        found = {
            side: _ellipsoids(landmarks[f"nipple_{side}"], lengths, shift)
            for side, lengths in self.sides.items()
        }
        absent = [side for side in SIDES if side not in found]
        if absent:
            middle = landmarks.array(STERNUM).mean(axis=0)[0]
            found[absent[0]] = next(iter(found.values())).mirrored(middle)
        return BreastMask(
            MappingProxyType({side: found[side] for side in SIDES}), absent[0] if absent else ""
        )


def measure_breasts(
    mesh: TriangleMesh,
    landmarks: Landmarks,
    thin: Callable[[TriangleMesh], TriangleMesh] | None = None,
    parameters: MaskParameters | None = None,
) -> BreastLengths:
    """Measure the mask's lengths on a torso in any pose and unit.

    Parameters
    ----------
    mesh : TriangleMesh
    landmarks : Landmarks
        Sternal notch, xiphoid and at least one complete side.
    thin : function from mesh to mesh, optional
        Makes the part that is looked at less dense.
    parameters : MaskParameters, optional

    Raises
    ------
    LandmarkProblem
        When the sternum or both sides are incomplete, or landmarks coincide.
    """
    parameters = parameters or MaskParameters()
    missing = [name for name in STERNUM if name not in landmarks]
    sides = landmarks.complete_sides
    if missing:
        raise LandmarkProblem(
            "the mask needs {names:landmark| and }",
            "Annotate sternal notch, xiphoid and nipple, lower pole, lateral pole of at least one side",
            code="unusable-landmarks/mask",
            names=missing,
        )
    if not sides:
        raise LandmarkProblem(
            "the mask needs one breast's nipple and poles",
            "Annotate sternal notch, xiphoid and nipple, lower pole, lateral pole of at least one side",
            code="unusable-landmarks/mask-none",
        )
    ends = [(side, name.format(side)) for side in sides for name in _ENDS]
    lengths = _tape_lengths(
        mesh,
        landmarks.array(f"nipple_{side}" for side, _ in ends),
        landmarks.array(name for _, name in ends),
        np.array(parameters.detours * len(sides)),
        (*parameters.wider, np.inf),
        thin or (lambda part: part),
    )
    for (side, name), length in zip(ends, lengths, strict=True):
        if not length > 0:
            raise LandmarkProblem(
                "{nipple:landmark} coincides with {name:landmark}",
                "Check the nipple and the poles of that side",
                code="unusable-landmarks/coincide",
                nipple=f"nipple_{side}",
                name=name,
            )
    return BreastLengths(
        MappingProxyType(dict(zip(sides, lengths.reshape(len(sides), len(_ENDS)), strict=True))), parameters
    )


def _tape_lengths(
    mesh: TriangleMesh,
    starts: Floats,
    ends: Floats,
    detours: Floats,
    reaches: Sequence[float],
    thin: Callable[[TriangleMesh], TriangleMesh],
) -> Floats:
    """Geodesic lengths between pairs of points, (k,).

    They are looked for near the straight lines first, and again further round where the line found is longer than that.
    """
    straight = np.linalg.norm(ends - starts, axis=1)
    lengths = np.full(len(ends), np.inf)
    open_pairs = np.arange(len(ends))
    for wider in reaches:
        limits = wider * detours * straight
        a, b = starts[open_pairs], ends[open_pairs]
        part = mesh if np.isinf(wider) else near_lines(mesh, a, b, limits[open_pairs])
        # The lines share their nipples.
        points, found_at = np.unique(np.vstack([a, b]), axis=0, return_inverse=True)
        from_id, to_id = found_at.reshape(2, -1).tolist()
        try:
            geodesics = Geodesics(thin(part), points)
            found = np.array([geodesics.distance(*pair) for pair in zip(from_id, to_id, strict=True)])
        except MeshProblem:  # a hole cuts the path: look further round
            if np.isinf(wider):
                raise
            continue
        lengths[open_pairs] = found
        open_pairs = open_pairs[found > limits[open_pairs]]
        if not len(open_pairs):
            break
    return lengths


def _ellipsoids(nipple: Floats, lengths: Floats, upper_shift: float) -> BreastEllipsoids:
    lateral, medial, lower, upper = lengths
    width = 0.5 * (lateral + medial)
    semi_axes = np.array([[width, 0.5 * lower, 0.5 * lateral], [width, 0.5 * upper, 0.5 * lateral]])
    return BreastEllipsoids(np.stack([nipple, nipple + [0.0, upper_shift * upper, 0.0]]), semi_axes)


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

    Returns
    -------
    (n,) float
        From 0 to 1.

    Examples
    --------
    >>> mask = bm.breast_mask(scan.mesh, scan.landmarks)
    >>> mask.shape == (scan.mesh.n_vertices,), bool(mask.max() > 0.0)
    (True, True)
    """
    check_type(mesh, TriangleMesh, "the mesh", "Give a TriangleMesh, as the .mesh of a scan")
    check_type(landmarks, Landmarks, "what was given for landmarks", "Give Landmarks, as those of a scan")
    if side is not None:
        check_choice(side, SIDES, "the side")
    return measure_breasts(mesh, landmarks).mask(landmarks).at(mesh.vertices, side)


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


@dataclass(frozen=True)
class CompletionParameters:
    """Where landmarks usually lie that a model with few of them lacks."""

    xiphoid_height: float = 0.75  # so much of the way down from notch to lower poles lies a xiphoid
    lateral_pole: float = 0.94  # away from the nipple, of the distance from nipple to xiphoid
    lateral_from: float = 0.7  # of the way from xiphoid to nipple, across: a lateral pole lies beyond


def completed_landmarks(
    mesh: TriangleMesh, landmarks: Landmarks, parameters: CompletionParameters | None = None
) -> Landmarks:
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
    p, points = parameters or CompletionParameters(), dict(landmarks)
    if "xiphoid" not in landmarks:
        points["xiphoid"] = _usual_xiphoid(mesh, landmarks, sides, p.xiphoid_height)
    for side in sides:
        if f"lateral_pole_{side}" not in landmarks:
            points[f"lateral_pole_{side}"] = _usual_lateral_pole(
                mesh, points[f"nipple_{side}"], points["xiphoid"], side, p
            )
    return Landmarks.of(points)


def _usual_xiphoid(
    mesh: TriangleMesh, landmarks: Landmarks, sides: list[str], xiphoid_height: float
) -> Floats:
    """The point of the front of the chest where a xiphoid usually lies, (3,)."""
    notch = landmarks["sternal_notch"]
    nipples, poles = (
        landmarks.array(f"{part}_{side}" for side in sides) for part in ("nipple", "lower_pole")
    )
    across = nipples[:, 0].mean() if len(sides) == len(SIDES) else notch[0]
    height = notch[1] + xiphoid_height * (poles[:, 1].mean() - notch[1])
    front = float(mesh.vertices[:, 2].max()) + 1.0
    origin = np.array([[0.5 * (notch[0] + across), height, front]])
    face, distance, _ = Surface(mesh).first_hit(origin, np.array([[0.0, 0.0, -1.0]]))
    if face[0] < 0:
        raise LandmarkProblem(
            "no surface where the xiphoid should be", "Give the landmark xiphoid, and an upright mesh in mm"
        )
    found: Floats = origin[0] - [0.0, 0.0, float(distance[0])]
    return found


def _usual_lateral_pole(
    mesh: TriangleMesh, nipple: Floats, xiphoid: Floats, side: str, parameters: CompletionParameters
) -> Floats:
    """The point at the nipple's height on the side of the chest, nearly as far from the nipple as the xiphoid, (3,)."""
    offset = mesh.vertices - nipple
    far = parameters.lateral_pole * np.linalg.norm(xiphoid - nipple)
    across = SIGN[side] * (mesh.vertices[:, 0] - xiphoid[0])
    at_side = across > parameters.lateral_from * SIGN[side] * (nipple[0] - xiphoid[0])
    off = np.hypot(offset[:, 1], np.linalg.norm(offset, axis=1) - far)
    found: Floats = mesh.vertices[np.where(at_side & (offset[:, 2] < 0.0), off, np.inf).argmin()]
    return found


def _rounded_minimum(values: Floats, radius: float) -> Floats:
    """The smallest of (k, n) values with rounded corners, (n,)."""
    low = values.min(axis=0)
    found: Floats = low - radius * np.log(np.exp(-(values - low) / radius).sum(axis=0))
    return found


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
    found: Bools = chosen & (piece == sizes.argmax())
    return found
