"""What changed between scans of one person, and whether it is more than repeated scans of an unchanged person show.

The first visit is registered; its skin is then carried to every later scan by a smooth warp that slides along it. So
all visits are described by the same skin points, the same border and the same wall, and what is wrong with them is
wrong alike at all visits. Differences of two registrations made apart do not have that: on unchanged women they are
several times the change that follows from posture. What breath and posture do to the chest is what the wall under the
breasts does, spanned over the skin without breast around them; a breast's own movement is what its skin does beyond
that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from breastmorph.clinical.borders import marks_of
from breastmorph.clinical.comparison import Comparison, GradeChange, SkinChange, Stance, VisitChange
from breastmorph.clinical.examination import UNKNOWN, Examination
from breastmorph.clinical.examiner import examiner_of
from breastmorph.clinical.measure_table import Measure
from breastmorph.clinical.repeatability import Repeatability, builtin_repeatability, key_of
from breastmorph.clinical.skin_points import SkinPoints
from breastmorph.clinical.volume import VOLUME, WallParameters
from breastmorph.foundation.arrays import Bools, Floats
from breastmorph.foundation.errors import BreastMorphError
from breastmorph.foundation.machine import one_thread
from breastmorph.foundation.messages import Finding, note, warning
from breastmorph.mask import Footprint
from breastmorph.mesh.geometry import Similarity, vertex_areas, vertex_normals
from breastmorph.mesh.triangle_mesh import MIRROR, TriangleMesh
from breastmorph.registration.acceptance import landmarks_on_surface
from breastmorph.registration.parameters import AcceptanceParameters, RigidParameters, WarpParameters
from breastmorph.registration.result import Registration
from breastmorph.registration.rigid import RigidPart, align_by_sliding, landmark_alignment
from breastmorph.registration.target import Pairs, Target
from breastmorph.registration.warp import smooth_functions, warp_basis, warp_onto
from breastmorph.scan.scan import SIDES, STERNUM, Landmarks, Scan
from breastmorph.template import Template

_FIXED = (*STERNUM, "nipple_left", "nipple_right")  # landmarks that are the same skin at all visits


@dataclass(frozen=True)
class ComparisonParameters:
    """How the first visit's skin is brought onto later scans."""

    # The chest of one person: less scatter than between people, and her landmarks are set to about a millimetre.
    rigid: RigidParameters = field(
        default_factory=lambda: RigidParameters(
            surface_sd=4.0,
            outlier_distance=5.0,
            turn_sd=(12.0, 6.0, 6.0),
            scale_sd=0.05,
            mask_threshold=0.03,
        )
    )
    # Likewise: a person bends less than people differ, and a stiff warp slides less on unchanged phantoms. A real
    # change need not fit it, as what it leaves across the skin is followed. Bare skin follows as the breast does.
    warp: WarpParameters = field(
        default_factory=lambda: WarpParameters(
            bending_sd=1.0,
            linear_sd=0.02,
            breast_sd=1.2,
            normal_sd=0.7,
            outside_pull=0.0,
            exact_sd=1.5,
            outlier_distance=12.0,
        )
    )
    on_scan: float = 2.0  # mm from the scan at which registered skin counts as seen
    follows: float = 15.0  # mm: what the warp leaves that a point still follows to the scan
    facing: float = 60.0  # degrees between normals of skin and scan
    # Measured on phantoms: one person's chests agree to 0.4 - 0.8 mm (median), realistic torsos' to 1.4, two
    # people's to 0.9 - 3.9; one person's breasts, changed or not, to 1 - 6 mm (rms), two people's to 5 - 24.
    odd_misfit: float = 1.8  # mm of the chest: hardly one person
    odd_breasts: tuple[float, float] = (7.0, 0.8)  # mm of the breasts, where the chest's is above the second
    odd_scale: float = 0.045  # of the chest's size: hardly one unit; posture and breath make up to 0.036
    other_scale: float = 0.12  # certainly not
    mirrored: float = 0.6  # the mirror image's misfit over the scan's own below which sides look exchanged


@dataclass(frozen=True, eq=False)
class _First:
    """The first visit made ready: its shape, its coarse twin, what its scan shows."""

    shape: Floats
    coarse: TriangleMesh
    seen: Bools
    coarse_seen: Bools
    landmarks: Landmarks


@dataclass(frozen=True, eq=False)
class _SeenBefore:
    """A later scan as a target, on which only skin that the first scan showed is looked for."""

    target: Target
    coarse_seen: Bools

    def pairs(self, points: Floats, normals: Floats, max_angle: float) -> Pairs:
        found = self.target.pairs(points, normals, max_angle)
        return replace(found, sound=found.sound & self.coarse_seen)


class Comparer:
    """A template prepared to compare scans of many people.

    Parameters
    ----------
    template : Template
        That of the first visits' registrations.
    repeatability : Repeatability, optional
        Where the +- come from; that of phantoms when not given.
    parameters : ComparisonParameters, optional
    """

    def __init__(
        self,
        template: Template,
        repeatability: Repeatability | None = None,
        parameters: ComparisonParameters | None = None,
    ) -> None:
        self.template = template
        self.repeatability = repeatability or builtin_repeatability()
        self.parameters = parameters or ComparisonParameters()
        self._examiner = examiner_of(template)
        self._volumes = self._examiner.volumes
        self._areas = vertex_areas(template.mesh.vertices, template.mesh.faces)

    @cached_property
    def _footprint(self) -> Footprint:
        return Footprint.of(self.template.mesh, self.template.landmarks)

    @cached_property
    def _regions(self) -> Mapping[str, Bools]:
        return self._footprint.regions(WallParameters().compared)

    @cached_property
    def _masks(self) -> tuple[Floats, Floats]:
        """Breast mask of the template and of its coarse twin, with peak 1."""
        mask, coarse = (
            self._footprint.mask.at(mesh.vertices) for mesh in (self.template.mesh, self.template.coarse)
        )
        return mask / mask.max(), coarse / mask.max()

    @cached_property
    def _anchors(self) -> SkinPoints:
        """The coarse twin's vertices as points of the template's skin."""
        from breastmorph.mesh.closest import Surface

        return SkinPoints.on(Surface(self.template.mesh), self.template.coarse.vertices)

    @cached_property
    def _bare(self) -> Bools:
        """Skin without breast that supports the walls."""
        uncovered = np.zeros(self.template.mesh.n_vertices, bool)
        for wall in self._volumes.walls.values():
            uncovered[wall.bare] = True
        return uncovered

    def compare(self, scans: Sequence[Scan], first: Registration) -> Comparison:
        """Compare scans of one person.

        Parameters
        ----------
        scans : sequence of Scan
            Two or more, in the order of the visits.
        first : Registration
            Of the first scan, with this template.

        Raises
        ------
        BreastMorphError
            Fewer than two scans; a scan that is certainly not of this person in this unit.
        """
        if len(scans) < 2:
            raise BreastMorphError(
                "there is only one scan", "Give two or more scans of one person", code="too-few-visits"
            )
        scans = _told_apart(scans)
        with one_thread():
            start = self._first(scans[0], first)
            absent = {side for side in SIDES if any(side in scan.landmarks.absent_sides for scan in scans)}
            absent |= {first.absent_side} - {""}
            before = self._examiner.scan(scans[0], start.shape, _one(absent), first.warnings)
            visits, changes, warnings = [before], [], list(first.warnings)
            for scan in scans[1:]:
                after, change, found = self._later(start, before, scan, absent)
                visits.append(after)
                changes.append(change)
                warnings += found
        if absent:
            warnings.append(
                warning(
                    "side-not-compared",
                    "the {side} breast is absent at one visit at least; its volume and the symmetry are not "
                    "compared",
                    side=_one(absent),
                )
            )
        mesh = self.template.mesh.with_vertices(start.shape)
        return Comparison(tuple(visits), tuple(changes), mesh, self.repeatability, tuple(_unique(warnings)))

    def _first(self, scan: Scan, first: Registration) -> _First:
        p, shape = self.parameters, first.vertices
        pairs = Target.of(scan.mesh).pairs(shape, vertex_normals(shape, self.template.mesh.faces), p.facing)
        seen = pairs.sound & (pairs.distances < p.on_scan)
        anchors = self._anchors
        coarse = TriangleMesh(anchors.at(shape), self.template.coarse.faces)
        coarse_seen = (anchors.weights * seen[anchors.corners]).sum(axis=1) > 0.5
        return _First(shape, coarse, seen, coarse_seen, scan.landmarks)

    def _later(
        self, first: _First, before: Examination, scan: Scan, absent: set[str]
    ) -> tuple[Examination, VisitChange, list[Finding]]:
        target = Target.of(scan.mesh)
        marks, moved = landmarks_on_surface(scan.landmarks, target, scan.id, AcceptanceParameters())
        to_scan, misfit = self._align(first, target, marks)
        warnings = [*scan.warnings, *moved, *self._judged(first, scan, to_scan, misfit)]
        shape, seen = self._carried(first, target.seen_through(to_scan), marks.transformed(to_scan.inverse()))
        on_scan, bare = to_scan.apply(shape), self._bare
        after = self._examiner.scan(scan, on_scan, _one(absent))
        # In mm of the first visit's frame, at the scan's own size.
        rigid = Similarity.fit(first.shape[bare], on_scan[bare], self._areas[bare], with_scale=False)
        there = rigid.inverse().apply(on_scan)
        stance = self._stance(first.shape, there, misfit, to_scan.scale)
        hidden = {
            side: float(1.0 - np.average(seen[inside], weights=self._areas[inside]))
            for side, inside in self._regions.items()
        }
        measures = self._others(before, after, first.landmarks, scan.landmarks)
        change = VisitChange(
            scan.id,
            MappingProxyType(
                {side: self._volume(first, shape, to_scan, side, hidden, stance, absent) for side in SIDES}
            ),
            measures,
            _grades(before, after, measures),
            self._skin(first.shape, there, seen, absent),
            stance,
            MappingProxyType(hidden),
            there,
        )
        return after, change, warnings

    def _align(self, first: _First, target: Target, marks: Landmarks) -> tuple[Similarity, float]:
        """The similarity that brings the first visit's chest to a scan, and what it leaves across the skin (mm)."""
        p, known = self.parameters.rigid, first.landmarks
        common = [name for name in STERNUM if name in known and name in marks]
        part = RigidPart(
            target,
            first.coarse,
            self._masks[1],
            lambda _, points: np.ones(len(points)),  # a point is left out where the first visit has a breast
            known.array(common),
            marks.only(common),
        )
        to_scan, _ = align_by_sliding(part, landmark_alignment(known, marks, p), p)
        pairs, kept = part.pairs(to_scan, p)
        gaps = np.abs(((pairs.points - first.coarse.vertices) * pairs.normals).sum(axis=1))
        kept &= first.coarse_seen
        return to_scan, to_scan.scale * float(np.median(gaps[kept])) if kept.any() else math.inf

    def _judged(self, first: _First, scan: Scan, to_scan: Similarity, misfit: float) -> list[Finding]:
        """What speaks against one person, one unit and the same sides."""
        p, found = self.parameters, []
        off = abs(math.log(to_scan.scale))
        if off > p.other_scale:
            raise BreastMorphError(
                "the chest differs in size by {percent:+.0f} % from the first visit: another unit, or another person",
                "Check the unit of both files, and that they are of the same person",
                scan.id,
                code="other-size",
                percent=100 * (to_scan.scale - 1),
            )
        if off > p.odd_scale:
            found.append(
                warning(
                    "odd-size",
                    "the chest of {visit} differs in size by {percent:+.1f} % from the first visit: "
                    "perhaps another scale or person",
                    "Check that both scans are of the same person",
                    visit=scan.id,
                    percent=100 * (to_scan.scale - 1),
                )
            )
        own, mirrored = (self._breast_misfit(first, one, marks) for one, marks in _both_ways(scan))
        if misfit > p.odd_misfit or (own > p.odd_breasts[0] and misfit > p.odd_breasts[1]):
            found.append(
                warning(
                    "odd-person",
                    "the chest of {visit} lies {misfit:.1f} mm off that of the first visit: perhaps another "
                    "person",
                    "Check that both scans are of the same person",
                    visit=scan.id,
                    misfit=misfit,
                )
            )
        if mirrored < p.mirrored * own:
            found.append(
                warning(
                    "odd-sides",
                    "{visit} looks like the mirror image of the first visit: sides exchanged, or a mirrored "
                    "file",
                    "Check left and right of both scans",
                    visit=scan.id,
                )
            )
        return found

    def _breast_misfit(self, first: _First, mesh: TriangleMesh, marks: Landmarks) -> float:
        """mm (root mean square) that a scan's breasts lie off the first visit's, across the skin."""
        target = Target.of(mesh)
        to_scan, _ = self._align(first, target, marks)
        points, faces = first.coarse.vertices, first.coarse.faces
        pairs = target.seen_through(to_scan).pairs(
            points, vertex_normals(points, faces), self.parameters.facing
        )
        kept = pairs.sound & first.coarse_seen & (self._masks[1] > self.parameters.rigid.mask_threshold)
        gaps = ((pairs.points - points) * pairs.normals).sum(axis=1)[kept]
        return float(np.sqrt((gaps**2).mean())) if kept.any() else math.inf

    def _carried(self, first: _First, target: Target, marks: Landmarks) -> tuple[Floats, Bools]:
        """The first visit's skin brought onto a scan in its coordinates, (n, 3), and which of it both show."""
        p = self.parameters
        mask, coarse_mask = self._masks
        sternum = [self.template.landmark_ids[name] for name in STERNUM]
        functions = smooth_functions(
            first.shape, first.coarse.vertices, mask, coarse_mask, first.shape[sternum], p.warp
        )
        basis = warp_basis(functions)  # one person changes otherwise than people differ
        # The landmarks' own places at the first visit, not the template's vertices, are what they are compared with.
        names = [name for name in _FIXED if name in marks and name in first.landmarks]
        ids = {name: self.template.landmark_ids[name] for name in names}
        shift = {name: first.shape[ids[name]] + marks[name] - first.landmarks[name] for name in names}
        wanted = replace(
            Landmarks.of(shift), found={name: marks.found[name] for name in names if name in marks.found}
        )
        known: Any = _SeenBefore(target, first.coarse_seen)
        shape, _ = warp_onto(known, first.shape, first.coarse, basis, ids, wanted)
        pairs = target.pairs(shape, vertex_normals(shape, self.template.mesh.faces), p.facing)
        seen = pairs.sound & first.seen & (pairs.distances < p.follows)
        across = ((pairs.points - shape) * pairs.normals).sum(axis=1)
        return shape + np.where(seen, across, 0.0)[:, None] * pairs.normals, seen

    def _volume(
        self,
        first: _First,
        shape: Floats,
        to_scan: Similarity,
        side: str,
        hidden: Mapping[str, float],
        stance: Stance,
        absent: set[str],
    ) -> Measure:
        name = f"volume-{side}"
        if side in absent:
            why = note("side-absent", "{side} side absent", side=side)
            return Measure.compared(name, "volume", "cc", math.nan, math.nan, math.nan, why)
        before, after = (self._volumes.cc(one, side) for one in (first.shape, to_scan.apply(shape)))
        sd = self.repeatability.volume.sd(0.5 * (before + after), hidden[side], stance.posture)
        return Measure.compared(name, "volume", "cc", before, after, sd)

    def _others(
        self, before: Examination, after: Examination, first: Landmarks, later: Landmarks
    ) -> tuple[Measure, ...]:
        now = {key_of(one): one for one in compared_measures(after)}
        out = []
        for one in compared_measures(before):
            other = now.get(key_of(one))
            if other is not None and (one.known or other.known):
                found = (_found_sd(one.name, marks) for marks in (first, later))
                sd = math.hypot(self._base_sd(one, other), *found)
                reason = one.reason or other.reason
                out.append(Measure.compared(one.name, one.kind, one.unit, one.value, other.value, sd, reason))
        return tuple(out)

    def _base_sd(self, one: Measure, other: Measure) -> float:
        """By repeated scans; where they did not have this measure, by what each visit says of itself."""
        sd = self.repeatability.of_change(one)
        return sd if math.isfinite(sd) else math.hypot(one.sd, other.sd)

    def _stance(self, before: Floats, after: Floats, misfit: float, scale: float) -> Stance:
        uncovered, weights = before[self._bare], self._areas[self._bare]
        moved = after[self._bare] - uncovered
        middle = np.average(uncovered, axis=0, weights=weights)
        system = np.column_stack([np.ones(len(uncovered)), uncovered - middle])
        root = np.sqrt(weights)[:, None]
        linear = np.linalg.lstsq(root * system, root * moved, rcond=None)[0]
        posture = math.sqrt(float(np.average((moved**2).sum(axis=1), weights=weights)))
        return Stance(100.0 * float(linear[3, 2]), 100.0 * float(linear[1, 0]), posture, misfit, scale)

    def _skin(self, before: Floats, after: Floats, seen: Bools, absent: set[str]) -> SkinChange:
        """What the breasts' skin did beyond the wall under it."""
        normals = vertex_normals(before, self.template.mesh.faces)
        across, along = (np.full(len(before), np.nan) for _ in range(2))
        for side, wall in self._volumes.walls.items():
            if side in absent:
                continue
            own = (after - before)[wall.ids] - (wall.points(after) - wall.points(before))
            normal = normals[wall.ids]
            out = (own * normal).sum(axis=1)
            across[wall.ids] = out
            along[wall.ids] = np.linalg.norm(own - out[:, None] * normal, axis=1)
        return SkinChange(np.where(seen, across, np.nan), np.where(seen, along, np.nan))


APART = "left minus right"


def compared_measures(one: Examination) -> tuple[Measure, ...]:
    """What is compared of an examination beside its volumes: every other measure, and how alike the sides are."""
    apart = tuple(replace(measure, kind=APART) for measure in one.asymmetries if measure.name == VOLUME)
    return (*one.distances, *one.others, *apart, one.mirror_deviation)


def _grades(
    before: Examination, after: Examination, measures: Iterable[Measure]
) -> Mapping[str, GradeChange]:
    decisive = {one.name: one.exceeds for one in measures}
    out = {}
    for one, other in zip(before.ptosis, after.ptosis, strict=True):
        exceeds = decisive.get(f"nipple-above-fold-{one.side}")
        if UNKNOWN not in (one.grade, other.grade):
            known = exceeds is not None
            out[one.side] = GradeChange(
                one.side,
                one.grade,
                other.grade,
                bool(exceeds) and one.grade != other.grade if known else None,
            )
    return MappingProxyType(out)


def _told_apart(scans: Sequence[Scan]) -> list[Scan]:
    """The scans under names of their own: files of several visits are often called alike."""
    ids = [scan.id for scan in scans]
    if len(set(ids)) == len(ids):
        return list(scans)
    return [replace(scan, id=f"{scan.id} visit {k}") for k, scan in enumerate(scans, 1)]


def _one(absent: set[str]) -> str:
    return "".join(sorted(absent)[:1])


def _unique(findings: Iterable[Finding]) -> list[Finding]:
    return list({str(one): one for one in findings}.values())


def _found_sd(name: str, landmarks: Landmarks) -> float:
    """What landmarks that the program found add to the spread of a distance or height, mm."""
    ends = marks_of(name)
    return math.sqrt(sum(landmarks.found[end].sd ** 2 for end in ends if end in landmarks.found))


def _both_ways(scan: Scan) -> Iterable[tuple[TriangleMesh, Landmarks]]:
    """A scan with its landmarks, and its mirror image."""
    yield scan.mesh, scan.landmarks
    yield (
        TriangleMesh(scan.mesh.vertices * MIRROR, scan.mesh.faces[:, ::-1].copy()),
        scan.landmarks.mirrored(),
    )
