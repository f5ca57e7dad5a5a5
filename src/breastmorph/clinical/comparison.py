"""The value of a comparison of visits, as text, a record for JSON and rows of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from breastmorph.clinical.examination import Examination
from breastmorph.clinical.measure_table import Measure, format_measure
from breastmorph.clinical.repeatability import Repeatability
from breastmorph.foundation.arrays import Floats
from breastmorph.foundation.files import plain
from breastmorph.foundation.messages import Finding, sentences
from breastmorph.mesh.triangle_mesh import TriangleMesh


@dataclass(frozen=True)
class GradeChange:
    """Regnault's grade of ptosis at the first visit and at another.

    Attributes
    ----------
    side, before, after : str
    exceeds : bool, optional
        Whether the grade is another one and the height of the nipple above the fold, which decides it, changed by more
        than noise; None where one of them is not known.
    """

    side: str
    before: str
    after: str
    exceeds: bool | None

    @property
    def name(self) -> str:
        """As tables call it."""
        return f"ptosis-{self.side}"


@dataclass(frozen=True, eq=False)
class SkinChange:
    """How the breasts' skin moved beyond what the chest did, by vertex; NaN off the breasts and where not seen.

    Attributes
    ----------
    across : (n,) float
        mm along the skin's normal, outwards positive.
    along : (n,) float
        mm along the skin.
    """

    across: Floats
    along: Floats


@dataclass(frozen=True)
class Stance:
    """How differently a person stood and breathed.

    Attributes
    ----------
    depth, width : float
        Change of the chest's depth and width, percent; breath shows in the depth.
    posture : float
        mm (root mean square) that bare skin of the chest moved beyond turning and shifting.
    misfit : float
        mm (median) between the first visit's chest, turned and shifted, and the scan, across the skin.
    scale : float
        Size of the scan's chest over that of the first.
    """

    depth: float
    width: float
    posture: float
    misfit: float
    scale: float


@dataclass(frozen=True, eq=False)
class VisitChange:
    """A later visit against the first.

    Attributes
    ----------
    id : str
    volumes : mapping from side to Measure
    measures : tuple of Measure
        All others of the data dictionary: distances, heights, areas, volumes by other definitions, and how alike the
        sides are.
    grades : mapping from side to GradeChange
        Of ptosis.
    skin : SkinChange
    stance : Stance
    hidden : mapping from side to float
        Share of a breast's skin that one of the two scans does not show.
    shape : (n, 3) float
        The first visit's skin as it lies at this visit, in the first scan's frame.
    """

    id: str
    volumes: Mapping[str, Measure]
    measures: tuple[Measure, ...]
    grades: Mapping[str, GradeChange]
    skin: SkinChange
    stance: Stance
    hidden: Mapping[str, float]
    shape: Floats

    @property
    def all(self) -> tuple[Measure, ...]:
        """Volumes, then the others."""
        return (*self.volumes.values(), *self.measures)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scans of one person at two or more times.

    Attributes
    ----------
    visits : tuple of Examination
        In the order given; all volumes and symmetries are of the same skin.
    changes : tuple of VisitChange
        Every later visit against the first.
    mesh : TriangleMesh
        The first visit's registered shape, to which the maps belong.
    repeatability : Repeatability
        Where the +- come from.
    warnings : tuple of Finding
    """

    visits: tuple[Examination, ...]
    changes: tuple[VisitChange, ...]
    mesh: TriangleMesh
    repeatability: Repeatability
    warnings: tuple[Finding, ...] = ()

    @property
    def last(self) -> VisitChange:
        """The last visit against the first."""
        return self.changes[-1]

    def __repr__(self) -> str:
        return f"Comparison({', '.join(one.id for one in self.visits)})"

    def __str__(self) -> str:
        lines = [
            f"{self.visits[0].id} to {one.id}\n" + "\n".join(map(in_words, one.all)) for one in self.changes
        ]
        return "\n".join([*lines, *(f"Warning: {finding}" for finding in self.warnings)])


def in_words(row: Measure) -> str:
    """One line: what changed, by how much, and whether that is more than noise."""
    change, sd = format_measure(row, "+")
    if not change:
        return f"{row.name} {row.kind}: not determinable"
    spread = f" \N{PLUS-MINUS SIGN} {sd}" if sd else ""
    verdict = {True: ", changed", False: ", no change beyond noise", None: ""}[row.exceeds]
    return f"{row.name} {row.kind}: {change}{spread} {row.unit}{verdict}"


def as_record(found: Comparison) -> dict[str, Any]:
    """The comparison for JSON; ``volume_change_left`` and the like are of the last visit against the first."""
    record: dict[str, Any] = {"visits": [one.id for one in found.visits]}
    for side, volume in found.last.volumes.items():
        record[f"volume_change_{side}"] = plain(volume.change)
        record[f"volume_change_{side}_sd"] = plain(volume.sd)
        record[f"volume_change_{side}_exceeds_repeatability"] = volume.exceeds
    record["changes"] = [_visit_record(one) for one in found.changes]
    record["symmetry"] = [
        {"visit": one.id, "mean_deviation_mm": one.symmetry.deviation if one.symmetry is not None else None}
        for one in found.visits
    ]
    record["repeatability"] = {"people": found.repeatability.people, "source": found.repeatability.source}
    record["warnings"] = sentences(found.warnings)
    return record


def _visit_record(one: VisitChange) -> dict[str, Any]:
    seen = np.isfinite(one.skin.across)
    return {
        "visit": one.id,
        "measures": [
            {
                "name": change.name,
                "kind": change.kind,
                "unit": change.unit,
                "before": plain(change.before),
                "after": plain(change.after),
                "change": plain(change.change),
                "sd": plain(change.sd),
                "exceeds_repeatability": change.exceeds,
                **({"reason": str(change.reason)} if change.reason is not None else {}),
            }
            for change in one.all
        ],
        "ptosis": [
            {
                "side": side,
                "regnault_before": grade.before,
                "regnault_after": grade.after,
                "exceeds_repeatability": grade.exceeds,
            }
            for side, grade in one.grades.items()
        ],
        "skin": {
            "mean_across_mm": plain(float(one.skin.across[seen].mean())) if seen.any() else None,
            "mean_along_mm": plain(float(one.skin.along[seen].mean())) if seen.any() else None,
        },
        "chest": {
            "depth_percent": one.stance.depth,
            "width_percent": one.stance.width,
            "posture_mm": one.stance.posture,
            "misfit_mm": one.stance.misfit,
            "scale": one.stance.scale,
        },
        "hidden_share": dict(one.hidden),
    }


COLUMNS = ("visit", "measure", "kind", "unit", "before", "after", "change", "sd", "exceeds_repeatability")


def as_rows(found: Comparison) -> list[dict[str, str]]:
    """The comparison as rows of a table, with :data:`COLUMNS`; empty where something is not determinable."""

    def cell(value: float) -> str:
        return f"{value:.2f}" if math.isfinite(value) else ""

    verdict = {True: "yes", False: "no", None: ""}
    rows = []
    for visit in found.changes:
        for one in visit.all:
            cells = map(cell, (one.before, one.after, one.change, one.sd))
            values = (visit.id, one.name, one.kind, one.unit, *cells, verdict[one.exceeds])
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        for grade in visit.grades.values():
            values = (visit.id, grade.name, "Regnault", "", grade.before, grade.after, "", "")
            rows.append(dict(zip(COLUMNS, (*values, verdict[grade.exceeds]), strict=True)))
    return rows
