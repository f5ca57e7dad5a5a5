"""Clinical distances: how numbers are asked for; names, points and formulas; the tape over the skin."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from breastmorph.foundation.arrays import Floats, Ints
from breastmorph.foundation.errors import BreastMorphError, LandmarkProblem, MeshProblem
from breastmorph.mesh.closest import Geodesics, Surface, near_lines
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.scan.scan import SIDES, Landmarks, canonical_name

# --------------------------------------------------------------------------------------------------------------------
# Features: numbers of a shape that can be asked for, with their gradients; and requests as people write them
# --------------------------------------------------------------------------------------------------------------------

REGIONS = ("thorax", "left", "right")  # what can be held beside features: the breasts, and all the rest
_UNITS = {
    "mm": {"": 1.0, "mm": 1.0, "cm": 10.0},
    "cc": {"": 1.0, "cc": 1.0, "ml": 1.0, "ccm": 1.0, "cm3": 1.0},
    "": {"": 1.0},  # a column of the cohort's table
}
_REQUEST = re.compile(
    r"(?P<name>[^=]+)=\s*(?P<sign>[+-]?)\s*(?P<number>\d+(?:[.,]\d*)?|[.,]\d+)\s*(?P<unit>[a-z]*3?)",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class Reading:
    """A feature's value and how it changes with the shape.

    Attributes
    ----------
    value : float
        In the feature's unit.
    vertices : (k,) int
        The vertices it depends on.
    gradient : (k, 3) float
        Change of the value per mm that these vertices move.
    """

    value: float
    vertices: Ints
    gradient: Floats


class Feature(Protocol):
    """A number of a shape (n, 3), which is in mm, upright and at the subject's own size."""

    @property
    def name(self) -> str:
        """As users write it."""

    @property
    def unit(self) -> str:
        """``mm`` or ``cc``."""

    def value(self, shape: Floats) -> float:
        """The number."""

    def read(self, shape: Floats) -> Reading:
        """The number with its gradient."""


@dataclass(frozen=True)
class Request:
    """A wish as ``--set`` takes it.

    Attributes
    ----------
    name : str
        Of a feature or of a column of the cohort's table.
    amount : float
        In the unit given.
    unit : str
        As written; empty for the feature's own (mm or cc).
    relative : bool
        Whether the amount is to be added to the present value.
    """

    name: str
    amount: float
    unit: str = ""
    relative: bool = False

    def in_unit(self, unit: str) -> float:
        """The amount in the unit of its feature."""
        factors = _UNITS[unit]
        if self.unit.lower() not in factors:
            known = ", ".join(name for name in factors if name) or "no unit"
            raise BreastMorphError(f"{self.name} is not measured in {self.unit}", f"Write it with {known}")
        return self.amount * factors[self.unit.lower()]


def parse_request(text: str) -> Request:
    """A request such as ``SN-NL=21.5cm``, ``volume-left=400cc`` or, added to the present value, ``NL-NR=+8mm``."""
    found = _REQUEST.fullmatch(text.strip())
    if not found or not found["name"].strip():
        raise BreastMorphError(
            f"{text!r} is no request", "Write for example SN-NL=21.5cm, volume-left=400cc or NL-NR=+8mm"
        )
    amount = float(found["number"].replace(",", "."))
    return Request(
        found["name"].strip(),
        -amount if found["sign"] == "-" else amount,
        found["unit"],
        bool(found["sign"]),
    )


def same_name(first: str, second: str) -> bool:
    """Whether two names differ only in capitals, hyphens, underscores or blanks."""
    return _plain(first) == _plain(second)


def named(name: str, known: Iterable[str]) -> str | None:
    """The known name that somebody wrote, or None."""
    return next((one for one in known if same_name(one, name)), None)


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()


# --------------------------------------------------------------------------------------------------------------------
# Clinical distances: what they are called and between which points they run
# --------------------------------------------------------------------------------------------------------------------

TAPE, STRAIGHT = "tape", "straight"
KINDS = (TAPE, STRAIGHT)
CALIPER = "caliper"
_KIND_WORDS = {
    "tape": TAPE,
    "geodesic": TAPE,
    "straight": STRAIGHT,
    "euclidean": STRAIGHT,
    "caliper": STRAIGHT,
}


@dataclass(frozen=True)
class Distance:
    """What a distance runs between.

    Attributes
    ----------
    name : str
    landmarks : tuple of str
        Those it needs. The first two are its ends, unless it ends at the midline.
    ends_at_midline : bool
        Whether its second end is the skin of the midline at the height of the nipple.
    form : str
        "between" the two ends; "caliper": the same without a tape, which would run around the breast; "from plane": of
        the first end from the sagittal plane through the sternum; "over chord": of the nipple from the straight
        line between the two ends.
    meaning : str
        For the data dictionary.
    """

    name: str
    landmarks: tuple[str, ...]
    ends_at_midline: bool = False
    form: str = "between"
    meaning: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds it exists in; a height over a chord has no tape line."""
        return (STRAIGHT,) if self.form in ("over chord", CALIPER) else KINDS


def _distances() -> dict[str, Distance]:
    found = [
        Distance("SN-XI", ("sternal_notch", "xiphoid"), meaning="Length of the sternum"),
        Distance("NL-NR", ("nipple_left", "nipple_right"), meaning="Between the nipples"),
        Distance(
            "intermammary",
            ("medial_border_left", "medial_border_right"),
            meaning="Between the inner borders of the breasts",
        ),
    ]
    for side, letter in zip(SIDES, "LR", strict=True):
        nipple, lateral = f"nipple_{side}", f"lateral_pole_{side}"
        found += [
            Distance(f"SN-N{letter}", ("sternal_notch", nipple), meaning="How low the nipple stands"),
            Distance(f"N{letter}-LP{letter}", (nipple, f"lower_pole_{side}"), meaning="To the lowest point"),
            Distance(
                f"N{letter}-IMF{letter}",
                (nipple, f"imf_{side}"),
                meaning="To the fold, at rest; the tape is the arc of the lower pole",
            ),
            Distance(
                f"N{letter}-M",
                (nipple, "sternal_notch"),
                ends_at_midline=True,
                form="from plane",
                meaning="To the middle of the sternum; straight: from the sagittal plane through it",
            ),
            Distance(
                f"base-width-{side}",
                (f"medial_border_{side}", lateral),
                form=CALIPER,
                meaning="Width of the breast's base, from its inner border to the anterior axillary line",
            ),
            Distance(
                f"half-chest-width-{side}",
                (lateral, "sternal_notch", nipple),
                ends_at_midline=True,
                meaning="From the anterior axillary line to the midline at the height of the nipple; no base width",
            ),
            Distance(
                f"projection-{side}",
                (lateral, "sternal_notch", nipple),
                ends_at_midline=True,
                form="over chord",
                meaning="Of the nipple before the straight line of the half-chest width",
            ),
        ]
    return {one.name: one for one in found}


DISTANCES: Mapping[str, Distance] = MappingProxyType(_distances())
# Those whose lines are drawn on the body, on sheets and on the page.
DRAWN = (
    *("SN-NL", "SN-NR", "NL-NR", "NL-IMFL", "NR-IMFR"),
    *("base-width-left", "base-width-right", "intermammary"),
)
PAPER = ("SN-NL", "SN-NR", "NL-NR")  # those of the paper's experiments and figures
PAIRS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {  # what exists on both sides: left, right
        "SN-N": ("SN-NL", "SN-NR"),
        "N-LP": ("NL-LPL", "NR-LPR"),
        "N-IMF": ("NL-IMFL", "NR-IMFR"),
        "N-M": ("NL-M", "NR-M"),
        **{
            name: (f"{name}-left", f"{name}-right")
            for name in (
                *("base-width", "half-chest-width", "projection", "volume", "volume-inner-border"),
                *("volume-flat-wall", "surface", "footprint"),
                *("fold-height", "nipple-above-fold", "nipple-above-lower-pole"),
            )
        },
    }
)


def parse_measure(text: str) -> tuple[str, str]:
    """Name and kind of a distance as people write it: ``SN-NL``, ``tape sn-nl``, ``nipple_left to sternal_notch``.

    Returns
    -------
    name, kind : str
        The kind is "straight" where none is said.

    Raises
    ------
    BreastMorphError
        No distance is called that.
    """
    words = re.findall(r"[^\s:()]+", text)
    kinds = [_KIND_WORDS[word.lower()] for word in words if word.lower() in _KIND_WORDS]
    label = " ".join(word for word in words if word.lower() not in _KIND_WORDS)
    kind = kinds[0] if kinds else STRAIGHT
    name = next((name for name in DISTANCES if same_name(name, label)), None) or _by_ends(label)
    if name is None or len(kinds) > 1:
        raise BreastMorphError(f"{text!r} is no measure", f"Known are {', '.join(DISTANCES)}")
    if kind not in DISTANCES[name].kinds:
        raise BreastMorphError(f"{name} has no {kind} measure", f"It is {' or '.join(DISTANCES[name].kinds)}")
    return name, kind


def _by_ends(label: str) -> str | None:
    """The distance between two landmarks that somebody named."""
    if same_name(label, "N-N"):
        return "NL-NR"
    ends = re.split(r"\s+to\s+|-|\s*/\s*", label, maxsplit=1)
    if len(ends) != 2:
        return None
    named = {canonical_name(end) for end in ends}
    plain = (one for one in DISTANCES.values() if not one.ends_at_midline)
    return next((one.name for one in plain if set(one.landmarks) == named), None)


# --------------------------------------------------------------------------------------------------------------------
# Points that stick to the skin: landmarks as places on triangles, so that they move with the vertices
# --------------------------------------------------------------------------------------------------------------------

Function = Callable[[NDArray[Any]], NDArray[Any]]  # of points (k, 3), real or complex, to a number
_OFF_SKIN = 20.0  # mm between a landmark and the skin: not this mesh's landmark
_STEP = 1e-30  # of the complex step, which needs no difference of near-equal numbers


@dataclass(frozen=True, eq=False)
class SkinPoints:
    """Points on triangles.

    Attributes
    ----------
    corners : (k, 3) int
        Vertices of the triangle each point lies in.
    weights : (k, 3) float
        Barycentric.
    """

    corners: Ints
    weights: Floats

    def __len__(self) -> int:
        return len(self.corners)

    def at(self, vertices: Floats) -> Floats:
        """Positions in a shape (n, 3), (k, 3)."""
        return np.einsum("kc,kcd->kd", self.weights, vertices[self.corners])

    def chosen(self, ids: Iterable[int]) -> SkinPoints:
        """Some of the points, in the order asked for."""
        index = list(ids)
        return SkinPoints(self.corners[index], self.weights[index])

    def followed_by(self, other: SkinPoints) -> SkinPoints:
        """These points and then others."""
        return SkinPoints(
            np.concatenate([self.corners, other.corners]), np.concatenate([self.weights, other.weights])
        )

    def reading(self, value: float, by_point: Floats) -> Reading:
        """A value with its derivative by the vertices, from that by the points (k, 3)."""
        ids, place = np.unique(self.corners, return_inverse=True)
        gradient = np.zeros((len(ids), 3))
        np.add.at(gradient, place.ravel(), (self.weights[:, :, None] * by_point[:, None, :]).reshape(-1, 3))
        return Reading(value, ids, gradient)

    @classmethod
    def of_vertices(cls, ids: Iterable[int]) -> SkinPoints:
        """Points that are vertices."""
        index = np.array(list(ids), dtype=np.int64).reshape(-1, 1)
        return cls(np.repeat(index, 3, axis=1), np.tile([1.0, 0.0, 0.0], (len(index), 1)))

    @classmethod
    def on(cls, surface: Surface, points: Floats) -> SkinPoints:
        """The points of a surface that are closest to given ones (k, 3)."""
        found = surface.closest(points)
        return cls(surface.mesh.faces[found.faces], found.weights)


@dataclass(frozen=True, eq=False)
class SkinLandmarks:
    """Landmarks on the skin.

    Attributes
    ----------
    names : tuple of str
    points : SkinPoints
    """

    names: tuple[str, ...]
    points: SkinPoints

    @classmethod
    def on(cls, surface: Surface, landmarks: Landmarks) -> SkinLandmarks:
        """Landmarks moved onto a surface, which they must nearly touch.

        Those that the program found (a fold that no view shows is an estimate) are left out where they do not.
        """
        if len(landmarks):
            far = surface.closest(landmarks.points).distances
            off = {name: d for name, d in zip(landmarks.names, far, strict=True) if d > _OFF_SKIN}
            set_ones = {name: d for name, d in off.items() if name not in landmarks.found}
            if set_ones:
                name = max(set_ones, key=lambda one: float(set_ones[one]))
                raise LandmarkProblem.of(
                    "unusable-landmarks/off-mesh", name=name, distance=float(set_ones[name])
                )
            landmarks = landmarks.only(name for name in landmarks.names if name not in off)
        return cls(landmarks.names, SkinPoints.on(surface, landmarks.points))

    @classmethod
    def of_vertices(cls, ids: Mapping[str, int]) -> SkinLandmarks:
        """Landmarks that are vertices of a template or model."""
        return cls(tuple(ids), SkinPoints.of_vertices(ids.values()))

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def chosen(self, names: Iterable[str]) -> SkinPoints:
        """The named landmarks."""
        return self.points.chosen(self.names.index(name) for name in names)


def derivative(function: Function, points: Floats) -> Floats:
    """Exact derivative of a smooth function by points (k, 3), by the complex step; (k, 3)."""
    out = np.empty(points.size)
    for i in range(points.size):
        shifted = points.astype(complex).ravel()
        shifted[i] += 1j * _STEP
        out[i] = function(shifted.reshape(points.shape)).imag / _STEP
    return out.reshape(points.shape)


def reached(surface: Surface, landmarks: Landmarks) -> Landmarks:
    """Without lateral poles beyond a surface: a registered mesh ends before that of a wide chest."""
    far = surface.closest(landmarks.points).distances > _OFF_SKIN
    return landmarks.only(
        name
        for name, beyond in zip(landmarks.names, far, strict=True)
        if not (beyond and name.startswith("lateral_pole"))
    )


# --------------------------------------------------------------------------------------------------------------------
# Tape lines: the shortest lines over the skin between points of it, with how their length changes with the shape
# --------------------------------------------------------------------------------------------------------------------

_DETOURS = (1.5, np.inf)  # how much longer than the straight line a tape line may be, tried in turn


@dataclass(frozen=True, eq=False)
class TapeLine:
    """A line of straight pieces over the skin.

    Attributes
    ----------
    points : SkinPoints
        Its corners, from end to end; they stick to the skin. To first order the shortest line keeps them when the
        shape changes, because a shortest line's length does not change when the line itself is moved a little.
    """

    points: SkinPoints

    def length(self, vertices: Floats) -> float:
        """Length in a shape (n, 3)."""
        return float(np.linalg.norm(np.diff(self.points.at(vertices), axis=0), axis=1).sum())

    def derivative(self, vertices: Floats) -> Floats:
        """Derivative of the length by the line's corners, (k, 3)."""
        steps = np.diff(self.points.at(vertices), axis=0)
        lengths = np.linalg.norm(steps, axis=1, keepdims=True)
        along = np.divide(steps, lengths, out=np.zeros_like(steps), where=lengths > 0)
        out = np.zeros((len(self.points), 3))
        out[1:] += along
        out[:-1] -= along
        return out


def tape_lines(surface: Surface, starts: SkinPoints, ends: SkinPoints) -> list[TapeLine | None]:
    """Shortest lines between pairs of points; None where no line joins a pair.

    Parameters
    ----------
    surface : Surface
        Of a manifold mesh.
    starts, ends : SkinPoints
        k of each, on that mesh.
    """
    mesh = surface.mesh
    a, b = starts.at(mesh.vertices), ends.at(mesh.vertices)
    lines: list[TapeLine | None] = []
    for k, path in enumerate(shortest_paths(mesh, a, b)):
        if path is None:
            lines.append(None)
            continue
        first, last = starts.chosen([k]), ends.chosen([k])
        inner = first.followed_by(SkinPoints.on(surface, path[1:-1])) if len(path) > 2 else first
        lines.append(TapeLine(inner.followed_by(last)))
    return lines


def shortest_paths(mesh: TriangleMesh, a: Floats, b: Floats) -> list[Floats | None]:
    """Polylines over the skin between pairs of points (k, 3); None where no line joins a pair.

    They are looked for near the straight line first: most of a torso is far from any of them.
    """
    straight = np.linalg.norm(b - a, axis=1)
    paths: list[Floats | None] = [None] * len(a)
    left = np.flatnonzero(straight > 0)
    for k in np.flatnonzero(straight == 0):
        paths[k] = np.stack([a[k], b[k]])
    for detour in _DETOURS:
        if not len(left):
            break
        limits = detour * straight
        part = mesh if np.isinf(detour) else near_lines(mesh, a[left], b[left], limits[left])
        open_pairs = []
        for k, path in zip(left, _paths(part, a[left], b[left]), strict=True):
            if path is None or np.linalg.norm(np.diff(path, axis=0), axis=1).sum() > limits[k]:
                open_pairs.append(k)
            else:
                paths[k] = path
        left = np.array(open_pairs, dtype=np.int64)
    return paths


def _paths(mesh: TriangleMesh, a: Floats, b: Floats) -> list[Floats | None]:
    """Polylines from end to end; None where no line joins the two."""
    points, place = np.unique(np.vstack([a, b]), axis=0, return_inverse=True)
    starts, ends = place.reshape(2, -1).tolist()
    geodesics = Geodesics(mesh, points)
    paths: list[Floats | None] = []
    for start, end in zip(starts, ends, strict=True):
        try:
            paths.append(geodesics.path(start, end))
        except MeshProblem:
            paths.append(None)
    return paths


def densely(points: Floats, step: float) -> Floats:
    """Points of a polyline (k, 3) at most ``step`` apart, (m, 3)."""
    along = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    way = np.linspace(0.0, along[-1], max(2, int(along[-1] / step) + 2))
    return np.column_stack([np.interp(way, along, points[:, axis]) for axis in range(3)])


def section_length(vertices: Floats, faces: Ints, height: float) -> float:
    """Length of the horizontal line over the skin at a height, mm; NaN where there is no skin."""
    corners = vertices[faces]
    above = corners[:, :, 1] > height
    crossed = corners[above.any(axis=1) & ~above.all(axis=1)]
    if not len(crossed):
        return float("nan")
    over = crossed[:, :, 1] > height
    alone = np.where(
        over.sum(axis=1) == 1, over.argmax(axis=1), (~over).argmax(axis=1)
    )  # corner on its own side
    rows = np.arange(len(crossed))
    tip = crossed[rows, alone]
    cuts = []
    for step in (1, 2):
        end = crossed[rows, (alone + step) % 3]
        share = (height - tip[:, 1]) / (end[:, 1] - tip[:, 1])
        cuts.append(tip + share[:, None] * (end - tip))
    return float(np.linalg.norm(cuts[0] - cuts[1], axis=1).sum())


# --------------------------------------------------------------------------------------------------------------------
# Formulas of straight distances: of points (k, 3), which may be complex so that derivatives are exact
# --------------------------------------------------------------------------------------------------------------------


def _norm(vector: NDArray[Any]) -> NDArray[Any]:
    length: NDArray[Any] = np.sqrt((vector * vector).sum())
    return length


def between(points: NDArray[Any]) -> NDArray[Any]:
    """Distance of the first two points."""
    return _norm(points[0] - points[1])


def from_plane(points: NDArray[Any]) -> NDArray[Any]:
    """Distance of a point from the sagittal plane through notch and xiphoid (the notch alone: x = that of it)."""
    normal = np.array([1.0, 0.0, 0.0], dtype=points.dtype)
    if len(points) == 3:
        down = points[2] - points[1]
        normal = np.stack([down[1], -down[0], 0.0 * down[0]])  # across the sternum, horizontal in depth
    offset: NDArray[Any] = ((points[0] - points[1]) * normal).sum() / _norm(normal)
    return offset if offset.real >= 0 else -offset


def midline(points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """x and y of the midline at the height of the first point, from notch and xiphoid or the notch alone."""
    height, notch = points[0, 1], points[1]
    if len(points) == 2:
        return notch[0], height
    down = points[2] - notch
    return notch[0] + (height - notch[1]) / down[1] * down[0], height


def midline_point(points: NDArray[Any]) -> NDArray[Any]:
    """The midline on the plane of a triangle (first three points), at the height of the nipple (fourth), (3,)."""
    x, y = midline(points[3:])
    a, b, c = points[:3]
    u, v = b - a, c - a
    normal = np.stack([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])
    depth = a[2] - (normal[0] * (x - a[0]) + normal[1] * (y - a[1])) / normal[2]
    return np.stack([x, y, depth])


def to_midline(points: NDArray[Any]) -> NDArray[Any]:
    """Distance from the first point to the midline."""
    return _norm(points[0] - midline_point(points[1:]))


def over_chord(points: NDArray[Any]) -> NDArray[Any]:
    """Distance of the nipple (fifth point) from the line between the first point and the midline."""
    end = midline_point(points[1:])
    chord, up = end - points[0], points[4] - points[0]
    along = (up * chord).sum() / (chord * chord).sum()
    return _norm(up - along * chord)
