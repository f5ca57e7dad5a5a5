"""What lies between a torso as it is and as it might be: cc to add or to take away, where, how thick; and cuts.

It is the difference of two computed surfaces: what is usual among a model's subjects, not what an operation gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from breastmorph.clinical.edit import Edit
from breastmorph.clinical.examiner import examiner_of
from breastmorph.clinical.mirror_frame import mirror_frame
from breastmorph.clinical.missing_region import BOTH
from breastmorph.clinical.prediction import Prediction, deviation_of
from breastmorph.clinical.skin_points import Reading
from breastmorph.foundation.arrays import Bools, Floats, Ints, Shown
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.files import plain
from breastmorph.foundation.language import N_
from breastmorph.foundation.messages import READERS, Finding, note
from breastmorph.mesh.closest import Surface
from breastmorph.mesh.geometry import enclosed_volume, face_cross, face_normals, solid_between
from breastmorph.mesh.topology import faces_with_any
from breastmorph.mesh.triangle_mesh import TriangleMesh
from breastmorph.model.shape_model import ShapeModel
from breastmorph.scan.scan import SIDES, SIGN


@dataclass(frozen=True, eq=False)
class Outline:
    """Where a plane meets a surface.

    Attributes
    ----------
    line : (p, 3) float
        The longest connected line, mm.
    area : float
        cm2 between it and the straight line that joins its ends.
    """

    line: Floats
    area: float


@dataclass(frozen=True, eq=False)
class Section:
    """A cut through several shapes of one torso at the same place.

    Attributes
    ----------
    kind : {"level", "upright"}
        Level through both breasts, or from top to bottom through one.
    side : str
        Whose nipple it goes through.
    at : float
        Height (y) of a level cut or place (x) of an upright one, mm.
    outlines : mapping from name to Outline
    """

    kind: str
    side: str
    at: float
    outlines: Mapping[str, Outline]

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file: mm and cm2."""
        return {
            "kind": self.kind,
            "side": self.side,
            "at_mm": self.at,
            "outlines": {
                name: {"line_mm": np.round(one.line, 3).tolist(), "area_cm2": plain(one.area)}
                for name, one in self.outlines.items()
            },
        }


def sections(model: ShapeModel, shapes: Mapping[str, Floats], side: str) -> tuple[Section, Section]:
    """The level and the upright cut through a nipple.

    Parameters
    ----------
    model : ShapeModel
    shapes : mapping from name to (n, 3) float
        Upright, mm. The nipple is that of the last one, so that a missing breast is cut where it is predicted.
    side : {"left", "right"}
    """
    name = f"nipple_{side}"
    if name not in model.landmark_ids:
        raise BreastMorphError("needs {names:landmark| and }", code="needs-landmarks", names=[name])
    nipple = list(shapes.values())[-1][model.landmark_ids[name]]
    cuts = []
    for kind, axis in (("level", 1), ("upright", 0)):
        at = float(nipple[axis])
        found = {key: cut(TriangleMesh(shape, model.faces), axis, at) for key, shape in shapes.items()}
        cuts.append(Section(kind, side, at, found))
    return cuts[0], cuts[1]


def cut(mesh: TriangleMesh, axis: int, at: float) -> Outline:
    """Where the plane at a place of an axis meets a surface.

    A closed line ends where it begins.
    """
    off = mesh.vertices[:, axis] - at
    off = np.where(
        np.abs(off) < 1e-9, 1e-9, off
    )  # no vertex lies on the plane: every cut face has two cut edges
    faces = mesh.faces[np.ptp(np.sign(off)[mesh.faces], axis=1) > 0]
    ends = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2)  # (f, 3, 2)
    crossing = np.sign(off[ends[..., 0]]) != np.sign(off[ends[..., 1]])
    edges = np.sort(ends[crossing], axis=1)  # two a face, one after the other
    keys, which = np.unique(edges, axis=0, return_inverse=True)
    share = off[keys[:, 0]] / (off[keys[:, 0]] - off[keys[:, 1]])
    start, end = mesh.vertices[keys[:, 0]], mesh.vertices[keys[:, 1]]
    points = start + share[:, None] * (end - start)
    chains = _chains(which.reshape(-1, 2), len(keys))
    lines = [points[chain] for chain in chains]
    if not lines:
        return Outline(np.zeros((0, 3)), float("nan"))
    line = max(lines, key=lambda one: float(np.linalg.norm(np.diff(one, axis=0), axis=1).sum()))
    u, v = np.delete(line, axis, axis=1).T
    area = 0.5 * abs(float(np.sum(u * np.roll(v, -1) - np.roll(u, -1) * v))) / 100.0
    return Outline(line, area)


def _chains(pairs: Ints, count: int) -> list[list[int]]:
    """Connected lines of segments between numbered points; open ones first begin at an end."""
    beside: list[list[int]] = [[] for _ in range(count)]
    for a, b in pairs.tolist():
        beside[a].append(b)
        beside[b].append(a)
    used = [False] * count
    found = []
    for begin in sorted(range(count), key=lambda one: len(beside[one]) != 1):
        if used[begin]:
            continue
        chain, here = [begin], begin
        used[begin] = True
        while True:
            step = next((one for one in beside[here] if not used[one]), None)
            if step is None:
                break
            used[step] = True
            chain.append(step)
            here = step
        if len(chain) > 2 and begin in beside[here]:
            chain.append(begin)
        found.append(chain)
    return found


Target = Literal["predicted", "mirrored", "edited"]
TARGETS: tuple[Target, ...] = ("predicted", "mirrored", "edited")
_SAME = 0.05  # mm: thinner than this there is nothing between the surfaces
_BASE = 2.0  # mm of thickness at which the base ends


# What the difference of two shapes is, and what it is not.
_NOTES = {
    "planned/predicted": N_(
        "The difference between the skin as it is and what is usual among the model's subjects; "
        "not the outcome of an operation"
    ),
    "planned/mirrored": N_(
        "The difference between the skin as it is and the mirror image of the other breast; not "
        "the outcome of an operation"
    ),
    "planned/edited": N_(
        "The difference between the skin as it is and the likeliest shape with the requested "
        "measures; not the outcome of an operation"
    ),
    "planned/synthetic": N_(
        "Made with a synthetic model, which knows no people: a difference of two shapes, no "
        "advice and not for planning"
    ),
}


@dataclass(frozen=True, eq=False)
class PlannedPart:
    """What is to be added, or taken away.

    Attributes
    ----------
    solid : TriangleMesh, optional
        Closed and oriented outwards, mm, in the frame of the shapes; None where there is nothing.
    volume, deviation : float
        cc, of that solid; its standard deviation, NaN where unknown.
    """

    solid: TriangleMesh | None
    volume: float
    deviation: float


@dataclass(frozen=True, eq=False)
class SidePlan:
    """One breast.

    Attributes
    ----------
    side : {"left", "right"}
    added, removed : PlannedPart
        Where the target lies outside of the skin as it is, and where inside.
    volume, deviation : float
        cc: what is added minus what is taken away, and its standard deviation.
    base_width, base_height : float
        Of the skin under which at least 2 mm are added or taken away: from left to right and from top to bottom of
        the upright torso, straight, mm; NaN where there is none.
    thickest : float
        mm; negative where more is taken away than added.
    """

    side: str
    added: PlannedPart
    removed: PlannedPart
    volume: float
    deviation: float
    base_width: float
    base_height: float
    thickest: float

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers: cc and mm."""
        parts = {"added": self.added, "removed": self.removed}
        return {
            "side": self.side,
            "volume_cc": self.volume,
            "sd_cc": plain(self.deviation),
            **{f"{name}_cc": one.volume for name, one in parts.items()},
            **{f"{name}_sd_cc": plain(one.deviation) for name, one in parts.items()},
            "base_width_mm": plain(self.base_width),
            "base_height_mm": plain(self.base_height),
            "thickest_mm": self.thickest,
        }


@dataclass(frozen=True, eq=False)
class Plan(Shown):
    """The difference between a torso as it is and a target in the same correspondence.

    Attributes
    ----------
    target : {"predicted", "mirrored", "edited"}
    before, after : (n, 3) float
        mm, upright.
    faces : (m, 3) int
    sides : tuple of SidePlan
    thickness : (n,) float
        How far the target's skin lies outside (+) or inside (-) of the skin as it is, the shortest way, mm.
    note : Finding
        What must be stated with it each time.
    synthetic : bool
        Whether the model is no model of people: then nothing of this may appear as advice.
    """

    target: Target
    before: Floats
    after: Floats
    faces: Ints
    sides: tuple[SidePlan, ...]
    thickness: Floats
    note: Finding
    synthetic: bool

    def __repr__(self) -> str:
        sides = ", ".join(f"{one.side} {one.volume:+.0f} ± {one.deviation:.0f} cc" for one in self.sides)
        return f"Plan({self.target} minus scanned: {sides}; {self.note.message})"

    def side(self, name: str) -> SidePlan:
        """One of its sides."""
        for one in self.sides:
            if one.side == name:
                return one
        raise BreastMorphError(
            "nothing was planned for the {side} side",
            "Ask for {sides}",
            code="not-planned",
            side=name,
            sides=" and ".join(one.side for one in self.sides),
        )

    @cached_property
    def _target(self) -> Surface:
        return Surface(TriangleMesh(self.after, self.faces))

    def thickness_at(self, points: Floats) -> Floats:
        """Thickness in mm at the places of the target's skin that are nearest to points (k, 3)."""
        near = self._target.closest(np.asarray(points, dtype=np.float64).reshape(-1, 3))
        found: Floats = (near.weights * self.thickness[self.faces[near.faces]]).sum(axis=1)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a JSON file."""
        return {
            "target": self.target,
            "sides": [one.as_dict() for one in self.sides],
            "note": self.note.cause.text(READERS),
            "advice": not self.synthetic,
        }


def plan_of(model: ShapeModel, before: Floats, target: Prediction | Edit, *, mirrored: bool = False) -> Plan:
    """What is to be added or taken away to get from a shape to its prediction, its mirror image or an edit of it.

    Parameters
    ----------
    model : ShapeModel
    before : (n, 3) float
        The torso as it is, upright, mm: what the prediction or the edit was made of.
    target : Prediction or Edit
    mirrored : bool
        Take the mirror image of the other breast instead of the predicted one.

    Raises
    ------
    BreastMorphError
        Both breasts are missing: there is no mirror image.
    """
    if isinstance(target, Edit):
        return _planned(
            model, before, target.shape, "edited", dict.fromkeys(SIDES, np.ones(len(before), bool)), None
        )
    if mirrored and target.region.side == BOTH:
        raise BreastMorphError(
            "both breasts are missing, so there is no mirror image",
            "Plan with the predicted breasts",
            code="no-mirror-image",
        )
    region = {side: target.region.missing for side in target.region.sides}
    if mirrored:
        return _planned(model, before, target.mirrored, "mirrored", region, None)
    return _planned(model, before, target.shape, "predicted", region, target)


def _planned(
    model: ShapeModel,
    before: Floats,
    after: Floats,
    target: Target,
    regions: Mapping[str, Bools],
    prediction: Prediction | None,
) -> Plan:
    faces = model.faces
    thickness = _thickness(before, after, faces)
    middle = mirror_frame(model).mean[:, 0]
    several = len(regions) > 1
    sides = tuple(
        _side_plan(
            model,
            side,
            before,
            after,
            thickness,
            region & ((SIGN[side] * middle > 0) | (not several)),
            prediction,
        )
        for side, region in regions.items()
    )
    kind = "planned/synthetic" if model.is_synthetic else f"planned/{target}"
    return Plan(
        target, before, after, faces, tuple(sides), thickness, note(kind, _NOTES[kind]), model.is_synthetic
    )


def _thickness(before: Floats, after: Floats, faces: Ints) -> Floats:
    moved = (before != after).any(axis=1)
    found = np.zeros(len(before))
    if moved.any():
        near = Surface(TriangleMesh(before, faces)).closest(after[moved])
        outwards = face_normals(before, faces)[near.faces]
        above = ((after[moved] - near.points) * outwards).sum(axis=1)
        found[moved] = np.where(above < 0, -near.distances, near.distances)
    return found


def _side_plan(
    model: ShapeModel,
    side: str,
    before: Floats,
    after: Floats,
    thickness: Floats,
    region: Bools,
    prediction: Prediction | None,
) -> SidePlan:
    up, down = (region & (sign * thickness > _SAME) for sign in (1.0, -1.0))
    # Skin as it is where nothing is added: the volumes of both parts then make up the whole difference.
    between = np.where(up[:, None], after, before)
    parts, slopes = [], []
    for inner, outer, moved in ((before, between, up), (after, between, down)):
        solid = solid_between(inner, outer, model.faces, moved) if moved.any() else None
        volume = enclosed_volume(solid) / 1000.0 if solid is not None else 0.0
        slopes.append(_by_vertex(after, model.faces, moved))
        parts.append(PlannedPart(solid, volume, _deviation(slopes[-1], prediction)))
    added, removed = parts
    if prediction is None:
        spread = _of_measuring(model, before, after, side)
        added, removed = (
            PlannedPart(one.solid, one.volume, spread if one.solid is not None else 0.0) for one in parts
        )
    else:
        spread = _deviation(slopes[0] + slopes[1], prediction)
    base = before[region & (np.abs(thickness) > _BASE)]
    width, height = np.ptp(base[:, :2], axis=0) if len(base) else (float("nan"),) * 2
    own = thickness[region]
    thickest = float(own[np.abs(own).argmax()]) if len(own) else 0.0
    return SidePlan(
        side, added, removed, added.volume - removed.volume, spread, float(width), float(height), thickest
    )


def _by_vertex(after: Floats, faces: Ints, moved: Bools) -> Floats:
    """How a volume under the target's skin changes with its vertices, cc per mm, (n, 3); only where it was moved."""
    changed = faces[faces_with_any(moved, faces)]
    slope = np.zeros_like(after)
    outwards = face_cross(after, changed) / 6000.0
    for corner in range(3):
        np.add.at(slope, changed[:, corner], outwards)
    slope[~moved] = 0.0
    return slope


def _deviation(slope: Floats, prediction: Prediction | None) -> float:
    if prediction is None:
        return float("nan")
    return deviation_of(Reading(0.0, np.arange(len(slope)), slope), prediction)


def _of_measuring(model: ShapeModel, before: Floats, after: Floats, side: str) -> float:
    """Standard deviation of the difference of two measured volumes of a side, cc: a mirror image has no other."""
    volumes = examiner_of(model).volumes
    one, other = (volumes.estimate(shape, side).uncertainty for shape in (before, after))
    return math.hypot(one, other)
