"""Landmarks found on a raw surface, in any pose, by shape and colour; each with how sure it is.

The way: hypotheses of the pose from sixty directions, settled by a net that says how a view must be turned; all
landmarks at once from the front; then each from close by, where it can be seen best. Every question is asked from
several directions and of the mirror image; answers are weighed by how sure the nets are, how far they agree, and how
far apart two people's ideas of the landmark lie.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from scipy.spatial import cKDTree

from breastmorph.foundation.arrays import Bools, Floats, Ints
from breastmorph.foundation.errors import LandmarkProblem, MeshProblem
from breastmorph.foundation.machine import one_thread
from breastmorph.foundation.messages import Finding, note, warning
from breastmorph.mesh.closest import closest_to_few
from breastmorph.mesh.geometry import Similarity, edge_lengths, face_areas, face_normals, rotation_about
from breastmorph.mesh.topology import edge_table, face_components
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.scan.anatomy import (
    MEASURE_IT,
    UNITS,
    enough_landmarks,
    require_adult_anatomy,
    unit_of_extent,
)
from breastmorph.scan.frame import faces_inside_out
from breastmorph.scan.scan import REQUIRED, SIDES, SIGN, STERNUM, Found, Landmarks, other_side
from breastmorph.scan.views import Net, Pose, Skin, Votes, hypotheses, lightened, nets, skin_colours, spanned

FOUND_NAMES = (*REQUIRED, "imf_left", "imf_right")
_PARTS = ("nipple", "lower_pole", "lateral_pole", "imf")

# How far apart two people's ideas of a landmark lie along x, y and z, mm (standard deviation): no net can be surer
# than its question. The sternum's ends are vague along the midline, and hardly across.
_DEFINITION = {
    "sternal_notch": (2.5, 6.0, 3.0), "xiphoid": (2.5, 9.0, 3.0), "nipple": (1.2, 1.2, 1.2),
    "lower_pole": (4.0, 2.5, 4.0), "lateral_pole": (8.0, 8.0, 8.0), "imf": (4.5, 4.5, 4.5),
}  # fmt: skip
# And how far a net that looks from there may be off together on bodies of another kind than the phantom, mm.
_STRANGE = {
    "coarse": {"sternal_notch": 4.0, "xiphoid": 4.0, "nipple": 6.0, "lower_pole": 4.0, "lateral_pole": 5.0, "imf": 4.0},
    "close": {"sternal_notch": 5.0, "xiphoid": 5.0, "nipple": 1.5, "lower_pole": 4.0, "lateral_pole": 14.0, "imf": 5.0},
    "skin": {"nipple": 0.8},
}  # fmt: skip
# How far answers to a question deviate on phantoms, which the nets know, mm (median): how sure they say they are and
# how far apart they lie. Nets that were shown a body of another kind are less sure of it, most of all at the neck.
_USUAL = {
    "coarse": {"sternal_notch": 1.2, "xiphoid": 2.1, "nipple": 1.2, "lower_pole": 2.6, "lateral_pole": 5.4, "imf": 4.2},
    "close": {"sternal_notch": 0.8, "xiphoid": 1.8, "nipple": 0.6, "lower_pole": 2.4, "lateral_pole": 4.2, "imf": 3.6},
    "skin": {"nipple": 0.4},
}  # fmt: skip
_KNOWN = (1.2, 1.5)  # times as far: the most on phantoms, and what is a stranger to the nets ...
_AT_HOME = 0.6  # ... whose deviations are so much smaller on what they know
# Beyond this deviation along the skin (mm) a landmark is doubtful.
_DOUBTFUL = {
    "sternal_notch": 11.0, "xiphoid": 15.0, "nipple": 2.5, "lower_pole": 14.0, "lateral_pole": 20.0, "imf": 16.0,
}  # fmt: skip

_CENTRE = np.array([0.0, 0.0, -40.0])  # of the front view, from the middle of the sternum
_FROM_BELOW = rotation_about(np.array([1.0, 0.0, 0.0]), -25.0) @ rotation_about(
    np.array([0.0, 1.0, 0.0]), -30.0
)
_HIDDEN = 6.0  # mm off the skin: where it should lie the scanner saw nothing ...
_HIDDEN_BY = {"lower_pole": 15.0, "lateral_pole": 15.0}  # ... but along the skin poles are vague
_OFF_THE_SKIN = 22.0  # mm: farther from the surface there is no skin for a landmark
_SPARSE = 14.0  # mm between the points of a cloud: what they show is no skin any more
_EDGE = 8.0  # mm from the scan's edge a landmark is where the scan was cut off, if the nets are vaguer than this (mm)
_AT_AN_EDGE = {"sternal_notch": 8.0, "xiphoid": 10.0, "nipple": 6.0}
# Skin that a scan shows below a landmark, mm: where it ends sooner it was cut there, and the landmark lies lower.
_BELOW = {"xiphoid": 10.0, "nipple": 12.0, "lower_pole": 8.0}
_LOST = 8.0  # mm of deviation of a nipple on a side whose end was cut off: it was cut off too
_SOUP = 0.3  # of the vertices on an edge: the triangles of a cloud overlap, their edges are not the scan's
_BESIDE = 40.0  # mm of skin to both sides of the sternum without which there is no telling where it is
_ABOVE = 15.0  # mm of skin above the notch without which it is doubtful
_COLUMN = (40.0, 90.0)  # mm to the sides of a landmark and behind it in which that skin is looked for
_ANOTHER_BODY = 0.25  # of the surface in another piece of that share: not one person alone


@dataclass(frozen=True, eq=False)
class FoundLandmarks:
    """What the program found on a surface.

    Attributes
    ----------
    landmarks : Landmarks
        In the coordinates of the surface's file; ``landmarks.found`` says of each how, and how sure it is.
    left_out : mapping from name to Finding
        What was not found, and why.
    absent : str
        The side without a breast, or empty.
    unit : str
        Of the file.
    axes : (3, 3) float
        The patient's left, up and forward in the file's axes, as rows.
    warnings : tuple of Finding
        What is odd about the surface.
    """

    landmarks: Landmarks
    left_out: Mapping[str, Finding] = field(default_factory=dict)
    absent: str = ""
    unit: str = "mm"
    axes: Floats = field(default_factory=lambda: np.eye(3))
    warnings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        absent = f", {self.absent} side absent" if self.absent else ""
        doubt = f", doubtful: {', '.join(self.doubtful)}" if self.doubtful else ""
        return f"FoundLandmarks({len(self.landmarks)} landmarks{absent}{doubt})"

    @property
    def uncertainty(self) -> dict[str, float]:
        """Standard deviation per direction along the skin by name, mm."""
        return {name: one.sd for name, one in self.landmarks.found.items()}

    @property
    def doubtful(self) -> tuple[str, ...]:
        """Those that a person should look at."""
        return self.landmarks.doubtful


@dataclass(frozen=True, eq=False)
class Estimate:
    """One opinion of where a landmark lies, upright and in mm: its mean and covariance."""

    point: Floats
    covariance: Floats


def find_landmarks(
    mesh: TriangleMesh,
    unit: str = "auto",
    mm: float | None = None,
    *,
    sized: bool = True,
    there: Collection[str] = (),
) -> FoundLandmarks:
    """Find the eight landmarks and the folds on a surface or a point cloud in its file's coordinates.

    Parameters
    ----------
    mesh : TriangleMesh
        Without faces it is a point cloud.
    unit : str
        Of the file; "auto" takes the one in which it is as large as an adult.
    mm : float, optional
        Millimetres per unit of the file, where that is known better.
    sized : bool
        Whether that scale is known, and what has no adult's sizes in it is refused.
    there : collection of str
        Sides that have a breast by what a person says.

    Raises
    ------
    MeshProblem
        It is no adult torso, more than one person, points too far apart, or its size is none in mm, cm and m.
    """
    cloud = not mesh.n_faces
    mesh = spanned(mesh) if cloud else mesh
    if not mesh.n_faces:
        raise _no_surface()
    extent = float(np.ptp(mesh.vertices[np.unique(mesh.faces)], axis=0).max())
    if mm is None:
        named = unit_of_extent(extent) if unit == "auto" else unit
        if named is None:
            raise MeshProblem(
                "no landmarks can be found: the scan measures {extent:.4g} in the file's unit, which is "
                "no adult torso in mm, cm or m",
                "Say the unit, or cut the scan to the torso; where the scale of the file is not known, "
                "{scale_by}",
                code="landmarks-unknown-unit",
                extent=extent,
                scale_by=MEASURE_IT,
            )
        unit, mm = named, UNITS[named]
        if unit_of_extent(extent * mm) != "mm":
            raise MeshProblem(
                "no landmarks can be found: read in {unit} the scan measures {extent:.4g} mm, which is "
                "no adult torso",
                'Leave the unit of a file to "auto"; give points and surfaces in mm',
                code="landmarks-wrong-unit",
                unit=unit,
                extent=extent * mm,
            )
    if cloud and edge_lengths(mesh.vertices, mesh.faces).mean() * mm > _SPARSE:
        raise _no_surface()
    middle = mesh.vertices.mean(axis=0)
    body = lightened(mesh.with_vertices((mesh.vertices - middle) * mm))
    with one_thread():
        skin = Skin.of(body, 4.0)
        found = _found_from(body, skin, _settled(skin, hypotheses(skin)), there)
    upright = found.landmarks.transformed(Similarity(found.axes)).only(REQUIRED)
    if sized and enough_landmarks(upright):
        try:
            require_adult_anatomy(upright, extent * mm)
        except LandmarkProblem as error:  # no person set these: it is the surface that is none of an adult
            raise MeshProblem(error.finding.cause, error.finding.advice, code=error.name) from error
    turned = warning(
        "inverted-orientation/found",
        "the surface looked inwards and has been turned: the file is inside out, or mirrored",
        "Set the landmarks by hand: they tell which it is",
    )
    inside_out = not cloud and faces_inside_out(body, found.landmarks.only(REQUIRED))
    marks = found.landmarks.transformed(Similarity(np.eye(3), middle, 1.0 / mm))
    return replace(found, landmarks=marks, warnings=(turned,) if inside_out else (), unit=unit)


def _no_surface() -> MeshProblem:
    return MeshProblem(
        "no landmarks can be found: the points are too few, or too far apart, to show the skin",
        "Give some thousand points of the torso, or a surface (triangles)",
        code="landmarks-no-surface",
    )


def _not_a_torso() -> MeshProblem:
    return MeshProblem(
        "no landmarks can be found: this does not look like the front of an adult torso",
        "Check that it is the right file and shows the bare front from neck to waist; or set the "
        "landmarks by hand",
        code="not-a-torso",
    )


def _found_from(
    body: TriangleMesh, skin: Skin, stance: Similarity, there: Collection[str] = ()
) -> FoundLandmarks:
    """The landmarks once the pose is known."""
    colours = skin_colours(body)
    turned = body.with_vertices(stance.apply(body.vertices))
    front, flat_in_front = _front(
        Skin((skin.points @ stance.rotation.T) + stance.translation, skin.normals @ stance.rotation.T)
    )
    close, flat_close_by = _close_views(turned, colours, front)
    _require_one_body(turned, front)
    flat = {side: flat_in_front[side] + flat_close_by[side] for side in SIDES}
    sternum = front["xiphoid"].point
    absent = [
        side
        for side in SIDES
        if side not in there
        and flat[side] > _FLAT * min(flat[other_side(side)], 0.0)
        and SIGN[side] * (front[f"nipple_{side}"].point - sternum)[0] > _THERE
    ]
    if len(absent) == 2:
        raise MeshProblem(
            "no landmarks can be found: neither side shows a breast",
            "Set the landmarks by hand if that is wrong",
            code="no-breast",
        )
    merged = {}
    for name in FOUND_NAMES:
        if absent and name.endswith(absent[0]):
            continue
        if _part(name) == "nipple":
            *wide, near = close[name]
            merged[name] = _sighted(_merged([front[name], *wide]), near)
        else:
            merged[name] = _merged([front[name], *close[name]])
    unsure = [f"nipple_{side}" for side in SIDES if side not in absent and flat[side] > _UNSURE]
    home = _at_home(list(merged), front, close)
    return _judged(turned, stance, merged, absent[0] if absent else "", unsure, home, colours is not None)


_IMPROBABLE = 3.6  # deviations along the skin beyond which a landmark that a person set is spoken of ...
_WORTH_IT = 10.0  # ... and mm


def recheck_landmarks(
    mesh: TriangleMesh, marks: Landmarks, to_file: Similarity
) -> tuple[list[Finding], Landmarks]:
    """Warnings of landmarks that a person set, in the canonical frame, and where the program would put those."""
    placed = marks.only(name for name in REQUIRED if name not in marks.found)
    if not placed:
        return [], placed
    with one_thread():
        try:
            mesh = lightened(mesh)
            middle = marks.only(STERNUM).points.mean(axis=0) + _CENTRE
            seen = _found_from(mesh, Skin.of(mesh, 4.0), Similarity(np.eye(3), -middle))
        except MeshProblem:
            return [], placed.only(())  # no suspicion without a look
    findings = improbable(placed, seen.landmarks, to_file)
    return findings, seen.landmarks.only(str(one.values.get("name")) for one in findings)


def improbable(placed: Landmarks, seen: Landmarks, to_file: Similarity) -> list[Finding]:
    """What of the landmarks that a person set lies where the program would not put it; it says where, in the file."""
    both = [name for name in placed if name in seen]
    strange = {name: _deviations(placed[name], seen, name) for name in both}
    far = [name for name in both if strange[name] > _IMPROBABLE]
    findings = []
    for first, second in combinations(far, 2):
        as_other = (_deviations(placed[a], seen, b) for a, b in ((first, second), (second, first)))
        if max(as_other) < _IMPROBABLE:
            findings.append(
                warning(
                    "landmarks-exchanged",
                    "{first:landmark} and {second:landmark} seem to be exchanged",
                    "Exchange their names, or set both again",
                    first=first,
                    second=second,
                )
            )
            far = [name for name in far if name not in (first, second)]
    for name in far:
        axes = _COMPARED.get(_part(name), [0, 1, 2])
        if (off := float(np.linalg.norm((placed[name] - seen[name])[axes]))) > _WORTH_IT:
            place = ", ".join(f"{value:.4g}" for value in to_file.apply(seen[name][None])[0])
            findings.append(
                warning(
                    "landmark-improbable",
                    "{name:landmark} lies {distance:.0f} mm from where the program finds it ({place})",
                    "Look at it on the scan and set it again; as it is, registration trusts it less",
                    name=name,
                    distance=off,
                    place=place,
                )
            )
    return findings


# Axes along which a landmark means something; all of the others.
_COMPARED = {"lower_pole": [1], "lateral_pole": [2]}


def _deviations(point: Floats, seen: Landmarks, name: str) -> float:
    """How many deviations a point lies from a landmark that was found, upright, along the axes that count."""
    axes = _COMPARED.get(_part(name), [0, 1, 2])
    off = (point - seen[name])[axes]
    return float(np.sqrt(off @ np.linalg.solve(seen.found[name].covariance[np.ix_(axes, axes)], off)))


def _settled(skin: Skin, poses: Sequence[Pose]) -> Similarity:
    """The pose whose front view is surest of a torso, as the way from the surface's coordinates to upright ones."""
    best, most, torso = None, -np.inf, -np.inf
    for pose in poses[:3]:
        stance = Similarity(pose.axes, -pose.axes @ pose.centre)
        for _ in range(2):
            seen = skin.seen_from(stance.rotation, -stance.rotation.T @ stance.translation)
            vote = nets().coarse.look([seen])[0]
            centre = vote.points[:2].mean(axis=0) + _CENTRE
            stance = Similarity(stance.rotation, stance.translation - centre)
        sure = vote.flags[2] + pose.upright + pose.torso - 2.0 * float(np.log(vote.sd).mean())
        if sure > most:
            best, most, torso = stance, sure, float(vote.flags[2] + pose.torso)
    if best is None or torso < 0.0:
        raise _not_a_torso()
    return best


def _turn(pitch: float, yaw: float) -> Floats:
    return rotation_about(np.array([1.0, 0.0, 0.0]), pitch) @ rotation_about(np.array([0.0, 1.0, 0.0]), yaw)


def _front(skin: Skin) -> tuple[dict[str, Estimate], dict[str, float]]:
    """All landmarks from the front, upright about the centre, and by side log odds that it is flat."""
    asked, votes = _asked(nets().coarse, skin, np.zeros(3), (_turn(0, 0), _turn(0, 12), _turn(9, -12)))
    points = np.array([vote.points[order] for vote, order in zip(votes, asked, strict=True)])
    sds = np.array([vote.sd[order] for vote, order in zip(votes, asked, strict=True)])
    estimates = {
        name: _agreed(points[:, k], sds[:, k], _STRANGE["coarse"][_part(name)])
        for k, name in enumerate(FOUND_NAMES)
    }
    swapped = [order is _SWAPPED for order in asked]
    flags = np.array([v.flags[[1, 0, 2]] if s else v.flags for v, s in zip(votes, swapped, strict=True)])
    return estimates, dict(zip(SIDES, flags.mean(axis=0)[:2], strict=True))


_SAME = np.arange(len(FOUND_NAMES))
_SWAPPED = np.array([0, 1, 3, 2, 5, 4, 7, 6, 9, 8])


def _asked(net: Net, skin: Skin, centre: Floats, turns: Iterable[Floats]) -> tuple[list[Ints], list[Votes]]:
    """Votes back in the skin's axes, of views and of their mirror images with the order that swaps the sides."""
    orders, views, ways = [], [], []
    for mirrored in (False, True):
        flip = MIRROR if mirrored else np.ones(3)
        near = Skin((skin.points - centre) * flip, skin.normals * flip, skin.lab)
        for turn in turns:
            views.append(near.seen_from(turn, np.zeros(3)))
            ways.append((turn, flip))
            orders.append(_SWAPPED if mirrored else _SAME)
    votes = net.look(views)
    return orders, [_back(vote, axes, flip, centre) for vote, (axes, flip) in zip(votes, ways, strict=True)]


def _back(vote: Votes, axes: Floats, flip: Floats, centre: Floats) -> Votes:
    """Votes of a view in the axes that it was made from; deviations keep their sizes along the new axes."""
    spread = np.sqrt(np.maximum((vote.sd**2) @ (axes**2), 1e-6))
    return Votes((vote.points @ axes) * flip + centre, spread, vote.flags)


def _part(name: str) -> str:
    return name if name in STERNUM else name.rsplit("_", 1)[0]


def _agreed(points: Floats, sds: Floats, strange: float) -> Estimate:
    """Several answers of one net as one estimate: their mean, as sure as each and as far as they agree."""
    weights = 1.0 / (sds**2).mean(axis=1)
    weights = weights / weights.sum()
    mean = weights @ points
    off = points - mean
    spread = (weights[:, None, None] * off[:, :, None] * off[:, None, :]).sum(axis=0)
    return Estimate(mean, np.diag(weights @ sds**2) + spread + strange**2 * np.eye(3))


def _merged(estimates: Sequence[Estimate]) -> Estimate:
    """Independent estimates as one; where they disagree by more than they say, it is less sure."""
    precision = [np.linalg.inv(e.covariance) for e in estimates]
    covariance = np.linalg.inv(sum(precision))
    mean = covariance @ sum(p @ e.point for p, e in zip(precision, estimates, strict=True))
    if len(estimates) > 1:
        chi = sum((e.point - mean) @ p @ (e.point - mean) for p, e in zip(precision, estimates, strict=True))
        covariance = covariance * max(1.0, float(chi) / (3 * (len(estimates) - 1)))
    return Estimate(mean, covariance)


def _at_home(
    names: Iterable[str], front: Mapping[str, Estimate], close: Mapping[str, Sequence[Estimate]]
) -> float:
    """The share of a stranger's deviations that landmarks have on this body: one, and less on what the nets know."""
    ratios = []
    for name in names:
        part, (wide, *near) = _part(name), close[name]
        asked = {"coarse": front[name], "close": wide} | ({"skin": near[0]} if part == "nipple" else {})
        for net, estimate in asked.items():
            own = np.trace(estimate.covariance) / 3.0 - _STRANGE[net][part] ** 2
            ratios.append(own / _USUAL[net][part] ** 2)
    stranger = np.interp(np.sqrt(np.mean(ratios)), _KNOWN, (0.0, 1.0))
    return float(_AT_HOME + (1.0 - _AT_HOME) * stranger)


# Of the answers from closest by, so many showed something else on the skin (phantoms with flat nipples): hardly any
# where the net is sure to 0.9 mm, half where to 1.9 mm, most where to 3 mm; and they lay so far off, mm a direction.
_SURE, _OTHER_PER_MM, _OTHER_RANGE = 0.9, 0.5, (0.02, 0.95)
_OTHER_SD = 15.0
_PLAIN = 2.5  # mm of deviation from farther off above which a nipple does not stand out ...
_BLIND = 2.0  # ... and the nets are too sure, by so many times what is above (phantoms with flat nipples)


def _sighted(expected: Estimate, seen: Estimate) -> Estimate:
    """What is expected and what was seen there, which may be something else: the mean of both readings.

    A mole or a fold can look like a flat nipple: where the two disagree, the spread covers both places.
    """
    off, both = seen.point - expected.point, _merged([expected, seen])
    sd = float(np.sqrt(np.trace(seen.covariance) / 3.0))
    other = float(np.clip(_OTHER_PER_MM * (sd - _SURE), *_OTHER_RANGE))
    right = (1.0 - other) * _density(off, expected.covariance + seen.covariance)
    wrong = other * _density(off, expected.covariance + _OTHER_SD**2 * np.eye(3))
    share = right / max(right + wrong, 1e-300)
    apart = both.point - expected.point
    spread = share * both.covariance + (1.0 - share) * expected.covariance
    spread = spread + share * (1.0 - share) * np.outer(apart, apart)
    flat = max(0.0, float(np.sqrt(np.trace(expected.covariance) / 3.0)) - _PLAIN)
    return Estimate(expected.point + share * apart, spread + (_BLIND * flat) ** 2 * np.eye(3))


def _density(off: Floats, covariance: Floats) -> float:
    """Of a normal distribution about zero, but for a constant."""
    return float(np.exp(-0.5 * off @ np.linalg.solve(covariance, off)) / np.sqrt(np.linalg.det(covariance)))


def _close_views(
    body: TriangleMesh, colours: Floats | None, front: Mapping[str, Estimate]
) -> tuple[dict[str, list[Estimate]], dict[str, float]]:
    """Estimates by name from close by, and by side log odds that it is flat."""
    estimates: dict[str, list[Estimate]] = {name: [] for name in FOUND_NAMES}
    middle = 0.65 * front["sternal_notch"].point + 0.35 * front["xiphoid"].point
    near = _skin_near(body, None, middle, 190.0, 3.3)
    _, votes = _asked(nets().midline, near, middle, (_turn(0, 6), _turn(8, -6)))
    for k, name in enumerate(STERNUM):
        points, sds = np.array([v.points[k] for v in votes]), np.array([v.sd[k] for v in votes])
        estimates[name].append(_agreed(points, sds, _STRANGE["close"][name]))
    estimates["sternal_notch"] += _hollow(near, front["sternal_notch"].point)
    flat = {}
    for side in SIDES:
        first = _breast_view(body, front[f"nipple_{side}"].point, side)
        again = _breast_view(body, np.mean([v.points[0] for v in first], axis=0), side)
        flat[side] = float(np.mean([v.flags[0] for v in (*first, *again)]))
        for k, part in enumerate(_PARTS):
            points, sds = np.array([v.points[k] for v in again]), np.array([v.sd[k] for v in again])
            estimates[f"{part}_{side}"].append(_agreed(points, sds, _STRANGE["close"][part]))
        nipple, flatness = _skin_view(body, colours, estimates[f"nipple_{side}"][0].point, side)
        estimates[f"nipple_{side}"].append(nipple)
        flat[side] += 0.5 * flatness
    return estimates, flat


_HOLLOW_SMOOTH = 13.0  # mm: the scale of the turn from chest to neck
_HOLLOW_WEIGHTS = np.exp(-0.5 * (np.arange(-26, 27) * 2.0 / _HOLLOW_SMOOTH) ** 2)  # steps of 2 mm
_HOLLOW_ABOVE = 12.0  # mm that the deepest of the hollow lies above the upper edge of the sternum
_HOLLOW_SD = np.array([15.0, 5.5, 7.0])
_HOLLOW_TURN = 0.006  # 1/mm of curvature below which there is no hollow


def _hollow(skin: Skin, near: Floats) -> list[Estimate]:
    """The notch by the deepest hollow of the midline between chest and neck; nothing where that is not to be seen."""
    step = 2.0
    line = skin.points[np.abs(skin.points[:, 0] - near[0]) < 12.0]
    row = np.floor((line[:, 1] - near[1]) / step).astype(int)
    rows = np.arange(-55, 50)
    depth = np.array([np.percentile(line[row == k, 2], 80) if (row == k).any() else np.nan for k in rows])
    there = np.flatnonzero(np.isfinite(depth))
    if len(there) < 30:
        return []
    inner = np.arange(there[0], there[-1] + 1)
    filled = np.pad(np.interp(inner, there, depth[there]), len(_HOLLOW_WEIGHTS) // 2, mode="edge")
    profile = np.convolve(filled, _HOLLOW_WEIGHTS / _HOLLOW_WEIGHTS.sum(), "valid")
    slope = np.gradient(profile, step)
    turn = np.gradient(slope, step) / (1.0 + slope**2) ** 1.5
    height = rows[inner] * step
    allowed = (np.abs(height - _HOLLOW_ABOVE) < 45.0) & (height < height[-1] - 10.0)
    if not allowed.any():
        return []
    best = np.flatnonzero(allowed)[turn[allowed].argmax()]
    if turn[best] < _HOLLOW_TURN or best in (np.flatnonzero(allowed)[0], np.flatnonzero(allowed)[-1]):
        return []
    place = near[1] + height[best] - _HOLLOW_ABOVE
    point = np.array([near[0], place, np.interp(place - near[1], height, profile)])
    return [Estimate(point, np.diag(_HOLLOW_SD**2))]


def _skin_near(body: TriangleMesh, colours: Floats | None, centre: Floats, reach: float, step: float) -> Skin:
    """The skin within a cube about a point, sampled densely."""
    inside: Bools = np.all(np.abs(body.vertices - centre) < reach, axis=1)
    chosen: Bools = np.any(inside[body.faces], axis=1)
    used = None if colours is None else colours[np.unique(body.faces[chosen])]
    return Skin.of(body.kept(chosen), step, used)


def _breast_view(body: TriangleMesh, centre: Floats, side: str) -> list[Votes]:
    """Three looks at a breast, the right one mirrored, in upright coordinates."""
    flip = np.ones(3) if side == "left" else MIRROR
    skin = _skin_near(body, None, centre, 130.0, 2.3)
    near = Skin((skin.points - centre) * flip, skin.normals)
    ways = [turn @ _FROM_BELOW for turn in (_turn(0, 0), _turn(6, 8), _turn(-6, -8))]
    votes = nets().breast.look([near.seen_from(axes, np.zeros(3)) for axes in ways])
    return [_back(vote, axes, flip, centre) for vote, axes in zip(votes, ways, strict=True)]


def _skin_view(
    body: TriangleMesh, colours: Floats | None, start: Floats, side: str
) -> tuple[Estimate, float]:
    """The nipple along the skin's normal, and log odds that there is none."""
    flip = np.ones(3) if side == "left" else MIRROR
    skin = _skin_near(body, colours, start, 75.0, 1.4)
    if len(skin.points) < 200:
        return Estimate(start, 400.0 * np.eye(3)), 0.0
    centre = start
    votes: list[Votes] = []
    for tilts in (((0, 0),), ((0, 0), (7, 7), (-7, -7))):
        centre = skin.points[np.linalg.norm(skin.points - centre, axis=1).argmin()]
        outward = skin.normals[np.linalg.norm(skin.points - centre, axis=1) < 25.0].mean(axis=0)
        # Whichever side the file calls out: the body's axis lies roughly 60 mm behind the centre.
        sign = 1.0 if outward @ [centre[0], 0.0, centre[2] + 60.0] > 0 else -1.0
        axes = _looking_at(sign * outward) * flip[:, None]
        facing = sign * (skin.normals @ axes[2]) > -0.2
        shallow = skin.kept(((skin.points - centre) @ axes[2] > -60.0) & facing)
        ways = [_turn(*tilt) @ axes for tilt in tilts]
        seen = nets().nipple.look([shallow.seen_from(way, centre) for way in ways])
        votes = [_back(vote, way, np.ones(3), centre) for vote, way in zip(seen, ways, strict=True)]
        centre = np.mean([vote.points[0] for vote in votes], axis=0)
    points, sds = np.array([vote.points[0] for vote in votes]), np.array([vote.sd[0] for vote in votes])
    return _agreed(points, sds, _STRANGE["skin"]["nipple"]), float(np.mean([vote.flags[0] for vote in votes]))


def _looking_at(outward: Floats) -> Floats:
    """A view along a normal with the body's up as its own, rows right, up and towards the eye."""
    z = outward / max(float(np.linalg.norm(outward)), 1e-9)
    up = np.array([0.0, 1.0, 0.0]) if abs(z[1]) < 0.98 else np.array([0.0, 0.0, 1.0])
    x = np.cross(up, z)
    x = x / np.linalg.norm(x)
    return np.array([x, np.cross(z, x), z])


# Log odds that a side has no breast, as a share of the other side's: below it has none (47 without one: below 0.4;
# a small breast with a flat nipple: 0.48, others above 0.6). And log odds above which it may have none.
_FLAT, _UNSURE = 0.4, -12.0
_THERE = 20.0  # mm from the sternum to where its nipple would lie: half a torso has no such side


def _require_one_body(body: TriangleMesh, front: Mapping[str, Estimate]) -> None:
    """Refuse a surface of which much lies in another piece than the landmarks."""
    piece = face_components(body.faces)
    if not piece.max(initial=0):
        return
    area = np.bincount(piece, weights=face_areas(body.vertices, body.faces))
    marks = np.array([front[name].point for name in FOUND_NAMES])
    own = set(piece[closest_to_few(body, marks)[2]].tolist())
    others = [share for k, share in enumerate(area / area.sum()) if k not in own]
    if max(others, default=0.0) > _ANOTHER_BODY:
        raise MeshProblem(
            "no landmarks can be found: {share:.0%} of the surface belongs to something else than the torso",
            "Keep one person alone in the scan",
            code="several-bodies",
            share=max(others),
        )


# What a landmark means along x, y and z: a lower pole is known by its height, a lateral pole by height and depth.
_MEANING = {"lower_pole": np.array([1.0, 3.0, 1.0]), "lateral_pole": np.array([0.4, 1.5, 1.5])}


def _on_the_skin(body: TriangleMesh, wanted: Mapping[str, Floats]) -> tuple[Floats, Floats, Ints]:
    """The skin nearest to points by what they mean: points (k, 3), how far off (k,), faces (k,)."""
    found = np.array(list(wanted.values()))
    faces = np.zeros(len(wanted), np.int64)
    part = np.array([_part(name) for name in wanted])
    for kind in set(part):
        stretch, own = _MEANING.get(kind, np.ones(3)), part == kind
        points, _, faces[own] = closest_to_few(
            body.with_vertices(body.vertices * stretch), found[own] * stretch
        )
        found[own] = points / stretch
    away = np.linalg.norm(found - np.array(list(wanted.values())), axis=1)
    return found, away, faces


def _skin_beyond(body: TriangleMesh, point: Floats, way: float, along: int = 1) -> float:
    """How far a scan goes on beyond a point up (``way`` 1) or down (-1), or along x, mm; below 0 if it ends before."""
    near = np.abs(body.vertices[:, 1 - along] - point[1 - along]) < _COLUMN[0]
    near &= body.vertices[:, 2] > point[2] - _COLUMN[1]
    return float((way * (body.vertices[near, along] - point[along])).max(initial=-np.inf))


def _cut_off(
    body: TriangleMesh, merged: Mapping[str, Estimate], wanted: Mapping[str, Floats], placed: Floats
) -> set[str]:
    """Which landmarks the scan does not reach: it ends there, or has no skin where they should lie (placed nearest)."""
    border = np.unique(edge_table(body.faces).boundary)
    surface = 0 < len(border) < _SOUP * body.n_vertices
    rim = cKDTree(body.vertices[border]) if surface else None
    cut = set()
    for (name, point), place in zip(wanted.items(), placed, strict=True):
        part = _part(name)
        off_the_skin = part != "imf" and np.linalg.norm(place - point) > _OFF_THE_SKIN
        at_an_edge = rim is not None and part in _AT_AN_EDGE and rim.query(place)[0] < _EDGE
        vague = float(np.sqrt(np.trace(merged[name].covariance) / 3.0)) > _AT_AN_EDGE.get(part, np.inf)
        ends = part in _BELOW and _skin_beyond(body, point, -1.0) < _BELOW[part]
        if off_the_skin or (at_an_edge and vague) or ends:
            cut.add(name)
    # Nor is a nipple of which no net is sure on a side that the scan does not show to its end.
    for side in SIDES:
        name, end = f"nipple_{side}", f"lateral_pole_{side}"
        if end in cut and np.sqrt(np.trace(merged[name].covariance) / 3.0) > _LOST:
            cut.add(name)
        # Half a cloud may be fitted; half a surface is refused, for it would pass as a chest with one breast.
        if not surface and name in wanted and SIGN[side] * (wanted[name] - wanted["xiphoid"])[0] < 0.0:
            cut.add(name)
        # Cut along the sternum it is half a torso: what was taken for the sternum may be anything.
        middle = np.mean([wanted[end] for end in STERNUM], axis=0)
        if surface and _skin_beyond(body, middle, SIGN[side], along=0) < _BESIDE:
            cut.update((*STERNUM, *(name for name in REQUIRED if name.endswith(side))))
    # The poles are known by the nipple: of a breast without one they are nowhere.
    return cut | {name for name in wanted for s in SIDES if name.endswith(s) and f"nipple_{s}" in cut}


def _judged(
    body: TriangleMesh,
    stance: Similarity,
    merged: Mapping[str, Estimate],
    absent: str,
    unsure: Sequence[str],
    home: float,
    coloured: bool,
) -> FoundLandmarks:
    wanted = {name: estimate.point.copy() for name, estimate in merged.items()}
    for side in SIDES:
        if f"lateral_pole_{side}" in wanted:  # by its definition as high as the nipple
            wanted[f"lateral_pole_{side}"][1] = wanted[f"nipple_{side}"][1]
    on_skin, away, face = _on_the_skin(body, wanted)
    normals = face_normals(body.vertices, body.faces[face])
    cut = _cut_off(body, merged, wanted, on_skin)
    left_out = {
        name: note(
            "landmark-cut-off",
            "{name:landmark} not found: the scan ends where it should lie",
            "Set it by hand if it can be seen",
            name=name,
        )
        for name in wanted
        if name in cut
    }
    shaky = {*unsure, *(f"nipple_{side}" for side in SIDES if f"lower_pole_{side}" in cut)}
    if _skin_beyond(body, wanted["sternal_notch"], 1.0) < _ABOVE:
        shaky.add("sternal_notch")
    points, found = {}, {}
    for name, point, distance, normal in zip(wanted, on_skin, away, normals, strict=True):
        if name in cut:
            continue
        part = _part(name)
        hidden = bool(distance > _HIDDEN_BY.get(part, _HIDDEN))
        # What is hidden may lie where it was thought, or at the edge of what was seen.
        spread = merged[name].covariance + np.diag(np.square(_DEFINITION[part]) + hidden * distance**2 / 4.0)
        sd = float(np.sqrt(max(np.trace(spread) - normal @ spread @ normal, 1e-6) / 2.0))
        how = "estimate" if hidden else "shape and colour" if coloured and part == "nipple" else "shape"
        doubtful = name in shaky or sd > _DOUBTFUL[part] or (hidden and part != "imf")
        points[name] = wanted[name] if hidden and part == "imf" else point
        found[name] = Found(how, home * sd, home**2 * spread, doubtful)
    upright = replace(Landmarks.of(points), found=found)
    if absent and not cut.isdisjoint(STERNUM):  # it may not reach that side either
        cut |= {name for name in REQUIRED if name.endswith(absent)}
    _require_enough_of_a_torso(upright.only(REQUIRED), [name for name in REQUIRED if name in cut])
    marks = upright.transformed(stance.inverse())
    return FoundLandmarks(marks, left_out, absent=absent, axes=stance.rotation)


def _require_enough_of_a_torso(found: Landmarks, cut: Sequence[str]) -> None:
    """Refuse where hardly anything is sure, or where the scan ends before most of it."""
    if len(found.doubtful) > 0.8 * len(found):
        raise _not_a_torso()
    if cut and (not found.nipple_sides or len(cut) + len(found.doubtful) > 0.5 * (len(cut) + len(found))):
        raise MeshProblem(
            "no landmarks can be found: the scan ends before {names:landmark}",
            "Scan the bare front from neck to waist, both sides; or set by hand what can be seen",
            code="torso-cut-off",
            names=list(cut),
        )
